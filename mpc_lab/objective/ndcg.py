"""DCG and NDCG of every query, from rows sorted by score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mpc_lab.errors import MpcError, near_match
from mpc_lab.inference.arrays import BoolArray, FloatArray, IntArray
from mpc_lab.objective.clustered import Clustered, mean_over_queries, query_clusters
from mpc_lab.objective.weights import Weights, position_weights
from mpc_lab.pairing.compiling import kernel
from mpc_lab.pairing.log import Log, sort_rows
from mpc_lab.pairing.sorting import sort_order

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

Numbers = TypeVar("Numbers", FloatArray, IntArray)
GAINS = ("linear", "exponential")


@dataclass(frozen=True)
class QueryObjective:
    """The objective of each query, in the order of the ranking's query codes.

    Attributes
    ----------
    dcg, ideal : float64 array (query,)
        Σ w·gain in the order of the scores, and in the best order.
    size : int64 array (query,)
        Items of the query.
    has_ndcg : bool
        False where some outcome is negative: NDCG then has no meaning.
    """

    dcg: FloatArray
    ideal: FloatArray
    size: IntArray
    has_ndcg: bool

    @property
    def kept(self) -> BoolArray:
        """The queries that have an NDCG."""
        return np.asarray(self.has_ndcg & (self.ideal > 0))

    @property
    def ndcg(self) -> FloatArray:
        """DCG as a share of the ideal; NaN where the ideal is 0 or an outcome is negative."""
        share = np.full(len(self.dcg), np.nan)
        np.divide(self.dcg, self.ideal, out=share, where=self.kept)
        return share

    @property
    def n_without_ideal(self) -> int:
        """Queries without an NDCG because no item has a gain; they are left out of its mean."""
        return int((self.ideal == 0).sum())

    @property
    def n_single(self) -> int:
        """Queries of one item; they are included."""
        return int((self.size == 1).sum())


def query_objective(
    ranking: Ranking,
    scores: FloatArray | None = None,
    *,
    weights: Weights = None,
    gain: str = "linear",
    log: Log | None = None,
) -> QueryObjective:
    r"""Compute DCG and NDCG of each query.

    .. math::
        \mathrm{DCG} = \sum_k w_k\, \mathrm{gain}(y_{(k)}), \qquad
        \mathrm{NDCG} = \mathrm{DCG} / \max_{\text{orders}} \mathrm{DCG},

    over all items of the query, :math:`w_k = 1/\log_2(k+1)` unless other weights are given. Items
    with one score share the mean weight of their positions [2]_, so the order of the input does
    not matter; this is scikit-learn's default. The list is that of the scores, also where
    positions were logged.

    Parameters
    ----------
    ranking : Ranking
    scores : float64 array, optional
        Those of another rule than the logged ones.
    weights : array or callable, optional
        Strictly decreasing weights of positions: `position_weights`.
    gain : {"linear", "exponential"}
        y, or 2^y − 1.
    log : Log, optional
        The rows sorted by these scores, where they are sorted already.

    References
    ----------
    .. [1] Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques.
    .. [2] McSherry & Najork (2008), Computing information retrieval performance measures
       efficiently in the presence of tied scores.
    """
    log = sort_rows(ranking, scores) if log is None else log
    size = np.diff(log.starts)
    w = position_weights(weights, int(size.max(initial=0)))
    worth = gains(log.outcome, gain)
    dcg, ideal = np.empty(len(size)), np.empty(len(size))
    _add_up(log.starts, log.score, worth, w, dcg, ideal)
    code = query_codes(ranking, log)
    return QueryObjective(
        dcg=in_code_order(dcg, code),
        ideal=in_code_order(ideal, code),
        size=in_code_order(size, code),
        has_ndcg=bool((ranking.outcome >= 0).all()),
    )


def mean_objective(
    found: QueryObjective,
    ranking: Ranking,
    *,
    kept: BoolArray | None = None,
    level: float = 0.95,
) -> dict[str, Clustered]:
    """Return the means of DCG and NDCG over queries, with intervals clustered by query (or unit).

    Parameters
    ----------
    found : QueryObjective
    ranking : Ranking
        Where it came from.
    kept : array of bool (query,), optional
        Only over these queries.
    level : float

    Returns
    -------
    dict of Clustered
        ``dcg`` and ``ndcg``; the latter not estimable where outcomes are negative.
    """
    cluster, n = query_clusters(ranking)
    some = np.ones(len(found.dcg), dtype=np.bool_) if kept is None else kept
    return {
        "dcg": mean_over_queries(found.dcg, cluster, n, kept=some, level=level),
        "ndcg": mean_over_queries(found.ndcg, cluster, n, kept=some & found.kept, level=level),
    }


def gains(outcome: FloatArray, gain: str) -> FloatArray:
    """Return y, or 2^y − 1."""
    if gain not in GAINS:
        raise MpcError(
            f"gain must be 'linear' or 'exponential', but {gain!r} came.{near_match(gain, GAINS)}"
        )
    if gain == "linear":
        return outcome
    with np.errstate(over="ignore"):
        worth = np.exp2(outcome) - 1
    if not np.isfinite(worth).all():
        raise MpcError(
            f"Exponential gain takes outcomes up to 1023, but {outcome.max():g} came: "
            "use gain='linear' or smaller grades."
        )
    return np.asarray(worth)


def query_codes(ranking: Ranking, log: Log) -> IntArray:
    """Return the ranking's code of each query of a log."""
    return ranking.query_code[log.row[log.starts[:-1]]]


def in_code_order(values: Numbers, code: IntArray) -> Numbers:
    """Return values of a log's queries in the order of the ranking's query codes."""
    placed = np.empty_like(values)
    placed[code] = values
    return placed


@kernel
def _add_up(
    starts: IntArray,
    score: FloatArray,
    worth: FloatArray,
    weights: FloatArray,
    dcg: FloatArray,
    ideal: FloatArray,
) -> None:
    order = np.empty(len(weights), dtype=np.int64)
    spare = np.empty(len(weights), dtype=np.int64)
    for q in range(len(starts) - 1):
        start, end = starts[q], starts[q + 1]
        total = 0.0
        top = end
        while top > start:
            # Rows from `bottom` to before `top` are tied; the list is read from the end.
            bottom = top - 1
            shared, gain = weights[end - top], worth[bottom]
            while bottom > start and score[bottom - 1] == score[top - 1]:
                bottom -= 1
                shared += weights[end - 1 - bottom]
                gain += worth[bottom]
            total += gain * (shared / (top - bottom))
            top = bottom
        dcg[q] = total
        sort_order(worth[start:end], order, spare)
        total = 0.0
        for k in range(end - start):
            total += worth[start + order[end - start - 1 - k]] * weights[k]
        ideal[q] = total
