"""The pairs of one group themselves: counted, listed, capped, and reassigned at random.

For results that sums alone cannot give, and for people who want to see pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.pairing.kernels import ONE, Stop, contrast, interruptible, kernel, stop_flag
from mpc_lab.pairing.log import Log, compare_group
from mpc_lab.pairing.modes import DOWN, TIE, UP, run_ends
from mpc_lab.pairing.selection import count_pairs, count_up_to, kth_smallest_distances
from mpc_lab.pairing.terms import AS_LOGGED, Terms
from mpc_lab.pairing.threads import ThreadedWalk
from mpc_lab.pairing.walk import Logs
from mpc_lab.pairing.windows import COUNT, N_PREFIX, SUM, add_windows
from mpc_lab.vocabulary import MODES, TIES, Flags, Floats, Ints, Masks, Mode, Side

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_lab.ranking import Ranking


MOST_LISTED = 50_000_000
MOST_CLOSE = 50_000_000


def list_pairs(
    ranking: Ranking,
    group: str,
    scores: Floats | None,
    mode: str,
    epsilon: float,
    limit: int | None = None,
    terms: Terms = AS_LOGGED,
) -> dict[str, NDArray[Any]]:
    """List the pairs of one group, the closest first.

    Parameters
    ----------
    ranking : Ranking
    group : str
    scores : float64 array or None
        Scores of a rule; None for the logged scores.
    mode : str
        The name of a pairing mode.
    epsilon : float
        The largest distance.
    limit : int, optional
        Keep this many of the closest pairs.
    terms : Terms
        On what terms they are compared.

    Returns
    -------
    dict of arrays
        ``row_i``, ``row_j`` (rows of the ranking: the item of the group, the other item),
        ``distance`` (on the scale of the terms), ``d`` (difference of outcomes, or its sign),
        ``weight`` (what the pair counts) and ``rank_i``, ``rank_j`` (places in the ranked list).
    """
    log, whole = compare_group(ranking, group, scores, terms)
    member = ranking.member(group)[log.row]
    i, j = pair_rows(log, member, MODES[mode].side, epsilon)
    distance, weights = log.distance(i, j), log.weights_of(i)
    count = np.ones(len(i)) if weights is None else weights.of_pairs
    order = np.lexsort((log.row[j], log.row[i], distance))[:limit]
    i, j = i[order], j[order]
    rank = np.empty(ranking.n_rows, dtype=np.int64)
    rank[whole.row] = ranks(whole, ranking, logged=scores is None)
    return {
        "row_i": log.row[i],
        "row_j": log.row[j],
        "distance": distance[order],
        "d": log.contrast(i, j),
        "weight": count[order],
        "rank_i": rank[log.row[i]],
        "rank_j": rank[log.row[j]],
    }


def ranks(log: Log, ranking: Ranking, *, logged: bool) -> Ints:
    """Return the place of each row of the log in the ranked list of its query, 1 = top."""
    if logged and ranking.position is not None:
        return ranking.position[log.row]
    return ranks_of(log)


def ranks_of(log: Log) -> Ints:
    """Return the place of each row of the log by its score, 1 = top."""
    ends = np.repeat(log.starts[1:], np.diff(log.starts))
    return np.asarray(ends - np.arange(len(log.row), dtype=np.int64))


def pair_rows(
    log: Log,
    member: Flags,
    side: Side,
    epsilon: float,
    *,
    units: tuple[int, int] | None = None,
    count: int | None = None,
    room: int | None = None,
) -> tuple[Ints, Ints]:
    """Return rows of the log: the item of the group, and the other item, of each pair.

    Parameters
    ----------
    log : Log
    member : bool array (row,)
        Whether the row of the log is in the group.
    side : Side
    epsilon : float
        The threshold.
    units : (first, last), optional
        Only the units from `first` to before `last`.
    count : int, optional
        The number of pairs, where it is known.
    room : int, optional
        About how many there are at most; then they are counted only where there are more.

    Returns
    -------
    i, j : int64 arrays
        Ascending by unit and query.
    """
    first, last = units or (0, len(log.units) - 1)
    starts = log.starts[log.units[first] : log.units[last] + 1]
    edges = np.array(side.edges(np.array(epsilon)))
    if side.neighbours:
        return _neighbours(log, member, edges, int(starts[0]), int(starts[-1]))
    if count is None and room is not None:
        i, j = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        count = interruptible(len(log.row), _list, starts, log.score, member, edges, i, j)
        if count <= room:
            return i[:count], j[:count]
    if count is None:
        count = int(count_and_sum(log, member, side, epsilon)[0][first:last].sum())
    if count > MOST_LISTED:
        raise MpcError(
            f"There must be at most {MOST_LISTED:,} pairs to list; got {count:,} with a distance "
            f"of at most {epsilon:.4g}. Ask for smaller distances."
        )
    i, j = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    interruptible(len(log.row), _list, starts, log.score, member, edges, i, j)
    return i, j


def sums_by_unit(log: Log, member: Flags, side: Side, epsilon: float) -> tuple[Floats, Floats]:
    """Return what the pairs of each unit count and the sum of their differences, for one group.

    Only neighbours are listed for it. The arguments are those of `pair_rows`.
    """
    weights = log.weights
    if weights is None:
        return _count_and_sum(log, member, side, epsilon)
    found = _count_and_sum(_each_query(log), member, side, epsilon)
    return _by_unit(log, weights.of_pairs(found[0]), found)


def _each_query(log: Log) -> Log:
    """Return the log with every query a unit."""
    return replace(log, units=np.arange(len(log.starts), dtype=np.int64))


def _by_unit(log: Log, factor: Floats, found: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Add pairs and sums of queries over units, a pair counting the factor of its query."""
    unit = np.repeat(np.arange(len(log.units) - 1), np.diff(log.units))
    c, d = (np.bincount(unit, factor * one, minlength=len(log.units) - 1) for one in found)
    return c.astype(np.float64), d.astype(np.float64)


