"""Sums over items and over dyads of items, across queries: what item and union variance need.

An item's pairs lie all over a log, and in other logs too, so its sums cannot be closed when a query
ends. There is one way to sum for all: the pairs of a group are seen from items and from dyads
(`entries`); what one key has is brought together, and squared. Where a log is in memory that is a
sort. Where it is in parts, each part sends its `Rows`, which name items as they are called
everywhere, to the bucket of their key. Where audits are pooled, rows come from their files.

A group with more pairs than fit is listed several times, each time for a share of the keys. The
pairs of a list that has too many of them are not listed but summed by item first (`long_lists`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from mpc_lab.pairing.entries import (
    CC,
    CU,
    FIRST,
    INSIDE,
    N_SUMS,
    OUTSIDE,
    UNIT_CC,
    UNIT_CU,
    UNIT_UU,
    UNSEEN,
    UU,
    Entries,
    GroupLog,
    book_cluster,
    close,
    close_sides,
    hold,
    join_entries,
    list_entries,
)
from mpc_lab.pairing.kernels import ONE, inlined, kernel, stable_order
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.long_lists import LongLists, book_long_lists, find_long_lists
from mpc_lab.pairing.modes import Layout
from mpc_lab.pairing.moments import Moments, Quadratic
from mpc_lab.pairing.sweep import gather
from mpc_lab.pairing.walk import PlainWalk
from mpc_lab.vocabulary import Flags, Floats, Ints, Masks, Mode

# Pairs of a group that are listed at a time where its log is in memory.
PAIRS_AT_ONCE = 1 << 22
# Every two items that met are kept, one group at a time.
MOST_KEPT = 50_000_000
# A table of all items, sides and bins is worth it where it has so many places for an entry.
_PLACES_FOR_AN_ENTRY = 4
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


# ---- a log in memory


def sum_items(log: Log, group: int, moments: Moments) -> list[ItemSums]:
    """Sum over the items and dyads of one group of a log, under each mode of moments."""
    here = group_log(log, group, moments, group)
    counts = moments.pairs[:, group, -1].tolist()
    lists = find_long_lists(here, [mode.side for mode in moments.modes])
    ordinary = [count - inside for count, inside in zip(counts, lists.pairs, strict=True)]
    shares = -(-max(*ordinary, lists.recurring * len(here.edges), 1) // PAIRS_AT_ONCE)
    sums = np.zeros((len(counts), 2, len(here.edges), N_SUMS))
    for share in range(shares):
        listed = _list_all(here, moments.modes, ordinary, lists, sums, share, shares)
        for (of_items, of_dyads), (items, dyads) in zip(listed, sums, strict=True):
            book_entries(of_items, of_dyads, items, dyads)
    if lists.recurring:
        sums[:, 1, 0, UNSEEN] = lists.pairs
    return [_cumulate(items, dyads) for items, dyads in sums]


def group_log(log: Log, group: int, moments: Moments, row: int) -> GroupLog:
    """Return a group of a log with the bins that a row of moments has."""
    return GroupLog(log, group, moments.edges[row], float(moments.center[row]))


def _list_all(
    group: GroupLog,
    modes: Sequence[Mode],
    ordinary: Sequence[int],
    lists: LongLists,
    sums: Floats,
    share: int = 0,
    shares: int = 1,
) -> list[tuple[Entries, Entries]]:
    """List the pairs of ordinary lists, and add what long lists have; book what they close."""
    sides = [mode.side for mode in modes]
    listed = list_entries(group, sides, ordinary, lists.flags, share, shares)
    for k, (side, in_long) in enumerate(zip(sides, lists.pairs, strict=True)):
        if in_long:
            items, dyads = sums[k]
            more = book_long_lists(group, side, lists, items, dyads, share, shares)
            listed[k] = (join_entries(listed[k][0], more), listed[k][1])
    return listed


def book_entries(of_items: Entries, of_dyads: Entries, items: Floats, dyads: Floats) -> None:
    """Add to float64 arrays (bin, sum) what items, and what dyads, change in each bin."""
    _book_clusters(*of_items.take(stable_order(of_items.key)), items)
    # Most dyads occur once: only those that may occur again are worth sorting.
    again = _may_repeat(of_dyads.key, _hash_bits(len(of_dyads.key)))
    _book_single(*of_dyads[2:], again, dyads)
    few = of_dyads.take(again)
    _book_clusters(*few.take(stable_order(few.key)), dyads)


# ---- rows that leave their log


class Rows(NamedTuple):
    """Pairs and centred sums of clusters by bin; a cluster is an item, or two items.

    Attributes
    ----------
    one, other : int64 or uint64 arrays
        The item twice, or the lesser and the greater item.
    outside : bool array
        Whether the item is on the side outside the group; False for two items.
    bin : int64 array
    pairs, sums : float64 arrays
    """

    one: Ints | Masks
    other: Ints | Masks
    outside: Flags
    bin: Ints
    pairs: Floats
    sums: Floats

    def take(self, order: Ints | Flags | slice) -> Rows:
        """Return these rows, in this order."""
        return Rows(
            self.one[order],
            self.other[order],
            self.outside[order],
            self.bin[order],
            self.pairs[order],
            self.sums[order],
        )

    def rename(self, names: Masks) -> Rows:
        """Call items by other names; the lesser of two may be another then."""
        one, other = names[self.one], names[self.other]
        return self._replace(one=np.minimum(one, other), other=np.maximum(one, other))

    def add(self) -> Rows:
        """Add the rows of one cluster, side and bin, and sort by these."""
        order = np.lexsort((self.bin, self.outside, self.other, self.one))
        found = self.take(order)
        if not len(order):
            return found
        changes = np.any([key[1:] != key[:-1] for key in found[:4]], axis=0)
        first = np.flatnonzero(np.concatenate([[True], changes]))
        return found.take(first)._replace(
            pairs=np.add.reduceat(found.pairs, first), sums=np.add.reduceat(found.sums, first)
        )


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Return all rows of several parts."""
    return Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def rows_of_group(log: Log, group: int, moments: Moments, row: int) -> list[tuple[Rows, Rows]]:
    """Return the rows of items and those of dyads of one group, for each mode of moments.

    Parameters
    ----------
    log : Log
    group : int
        Where the group stands in the masks of the log.
    moments : Moments
    row : int
        Where it stands in the moments.
    """
    here = group_log(log, group, moments, row)
    counts = moments.pairs[:, row, -1].tolist()
    listed = list_entries(here, [mode.side for mode in moments.modes], counts)
    return [
        (_item_rows(items).add(), _dyad_rows(dyads, here.n_items).add()) for items, dyads in listed
    ]


