"""From the blocks of a log to moments: lay out bins, sweep, add, cumulate."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mpc_lab.pairing.arrays import Floats, Ints
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.moments import Moments, Quadratic
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
    sums = np.zeros((n_modes * n_groups, n_bins, N_SUMS))
    for part in _swept(walk, layout, adjacent, tables, cross=False):
        sums += part.sums
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
    cross = np.zeros((n_modes * n_groups, n_bins, n_bins, 3))
    for part in _swept(walk, layout, adjacent, _FirstBins(0, 0, n_bins), cross=True):
        cross += part.cross
    cross = np.cumsum(np.cumsum(cross, axis=1), axis=2)
    cross = cross.reshape(n_modes, n_groups, n_bins, n_bins, 3)
    return Quadratic(cross[..., 0], cross[..., 1], cross[..., 2])


def _swept(
    walk: Walk, layout: Layout, adjacent: bool, tables: _FirstBins, *, cross: bool
) -> Iterator[Bookings]:
    n_groups, n_bins = layout.edges.shape
    n_slots = n_groups if adjacent else 2 * n_groups
    every, local = layout.all_edges, layout.local

    def task(log: Log, first: int, last: int) -> Bookings:
        to = Bookings(
            np.zeros((n_slots, n_bins, N_SUMS)),
            tables.mine(),
            np.zeros((n_slots if cross else 0, n_bins, n_bins, 3)),
        )
        rows = (log.units, log.starts, log.score, log.outcome, log.masks[layout.word], log.item)
        bins = (every, local, layout.center, first, last, to)
        if adjacent:
            sweep_neighbours(*rows, log.below, *bins)
        else:
            sweep_both_sides(*rows, *bins)
        return to

    return walk(task, "sweeping")


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


class _FirstBins:
    """One table a thread, because lowering an entry is not safe from two threads at once."""

    def __init__(self, n_items: int, n_slots: int, n_bins: int) -> None:
        # The narrower table stays in the cache; few grids need the wider.
        self.dtype = np.uint8 if n_bins < 256 else np.uint16
        self.shape = (n_items, n_slots)
        self.n_bins = n_bins
        self.local = threading.local()
        self.tables: list[FirstBins] = []

    def mine(self) -> FirstBins:
        """Return the table of this thread."""
        if not hasattr(self.local, "table"):
            self.local.table = np.full(self.shape, self.n_bins, dtype=self.dtype)
            self.tables.append(self.local.table)
        return self.local.table  # type: ignore[no-any-return]

    def items(self) -> Ints:
        """Return how many items of each slot have a pair up to each bin."""
        n_items, n_slots = self.shape
        found = np.zeros((n_slots, self.n_bins + 1), dtype=np.int64)
        if self.tables and n_items:
            first = np.minimum.reduce(self.tables)
            for slot in range(n_slots):
                found[slot] = np.bincount(first[:, slot], minlength=self.n_bins + 1)
        return np.cumsum(found[:, :-1], axis=1)
