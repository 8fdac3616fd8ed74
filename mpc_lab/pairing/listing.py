"""List the actual pairs of one cell, for a person who wants to see some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab.pairing.arrays import Floats, Ints
from mpc_lab.pairing.log import Log, sort_rows
from mpc_lab.pairing.rows import pair_rows

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
    i, j = pair_rows(log, member, mode, epsilon)
    gap = log.gap(i, j)
    order = np.lexsort((log.row[j], log.row[i], gap))[:limit]
    i, j = i[order], j[order]
    rank = ranks(log, ranking, logged=scores is None)
    return {
        "row_i": log.row[i],
        "row_j": log.row[j],
        "gap": gap[order],
        "d": log.outcome[i] - log.outcome[j],
        "rank_i": rank[i],
        "rank_j": rank[j],
    }


def ranks(log: Log, ranking: Ranking, *, logged: bool) -> Ints:
    """Return the place of each row of the log in the ranked list of its query, 1 = top."""
    if logged and ranking.position is not None:
        return ranking.position[log.row]
    ends = np.repeat(log.starts[1:], np.diff(log.starts))
    return ends - np.arange(len(log.row), dtype=np.int64)
