"""Book what items and dyads change in sums of squares, from their entries in each row of sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.entries import (
    CC,
    CU,
    FIRST,
    INSIDE,
    OF_BOTH,
    OF_GROUP,
    OF_OTHER,
    OUTSIDE,
    UNIT_CC,
    UNIT_CU,
    UNIT_UU,
    UNSEEN,
    UU,
    Entries,
    book_cluster,
    close,
    close_sides,
    hold,
)
from mpc_lab.pairing.kernels import ONE, inlined, kernel, lowest, stable_order
from mpc_lab.pairing.leverage import Whole, weigh_held, weigh_run, weigh_sides_held
from mpc_lab.pairing.modes import SumRows
from mpc_lab.pairing.moments import Quadratic, fold_rows
from mpc_lab.vocabulary import Bytes, Flags, Floats, Ints, Masks

# The joint sums of a mode of two sides, whose rows are below, above and tied. First the number of
# clusters, each counted in its first bin. Then Σc·c′, Σc·U′, ΣU·c′ and ΣU·U′ for each two rows,
# over clusters and over clusters inside a unit. Last Σc·c′ for each two rows, on the side of the
# group and on the other side.
BETWEEN_FIRST, PRODUCTS = range(2)
BETWEEN_SQUARES = PRODUCTS + 24
N_BETWEEN = BETWEEN_SQUARES + 6
UNIT_PRODUCTS = slice(PRODUCTS + 12, BETWEEN_SQUARES)
TWO_ROWS = ((0, 1), (0, 2), (1, 2))
_NOT_WEIGHED = (np.zeros(0), np.zeros(0), np.zeros(0))
_NO_SIDES = (np.zeros(0), np.zeros((2, 0)), np.zeros((2, 0)), np.zeros(0))
_HASH = 0x9E3779B97F4A7C15 - (1 << 64)  # an odd number with its bits well mixed


def book_rows_of_entries(
    listed: list[tuple[Entries, Entries]],
    twin: Sequence[int],
    sums: Floats,
    between: Floats,
    whole: Whole | None = None,
    weighed: Floats | None = None,
) -> None:
    """Book the entries of each row, and what the rows of a mode of two sides do together.

    Parameters
    ----------
    listed : list of (Entries, Entries)
        The entries of items and of dyads, for each row of sums.
    twin : sequence of int
        The rows of a mode of two sides.
    sums, between : float64 arrays
        Added to.
    whole, weighed : Whole and float64 array (row, bin), optional
        What single items are compared with, and what they change: added to.
    """
    for k, (of_items, of_dyads) in enumerate(listed):
        if k not in twin:
            items = of_items.take(stable_order(of_items.key))
            book_clusters(*items, sums[k, 0], *of_row(whole, weighed, k))
            _book_dyads(of_dyads, sums[k, 1])
    if not twin:
        return
    for kind in range(2):
        entries = [listed[row][kind] for row in twin]
        if kind:
            # Most dyads occur once, and in one row: only the others are worth sorting.
            keys = np.concatenate([rows.key for rows in entries])
            ends = np.cumsum([len(rows.key) for rows in entries])[:-1]
            again = np.split(may_repeat(keys, hash_bits(len(keys))), ends)
            for row, rows, may in zip(twin, entries, again, strict=True):
                book_single(*rows[2:], may, sums[row, kind], *_NOT_WEIGHED)
            entries = [rows.take(may) for rows, may in zip(entries, again, strict=True)]
        entries = [rows.take(stable_order(rows.key)) for rows in entries]
        for row, rows in zip(twin, entries, strict=True):
            weighing = _NOT_WEIGHED if kind else of_row(whole, weighed, row)
            book_clusters(*rows, sums[row, kind], *weighing)
        book_together(entries, between[kind], *(() if kind else (whole, weighed)))


def of_row(whole: Whole | None, weighed: Floats | None, row: int) -> tuple[Floats, Floats, Floats]:
    """Return the totals for weighing items of one row of sums, and the array to add results to."""
    if whole is None or weighed is None or not whole.weight[row].any():
        return _NOT_WEIGHED
    return whole.weight[row], whole.mean[row], weighed[row]


def book_together(
    rows: list[Entries],
    between: Floats,
    whole: Whole | None = None,
    weighed: Floats | None = None,
) -> None:
    """Book what clusters have in several rows; each row is sorted by key, then by unit."""
    starts = np.concatenate([[0], np.cumsum([len(row.key) for row in rows])]).astype(np.int64)
    unit_weights = [row._replace(pairs=row.weights) for row in rows]
    joined = Entries(*(np.concatenate(column) for column in zip(*unit_weights, strict=True)))
    weighing = _NO_SIDES
    if whole is not None and weighed is not None and len(whole.pairs):
        weighing = (*whole[2:], weighed[-1])
    _book_between(starts, *joined, between, *weighing)


def _book_dyads(of_dyads: Entries, dyads: Floats) -> None:
    # Most dyads occur once: only those that may occur again are worth sorting.
    again = may_repeat(of_dyads.key, hash_bits(len(of_dyads.key)))
    book_single(*of_dyads[2:], again, dyads, *_NOT_WEIGHED)
    few = of_dyads.take(again)
    book_clusters(*few.take(stable_order(few.key)), dyads, *_NOT_WEIGHED)


def hash_bits(n: int) -> int:
    """Return the size of a table in which few of n keys share a bucket by chance."""
    return min(max((8 * n).bit_length(), 12), 25)


@kernel
def may_repeat(key: Ints, bits: int) -> Flags:
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
def book_single(
    bins: Ints,
    outside: Bytes,
    x: Floats,
    pairs: Floats,
    skip: Flags,
    sums: Floats,
    weight: Floats,
    mean: Floats,
    weighed: Floats,
) -> None:
    """Book the entries that are a cluster of their own."""
    weighted = len(pairs) > 0
    for e in range(len(bins)):
        if not skip[e]:
            c = pairs[e] if weighted else 1.0
            _book_alone(bins[e], outside[e], c, x[e], sums)
            weigh_run(bins[e], len(weight), c, x[e], weight, mean, weighed)


@inlined
def _book_alone(b: int, outside: int, c: float, x: float, sums: Floats) -> None:
    """Book an entry that is a cluster of its own."""
    sums[b, FIRST] += 1.0
    if outside in (OF_GROUP, OF_BOTH):
        sums[b, INSIDE] += c * c
    if outside in (OF_OTHER, OF_BOTH):
        sums[b, OUTSIDE] += c * c
    book_cluster(b, c, x, CC, sums)
    book_cluster(b, c, x, UNIT_CC, sums)


@inlined
def _add_to_sides(side: Floats, b: int, outside: int, c: float) -> None:
    """Count pairs on the side, or sides, that an entry is seen from."""
    if outside in (OF_GROUP, OF_BOTH):
        side[b, 0] += c
    if outside in (OF_OTHER, OF_BOTH):
        side[b, 1] += c


@kernel
def book_clusters(
    key: Ints,
    unit: Ints,
    bins: Ints,
    outside: Bytes,
    x: Floats,
    pairs: Floats,
    sums: Floats,
    weight: Floats,
    mean: Floats,
    weighed: Floats,
) -> None:
    """Add what runs of one key, and of one key and unit, change at each bin.

    Parameters
    ----------
    weight, mean, weighed : float64 arrays (bin,)
        See `Whole`: what single clusters change is added to the last; empty where not wanted.
    """
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
            c = pairs[start] if weighted else 1.0
            _book_alone(bins[start], outside[start], c, x[start], sums)
            weigh_run(bins[start], len(weight), c, x[start], weight, mean, weighed)
            start = end
            continue
        first = start
        for e in range(start, end):
            b = bins[e]
            c = pairs[e] if weighted else 1.0
            hold(wide, wide_bins, b, c, x[e])
            _add_to_sides(side, b, outside[e], c)
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
        if len(weight):
            weigh_held(wide, wide_bins, weight, mean, weighed)
        close(wide, wide_bins, CC, sums)
        start = end


@kernel
def _book_between(
    starts: Ints,
    key: Ints,
    unit: Ints,
    bins: Ints,
    outside: Bytes,
    x: Floats,
    pairs: Floats,
    sums: Floats,
    all_pairs: Floats,
    side_weight: Floats,
    side_mean: Floats,
    weighed: Floats,
) -> None:
    """Add what clusters, and clusters inside a unit, change in the products of two rows.

    Parameters
    ----------
    starts : int64 array (4,)
        Where the entries of the rows below, above and tied start; each sorted by key and unit.
    all_pairs, side_weight, side_mean, weighed : float64 arrays
        See `Whole`: what single clusters change is added to the last; empty where not wanted.
    """
    n_bins = len(sums)
    held, squares = np.zeros((3, n_bins, 2)), np.zeros((3, n_bins, 2))
    held_bins = np.zeros((n_bins + 63) // 64, dtype=np.uint64)
    at, end, first, last = (
        starts[:3].copy(),
        starts[:3].copy(),
        starts[:3].copy(),
        starts[:3].copy(),
    )
    while True:
        lowest_key, some = np.int64(0), False
        for row in range(3):
            if at[row] < starts[row + 1] and (not some or key[at[row]] < lowest_key):
                lowest_key, some = key[at[row]], True
        if not some:
            return
        rows, fresh = 0, n_bins
        for row in range(3):
            end[row] = at[row]
            while end[row] < starts[row + 1] and key[end[row]] == lowest_key:
                fresh = min(fresh, bins[end[row]])
                end[row] += 1
            rows += end[row] > at[row]
        sums[fresh, BETWEEN_FIRST] += 1.0
        if rows == 1 and len(all_pairs):
            for row in range(3):
                for e in range(at[row], end[row]):
                    hold(held[row], held_bins, bins[e], pairs[e], x[e])
            weigh_sides_held(held, fresh, all_pairs, side_weight, side_mean, weighed)
            _wipe(held, held_bins)
        if rows > 1:
            for row in range(3):
                for e in range(at[row], end[row]):
                    hold(held[row], held_bins, bins[e], pairs[e], x[e])
                    _add_to_sides(squares[row], bins[e], outside[e], pairs[e])
            if len(all_pairs):
                weigh_sides_held(held, fresh, all_pairs, side_weight, side_mean, weighed)
            _close_squares(squares, held_bins, sums)
            _close_products(held, held_bins, PRODUCTS, sums)
            # The same for each unit that the cluster has entries of two rows in.
            for row in range(3):
                first[row] = at[row]
            while True:
                lowest_unit, some = np.int64(0), False
                for row in range(3):
                    if first[row] < end[row] and (not some or unit[first[row]] < lowest_unit):
                        lowest_unit, some = unit[first[row]], True
                if not some:
                    break
                rows = 0
                for row in range(3):
                    last[row] = first[row]
                    while last[row] < end[row] and unit[last[row]] == lowest_unit:
                        last[row] += 1
                    rows += last[row] > first[row]
                if rows > 1:
                    for row in range(3):
                        for e in range(first[row], last[row]):
                            hold(held[row], held_bins, bins[e], pairs[e], x[e])
                    _close_products(held, held_bins, PRODUCTS + 12, sums)
                for row in range(3):
                    first[row] = last[row]
        for row in range(3):
            at[row] = end[row]


@inlined
def _wipe(held: Floats, held_bins: Masks) -> None:
    for word in range(len(held_bins)):
        bits = held_bins[word]
        held_bins[word] = np.uint64(0)
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            held[:, b] = 0.0


@inlined
def _close_squares(squares: Floats, held_bins: Masks, sums: Floats) -> None:
    """Book the changes of Σc·c′ of two rows, for items inside the group and for those outside."""
    total = np.zeros((3, 2))
    for word in range(len(held_bins)):
        bits = held_bins[word]
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            for side in range(2):
                for k in range(3):
                    one, two = 1 if k == 2 else 0, 1 if k == 0 else 2
                    p, p2 = total[one, side], total[two, side]
                    c, c2 = squares[one, b, side], squares[two, b, side]
                    sums[b, BETWEEN_SQUARES + 3 * side + k] += (p + c) * (p2 + c2) - p * p2
                for row in range(3):
                    total[row, side] += squares[row, b, side]
                    squares[row, b, side] = 0.0


@inlined
def _close_products(held: Floats, held_bins: Masks, first: int, sums: Floats) -> None:
    """Book the changes of Σc·c′, Σc·U′, ΣU·c′, ΣU·U′ of two rows, and wipe what is held."""
    total = np.zeros((3, 2))
    for word in range(len(held_bins)):
        bits = held_bins[word]
        held_bins[word] = np.uint64(0)
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            for k in range(3):
                one, two = 1 if k == 2 else 0, 1 if k == 0 else 2
                at = first + 4 * k
                for m in range(2):
                    for n in range(2):
                        p, p2 = total[one, m], total[two, n]
                        c, c2 = held[one, b, m], held[two, b, n]
                        sums[b, at + 2 * m + n] += (p + c) * (p2 + c2) - p * p2
            for row in range(3):
                for m in range(2):
                    total[row, m] += held[row, b, m]
                    held[row, b, m] = 0.0


# ---- from what was booked to the sums of modes


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
    sides : dict of float64 arrays (3, 4, threshold)
        Under a mode of two sides, the products of either side in place of `by`.
    side_squares : dict of float64 arrays (3, threshold)
        Likewise, in place of `inside` and `outside`.
    cr3 : float64 array (threshold,), optional
        See `mpc_lab.pairing.moments.Moments`, over items.
    """

    items: Ints
    inside: Floats
    outside: Floats
    by: dict[str, Quadratic]
    dyads_once: bool = False
    sides: Mapping[str, Floats] = MappingProxyType({})
    side_squares: Mapping[str, Floats] = MappingProxyType({})
    cr3: Floats | None = None


