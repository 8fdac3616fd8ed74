"""List the actual pairs of one cell, for a person who wants to see some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab.pairing.arrays import Flags, Floats, Ints
from mpc_lab.pairing.compiling import kernel
from mpc_lab.pairing.log import Log, sort_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_lab.ranking import Ranking


def list_pairs(
    ranking: Ranking,
    group: str,
    scores: Floats | None,
    mode: str,
    epsilon: float,
    limit: int | None = None,
) -> dict[str, NDArray[Any]]:
    """List the pairs of one group, the closest first.

    Parameters
    ----------
    ranking : Ranking
    group : str
    scores : float64 array or None
        Scores of a rule; None for the logged scores.
    mode : {"matched", "mirrored", "adjacent"}
    epsilon : float
        The largest gap.
    limit : int, optional
        Keep this many of the closest pairs.

    Returns
    -------
    dict of arrays
        ``row_i``, ``row_j`` (rows of the ranking: the item of the group, the other item), ``gap``,
        ``d`` (difference of outcomes) and ``rank_i``, ``rank_j`` (places in the ranked list).
    """
    log = sort_rows(ranking, scores)
    member = ranking.member(group)[log.row]
    i, j = _rows(log, member, mode, epsilon)
    gap = np.abs(log.score[i] - log.score[j])
    order = np.lexsort((log.row[j], log.row[i], gap))[:limit]
    i, j = i[order], j[order]
    rank = _ranks(log, ranking, logged=scores is None)
    return {
        "row_i": log.row[i],
        "row_j": log.row[j],
        "gap": gap[order],
        "d": log.outcome[i] - log.outcome[j],
        "rank_i": rank[i],
        "rank_j": rank[j],
    }


def _rows(log: Log, member: Flags, mode: str, epsilon: float) -> tuple[Ints, Ints]:
    if mode == "adjacent":
        upper = np.flatnonzero(log.below >= 0)
        lower = log.below[upper]
        close = np.abs(log.score[upper] - log.score[lower]) <= epsilon
        cross = close & (member[upper] != member[lower])
        upper, lower = upper[cross], lower[cross]
        return np.where(member[upper], upper, lower), np.where(member[upper], lower, upper)
    matched = mode == "matched"
    nothing = np.empty(0, dtype=np.int64)
    n = _list(log.starts, log.score, member, matched, epsilon, nothing, nothing)
    i, j = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    _list(log.starts, log.score, member, matched, epsilon, i, j)
    return i, j


@kernel
def _list(
    starts: Ints,
    score: Floats,
    member: Flags,
    matched: bool,
    epsilon: float,
    i: Ints,
    j: Ints,
) -> int:
    """Count the pairs and, where the arrays have room for them, write them down."""
    n = 0
    for q in range(len(starts) - 1):
        for lower in range(starts[q], starts[q + 1]):
            for upper in range(lower + 1, starts[q + 1]):
                gap = score[upper] - score[lower]
                if gap > epsilon:
                    break
                if member[lower] == member[upper] or (member[lower] != matched and gap > 0):
                    continue
                if n < len(i):
                    i[n] = lower if member[lower] else upper
                    j[n] = upper if member[lower] else lower
                n += 1
    return n


def _ranks(log: Log, ranking: Ranking, *, logged: bool) -> Ints:
    if logged and ranking.position is not None:
        return ranking.position[log.row]
    ends = np.repeat(log.starts[1:], np.diff(log.starts))
    return ends - np.arange(len(log.row), dtype=np.int64)
