"""DCG and NDCG of every query, and how they change from one scoring to another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mpc_lab.errors import MpcError, near_match
from mpc_lab.inference.clustered import Clustered, mean_over_queries, query_clusters
from mpc_lab.pairing.kernels import kernel, sort_order
from mpc_lab.pairing.log import Log, sort_rows
from mpc_lab.vocabulary import Flags, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


Weights = ArrayLike | Callable[[Floats], ArrayLike] | None


def dcg_weights(n: int) -> Floats:
    """Return 1/log2(k + 1) for the positions k = 1, …, n."""
    return np.asarray(1 / np.log2(np.arange(2, n + 2, dtype=np.float64)))


def position_weights(weights: Weights, n: int) -> Floats:
    """Return the weights of the positions 1, …, n.

    Parameters
    ----------
    weights : array, callable or None
        None: those of DCG. An array of at least `n` numbers, the first for the top. A function of
        the array of positions. They must be finite, not negative and strictly decreasing.
    n : int
        The length of the longest list.

    Examples
    --------
    >>> position_weights(lambda k: 0.5**k, 3).tolist()
    [0.5, 0.25, 0.125]
    """
    if weights is None:
        return dcg_weights(n)
    given: Any = weights(np.arange(1.0, n + 1)) if callable(weights) else weights
    try:
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise MpcError(f"Position weights must be numbers, but {given!r} came.") from None
    if found.ndim != 1 or len(found) < n:
        raise MpcError(
            f"Position weights must be a list of at least {n:,} numbers, the length of the "
            f"longest list, but an array of shape {found.shape} came: give more, or a function "
            "of the position."
        )
    found = found[:n]
    if not np.isfinite(found).all() or (found < 0).any() or (np.diff(found) >= 0).any():
        raise MpcError(
            "Position weights must be finite, 0 or above, and fall from each position to the "
            "next, but they do not: give strictly decreasing weights."
        )
    return found


Numbers = TypeVar("Numbers", Floats, Ints)
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

    dcg: Floats
    ideal: Floats
    size: Ints
    has_ndcg: bool

    @property
    def kept(self) -> Flags:
        """The queries that have an NDCG."""
        return np.asarray(self.has_ndcg & (self.ideal > 0))

    @property
    def ndcg(self) -> Floats:
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
    scores: Floats | None = None,
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
    kept: Flags | None = None,
    level: float = 0.95,
) -> dict[str, Clustered]:
    """Return the means of DCG and NDCG over queries, with intervals clustered by query (or unit).

    A query counts its weight.

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
    how: dict[str, Any] = {"weight": ranking.query_weights, "level": level}
    return {
        "dcg": mean_over_queries(found.dcg, cluster, n, kept=some, **how),
        "ndcg": mean_over_queries(found.ndcg, cluster, n, kept=some & found.kept, **how),
    }


def gains(outcome: Floats, gain: str) -> Floats:
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


def query_codes(ranking: Ranking, log: Log) -> Ints:
    """Return the ranking's code of each query of a log."""
    return ranking.query_code[log.row[log.starts[:-1]]]


def in_code_order(values: Numbers, code: Ints) -> Numbers:
    """Return values of a log's queries in the order of the ranking's query codes."""
    placed = np.empty_like(values)
    placed[code] = values
    return placed


@kernel
def _add_up(
    starts: Ints,
    score: Floats,
    worth: Floats,
    weights: Floats,
    dcg: Floats,
    ideal: Floats,
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


_ROUNDING = 1e-13


@dataclass(frozen=True)
class Change:
    """The objective before and after, and the mean of the differences query by query.

    Attributes
    ----------
    dcg, ndcg : Clustered
        After less before. Where no list changes its worth the change is 0 with the interval
        [0, 0].
    before, after : dict of Clustered
        The means of ``dcg`` and ``ndcg``.
    n_queries : int
        Queries compared.
    n_without_ideal : int
        Of these, the ones left out of NDCG because no item has a gain.
    n_single : int
        Of these, the ones of a single item; they are included.
    """

    dcg: Clustered
    ndcg: Clustered
    before: dict[str, Clustered]
    after: dict[str, Clustered]
    n_queries: int
    n_without_ideal: int
    n_single: int

    def flat(self) -> dict[str, float]:
        """Return plain numbers, under the names of ``audit.objective``."""
        numbers = {}
        for name in ("dcg", "ndcg"):
            after, difference = self.after[name], getattr(self, name)
            numbers[name] = after.estimate
            numbers[f"{name}_std_error"] = after.std_error
            numbers[f"{name}_change"] = difference.estimate
            numbers[f"{name}_change_low"] = difference.ci_low
            numbers[f"{name}_change_high"] = difference.ci_high
        return numbers


def paired_change(
    ranking: Ranking,
    new_scores: Floats,
    old_scores: Floats | None = None,
    *,
    weights: Weights = None,
    gain: str = "linear",
    level: float = 0.95,
) -> Change:
    r"""Compare the objective under two scorings of a ranking.

    :math:`\Delta = \frac{1}{Q} \sum_q (\mathrm{DCG}'_q - \mathrm{DCG}_q)`, and likewise for NDCG
    over the queries whose ideal DCG is above 0; with weights, the weighted mean. Intervals are
    clustered by query, or unit.

    Parameters
    ----------
    ranking : Ranking
    new_scores : float64 array
        The scores after.
    old_scores : float64 array, optional
        The scores before; by default those that were logged.
    weights, gain
        As in `query_objective`.
    level : float
    """
    before = query_objective(ranking, old_scores, weights=weights, gain=gain)
    after = query_objective(ranking, new_scores, weights=weights, gain=gain)
    return change_between(ranking, before, after, level=level)


def change_between(
    ranking: Ranking,
    before: QueryObjective,
    after: QueryObjective,
    *,
    kept: Flags | None = None,
    level: float = 0.95,
) -> Change:
    """Compare two objectives of the same ranking, over all its queries or those in `kept`."""
    some = np.ones(len(before.dcg), dtype=np.bool_) if kept is None else kept
    both = some & before.kept
    return Change(
        dcg=_mean(ranking, before.dcg, after.dcg, some, level),
        ndcg=_mean(ranking, before.ndcg, after.ndcg, both, level),
        before=mean_objective(before, ranking, kept=some, level=level),
        after=mean_objective(after, ranking, kept=some, level=level),
        n_queries=int(some.sum()),
        n_without_ideal=int((some & (before.ideal == 0)).sum()),
        n_single=int((some & (before.size == 1)).sum()),
    )


def _mean(ranking: Ranking, before: Floats, after: Floats, kept: Flags, level: float) -> Clustered:
    difference = after - before
    # A list in the same order is worth the same, in whichever order its gains are added.
    difference[np.abs(difference) <= _ROUNDING * np.abs(before)] = 0.0
    cluster, n_clusters = query_clusters(ranking)
    how: dict[str, Any] = {"weight": ranking.query_weights, "level": level}
    found = mean_over_queries(difference, cluster, n_clusters, kept=kept, **how)
    if kept.any() and not difference[kept].any():
        # Not a sample without spread: no list is worth more or less than before.
        return replace(found, std_error=0.0, ci_low=0.0, ci_high=0.0, reason="")
    return found
