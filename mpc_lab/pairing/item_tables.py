"""Sums of every item and dyad by threshold: what has to be kept so that audits can be added up.

Unlike sums of squares these tables add by key, because an item may be in several logs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.arrays import Flags, Floats, Ints, Masks
from mpc_lab.pairing.entries import Entries, list_entries, neighbour_entries
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.moments import Quadratic
from mpc_lab.pairing.rows import pair_rows

_KEYS_AT_ONCE = 1 << 17
# Every two items that met are kept, one group at a time.
MOST_KEPT = 50_000_000


class Table(NamedTuple):
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

    def taken(self, order: Ints | Flags) -> Table:
        """Return these rows, in this order."""
        return Table(
            self.one[order],
            self.other[order],
            self.outside[order],
            self.bin[order],
            self.pairs[order],
            self.sums[order],
        )


class TableSums(NamedTuple):
    """What tables come to, cumulated over bins."""

    clusters: Ints
    inside: Floats
    outside: Floats
    quadratic: Quadratic


def tables_of_group(
    log: Log, group: int, edges: Floats, center: float, counts: list[int]
) -> list[tuple[Table, Table]]:
    """Return the table of items and the table of dyads of one group, for each mode.

    The arguments are those of :func:`mpc_lab.pairing.item_sums.sums_of_group`.
    """
    word, bit = divmod(group, 64)
    listed = list_entries(log, word, bit, edges, center, (counts[0], counts[1]))
    if len(counts) == 3:
        member = np.asarray(log.masks[word] & (np.uint64(1) << np.uint64(bit)) != 0)
        i, j = pair_rows(log, member, "adjacent", float(edges[-1]))
        listed.append(neighbour_entries(log, i, j, edges, center))
    n_items = int(log.item.max(initial=0)) + 1
    return [(_of_items(items), _of_dyads(dyads, n_items)) for items, dyads in listed]


def _of_items(entries: Entries) -> Table:
    pairs = np.ones(len(entries.key))
    return added(Table(entries.key, entries.key, entries.outside, entries.bin, pairs, entries.x))


def _of_dyads(entries: Entries, n_items: int) -> Table:
    one, other = entries.key // n_items, entries.key % n_items
    pairs = np.ones(len(entries.key))
    return added(Table(one, other, np.zeros(len(one), bool), entries.bin, pairs, entries.x))


def added(table: Table) -> Table:
    """Add the rows of one cluster, side and bin."""
    order = np.lexsort((table.bin, table.outside, table.other, table.one))
    sorted_ = table.taken(order)
    if not len(order):
        return sorted_
    keys = (sorted_.one, sorted_.other, sorted_.outside, sorted_.bin)
    changes = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    first = np.flatnonzero(np.concatenate([[True], changes]))
    return sorted_.taken(first)._replace(
        pairs=np.add.reduceat(sorted_.pairs, first), sums=np.add.reduceat(sorted_.sums, first)
    )


def squared(table: Table, n_bins: int) -> TableSums:
    """Square the sums of every cluster up to each bin, and add over clusters."""
    table = added(table)
    new = np.ones(len(table.one), dtype=bool)
    new[1:] = (table.one[1:] != table.one[:-1]) | (table.other[1:] != table.other[:-1])
    cluster = np.cumsum(new) - 1
    n_clusters = int(new.sum())
    clusters, sums = np.zeros(n_bins, dtype=np.int64), np.zeros((5, n_bins))
    for start in range(0, n_clusters, _KEYS_AT_ONCE):
        rows = slice(*np.searchsorted(cluster, [start, start + _KEYS_AT_ONCE]))
        shape = (min(_KEYS_AT_ONCE, n_clusters - start), n_bins)
        at = (cluster[rows] - start, table.bin[rows])
        sides = []
        for outside in (False, True):
            pairs = np.zeros(shape)
            np.add.at(pairs, at, np.where(table.outside[rows] == outside, table.pairs[rows], 0.0))
            sides.append(np.cumsum(pairs, axis=1))
        u = np.zeros(shape)
        np.add.at(u, at, table.sums[rows])
        u = np.cumsum(u, axis=1)
        c = sides[0] + sides[1]
        clusters += (c > 0).sum(axis=0)
        parts = (sides[0] ** 2, sides[1] ** 2, c**2, c * u, u**2)
        sums += np.array([part.sum(axis=0) for part in parts])
    return TableSums(clusters, sums[0], sums[1], Quadratic(sums[2], sums[3], sums[4]))
