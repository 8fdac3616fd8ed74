"""Sums over the items of lists with too many pairs to list, by windows.

A row of such a list gives one entry a bin, for all its pairs there. An item that has this row and
no other is a cluster that is closed at once. Which two items make a pair is not seen, so dyads are
taken as occurring once: exact where every item is in one row, else the item variance keeps what
pairs of the same two items have in common twice instead of once. Where clusters are producers, the
pairs of two items of one producer are seen from both; a walk over the rows of each producer by
itself takes them away once, and out of the dyads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpc_lab.pairing.entries import (
    CC,
    INSIDE,
    OF_GROUP,
    OF_NEITHER,
    OF_OTHER,
    OUTSIDE,
    UNIT_CC,
    Entries,
    GroupLog,
    Room,
    book_pairs,
    close_alone,
    make_room,
    write,
)
from mpc_lab.pairing.kernels import Stop, inlined, kernel, stop_flag
from mpc_lab.pairing.leverage import weigh_run
from mpc_lab.pairing.modes import DOWN, N_PLAIN, TIE, TIE_START, UP, run_ends
from mpc_lab.pairing.windows import (
    N_PREFIX,
    add_up,
    add_windows,
    end_above,
    start_below,
    tie_end_of,
)
from mpc_lab.vocabulary import Flags, Floats, Ints, Masks, Side

# A list is long with this many pairs of a group, and this many times its rows and thresholds. Below
# that all pairs are listed, though windows would cost less, so that dyads are seen.
LEAST_PAIRS = 1 << 20
PAIRS_PER_STEP = 4


class LongLists(NamedTuple):
    """The lists of a log that have too many pairs of a group to list.

    Attributes
    ----------
    flags : bool array (query,)
    pairs : list of int
        How many pairs of each side are in them; none of neighbours, which are few.
    alone : bool array (item,)
        Whether the item is in one row of the log alone.
    recurring : int
        Rows of these lists whose item is in other rows too.
    """

    flags: Flags
    pairs: list[int]
    alone: Flags
    recurring: int

    def keep_all(self, group: GroupLog) -> LongLists:
        """Return the same lists with no item closed before it is seen from all sides and parts."""
        return self._replace(
            alone=np.zeros(len(self.alone), dtype=np.bool_),
            recurring=int(np.diff(group.log.starts)[self.flags].sum()),
        )


def find_long_lists(group: GroupLog, sides: Sequence[Side]) -> LongLists:
    """Find the lists that have too many pairs of a group to list, on any of some sides."""
    log, edges = group.log, group.edges
    flags = np.zeros(len(log.starts) - 1, dtype=np.bool_)
    pairs = np.zeros(len(sides), dtype=np.int64)
    every = [k for k, side in enumerate(sides) if not side.neighbours]
    # Between n rows there are at most n²/4 pairs of a group.
    large = np.flatnonzero(np.diff(log.starts).astype(np.float64) ** 2 / 4 > LEAST_PAIRS)
    # The sign of a difference is not a difference of sums, so such pairs are all listed. So are
    # pairs with different weights.
    if not len(large) or not every or log.sign or log.weights is not None:
        return LongLists(flags, pairs.tolist(), np.zeros(0, dtype=np.bool_), 0)
    by_side = np.array([sides[k].edges(edges[None, -1:]) for k in every])
    last_edges = np.unique(by_side[:, :TIE])
    runs = [run_ends(sides[k], own, last_edges) for k, own in zip(every, by_side, strict=True)]
    first, last = (np.stack(ends, axis=1) for ends in zip(*runs, strict=True))
    least = (LEAST_PAIRS, PAIRS_PER_STEP * len(edges))
    rows = (*group.rows[1:5], group.bit)
    pairs[every] = _find(*rows, last_edges, first, last, large, *least, flags, stop_flag())
    alone = np.bincount(log.cluster) == 1
    inside = np.repeat(flags, np.diff(log.starts))
    recurring = int((~alone[log.cluster[inside]]).sum())
    return LongLists(flags, pairs.tolist(), alone, recurring)


def book_long_lists(
    group: GroupLog,
    side: Side,
    lists: LongLists,
    items: Floats,
    dyads: Floats,
    weighing: tuple[Floats, Floats, Floats],
    share: int = 0,
    shares: int = 1,
) -> Entries:
    """Book the items that are in one row, and the dyads; return the entries of the other items.

    Parameters
    ----------
    items, dyads : float64 arrays (bin, sum)
        Added to, with the first of the shares.
    weighing : float64 arrays (bin,)
        What items are weighed by, and what those that are closed change: see `of_row`.
    share, shares : int
        Only entries whose item leaves this rest when divided by this many shares.
    """
    by_direction = np.array(side.edges(group.edges))
    every = np.unique(by_direction[:TIE])
    # What is above a member is seen up, what is above another one down.
    turned = Side(-side.high, -side.low, side.high_closed, side.low_closed)
    runs = np.array(
        [run_ends(side, by_direction, every), run_ends(turned, by_direction[[1, 0, 2]], every)]
    )

    own = _rows_by_producer(group, lists.flags) if len(group.log.owner) else None
    how = (group.bit, every, runs, group.center)

    def book(items: Floats, dyads: Floats, to: Room) -> int:
        last: Any = (lists.alone, share, shares, items, dyads, *weighing, to, stop_flag())
        _book(*group.rows, *how, lists.flags, False, *last)
        if own is not None:
            _book(*own, *how, np.ones(len(own[1]) - 1, dtype=np.bool_), True, *last)
        return int(to.next[0])

    nothing = np.zeros((0, items.shape[1]))
    # Where no item recurs there is no entry; else entries are counted before they are written.
    recur = book(nothing, nothing, make_room([0], weighted=True)) if lists.recurring else 0
    room = make_room([recur], weighted=True)
    if share == 0:
        book(items, dyads, room)
    else:
        book(nothing, nothing, room)
    return room.entries


def _rows_by_producer(
    group: GroupLog, flags: Flags
) -> tuple[Ints, Ints, Floats, Floats, Masks, Ints]:
    """Return the rows of long lists with every producer's rows in a list of their own."""
    units, starts, score, outcome, mask, owner = group.rows
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    rows = np.flatnonzero(flags[query])
    rows = rows[np.lexsort((owner[rows], query[rows]))]  # stable: scores still ascend
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = (np.diff(query[rows]) != 0) | (np.diff(owner[rows]) != 0)
    first = np.flatnonzero(fresh)
    unit = np.searchsorted(units, query[rows[first]], side="right") - 1
    return (
        np.searchsorted(unit, np.arange(len(units))).astype(np.int64),
        np.append(first, len(rows)).astype(np.int64),
        score[rows],
        outcome[rows],
        mask[rows],
        owner[rows],
    )