def _count_and_sum(log: Log, member: Flags, side: Side, epsilon: float) -> tuple[Floats, Floats]:
    if not side.neighbours and not log.sign:
        return count_and_sum(log, member, side, epsilon)
    if not side.neighbours:
        return _visit_and_sum(log, member, side, epsilon)
    i, j = pair_rows(log, member, side, epsilon)
    unit = unit_of_rows(log, i)
    n_units = len(log.units) - 1
    d = log.contrast(i, j)
    pairs, sums = np.bincount(unit, minlength=n_units), np.bincount(unit, d, minlength=n_units)
    return pairs.astype(np.float64), sums.astype(np.float64)


def _visit_and_sum(log: Log, member: Flags, side: Side, epsilon: float) -> tuple[Floats, Floats]:
    """Add up signs, which windows cannot."""
    count, total = np.zeros(len(log.units) - 1), np.zeros(len(log.units) - 1)
    edges = np.array(side.edges(np.array(epsilon)))
    rows = (log.units, log.starts, log.score, log.outcome, member)
    interruptible(len(log.row), _add_signs, *rows, edges, count, total)
    return count, total


def count_and_sum(log: Log, member: Flags, side: Side, epsilon: float) -> tuple[Floats, Floats]:
    """Return the pairs of each unit and the sum of their differences, for one group.

    Parameters
    ----------
    log : Log
    member : bool array (row,)
        Whether the row of the log is in the group.
    side : Side
        A side of all pairs, not of neighbours alone.
    epsilon : float
        The threshold.
    """
    count, total = np.zeros(len(log.units) - 1), np.zeros(len(log.units) - 1)
    rows = (log.units, log.starts, log.score, log.outcome, member.astype(np.uint64))
    by_direction = np.array(side.edges(np.array([[epsilon]])))
    edges = np.unique(by_direction[:TIE])
    first, last = (ends[:, None] for ends in run_ends(side, by_direction, edges))

    def work() -> None:
        _sum_windows(*rows, edges, first, last, count, total, stop_flag())

    interruptible(len(log.row), work)
    return count, total


def unit_of_rows(log: Log, rows: Ints) -> Ints:
    """Return the unit that each of some rows of the log is in."""
    return np.asarray(np.searchsorted(log.starts[log.units], rows, side="right") - 1)


