"""Sums over the items of lists with too many pairs to list, by windows.

A row of such a list gives one entry a bin, for all its pairs there. An item that has this row and
no other is a cluster that is closed at once. Which two items make a pair is not seen, so dyads are
taken as occurring once: exact where every item is in one row, else the item variance keeps what
pairs of the same two items have in common twice instead of once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.arrays import Flags, Floats, Ints, Masks, Stop
from mpc_lab.pairing.bits import ONE
from mpc_lab.pairing.booking import CC, INSIDE, OUTSIDE, UNIT_CC, book_pairs, close_alone
from mpc_lab.pairing.compiling import inlined, kernel
from mpc_lab.pairing.entries import Entries, empty_entries, write
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.stopping import stop_flag
from mpc_lab.pairing.windows import (
    DOWN,
    N_PREFIX,
    UP,
    add_up,
    add_windows,
    end_above,
    start_below,
    tie_end_of,
)

# Long is a list with this many pairs of a group, and so many times its rows and thresholds. Below
# that all pairs are listed, though windows would cost less, so that dyads are seen.
LEAST_PAIRS = 1 << 20
PAIRS_PER_STEP = 4


class LongLists(NamedTuple):
    """The lists of a log that have too many pairs of a group to list.

    Attributes
    ----------
    flags : bool array (query,)
    pairs : (int, int)
        How many ``matched`` and ``mirrored`` pairs are in them.
    alone : bool array (item,)
        Whether the item is in one row of the log alone.
    recurring : int
        Rows of these lists whose item is in other rows too.
    """

    flags: Flags
    pairs: tuple[int, int]
    alone: Flags
    recurring: int

    @property
    def any(self) -> bool:
        """Whether there is such a list."""
        return max(self.pairs) > 0


def long_lists(log: Log, word: int, group: int, edges: Floats) -> LongLists:
    """Find the lists that have too many pairs of a group to list."""
    flags = np.zeros(len(log.starts) - 1, dtype=np.bool_)
    # Between n rows there are at most n²/4 pairs of a group.
    large = np.flatnonzero(np.diff(log.starts).astype(np.float64) ** 2 / 4 > LEAST_PAIRS)
    if not len(large):
        return LongLists(flags, (0, 0), np.zeros(0, dtype=np.bool_), 0)
    rows = (log.starts, log.score, log.outcome, log.masks[word], ONE << np.uint64(group))
    least = (LEAST_PAIRS, PAIRS_PER_STEP * len(edges))
    pairs = _find(*rows, edges[-1:].copy(), large, *least, flags, stop_flag())
    alone = np.bincount(log.item) == 1
    inside = np.repeat(flags, np.diff(log.starts))
    recurring = int((~alone[log.item[inside]]).sum())
    return LongLists(flags, (int(pairs[0]), int(pairs[1])), alone, recurring)


def book_long_lists(
    log: Log,
    word: int,
    group: int,
    edges: Floats,
    center: float,
    lists: LongLists,
    items: Floats,
    dyads: Floats,
    share: int = 0,
    shares: int = 1,
) -> list[Entries]:
    """Book the items that are in one row, and the dyads; return the entries of the other items.

    Parameters
    ----------
    items, dyads : float64 arrays (mode, bin, sum)
        Added to, with the first of the shares.
    share, shares : int
        Only entries whose item leaves this rest when divided by so many shares.

    Returns
    -------
    list of Entries
        Of ``matched`` and of ``mirrored``.
    """
    rows = (log.units, log.starts, log.score, log.outcome, log.masks[word], log.item)
    bit = ONE << np.uint64(group)

    def book(items: Floats, dyads: Floats, to: list[Entries]) -> list[int]:
        written = np.zeros(2, dtype=np.int64)
        _book(
            *rows,
            bit,
            edges,
            center,
            lists.flags,
            lists.alone,
            share,
            shares,
            items,
            dyads,
            to[0],
            to[1],
            written,
            stop_flag(),
        )
        return [int(n) for n in written]

    def room_for(numbers: list[int]) -> list[Entries]:
        return [empty_entries(n, weighted=True) for n in numbers]

    nothing = np.zeros((0, *items.shape[1:]))
    # Where no item recurs there is no entry; else entries are counted before they are written.
    room = room_for(book(nothing, nothing, room_for([0, 0])) if lists.recurring else [0, 0])
    if share == 0:
        book(items, dyads, room)
    else:
        book(nothing, nothing, room)
    return room


@kernel
def _find(
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    bit: np.uint64,
    last_edge: Floats,
    large: Ints,
    least: int,
    per_row: int,
    flags: Flags,
    stop: Stop,
) -> Ints:
    """Flag the long ones among large lists, and return how many pairs they have."""
    longest = 0
    for q in large:
        longest = max(longest, starts[q + 1] - starts[q])
    prefix, found = np.empty((1, longest + 1, N_PREFIX)), np.empty((1, 2, 1, 3))
    bits, places, center = np.full(1, bit), np.zeros((1, 1), dtype=np.int64), np.zeros(1)
    pairs = np.zeros(2, dtype=np.int64)
    for q in large:
        rows = (starts[q], starts[q + 1], score, outcome, mask, bits)
        add_windows(*rows, last_edge, places, center, prefix, found, stop)
        more = max(found[0, UP, 0, 0], found[0, DOWN, 0, 0])
        if more > least and more > per_row * (starts[q + 1] - starts[q]):
            flags[q] = True
            pairs[0] += np.int64(found[0, UP, 0, 0])
            pairs[1] += np.int64(found[0, DOWN, 0, 0])
    return pairs


class _List(NamedTuple):
    """One list: the rows it has, and sums over the first of them."""

    start: int
    end: int
    score: Floats
    edges: Floats
    others: Floats
    members: Floats


@inlined
def _look(
    here: _List,
    row: int,
    tie: int,
    tie_end: int,
    up: bool,
    inside: bool,
    y: float,
    ends: Ints,
    held: Floats,
) -> None:
    """Write the pairs of a row, their Σx and Σx² in each bin, looking up or down."""
    pairs, total, squares = 0.0, 0.0, 0.0
    for b in range(len(here.edges)):
        if up:
            first = tie
            last = end_above(here.score, row, here.end, here.edges[b], max(ends[b], tie))
            ends[b] = last
        else:
            last = tie_end
            first = start_below(here.score, row, tie_end, here.edges[b], ends[b])
            ends[b] = first
        one, other = here.others[first - here.start], here.others[last - here.start]
        if inside:
            c, s = other[0] - one[0], other[1] - one[1]
            x, xx = c * y - s, c * y * y - 2 * y * s + (other[2] - one[2])
        else:
            c = (last - first) - (other[0] - one[0])
            x = here.members[last - here.start] - here.members[first - here.start] - c * y
            xx = 0.0
        held[b, 0], held[b, 1], held[b, 2] = c - pairs, x - total, xx - squares
        pairs, total, squares = c, x, xx


@kernel
def _book(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    item: Ints,
    bit: np.uint64,
    edges: Floats,
    center: float,
    flags: Flags,
    alone: Flags,
    share: int,
    shares: int,
    items: Floats,
    dyads: Floats,
    matched: Entries,
    mirrored: Entries,
    n: Ints,
    stop: Stop,
) -> None:
    """Walk the rows of long lists, and look up and down from each."""
    ends, held = np.empty((2, len(edges)), dtype=np.int64), np.empty((len(edges), 3))
    for unit in range(len(units) - 1):
        for q in range(units[unit], units[unit + 1]):
            if not flags[q]:
                continue
            start, end = starts[q], starts[q + 1]
            others, members = np.empty((end - start + 1, N_PREFIX)), np.zeros(end - start + 1)
            off = add_up(start, end, outcome, mask, bit, others)
            for k in range(end - start):
                y = outcome[start + k] - off if mask[start + k] & bit else 0.0
                members[k + 1] = members[k] + y
            here = _List(start, end, score, edges, others, members)
            ends[:] = start
            tie, tie_end = start, start
            for row in range(start, end):
                if stop[0]:
                    return
                if row == tie_end:
                    tie, tie_end = row, tie_end_of(score, row, end)
                inside = (mask[row] & bit) != 0
                y = outcome[row] - off + (-center if inside else center)
                for side in (UP, DOWN):
                    _look(here, row, tie, tie_end, side == UP, inside, y, ends[side], held)
                    # A member looks up for its matched pairs, the others look down.
                    mode = 0 if (side == UP) == inside else 1
                    if inside and len(dyads):
                        for b in range(len(edges)):
                            c, x, xx = held[b, 0], held[b, 1], held[b, 2]
                            book_pairs(b, c, x, xx, CC, dyads[mode])
                            book_pairs(b, c, x, xx, UNIT_CC, dyads[mode])
                    if alone[item[row]]:
                        if len(items):
                            close_alone(held, INSIDE if inside else OUTSIDE, items[mode])
                    elif item[row] % shares == share:
                        to = matched if mode == 0 else mirrored
                        for b in range(len(edges)):
                            if held[b, 0] > 0:
                                if n[mode] < len(to.pairs):
                                    to.pairs[n[mode]] = held[b, 0]
                                write(to, n, mode, item[row], unit, b, not inside, held[b, 1])
