"""The pairs of one group, seen from their items and seen from their dyads, and what these add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mpc_lab.pairing.kernels import ONE, contrast, inlined, kernel, lowest, stable_order
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.modes import DOWN, TIE, UP, member_flags
from mpc_lab.pairing.pairs import pair_rows
from mpc_lab.pairing.weighting import BY_PAIRS, Weights, weight_of_pair
from mpc_lab.vocabulary import Bytes, Flags, Floats, Ints, Masks, Side

# From which item of a pair its entry is seen.
OF_GROUP, OF_OTHER, OF_BOTH, OF_NEITHER = range(4)


class GroupLog(NamedTuple):
    """A log with one of its groups, and the bins to sort its pairs into.

    Attributes
    ----------
    log : Log
    group : int
        A group of the log's masks.
    edges : float64 array (bin,)
        The thresholds, ascending.
    center : float
        Subtracted from each difference.
    """

    log: Log
    group: int
    edges: Floats
    center: float

    @property
    def bit(self) -> np.uint64:
        """The group's bit in its word of the masks."""
        return np.uint64(1) << np.uint64(self.group % 64)

    @property
    def rows(self) -> tuple[Ints, Ints, Floats, Floats, Masks, Ints]:
        """What kernels walk; the last are items, or producers where these are clusters."""
        log = self.log
        mask = log.masks[self.group // 64]
        return log.units, log.starts, log.score, log.outcome, mask, log.cluster

    @property
    def member(self) -> Flags:
        """Whether each row of the log is in the group."""
        return member_flags(self.log.masks[self.group // 64], self.group % 64)

    @property
    def n_items(self) -> int:
        """One more than the greatest code of an item, or of a producer."""
        return int(self.log.cluster.max(initial=0)) + 1


class Entries(NamedTuple):
    """Pairs seen from a cluster: its key, and the unit, bin, side and difference of each.

    Attributes
    ----------
    key : int64 array
        The item, or the dyad: the lesser item times the number of items plus the greater.
    unit : int64 array
        Ascending.
    bin : int64 array
    outside : uint8 array
        `OF_GROUP` where the item is the one of the group, `OF_OTHER` where it is the other one;
        `OF_BOTH` where both are of one producer, and `OF_NEITHER` where pairs that were seen from
        both items are taken away once.
    x : float64 array
        The centred difference of outcomes.
    pairs : float64 array
        How many pairs an entry is, or what its pairs count, with `x` their sum; empty where each is
        one that counts 1. Where a later pair of its query changes what a pair counts, the change is
        an entry in the bin of the later one.
    """

    key: Ints
    unit: Ints
    bin: Ints
    outside: Bytes
    x: Floats
    pairs: Floats

    def take(self, order: Ints | Flags | slice) -> Entries:
        """Return these entries, in this order."""
        return Entries(
            self.key[order],
            self.unit[order],
            self.bin[order],
            self.outside[order],
            self.x[order],
            self.pairs[order] if len(self.pairs) else self.pairs,
        )

    @property
    def weights(self) -> Floats:
        """How many pairs each entry is."""
        return self.pairs if len(self.pairs) else np.ones(len(self.key))


def join_entries(single: Entries, several: Entries) -> Entries:
    """Return entries that are one pair each together with others, in the order of units."""
    ones = single._replace(pairs=single.weights)
    columns: Any = zip(ones, several, strict=True)
    both = Entries(*(np.concatenate(parts) for parts in columns))
    return both.take(stable_order(both.unit))


def empty_entries(n: int, *, weighted: bool = False) -> Entries:
    """Return room for this many entries."""
    return Entries(
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.uint8),
        np.empty(n),
        np.empty(n if weighted else 0),
    )


class Room(NamedTuple):
    """Where entries are written, one side after the other.

    Attributes
    ----------
    entries : Entries
    next, end : int64 arrays (side,)
        The next free place of each side, and where its places end: beyond it entries are counted
        and not written.
    """

    entries: Entries
    next: Ints
    end: Ints


def make_room(sizes: Sequence[int], *, weighted: bool = False) -> Room:
    """Return room for this many entries of each side."""
    end = np.cumsum(np.array(sizes, dtype=np.int64))
    return Room(empty_entries(int(end[-1]), weighted=weighted), end - sizes, end)


class _Places(NamedTuple):
    """Where the entries of items are written, and where those of dyads."""

    items: Room
    dyads: Room


def list_entries(
    group: GroupLog,
    sides: Sequence[Side],
    counts: Sequence[int],
    skip: Flags | None = None,
    share: int = 0,
    shares: int = 1,
    twin: Sequence[int] = (),
) -> list[tuple[Entries, Entries]]:
    """List the pairs of a group on some sides, each seen from items and seen from dyads.

    Parameters
    ----------
    group : GroupLog
    sides : sequence of Side
    counts : sequence of int
        The pairs of each side up to the last threshold.
    skip : bool array (query,), optional
        Queries to leave out, whose pairs are not in `counts`. Neighbours are few in any query, and
        none is left out.
    share, shares : int
        Only entries whose key leaves this rest when divided by this many shares.
    twin : sequence of int
        The sides below, above and tied of a mode of two, where what a pair counts depends on how
        many pairs its query has on both.
    """
    found: dict[int, tuple[Entries, Entries]] = {}
    every = [k for k, side in enumerate(sides) if not side.neighbours]
    weights = group.log.weights
    by_query = weights is not None and weights.estimand != BY_PAIRS
    counted, weighted = shares > 1 or by_query, weights is not None
    if every:
        if skip is None:
            skip = np.zeros(len(group.log.starts) - 1, dtype=np.bool_)
        edges = np.array([sides[k].edges(group.edges) for k in every])
        together = np.array([every.index(k) for k in twin if by_query], dtype=np.int64)
        how = (group.bit, edges, group.center, group.log.sign, weights, together)
        write_down = partial(_list_pairs, *group.rows, skip, *how, group.n_items, share, shares)
        listed = _written(write_down, [counts[k] for k in every], counted, weighted)
        found |= dict(zip(every, listed, strict=True))
    for k, side in enumerate(sides):
        if side.neighbours:
            pairs = (*_neighbour_pairs(group, side), weights, len(group.edges))
            write_down = partial(_list_listed, *pairs, group.n_items, share, shares)
            found[k] = _written(write_down, [counts[k]], counted, weighted)[0]
    return [found[k] for k in range(len(sides))]


def _written(
    write: Callable[[_Places], None], counts: Sequence[int], counted: bool, weighted: bool
) -> list[tuple[Entries, Entries]]:
    """Make room for entries and write them; if `counted`, count them first to know the room."""
    sizes = [2 * n for n in counts], list(counts)
    if counted:
        nothing = [0] * len(counts)
        rooms = _Places(make_room(nothing), make_room(nothing))
        write(rooms)
        sizes = rooms.items.next.tolist(), rooms.dyads.next.tolist()
    places = _Places(*(make_room(size, weighted=weighted) for size in sizes))
    starts = [room.next.copy() for room in places]
    write(places)
    return [
        (
            places.items.entries.take(slice(starts[0][k], places.items.next[k])),
            places.dyads.entries.take(slice(starts[1][k], places.dyads.next[k])),
        )
        for k in range(len(counts))
    ]


def _neighbour_pairs(group: GroupLog, side: Side) -> tuple[Ints, Ints, Ints, Ints, Ints, Floats]:
    """Return the items, query, unit, bin and difference of each pair of neighbours."""
    log, edges = group.log, group.edges
    i, j = pair_rows(log, group.member, side, float(edges[-1]))
    query = np.searchsorted(log.starts, i, side="right") - 1
    unit = np.searchsorted(log.units, query, side="right") - 1
    up, down, tie = (np.searchsorted(own, log.distance(i, j)) for own in side.edges(edges))
    bins = np.where(log.score[i] < log.score[j], up, down)
    bins = np.where(log.score[i] == log.score[j], tie, bins)
    order, of = stable_order(query), log.cluster
    found = (of[i], of[j], query, unit, bins, log.contrast(i, j) - group.center)
    return tuple(np.ascontiguousarray(one[order]) for one in found)  # type: ignore[return-value]


@inlined
def write(
    to: Room, side: int, key: int, unit: int, b: int, outside: int, x: float, c: float
) -> None:
    """Write down an entry where there is room for it, and count it."""
    n = to.next[side]
    if n < to.end[side]:
        to.entries.key[n] = key
        to.entries.unit[n] = unit
        to.entries.bin[n] = b
        to.entries.outside[n] = outside
        to.entries.x[n] = x
        if len(to.entries.pairs):
            to.entries.pairs[n] = c
    to.next[side] = n + 1


@inlined
def _write_pair(
    to: _Places,
    side: int,
    i: int,
    j: int,
    unit: int,
    b: int,
    x: float,
    c: float,
    n_items: int,
    share: int,
    shares: int,
) -> None:
    if i == j:
        # Two items of one producer: the producer has the pair once, and there is no dyad.
        if shares == 1 or i % shares == share:
            write(to.items, side, i, unit, b, OF_BOTH, x, c)
        return
    dyad = min(i, j) * n_items + max(i, j)
    if shares == 1 or i % shares == share:
        write(to.items, side, i, unit, b, OF_GROUP, x, c)
    if shares == 1 or j % shares == share:
        write(to.items, side, j, unit, b, OF_OTHER, x, c)
    if shares == 1 or dyad % shares == share:
        write(to.dyads, side, dyad, unit, b, OF_GROUP, x, c)


@inlined
def _weigh_bins(held: Floats, weight: float, estimand: int) -> None:
    """Turn the pairs of a query by bin into what one of them counts up to there.

    Parameters
    ----------
    held : float64 array (2, bin)
        The pairs in each bin; what one counts.
    """
    pairs = 0.0
    for b in range(held.shape[1]):
        pairs += held[0, b]
        held[1, b] = weight_of_pair(weight, estimand, pairs)


@inlined
def _write_changes(
    to: _Places,
    side: int,
    i: int,
    j: int,
    unit: int,
    b: int,
    x: float,
    held: Floats,
    by_query: bool,
    n_items: int,
    share: int,
    shares: int,
) -> None:
    """Write down what a pair counts in its bin, and the change in each later one with a pair."""
    c = held[1, b]
    _write_pair(to, side, i, j, unit, b, c * x, c, n_items, share, shares)
    for later in range(b + 1, held.shape[1] if by_query else b + 1):
        if held[0, later] > 0:
            change = held[1, later] - c
            c = held[1, later]
            _write_pair(to, side, i, j, unit, later, change * x, change, n_items, share, shares)


@kernel
def _list_pairs(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    item: Ints,
    skip: Flags,
    bit: np.uint64,
    edges: Floats,
    center: float,
    sign: bool,
    weights: Weights | None,
    twin: Ints,
    n_items: int,
    share: int,
    shares: int,
    to: _Places,
) -> None:
    """Count the entries of all sides and, where there is room for them, write them down.

    Parameters
    ----------
    edges : float64 array (side, direction, bin)
    weights : Weights or None
        Without any, every pair counts 1. Else the pairs of a query are counted before.
    twin : int64 array
        Sides of which a query has the pairs together; empty where there are none.
    """
    n_sides, _, n_bins = edges.shape
    reach = np.full(2, -1.0)
    tie_bin, at = np.empty(n_sides, dtype=np.int64), np.zeros(n_sides, dtype=np.int64)
    for side in range(n_sides):
        tie_bin[side] = np.searchsorted(edges[side, TIE], 0.0)
        for direction in (UP, DOWN):
            reach[direction] = max(reach[direction], edges[side, direction, n_bins - 1])
    # The pairs of the query in each bin, and what one of them counts up to there.
    held = np.zeros((n_sides, 2, n_bins))
    first_turn = 1 if weights is None else 0
    for unit in range(len(units) - 1):
        for q in range(units[unit], units[unit + 1]):
            if skip[q]:
                continue
            for turn in range(first_turn, 2):
                if weights is not None:
                    if turn == 0:
                        held[:] = 0.0
                    else:
                        _share_bins(held, twin)
                        for side in range(n_sides):
                            _weigh_bins(held[side], weights.weight[q], weights.estimand)
                for lower in range(starts[q], starts[q + 1]):
                    in_lower = (mask[lower] & bit) != 0
                    direction = UP if in_lower else DOWN
                    at[:] = 0
                    for upper in range(lower + 1, starts[q + 1]):
                        distance = score[upper] - score[lower]
                        if distance > reach[direction]:
                            break
                        if ((mask[upper] & bit) != 0) == in_lower:
                            continue
                        i, j = (lower, upper) if in_lower else (upper, lower)
                        x = contrast(outcome[i] - outcome[j], sign) - center
                        for side in range(n_sides):
                            if distance == 0:
                                b = tie_bin[side]
                            elif distance > edges[side, direction, n_bins - 1]:
                                continue
                            else:
                                b = at[side]
                                while distance > edges[side, direction, b]:
                                    b += 1
                                at[side] = b
                            if b >= n_bins:
                                continue
                            if weights is None:
                                _write_pair(
                                    to,
                                    side,
                                    item[i],
                                    item[j],
                                    unit,
                                    b,
                                    x,
                                    1.0,
                                    n_items,
                                    share,
                                    shares,
                                )
                            elif turn == 0:
                                held[side, 0, b] += 1.0
                            else:
                                _write_changes(
                                    to,
                                    side,
                                    item[i],
                                    item[j],
                                    unit,
                                    b,
                                    x,
                                    held[side],
                                    weights.estimand != BY_PAIRS,
                                    n_items,
                                    share,
                                    shares,
                                )


@inlined
def _share_bins(held: Floats, twin: Ints) -> None:
    """Give all three sides the pairs of the first two together, which contain the third's."""
    if not len(twin):
        return
    below, above, tied = twin[0], twin[1], twin[2]
    for b in range(held.shape[2]):
        pairs = held[below, 0, b] + held[above, 0, b] - held[tied, 0, b]
        held[below, 0, b] = pairs
        held[above, 0, b] = pairs
        held[tied, 0, b] = pairs


@kernel
def _list_listed(
    i: Ints,
    j: Ints,
    query: Ints,
    unit: Ints,
    bins: Ints,
    x: Floats,
    weights: Weights | None,
    n_bins: int,
    n_items: int,
    share: int,
    shares: int,
    to: _Places,
) -> None:
    """Do the same for pairs that are listed already, query by query."""
    held = np.zeros((2, n_bins))
    for p in range(len(i)):
        if weights is None:
            _write_pair(to, 0, i[p], j[p], unit[p], bins[p], x[p], 1.0, n_items, share, shares)
        else:
            if p == 0 or query[p] != query[p - 1]:
                held[:] = 0.0
                end = p
                while end < len(i) and query[end] == query[p]:
                    held[0, bins[end]] += 1.0
                    end += 1
                _weigh_bins(held, weights.weight[query[p]], weights.estimand)
            by_query = weights.estimand != BY_PAIRS
            _write_changes(
                to,
                0,
                i[p],
                j[p],
                unit[p],
                bins[p],
                x[p],
                held,
                by_query,
                n_items,
                share,
                shares,
            )


# ---- what a cluster of pairs changes in sums of squares
#
# Sums are float64 arrays (bin, 10): in its first bin the cluster itself; Σc² of its pairs on the
# side of the group and on the other side; then Σc², ΣcU and ΣU², over clusters and over clusters
# inside a unit; then, for dyads, the pairs that might recur unseen. What is
# booked in a bin is the change there, so that sums of different clusters add up, and bins are
# cumulated at the end.

FIRST, INSIDE, OUTSIDE, CC, CU, UU, UNIT_CC, UNIT_CU, UNIT_UU, UNSEEN = range(10)
N_SUMS = 10


@inlined
def book_cluster(b: int, c: float, x: float, at: int, sums: Floats) -> None:
    """Book a cluster with c pairs, all of them in one bin."""
    sums[b, at] += c * c
    sums[b, at + 1] += c * x
    sums[b, at + 2] += x * x


@inlined
def book_pairs(b: int, c: float, x: float, xx: float, at: int, sums: Floats) -> None:
    """Book c pairs of one bin that are each a cluster, given their Σx and Σx²."""
    sums[b, at] += c
    sums[b, at + 1] += x
    sums[b, at + 2] += xx


@inlined
def hold(held: Floats, held_bins: Masks, b: int, c: float, x: float) -> None:
    """Keep some pairs of a cluster until it is closed."""
    held[b, 0] += c
    held[b, 1] += x
    held_bins[b >> 6] |= ONE << np.uint64(b & 63)


@inlined
def close(held: Floats, held_bins: Masks, at: int, sums: Floats) -> None:
    """Book the changes of Σc², ΣcU and ΣU² that a cluster makes, and wipe what is held of it."""
    pairs, total = 0.0, 0.0
    for word in range(len(held_bins)):
        bits = held_bins[word]
        held_bins[word] = np.uint64(0)
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            c, u = held[b, 0], held[b, 1]
            held[b, 0] = 0.0
            held[b, 1] = 0.0
            sums[b, at] += c * (2 * pairs + c)
            sums[b, at + 1] += pairs * u + c * total + c * u
            sums[b, at + 2] += u * (2 * total + u)
            pairs, total = pairs + c, total + u


@inlined
def close_sides(side: Floats, bins: Masks, sums: Floats) -> None:
    """Book a cluster's first bin and the changes of Σc² on either side."""
    inside, outside, fresh = 0.0, 0.0, 1.0
    for word in range(len(bins)):
        bits = bins[word]
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            sums[b, FIRST] += fresh
            sums[b, INSIDE] += side[b, 0] * (2 * inside + side[b, 0])
            sums[b, OUTSIDE] += side[b, 1] * (2 * outside + side[b, 1])
            inside, outside, fresh = inside + side[b, 0], outside + side[b, 1], 0.0
            side[b, 0] = 0.0
            side[b, 1] = 0.0


@inlined
def close_alone(held: Floats, at_side: int, sums: Floats) -> None:
    """Book a cluster that is in one row of one unit, given its pairs and Σx by bin.

    Parameters
    ----------
    held : float64 array (bin, at least 2)
    at_side : int
        ``INSIDE`` or ``OUTSIDE``.
    """
    pairs, total, fresh = 0.0, 0.0, 1.0
    for b in range(len(held)):
        c, u = held[b, 0], held[b, 1]
        if c > 0:
            cc, cu = c * (2 * pairs + c), pairs * u + c * total + c * u
            uu = u * (2 * total + u)
            sums[b, FIRST] += fresh
            sums[b, at_side] += cc
            for at in (CC, UNIT_CC):
                sums[b, at] += cc
                sums[b, at + 1] += cu
                sums[b, at + 2] += uu
            pairs, total, fresh = pairs + c, total + u, 0.0
