"""Pairs in both orders under many labels: what each labelling adds up to over clusters.

The pairs are listed once. Under one labelling those with one member are kept, its item on the side
of the group, and everything that queries, items, and two items add up to comes from one walk over
them: what is inside a query is added up in a few numbers, which stay in the cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.kernels import inlined, kernel, stable_order
from mpc_lab.vocabulary import Bins, Flags, Floats, Ints


class SharedPairs(NamedTuple):
    """What listed pairs share, in numbers that a walk over them query by query needs.

    Attributes
    ----------
    starts : int64 array (query + 1,)
        Where the pairs of each query, or unit, begin.
    one, other : int32 arrays (pair,)
        The two items of each pair, numbered inside their query; empty where items do not count.
    items : int64 array
        The items of each query one query after the other, as dense codes.
    first_item : int64 array (query + 1,)
        Where the items of each query begin.
    dyad, dyad_query : int32 arrays (pair,)
        The same two items, and the same two inside one query; -1 for two items that meet once.
        All -1, they are empty.
    sizes : int64 array (4,)
        The most items of a query, all items, and how many codes the last two have.
    """

    starts: Ints
    one: Bins
    other: Bins
    items: Ints
    first_item: Ints
    dyad: Bins
    dyad_query: Bins
    sizes: Ints


def share_pairs(query: Ints, one: Ints | None, other: Ints | None) -> SharedPairs:
    """Find what pairs share.

    Parameters
    ----------
    query : int64 array (pair,)
        The query of each, or its unit; those of one in a row.
    one, other : int64 arrays (pair,) or None
        Their two items, or producers; None where they do not count.
    """
    new = np.flatnonzero(np.diff(query, prepend=-1, append=-1)) if len(query) else np.zeros(1, int)
    none, few = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
    if one is None or other is None:
        return SharedPairs(new, few, few, none, none, few, few, np.zeros(4, dtype=np.int64))
    largest = int(max(one.max(initial=-1), other.max(initial=-1))) + 1
    # Of 32 bits, because a walk over pairs waits for memory.
    inside_one, inside_other = np.empty((2, len(one)), dtype=np.int32)
    items, first_item = _number_items(new, one, other, largest, inside_one, inside_other)
    # As dense codes, so that a sum an item takes no more room than there are items.
    known = np.zeros(largest, dtype=np.int64)
    known[items] = 1
    dense = np.cumsum(known) - 1
    key = np.minimum(one, other) * largest + np.maximum(one, other)
    order = stable_order(key)
    ordered = key[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    of_query = [np.searchsorted(new, order[again + k], side="right") for k in range(2)]
    dyads = [_repeated(order, met) for met in (again, again[of_query[0] == of_query[1]])]
    if (one == other).any():
        # Both of one producer: in no dyad, which is as if they had met once and counted nothing.
        dyads = [_not_one(dyad, one == other) for dyad in dyads]
    most, n_codes = np.diff(first_item).max(initial=0), [dyad.max(initial=-1) + 1 for dyad in dyads]
    sizes = np.array([most, known.sum(), *n_codes], dtype=np.int64)
    numbered = (inside_one, inside_other, dense[items], first_item)
    return SharedPairs(new, *numbered, dyads[0], dyads[1], sizes)


NO_DYAD = -2


def _repeated(order: Ints, again: Ints) -> Bins:
    """Return codes of what recurs, -1 where it does not, given places in a sorted order.

    They are those of what is the same as what comes next.
    """
    if not len(again):
        return np.empty(0, dtype=np.int32)
    number = np.cumsum(np.diff(again, prepend=again[0]) > 1)
    code = np.full(len(order), -1, dtype=np.int32)
    code[order[again]] = code[order[again + 1]] = number
    return code


def _not_one(dyad: Bins, same: Flags) -> Bins:
    code = dyad if len(dyad) else np.full(len(same), -1, dtype=np.int32)
    return np.where(same, np.int32(NO_DYAD), code)


@kernel
def _number_items(
    starts: Ints, one: Ints, other: Ints, largest: int, inside_one: Bins, inside_other: Bins
) -> tuple[Ints, Ints]:
    """Give numbers to the items inside each query in the order in which they come."""
    items = np.empty(2 * len(one), dtype=np.int64)
    first_item = np.zeros(len(starts), dtype=np.int64)
    seen_in, number = np.full(largest, -1, dtype=np.int64), np.empty(largest, dtype=np.int64)
    n = 0
    for q in range(len(starts) - 1):
        first_item[q] = n
        for p in range(starts[q], starts[q + 1]):
            for side in range(2):
                item = other[p] if side else one[p]
                if seen_in[item] != q:
                    seen_in[item], number[item] = q, n - first_item[q]
                    items[n] = item
                    n += 1
                if side:
                    inside_other[p] = number[item]
                else:
                    inside_one[p] = number[item]
    first_item[len(starts) - 1] = n
    return items[:n].copy(), first_item


# Kinds of clusters over which pairs with counts c and numbers u are added up: Σc², Σcu and Σu².
NAIVE, QUERY, ITEMS, DYAD, ITEM_QUERY, DYAD_QUERY, N_KINDS = range(7)
# How many clusters there are: queries, items, items inside queries.
N_QUERIES, N_ITEMS, N_ITEM_QUERIES, N_NUMBERS = range(4)


class ClusterTotals(NamedTuple):
    """Sums over clusters under one labelling.

    Attributes
    ----------
    sums : float64 array (kind, 3)
        Σc², Σcu and Σu² by `NAIVE` and so on.
    sides : float64 array (2,)
        Σc² over items of the group, and over other items.
    numbers : int64 array
        `N_QUERIES` and so on.
    """

    sums: Floats
    sides: Floats
    numbers: Ints


def cross_pairs(label: Flags, one: Ints, other: Ints, d: Floats) -> tuple[Ints, Floats, Flags]:
    """Return which pairs have one member, their differences, and whether it is the first.

    A difference is the member's outcome less the other's.

    Parameters
    ----------
    label : bool array
    one, other : int64 arrays (pair,)
        Where the two labels of each pair are.
    d : float64 array (pair,)
        The first one's outcome less the other's.
    """
    # One more, because what is not kept is written too, and then written over.
    chosen, signed = np.empty(len(d) + 1, dtype=np.int64), np.empty(len(d) + 1)
    inside = np.empty(len(d) + 1, dtype=np.bool_)
    n = _cross(label, one, other, d, chosen, signed, inside)
    return chosen[:n], signed[:n], inside[:n]


def add_clusters(
    shared: SharedPairs, chosen: Ints, inside: Flags, u: Floats, count: Floats
) -> ClusterTotals:
    """Add up numbers of chosen pairs over clusters.

    Parameters
    ----------
    shared : SharedPairs
        Of all listed pairs.
    chosen : int64 array
        Some of them, ascending.
    inside : bool array (chosen,)
        Whether the first item of each is on the side of the group.
    u : float64 array (chosen,)
    count : float64 array (chosen,)
        What each counts; empty where each counts 1.
    """
    sums, sides = np.zeros((N_KINDS, 3)), np.zeros(2)
    numbers = np.zeros(N_NUMBERS, dtype=np.int64)
    _add(*shared, chosen, inside, u, count, sums, sides, numbers)
    return ClusterTotals(sums, sides, numbers)


@kernel
def _cross(
    label: Flags, one: Ints, other: Ints, d: Floats, chosen: Ints, signed: Floats, inside: Flags
) -> int:
    n = 0
    for p in range(len(d)):
        first = label[one[p]]
        # Written whether it is kept or not: a branch that nobody can foresee would cost more.
        chosen[n], inside[n] = p, first
        signed[n] = d[p] if first else -d[p]
        n += first != label[other[p]]
    return n


@inlined
def _add_dyads(of_dyad: Floats, sums: Floats, kind: int) -> None:
    for i in range(len(of_dyad)):
        c, total = of_dyad[i, 0], of_dyad[i, 1]
        sums[kind, 0] += c * c
        sums[kind, 1] += c * total
        sums[kind, 2] += total * total


@kernel
def _add(
    starts: Ints,
    one: Bins,
    other: Bins,
    items: Ints,
    first_item: Ints,
    dyad: Bins,
    dyad_query: Bins,
    sizes: Ints,
    chosen: Ints,
    inside: Flags,
    u: Floats,
    count: Floats,
    sums: Floats,
    sides: Floats,
    numbers: Ints,
) -> None:
    has_items, weighted = len(one) > 0, len(count) > 0
    has_dyads, has_dyads_of_query = len(dyad) > 0, len(dyad_query) > 0
    # Of an item: what it counts in the group, outside, its sum, and what it counts on both sides.
    here, of_item = np.zeros((sizes[0], 4)), np.zeros((sizes[1], 4))
    of_dyad, of_both = np.zeros((sizes[2], 2)), np.zeros((sizes[3], 2))
    k, n = 0, len(chosen)
    n_queries, n_both = 0, 0
    # Sums in numbers of their own: an array might be any other one, and is written each time.
    cc, cu, uu = 0.0, 0.0, 0.0
    cc_query, cu_query, uu_query = 0.0, 0.0, 0.0
    cc_both, cu_both, uu_both = 0.0, 0.0, 0.0
    # Of two items that meet once, and that meet once in their query.
    cc_dyad, cu_dyad, uu_dyad = 0.0, 0.0, 0.0
    cc_met, cu_met, uu_met = 0.0, 0.0, 0.0
    for q in range(len(starts) - 1):
        end = starts[q + 1]
        if k == n or chosen[k] >= end:
            continue
        c_query, u_query = 0.0, 0.0
        while k < n and chosen[k] < end:
            p, value = chosen[k], u[k]
            c = count[k] if weighted else 1.0
            c_query += c
            u_query += value
            cc += c * c
            cu += c * value
            uu += value * value
            if has_items:
                a, b = one[p], other[p]
                # A number and no branch: nobody can foresee which of the two it is.
                outside = 1 - np.int64(inside[k])
                here[a, outside] += c
                here[b, 1 - outside] += c
                here[a, 2] += value
                if a != b:
                    here[b, 2] += value
                else:
                    here[a, 3] += c
                if has_dyads:
                    e = dyad[p]
                    if e >= 0:
                        of_dyad[e, 0] += c
                        of_dyad[e, 1] += value
                    elif e != NO_DYAD:
                        cc_dyad += c * c
                        cu_dyad += c * value
                        uu_dyad += value * value
                if has_dyads_of_query:
                    e = dyad_query[p]
                    if e >= 0:
                        of_both[e, 0] += c
                        of_both[e, 1] += value
                    elif e != NO_DYAD:
                        cc_met += c * c
                        cu_met += c * value
                        uu_met += value * value
            k += 1
        n_queries += 1
        cc_query += c_query * c_query
        cu_query += c_query * u_query
        uu_query += u_query * u_query
        if has_items:
            first = first_item[q]
            for i in range(first_item[q + 1] - first):
                c_in, c_out, total, twice = here[i, 0], here[i, 1], here[i, 2], here[i, 3]
                c = c_in + c_out - twice
                n_both += c != 0.0
                cc_both += c * c
                cu_both += c * total
                uu_both += total * total
                item = items[first + i]
                of_item[item, 0] += c_in
                of_item[item, 1] += c_out
                of_item[item, 2] += total
                of_item[item, 3] += twice
                for e in range(4):
                    here[i, e] = 0.0
    n_items = 0
    for i in range(len(of_item)):
        c, total = of_item[i, 0] + of_item[i, 1] - of_item[i, 3], of_item[i, 2]
        n_items += c != 0.0
        sums[ITEMS, 0] += c * c
        sums[ITEMS, 1] += c * total
        sums[ITEMS, 2] += total * total
        for side in range(2):
            sides[side] += of_item[i, side] ** 2
    sums[NAIVE, 0], sums[NAIVE, 1], sums[NAIVE, 2] = cc, cu, uu
    sums[QUERY, 0], sums[QUERY, 1], sums[QUERY, 2] = cc_query, cu_query, uu_query
    sums[ITEM_QUERY, 0], sums[ITEM_QUERY, 1], sums[ITEM_QUERY, 2] = cc_both, cu_both, uu_both
    numbers[N_QUERIES], numbers[N_ITEMS], numbers[N_ITEM_QUERIES] = n_queries, n_items, n_both
    if not has_dyads:  # each pair is a dyad of its own
        cc_dyad, cu_dyad, uu_dyad = cc, cu, uu
    if not has_dyads_of_query:
        cc_met, cu_met, uu_met = cc, cu, uu
    sums[DYAD, 0], sums[DYAD, 1], sums[DYAD, 2] = cc_dyad, cu_dyad, uu_dyad
    sums[DYAD_QUERY, 0], sums[DYAD_QUERY, 1], sums[DYAD_QUERY, 2] = cc_met, cu_met, uu_met
    _add_dyads(of_dyad, sums, DYAD)
    _add_dyads(of_both, sums, DYAD_QUERY)
