"""The walk through items: what each of them, and each dyad met again, changes in sums of squares.

Plain arrays and no tuples of them: to take an array out of a tuple inside a loop would cost more
than the sums.
"""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.bookings import NOTHING_LEFT, Index
from mpc_lab.pairing.clusters import BETWEEN_FIRST, BETWEEN_SQUARES, PRODUCTS
from mpc_lab.pairing.entries import (
    CC,
    CU,
    FIRST,
    INSIDE,
    OUTSIDE,
    UNIT_CC,
    UNIT_CU,
    UNIT_UU,
    UU,
)
from mpc_lab.pairing.kernels import ONE, contrast, inlined, kernel, lowest, tight
from mpc_lab.pairing.modes import DOWN, TIE, UP
from mpc_lab.pairing.moments import ABOVE, BELOW
from mpc_lab.vocabulary import Bins, Floats, Ints, Masks

_ROOM = 1 << 10  # pairs of an item that are held at first
# What is held of a cluster in one bin: Σc, Σcx, and Σc as the group's item and as the other one.
COUNT, SUM, OF_GROUP, OF_OTHER = range(4)

# What is read of a row is kept together, since the rows of one item are all over the log: two
# numbers, then as bits its groups, and its item below its query.
SCORE, OUTCOME, GROUPS, NAMES = range(4)
HALF, _LOWER = np.uint64(32), np.uint64(0xFFFFFFFF)


_Rows = tuple[Index, Index, Index]


@tight
def _book_twins(
    held: Floats,
    bins: Masks,
    groups: Masks,
    twin: Ints,
    n_groups: int,
    at: int,
    items: bool,
    pairs: Floats,
    side_weight: Floats,
    side_mean: Floats,
    to: Floats,
    weighed: Floats,
) -> None:
    """Book the products of the rows below, above and tied of all groups that hold a pair.

    Parameters
    ----------
    held, bins, groups : arrays
        See `sweep_items_of_job`.
    at : int
        The first of the products.
    items : bool
        Whether the clusters are whole items, which are counted and weighed as well.
    to : float64 array (group, bin, sum)
    """
    below, above = groups[twin[0]], groups[twin[1]]
    # A tied pair is in all three rows; two rows of which one is empty have no products.
    some = below | above if items else below & above
    while some:
        g = lowest(some)
        some &= some - ONE
        rows = (twin[0] * n_groups + g, twin[1] * n_groups + g, twin[2] * n_groups + g)
        if items:
            _book_first(bins, rows, g, to)
            if len(pairs):
                _weigh_sides(held, rows, g, pairs, side_weight, side_mean, weighed)
        if below & above & (ONE << np.uint64(g)):
            _book_products(held, bins, rows, g, items, at, to)


@tight
def _book_first(bins: Masks, rows: _Rows, g: Index, to: Floats) -> None:
    """Count an item in the first bin in which it has a pair below or above."""
    for word in range(bins.shape[1]):
        bits = bins[rows[0], word] | bins[rows[1], word]
        if bits:
            to[g, 64 * word + lowest(bits), BETWEEN_FIRST] += 1.0
            return


@tight
def _book_products(
    held: Floats, bins: Masks, rows: _Rows, g: Index, items: bool, at: int, to: Floats
) -> None:
    """Book the changes of the products of each two rows of one group."""
    for k in range(3):
        one, two = rows[1 if k == 2 else 0], rows[1 if k == 0 else 2]
        c, u, c2, u2 = 0.0, 0.0, 0.0, 0.0
        mine, theirs, mine2, theirs2 = 0.0, 0.0, 0.0, 0.0
        for word in range(bins.shape[1]):
            bits = bins[one, word] | bins[two, word]
            while bits:
                b = 64 * word + lowest(bits)
                bits &= bits - ONE
                was = (c * c2, c * u2, u * c2, u * u2, mine * mine2, theirs * theirs2)
                c, u = c + held[one, b, COUNT], u + held[one, b, SUM]
                c2, u2 = c2 + held[two, b, COUNT], u2 + held[two, b, SUM]
                to[g, b, at + 4 * k] += c * c2 - was[0]
                to[g, b, at + 4 * k + 1] += c * u2 - was[1]
                to[g, b, at + 4 * k + 2] += u * c2 - was[2]
                to[g, b, at + 4 * k + 3] += u * u2 - was[3]
                if items:
                    mine, theirs = mine + held[one, b, OF_GROUP], theirs + held[one, b, OF_OTHER]
                    mine2 += held[two, b, OF_GROUP]
                    theirs2 += held[two, b, OF_OTHER]
                    to[g, b, BETWEEN_SQUARES + k] += mine * mine2 - was[4]
                    to[g, b, BETWEEN_SQUARES + 3 + k] += theirs * theirs2 - was[5]