def join_thresholds(parts: Sequence[ItemSums]) -> ItemSums:
    """Join the sums of one cell at some thresholds after the other."""

    def named(values: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
        return {
            name: np.concatenate([of_part[name] for of_part in values], axis=-1)
            for name in values[0]
        }

    squares = [
        {name: np.stack([sums.cc, sums.cu, sums.uu]) for name, sums in part.by.items()}
        for part in parts
    ]
    corrected = [part.cr3 for part in parts if part.cr3 is not None]
    return ItemSums(
        items=np.concatenate([part.items for part in parts]),
        inside=np.concatenate([part.inside for part in parts]),
        outside=np.concatenate([part.outside for part in parts]),
        by={name: Quadratic(*sums) for name, sums in named(squares).items()},
        dyads_once=any(part.dyads_once for part in parts),
        sides=named([part.sides for part in parts]),
        side_squares=named([part.side_squares for part in parts]),
        cr3=np.concatenate(corrected) if corrected else None,
    )


def sums_of_modes(
    rows: SumRows, sums: Floats, between: Floats, whole: Whole, weighed: Floats
) -> list[ItemSums]:
    """Return the sums of each mode, from those of rows (row, 2, bin, sum) and of two rows."""
    of_rows = [_cumulate(*of_row) for of_row in sums]
    found = [of_rows[row] for row in rows.of_mode]
    if rows.twin:
        parts = [of_rows[row] for row in rows.twin]
        found[rows.of_mode.index(-1)] = _two_sided(parts, np.cumsum(between, axis=1))
    changes = whole.by_mode(rows, weighed)
    return [of_mode._replace(cr3=cr3) for of_mode, cr3 in zip(found, changes, strict=True)]


def _two_sided(rows: list[ItemSums], between: Floats) -> ItemSums:
    """Return the sums of a mode of two sides, from those of the rows below, above and tied."""
    sides = {}
    for name in rows[0].by:
        kind, first = int(name.startswith("dyad")), PRODUCTS + 12 * name.endswith("_query")
        own = {
            (k, k): np.stack([row.by[name].cc, row.by[name].cu, row.by[name].cu, row.by[name].uu])
            for k, row in enumerate(rows)
        }
        products = between[kind, :, first : first + 12].T.reshape(3, 4, -1)
        sides[name] = fold_rows(own | dict(zip(TWO_ROWS, products, strict=True)))
    squares = {}
    for k, name in enumerate(("inside", "outside")):
        shared = between[0, :, BETWEEN_SQUARES + 3 * k : BETWEEN_SQUARES + 3 * k + 3].T
        # Only Σc·c′ is wanted, but all four sums of a product are folded in the same way.
        own = {(m, m): np.stack([getattr(row, name)] * 4) for m, row in enumerate(rows)}
        both = {two: np.stack([sums] * 4) for two, sums in zip(TWO_ROWS, shared, strict=True)}
        squares[name] = fold_rows(own | both)[:, 0]
    nothing = {name: Quadratic(*np.zeros((3, between.shape[1]))) for name in rows[0].by}
    return ItemSums(
        items=between[0, :, BETWEEN_FIRST].astype(np.int64),
        inside=squares["inside"][0],
        outside=squares["outside"][0],
        by=nothing,
        dyads_once=any(row.dyads_once for row in rows),
        sides=sides,
        side_squares=squares,
    )


def _cumulate(items: Floats, dyads: Floats) -> ItemSums:
    items, dyads = np.cumsum(items, axis=0), np.cumsum(dyads, axis=0)
    across, within = [CC, CU, UU], [UNIT_CC, UNIT_CU, UNIT_UU]
    return ItemSums(
        items=items[:, FIRST].astype(np.int64),
        inside=items[:, INSIDE],
        outside=items[:, OUTSIDE],
        by={
            "item": Quadratic(*items[:, across].T),
            "item_query": Quadratic(*items[:, within].T),
            "dyad": Quadratic(*dyads[:, across].T),
            "dyad_query": Quadratic(*dyads[:, within].T),
        },
        dyads_once=bool(dyads[-1, UNSEEN] > 0),
    )
