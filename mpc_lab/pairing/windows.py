"""Sum over the pairs of a long query without visiting them.

The rows whose score is at most ε above that of a row, or below it, are a run of the sorted query,
and both ends of the run only move forward as the row does. What a run adds is the difference of two
sums over the first rows of the query. So the work is rows × thresholds, whatever the number of
pairs: a list of a million items is handled too.
"""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.kernels import Stop, inlined, kernel
from mpc_lab.pairing.modes import DOWN, N_PLAIN, TIE, TIE_END, TIE_START, UP
from mpc_lab.vocabulary import Floats, Ints, Masks

# What is known of the first rows of a query that are not members: how many, Σy and Σy².
COUNT, SUM, SQUARES = range(3)
N_PREFIX = 3
# Rows that are handled together, and between two looks at whether to go on.
_TILE = 256


@inlined
def tie_end_of(score: Floats, first: int, end: int) -> int:
    """Return where the run of rows tied with the first ends."""
    last = first + 1
    while last < end and score[last] == score[first]:
        last += 1
    return last


@inlined
def end_above(score: Floats, row: int, end: int, epsilon: float, from_: int) -> int:
    """Return the end of the rows at most ε above a row, not before `from_`."""
    p = from_
    while p < end and score[p] - score[row] <= epsilon:
        p += 1
    return p


@inlined
def start_below(score: Floats, row: int, end: int, epsilon: float, from_: int) -> int:
    """Return the start of the rows at most ε below a row, not before `from_`."""
    p = from_
    while p < end and score[row] - score[p] > epsilon:
        p += 1
    return p


