"""The objective under two scorings of the same lists, compared query by query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.inference.arrays import BoolArray, FloatArray
from mpc_lab.objective.clustered import Clustered, mean_over_queries, query_clusters
from mpc_lab.objective.ndcg import QueryObjective, mean_objective, query_objective
from mpc_lab.objective.weights import Weights

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

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
    new_scores: FloatArray,
    old_scores: FloatArray | None = None,
    *,
    weights: Weights = None,
    gain: str = "linear",
    level: float = 0.95,
) -> Change:
    r"""Compare the objective under two scorings of a ranking.

    :math:`\Delta = \frac{1}{Q} \sum_q (\mathrm{DCG}'_q - \mathrm{DCG}_q)`, and likewise for NDCG
    over the queries whose ideal DCG is above 0. Intervals are clustered by query, or unit.

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
    kept: BoolArray | None = None,
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


def _mean(
    ranking: Ranking, before: FloatArray, after: FloatArray, kept: BoolArray, level: float
) -> Clustered:
    difference = after - before
    # A list in the same order is worth the same, in whichever order its gains are added.
    difference[np.abs(difference) <= _ROUNDING * np.abs(before)] = 0.0
    cluster, n_clusters = query_clusters(ranking)
    found = mean_over_queries(difference, cluster, n_clusters, kept=kept, level=level)
    if kept.any() and not difference[kept].any():
        # Not a sample without spread: no list is worth more or less than before.
        return replace(found, std_error=0.0, ci_low=0.0, ci_high=0.0, reason="")
    return found
