"""Sums over items and over dyads of items, across queries: what item and union variance need.

An item's pairs are spread over a log, and over other logs too, so its sums cannot be closed when a
query ends. There is one way to sum for all: the pairs of a group are seen from items and from dyads
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

from mpc_lab.pairing.clusters import (
    BETWEEN_FIRST,
    BETWEEN_SQUARES,
    N_BETWEEN,
    PRODUCTS,
    UNIT_PRODUCTS,
    ItemSums,
    book_clusters,
    book_rows_of_entries,
    book_single,
    book_together,
    hash_bits,
    may_repeat,
    of_row,
    sums_of_modes,
)
from mpc_lab.pairing.entries import (
    CC,
    N_SUMS,
    OF_NEITHER,
    UNIT_CC,
    UNIT_UU,
    UNSEEN,
    UU,
    Entries,
    GroupLog,
    join_entries,
    list_entries,
)
from mpc_lab.pairing.kernels import ONE
from mpc_lab.pairing.leverage import Whole, weigh_rows, whole_of
from mpc_lab.pairing.log import Log, PlainWalk
from mpc_lab.pairing.long_lists import LongLists, book_long_lists, find_long_lists
from mpc_lab.pairing.modes import Layout, SumRows, rows_of
from mpc_lab.pairing.moments import ABOVE, BELOW, Moments
from mpc_lab.pairing.sided import list_sided
from mpc_lab.pairing.sweep import gather
from mpc_lab.vocabulary import Bytes, Flags, Floats, Ints, Masks, Mode

# Pairs of a group that are listed at a time where its log is in memory.
PAIRS_AT_ONCE = 1 << 22
# Every two items that met are kept, one group at a time.
MOST_KEPT = 50_000_000
# A table of all items, sides and bins is made where it has at most this many places an entry.
_PLACES_FOR_AN_ENTRY = 4
# The number of sides from which an entry is seen.
_SIDES = OF_NEITHER + 1


# ---- a log in memory


def sum_items(log: Log, group: int, moments: Moments) -> list[ItemSums]:
    """Sum over the items and dyads of one group of a log, under each mode of moments."""
    here, rows = group_log(log, group, moments, group), rows_in(moments)
    pairs = moments.pairs[:, group, -1].tolist()
    counts = rows.counts(pairs)
    lists = find_long_lists(here, rows.sides)
    unseen = lists.pairs if lists.recurring else [0] * len(counts)
    if rows.twin:
        lists = lists.keep_all(here)
    ordinary = [count - inside for count, inside in zip(counts, lists.pairs, strict=True)]
    most = max(*(ordinary if moments.table is None else pairs), 1)
    shares = -(-max(most, lists.recurring * len(here.edges)) // PAIRS_AT_ONCE)
    sums, between = _no_sums(moments, len(here.edges))
    whole = whole_of(moments, group, rows)
    weighed = whole.nothing()
    for share in range(shares):
        weighing = partial(of_row, whole, weighed)
        listed = _list_all(here, rows, ordinary, lists, sums, between, weighing, share, shares)
        if moments.table is not None:
            listed += list_sided(here, moments.table.of_groups(np.array([group])), share, shares)
        book_rows_of_entries(listed, rows.twin, sums, between, whole, weighed)
    sums[: len(unseen), 1, 0, UNSEEN] = unseen
    return sums_of_modes(rows, sums, between, whole, weighed)


def rows_in(moments: Moments) -> SumRows:
    """Return the rows of sums of moments; sides that go by a table have rows of their own."""
    rows = rows_of(moments.modes, apart=moments.by_query)
    if moments.table is None:
        return rows
    alone = rows_of([mode for mode in moments.modes if not mode.two_sided]).sides
    n = len(alone)
    return SumRows(alone, rows.of_mode, (n, n + 1, n + 2))


def group_log(log: Log, group: int, moments: Moments, row: int) -> GroupLog:
    """Return a group of a log with the bins that a row of moments has."""
    return GroupLog(log, group, moments.edges[row], float(moments.center[row]))


def _list_all(
    group: GroupLog,
    rows: SumRows,
    ordinary: Sequence[int],
    lists: LongLists,
    sums: Floats,
    between: Floats,
    weighing: Callable[[int], tuple[Floats, Floats, Floats]],
    share: int = 0,
    shares: int = 1,
) -> list[tuple[Entries, Entries]]:
    """List the pairs of ordinary lists, and add what long lists have; book what they close."""
    twin = rows.twin if rows.twin and rows.twin[-1] < len(rows.sides) else ()
    listed = list_entries(group, rows.sides, ordinary, lists.flags, share, shares, twin)
    for k, (side, in_long) in enumerate(zip(rows.sides, lists.pairs, strict=True)):
        if in_long:
            items, dyads = sums[k]
            before = dyads[:, CC : UU + 1].copy()
            more = book_long_lists(group, side, lists, items, dyads, weighing(k), share, shares)
            listed[k] = (join_entries(listed[k][0], more), listed[k][1])
            if rows.twin and k == rows.twin[2]:
                # A dyad that is taken as occurring once is in two rows only where it is tied.
                alone = (dyads[:, CC : UU + 1] - before)[:, [0, 1, 1, 2]]
                between[1, :, PRODUCTS:BETWEEN_SQUARES] += np.tile(alone, 6)
    return listed


# ---- rows that leave their log


class Rows(NamedTuple):
    """Pairs and centred sums of clusters by bin; a cluster is an item, or two items.

    Attributes
    ----------
    one, other : int64 or uint64 arrays
        The item twice, or the lesser and the greater item.
    outside : uint8 array
        From which item its pairs are seen, as in `Entries`; 0 for two items.
    bin : int64 array
    pairs, sums : float64 arrays
    """

    one: Ints | Masks
    other: Ints | Masks
    outside: Bytes
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
    """Return the rows of items and those of dyads of one group, for each row of sums.

    Parameters
    ----------
    log : Log
    group : int
        The index of the group in the masks of the log.
    moments : Moments
    row : int
        Its index in the moments.
    """
    here = group_log(log, group, moments, row)
    rows = rows_of(moments.modes, apart=moments.by_query)
    counts = rows.counts(moments.pairs[:, row, -1].tolist())
    listed = list_entries(here, rows.sides, counts, twin=rows.twin)
    return [
        (_item_rows(items).add(), _dyad_rows(dyads, here.n_items).add()) for items, dyads in listed
    ]


def square_rows(found: Sequence[tuple[Rows, Rows]], rows: SumRows, whole: Whole) -> list[ItemSums]:
    """Sum over all rows of items and of dyads there are, wherever their pairs were.

    Parameters
    ----------
    found : sequence of (Rows, Rows)
        The rows of items and of dyads, for each row of sums.
    rows : SumRows
    whole : Whole
        The sums over all pairs.
    """
    weighed = whole.nothing()
    n_bins = weighed.shape[1]
    sums, between = np.zeros((len(found), 2, n_bins, N_SUMS)), np.zeros((2, n_bins, N_BETWEEN))
    items, dyads = ([of_row[kind] for of_row in found] for kind in range(2))
    _book_rows(items, rows.twin, sums[:, 0], between[0], whole, weighed)
    _book_rows(dyads, rows.twin, sums[:, 1], between[1])
    # Rows do not know their units.
    by_mode = sums_of_modes(rows, sums, between, whole, weighed)
    return [_without_units(of_mode) for of_mode in by_mode]


def _without_units(sums: ItemSums) -> ItemSums:
    names = ("item", "dyad")
    return sums._replace(
        by={name: sums.by[name] for name in names},
        sides={name: sums.sides[name] for name in names if name in sums.sides},
    )


def _book_rows(
    found: Sequence[Rows],
    twin: Sequence[int],
    sums: Floats,
    between: Floats,
    whole: Whole | None = None,
    weighed: Floats | None = None,
) -> None:
    """Add what the clusters of rows change; most dyads are a single row, and need no sorting.

    Parameters
    ----------
    found : sequence of Rows
        For each row of sums.
    twin : sequence of int
        The rows of a mode of two sides, whose clusters are seen together.
    sums : float64 array (row of sums, bin, sum)
    between : float64 array (bin, sum)
    whole, weighed : Whole and float64 array (row, bin), optional
        What single items are compared with, and what they change: added to.
    """
    apart = [[k] for k in range(len(found)) if k not in twin]
    for together in (*apart, list(twin)) if twin else apart:
        some = [found[k] for k in together]
        key = np.concatenate([_mix(rows.one, rows.other) for rows in some]).view(np.int64)
        ends = np.cumsum([len(rows.one) for rows in some])[:-1]
        again = np.split(may_repeat(key, hash_bits(len(key))), ends)
        for k, rows, may in zip(together, some, again, strict=True):
            single = (rows.bin, rows.outside, rows.sums, rows.pairs, may)
            book_single(*single, sums[k], *of_row(whole, weighed, k))
        if len(together) > 1:
            for rows, may in zip(some, again, strict=True):
                first = rows.bin[~may]
                between[:, BETWEEN_FIRST] += np.bincount(first, minlength=len(between))
            if whole is not None and weighed is not None:
                parts = [rows.take(~may) for rows, may in zip(some, again, strict=True)]
                _weigh_single(parts, whole, weighed)
        few = [rows.take(may) for rows, may in zip(some, again, strict=True)]
        sorted_ = _number_clusters(few)
        for k, entries in zip(together, sorted_, strict=True):
            book_clusters(*entries, sums[k], *of_row(whole, weighed, k))
        if len(together) > 1:
            book_together(sorted_, between, whole, weighed)


def _weigh_single(rows: Sequence[Rows], whole: Whole, weighed: Floats) -> None:
    """Add what items with a single row change in a mode of two sides; a tie has three."""
    if not len(whole.pairs):
        return
    for side in (BELOW, ABOVE):
        weight, found = whole.side_weight[side], np.zeros_like(whole.pairs)
        weigh_rows(*rows[side][3:], weight, whole.side_mean[side], found)
        scale = 0.5 * whole.pairs / np.where(weight > 0, weight, np.nan)
        weighed[-1] += np.where(found == 0, 0.0, found * scale**2)


def _number_clusters(parts: Sequence[Rows]) -> list[Entries]:
    """Return the rows as entries sorted by cluster, a cluster with one number in all parts."""
    every = join_rows(parts)
    part = np.repeat(np.arange(len(parts)), [len(rows.one) for rows in parts])
    order = np.lexsort((every.other, every.one))
    every, part = every.take(order), part[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (every.one[1:] != every.one[:-1]) | (every.other[1:] != every.other[:-1])
    cluster = np.cumsum(new).astype(np.int64)
    entries = Entries(cluster, cluster, every.bin, every.outside, every.sums, every.pairs)
    return [entries.take(part == k) for k in range(len(parts))]


def _item_rows(entries: Entries, n_places: int = 0, n_bins: int = 1) -> Rows:
    """Return a row for each entry, or for each item, side and bin where many are alike."""
    if not 0 < n_places <= _PLACES_FOR_AN_ENTRY * len(entries.key):
        columns = (entries.outside, entries.bin, entries.weights, entries.x)
        return Rows(entries.key, entries.key, *columns)
    at = (entries.key * _SIDES + entries.outside) * n_bins + entries.bin
    pairs = np.bincount(at, entries.weights, minlength=n_places).astype(np.float64)
    sums = np.bincount(at, entries.x, minlength=n_places).astype(np.float64)
    there = np.flatnonzero(np.bincount(at, minlength=n_places))
    item, outside = there // (_SIDES * n_bins), (there // n_bins) % _SIDES
    return Rows(item, item, outside.astype(np.uint8), there % n_bins, pairs[there], sums[there])


def _dyad_rows(entries: Entries, n_items: int) -> Rows:
    """Return a row for each entry: most dyads occur once."""
    one, other = entries.key // n_items, entries.key % n_items
    inside = np.zeros(len(one), dtype=np.uint8)
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
    """The rows of one part that go to one bucket, by group and row, and what it closed."""

    rows: list[list[tuple[Rows, Rows]]]
    closed: _Sums | None


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
        rows = rows_in(some)
        wholes = [whole_of(some, k, rows) for k in range(len(groups))]
        total = _no_sums_by_group(some)
        for number in range(shares):
            split = partial(_split, some, groups, _Share(number, shares), buckets)
            merge = partial(_merge, rows.twin, wholes)
            for sums in exchange(split, merge, buckets, "summing over items"):
                total = total.add(sums)
        for whole, (sums, between, weighed) in zip(wholes, zip(*total, strict=True), strict=True):
            found.append(sums_of_modes(rows, sums, between, whole, weighed))
    return found


class _Sums(NamedTuple):
    """What is booked of items and dyads, by group.

    Attributes
    ----------
    rows : float64 array (group, row of sums, 2, bin, sum)
    between : float64 array (group, 2, bin, sum)
        Of the rows of a mode of two sides together.
    weighed : float64 array (group, row of sums or mode of two sides, bin)
        What single items change.
    """

    rows: Floats
    between: Floats
    weighed: Floats

    def add(self, other: _Sums) -> _Sums:
        return _Sums(*(one + two for one, two in zip(self, other, strict=True)))


def _no_sums_by_group(moments: Moments) -> _Sums:
    _, n_groups, n_bins = moments.pairs.shape
    rows, between = _no_sums(moments, n_bins)
    weighed = np.zeros((n_groups, len(rows) + 1, n_bins))
    return _Sums(np.stack([rows] * n_groups), np.stack([between] * n_groups), weighed)


def _no_sums(moments: Moments, n_bins: int) -> tuple[Floats, Floats]:
    """Return room for what is booked of one group: of rows, and of two rows together."""
    rows = rows_in(moments)
    n_rows = max([len(rows.sides), *(row + 1 for row in rows.twin)])
    return np.zeros((n_rows, 2, n_bins, N_SUMS)), np.zeros((2, n_bins, N_BETWEEN))


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
    """List the pairs of a part, book what units close, and distribute the rest to buckets."""
    closed, sum_rows = _no_sums_by_group(moments), rows_in(moments)
    rows: list[list[list[tuple[Rows, Rows]]]] = [[] for _ in range(buckets)]
    for k, group in enumerate(groups.tolist()):
        here = group_log(log, group, moments, k)
        listed = _list_part(here, moments, closed.rows[k], closed.between[k])
        if moments.table is not None:
            listed += list_sided(here, moments.table.of_groups(np.array([k])))
        _close_units(listed, sum_rows.twin, closed.rows[k], closed.between[k])
        split = []
        for items, dyads in listed:
            n_bins = len(here.edges)
            both = (
                _item_rows(items, _SIDES * here.n_items * n_bins, n_bins),
                _dyad_rows(dyads, here.n_items),
            )
            named = [found.rename(names) if len(names) else found for found in both]
            split.append(list(zip(*(_deal(found, share, buckets) for found in named), strict=True)))
        for bucket, to in enumerate(rows):
            to.append([of_mode[bucket] for of_mode in split])
    # What a part closes is sent once.
    first = closed if share.number == 0 else None
    return [_Bucket(to, None if bucket else first) for bucket, to in enumerate(rows)]


def _list_part(
    group: GroupLog, moments: Moments, sums: Floats, between: Floats
) -> list[tuple[Entries, Entries]]:
    """List the pairs of a group in a part of a log; book the dyads that are not seen."""
    rows = rows_in(moments)
    # Any item may also be in another part, so none of them can be closed here.
    lists = find_long_lists(group, rows.sides).keep_all(group)
    one_sided = tuple(mode for mode in moments.modes if not mode.two_sided)
    modes = moments.modes if moments.table is None else one_sided
    counts = _count_pairs(group, modes, apart=moments.by_query)
    ordinary = [count - inside for count, inside in zip(counts, lists.pairs, strict=True)]
    sums[: len(counts), 1, 0, UNSEEN] = lists.pairs
    return _list_all(group, rows, ordinary, lists, sums, between, partial(of_row, None, None))


def _count_pairs(group: GroupLog, modes: tuple[Mode, ...], *, apart: bool) -> list[int]:
    """Return how many pairs of each row of sums there are up to the last threshold."""
    if not modes:
        return []
    mine = (group.log.masks[group.group // 64] >> np.uint64(group.group % 64)) & ONE
    alone = PlainWalk(replace(group.log, masks=np.ascontiguousarray(mine[None])))
    layout = Layout(modes, 0, np.ascontiguousarray(group.edges[None, -1:]), np.zeros(1))
    rows = rows_of(modes, apart=apart)
    return rows.counts(gather(alone, layout, 0).pairs[:, 0, -1].tolist())


def _close_units(
    listed: list[tuple[Entries, Entries]], twin: Sequence[int], sums: Floats, between: Floats
) -> None:
    """Book the sums of items and dyads inside units, which are in this part."""
    here, together = np.zeros_like(sums), np.zeros_like(between)
    book_rows_of_entries(listed, twin, here, together)
    sums[..., UNIT_CC : UNIT_UU + 1] += here[..., UNIT_CC : UNIT_UU + 1]
    between[..., UNIT_PRODUCTS] += together[..., UNIT_PRODUCTS]


def _deal(rows: Rows, share: _Share, buckets: int) -> list[Rows]:
    """Distribute the rows of a share to buckets, by their key."""
    key = _mix(rows.one, rows.other)
    if share.of > 1:
        mine = (key >> np.uint64(32)) % np.uint64(share.of) == share.number
        rows, key = rows.take(mine), key[mine]
    bucket = (key % np.uint64(buckets)).astype(np.uint16)
    ordered = rows.take(np.argsort(bucket, kind="stable"))
    ends = np.cumsum(np.bincount(bucket, minlength=buckets))
    return [
        ordered.take(slice(end - size, end))
        for end, size in zip(ends, np.diff(ends, prepend=0), strict=True)
    ]


def _merge(twin: Sequence[int], wholes: Sequence[Whole], buckets: list[_Bucket]) -> _Sums:
    """Join the rows of all parts, and square them."""
    n_groups, n_rows = len(buckets[0].rows), len(buckets[0].rows[0])
    weighed = np.stack([whole.nothing() for whole in wholes])
    n_bins = weighed.shape[-1]
    sums = np.zeros((n_groups, n_rows, 2, n_bins, N_SUMS))
    between = np.zeros((n_groups, 2, n_bins, N_BETWEEN))
    for group, kind in np.ndindex(n_groups, 2):
        joined = [
            join_rows([bucket.rows[group][row][kind] for bucket in buckets])
            for row in range(n_rows)
        ]
        weighing = () if kind else (wholes[group], weighed[group])
        _book_rows(joined, twin, sums[group, :, kind], between[group, kind], *weighing)
    # Rows do not know their units; what is inside units was closed where they are.
    sums[..., UNIT_CC : UNIT_UU + 1] = 0.0
    between[..., UNIT_PRODUCTS] = 0.0
    total = _Sums(sums, between, weighed)
    for bucket in buckets:
        if bucket.closed is not None:
            total = total.add(bucket.closed)
    return total