@kernel
def _find(
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    bit: np.uint64,
    edges: Floats,
    run_first: Ints,
    run_last: Ints,
    large: Ints,
    least: int,
    per_row: int,
    flags: Flags,
    stop: Stop,
) -> Ints:
    """Flag the long ones among large lists, and return how many pairs of each side they have."""
    longest, n_sides = 0, run_first.shape[1]
    for q in large:
        longest = max(longest, starts[q + 1] - starts[q])
    prefix, found = np.empty((1, longest + 1, N_PREFIX)), np.empty((1, n_sides, 1, 3))
    bits, center = np.full(1, bit), np.zeros(1)
    pairs = np.zeros(n_sides, dtype=np.int64)
    for q in large:
        rows = (starts[q], starts[q + 1], score, outcome, mask, bits)
        add_windows(*rows, edges, run_first, run_last, center, prefix, found, stop)
        most = 0.0
        for side in range(n_sides):
            most = max(most, found[0, side, 0, 0])
        if most > least and most > per_row * (starts[q + 1] - starts[q]):
            flags[q] = True
            for side in range(n_sides):
                pairs[side] += np.int64(found[0, side, 0, 0])
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
    inside: bool,
    y: float,
    runs: Ints,
    reached: Ints,
    held: Floats,
) -> None:
    """Write the pairs of a row, their Σx and Σx² in each bin.

    Parameters
    ----------
    runs : int64 array (first or last, bin)
        Which ends the run of partners has.
    reached : int64 array (above or below, edge)
        Where the rows before ended; moved forward.
    """
    n_edges = len(here.edges)
    for e in range(n_edges):
        reached[UP, e] = end_above(
            here.score, row, here.end, here.edges[e], max(reached[UP, e], tie)
        )
        reached[DOWN, e] = start_below(here.score, row, tie_end, here.edges[e], reached[DOWN, e])
    pairs, total, squares = 0.0, 0.0, 0.0
    for b in range(runs.shape[1]):
        first = _end(runs[0, b], n_edges, tie, tie_end, reached)
        last = _end(runs[1, b], n_edges, tie, tie_end, reached)
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


