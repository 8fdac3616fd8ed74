"""The ranked lists of all queries, one under the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.inference.arrays import BoolArray, FloatArray, IntArray
from mpc_lab.objective.clustered import query_clusters
from mpc_lab.pairing.log import Log, sort_rows

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


@dataclass(frozen=True)
class Lists:
    """Rows in the order of their lists, query by query.

    Attributes
    ----------
    row : int64 array
        The row of the ranking that stands here.
    query : int64 array
        Its query code.
    rank : int64 array
        Its place in the list, from 1.
    position : int64 array
        Its logged position where the list is the logged one, else its rank.
    starts : int64 array, one longer than the number of queries
        Where each list starts.
    cluster : int64 array (query,)
        The cluster of each query code.
    n_clusters : int
    """

    row: IntArray
    query: IntArray
    rank: IntArray
    position: IntArray
    starts: IntArray
    cluster: IntArray
    n_clusters: int

    @property
    def n_queries(self) -> int:
        """Number of lists."""
        return len(self.starts) - 1

    def by_cluster(self, values: FloatArray, query: IntArray | None = None) -> FloatArray:
        """Add up one number a row, or a number for each of the queries given, over clusters."""
        of = self.cluster[self.query if query is None else query]
        return np.bincount(of, values, minlength=self.n_clusters).astype(np.float64)

    def by_query(self, values: FloatArray | BoolArray) -> FloatArray:
        """Add up one number a row over queries, in the order of query codes."""
        return np.bincount(self.query, values, minlength=self.n_queries).astype(np.float64)


def ranked_lists(
    ranking: Ranking, scores: FloatArray | None = None, *, log: Log | None = None
) -> Lists:
    """Return the ranked lists of a ranking.

    Under the logged scores with logged positions, the order of positions; in every other case
    descending score, a tie broken by position where there is one, else by the order of the input.

    Parameters
    ----------
    ranking : Ranking
    scores : float64 array, optional
        Those of another rule than the logged ones.
    log : Log, optional
        The rows sorted by these scores, where they are sorted already.
    """
    log = sort_rows(ranking, scores) if log is None else log
    sizes = np.diff(log.starts)
    rank = np.arange(len(log.row)) - np.repeat(log.starts[:-1], sizes) + 1
    row = log.row[np.repeat(log.starts[1:], sizes) - rank]
    position = rank
    if scores is None and ranking.position is not None:
        of_list = np.repeat(np.arange(len(sizes)), sizes)
        row = row[np.lexsort((ranking.position[row], of_list))]
        position = ranking.position[row]
    cluster, n_clusters = query_clusters(ranking)
    return Lists(
        row=row,
        query=ranking.query_code[row],
        rank=rank,
        position=position,
        starts=log.starts,
        cluster=cluster,
        n_clusters=n_clusters,
    )