def sums_by_side(
    log: Log, member: Flags, mode: Mode, epsilon: float
) -> list[tuple[Floats, Floats]]:
    """Return the weight of the pairs of each unit and the sum of their differences, by side.

    A tied pair has the weight that its side gives it.
    """
    weights = log.weights
    each = log if weights is None else _each_query(log)
    ties = _count_and_sum(each, member, TIES, epsilon)
    found, pairs = [], -ties[0]
    for side in mode.sides:
        whole = _count_and_sum(each, member, replace(side, tie_weight=1.0), epsilon)
        less = 1.0 - side.tie_weight
        found.append((whole[0] - less * ties[0], whole[1] - less * ties[1]))
        pairs += whole[0]
    if weights is None:
        return found
    return [_by_unit(log, weights.of_pairs(pairs), one) for one in found]


def _neighbours(log: Log, member: Flags, edges: Floats, start: int, end: int) -> tuple[Ints, Ints]:
    upper = start + np.flatnonzero(log.below[start:end] >= 0)
    lower = log.below[upper]
    cross = member[upper] != member[lower]
    upper, lower = upper[cross], lower[cross]
    i, j = np.where(member[upper], upper, lower), np.where(member[upper], lower, upper)
    direction = np.where(log.score[i] < log.score[j], UP, DOWN)
    direction = np.where(log.score[i] == log.score[j], TIE, direction)
    close = log.distance(i, j) <= edges[direction]
    return i[close], j[close]


def count_matched(log: Log, epsilon: float | None = None) -> int:
    """Count the ``matched`` pairs of the first group of a log, up to a distance or all of them."""
    if epsilon is None:
        return int(count_pairs(ThreadedWalk(log), 0, 1)[0])
    return int(count_up_to(ThreadedWalk(log), 0, np.array([epsilon]))[0])


def nearest_distance(log: Log, most: int, pairs: int | None = None) -> float:
    """Return the distance up to which there are `most` ``matched`` pairs of the first group.

    Pairs tied at that distance are included. Where there are no more than `most`, it is the
    largest distance; where there is none, NaN. `pairs` is how many there are, where that is
    known.
    """
    total = np.array([count_matched(log) if pairs is None else pairs])
    return float(kth_smallest_distances(ThreadedWalk(log), 0, total, np.minimum(total, most))[0])


def check_listable(log: Log, epsilon: float) -> int:
    """Return the number of ``matched`` pairs up to a distance, or refuse to list so many."""
    pairs = count_matched(log, epsilon)
    if pairs > MOST_LISTED:
        raise MpcError(
            f"There must be at most {MOST_LISTED:,} pairs to list; got {pairs:,} with a distance "
            f"of at most {epsilon:.4g}. Ask for smaller distances, or, where scores have few "
            "values, for the estimate at epsilon=0."
        )
    return pairs


def count_side(log: Log, member: Flags, side: Side, epsilon: float = np.inf) -> int:
    """Count the pairs of a group on one side, up to a threshold or all of them."""
    counted = _count_and_sum if side.neighbours else count_and_sum
    return int(counted(log, member, side, epsilon)[0].sum())


def reach_of(log: Log, member: Flags, side: Side, most: int) -> float:
    """Return a threshold up to which there are `most` pairs of a group on one side, or few more.

    Pairs tied there are included. Where there are fewer, it is the largest distance.
    """
    wanted = min(most, count_side(log, member, side))
    few = wanted // 64
    # The bits of a floating-point number, 0 or above, are its place in the order of all of them.
    low, high = -1, int(np.float64(np.inf).view(np.int64))
    while high - low > 1:
        middle = low + (high - low) // 2
        epsilon = float(np.int64(middle).view(np.float64))
        count = count_side(log, member, side, epsilon)
        if count < wanted:
            low = middle
        else:
            high = middle
        if 0 <= count - wanted < few:
            break
    return float(np.int64(high).view(np.float64))


