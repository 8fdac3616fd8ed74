"""One pass over a log adds up the sums of all groups, modes and thresholds; no pair is listed.

The pairs of an ordinary list are visited one by one, those of a long list by windows, whichever
is cheaper; the sums are the same. Distances are sorted into bins. What a unit adds to a sum of
squares up to a threshold changes only at bins in which the unit has a pair, so the change is booked
there and bins are cumulated at the end. A *slot* is one group under one side of a mode: slots are
the groups under the first row of the sums, then the groups under the second, and so on.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.pairing.bookings import (
    CC,
    CLUSTERS,
    CU,
    N_SUMS,
    N_TWIN,
    PAIRS,
    QUERIES,
    SQUARES,
    SUM,
    TWIN_PRODUCTS,
    TWIN_QUERIES,
    TWIN_UNITS,
    UU,
    Bookings,
    FirstBinTables,
    Index,
    Scratch,
    Weighing,
    book_pair,
    book_run,
    close_query,
    close_twin,
    close_twin_query,
    close_unit,
    count_first,
    cross_twin,
    make_scratch,
    no_weighing,
    see_items,
    weigh_twin,
    weigh_unit,
)
from mpc_lab.pairing.kernels import ONE, Stop, contrast, inlined, kernel, lowest, stop_flag
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.modes import (
    ALL_PAIRS,
    DOWN,
    NEIGHBOURS,
    TIE,
    UP,
    Layout,
    PairBins,
    WindowBins,
)
from mpc_lab.pairing.moments import Moments, PairWeights, Quadratic, Sides, fold_rows
from mpc_lab.pairing.moved import MovedLog, book_moved
from mpc_lab.pairing.places import N_CELLS, N_PARTS, cell_of, combine_cells, find_left_out, too_many
from mpc_lab.pairing.shares import (
    COUNT,
    N_SHARES,
    SQUARED_SUM,
    WEIGHT_SQUARED,
    fold_query,
)
from mpc_lab.pairing.terms import MOST_VISITED
from mpc_lab.pairing.walk import Walk
from mpc_lab.pairing.weighting import Weights
from mpc_lab.pairing.windows import (
    N_PREFIX,
    add_windows,
    count_close,
    most_close,
    nearest_distances,
)
from mpc_lab.vocabulary import Bins, FirstBins, Flags, Floats, Ints, Masks

# What it costs to visit a pair of rows, in steps of a window; measured.
PAIR_COST = 2.0
_SHORT = 256  # shorter lists are always visited pair by pair
# Rows × groups of a list of which sums over its first rows are held at a time.
_SUMS_AT_ONCE = 1 << 23
# What to book a pair for one group costs, in steps of a window.
_BOOKING = 4.0


@inlined
def _book_cell(
    cells: Floats, local: Bins, band: Index, edge: Index, g: Index, part: Index, x: float
) -> None:
    """Add one pair to the sums of its part."""
    b = local[band, edge, g]
    if b >= 0:
        cells[part, b, g, 0] += 1.0
        cells[part, b, g, 1] += x


@kernel
def _book_cells(
    start: int,
    end: int,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    tie: Ints,
    edges: Floats,
    local: Bins,
    band: Ints,
    center: Floats,
    sign: bool,
    to: Bookings,
    parts: Masks,
) -> None:
    """Visit the pairs of one query that windows sum over, for who was shown above whom."""
    if too_many(score, start, end, edges[-1]):
        return
    for lower in range(start, end):
        edge = 0
        for upper in range(lower + 1, end):
            distance = score[upper] - score[lower]
            if distance > edges[-1]:
                break
            while distance > edges[edge]:
                edge += 1
            cell = cell_of(-max(tie[lower], tie[upper]), -min(tie[lower], tie[upper]))
            d = contrast(outcome[lower] - outcome[upper], sign)
            differ = mask[lower] ^ mask[upper]
            while differ:
                g = lowest(differ)
                differ &= differ - ONE
                in_lower = (mask[lower] & (ONE << np.uint64(g))) != 0
                x = (d if in_lower else -d) - center[g]
                above = in_lower == (tie[lower] > tie[upper])
                seen = TIE if distance == 0 else (UP if in_lower else DOWN)
                part = cell + (N_CELLS if above else 0)
                _book_cell(to.cells, local, band[seen], edge, g, part, x)
                if len(parts):
                    parts[g, part >> 6] |= ONE << np.uint64(part & 63)


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
    scratch: Scratch,
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
                book_run(to, scratch, bins.rows[side] * n_groups + g, found[k, side])
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


@kernel
def sweep(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    item: Ints,
    below: Ints | None,
    tie: Ints,
    every: bool,
    bins: PairBins,
    sign: bool,
    long: LongQueries | None,
    weights: Weights | None,
    twin: Ints | None,
    first: int,
    last: int,
    to: Bookings,
) -> None:
    """Add the pairs of the units from `first` to before `last`, under all modes.

    Parameters
    ----------
    below : int64 array or None
        None where no mode pairs neighbours, and nothing of these is compiled.
    every : bool
        Whether some mode pairs other rows than neighbours.
    bins : PairBins
    sign : bool
        Whether a pair counts by the sign of its difference.
    long : LongQueries or None
        Without any, nothing of windows is compiled.
    weights : Weights or None
        Without any, every pair counts 1, and nothing else is compiled.
    twin : int64 array or None
        See `PairBins`. None where no mode has two sides, and nothing of these is compiled.
    to : Bookings
        Added to.
    """
    scratch = make_scratch(to.sums.shape[0], to.sums.shape[1])
    # Taken out of their tuple here: inside the loops that would cost more than the sums.
    edges, center, local, n_groups = bins.edges, bins.center, bins.local, len(bins.center)
    row, band, n = bins.row[ALL_PAIRS], bins.band[ALL_PAIRS], bins.n[ALL_PAIRS]
    if below is not None:
        near_row, near_band = bins.row[NEIGHBOURS], bins.band[NEIGHBOURS]
        near_n = bins.n[NEIGHBOURS]
    of_twin, others = bins.twin_band, np.empty(to.sums.shape[1], dtype=np.int64)
    placed, cell = len(to.cells) > 0, 0
    # The row of ties comes last, and most units have none: their slots are not looked at.
    n_slots = to.sums.shape[0]
    # Where pairs do not count alike, those of a query are held until it ends.
    held, here, parts = to, scratch, np.zeros((0, 2), dtype=np.uint64)
    if weights is not None:
        here = make_scratch(n_slots, to.sums.shape[1])
        parts = np.zeros((len(to.twin) if placed else 0, 2), dtype=np.uint64)
        squares, of_cells = np.zeros(to.sums.shape), np.zeros(to.cells.shape)
        more = (to.first_bin, to.cross, to.twin, to.twin_cross, of_cells, to.shares, to.weighing)
        held = Bookings(squares, *more)
    of_units = (to.sums, to.shares, to.cells, scratch.unit, scratch.touched)
    of_query = (held.sums, held.cells, here.unit, here.touched, parts)
    sums, cells, first_bin = held.sums, held.cells, to.first_bin
    in_unit, touched, query_bin = here.unit, here.touched, here.query_bin
    few_slots = n_slots
    if twin is not None and (twin[2] + 1) * n_groups == n_slots:
        few_slots = n_slots - n_groups
    for unit in range(first, last):
        slots = few_slots
        for q in range(units[unit], units[unit + 1]):
            visited = every
            # The branches below are compiled only where they can be reached.
            if long is not None:
                visited = not long.flags[q - units[first]]
                if not visited:
                    slots = n_slots
                    rows = (starts[q], starts[q + 1], score, outcome, mask, item)
                    how = (edges, long.bins, center)
                    _sweep_windows(*rows, *how, held, here, long.stop)
                    if placed:
                        _book_cells(
                            *rows[:5], tie, edges, local, of_twin, center, sign, held, parts
                        )
            for lower in range(starts[q], starts[q + 1] if visited else starts[q]):
                edge = 0
                for upper in range(lower + 1, starts[q + 1]):
                    distance = score[upper] - score[lower]
                    if distance > edges[-1]:
                        break
                    if distance == 0:
                        slots = n_slots
                    while distance > edges[edge]:
                        edge += 1
                    d = contrast(outcome[lower] - outcome[upper], sign)
                    differ = mask[lower] ^ mask[upper]
                    if twin is not None and placed and differ:
                        high, low = max(tie[lower], tie[upper]), min(tie[lower], tie[upper])
                        cell = cell_of(-high, -low)
                    while differ:
                        g = lowest(differ)
                        in_lower = mask[lower] & (ONE << np.uint64(g))
                        differ &= differ - ONE
                        x = (d if in_lower else -d) - center[g]
                        seen = TIE if distance == 0 else (UP if in_lower else DOWN)
                        if twin is not None and placed:
                            above = (in_lower != 0) == (tie[lower] > tie[upper])
                            part = cell + (N_CELLS if above else 0)
                            _book_cell(cells, local, of_twin[seen], edge, g, part, x)
                            if weights is not None:
                                parts[g, part >> 6] |= ONE << np.uint64(part & 63)
                        for k in range(n[seen]):
                            b = local[band[seen, k], edge, g]
                            if b >= 0:
                                slot = row[seen, k] * n_groups + g
                                book_pair(sums, in_unit, touched, query_bin, slot, b, x)
                                if len(first_bin):
                                    see_items(first_bin, item[lower], item[upper], slot, b)
            if below is not None:
                for one in range(starts[q], starts[q + 1]):
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
                        for k in range(near_n[seen]):
                            b = local[near_band[seen, k], edge, g]
                            if b >= 0:
                                slot = near_row[seen, k] * n_groups + g
                                book_pair(sums, in_unit, touched, query_bin, slot, b, x)
                                if len(first_bin):
                                    see_items(first_bin, item[one], item[other], slot, b)
            if twin is not None:
                close_twin_query(to, here, twin)
            close_query(to, here, slots)
            if weights is not None:
                w, estimand = weights.weight[q], weights.estimand
                fold_query(*of_units, *of_query, w, estimand, bins.twin, slots, n_groups)
        if twin is not None:
            close_twin(to, scratch, twin, slots == n_slots)
            if len(to.twin_cross):
                cross_twin(to, scratch, twin, others)
            if len(to.weighing.weight):
                weigh_twin(to.weighing, scratch, twin)
        if len(to.weighing.weight):
            weigh_unit(to.weighing, scratch, slots)
        close_unit(to, scratch, slots)


def gather(walk: Walk, layout: Layout, n_items: int) -> Moments:
    """Sweep a log once, for all modes of the layout.

    Parameters
    ----------
    walk : Walk
    layout : Layout
    n_items : int
        To count the items with a pair; 0 where they are not known or counted otherwise.
    """
    tables = FirstBinTables(n_items, len(layout.sides) * layout.n_groups, layout.n_bins)
    start = np.zeros(sum(int(np.prod(shape)) for shape in _shapes(layout)))
    packed = walk.total(partial(_sweep, layout, tables), "sweeping", start)
    sums, twin, cells, shares = _unpack(layout, packed)
    return _cumulate(layout, sums, twin, cells, shares, tables.first())


def n_twins(layout: Layout) -> int:
    """Return how many groups a mode of two sides is summed over for."""
    return layout.n_groups if layout.rows.twin else 0


def _shapes(layout: Layout) -> list[tuple[int, ...]]:
    """Return the shapes of the sums of rows, of a mode of two sides, of its cells, of shares."""
    twins, n_bins, weighted = n_twins(layout), layout.n_bins, layout.weighting.weighted
    return [
        (len(layout.sides), layout.n_groups, n_bins, N_SUMS),
        (twins, n_bins, N_TWIN),
        (N_PARTS if layout.by_place and twins else 0, n_bins, twins, 3 if weighted else 2),
        (len(layout.sides) if weighted else 0, layout.n_groups, n_bins, N_SHARES),
    ]


def _unpack(layout: Layout, packed: Floats) -> list[Floats]:
    """Return the arrays of sums."""
    shapes = _shapes(layout)
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(packed, ends), shapes, strict=True)]


def make_bookings(
    layout: Layout, table: FirstBins, *, cross: bool = False, weighing: Weighing | None = None
) -> Bookings:
    """Return what a block adds to."""
    n_slots, n_bins = len(layout.sides) * layout.n_groups, layout.n_bins
    twins, weighted = n_twins(layout), layout.weighting.weighted
    n_parts = N_PARTS if layout.by_place and twins else 0
    return Bookings(
        np.zeros((n_slots, n_bins, N_SUMS)),
        table,
        np.zeros((n_slots if cross else 0, n_bins, n_bins, 3)),
        np.zeros((twins, n_bins, N_TWIN)),
        np.zeros((twins if cross and not layout.by_place else 0, 3, n_bins, n_bins, 4)),
        np.zeros((n_parts, n_bins, twins, 3 if weighted else 2)),
        np.zeros((n_slots if weighted else 0, n_bins, N_SHARES)),
        weighing or no_weighing(),
    )


def _sweep(layout: Layout, tables: FirstBinTables, log: Log, first: int, last: int) -> Floats:
    with tables.lent() as table:
        to = make_bookings(layout, table)
        book_block(layout, log, first, last, to)
    return np.concatenate([part.ravel() for part in (to.sums, to.twin, to.cells, to.shares)])


def book_block(layout: Layout, log: Log, first: int, last: int, to: Bookings) -> None:
    """Add the pairs of the units from `first` to before `last`."""
    if isinstance(log, MovedLog):
        book_moved(layout, log, first, last, to)
        return
    rows = (log.units, log.starts, log.score, log.outcome, log.masks[layout.word], log.item)
    long = _long_queries(layout, log, first, last)
    neighbours = [side.neighbours for side in layout.sides]
    order = (log.below if any(neighbours) else None, log.tie, not all(neighbours))
    weights = log.weights if layout.weighting.weighted else None
    twin = layout.pair_bins.twin if len(layout.pair_bins.twin) else None
    sweep(*rows, *order, layout.pair_bins, log.sign, long, weights, twin, first, last, to)


def _long_queries(layout: Layout, log: Log, first: int, last: int) -> LongQueries | None:
    """Return the queries of a block that windows sum over; None where there is none."""
    from_, to = int(log.units[first]), int(log.units[last])
    if log.sign:
        _check_visitable(log.starts[from_ : to + 1], log.score, layout.pair_bins.edges)
        return None
    if np.inf > PAIR_COST and np.diff(log.starts[from_ : to + 1]).max(initial=0) < _SHORT:
        return None
    if all(side.neighbours for side in layout.sides):
        return None
    bins = layout.window_bins
    flags = np.zeros(to - from_, dtype=np.bool_)
    rows = (log.starts, log.score, log.masks[layout.word])
    how = (float(layout.pair_bins.edges[-1]), bins.first.size, PAIR_COST)
    some = find_long(*rows, *how, from_, to, flags)
    if layout.by_place:
        # Queries that cells leave out are never visited; checking inside the loops would cost a
        # third.
        flags[find_left_out(log, from_, to, how[0])] = True
        some = bool(flags.any())
    return LongQueries(flags, bins, stop_flag()) if some else None


def _check_visitable(starts: Ints, score: Floats, edges: Floats) -> None:
    """Refuse lists with more close pairs than can be visited: windows know no signs."""
    size = np.diff(starts).astype(np.float64)
    if (size**2 / 2).max(initial=0.0) <= MOST_VISITED:
        return
    most = most_close(starts, score, float(edges[-1]))
    if most > MOST_VISITED:
        raise MpcError(
            f'contrast="sign" must have at most {MOST_VISITED:,} pairs in a query, since it looks '
            f"at each; got {most:,} within a distance of {edges[-1]:.4g}. Give a smaller "
            "threshold and a grid epsilon= that ends near it."
        )


def _cumulate(
    layout: Layout, sums: Floats, twin: Floats, cells: Floats, shares: Floats, first: FirstBins
) -> Moments:
    sums, twin, shares = (np.cumsum(part, axis=-2) for part in (sums, twin, shares))
    rows, of_mode = layout.rows, list(layout.rows.of_mode)
    items = count_first(first, layout.n_groups, layout.n_bins, range(len(layout.sides)))
    # Counts below 2**53 are exact as floating-point numbers.
    counts = [sums[..., k].astype(np.int64) for k in (PAIRS, QUERIES, CLUSTERS)]
    if layout.weighting.weighted:
        counts[0] = shares[..., COUNT].astype(np.int64)
    pairs, queries, clusters = (count[of_mode] for count in counts)
    found = Moments(
        modes=layout.modes,
        edges=layout.edges,
        center=layout.center,
        pairs=pairs,
        queries=queries,
        clusters=clusters,
        items=items[of_mode],
        by={
            name: Quadratic(*(sums[of_mode][..., k] for k in columns))
            for name, columns in (("naive", (PAIRS, SUM, SQUARES)), ("query", (CC, CU, UU)))
        },
    )
    below, above, tied = rows.twin or (0, 0, 0)
    if rows.twin:
        mode = rows.of_mode.index(-1)
        found.pairs[mode] = counts[0][below] + counts[0][above] - counts[0][tied]
    if layout.weighting.weighted:
        weight, total = (sums[of_mode][..., k].copy() for k in (PAIRS, SUM))
        alone = (shares[..., WEIGHT_SQUARED], shares[..., SQUARED_SUM], sums[..., SQUARES])
        of_pairs = Quadratic(*(part[of_mode] for part in alone))
        if rows.twin:
            weight[mode] = found.pairs[mode]
        by_query = layout.weighting.by_query
        found = found.with_weights(PairWeights(weight, total, of_pairs, by_query))
    if not rows.twin:
        return found
    of_units = ((queries, counts[1], TWIN_QUERIES), (clusters, counts[2], TWIN_UNITS))
    for values, both, column in of_units:
        values[mode] = both[below] + both[above] - twin[..., column].astype(np.int64)
    found.items[mode] = count_first(first, layout.n_groups, layout.n_bins, [(below, above)])[0]
    if layout.by_place:
        parts = np.ascontiguousarray(np.cumsum(cells, axis=1).transpose(3, 0, 2, 1))
        by_side = parts.reshape(len(parts), 2, N_CELLS, *parts.shape[2:])
        number = by_side[-1] if len(parts) > 2 else None
        # Without the pairs of queries that have too many to visit.
        counted = by_side[0] if number is None else number
        found.pairs[mode] = counted.sum(axis=(0, 1)).astype(np.int64)
        joined = combine_cells(by_side[0], by_side[1], number=number)
        return replace(found, cells=parts).with_estimates(joined.estimate)
    of_sides = list(rows.twin)
    return found.with_sides(_sides(sums[of_sides], twin, shares[of_sides] if len(shares) else None))


def _sides(sums: Floats, twin: Floats, shares: Floats | None) -> Sides:
    """Return the sums of both sides of a tie, from those of the rows below, above and tied."""
    ties = 0.5 * sums[2]
    weight, total = (sums[:2, ..., k] - ties[..., k] for k in (PAIRS, SUM))
    pairs = sums[..., [PAIRS, SUM, SUM, SQUARES]]
    if shares is not None:
        pairs[..., :3] = shares[..., [WEIGHT_SQUARED, SQUARED_SUM, SQUARED_SUM]]
    alone = {k: pairs[k].transpose(2, 0, 1) for k in range(3)}
    of_unit = {k: sums[k][..., [CC, CU, CU, UU]].transpose(2, 0, 1) for k in range(3)}
    products = twin[..., TWIN_PRODUCTS:].reshape(*twin.shape[:2], 3, 4).transpose(2, 3, 0, 1)
    return Sides(
        weight,
        total,
        {
            # Two rows have a pair in common only where it is tied.
            "naive": fold_rows(products_of_rows(alone, np.stack([alone[2]] * 3))),
            "query": fold_rows(products_of_rows(of_unit, products)),
        },
    )


def products_of_rows(own: dict[int, Floats], between: Floats) -> dict[tuple[int, int], Floats]:
    """Name the products of rows with themselves, and of two rows, as `fold_rows` takes them."""
    two = {(0, 1): between[0], (0, 2): between[1], (1, 2): between[2]}
    return {(k, k): products for k, products in own.items()} | two
