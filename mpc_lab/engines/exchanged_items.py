"""Sums over items of a log in parts: rows of every part are exchanged by item, then squared.

An item's pairs lie in many parts, so its sums are squared only once they are all in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from mpc_lab.engines.listed_items import Listed, list_part, mixed, rows_of_dyads, rows_of_items
from mpc_lab.engines.parts import Change, Part
from mpc_lab.pairing.arrays import Flags, Floats, Ints, Masks
from mpc_lab.pairing.booking import CC, N_SUMS, UNIT_CC, UNIT_UU, UU
from mpc_lab.pairing.item_sums import ItemSums, book_entries
from mpc_lab.pairing.item_tables import Table, squared
from mpc_lab.pairing.moments import Moments, Quadratic

# Pairs that a part of a cluster can hold, and that a small cluster can.
PAIRS_OF_A_PART, PAIRS_AT_LEAST = 2_000_000, 50_000_000
# Every part sends something to every bucket.
MOST_BUCKETS = 64
# What a bucket comes to, for each group, mode and bin: items, Σc² inside and outside, and Σc², ΣcU
# and ΣU² by item, by dyad, and by both inside a unit; and whether some dyads were not seen.
_ITEMS, _INSIDE, _OUTSIDE, _ITEM, _DYAD, _ITEM_QUERY, _DYAD_QUERY, _UNSEEN = (
    0,
    1,
    2,
    3,
    6,
    9,
    12,
    15,
)
_N_SUMS = 16


class _Chunk(NamedTuple):
    """The rows of one part that go to one bucket, for each group and mode, and unit sums."""

    tables: list[list[tuple[Table, Table]]]
    units: Floats | None


class Exchange(Protocol):
    """Brings what parts have of one bucket together.

    Attributes
    ----------
    buckets : int
        How many buckets are worth having.
    """

    buckets: int

    def exchange(
        self,
        split: Callable[[Part], list[Any]],
        merge: Callable[[list[Any]], Any],
        buckets: int,
        label: str,
    ) -> list[Any]:
        """Split every part into buckets, and return what `merge` makes of each bucket of all."""
        ...


@dataclass(frozen=True)
class _Share:
    """Which keys are looked at: those that leave a rest when divided."""

    number: int
    of: int


def sums_over_items(
    parts: Exchange, change: Change, moments: Moments, at_once: int
) -> list[list[ItemSums]]:
    """Return, for each group and mode, the sums over items at the thresholds of moments.

    Parameters
    ----------
    parts : Exchange
    change : Change
        What makes the log of the moments of a part.
    moments : Moments
    at_once : int
        Pairs whose items are held at once; with more, the parts are read several times.
    """
    found: list[list[ItemSums]] = []
    pairs = moments.pairs[:, :, -1].sum(axis=0)
    for groups in _batches(pairs, at_once):
        some = moments.of_groups(groups)
        shares = max(1, -(-int(pairs[groups].sum()) // at_once))
        total = np.zeros((len(groups), len(moments.pairs), some.edges.shape[1], _N_SUMS))
        for number in range(shares):
            split = partial(_split, change, some, groups, _Share(number, shares), parts.buckets)
            merge = partial(_merged, some.edges.shape[1])
            for bucket in parts.exchange(split, merge, parts.buckets, "summing over items"):
                total += bucket
        found += [[_labelled(of_mode) for of_mode in of_group] for of_group in total]
    return found


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
    change: Change, moments: Moments, groups: Ints, share: _Share, buckets: int, part: Part
) -> list[_Chunk]:
    log = change(part)
    n_items = int(log.item.max(initial=0)) + 1
    units = np.zeros((len(groups), len(moments.pairs), moments.edges.shape[1], _N_SUMS))
    tables: list[list[list[tuple[Table, Table]]]] = [[] for _ in range(buckets)]
    for k, group in enumerate(groups):
        edges, center = moments.edges[k], float(moments.center[k])
        dealt = []
        listed = list_part(log, int(group), edges, center, len(moments.pairs))
        for mode, found in enumerate(listed):
            if share.number == 0:
                _book_units(found, units[k, mode])
            rows = (
                rows_of_items(found.items, n_items, len(edges)),
                rows_of_dyads(found.dyads, n_items),
            )
            both = [_dealt(_named(table, part.names), share, buckets) for table in rows]
            dealt.append(list(zip(*both, strict=True)))
        for bucket, to in enumerate(tables):
            to.append([of_mode[bucket] for of_mode in dealt])
    return [_Chunk(to, units if bucket == 0 else None) for bucket, to in enumerate(tables)]


def _book_units(found: Listed, to: Floats) -> None:
    """Book what items and dyads come to inside units, which lie in this part."""
    items, dyads = np.zeros((len(to), N_SUMS)), found.unseen.copy()
    book_entries(found.items, found.dyads, items, dyads)
    inside = np.concatenate([side[:, UNIT_CC : UNIT_UU + 1] for side in (items, dyads)], axis=1)
    to[:, _ITEM_QUERY:_UNSEEN] = np.cumsum(inside, axis=0)
    # Dyads that could not be seen are taken as occurring once.
    to[:, _DYAD:_ITEM_QUERY] = np.cumsum(found.unseen[:, CC : UU + 1], axis=0)
    to[:, _UNSEEN] = found.unseen.any()


def _named(table: Table, names: Masks) -> Table:
    """Call items by what they are called everywhere; the lesser of two may be another then."""
    one, other = _ids(table)
    if not len(names):
        return table._replace(one=one, other=other)
    one, other = names[one.astype(np.int64)], names[other.astype(np.int64)]
    return table._replace(one=np.minimum(one, other), other=np.maximum(one, other))


def _ids(table: Table) -> tuple[Masks, Masks]:
    return table.one.astype(np.uint64), table.other.astype(np.uint64)


def _dealt(table: Table, share: _Share, buckets: int) -> list[Table]:
    """Deal the rows of a share out to buckets, by their key."""
    key = mixed(*_ids(table))
    if share.of > 1:
        mine = (key >> np.uint64(32)) % np.uint64(share.of) == share.number
        table, key = table.taken(mine), key[mine]
    bucket = (key % np.uint64(buckets)).astype(np.uint16)
    dealt = table.taken(np.argsort(bucket, kind="stable"))
    ends = np.cumsum(np.bincount(bucket, minlength=buckets))
    return [
        dealt.taken(np.arange(end - size, end))
        for end, size in zip(ends, np.diff(ends, prepend=0), strict=True)
    ]


def _merged(n_bins: int, chunks: list[_Chunk]) -> Floats:
    """Bring the rows of all parts together, and square."""
    n_groups, n_modes = len(chunks[0].tables), len(chunks[0].tables[0])
    sums = np.zeros((n_groups, n_modes, n_bins, _N_SUMS))
    for chunk in chunks:
        if chunk.units is not None:
            sums += chunk.units
    for group in range(n_groups):
        for mode in range(n_modes):
            parts = [chunk.tables[group][mode] for chunk in chunks]
            _book(_joined([items for items, _ in parts]), sums[group, mode], _ITEM)
            _book(_joined([dyads for _, dyads in parts]), sums[group, mode], _DYAD)
    return sums


def _joined(tables: list[Table]) -> Table:
    return Table(*(np.concatenate(columns) for columns in zip(*tables, strict=True)))


def _book(table: Table, to: Floats, at: int) -> None:
    """Square the sums of every cluster; most dyads are a single row, and need no sorting."""
    repeated = _repeated(table)
    _book_single(table.taken(~repeated), to, at)
    found = squared(table.taken(repeated), len(to))
    to[:, at : at + 3] += np.stack(
        [found.quadratic.cc, found.quadratic.cu, found.quadratic.uu], axis=1
    )
    if at == _ITEM:
        to[:, _ITEMS] += found.clusters
        to[:, _INSIDE] += found.inside
        to[:, _OUTSIDE] += found.outside


def _repeated(table: Table) -> Flags:
    """Return which rows may have a cluster in common with another."""
    key = mixed(*_ids(table))
    ordered = np.sort(key)
    again = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(again):
        return np.zeros(len(key), dtype=np.bool_)
    place = np.minimum(np.searchsorted(again, key), len(again) - 1)
    return np.asarray(again[place] == key)


def _book_single(table: Table, to: Floats, at: int) -> None:
    def booked(weights: Floats) -> Floats:
        return np.cumsum(np.bincount(table.bin, weights, minlength=len(to)))

    c, u = table.pairs, table.sums
    for column, weights in enumerate((c * c, c * u, u * u)):
        to[:, at + column] += booked(weights)
    if at == _ITEM:
        to[:, _ITEMS] += booked(np.ones(len(c)))
        to[:, _INSIDE] += booked(np.where(table.outside, 0.0, c * c))
        to[:, _OUTSIDE] += booked(np.where(table.outside, c * c, 0.0))


def _labelled(sums: Any) -> ItemSums:
    def of(first: int) -> Quadratic:
        return Quadratic(*sums[:, first : first + 3].T)

    return ItemSums(
        items=sums[:, _ITEMS].astype(np.int64),
        inside=sums[:, _INSIDE],
        outside=sums[:, _OUTSIDE],
        by={
            "item": of(_ITEM),
            "item_query": of(_ITEM_QUERY),
            "dyad": of(_DYAD),
            "dyad_query": of(_DYAD_QUERY),
        },
        dyads_once=bool(sums[:, _UNSEEN].any()),
    )
