"""From the blocks of a log to moments: lay out bins, sweep, add, cumulate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from mpc_lab.pairing.arrays import Floats, Ints
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.moments import Moments, Quadratic
from mpc_lab.pairing.stopping import stop_flag
from mpc_lab.pairing.sweep import (
    CC,
    CLUSTERS,
    CU,
    N_SUMS,
    PAIRS,
    QUERIES,
    SQUARES,
    SUM,
    UU,
    Bins,
    Bookings,
    FirstBins,
    sweep_both_sides,
    sweep_neighbours,
)
from mpc_lab.pairing.walk import Walk

# What it costs to visit a pair of rows, in steps of a window; measured.
PAIR_COST = 2.0


@dataclass(frozen=True)
class Layout:
    """Which bins a sweep books in, for up to 64 groups.

    Attributes
    ----------
    word : int
        Which word of the masks.
    edges : float64 array (group, bin)
        The thresholds of each group, ascending.
    center : float64 array (group,)
        Near the mean difference of each group.
    """

    word: int
    edges: Floats
    center: Floats

    @property
    def all_edges(self) -> Floats:
        """All thresholds of all groups, ascending."""
        return np.unique(self.edges)

    @property
    def local(self) -> Bins:
        """The bin of each group for a gap just up to each of all edges; -1: beyond the last."""
        every = self.all_edges
        bins = np.empty((len(every), len(self.edges)), dtype=np.int32)
        for g, own in enumerate(self.edges):
            bins[:, g] = np.searchsorted(own, every, side="left")
        bins[bins == self.edges.shape[1]] = -1
        return bins


def gather(walk: Walk, layout: Layout, n_items: int, *, adjacent: bool) -> Moments:
    """Sweep a log once.

    Parameters
    ----------
    walk : Walk
    layout : Layout
    n_items : int
        To count the items with a pair; 0 where they are not known or counted otherwise.
    adjacent : bool
        Whether to pair neighbours.

    Returns
    -------
    Moments
        Of the modes ``matched`` and ``mirrored``, or of ``adjacent`` alone.
    """
    n_groups, n_bins = layout.edges.shape
    n_modes = 1 if adjacent else 2
    tables = _FirstBins(n_items, n_modes * n_groups, n_bins)
    swept = partial(_sweep, layout, layout.all_edges, layout.local, adjacent, tables)
    sums = walk.total(swept, "sweeping", np.zeros((n_modes * n_groups, n_bins, N_SUMS)))
    shape = (n_modes, n_groups, n_bins)
    return _cumulated(layout, sums.reshape(*shape, N_SUMS), tables.items().reshape(shape))


def gather_cross(walk: Walk, layout: Layout, *, adjacent: bool) -> Quadratic:
    """Sweep a log once for how the sums up to two thresholds move together over units.

    Returns
    -------
    Quadratic
        Σc·c′, Σc·U′ and ΣU·U′, with axes (mode, group, threshold, threshold′).
    """
    n_groups, n_bins = layout.edges.shape
    n_modes = 1 if adjacent else 2
    swept = partial(_sweep_cross, layout, layout.all_edges, layout.local, adjacent)
    start = np.zeros((n_modes * n_groups, n_bins, n_bins, 3))
    cross = walk.total(swept, "sweeping for the band", start)
    cross = np.cumsum(np.cumsum(cross, axis=1), axis=2)
    cross = cross.reshape(n_modes, n_groups, n_bins, n_bins, 3)
    return Quadratic(cross[..., 0], cross[..., 1], cross[..., 2])


def _sweep(
    layout: Layout,
    every: Floats,
    local: Bins,
    adjacent: bool,
    tables: _FirstBins,
    log: Log,
    first: int,
    last: int,
) -> Floats:
    n_groups, n_bins = layout.edges.shape
    n_slots = n_groups if adjacent else 2 * n_groups
    with tables.lent() as table:
        to = Bookings(np.zeros((n_slots, n_bins, N_SUMS)), table, np.zeros((0, n_bins, n_bins, 3)))
        _book(layout, every, local, adjacent, log, first, last, to)
    return to.sums


def _sweep_cross(
    layout: Layout, every: Floats, local: Bins, adjacent: bool, log: Log, first: int, last: int
) -> Floats:
    n_groups, n_bins = layout.edges.shape
    n_slots = n_groups if adjacent else 2 * n_groups
    to = Bookings(
        np.zeros((n_slots, n_bins, N_SUMS)),
        _no_bins((0, 0), n_bins),
        np.zeros((n_slots, n_bins, n_bins, 3)),
    )
    _book(layout, every, local, adjacent, log, first, last, to)
    return to.cross


def _book(
    layout: Layout,
    every: Floats,
    local: Bins,
    adjacent: bool,
    log: Log,
    first: int,
    last: int,
    to: Bookings,
) -> None:
    rows = (log.units, log.starts, log.score, log.outcome, log.masks[layout.word], log.item)
    bins = (every, local, layout.center)
    if adjacent:
        sweep_neighbours(*rows, log.below, *bins, first, last, to)
    else:
        ways = (layout.edges, PAIR_COST, stop_flag())
        sweep_both_sides(*rows, *bins, *ways, first, last, to)


def _cumulated(layout: Layout, sums: Floats, items: Ints) -> Moments:
    sums = np.cumsum(sums, axis=2)
    # Counts below 2**53 are exact as floating-point numbers.
    pairs, queries, clusters = (sums[..., k].astype(np.int64) for k in (PAIRS, QUERIES, CLUSTERS))
    return Moments(
        edges=layout.edges,
        center=layout.center,
        pairs=pairs,
        queries=queries,
        clusters=clusters,
        items=items,
        by={
            "naive": Quadratic(sums[..., PAIRS], sums[..., SUM], sums[..., SQUARES]),
            "query": Quadratic(sums[..., CC], sums[..., CU], sums[..., UU]),
        },
    )


def _no_bins(shape: tuple[int, int], n_bins: int) -> FirstBins:
    """Return a table of items without a pair; the narrower type stays in the cache."""
    if n_bins < 256:
        return np.full(shape, n_bins, dtype=np.uint8)
    return np.full(shape, n_bins, dtype=np.uint16)


class _FirstBins:
    """The first bin of each item, in one table for each block that is swept at the same time.

    Lowering an entry is not safe from two threads at once.
    """

    def __init__(self, n_items: int, n_slots: int, n_bins: int) -> None:
        self.shape = (n_items, n_slots)
        self.n_bins = n_bins
        self.free: list[FirstBins] = []

    @contextmanager
    def lent(self) -> Iterator[FirstBins]:
        """Lend a table to one block."""
        try:
            table = self.free.pop()
        except IndexError:
            table = _no_bins(self.shape, self.n_bins)
        yield table
        self.free.append(table)

    def items(self) -> Ints:
        """Return how many items of each slot have a pair up to each bin."""
        n_items, n_slots = self.shape
        found = np.zeros((n_slots, self.n_bins + 1), dtype=np.int64)
        if self.free and n_items:
            first = np.minimum.reduce(self.free)
            for slot in range(n_slots):
                found[slot] = np.bincount(first[:, slot], minlength=self.n_bins + 1)
        return np.cumsum(found[:, :-1], axis=1)