@inlined
def add_up(
    start: int, end: int, outcome: Floats, mask: Masks, bit: np.uint64, prefix: Floats
) -> float:
    """Write sums over the first rows that are not members; return the offset of outcomes.

    Outcomes are measured from one of them, so that a large number that all share does not drown
    their differences, and whole numbers stay whole.
    """
    # A query may have lost all its rows, and there may be none after it.
    off = outcome[(start + end) // 2] if end > start else 0.0
    prefix[0, :] = 0.0
    for k in range(end - start):
        y = outcome[start + k] - off
        out = (mask[start + k] & bit) == 0
        prefix[k + 1, COUNT] = prefix[k, COUNT] + (1.0 if out else 0.0)
        prefix[k + 1, SUM] = prefix[k, SUM] + (y if out else 0.0)
        prefix[k + 1, SQUARES] = prefix[k, SQUARES] + (y * y if out else 0.0)
    return off


@inlined
def _add_runs(sums: Floats, first: Ints, last: Ints, rows: Ints, y: Floats, to: Floats) -> None:
    """Add the pairs of some members, each with the other rows of a run: count, Σx and Σx²."""
    pairs, total, squares = 0.0, 0.0, 0.0
    for k in range(len(rows)):
        before, through = sums[first[rows[k]]], sums[last[rows[k]]]
        c = through[COUNT] - before[COUNT]
        s = through[SUM] - before[SUM]
        pairs += c
        total += c * y[k] - s
        squares += c * y[k] * y[k] - 2 * y[k] * s + (through[SQUARES] - before[SQUARES])
    to[COUNT] += pairs
    to[SUM] += total
    to[SQUARES] += squares


@kernel
def add_windows(
    start: int,
    end: int,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    bits: Masks,
    edges: Floats,
    run_first: Ints,
    run_last: Ints,
    center: Floats,
    prefix: Floats,
    found: Floats,
    stop: Stop,
) -> None:
    """Sum over the pairs of one query up to each threshold, for some groups.

    Where windows end is the same for all groups, and is found once. A tile of rows is handled
    threshold by threshold: its windows end next to each other, so that what is read stays close.

    Parameters
    ----------
    bits : uint64 array (group,)
        The bit of each group in the masks.
    edges : float64 array (edge,)
        The largest distances of all groups and sides, ascending.
    run_first, run_last : int64 arrays (group, side, threshold)
        Which ends the run of partners has: see :func:`mpc_lab.pairing.modes.run_ends`.
    center : float64 array (group,)
    prefix : float64 array (group, at least one more than there are rows, 3)
        Overwritten.
    found : float64 array (group, side, threshold, 3)
        Overwritten: pairs, Σx and Σx².
    """
    off = 0.0
    for k in range(len(bits)):
        off = add_up(start, end, outcome, mask, bits[k], prefix[k])  # the same for all
    found[:] = 0.0
    n_edges = len(edges)
    # Rows are counted from the first of the query.
    ends = np.empty((N_PLAIN + 2 * n_edges, _TILE), dtype=np.int64)
    reached = np.full((2, n_edges), start)
    members, y = np.empty(_TILE, dtype=np.int64), np.empty(_TILE)
    tie, tie_end = start, start
    for first in range(start, end, _TILE):
        if stop[0]:
            return
        n = min(_TILE, end - first)
        for r in range(n):
            if first + r == tie_end:
                tie, tie_end = tie_end, tie_end_of(score, tie_end, end)
            ends[TIE_START, r], ends[TIE_END, r] = tie - start, tie_end - start
        for e in range(n_edges):
            above, below = reached[UP, e], reached[DOWN, e]
            for r in range(n):
                tie_start, tie_stop = start + ends[TIE_START, r], start + ends[TIE_END, r]
                above = end_above(score, first + r, end, edges[e], max(above, tie_start))
                below = start_below(score, first + r, tie_stop, edges[e], below)
                ends[N_PLAIN + e, r] = above - start
                ends[N_PLAIN + n_edges + e, r] = below - start
            reached[UP, e], reached[DOWN, e] = above, below
        for k in range(len(bits)):
            m = 0
            for r in range(n):
                if mask[first + r] & bits[k]:
                    members[m], y[m] = r, outcome[first + r] - off - center[k]
                    m += 1
            if m == 0:
                continue
            for side in range(run_first.shape[1]):
                for b in range(run_first.shape[2]):
                    run, stop_at = ends[run_first[k, side, b]], ends[run_last[k, side, b]]
                    _add_runs(prefix[k], run, stop_at, members[:m], y, found[k, side, b])


@kernel
def nearest_distances(
    start: int, end: int, score: Floats, mask: Masks, bit: np.uint64, distances: Floats
) -> None:
    """Write how far each row is from the nearest of the other kind above it, below it and tied.

    Members are one kind, all others the other; -1 where there is none.

    Parameters
    ----------
    distances : float64 array (3, at least the number of rows)
    """
    last = np.empty(2)
    here = np.empty(2, dtype=np.bool_)
    for side in (UP, DOWN):
        last[:] = np.nan
        n = end - start
        first = 0
        while first < n:
            # The k-th row, counted from the end towards which this looks.
            sign, origin = (-1, end - 1) if side == UP else (1, start)
            tied = first
            here[:] = False
            while tied < n and score[origin + sign * tied] == score[origin + sign * first]:
                here[1 if mask[origin + sign * tied] & bit else 0] = True
                tied += 1
            for k in range(first, tied):
                row = origin + sign * k
                other = 0 if mask[row] & bit else 1
                distance = abs(score[row] - last[other])
                distances[side, row - start] = -1.0 if distance != distance else distance
                distances[TIE, row - start] = 0.0 if here[other] else -1.0
            for kind in range(2):
                if here[kind]:
                    last[kind] = score[origin + sign * first]
            first = tied


@inlined
def count_close(score: Floats, start: int, end: int, epsilon: float) -> int:
    """Return how many two rows of a query are at most ε apart, whatever their groups."""
    count, p = 0, start
    for row in range(start, end):
        p = end_above(score, row, end, epsilon, max(p, row + 1))
        count += p - row - 1
    return count


@kernel
def most_close(starts: Ints, score: Floats, epsilon: float) -> int:
    """Return the most pairs of rows at most ε apart that a query has."""
    most = 0
    for q in range(len(starts) - 1):
        most = max(most, count_close(score, starts[q], starts[q + 1], epsilon))
    return most