def square_rows(items: Rows, dyads: Rows, n_bins: int) -> ItemSums:
    """Sum over all rows of items and of dyads there are, wherever their pairs were."""
    sums = np.zeros((2, n_bins, N_SUMS))
    for rows, to in zip((items, dyads), sums, strict=True):
        _book_rows(rows, to)
    found = _cumulate(*sums)
    # Rows do not know their units.
    return found._replace(by={name: found.by[name] for name in ("item", "dyad")})


def _book_rows(rows: Rows, to: Floats) -> None:
    """Add what the clusters of rows change; most dyads are a single row, and need no sorting."""
    key = _mix(rows.one, rows.other).view(np.int64)
    again = _may_repeat(key, _hash_bits(len(key)))
    _book_single(rows.bin, rows.outside, rows.sums, rows.pairs, again, to)
    few = rows.take(again)
    few = few.take(np.lexsort((few.other, few.one)))
    new = np.ones(len(few.one), dtype=np.bool_)
    new[1:] = (few.one[1:] != few.one[:-1]) | (few.other[1:] != few.other[:-1])
    cluster = np.cumsum(new).astype(np.int64)
    _book_clusters(cluster, cluster, few.bin, few.outside, few.sums, few.pairs, to)


def _item_rows(entries: Entries, n_places: int = 0, n_bins: int = 1) -> Rows:
    """Return a row for each entry, or for each item, side and bin where many are alike."""
    if not 0 < n_places <= _PLACES_FOR_AN_ENTRY * len(entries.key):
        columns = (entries.outside, entries.bin, entries.weights, entries.x)
        return Rows(entries.key, entries.key, *columns)
    at = (entries.key * 2 + entries.outside) * n_bins + entries.bin
    pairs = np.bincount(at, entries.weights, minlength=n_places).astype(np.float64)
    sums = np.bincount(at, entries.x, minlength=n_places).astype(np.float64)
    there = np.flatnonzero(pairs)
    item, outside = there // (2 * n_bins), (there // n_bins) % 2 == 1
    return Rows(item, item, outside, there % n_bins, pairs[there], sums[there])


