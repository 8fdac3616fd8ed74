"""The pairs of one group in one part of a log, seen from items and from dyads."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.arrays import Floats, Masks
from mpc_lab.pairing.bits import ONE
from mpc_lab.pairing.booking import N_SUMS
from mpc_lab.pairing.entries import Entries, joined, list_entries, neighbour_entries
from mpc_lab.pairing.gather import Layout, gather
from mpc_lab.pairing.item_tables import Table
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.long_items import book_long_lists, long_lists
from mpc_lab.pairing.rows import pair_rows
from mpc_lab.pairing.walk import PlainWalk

_PLACES_FOR_A_ROW = 4  # a table of all there can be is worth it up to here


class Listed(NamedTuple):
    """The pairs of one mode.

    Attributes
    ----------
    items, dyads : Entries
    unseen : float64 array (bin, sum)
        What dyads come to that are in lists too long to see them.
    """

    items: Entries
    dyads: Entries
    unseen: Floats


def list_part(log: Log, group: int, edges: Floats, center: float, n_modes: int) -> list[Listed]:
    """List the pairs of a group in a part of a log, for each mode."""
    word, bit = divmod(group, 64)
    matched, mirrored = _counts(log, word, bit, edges)
    lists = long_lists(log, word, bit, edges)
    ordinary = (matched - lists.pairs[0], mirrored - lists.pairs[1])
    listed = list_entries(log, word, bit, edges, center, ordinary, lists.flags)
    unseen = np.zeros((n_modes, len(edges), N_SUMS))
    if lists.any:
        # Any item may be in another part too, so none of them can be closed here.
        alone = np.zeros(len(lists.alone), dtype=np.bool_)
        every = lists._replace(alone=alone, recurring=int(np.diff(log.starts)[lists.flags].sum()))
        nothing = np.zeros((2, len(edges), N_SUMS))
        more = book_long_lists(log, word, bit, edges, center, every, nothing, unseen[:2])
        listed = [
            (joined(items, added), dyads)
            for (items, dyads), added in zip(listed, more, strict=True)
        ]
    if n_modes == 3:
        member = np.asarray(log.masks[word] & (ONE << np.uint64(bit)) != 0)
        i, j = pair_rows(log, member, "adjacent", float(edges[-1]))
        listed.append(neighbour_entries(log, i, j, edges, center))
    return [Listed(*both, booked) for both, booked in zip(listed, unseen, strict=True)]


def _counts(log: Log, word: int, bit: int, edges: Floats) -> tuple[int, int]:
    """Return how many ``matched`` and ``mirrored`` pairs there are up to the last edge."""
    mine = (log.masks[word] >> np.uint64(bit)) & ONE
    alone = PlainWalk(replace(log, masks=np.ascontiguousarray(mine[None])))
    layout = Layout(0, np.ascontiguousarray(edges[None, -1:]), np.zeros(1))
    found = gather(alone, layout, 0, adjacent=False).pairs
    return int(found[0, 0, -1]), int(found[1, 0, -1])


def rows_of_items(entries: Entries, n_items: int, n_bins: int) -> Table:
    """Return a row for each item, side and bin, or for each entry where few are alike."""
    weight = entries.pairs if len(entries.pairs) else np.ones(len(entries.key))
    places = 2 * n_items * n_bins
    if places > _PLACES_FOR_A_ROW * len(entries.key):
        return Table(entries.key, entries.key, entries.outside, entries.bin, weight, entries.x)
    at = (entries.key * 2 + entries.outside) * n_bins + entries.bin
    pairs = np.bincount(at, weight, minlength=places).astype(np.float64)
    sums = np.bincount(at, entries.x, minlength=places).astype(np.float64)
    there = np.flatnonzero(pairs)
    item, outside = there // (2 * n_bins), (there // n_bins) % 2 == 1
    return Table(item, item, outside, there % n_bins, pairs[there], sums[there])


def rows_of_dyads(entries: Entries, n_items: int) -> Table:
    """Return a row for each entry: most dyads occur once."""
    one, other = entries.key // n_items, entries.key % n_items
    ones, inside = np.ones(len(one)), np.zeros(len(one), dtype=np.bool_)
    return Table(one, other, inside, entries.bin, ones, entries.x)


def mixed(one: Masks, other: Masks) -> Masks:
    """Return 64 well mixed bits of two keys."""
    bits = one * np.uint64(0x9E3779B97F4A7C15) ^ (other + np.uint64(0x632BE59BD9B4E019))
    bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray(bits ^ (bits >> np.uint64(32)))
