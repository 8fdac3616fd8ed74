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
    BETWEEN_SQUARES,
    N_BETWEEN,
    PRODUCTS,
    ItemSums,
    join_thresholds,
    sums_of_modes,
)
from mpc_lab.pairing.entries import (
    CC,
    N_SUMS,
    UNIT_CC,
    UNIT_UU,
    UU,
)
from mpc_lab.pairing.item_kernel import (
    GROUPS,
    HALF,
    NAMES,
    OUTCOME,
    SCORE,
    sweep_items_of_job,
)
from mpc_lab.pairing.kernels import ONE, groups_within, kernel, lowest, stable_order
from mpc_lab.pairing.leverage import Whole, whole_of
from mpc_lab.pairing.log import Log, block_bounds
from mpc_lab.pairing.measure import can_visit_items, words_of
from mpc_lab.pairing.modes import DOWN, TIE, UP, Layout, rows_of
from mpc_lab.pairing.moments import Moments, SideTable
from mpc_lab.pairing.moved import MovedLog, first_partners
from mpc_lab.pairing.sided import scales_of
from mpc_lab.pairing.weighting import BY_PAIRS, Weighting, Weights
from mpc_lab.pairing.windows import most_close
from mpc_lab.vocabulary import Bins, Flags, Floats, Ints, Masks

# Rows whose items are walked by one job: each job holds an entry for every item.
_ROWS_IN_A_JOB = 1 << 17
# Numbers of pairs, by query, slot and threshold, that are held at a time.
_MOST_FACTORS = 1 << 25
Spread = Callable[[Callable[[tuple[int, int]], Any], Sequence[tuple[int, int]], str], Any]


class ItemOrder(NamedTuple):
    """The rows of a log in the order of their items.

    Attributes
    ----------
    rows : int64 array
        Rows that may have a partner sorted by item; those of one item in the order of the log.
    starts : int64 array, one longer than the number of items
        Where each item starts in `rows`.
    unit : int64 array (query,)
    below, above : int64 arrays (row of the log,)
        The rows just below and above this one in the ranked list, or -1; empty where not wanted.
    """

    rows: Ints
    starts: Ints
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


class _Factors(NamedTuple):
    """What a pair counts: see `sweep_items_of_job`."""

    factor: Floats | None
    pairs: Bins | None
    changing: Masks
    weight: Floats
    share: Floats


def can_sweep_items(log: Log, moments: Moments) -> bool:
    """Whether every pair of each item can be visited."""
    if isinstance(log, MovedLog):
        return can_visit_items(log, moments)
    if not len(log.row):
        return False
    if _counts_pairs(log, moments) and _n_factors(log, moments) > _MOST_FACTORS:
        return False
    size = np.diff(log.starts).astype(np.float64)
    if (size**2 / 4).max(initial=0.0) <= long_lists.LEAST_PAIRS:
        return True
    reach = float(moments.edges.max(initial=0.0))
    return most_close(log.starts, log.score, reach) <= long_lists.LEAST_PAIRS


def _counts_pairs(log: Log, moments: Moments) -> bool:
    """Whether what a pair counts depends on how many its query has."""
    weights = log.weights if moments.table is not None else None
    return moments.by_query or (weights is not None and weights.estimand != BY_PAIRS)


def _n_factors(log: Log, moments: Moments) -> int:
    """Return how many numbers say what the pairs of all queries count at one threshold."""
    slots = min(len(moments.center), 64) * len(rows_of(moments.modes, apart=True).sides)
    return (len(log.starts) - 1) * slots