def close_rows(log: Log, epsilon: float) -> tuple[Ints, Ints]:
    """Return all pairs of rows of one query with a distance of at most ε, whatever their groups.

    Returns
    -------
    lower, upper : int64 arrays
        Rows of the log; the upper has the higher score or the same.
    """
    count = _count_above(log.starts, log.score, epsilon)
    total = int(count.sum())
    if total > MOST_CLOSE:
        raise MpcError(
            f"There must be at most {MOST_CLOSE:,} pairs of rows to list; got {total:,} with a "
            f"distance of at most {epsilon:.4g}. Choose a smaller epsilon."
        )
    lower = np.repeat(np.arange(len(count)), count)
    first = np.cumsum(count) - count
    return lower, lower + 1 + np.arange(total) - first[lower]


def shuffle_within(starts: Ints, member: Flags, rng: np.random.Generator) -> Flags:
    """Return membership shuffled inside each query: every query keeps its number of members."""
    shuffled = member.copy()
    _shuffle(starts, rng.random(len(member)), shuffled)
    return shuffled


@kernel
def _list(starts: Ints, score: Floats, member: Flags, edges: Floats, i: Ints, j: Ints) -> int:
    """Write the pairs down as far as there is room, and return how many there are."""
    n = 0
    for q in range(len(starts) - 1):
        for lower in range(starts[q], starts[q + 1]):
            reach = edges[UP if member[lower] else DOWN]
            for upper in range(lower + 1, starts[q + 1]):
                distance = score[upper] - score[lower]
                if distance > reach:
                    break
                if member[lower] == member[upper] or (distance == 0 and edges[TIE] < 0):
                    continue
                if n < len(i):
                    i[n] = lower if member[lower] else upper
                    j[n] = upper if member[lower] else lower
                n += 1
    return n


@kernel
def _add_signs(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    member: Flags,
    edges: Floats,
    count: Floats,
    total: Floats,
) -> None:
    for unit in range(len(units) - 1):
        for q in range(units[unit], units[unit + 1]):
            for lower in range(starts[q], starts[q + 1]):
                reach = edges[UP if member[lower] else DOWN]
                for upper in range(lower + 1, starts[q + 1]):
                    distance = score[upper] - score[lower]
                    if distance > reach:
                        break
                    if member[lower] == member[upper] or (distance == 0 and edges[TIE] < 0):
                        continue
                    d = contrast(outcome[lower] - outcome[upper], True)
                    count[unit] += 1.0
                    total[unit] += d if member[lower] else -d


@kernel
def _sum_windows(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    edges: Floats,
    run_first: Ints,
    run_last: Ints,
    count: Floats,
    total: Floats,
    stop: Stop,
) -> None:
    longest = 0
    for q in range(len(starts) - 1):
        longest = max(longest, starts[q + 1] - starts[q])
    prefix, found = np.empty((1, longest + 1, N_PREFIX)), np.empty((1, 1, 1, 3))
    bits, center = np.full(1, ONE), np.zeros(1)
    for unit in range(len(units) - 1):
        for q in range(units[unit], units[unit + 1]):
            rows = (starts[q], starts[q + 1], score, outcome, mask, bits)
            add_windows(*rows, edges, run_first, run_last, center, prefix, found, stop)
            count[unit] += found[0, 0, 0, COUNT]
            total[unit] += found[0, 0, 0, SUM]


@kernel
def _count_above(starts: Ints, score: Floats, epsilon: float) -> Ints:
    """Count, for each row, the rows after it in its query with a distance of at most ε."""
    count = np.zeros(len(score), dtype=np.int64)
    for q in range(len(starts) - 1):
        upper = starts[q]
        for lower in range(starts[q], starts[q + 1]):
            upper = max(upper, lower + 1)
            while upper < starts[q + 1] and score[upper] - score[lower] <= epsilon:
                upper += 1
            count[lower] = upper - lower - 1
    return count


@kernel
def _shuffle(starts: Ints, uniform: Floats, member: Flags) -> None:
    for q in range(len(starts) - 1):
        for k in range(starts[q + 1] - 1, starts[q], -1):
            other = starts[q] + np.int64(uniform[k] * (k - starts[q] + 1))
            member[k], member[other] = member[other], member[k]


# ---- at most this many pairs of a unit: the closest, chosen without a look at outcomes; a sequence
# of bets needs a bound on what one query can add (`mpc_lab.inference.sequence`)

