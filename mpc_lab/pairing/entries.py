"""The pairs of one group, seen from their items and seen from their dyads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.arrays import Flags, Floats, Ints, Masks
from mpc_lab.pairing.compiling import inlined, kernel
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.radix import stable_order


class Entries(NamedTuple):
    """Pairs seen from a cluster: its key, and the unit, bin, side and difference of each.

    Attributes
    ----------
    key : int64 array
        The item, or the dyad: the lesser item times the number of items plus the greater.
    unit : int64 array
        Ascending.
    bin : int64 array
    outside : bool array
        Whether the item is the one outside the group.
    x : float64 array
        The centred difference of outcomes.
    pairs : float64 array
        How many pairs an entry is, with `x` their sum; empty where each is one.
    """

    key: Ints
    unit: Ints
    bin: Ints
    outside: Flags
    x: Floats
    pairs: Floats

    def taken(self, order: Ints | Flags | slice) -> Entries:
        """Return these entries, in this order."""
        return Entries(
            self.key[order],
            self.unit[order],
            self.bin[order],
            self.outside[order],
            self.x[order],
            self.pairs[order] if len(self.pairs) else self.pairs,
        )


def joined(single: Entries, several: Entries) -> Entries:
    """Return entries that are one pair each together with others, in the order of units."""
    ones = single._replace(pairs=np.ones(len(single.x)))
    both = Entries(*(np.concatenate(parts) for parts in zip(ones, several, strict=True)))
    return both.taken(stable_order(both.unit))


class _Places(NamedTuple):
    """Where the entries of one mode are written, and how many there are."""

    items: Entries
    dyads: Entries
    n: Ints


def list_entries(
    log: Log,
    word: int,
    group: int,
    edges: Floats,
    center: float,
    counts: tuple[int, int],
    skip: Flags | None = None,
    share: int = 0,
    shares: int = 1,
) -> list[tuple[Entries, Entries]]:
    """List the ``matched`` and the ``mirrored`` pairs of a group from items and from dyads.

    Parameters
    ----------
    log : Log
    word, group : int
        Where the group stands in the masks.
    edges : float64 array (bin,)
        Ascending.
    center : float
    counts : (int, int)
        The pairs of either mode up to the last edge.
    skip : bool array (query,), optional
        Queries to leave out, whose pairs are not in `counts`.
    share, shares : int
        Only entries whose key leaves this rest when divided by so many shares.

    Returns
    -------
    list of (Entries, Entries)
        Items and dyads of ``matched``, then of ``mirrored``.
    """
    rows = (log.units, log.starts, log.score, log.outcome, log.masks[word], log.item)
    skip = np.zeros(len(log.starts) - 1, dtype=np.bool_) if skip is None else skip
    how = (np.uint64(group), edges, center, int(log.item.max(initial=0)) + 1, share, shares)
    if shares > 1:
        counted = tuple(_places(0, 0) for _ in range(2))
        _list_both_sides(*rows, skip, *how, *counted)
        places = [_places(*places.n) for places in counted]
    else:
        places = [_places(2 * count, count) for count in counts]
    _list_both_sides(*rows, skip, *how, *places)
    return [(place.items, place.dyads) for place in places]


def neighbour_entries(
    log: Log, i: Ints, j: Ints, edges: Floats, center: float
) -> tuple[Entries, Entries]:
    """Return the entries of listed pairs: rows of the group, rows of the other items."""
    gap = log.gap(i, j)
    unit = np.searchsorted(log.starts[log.units], i, side="right") - 1
    both = _places(2 * len(i), len(i))
    bins = np.searchsorted(edges, gap)
    x = log.outcome[i] - log.outcome[j] - center
    n_items = int(log.item.max(initial=0)) + 1
    _write_all(log.item[i], log.item[j], unit, bins, x, n_items, both)
    return both.items, both.dyads


def _places(n_items: int, n_dyads: int) -> _Places:
    return _Places(empty_entries(n_items), empty_entries(n_dyads), np.zeros(2, dtype=np.int64))


def empty_entries(n: int, *, weighted: bool = False) -> Entries:
    """Return room for so many entries."""
    return Entries(
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.bool_),
        np.empty(n),
        np.empty(n if weighted else 0),
    )


@inlined
def write(
    to: Entries, n: Ints, which: int, key: int, unit: int, b: int, outside: bool, x: float
) -> None:
    """Write down an entry where there is room for it, and count it in ``n[which]``."""
    if n[which] < len(to.key):
        to.key[n[which]] = key
        to.unit[n[which]] = unit
        to.bin[n[which]] = b
        to.outside[n[which]] = outside
        to.x[n[which]] = x
    n[which] += 1


@inlined
def _write_pair(
    to: _Places, i: int, j: int, unit: int, b: int, x: float, n_items: int, share: int, shares: int
) -> None:
    dyad = min(i, j) * n_items + max(i, j)
    if shares == 1 or i % shares == share:
        write(to.items, to.n, 0, i, unit, b, False, x)
    if shares == 1 or j % shares == share:
        write(to.items, to.n, 0, j, unit, b, True, x)
    if shares == 1 or dyad % shares == share:
        write(to.dyads, to.n, 1, dyad, unit, b, False, x)


@kernel
def _list_both_sides(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    item: Ints,
    skip: Flags,
    group: np.uint64,
    edges: Floats,
    center: float,
    n_items: int,
    share: int,
    shares: int,
    matched: _Places,
    mirrored: _Places,
) -> None:
    """Count the entries and, where there is room for them, write them down."""
    bit = np.uint64(1) << group
    for unit in range(len(units) - 1):
        for q in range(units[unit], units[unit + 1]):
            if skip[q]:
                continue
            for lower in range(starts[q], starts[q + 1]):
                edge = 0
                in_lower = (mask[lower] & bit) != 0
                for upper in range(lower + 1, starts[q + 1]):
                    gap = score[upper] - score[lower]
                    if gap > edges[-1]:
                        break
                    if ((mask[upper] & bit) != 0) == in_lower:
                        continue
                    while gap > edges[edge]:
                        edge += 1
                    i, j = (lower, upper) if in_lower else (upper, lower)
                    x = outcome[i] - outcome[j] - center
                    if in_lower or gap == 0:
                        _write_pair(
                            matched, item[i], item[j], unit, edge, x, n_items, share, shares
                        )
                    if not in_lower or gap == 0:
                        _write_pair(
                            mirrored, item[i], item[j], unit, edge, x, n_items, share, shares
                        )


@kernel
def _write_all(
    i: Ints, j: Ints, unit: Ints, bins: Ints, x: Floats, n_items: int, to: _Places
) -> None:
    for p in range(len(i)):
        _write_pair(to, i[p], j[p], unit[p], bins[p], x[p], n_items, 0, 1)
