"""Sums over items and over dyads of items, across queries: what item and union variance need.

An item's pairs lie all over the log, so its sums cannot be closed when a query ends. The pairs of
one group are listed, sorted by item (then by the two items together), booked and thrown away. A
group with more pairs than fit is listed several times, each time for a share of the items. The
pairs of a list that has too many of them are not listed but summed by item first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.arrays import Flags, Floats, Ints
from mpc_lab.pairing.bits import ONE
from mpc_lab.pairing.booking import (
    CC,
    FIRST,
    INSIDE,
    N_SUMS,
    OUTSIDE,
    UNIT_CC,
    UNIT_UU,
    UU,
    book_cluster,
    close,
    close_sides,
    hold,
)
from mpc_lab.pairing.compiling import kernel
from mpc_lab.pairing.entries import Entries, joined, list_entries, neighbour_entries
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.long_items import book_long_lists, long_lists
from mpc_lab.pairing.moments import Quadratic
from mpc_lab.pairing.radix import stable_order
from mpc_lab.pairing.rows import pair_rows

PAIRS_AT_ONCE = 1 << 22
_HASH = 0x9E3779B97F4A7C15 - (1 << 64)  # an odd number with its bits well mixed


class ItemSums(NamedTuple):
    """Sums of one group under one pairing mode, by threshold.

    Attributes
    ----------
    items : int64 array (threshold,)
        Items with a pair.
    inside, outside : float64 arrays (threshold,)
        Σc² over the items on the side of the group, and over those on the other side.
    by : dict of Quadratic
        ``"item"``, ``"dyad"``, and both inside a unit: ``"item_query"``, ``"dyad_query"``.
    dyads_once : bool
        Whether dyads that may occur again were taken as occurring once, in lists with too many
        pairs to see which two items they are of.
    """

    items: Ints
    inside: Floats
    outside: Floats
    by: dict[str, Quadratic]
    dyads_once: bool = False


def sums_of_group(
    log: Log, group: int, edges: Floats, center: float, counts: list[int]
) -> list[ItemSums]:
    """Sum over the items and dyads of one group, under each mode.

    Parameters
    ----------
    log : Log
    group : int
        A group of the log's masks.
    edges : float64 array (threshold,)
        Ascending.
    center : float
        Subtracted from each difference.
    counts : list of int
        How many pairs ``matched``, ``mirrored`` and, if it is wanted, ``adjacent`` have.
    """
    word, bit = divmod(group, 64)
    both = (counts[0], counts[1])
    lists = long_lists(log, word, bit, edges)
    ordinary = (both[0] - lists.pairs[0], both[1] - lists.pairs[1])
    shares = -(-max(*ordinary, lists.recurring * len(edges), 1) // PAIRS_AT_ONCE)
    items = np.zeros((len(counts), len(edges), N_SUMS))
    dyads = np.zeros((len(counts), len(edges), N_SUMS))
    for share in range(shares):
        listed = list_entries(log, word, bit, edges, center, ordinary, lists.flags, share, shares)
        if lists.any:
            added = book_long_lists(
                log, word, bit, edges, center, lists, items[:2], dyads[:2], share, shares
            )
            listed = [
                (joined(of_items, more), of_dyads)
                for (of_items, of_dyads), more in zip(listed, added, strict=True)
            ]
        for mode, (of_items, of_dyads) in enumerate(listed):
            book_entries(of_items, of_dyads, items[mode], dyads[mode])
    if len(counts) == 3:
        member = np.asarray(log.masks[word] & (ONE << np.uint64(bit)) != 0)
        i, j = pair_rows(log, member, "adjacent", float(edges[-1]))
        book_entries(*neighbour_entries(log, i, j, edges, center), items[2], dyads[2])
    once = (lists.recurring > 0, lists.recurring > 0, False)
    return [_cumulated(*sums) for sums in zip(items, dyads, once, strict=False)]


def book_entries(of_items: Entries, of_dyads: Entries, items: Floats, dyads: Floats) -> None:
    """Add to float64 arrays (bin, sum) what items, and what dyads, change in each bin."""
    _book_clusters(*of_items.taken(stable_order(of_items.key)), items)
    # Most dyads occur once: only those that may occur again are worth sorting.
    again = _may_repeat(of_dyads.key, _hash_bits(len(of_dyads.key)))
    _book_single(of_dyads.bin, of_dyads.x, again, dyads)
    few = of_dyads.taken(again)
    _book_clusters(*few.taken(stable_order(few.key)), dyads)


def _cumulated(items: Floats, dyads: Floats, dyads_once: bool) -> ItemSums:
    items, dyads = np.cumsum(items, axis=0), np.cumsum(dyads, axis=0)
    return ItemSums(
        items=items[:, FIRST].astype(np.int64),
        inside=items[:, INSIDE],
        outside=items[:, OUTSIDE],
        by={
            "item": Quadratic(*items[:, CC : UU + 1].T),
            "item_query": Quadratic(*items[:, UNIT_CC : UNIT_UU + 1].T),
            "dyad": Quadratic(*dyads[:, CC : UU + 1].T),
            "dyad_query": Quadratic(*dyads[:, UNIT_CC : UNIT_UU + 1].T),
        },
        dyads_once=dyads_once,
    )


def _hash_bits(n: int) -> int:
    """Return the size of a table in which few of n keys share a bucket by chance."""
    return min(max((8 * n).bit_length(), 12), 25)


@kernel
def _may_repeat(key: Ints, bits: int) -> Flags:
    """Return which keys share a bucket with another entry."""
    bucket = np.empty(len(key), dtype=np.int64)
    seen = np.zeros(1 << bits, dtype=np.uint8)
    for e in range(len(key)):
        bucket[e] = ((key[e] * _HASH) >> 32) & ((1 << bits) - 1)
        if seen[bucket[e]] < 2:
            seen[bucket[e]] += 1
    again = np.empty(len(key), dtype=np.bool_)
    for e in range(len(key)):
        again[e] = seen[bucket[e]] > 1
    return again


@kernel
def _book_single(bins: Ints, x: Floats, skip: Flags, sums: Floats) -> None:
    """Book the entries that are a cluster of their own."""
    for e in range(len(bins)):
        if not skip[e]:
            book_cluster(bins[e], 1.0, x[e], CC, sums)
            book_cluster(bins[e], 1.0, x[e], UNIT_CC, sums)


@kernel
def _book_clusters(
    key: Ints,
    unit: Ints,
    bins: Ints,
    outside: Flags,
    x: Floats,
    pairs: Floats,
    sums: Floats,
) -> None:
    """Add what runs of one key, and of one key and unit, change at each bin."""
    n_bins = len(sums)
    words = (n_bins + 63) // 64
    wide, wide_bins = np.zeros((n_bins, 2)), np.zeros(words, dtype=np.uint64)
    narrow, narrow_bins = np.zeros((n_bins, 2)), np.zeros(words, dtype=np.uint64)
    side = np.zeros((n_bins, 2))
    weighted = len(pairs) > 0
    start = 0
    while start < len(key):
        end = start + 1
        while end < len(key) and key[end] == key[start]:
            end += 1
        if end == start + 1:
            b = bins[start]
            c = pairs[start] if weighted else 1.0
            sums[b, FIRST] += 1.0
            sums[b, OUTSIDE if outside[start] else INSIDE] += c * c
            book_cluster(b, c, x[start], CC, sums)
            book_cluster(b, c, x[start], UNIT_CC, sums)
            start = end
            continue
        first = start
        for e in range(start, end):
            b = bins[e]
            c = pairs[e] if weighted else 1.0
            hold(wide, wide_bins, b, c, x[e])
            side[b, 1 if outside[e] else 0] += c
            if e + 1 < end and unit[e + 1] == unit[e]:
                continue
            if first == e:
                book_cluster(b, c, x[e], UNIT_CC, sums)
            else:
                for k in range(first, e + 1):
                    hold(narrow, narrow_bins, bins[k], pairs[k] if weighted else 1.0, x[k])
                close(narrow, narrow_bins, UNIT_CC, sums)
            first = e + 1
        close_sides(side, wide_bins, sums)
        close(wide, wide_bins, CC, sums)
        start = end
