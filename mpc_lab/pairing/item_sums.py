"""Sums over items and over dyads of items, across queries: what item and union variance need.

An item's pairs lie all over the log, so its sums cannot be closed when a query ends. The pairs of
one group are listed, sorted by item (then by the two items together), booked and thrown away. A
group with more pairs than fit is listed several times, each time for a share of the items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.arrays import Flags, Floats, Ints, Masks
from mpc_lab.pairing.bits import ONE, lowest
from mpc_lab.pairing.compiling import inlined, kernel
from mpc_lab.pairing.entries import Entries, list_entries, neighbour_entries
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.moments import Quadratic
from mpc_lab.pairing.radix import stable_order
from mpc_lab.pairing.rows import pair_rows

PAIRS_AT_ONCE = 1 << 22
_FIRST, _INSIDE, _OUTSIDE, _CC, _CU, _UU, _UNIT_CC, _UNIT_CU, _UNIT_UU = range(9)
_N_SUMS = 9
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
    """

    items: Ints
    inside: Floats
    outside: Floats
    by: dict[str, Quadratic]


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
    shares = -(-max(*both, 1) // PAIRS_AT_ONCE)
    items = np.zeros((len(counts), len(edges), _N_SUMS))
    dyads = np.zeros((len(counts), len(edges), _N_SUMS))
    for share in range(shares):
        listed = list_entries(log, word, bit, edges, center, both, share, shares)
        for mode, (of_items, of_dyads) in enumerate(listed):
            _add(of_items, of_dyads, items[mode], dyads[mode])
    if len(counts) == 3:
        member = np.asarray(log.masks[word] & (ONE << np.uint64(bit)) != 0)
        i, j = pair_rows(log, member, "adjacent", float(edges[-1]))
        _add(*neighbour_entries(log, i, j, edges, center), items[2], dyads[2])
    return [_cumulated(*sums) for sums in zip(items, dyads, strict=True)]


def _add(of_items: Entries, of_dyads: Entries, items: Floats, dyads: Floats) -> None:
    _book_clusters(*of_items.taken(stable_order(of_items.key)), items)
    # Most dyads occur once: only those that may occur again are worth sorting.
    again = _may_repeat(of_dyads.key, _hash_bits(len(of_dyads.key)))
    _book_single(of_dyads.bin, of_dyads.x, again, dyads)
    few = of_dyads.taken(again)
    _book_clusters(*few.taken(stable_order(few.key)), dyads)


def _cumulated(items: Floats, dyads: Floats) -> ItemSums:
    items, dyads = np.cumsum(items, axis=0), np.cumsum(dyads, axis=0)
    return ItemSums(
        items=items[:, _FIRST].astype(np.int64),
        inside=items[:, _INSIDE],
        outside=items[:, _OUTSIDE],
        by={
            "item": Quadratic(*items[:, _CC : _UU + 1].T),
            "item_query": Quadratic(*items[:, _UNIT_CC : _UNIT_UU + 1].T),
            "dyad": Quadratic(*dyads[:, _CC : _UU + 1].T),
            "dyad_query": Quadratic(*dyads[:, _UNIT_CC : _UNIT_UU + 1].T),
        },
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
            _book_one(bins[e], x[e], _CC, sums)
            _book_one(bins[e], x[e], _UNIT_CC, sums)


@inlined
def _book_one(b: int, x: float, at: int, sums: Floats) -> None:
    sums[b, at] += 1.0
    sums[b, at + 1] += x
    sums[b, at + 2] += x * x


@kernel
def _book_clusters(
    key: Ints, unit: Ints, bins: Ints, outside: Flags, x: Floats, sums: Floats
) -> None:
    """Add what runs of one key, and of one key and unit, change at each bin."""
    n_bins = len(sums)
    words = (n_bins + 63) // 64
    wide, wide_bins = np.zeros((n_bins, 2)), np.zeros(words, dtype=np.uint64)
    narrow, narrow_bins = np.zeros((n_bins, 2)), np.zeros(words, dtype=np.uint64)
    side = np.zeros((n_bins, 2))
    start = 0
    while start < len(key):
        end = start + 1
        while end < len(key) and key[end] == key[start]:
            end += 1
        if end == start + 1:
            b = bins[start]
            sums[b, _FIRST] += 1.0
            sums[b, _OUTSIDE if outside[start] else _INSIDE] += 1.0
            _book_one(b, x[start], _CC, sums)
            _book_one(b, x[start], _UNIT_CC, sums)
            start = end
            continue
        first = start
        for e in range(start, end):
            b = bins[e]
            _hold(wide, wide_bins, b, x[e])
            side[b, 1 if outside[e] else 0] += 1.0
            if e + 1 < end and unit[e + 1] == unit[e]:
                continue
            if first == e:
                _book_one(b, x[e], _UNIT_CC, sums)
            else:
                for k in range(first, e + 1):
                    _hold(narrow, narrow_bins, bins[k], x[k])
                _close(narrow, narrow_bins, _UNIT_CC, sums)
            first = e + 1
        _close_sides(side, wide_bins, sums)
        _close(wide, wide_bins, _CC, sums)
        start = end


@inlined
def _hold(held: Floats, held_bins: Masks, b: int, x: float) -> None:
    held[b, 0] += 1.0
    held[b, 1] += x
    held_bins[b >> 6] |= ONE << np.uint64(b & 63)


@inlined
def _close(held: Floats, held_bins: Masks, at: int, sums: Floats) -> None:
    """Book the changes of Σc², ΣcU and ΣU² that a cluster makes, and wipe what is held of it."""
    pairs, total = 0.0, 0.0
    for word in range(len(held_bins)):
        bits = held_bins[word]
        held_bins[word] = np.uint64(0)
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            c, u = held[b, 0], held[b, 1]
            held[b, 0] = 0.0
            held[b, 1] = 0.0
            sums[b, at] += c * (2 * pairs + c)
            sums[b, at + 1] += pairs * u + c * total + c * u
            sums[b, at + 2] += u * (2 * total + u)
            pairs, total = pairs + c, total + u


@inlined
def _close_sides(side: Floats, bins: Masks, sums: Floats) -> None:
    """Book a cluster's first bin and the changes of Σc² on either side."""
    inside, outside, fresh = 0.0, 0.0, 1.0
    for word in range(len(bins)):
        bits = bins[word]
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            sums[b, _FIRST] += fresh
            sums[b, _INSIDE] += side[b, 0] * (2 * inside + side[b, 0])
            sums[b, _OUTSIDE] += side[b, 1] * (2 * outside + side[b, 1])
            inside, outside, fresh = inside + side[b, 0], outside + side[b, 1], 0.0
            side[b, 0] = 0.0
            side[b, 1] = 0.0