# What is added up over units with c pairs and a sum of differences D.
CAPPED_SUMS = ("pairs", "sums", "cc", "cd", "dd")


def capped_by_unit(
    log: Log, member: Flags, side: Side, epsilon: float, cap: int, seed: int
) -> tuple[Floats, Floats]:
    """Return the pairs of each unit, at most `cap`, and the sum of their differences.

    A unit with more keeps those with the smallest distance; of pairs at one distance, those whose
    row numbers have the smallest seeded hash.

    Parameters
    ----------
    log : Log
    member : bool array (row,)
        Whether the row of the log is in the group.
    side : Side
    epsilon : float
        The threshold.
    cap : int
    seed : int

    Returns
    -------
    pairs, sums : float64 arrays (unit,)
        In the order of the log; NaN for a unit that has too many pairs to be looked through.
    """
    pairs, sums = sums_by_unit(log, member, side, epsilon)
    first_rows = log.starts[log.units]
    for first, last in log.blocks:
        if not (pairs[first:last] > cap).any():
            continue
        count = int(pairs[first:last].sum())
        if count > MOST_LISTED:
            large = first + np.flatnonzero(pairs[first:last] > cap)
            pairs[large] = sums[large] = np.nan
            continue
        i, j = pair_rows(log, member, side, epsilon, units=(first, last), count=count)
        unit = np.searchsorted(first_rows, i, side="right") - 1
        kept = _closest(unit, log.distance(i, j), _hash(log, i, j, seed), cap)
        here = unit[kept] - first
        d = log.contrast(i[kept], j[kept])
        pairs[first:last] = np.bincount(here, minlength=last - first)
        sums[first:last] = np.bincount(here, d, minlength=last - first)
    return pairs, sums


def _closest(unit: Ints, distance: Floats, hashed: Masks, cap: int) -> Ints:
    """Return which pairs are among the first `cap` of their unit."""
    order = np.lexsort((hashed, distance, unit))
    ordered = unit[order]
    place = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return np.sort(order[place < cap])


def _hash(log: Log, i: Ints, j: Ints, seed: int) -> Masks:
    """Return a hash of two row numbers, and of the part of the log that they number."""
    hashed = _mix(np.full(len(i), seed, dtype=np.uint64) ^ np.uint64(log.origin))
    for row in (log.row[i], log.row[j]):
        hashed = _mix(hashed ^ row.astype(np.uint64))
    return hashed


def _mix(bits: Masks) -> Masks:
    """Return the next number of a SplitMix64 generator in each of these states."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def capped_totals(
    modes: Sequence[Mode], epsilon: Floats, cap: int, seed: int, logs: Logs
) -> Floats:
    """Return the sums `CAPPED_SUMS` over the units of some logs; a task for `Source.together`.

    Parameters
    ----------
    modes : sequence of Mode
    epsilon : float64 array (rule, group)
        The threshold of each cell.
    cap, seed : int
        As in `capped_by_unit`.
    logs : iterator of (rule, groups, log)

    Returns
    -------
    float64 array (rule, mode, group, sum)
    """
    n_rules, n_groups = epsilon.shape
    total = np.zeros((n_rules, len(modes), n_groups, len(CAPPED_SUMS)))
    for rule, groups, log in logs:
        for k, group in enumerate(groups):
            bit = np.uint64(1) << np.uint64(k % 64)
            member = np.asarray(log.masks[k // 64] & bit != 0)
            for m, mode in enumerate(modes):
                if mode.two_sided:  # a mean of two means is not a ratio of sums to bet on
                    continue
                limits = (float(epsilon[rule, group]), cap, seed)
                c, d = capped_by_unit(log, member, mode.side, *limits)
                total[rule, m, group] = [c.sum(), d.sum(), c @ c, c @ d, d @ d]
    return total


def count_outside(low: float, high: float, logs: Logs) -> int:
    """Count the rows of a log whose outcome is not within bounds; a task for `Source.together`."""
    # If groups are compared with one other group, each has a log of its own.
    return max(int(((log.outcome < low) | (log.outcome > high)).sum()) for _, _, log in logs)
