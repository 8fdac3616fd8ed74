"""One pass over a log adds up the sums of all groups, modes and thresholds; no pair is listed.

The pairs of an ordinary list are visited one by one, those of a long list by windows, whichever
is cheaper; the sums are the same. Distances are sorted into bins. What a unit adds to a sum of
squares up to a threshold changes only at bins in which the unit has a pair, so the change is booked
there and bins are cumulated at the end. A *slot* is one group under one side of a mode: slots are
the groups under the first row of the sums, then the groups under the second, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.pairing.kernels import ONE, Stop, contrast, inlined, kernel, lowest, stop_flag
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.modes import (
    ALL_PAIRS,
    DOWN,
    NEIGHBOURS,
    TIE,
    UP,
    Bins,
    Layout,
    PairBins,
    WindowBins,
)
from mpc_lab.pairing.moments import Moments, Quadratic
from mpc_lab.pairing.walk import Walk
from mpc_lab.pairing.windows import (
    N_PREFIX,
    add_windows,
    count_close,
    most_close,
    nearest_distances,
)
from mpc_lab.vocabulary import Flags, Floats, Ints, Masks

PAIRS, QUERIES, CLUSTERS, SUM, SQUARES, CC, CU, UU = range(8)
N_SUMS = 8
# What it costs to visit a pair of rows, in steps of a window; measured.
PAIR_COST = 2.0
# Lists shorter than this are not worth a thought.
_SHORT = 256
# Pairs of one query that are visited where windows cannot sum over them.
MOST_VISITED = 20_000_000
# Rows × groups of a list of which sums over its first rows are held at a time.
_SUMS_AT_ONCE = 1 << 23
# What to book a pair for one group costs, in steps of a window.
_BOOKING = 4.0

Index = int | np.int64
FirstBins = NDArray[np.uint8] | NDArray[np.uint16]


class Bookings(NamedTuple):
    """What a sweep adds to.

    Attributes
    ----------
    sums : float64 array (slot, bin, 8)
        What each bin adds: pairs, queries and units; the changes of Σx and Σx², x the centred
        difference; and over units the changes of Σc², ΣcU and ΣU². One cache line a bin.
    first_bin : unsigned array (item, slot)
        The first bin in which an item has a pair; no rows where it is not wanted.
    cross : float64 array (slot, bin, bin, 3)
        What two bins add together over units: Σc·c′, Σc·U′, ΣU·U′; no rows where not wanted.
    """

    sums: Floats
    first_bin: FirstBins
    cross: Floats


class _Scratch(NamedTuple):
    """The pairs and centred sums of the unit being walked, by slot and bin."""

    unit: Floats
    touched: Masks
    bins: Ints
    query_bin: Ints


@inlined
def _scratch(n_slots: int, n_bins: int) -> _Scratch:
    return _Scratch(
        np.zeros((n_slots, n_bins, 2)),
        np.zeros((n_slots, (n_bins + 63) // 64), dtype=np.uint64),
        np.empty(n_bins, dtype=np.int64),
        np.full(n_slots, n_bins, dtype=np.int64),
    )


@inlined
def _book(to: Bookings, scratch: _Scratch, slot: Index, b: Index, x: float) -> None:
    """Add one pair to its unit and query."""
    to.sums[slot, b, SQUARES] += x * x
    scratch.unit[slot, b, 0] += 1.0
    scratch.unit[slot, b, 1] += x
    _touch(scratch, slot, b)


@inlined
def _touch(scratch: _Scratch, slot: Index, b: Index) -> None:
    """Note that the unit and the query being walked have a pair in this bin."""
    scratch.touched[slot, b >> 6] |= ONE << np.uint64(b & 63)
    scratch.query_bin[slot] = min(scratch.query_bin[slot], b)


@inlined
def _see(first_bin: FirstBins, one: Index, other: Index, slot: Index, b: Index) -> None:
    if b < first_bin[one, slot]:
        first_bin[one, slot] = b
    if b < first_bin[other, slot]:
        first_bin[other, slot] = b


@inlined
def _close_query(to: Bookings, scratch: _Scratch) -> None:
    n_bins = scratch.unit.shape[1]
    for slot in range(len(scratch.query_bin)):
        b = scratch.query_bin[slot]
        if b < n_bins:
            to.sums[slot, b, QUERIES] += 1.0
            scratch.query_bin[slot] = n_bins


@inlined
def _cross(cross: Floats, scratch: _Scratch, slot: Index) -> None:
    """Book what each two bins of this unit add together."""
    n = 0
    for word in range(scratch.touched.shape[1]):
        bits = scratch.touched[slot, word]
        while bits:
            scratch.bins[n] = 64 * word + lowest(bits)
            bits &= bits - ONE
            n += 1
    for one in scratch.bins[:n]:
        c, u = scratch.unit[slot, one, 0], scratch.unit[slot, one, 1]
        for other in scratch.bins[:n]:
            cross[one, other, 0] += c * scratch.unit[slot, other, 0]
            cross[one, other, 1] += c * scratch.unit[slot, other, 1]
            cross[one, other, 2] += u * scratch.unit[slot, other, 1]


@inlined
def _close_unit(to: Bookings, scratch: _Scratch) -> None:
    """Book what this unit changes at each bin in which it has a pair, and wipe the scratch."""
    for slot in range(scratch.touched.shape[0]):
        pairs, total, fresh = 0.0, 0.0, 1.0
        if len(to.cross):
            _cross(to.cross[slot], scratch, slot)
        for word in range(scratch.touched.shape[1]):
            bits = scratch.touched[slot, word]
            if not bits:
                continue
            scratch.touched[slot, word] = np.uint64(0)
            while bits:
                b = 64 * word + lowest(bits)
                bits &= bits - ONE
                c, u = scratch.unit[slot, b, 0], scratch.unit[slot, b, 1]
                scratch.unit[slot, b, 0] = 0.0
                scratch.unit[slot, b, 1] = 0.0
                line = to.sums[slot, b]
                line[CLUSTERS] += fresh
                line[PAIRS] += c
                line[SUM] += u
                line[CC] += c * (2 * pairs + c)
                line[CU] += pairs * u + c * total + c * u
                line[UU] += u * (2 * total + u)
                pairs, total, fresh = pairs + c, total + u, 0.0


@inlined
def _book_where_taken(
    to: Bookings,
    scratch: _Scratch,
    row: Ints,
    band: Ints,
    n: Ints,
    local: Bins,
    n_groups: int,
    seen: int,
    edge: Index,
    g: Index,
    x: float,
    item: Ints,
    one: Index,
    other: Index,
) -> None:
    """Add the pair of two rows of the log to every row of the sums that takes it."""
    for k in range(n[seen]):
        b = local[band[seen, k], edge, g]
        if b >= 0:
            slot = row[seen, k] * n_groups + g
            _book(to, scratch, slot, b, x)
            if len(to.first_bin):
                _see(to.first_bin, item[one], item[other], slot, b)


@kernel
def find_long(
    starts: Ints,
    score: Floats,
    mask: Masks,
    epsilon: float,
    steps: int,
    pair_cost: float,
    first: int,
    last: int,
    long: Flags,
) -> bool:
    """Flag the queries from `first` to before `last` for which windows are cheaper than pairs.

    Parameters
    ----------
    epsilon : float
        The largest distance of a pair.
    steps : int
        Steps of windows that a row costs.
    pair_cost : float
        What a pair costs, by itself and for each group it has to be booked for; infinite: windows
        for all lists.
    """
    some = False
    for q in range(first, last):
        start, end = starts[q], starts[q + 1]
        n = end - start
        if n < 2 or (n < _SHORT and pair_cost < np.inf):
            continue
        members = 0.0
        for row in range(start, end):
            bits = mask[row]
            while bits:
                bits &= bits - ONE
                members += 1.0
        cost = pair_cost * (1.0 + _BOOKING * members / n)
        if 0.5 * n * cost * n > steps * n:
            long[q - first] = count_close(score, start, end, epsilon) * cost > steps * n
            some |= long[q - first]
    return some


class LongQueries(NamedTuple):
    """The queries of a block that windows sum over, flagged from its first."""

    flags: Flags
    bins: WindowBins
    stop: Stop


@kernel
def _sweep_windows(
    start: int,
    end: int,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    item: Ints,
    edges: Floats,
    bins: WindowBins,
    center: Floats,
    to: Bookings,
    scratch: _Scratch,
    stop: Stop,
) -> None:
    """Add the pairs of one query, some groups at a time, for the sides that keep all pairs."""
    n_groups, n_sides, n_bins = bins.first.shape
    some, all_ = mask[start], mask[start]
    for row in range(start, end):
        some |= mask[row]
        all_ &= mask[row]
    present = np.array([g for g in range(n_groups) if some & ~all_ & (ONE << np.uint64(g))])
    at_once = max(1, min(len(present), _SUMS_AT_ONCE // (end - start)))
    prefix = np.empty((at_once, end - start + 1, N_PREFIX))
    found = np.empty((at_once, n_sides, n_bins, 3))
    distances = np.empty((3, end - start if len(to.first_bin) else 0))
    for from_ in range(0, len(present), at_once):
        groups = present[from_ : from_ + at_once]
        bits = ONE << groups.astype(np.uint64)
        rows = (start, end, score, outcome, mask, bits)
        runs = (bins.first[groups], bins.last[groups])
        add_windows(*rows, edges, *runs, center[groups], prefix, found, stop)
        if stop[0]:
            return
        for k, g in enumerate(groups):
            for side in range(n_sides):
                _book_run(to, scratch, bins.rows[side] * n_groups + g, found[k, side])
            if not len(to.first_bin):
                continue
            nearest_distances(start, end, score, mask, bits[k], distances)
            for side in range(n_sides):
                slot = bins.rows[side] * n_groups + g
                for row in range(start, end):
                    inside = (mask[row] & bits[k]) != 0
                    for direction in range(3):
                        # What is above a member is seen up, what is above another one down.
                        look = direction if inside or direction == TIE else 1 - direction
                        distance = distances[look, row - start]
                        if distance < 0:
                            continue
                        b = np.searchsorted(bins.edges[side, direction, g], distance)
                        if b < n_bins and b < to.first_bin[item[row], slot]:
                            to.first_bin[item[row], slot] = b


@inlined
def _book_run(to: Bookings, scratch: _Scratch, slot: Index, found: Floats) -> None:
    """Add what lies between two thresholds, given what lies up to each, to its unit and query."""
    pairs, total, squares = 0.0, 0.0, 0.0
    for b in range(len(found)):
        c = found[b, 0] - pairs
        if c > 0:
            to.sums[slot, b, SQUARES] += found[b, 2] - squares
            scratch.unit[slot, b, 0] += c
            scratch.unit[slot, b, 1] += found[b, 1] - total
            _touch(scratch, slot, b)
            pairs, total, squares = found[b, 0], found[b, 1], found[b, 2]


@kernel
def sweep(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    item: Ints,
    below: Ints,
    bins: PairBins,
    sign: bool,
    long: LongQueries | None,
    first: int,
    last: int,
    to: Bookings,
) -> None:
    """Add the pairs of the units from `first` to before `last`, under all modes.

    Parameters
    ----------
    bins : PairBins
    sign : bool
        Whether a pair counts by the sign of its difference.
    long : LongQueries or None
        Without any, nothing of windows is compiled.
    to : Bookings
        Added to.
    """
    scratch = _scratch(to.sums.shape[0], to.sums.shape[1])
    # Taken out of their tuple here: inside the loops that would cost more than the sums.
    edges, center, local, n_groups = bins.edges, bins.center, bins.local, len(bins.center)
    row, band, n = bins.row[ALL_PAIRS], bins.band[ALL_PAIRS], bins.n[ALL_PAIRS]
    near_row, near_band, near_n = bins.row[NEIGHBOURS], bins.band[NEIGHBOURS], bins.n[NEIGHBOURS]
    near = near_n.sum() > 0
    for unit in range(first, last):
        for q in range(units[unit], units[unit + 1]):
            visited = True
            # What stands under this is compiled only where it can hold.
            if long is not None:
                visited = not long.flags[q - units[first]]
                if not visited:
                    rows = (starts[q], starts[q + 1], score, outcome, mask, item)
                    how = (edges, long.bins, center)
                    _sweep_windows(*rows, *how, to, scratch, long.stop)
            for lower in range(starts[q], starts[q + 1] if visited else starts[q]):
                edge = 0
                for upper in range(lower + 1, starts[q + 1]):
                    distance = score[upper] - score[lower]
                    if distance > edges[-1]:
                        break
                    while distance > edges[edge]:
                        edge += 1
                    d = contrast(outcome[lower] - outcome[upper], sign)
                    differ = mask[lower] ^ mask[upper]
                    while differ:
                        g = lowest(differ)
                        in_lower = mask[lower] & (ONE << np.uint64(g))
                        differ &= differ - ONE
                        x = (d if in_lower else -d) - center[g]
                        seen = TIE if distance == 0 else (UP if in_lower else DOWN)
                        _book_where_taken(
                            to,
                            scratch,
                            row,
                            band,
                            n,
                            local,
                            n_groups,
                            seen,
                            edge,
                            g,
                            x,
                            item,
                            lower,
                            upper,
                        )
            for one in range(starts[q], starts[q + 1] if near else starts[q]):
                other = below[one]
                if other < 0:
                    continue
                distance = abs(score[one] - score[other])
                if distance > edges[-1]:
                    continue
                edge = np.searchsorted(edges, distance)
                d = contrast(outcome[one] - outcome[other], sign)
                differ = mask[one] ^ mask[other]
                while differ:
                    g = lowest(differ)
                    in_one = (mask[one] & (ONE << np.uint64(g))) != 0
                    differ &= differ - ONE
                    x = (d if in_one else -d) - center[g]
                    seen = UP if in_one == (score[one] < score[other]) else DOWN
                    seen = TIE if distance == 0 else seen
                    _book_where_taken(
                        to,
                        scratch,
                        near_row,
                        near_band,
                        near_n,
                        local,
                        n_groups,
                        seen,
                        edge,
                        g,
                        x,
                        item,
                        one,
                        other,
                    )
            _close_query(to, scratch)
        _close_unit(to, scratch)


def gather(walk: Walk, layout: Layout, n_items: int) -> Moments:
    """Sweep a log once, for all modes of the layout.

    Parameters
    ----------
    walk : Walk
    layout : Layout
    n_items : int
        To count the items with a pair; 0 where they are not known or counted otherwise.
    """
    shape = (len(layout.sides), layout.n_groups, layout.n_bins)
    tables = _FirstBins(n_items, shape[0] * shape[1], layout.n_bins)
    start = np.zeros((shape[0] * shape[1], layout.n_bins, N_SUMS))
    sums = walk.total(partial(_sweep, layout, tables), "sweeping", start)
    return _cumulated(layout, sums.reshape(*shape, N_SUMS), tables.items().reshape(shape))


def gather_cross(walk: Walk, layout: Layout) -> Quadratic:
    """Sweep a log once for how the sums up to two thresholds move together over units.

    Returns
    -------
    Quadratic
        Σc·c′, Σc·U′ and ΣU·U′, with axes (mode, group, threshold, threshold′).
    """
    shape = (len(layout.sides), layout.n_groups, layout.n_bins, layout.n_bins, 3)
    start = np.zeros((shape[0] * shape[1], *shape[2:]))
    cross = walk.total(partial(_sweep_cross, layout), "sweeping for the band", start)
    cross = np.cumsum(np.cumsum(cross, axis=1), axis=2).reshape(shape)
    return Quadratic(cross[..., 0], cross[..., 1], cross[..., 2])


def _sweep(layout: Layout, tables: _FirstBins, log: Log, first: int, last: int) -> Floats:
    n_slots, n_bins = len(layout.sides) * layout.n_groups, layout.n_bins
    with tables.lent() as table:
        to = Bookings(np.zeros((n_slots, n_bins, N_SUMS)), table, np.zeros((0, n_bins, n_bins, 3)))
        _book_block(layout, log, first, last, to)
    return to.sums


def _sweep_cross(layout: Layout, log: Log, first: int, last: int) -> Floats:
    n_slots, n_bins = len(layout.sides) * layout.n_groups, layout.n_bins
    to = Bookings(
        np.zeros((n_slots, n_bins, N_SUMS)),
        _no_bins((0, 0), n_bins),
        np.zeros((n_slots, n_bins, n_bins, 3)),
    )
    _book_block(layout, log, first, last, to)
    return to.cross


def _book_block(layout: Layout, log: Log, first: int, last: int, to: Bookings) -> None:
    rows = (log.units, log.starts, log.score, log.outcome, log.masks[layout.word], log.item)
    long = _long_queries(layout, log, first, last)
    sweep(*rows, log.below, layout.pair_bins, log.sign, long, first, last, to)


def _long_queries(layout: Layout, log: Log, first: int, last: int) -> LongQueries | None:
    """Return the queries of a block that windows sum over; None where there is none."""
    from_, to = int(log.units[first]), int(log.units[last])
    if log.sign:
        _check_visitable(log.starts[from_ : to + 1], log.score, layout.pair_bins.edges)
        return None
    if np.inf > PAIR_COST and np.diff(log.starts[from_ : to + 1]).max(initial=0) < _SHORT:
        return None
    bins = layout.window_bins
    flags = np.zeros(to - from_, dtype=np.bool_)
    rows = (log.starts, log.score, log.masks[layout.word])
    how = (float(layout.pair_bins.edges[-1]), bins.first.size, PAIR_COST)
    some = find_long(*rows, *how, from_, to, flags)
    return LongQueries(flags, bins, stop_flag()) if some else None


def _check_visitable(starts: Ints, score: Floats, edges: Floats) -> None:
    """Refuse lists with more close pairs than can be visited: windows know no signs."""
    size = np.diff(starts).astype(np.float64)
    if (size**2 / 2).max(initial=0.0) <= MOST_VISITED:
        return
    most = most_close(starts, score, float(edges[-1]))
    if most > MOST_VISITED:
        raise MpcError(
            f'contrast="sign" must look at every pair, at most {MOST_VISITED:,} of a query; got '
            f"{most:,} within a distance of {edges[-1]:.4g}. Give a smaller threshold and a grid "
            "epsilon= that ends near it."
        )


def _cumulated(layout: Layout, sums: Floats, items: Ints) -> Moments:
    sums = np.cumsum(sums, axis=2)
    # Counts below 2**53 are exact as floating-point numbers.
    pairs, queries, clusters = (sums[..., k].astype(np.int64) for k in (PAIRS, QUERIES, CLUSTERS))
    return Moments(
        modes=layout.modes,
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