@tight
def _weigh_sides(
    held: Floats,
    rows: _Rows,
    g: Index,
    pairs: Floats,
    weight: Floats,
    mean: Floats,
    found: Floats,
) -> None:
    """Add what an item of two sides does from its first pair on."""
    cb, ub, ca, ua = 0.0, 0.0, 0.0, 0.0
    at = len(found) - len(pairs) + g
    for b in range(held.shape[1]):
        ties, of_ties = 0.5 * held[rows[2], b, COUNT], 0.5 * held[rows[2], b, SUM]
        cb += held[rows[0], b, COUNT] - ties
        ub += held[rows[0], b, SUM] - of_ties
        ca += held[rows[1], b, COUNT] - ties
        ua += held[rows[1], b, SUM] - of_ties
        if cb == 0.0 and ca == 0.0:
            continue
        wb, wa = weight[BELOW, g, b], weight[ABOVE, g, b]
        rb, ra = wb - cb, wa - ca
        if rb > NOTHING_LEFT * wb and ra > NOTHING_LEFT * wa:
            xb, xa = ub - mean[BELOW, g, b] * cb, ua - mean[ABOVE, g, b] * ca
            changed = 0.5 * pairs[g, b] * (xb / rb + xa / ra)
            found[at, b] += changed * changed
        else:
            found[at, b] = np.nan


@inlined
def _weigh_from(
    slot: Index,
    first: Index,
    last: Index,
    c: float,
    u: float,
    weight: Floats,
    mean: Floats,
    found: Floats,
) -> None:
    """Add what an item with c pairs and the sum u does in bins in which it has no more pairs."""
    for b in range(first, last):
        if weight[slot, b] > 0:
            rest = weight[slot, b] - c
            enough = rest > NOTHING_LEFT * weight[slot, b]
            changed = (u - mean[slot, b] * c) * (weight[slot, b] / rest) if enough else np.nan
            found[slot, b] += changed * changed


@tight
def _book_tie(to: Floats, g: Index, b: Index, x: float, c: float) -> None:
    """Book a tied pair as a dyad in the products of the three rows it is in, or take it back."""
    for at in range(PRODUCTS, BETWEEN_SQUARES, 4):
        to[1, g, b, at] += c
        to[1, g, b, at + 1] += c * x
        to[1, g, b, at + 2] += c * x
        to[1, g, b, at + 3] += c * x * x


@tight
def _longer(values: Bins) -> Bins:
    """Return the same values with twice the room."""
    more = np.empty(2 * len(values), dtype=np.int32)
    # Not as one slice: to compile what is said of shapes that differ takes seconds.
    for k in range(len(values)):
        more[k] = values[k]
    return more


