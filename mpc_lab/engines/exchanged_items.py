"""Sums over items of a log in parts: tables of every part are exchanged by item, then squared.

An item's pairs lie in many parts, so its sums are squared only once they are all in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from mpc_lab.engines.parts import Change, Part
from mpc_lab.pairing.arrays import Floats, Ints, Masks
from mpc_lab.pairing.gather import Layout, gather
from mpc_lab.pairing.item_sums import ItemSums, sums_of_group
from mpc_lab.pairing.item_tables import Table, squared, tables_of_group
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.moments import Moments, Quadratic
from mpc_lab.pairing.walk import PlainWalk

BUCKETS = 32
PAIRS_AT_ONCE = 50_000_000
# What a bucket comes to, for each group, mode and bin: items, Σc² inside and outside, and Σc², ΣcU
# and ΣU² by item, by dyad, and by both inside a unit.
_ITEMS, _INSIDE, _OUTSIDE, _ITEM, _DYAD, _ITEM_QUERY, _DYAD_QUERY = 0, 1, 2, 3, 6, 9, 12
_N_SUMS = 15


class _Chunk(NamedTuple):
    """The tables of one part that go to one bucket, for each group and mode, and unit sums."""

    tables: list[list[tuple[Table, Table]]]
    units: Floats | None


class Exchange(Protocol):
    """Brings what parts have of one bucket together."""

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
    parts: Exchange, change: Change, moments: Moments, at_once: int = PAIRS_AT_ONCE
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
            split = partial(_split, change, some, groups, _Share(number, shares))
            merge = partial(_squared, some.edges.shape[1])
            for bucket in parts.exchange(split, merge, BUCKETS, "summing over items"):
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
    change: Change, moments: Moments, groups: Ints, share: _Share, part: Part
) -> list[_Chunk]:
    log = change(part)
    n_modes = len(moments.pairs)
    units = np.zeros((len(groups), n_modes, moments.edges.shape[1], _N_SUMS))
    tables: list[list[list[tuple[Table, Table]]]] = [[] for _ in range(BUCKETS)]
    for k, group in enumerate(groups):
        edges, center = moments.edges[k], float(moments.center[k])
        counts = _counts(log, int(group), edges, n_modes)
        if share.number == 0:
            for mode, sums in enumerate(sums_of_group(log, int(group), edges, center, counts)):
                units[k, mode, :, _ITEM_QUERY:_DYAD_QUERY] = _columns(sums.by["item_query"])
                units[k, mode, :, _DYAD_QUERY:] = _columns(sums.by["dyad_query"])
        found = tables_of_group(log, int(group), edges, center, counts)
        dealt = [
            list(zip(*(_dealt(_named(table, part.names), share) for table in of_mode), strict=True))
            for of_mode in found
        ]
        for bucket, to in enumerate(tables):
            to.append([of_mode[bucket] for of_mode in dealt])
    return [_Chunk(to, units if bucket == 0 else None) for bucket, to in enumerate(tables)]


def _counts(log: Log, group: int, edges: Floats, n_modes: int) -> list[int]:
    """Return how many pairs each mode has in this part."""
    word, bit = divmod(group, 64)
    mine = (log.masks[word] >> np.uint64(bit)) & np.uint64(1)
    alone = replace(log, masks=np.ascontiguousarray(mine[None]))
    layout = Layout(0, edges[-1:][None], np.zeros(1))
    walk = PlainWalk(alone)
    counts = gather(walk, layout, 0, adjacent=False).pairs[:, 0, -1].tolist()
    if n_modes == 3:
        counts += gather(walk, layout, 0, adjacent=True).pairs[:, 0, -1].tolist()
    return [int(count) for count in counts]


def _columns(sums: Quadratic) -> Floats:
    return np.stack([sums.cc, sums.cu, sums.uu], axis=1)


def _named(table: Table, names: Masks) -> Table:
    """Call items by what they are called everywhere; the lesser of two is now another."""
    if not len(names):
        return table._replace(one=table.one.astype(np.uint64), other=table.other.astype(np.uint64))
    one, other = names[table.one.astype(np.int64)], names[table.other.astype(np.int64)]
    return table._replace(one=np.minimum(one, other), other=np.maximum(one, other))


def _dealt(table: Table, share: _Share) -> list[Table]:
    """Deal the rows of a share out to buckets, by their key."""
    key = _mixed(table.one.astype(np.uint64), table.other.astype(np.uint64))
    if share.of > 1:
        mine = (key >> np.uint64(32)) % np.uint64(share.of) == share.number
        table, key = table.taken(mine), key[mine]
    bucket = (key % np.uint64(BUCKETS)).astype(np.int64)
    order = np.argsort(bucket, kind="stable")
    ends = np.cumsum(np.bincount(bucket, minlength=BUCKETS))
    starts = np.concatenate([[0], ends[:-1]])
    dealt = table.taken(order)
    return [dealt.taken(np.arange(a, b)) for a, b in zip(starts, ends, strict=True)]


def _mixed(one: Masks, other: Masks) -> Masks:
    """Return 64 well mixed bits of two keys."""
    bits = one * np.uint64(0x9E3779B97F4A7C15) ^ (other + np.uint64(0x632BE59BD9B4E019))
    bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray(bits ^ (bits >> np.uint64(32)))


def _squared(n_bins: int, chunks: list[_Chunk]) -> Floats:
    """Add the tables of all parts by key, and square."""
    n_groups, n_modes = len(chunks[0].tables), len(chunks[0].tables[0])
    sums = np.zeros((n_groups, n_modes, n_bins, _N_SUMS))
    for chunk in chunks:
        if chunk.units is not None:
            sums += chunk.units
    for group in range(n_groups):
        for mode in range(n_modes):
            parts = [chunk.tables[group][mode] for chunk in chunks]
            items = squared(_joined([items for items, _ in parts]), n_bins)
            dyads = squared(_joined([dyads for _, dyads in parts]), n_bins)
            to = sums[group, mode]
            to[:, _ITEMS] += items.clusters
            to[:, _INSIDE] += items.inside
            to[:, _OUTSIDE] += items.outside
            to[:, _ITEM:_DYAD] += _columns(items.quadratic)
            to[:, _DYAD:_ITEM_QUERY] += _columns(dyads.quadratic)
    return sums


def _joined(tables: list[Table]) -> Table:
    return Table(*(np.concatenate(columns) for columns in zip(*tables, strict=True)))


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
    )
