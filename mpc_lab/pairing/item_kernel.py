"""The walk through items: what each of them, and each dyad met again, changes in sums of squares.

Plain arrays and no tuples of them: to take an array out of a tuple inside a loop would cost more
than the sums.
"""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.bookings import Index
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
from mpc_lab.pairing.kernels import (
    ONE,
    contrast,
    groups_within,
    inlined_late,
    kernel,
    longer,
    lowest,
    tight,
)
from mpc_lab.pairing.leverage import weigh_from, weigh_sides_of
from mpc_lab.pairing.modes import ALL_PAIRS, DOWN, TIE, UP
from mpc_lab.pairing.moved import reaches
from mpc_lab.pairing.shares import book_changes, fold_cluster
from mpc_lab.pairing.sided import part_of_pair, sum_of_pair
from mpc_lab.vocabulary import Bins, Floats, Ints, Masks

_ROOM = 1 << 10  # pairs of an item that are held at first
_AHEAD = 64  # rows that are read before they are needed
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
                weigh_sides_of(held, rows, g, pairs, side_weight, side_mean, weighed)
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


@inlined_late
def _book_sided(
    bits: np.uint64,
    rows: tuple[Index, Index],
    tied: bool,
    distance: float,
    of_item: float,
    places: tuple[Index, Index],
    factors: Floats,
    center: Floats,
    weight: Floats,
    offset: Floats,
    line: Floats,
    scale: Floats,
    seen_from: tuple[float, float],
    alone_there: bool,
    as_dyad: float,
    held: Floats,
    held_bins: Masks,
    held_groups: Masks,
    sums: Floats,
    alone: Floats,
    between: Floats,
) -> None:
    """Book a pair of some groups by a table, at the one threshold; by score a tie is on both sides.

    Parameters
    ----------
    bits : uint64
        The groups.
    rows : (int, int)
        The row of sums for the lower side, and that for the pair's side by score. With cells of
        places, the places decide the side.
    places : (int, int)
        The places of the group's item and of the other.
    factors : float64 array (slot,) or (1,)
        What a pair of the query counts.
    center, weight, offset, line, scale
        See `SideTable` and `sum_of_pair`.
    seen_from : (float, float)
        1 where the cluster is the group's item, and where it is the other one.
    held, held_bins, held_groups, sums, alone, between : arrays
        See `sweep_items_of_job`; the last is of dyads.
    """
    n_groups, n_cells = len(center), len(weight) // 2
    while bits:
        g = lowest(bits)
        bits &= bits - ONE
        x, near, part = of_item - center[g], distance / scale[g], rows[1] - rows[0]
        if n_cells > 1:
            part = part_of_pair(False, int(places[0]), int(places[1]), distance, True, n_cells)
        both = tied and n_cells == 1
        f = factors[rows[1] * n_groups + g] if len(factors) > 1 else factors[0]
        c_below, u_below = 0.0, 0.0
        for more in range(2 if both else 1):
            at = part + more
            c = f * weight[at, g] * (0.5 if both else 1.0)
            u = c * sum_of_pair(x, near, offset[at, g], line[at // n_cells, g])
            row = rows[0] + at // n_cells
            slot = row * n_groups + g
            held_groups[row] |= ONE << np.uint64(g)
            held_bins[slot, 0] |= ONE
            held[slot, 0, COUNT] += c
            held[slot, 0, SUM] += u
            held[slot, 0, OF_GROUP] += c * seen_from[0]
            held[slot, 0, OF_OTHER] += c * seen_from[1]
            if alone_there:
                sums[slot, 0, UNIT_CC] += c * c
                sums[slot, 0, UNIT_CU] += c * u
                sums[slot, 0, UNIT_UU] += u * u
            if as_dyad != 0.0:
                alone[slot, 0, 0] += as_dyad * c * c
                alone[slot, 0, 1] += as_dyad * c * u
                alone[slot, 0, 2] += as_dyad * u * u
            if more and as_dyad != 0.0:
                for first in (PRODUCTS, PRODUCTS + 12):
                    between[g, 0, first] += as_dyad * c_below * c
                    between[g, 0, first + 1] += as_dyad * c_below * u
                    between[g, 0, first + 2] += as_dyad * u_below * c
                    between[g, 0, first + 3] += as_dyad * u_below * u
            c_below, u_below = c, u


@kernel
def sweep_items_of_job(
    numbers: Floats,
    names: Masks,
    item_rows: Ints,
    starts: Ints,
    unit_of: Ints,
    below: Ints,
    above: Ints,
    raised: Floats | None,
    partner: Bins | None,
    factor: Floats | None,
    pairs_of_query: Bins | None,
    changing: Masks,
    query_weight: Floats,
    share: Floats,
    tie: Ints | None,
    part_weight: Floats,
    offset: Floats,
    line: Floats,
    scale: Floats,
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
    item_rows, starts, unit_of, below, above
        See `ItemOrder`.
    raised : float64 array (row,) or None
        The scores of rows as members of a group, where these are moved; see `MovedLog`.
    partner : int32 array (row, 2) or None
        See `first_partners`.
    factor : float64 array (query, slot) or (query, 1), or None
        What a pair of a query counts; without any, 1.
    pairs_of_query : int32 array (query, slot, bin) or None
        Up to each threshold, where what a pair counts depends on it and is otherwise at each. Then
        the pairs of a cluster are held until their query ends too.
    changing : uint64 array (query, slot, word)
        In which bins these change.
    query_weight : float64 array (query,)
    share : float64 array
        What a pair counts by the number of pairs, where its query has the weight 1.
    tie : int64 array (row,) or None
        See `Log`; where there is one, the pairs of a mode of two sides go by a table.
    part_weight, offset, line, scale
        See `SideTable` and `sum_of_pair`.
    edges, local, row_of, band, n_taking, center, twin
        See `PairBins`.
    weight, mean, pairs_of_twin, side_weight, side_mean
        See `Wholes`.
    sums : float64 array (items or dyads, slot, bin, sum)
        For dyads, only those of several pairs, and not the side they are on.
    alone : float64 array (slot, bin, 3)
        Pairs, Σx and Σx² of the dyads of one pair.
    between : float64 array (items or dyads, group, bin, sum)
        Of the rows of a mode of two sides together; without the products of dyads of one pair, of
        which only a tied one is in two rows, unless it goes by a table.
    weighed : float64 array (slot, then group of a mode of two sides; bin)
        What single items change.
    """
    n_groups, n_bins, n_words = len(center), sums.shape[2], (sums.shape[2] + 63) // 64
    n_slots, n_items, n_read = sums.shape[1], len(starts) - 1, len(names)
    n_rows = n_slots // n_groups
    # What is under this is compiled only where a mode has two sides.
    if twin is not None:
        first_of_twin = twin[0]
    # What a cluster holds, inside a unit and as a whole: by slot and bin, which bins, which groups.
    part, part_bins = np.zeros((n_slots, n_bins, 4)), np.zeros((n_slots, n_words), dtype=np.uint64)
    whole, whole_bins = (
        np.zeros((n_slots, n_bins, 4)),
        np.zeros((n_slots, n_words), dtype=np.uint64),
    )
    if pairs_of_query is not None:
        here, here_bins = np.zeros((n_slots, n_bins, 4)), np.zeros_like(part_bins)
        here_groups = np.zeros(n_rows, dtype=np.uint64)
    part_groups = np.zeros(n_rows, dtype=np.uint64)
    whole_groups = np.zeros(n_rows, dtype=np.uint64)
    last_met, met = np.empty(n_items, dtype=np.int32), np.empty(n_items, dtype=np.int32)
    for i in range(n_items):
        last_met[i] = -1
    # Pairs of the item: both rows, twice the edge and a flag (whether they are neighbours, or as
    # what the row was met where members are moved), and the one before with the same greater item.
    row, other_row = np.empty(_ROOM, dtype=np.int32), np.empty(_ROOM, dtype=np.int32)
    edge_of, before = np.empty(_ROOM, dtype=np.int32), np.empty(_ROOM, dtype=np.int32)
    within = groups_within(local)
    alike = np.ones(1)
    # Which bins are held need not be noted where there is but one.
    many = n_bins > 1
    if twin is not None:
        many = True
    reach, turns = edges[-1], 4 if len(above) else 2
    if raised is not None:
        reach_up, reach_down = reaches(edges, n_taking[ALL_PAIRS])
    touched, ahead, felt = starts[first], starts[last], np.zeros(1)
    for i in range(first, last):
        n_met, n_pairs = 0, 0
        # Rows are read a little before they are needed, so that many are on their way at once.
        total = 0.0
        for k in range(touched, min(starts[i + 1] + _AHEAD, ahead)):
            total += numbers[item_rows[k], SCORE]
        felt[0] += total
        touched = max(touched, min(starts[i + 1] + _AHEAD, ahead))
        for k in range(starts[i], starts[i + 1]):
            one = item_rows[k]
            mine, score = names[one, GROUPS], numbers[one, SCORE]
            q = np.int64(names[one, NAMES] >> HALF)
            # The rows above in the order of scores, those below, then the two neighbours.
            for turn in range(turns):
                edge, step = 0, 1 if turn == 0 else -1
                other, flag = one + step, 1 if turn > 1 else 0
                if turn > 1:
                    other = below[one] if turn == 2 else above[one]
                # Where members are moved, its partners as a member, then those as another row.
                if raised is not None:
                    step, flag = 1, turn
                    other = np.int64(partner[one, turn])  # type: ignore[index]
                while 0 <= other < n_read and np.int64(names[other, NAMES] >> HALF) == q:
                    distance = abs(numbers[other, SCORE] - score)
                    differ = mine ^ names[other, GROUPS]
                    if raised is not None:
                        signed = raised[other] - score
                        differ &= ~mine
                        if turn == 0:
                            signed = numbers[other, SCORE] - raised[one]
                            differ = mine & ~names[other, GROUPS]
                        if signed > (reach_up if turn == 0 else reach_down):
                            break
                        distance = abs(signed)
                        while edge and distance <= edges[edge - 1]:
                            edge -= 1
                    if distance > reach:
                        break
                    while distance > edges[edge]:
                        edge += 1
                    j = np.int64(names[other, NAMES] & _LOWER)
                    # Two rows of one producer are a pair of it once.
                    once = other > one
                    if raised is not None:
                        once = turn == 0
                    if differ and (i != j or once):
                        if n_pairs == len(row):
                            row, other_row = longer(row), longer(other_row)
                            edge_of, before = longer(edge_of), longer(before)
                        row[n_pairs] = one
                        other_row[n_pairs] = other
                        edge_of[n_pairs] = 2 * edge + flag
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
            held_back, folded = False, False
            while at != end:
                one, other, edge = np.int64(row[at]), np.int64(other_row[at]), edge_of[at] >> 1
                near = edge_of[at] & 1
                at = at + 1 if kind == 0 else np.int64(before[at])
                next_unit = np.int64(-1)
                if at != end:
                    next_unit = unit_of[np.int64(names[row[at], NAMES] >> HALF)]
                mine, j = names[one, GROUPS], np.int64(names[other, NAMES] & _LOWER)
                score, theirs = numbers[one, SCORE], numbers[other, SCORE]
                d = contrast(numbers[one, OUTCOME] - numbers[other, OUTCOME], sign)
                # Booked as a dyad when it is met, and taken back where the dyad has more.
                as_dyad = -1.0 if kind == 1 else (1.0 if j > i else 0.0)
                differ = mine ^ names[other, GROUPS]
                if raised is not None:
                    # As in the first loop: the flag says as which of the two the row was met.
                    if near:
                        theirs, differ = raised[other], differ & ~mine
                    else:
                        score, differ = raised[one], differ & mine
                    near = ALL_PAIRS
                # What a pair that is alone in its unit adds there is known at once; a tied one has
                # products of rows.
                alone_there = not held_back and next_unit != unit
                if twin is not None:
                    alone_there = alone_there and score != theirs
                held, held_bins, held_groups = part, part_bins, part_groups
                if alone_there:
                    held, held_bins, held_groups = whole, whole_bins, whole_groups
                if pairs_of_query is not None:
                    alone_there = False
                    q = np.int64(names[one, NAMES] >> HALF)
                    held, held_bins, held_groups = here, here_bins, here_groups
                # The groups of the item, then those of the other one.
                for side in range(2):
                    some = differ & (mine if side == 0 else ~mine)
                    if not some:
                        continue
                    as_group = 1.0 if side == 0 or i == j else 0.0
                    as_other = 1.0 if side == 1 or i == j else 0.0
                    of_item = d if side == 0 else -d
                    up = (score < theirs) == (side == 0)
                    seen = TIE if score == theirs else (UP if up else DOWN)
                    for k in range(n_taking[near, seen]):
                        r, of_band = row_of[near, seen, k], band[near, seen, k]
                        bits = some & within[of_band, edge]
                        if tie is not None and r >= first_of_twin:
                            # A tied pair is taken by three rows, and is booked from the first.
                            if seen == TIE and r > first_of_twin:
                                continue
                            factors = alike
                            if factor is not None:
                                factors = factor[np.int64(names[one, NAMES] >> HALF)]
                            mine_place, other_place = -tie[one], -tie[other]
                            if side == 1:
                                mine_place, other_place = other_place, mine_place
                            _book_sided(
                                bits,
                                (first_of_twin, r),
                                seen == TIE,
                                abs(score - theirs),
                                of_item,
                                (mine_place, other_place),
                                factors,
                                center,
                                part_weight,
                                offset,
                                line,
                                scale,
                                (as_group, as_other),
                                alone_there,
                                as_dyad,
                                held,
                                held_bins,
                                held_groups,
                                sums[kind],
                                alone,
                                between[1],
                            )
                            continue
                        held_groups[r] |= bits
                        while bits:
                            g = lowest(bits)
                            bits &= bits - ONE
                            x, w = of_item - center[g], 1.0
                            slot, b = r * n_groups + g, np.int64(local[of_band, edge, g])
                            if factor is not None:
                                q = np.int64(names[one, NAMES] >> HALF)
                                w = factor[q, slot if factor.shape[1] > 1 else 0]
                            ww = w * w
                            held[slot, b, COUNT] += w
                            held[slot, b, SUM] += w * x
                            held[slot, b, OF_GROUP] += w * as_group
                            held[slot, b, OF_OTHER] += w * as_other
                            if many:
                                held_bins[slot, b >> 6] |= ONE << np.uint64(b & 63)
                            if alone_there:
                                sums[kind, slot, b, UNIT_CC] += ww
                                sums[kind, slot, b, UNIT_CU] += ww * x
                                sums[kind, slot, b, UNIT_UU] += ww * x * x
                            if pairs_of_query is not None:
                                if as_dyad != 0.0:
                                    book_changes(
                                        pairs_of_query[q],
                                        changing[q],
                                        query_weight[q],
                                        share,
                                        slot,
                                        b,
                                        x,
                                        as_dyad,
                                        alone,
                                    )
                            elif as_dyad != 0.0:
                                alone[slot, b, 0] += as_dyad * ww
                                alone[slot, b, 1] += as_dyad * ww * x
                                alone[slot, b, 2] += as_dyad * ww * x * x
                held_back = not alone_there
                if pairs_of_query is not None and (
                    at == end or np.int64(names[row[at], NAMES] >> HALF) != q
                ):
                    # Of a unit of one query nothing has to be held, but products of rows do.
                    if twin is None:
                        alone_there = next_unit != unit and not folded
                    folded = next_unit == unit
                    held, held_bins, held_groups = part, part_bins, part_groups
                    if alone_there:
                        held, held_bins, held_groups = whole, whole_bins, whole_groups
                    of_query = (pairs_of_query[q], changing[q], query_weight[q], share)
                    fold_cluster(
                        *of_query,
                        here,
                        here_bins,
                        here_groups,
                        held,
                        held_bins,
                        held_groups,
                        alone_there,
                        sums[kind],
                    )
                if next_unit == unit:
                    continue
                unit = next_unit
                if alone_there:
                    continue
                held_back = False
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
                            bits = ONE
                            if many:
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
                        bits = ONE
                        if many:
                            bits = whole_bins[slot, word]
                            whole_bins[slot, word] = np.uint64(0)
                        while bits:
                            b = 64 * word + lowest(bits)
                            bits &= bits - ONE
                            if kind == 0:
                                weigh_from(slot, from_, b, c, u, weight, mean, weighed)
                            cb, ub = whole[slot, b, COUNT], whole[slot, b, SUM]
                            sums[kind, slot, b, CC] += cb * (2 * c + cb)
                            sums[kind, slot, b, CU] += c * ub + cb * u + cb * ub
                            sums[kind, slot, b, UU] += ub * (2 * u + ub)
                            c, u, from_ = c + cb, u + ub, b
                            if kind == 0:
                                one_c, other_c = whole[slot, b, OF_GROUP], whole[slot, b, OF_OTHER]
                                sums[0, slot, b, FIRST] += fresh
                                sums[0, slot, b, INSIDE] += one_c * (2 * mine_c + one_c)
                                sums[0, slot, b, OUTSIDE] += other_c * (2 * theirs_c + other_c)
                                mine_c, theirs_c, fresh = mine_c + one_c, theirs_c + other_c, 0.0
                            for k in range(4):
                                whole[slot, b, k] = 0.0
                    if kind == 0:
                        weigh_from(slot, from_, n_bins, c, u, weight, mean, weighed)
