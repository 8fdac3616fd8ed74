"""Sums over items and dyads of a log in memory, from one walk through its items, for all groups.

Rows are visited item by item. The partners of a row are the rows near it in its query, so that an
item's pairs come one after the other, wherever its rows are, and its sums are closed after its last
row: no pair is listed, and nothing is sorted but the rows. Most dyads are a single pair, and every
pair is booked as one when it is met; only a dyad that is met again is summed, from the lesser of
its two items, and the pairs that were taken for dyads are taken back. Where clusters are producers,
they take the place of items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mpc_lab.pairing import long_lists
from mpc_lab.pairing.clusters import (
    N_BETWEEN,
    ItemSums,
    sums_of_modes,
)
from mpc_lab.pairing.entries import (
    CC,
    N_SUMS,
    UNIT_CC,
    UNIT_UU,
    UU,
)
from mpc_lab.pairing.item_kernel import GROUPS, HALF, NAMES, OUTCOME, SCORE, sweep_items_of_job
from mpc_lab.pairing.kernels import stable_order
from mpc_lab.pairing.leverage import Whole, whole_of
from mpc_lab.pairing.log import Log, block_bounds
from mpc_lab.pairing.measure import words_of
from mpc_lab.pairing.modes import Layout
from mpc_lab.pairing.moments import Moments
from mpc_lab.pairing.windows import most_close
from mpc_lab.vocabulary import Floats, Ints

# Rows whose items are walked by one job: each job holds an entry for every item.
_ROWS_IN_A_JOB = 1 << 17
Spread = Callable[[Callable[[tuple[int, int]], Floats], Sequence[tuple[int, int]], str], Any]


class ItemOrder(NamedTuple):
    """The rows of a log in the order of their items.

    Attributes
    ----------
    rows : int64 array
        Rows sorted by item; those of one item in the order of the log.
    starts : int64 array, one longer than the number of items
        Where each item starts in `rows`.
    queries : int64 array, one longer than the number of queries
        Where each query starts in the log.
    unit : int64 array (query,)
    below, above : int64 arrays (row of the log,)
        The rows just below and above this one in the ranked list, or -1; empty where not wanted.
    """

    rows: Ints
    starts: Ints
    queries: Ints
    unit: Ints
    below: Ints
    above: Ints


class Wholes(NamedTuple):
    """What single items are compared with: see `Whole`.

    Attributes
    ----------
    weight, mean : float64 arrays (slot, bin)
    pairs : float64 array (group, bin)
        No rows where nothing is known of a mode of two sides.
    side_weight, side_mean : float64 arrays (side, group, bin)
    """

    weight: Floats
    mean: Floats
    pairs: Floats
    side_weight: Floats
    side_mean: Floats


def can_sweep_items(log: Log, moments: Moments) -> bool:
    """Whether every pair can be visited and counts 1; pairs by a table are listed instead."""
    if moments.table is not None or log.weights is not None or not len(log.row):
        return False
    size = np.diff(log.starts).astype(np.float64)
    if (size**2 / 4).max(initial=0.0) <= long_lists.LEAST_PAIRS:
        return True
    reach = float(moments.edges.max(initial=0.0))
    return most_close(log.starts, log.score, reach) <= long_lists.LEAST_PAIRS


def sweep_items(log: Log, moments: Moments, spread: Spread) -> list[list[ItemSums]]:
    """Return the sums over items of each group and mode.

    Parameters
    ----------
    log : Log
        With the groups of the moments.
    moments : Moments
    spread : callable
        Yields what a task returns for each of some jobs, in their order.
    """
    order = _order_items(log, any(mode.side.neighbours for mode in moments.modes))
    jobs = block_bounds(order.starts, _ROWS_IN_A_JOB)
    found: list[list[ItemSums]] = []
    for word, here in words_of(len(moments.center)):
        layout = Layout(moments.modes, word, moments.edges[here], moments.center[here])
        groups = range(here.start, here.stop)
        whole = [whole_of(moments, g, layout.rows) for g in groups]
        task = partial(_sweep_job, _pack_rows(log, word), log.sign, order, layout, _join(whole))
        total = np.zeros(sum(int(np.prod(shape)) for shape in _shapes(layout)))
        for part in spread(task, jobs, "summing over items"):
            total = total + part
        found += _sums_of_groups(layout, total, whole)
    return found


def _order_items(log: Log, neighbours: bool) -> ItemOrder:
    """Sort the rows of a log by item."""
    below = above = np.empty(0, dtype=np.int64)
    if neighbours:
        below, above = log.below, np.full(len(log.item), -1, dtype=np.int64)
        upper = np.flatnonzero(below >= 0)
        above[below[upper]] = upper
    return ItemOrder(
        stable_order(log.cluster),
        np.concatenate([[0], np.cumsum(np.bincount(log.cluster))]).astype(np.int64),
        log.starts,
        np.repeat(np.arange(len(log.units) - 1), np.diff(log.units)),
        below,
        above,
    )


def _pack_rows(log: Log, word: int) -> Floats:
    """Return what is read of each row, with the groups of one word; see `SCORE`."""
    packed = np.empty((len(log.row), 4))
    bits = packed.view(np.uint64)
    packed[:, SCORE], packed[:, OUTCOME], bits[:, GROUPS] = (
        log.score,
        log.outcome,
        log.masks[word],
    )
    query = np.repeat(np.arange(len(log.starts) - 1, dtype=np.uint64), np.diff(log.starts))
    bits[:, NAMES] = (query << HALF) | log.cluster.astype(np.uint64)
    return packed


def _join(wholes: Sequence[Whole]) -> Wholes:
    """Put what all pairs of each group come to into the order of slots."""
    weight, mean = (
        np.stack([getattr(whole, name) for whole in wholes], axis=1) for name in ("weight", "mean")
    )
    n_bins = weight.shape[-1]
    flat = (weight.reshape(-1, n_bins), mean.reshape(-1, n_bins))
    if not len(wholes[0].pairs):
        return Wholes(*flat, np.zeros((0, n_bins)), *np.zeros((2, 2, 0, n_bins)))
    sides = (np.stack([whole[k] for whole in wholes], axis=1) for k in (3, 4))
    return Wholes(*flat, np.stack([whole.pairs for whole in wholes]), *sides)


def _shapes(layout: Layout) -> list[tuple[int, ...]]:
    """Return the shapes of what is booked.

    Of items or dyads by row of sums; of dyads as if each were a pair; of items or dyads in two rows
    of a mode of two sides; of what single items change.
    """
    n_rows, n_groups, n_bins = len(layout.sides), layout.n_groups, layout.n_bins
    twins = n_groups if layout.rows.twin else 0
    return [
        (2, n_rows, n_groups, n_bins, N_SUMS),
        (n_rows, n_groups, n_bins, 3),
        (2, twins, n_bins, N_BETWEEN),
        (n_rows + 1, n_groups, n_bins),
    ]


def _sweep_job(
    packed: Floats,
    sign: bool,
    order: ItemOrder,
    layout: Layout,
    whole: Wholes,
    job: tuple[int, int],
) -> Floats:
    sums, alone, between, weighed = found = [np.zeros(shape) for shape in _shapes(layout)]
    n_bins, bins = layout.n_bins, layout.pair_bins
    sweep_items_of_job(
        packed,
        packed.view(np.uint64),
        *order,
        sign,
        bins.edges,
        bins.local,
        bins.row,
        bins.band,
        bins.n,
        bins.center,
        bins.twin if len(bins.twin) else None,
        *whole,
        *job,
        sums.reshape(2, -1, n_bins, N_SUMS),
        alone.reshape(-1, n_bins, 3),
        between,
        weighed.reshape(-1, n_bins),
    )
    return np.concatenate([part.ravel() for part in found])


def _sums_of_groups(layout: Layout, total: Floats, wholes: Sequence[Whole]) -> list[list[ItemSums]]:
    """Return the sums of each group and mode, from what was booked."""
    shapes = _shapes(layout)
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    parts = zip(np.split(total, ends), shapes, strict=True)
    sums, alone, between, weighed = (part.reshape(shape) for part, shape in parts)
    sums[1, ..., CC : UU + 1] += alone
    sums[1, ..., UNIT_CC : UNIT_UU + 1] += alone
    rows, nothing = layout.rows, np.zeros((2, layout.n_bins, N_BETWEEN))
    return [
        sums_of_modes(
            rows,
            np.moveaxis(sums[:, :, g], 0, 1),
            between[:, g] if rows.twin else nothing,
            whole,
            weighed[:, g],
        )
        for g, whole in enumerate(wholes)
    ]