def _thresholds_at_once(log: Log, moments: Moments) -> int:
    """Return for how many thresholds items can be walked once."""
    n_bins = int(moments.edges.shape[1])
    if not _counts_pairs(log, moments):
        return n_bins
    # What a pair counts by a table is known at one threshold.
    if moments.table is not None:
        return 1
    return min(n_bins, max(1, _MOST_FACTORS // max(_n_factors(log, moments), 1)))


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
    n_bins = moments.edges.shape[1]
    at_once = _thresholds_at_once(log, moments)
    if n_bins > at_once:
        everyone = np.arange(len(moments.center))[:, None] * 0
        runs = (np.arange(n_bins)[first : first + at_once] for first in range(0, n_bins, at_once))
        each = (sweep_items(log, moments.at(everyone + run), spread) for run in runs)
        return [
            [join_thresholds(of_mode) for of_mode in zip(*of_group, strict=True)]
            for of_group in zip(*each, strict=True)
        ]
    neighbours = any(mode.side.neighbours for mode in moments.modes)
    weighting = Weighting(log.weights is not None, _counts_pairs(log, moments))
    table = moments.table
    layouts = [
        Layout(
            moments.modes,
            word,
            moments.edges[here],
            moments.center[here],
            weighting=weighting,
            apart=table is not None,
        )
        for word, here in words_of(len(moments.center))
    ]
    order = None
    if not isinstance(log, MovedLog):
        # If the sides of a mode reach further than ε, so does its furthest bin.
        reach = max((float(one.pair_bins.edges[-1]) for one in layouts), default=0.0)
        order = _order_items(log, neighbours, _has_close(log, reach))
    found: list[list[ItemSums]] = []
    for (word, here), layout in zip(words_of(len(moments.center)), layouts, strict=True):
        groups = range(here.start, here.stop)
        whole = [whole_of(moments, g, layout.rows) for g in groups]
        moved = None
        if isinstance(log, MovedLog):
            moved = (log.raised, first_partners(log, layout))
            order = _order_items(log, neighbours, np.asarray((moved[1] >= 0).any(axis=1)))
        assert order is not None
        jobs = block_bounds(order.starts, _ROWS_IN_A_JOB)
        rows = (_pack_rows(log, word), _factors(log, layout, spread), log.sign)
        of_sides = None if table is None else (log.tie, table.of_groups(np.array(groups)))
        task = partial(_sweep_job, *rows, order, moved, of_sides, layout, _join(whole))
        total = np.zeros(sum(int(np.prod(shape)) for shape in _shapes(layout)))
        for part in spread(task, jobs, "summing over items"):
            total = total + part
        found += _sums_of_groups(layout, total, whole)
    return found


def _has_close(log: Log, reach: float) -> Flags:
    """Return which rows have another of their query within a distance: the next is the nearest."""
    with np.errstate(over="ignore"):
        close = np.diff(log.score) <= reach
    inner = log.starts[1:-1]
    close[inner[(inner > 0) & (inner < len(log.score))] - 1] = False
    some = np.zeros(len(log.score), dtype=np.bool_)
    some[1:] = close
    some[:-1] |= close
    return some


def _order_items(log: Log, neighbours: bool, some: Flags) -> ItemOrder:
    """Sort some rows of a log by item."""
    below = above = np.empty(0, dtype=np.int64)
    if neighbours:
        below, above = log.below, np.full(len(log.item), -1, dtype=np.int64)
        upper = np.flatnonzero(below >= 0)
        above[below[upper]] = upper
    cluster, n_clusters = log.cluster, int(log.cluster.max(initial=-1)) + 1
    rows = np.flatnonzero(some)
    cluster = cluster[rows]
    rows = rows[stable_order(cluster)]
    ends = np.cumsum(np.bincount(cluster, minlength=n_clusters))
    return ItemOrder(
        rows,
        np.concatenate([[0], ends]).astype(np.int64),
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
    """Put the sums over all pairs of each group into the order of slots."""
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


def _factors(log: Log, layout: Layout, spread: Spread) -> _Factors:
    """Return what a pair of each query counts, by slot where it depends on the query's pairs."""
    weights, nothing = log.weights, np.zeros(0)
    unchanging = np.zeros((0, 0, 0), dtype=np.uint64)
    if weights is None:
        return _Factors(None, None, unchanging, nothing, nothing)
    if not layout.weighting.by_query:
        return _Factors(weights.weight[:, None], None, unchanging, nothing, nothing)
    bins, n_bins = layout.pair_bins, layout.n_bins
    n_queries, n_slots = len(log.starts) - 1, len(layout.sides) * layout.n_groups
    pairs = np.zeros((n_queries, n_slots, n_bins), dtype=np.int32)
    n_words = (n_bins + 63) // 64 if n_bins > 1 else 0
    changing = np.zeros((n_queries, n_slots, n_words), dtype=np.uint64)
    of_log = (log.units, log.starts, log.score, log.masks[layout.word], log.below)
    where = (bins.edges, bins.local, bins.row, bins.band, bins.n)

    def count(block: tuple[int, int]) -> None:
        queries = slice(*log.units[list(block)])
        here = pairs[queries]
        count_pairs_of_queries(*of_log, *where, *block, here)
        if layout.rows.twin:
            # The pairs of both sides, a tie once.
            below, above, tied = layout.rows.twin
            of_row = here.reshape(len(here), -1, layout.n_groups, n_bins)
            both = of_row[:, below] + of_row[:, above] - of_row[:, tied]
            of_row[:, list(layout.rows.twin)] = both[:, None]
        changing[queries] = _words(here > 0, n_words)
        np.cumsum(here, axis=-1, out=here)

    for _ in spread(count, log.blocks, "counting pairs of queries"):
        pass
    if n_bins == 1:
        by_query = Weights(weights.weight[:, None], weights.estimand)
        factor = by_query.of_pairs(pairs[..., 0].astype(np.float64))
        return _Factors(factor, None, unchanging, nothing, nothing)
    most = int(pairs.max(initial=0))
    share = Weights(np.ones(1), weights.estimand).of_pairs(np.arange(most + 1.0))
    return _Factors(None, pairs, changing, weights.weight, share)


def _words(flags: Flags, n_words: int) -> Masks:
    """Return flags as the bits of words, along the last axis."""
    packed = np.zeros((*flags.shape[:-1], 8 * n_words), dtype=np.uint8)
    if n_words:
        some = np.packbits(flags, axis=-1, bitorder="little")
        packed[..., : some.shape[-1]] = some
    return packed.view("<u8").astype(np.uint64)


def _sweep_job(
    packed: Floats,
    factors: _Factors,
    sign: bool,
    order: ItemOrder,
    moved: tuple[Floats, Bins] | None,
    of_sides: tuple[Ints, SideTable] | None,
    layout: Layout,
    whole: Wholes,
    job: tuple[int, int],
) -> Floats:
    sums, alone, between, weighed = found = [np.zeros(shape) for shape in _shapes(layout)]
    n_bins, bins = layout.n_bins, layout.pair_bins
    raised, partner = (None, None) if moved is None else moved
    tie, weight, offset = None, np.zeros((0, 0)), np.zeros((0, 0))
    line, scale = np.zeros((0, 0, 0)), np.zeros(0)
    if of_sides is not None:
        tie, table = of_sides
        weight, offset, line = (np.ascontiguousarray(part) for part in table[:3])
        scale = np.ascontiguousarray(scales_of(layout.edges[:, -1]))
    sweep_items_of_job(
        packed,
        packed.view(np.uint64),
        *order,
        raised,
        partner,
        *factors,
        tie,
        weight,
        offset,
        line,
        scale,
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
    if layout.rows.twin:
        # A tied pair has the same products in all three rows.
        tied = alone[layout.rows.twin[2]][..., [0, 1, 1, 2]]
        between[1, ..., PRODUCTS:BETWEEN_SQUARES] += np.tile(tied, 6)
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


@kernel
def count_pairs_of_queries(
    units: Ints,
    starts: Ints,
    score: Floats,
    mask: Masks,
    below: Ints,
    edges: Floats,
    local: Bins,
    row_of: Ints,
    band: Ints,
    n_taking: Ints,
    first: int,
    last: int,
    pairs: Bins,
) -> None:
    """Count the pairs that each query of some units has in each slot and bin.

    Parameters
    ----------
    units, starts, score, mask, below
        See `Log`.
    edges, local, row_of, band, n_taking
        See `PairBins`.
    pairs : int32 array (query, slot, bin)
        Of the queries of these units. Added to.
    """
    n_groups, within, q_first = local.shape[2], groups_within(local), units[first]
    # Pairs of all rows, then those of neighbours.
    for near in range(2):
        if n_taking[near].sum() == 0:
            continue
        for q in range(units[first], units[last]):
            for one in range(starts[q], starts[q + 1]):
                other, edge = one + 1, 0
                if near:
                    other = below[one]
                while starts[q] <= other < starts[q + 1]:
                    distance = abs(score[other] - score[one])
                    if distance > edges[-1]:
                        break
                    while distance > edges[edge]:
                        edge += 1
                    for side in range(2):
                        some = mask[one] & ~mask[other] if side == 0 else mask[other] & ~mask[one]
                        up = (score[one] < score[other]) == (side == 0)
                        seen = TIE if distance == 0 else (UP if up else DOWN)
                        for k in range(n_taking[near, seen]):
                            bits = some & within[band[near, seen, k], edge]
                            while bits:
                                g = lowest(bits)
                                slot = row_of[near, seen, k] * n_groups + g
                                b = np.int64(local[band[near, seen, k], edge, g])
                                pairs[q - q_first, slot, b] += 1
                                bits &= bits - ONE
                    if near:
                        break
                    other += 1