def _dyad_rows(entries: Entries, n_items: int) -> Rows:
    """Return a row for each entry: most dyads occur once."""
    one, other = entries.key // n_items, entries.key % n_items
    inside = np.zeros(len(one), dtype=np.bool_)
    return Rows(one, other, inside, entries.bin, entries.weights, entries.x)


def _mix(one: Ints | Masks, other: Ints | Masks) -> Masks:
    """Return 64 well mixed bits of two keys."""
    bits = one.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits ^= other.astype(np.uint64) + np.uint64(0x632BE59BD9B4E019)
    bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray(bits ^ (bits >> np.uint64(32)))


# ---- a log in parts


class Exchange(Protocol):
    """Brings what the parts of a log have of one bucket together.

    A part is a log, and what its items are called everywhere by their codes there: empty where
    codes are the same everywhere.
    """

    def __call__(
        self,
        split: Callable[[Log, Masks], list[Any]],
        merge: Callable[[list[Any]], Any],
        buckets: int,
        label: str,
    ) -> list[Any]:
        """Split every part into buckets, and return what `merge` makes of each bucket of all."""
        ...


class _Bucket(NamedTuple):
    """The rows of one part that go to one bucket, for each group and mode, and what it closed."""

    rows: list[list[tuple[Rows, Rows]]]
    closed: Floats | None


class _Share(NamedTuple):
    """Which keys are looked at: those that leave a rest when divided."""

    number: int
    of: int