@kernel
def sweep_items_of_job(
    numbers: Floats,
    names: Masks,
    item_rows: Ints,
    starts: Ints,
    queries: Ints,
    unit_of: Ints,
    below: Ints,
    above: Ints,
    sign: bool,
    edges: Floats,
    local: Bins,
    row_of: Ints,
    band: Ints,
    n_taking: Ints,
    center: Floats,
    twin: Ints | None,
    weight: Floats,
    mean: Floats,
    pairs_of_twin: Floats,
    side_weight: Floats,
    side_mean: Floats,
    first: int,
    last: int,
    sums: Floats,
    alone: Floats,
    between: Floats,
    weighed: Floats,
) -> None:
    """Add what the items from `first` to before `last` change at each bin.

    The pairs of an item are met first, those with a greater item chained by it. Then they are
    booked, for the item, and for each dyad that was met more than once.

    Parameters
    ----------
    numbers, names : float64 and uint64 arrays (row, 4)
        The same memory; see `SCORE`.
    item_rows, starts, queries, unit_of, below, above
        See `ItemOrder`.
    edges, local, row_of, band, n_taking, center, twin
        See `PairBins`.
    weight, mean, pairs_of_twin, side_weight, side_mean
        See `Wholes`.
    sums : float64 array (items or dyads, slot, bin, sum)
        Of dyads, only those of several pairs.
    alone : float64 array (slot, bin, 3)
        Pairs, Σx and Σx² of the dyads of one pair.
    between : float64 array (items or dyads, group, bin, sum)
        Of the rows of a mode of two sides together.
    weighed : float64 array (slot, then group of a mode of two sides; bin)
        What single items change.
    """
    n_groups, n_bins, n_words = len(center), sums.shape[2], (sums.shape[2] + 63) // 64
    n_slots, n_items = sums.shape[1], len(starts) - 1
    n_rows, tied = n_slots // n_groups, -1
    # What stands under this is compiled only where a mode has two sides.
    if twin is not None:
        tied = twin[2]
    # What a cluster holds, inside a unit and as a whole: by slot and bin, which bins, which groups.
    part, part_bins = np.zeros((n_slots, n_bins, 4)), np.zeros((n_slots, n_words), dtype=np.uint64)
    whole, whole_bins = (
        np.zeros((n_slots, n_bins, 4)),
        np.zeros((n_slots, n_words), dtype=np.uint64),
    )
    part_groups = np.zeros(n_rows, dtype=np.uint64)
    whole_groups = np.zeros(n_rows, dtype=np.uint64)
    last_met, met = np.full(n_items, -1, dtype=np.int32), np.empty(n_items, dtype=np.int32)
    # Pairs of the item: both rows, twice the edge and whether they are neighbours, and the one
    # before with the same greater item.
    row, other_row = np.empty(_ROOM, dtype=np.int32), np.empty(_ROOM, dtype=np.int32)
    edge_of, before = np.empty(_ROOM, dtype=np.int32), np.empty(_ROOM, dtype=np.int32)
    reach, turns = edges[-1], 4 if len(above) else 2
    for i in range(first, last):
        n_met, n_pairs = 0, 0
        for k in range(starts[i], starts[i + 1]):
            one = item_rows[k]
            mine, score = names[one, GROUPS], numbers[one, SCORE]
            q = np.int64(names[one, NAMES] >> HALF)
            start, end = queries[q], queries[q + 1]
            # The rows above in the order of scores, those below, then the two neighbours.
            for turn in range(turns):
                edge, step = 0, 1 if turn == 0 else -1
                other = one + step
                if turn > 1:
                    other = below[one] if turn == 2 else above[one]
                while start <= other < end:
                    distance = abs(numbers[other, SCORE] - score)
                    if distance > reach:
                        break
                    while distance > edges[edge]:
                        edge += 1
                    j = np.int64(names[other, NAMES] & _LOWER)
                    # Two rows of one producer are a pair of it once.
                    if mine != names[other, GROUPS] and (i != j or other > one):
                        if n_pairs == len(row):
                            row, other_row = _longer(row), _longer(other_row)
                            edge_of, before = _longer(edge_of), _longer(before)
                        row[n_pairs] = one
                        other_row[n_pairs] = other
                        edge_of[n_pairs] = 2 * edge + (1 if turn > 1 else 0)
                        if j > i:
                            if last_met[j] < 0:
                                met[n_met] = j
                                n_met += 1
                            before[n_pairs] = last_met[j]
                            last_met[j] = n_pairs
                        n_pairs += 1
                    if turn > 1:
                        break
                    other += step
        for cluster in range(-1 if n_pairs else 0, n_met):
            kind, at, end = 0, np.int64(0), np.int64(n_pairs)
            if cluster >= 0:
                kind, at, end = 1, np.int64(last_met[met[cluster]]), np.int64(-1)
                last_met[met[cluster]] = -1
                if before[at] < 0:
                    continue
            unit = unit_of[np.int64(names[row[at], NAMES] >> HALF)]
            while True:
                here = unit
                if at != end:
                    here = unit_of[np.int64(names[row[at], NAMES] >> HALF)]
                if here != unit or at == end:
                    if twin is not None:
                        _book_twins(
                            part,
                            part_bins,
                            part_groups,
                            twin,
                            n_groups,
                            PRODUCTS + 12,
                            False,
                            pairs_of_twin,
                            side_weight,
                            side_mean,
                            between[kind],
                            weighed,
                        )
                    # Book what the cluster has inside the unit, and add it to the whole.
                    for r in range(n_rows):
                        groups = part_groups[r]
                        whole_groups[r] |= groups
                        part_groups[r] = np.uint64(0)
                        while groups:
                            slot = r * n_groups + lowest(groups)
                            groups &= groups - ONE
                            c, u = 0.0, 0.0
                            for word in range(n_words):
                                bits = part_bins[slot, word]
                                part_bins[slot, word] = np.uint64(0)
                                whole_bins[slot, word] |= bits
                                while bits:
                                    b = 64 * word + lowest(bits)
                                    bits &= bits - ONE
                                    cb, ub = part[slot, b, COUNT], part[slot, b, SUM]
                                    sums[kind, slot, b, UNIT_CC] += cb * (2 * c + cb)
                                    sums[kind, slot, b, UNIT_CU] += c * ub + cb * u + cb * ub
                                    sums[kind, slot, b, UNIT_UU] += ub * (2 * u + ub)
                                    c, u = c + cb, u + ub
                                    for k in range(4):
                                        whole[slot, b, k] += part[slot, b, k]
                                        part[slot, b, k] = 0.0
                    unit = here
                if at == end:
                    break
                one, other = np.int64(row[at]), np.int64(other_row[at])
                edge, near = edge_of[at] >> 1, edge_of[at] & 1
                mine, j = names[one, GROUPS], np.int64(names[other, NAMES] & _LOWER)
                score, theirs = numbers[one, SCORE], numbers[other, SCORE]
                d = contrast(numbers[one, OUTCOME] - numbers[other, OUTCOME], sign)
                # Booked as a dyad when it is met, and taken back where the dyad has more.
                as_dyad = -1.0 if kind == 1 else (1.0 if j > i else 0.0)
                differ = mine ^ names[other, GROUPS]
                while differ:
                    g = lowest(differ)
                    differ &= differ - ONE
                    inside = (mine & (ONE << np.uint64(g))) != 0
                    x = (d if inside else -d) - center[g]
                    seen = TIE if score == theirs else (UP if inside == (score < theirs) else DOWN)
                    for k in range(n_taking[near, seen]):
                        b = np.int64(local[band[near, seen, k], edge, g])
                        if b < 0:
                            continue
                        r = row_of[near, seen, k]
                        slot = r * n_groups + g
                        part[slot, b, COUNT] += 1.0
                        part[slot, b, SUM] += x
                        part[slot, b, OF_GROUP if inside else OF_OTHER] += 1.0
                        if i == j:
                            part[slot, b, OF_OTHER if inside else OF_GROUP] += 1.0
                        part_bins[slot, b >> 6] |= ONE << np.uint64(b & 63)
                        part_groups[r] |= ONE << np.uint64(g)
                        if as_dyad != 0.0:
                            alone[slot, b, 0] += as_dyad
                            alone[slot, b, 1] += as_dyad * x
                            alone[slot, b, 2] += as_dyad * x * x
                            if twin is not None and r == tied and seen == TIE:
                                _book_tie(between, g, b, x, as_dyad)
                at = at + 1 if kind == 0 else np.int64(before[at])
            if twin is not None:
                _book_twins(
                    whole,
                    whole_bins,
                    whole_groups,
                    twin,
                    n_groups,
                    PRODUCTS,
                    kind == 0,
                    pairs_of_twin,
                    side_weight,
                    side_mean,
                    between[kind],
                    weighed,
                )
            # Book the whole cluster, and weigh it from its first pair on.
            for r in range(n_rows):
                groups = whole_groups[r]
                whole_groups[r] = np.uint64(0)
                while groups:
                    slot = r * n_groups + lowest(groups)
                    groups &= groups - ONE
                    c, u, mine_c, theirs_c, fresh = 0.0, 0.0, 0.0, 0.0, 1.0
                    from_ = n_bins
                    for word in range(n_words):
                        bits = whole_bins[slot, word]
                        whole_bins[slot, word] = np.uint64(0)
                        while bits:
                            b = 64 * word + lowest(bits)
                            bits &= bits - ONE
                            if kind == 0:
                                _weigh_from(slot, from_, b, c, u, weight, mean, weighed)
                            cb, ub = whole[slot, b, COUNT], whole[slot, b, SUM]
                            sums[kind, slot, b, CC] += cb * (2 * c + cb)
                            sums[kind, slot, b, CU] += c * ub + cb * u + cb * ub
                            sums[kind, slot, b, UU] += ub * (2 * u + ub)
                            c, u, from_ = c + cb, u + ub, b
                            one_c, other_c = whole[slot, b, OF_GROUP], whole[slot, b, OF_OTHER]
                            sums[kind, slot, b, FIRST] += fresh
                            sums[kind, slot, b, INSIDE] += one_c * (2 * mine_c + one_c)
                            sums[kind, slot, b, OUTSIDE] += other_c * (2 * theirs_c + other_c)
                            mine_c, theirs_c, fresh = mine_c + one_c, theirs_c + other_c, 0.0
                            for k in range(4):
                                whole[slot, b, k] = 0.0
                    if kind == 0:
                        _weigh_from(slot, from_, n_bins, c, u, weight, mean, weighed)