@inlined
def _end(which: int, n_edges: int, tie: int, tie_end: int, reached: Ints) -> int:
    """Return the row at which a run begins or ends."""
    if which < N_PLAIN:
        return tie if which == TIE_START else tie_end
    edge = which - N_PLAIN
    side = UP if edge < n_edges else DOWN
    return reached[side, edge - side * n_edges]  # type: ignore[no-any-return]


@inlined
def _weigh_alone(held: Floats, weight: Floats, mean: Floats, weighed: Floats) -> None:
    """Add what an item of one row changes."""
    c, u = 0.0, 0.0
    for b in range(len(weight)):
        c, u = c + held[b, 0], u + held[b, 1]
        if c > 0:
            weigh_run(b, b + 1, c, u, weight, mean, weighed)


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
    runs: Ints,
    center: float,
    flags: Flags,
    away: bool,
    alone: Flags,
    share: int,
    shares: int,
    items: Floats,
    dyads: Floats,
    weight: Floats,
    mean: Floats,
    weighed: Floats,
    to: Room,
    stop: Stop,
) -> None:
    """Walk the rows of long lists, and look for the partners of each.

    Parameters
    ----------
    runs : int64 array (inside or outside, first or last, bin)
        Which ends the run of partners of a member has, and that of another row.
    away : bool
        Whether the pairs are taken away, seen once from the item of the group.
    """
    n_bins = runs.shape[2]
    sign = -1.0 if away else 1.0
    reached, held = np.empty((2, len(edges)), dtype=np.int64), np.empty((n_bins, 3))
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
            reached[:] = start
            tie, tie_end = start, start
            for row in range(start, end):
                if stop[0]:
                    return
                if row == tie_end:
                    tie, tie_end = row, tie_end_of(score, row, end)
                inside = (mask[row] & bit) != 0
                y = outcome[row] - off + (-center if inside else center)
                _look(here, row, tie, tie_end, inside, y, runs[0 if inside else 1], reached, held)
                if inside and len(dyads):
                    for b in range(n_bins):
                        c, x, xx = sign * held[b, 0], sign * held[b, 1], sign * held[b, 2]
                        book_pairs(b, c, x, xx, CC, dyads)
                        book_pairs(b, c, x, xx, UNIT_CC, dyads)
                if away and not inside:
                    continue
                if alone[item[row]]:
                    if len(items) and not away:
                        close_alone(held, INSIDE if inside else OUTSIDE, items)
                        _weigh_alone(held, weight, mean, weighed)
                elif item[row] % shares == share:
                    for b in range(n_bins):
                        if held[b, 0] > 0:
                            seen = OF_NEITHER if away else (OF_GROUP if inside else OF_OTHER)
                            c, u = sign * held[b, 0], sign * held[b, 1]
                            write(to, 0, item[row], unit, b, seen, u, c)