def exchange_items(
    exchange: Exchange, buckets: int, moments: Moments, at_once: int
) -> list[list[ItemSums]]:
    """Return, for each group and mode, the sums over items at the thresholds of moments.

    Parameters
    ----------
    exchange : Exchange
    buckets : int
        How many buckets are worth having.
    moments : Moments
    at_once : int
        Pairs whose items are held at once; with more, the parts are read several times.
    """
    found: list[list[ItemSums]] = []
    pairs = moments.pairs[:, :, -1].sum(axis=0)
    for groups in _batches(pairs, at_once):
        some = moments.of_groups(groups)
        shares = max(1, -(-int(pairs[groups].sum()) // at_once))
        total = np.zeros(_sums_shape(some))
        for number in range(shares):
            split = partial(_split, some, groups, _Share(number, shares), buckets)
            merge = partial(_merge, some.edges.shape[1])
            for sums in exchange(split, merge, buckets, "summing over items"):
                total += sums
        found += [[_cumulate(*sums) for sums in of_group] for of_group in total]
    return found


def _sums_shape(moments: Moments) -> tuple[int, ...]:
    n_modes, n_groups, n_bins = moments.pairs.shape
    return n_groups, n_modes, 2, n_bins, N_SUMS


def _batches(pairs: Ints, at_once: int) -> Iterator[Ints]:
    """Yield runs of groups with a bounded number of pairs, or one group with more."""
    first, held = 0, 0
    for group, count in enumerate(pairs.tolist()):
        if group > first and held + count > at_once:
            yield np.arange(first, group)
            first, held = group, 0
        held += count
    yield np.arange(first, len(pairs))


def _split(
    moments: Moments, groups: Ints, share: _Share, buckets: int, log: Log, names: Masks
) -> list[_Bucket]:
    """List the pairs of a part, book what units close, and deal the rest out to buckets."""
    closed = np.zeros(_sums_shape(moments))
    rows: list[list[list[tuple[Rows, Rows]]]] = [[] for _ in range(buckets)]
    for k, group in enumerate(groups.tolist()):
        here = group_log(log, group, moments, k)
        listed = _list_part(here, moments.modes, closed[k])
        dealt = []
        for (items, dyads), sums in zip(listed, closed[k], strict=True):
            _close_units(items, dyads, sums)
            n_bins = len(here.edges)
            both = (
                _item_rows(items, 2 * here.n_items * n_bins, n_bins),
                _dyad_rows(dyads, here.n_items),
            )
            named = [found.rename(names) if len(names) else found for found in both]
            dealt.append(list(zip(*(_deal(found, share, buckets) for found in named), strict=True)))
        for bucket, to in enumerate(rows):
            to.append([of_mode[bucket] for of_mode in dealt])
    # What a part closes is sent once.
    first = closed if share.number == 0 else None
    return [_Bucket(to, None if bucket else first) for bucket, to in enumerate(rows)]


def _list_part(
    group: GroupLog, modes: tuple[Mode, ...], sums: Floats
) -> list[tuple[Entries, Entries]]:
    """List the pairs of a group in a part of a log; book the dyads that are not seen."""
    lists = find_long_lists(group, [mode.side for mode in modes])
    # Any item may be in another part too, so none of them can be closed here.
    lists = lists._replace(
        alone=np.zeros(len(lists.alone), dtype=np.bool_),
        recurring=int(np.diff(group.log.starts)[lists.flags].sum()),
    )
    counts = _count_pairs(group, modes)
    ordinary = [count - inside for count, inside in zip(counts, lists.pairs, strict=True)]
    sums[:, 1, 0, UNSEEN] = lists.pairs
    return _list_all(group, modes, ordinary, lists, sums)


def _count_pairs(group: GroupLog, modes: tuple[Mode, ...]) -> list[int]:
    """Return how many pairs of each mode there are up to the last threshold."""
    mine = (group.log.masks[group.group // 64] >> np.uint64(group.group % 64)) & ONE
    alone = PlainWalk(replace(group.log, masks=np.ascontiguousarray(mine[None])))
    layout = Layout(modes, 0, np.ascontiguousarray(group.edges[None, -1:]), np.zeros(1))
    return [int(n) for n in gather(alone, layout, 0).pairs[:, 0, -1]]


def _close_units(of_items: Entries, of_dyads: Entries, sums: Floats) -> None:
    """Book what items and dyads come to inside units, which lie in this part."""
    here = np.zeros_like(sums)
    book_entries(of_items, of_dyads, *here)
    sums[..., UNIT_CC : UNIT_UU + 1] += here[..., UNIT_CC : UNIT_UU + 1]


def _deal(rows: Rows, share: _Share, buckets: int) -> list[Rows]:
    """Deal the rows of a share out to buckets, by their key."""
    key = _mix(rows.one, rows.other)
    if share.of > 1:
        mine = (key >> np.uint64(32)) % np.uint64(share.of) == share.number
        rows, key = rows.take(mine), key[mine]
    bucket = (key % np.uint64(buckets)).astype(np.uint16)
    dealt = rows.take(np.argsort(bucket, kind="stable"))
    ends = np.cumsum(np.bincount(bucket, minlength=buckets))
    return [
        dealt.take(slice(end - size, end))
        for end, size in zip(ends, np.diff(ends, prepend=0), strict=True)
    ]


def _merge(n_bins: int, buckets: list[_Bucket]) -> Floats:
    """Bring the rows of all parts together, and square them."""
    n_groups, n_modes = len(buckets[0].rows), len(buckets[0].rows[0])
    sums = np.zeros((n_groups, n_modes, 2, n_bins, N_SUMS))
    for group, mode, kind in np.ndindex(n_groups, n_modes, 2):
        rows = join_rows([bucket.rows[group][mode][kind] for bucket in buckets])
        _book_rows(rows, sums[group, mode, kind])
    # Rows do not know their units; what lies inside units was closed where they are.
    sums[..., UNIT_CC : UNIT_UU + 1] = 0.0
    for bucket in buckets:
        if bucket.closed is not None:
            sums += bucket.closed
    return sums


# ---- kernels


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
def _book_single(
    bins: Ints, outside: Flags, x: Floats, pairs: Floats, skip: Flags, sums: Floats
) -> None:
    """Book the entries that are a cluster of their own."""
    weighted = len(pairs) > 0
    for e in range(len(bins)):
        if not skip[e]:
            _book_alone(bins[e], outside[e], pairs[e] if weighted else 1.0, x[e], sums)


@inlined
def _book_alone(b: int, outside: bool, c: float, x: float, sums: Floats) -> None:
    """Book an entry that is a cluster of its own."""
    sums[b, FIRST] += 1.0
    sums[b, OUTSIDE if outside else INSIDE] += c * c
    book_cluster(b, c, x, CC, sums)
    book_cluster(b, c, x, UNIT_CC, sums)


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
            c = pairs[start] if weighted else 1.0
            _book_alone(bins[start], outside[start], c, x[start], sums)
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
