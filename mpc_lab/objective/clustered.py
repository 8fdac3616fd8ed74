"""Estimates that are means or smooth functions of query sums, with intervals by query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.inference.arrays import BoolArray, FloatArray, IntArray, significance
from mpc_lab.inference.estimates import effective_clusters
from mpc_lab.inference.student import critical, two_sided_p

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

_NAN = float("nan")
# Below this share of what was added up, a spread is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Clustered:
    """One estimate with its inference; the interval is NaN where it cannot be estimated.

    Attributes
    ----------
    estimate, std_error, ci_low, ci_high, p_value, dof : float
        The p-value is two-sided, against `null`.
    n_effective : float
        Effective number of clusters, (Σc)²/Σc² over what each cluster weighs.
    null : float
        The value that says nothing is amiss.
    reason : str
        Why there is no interval; "" where there is one.
    """

    estimate: float
    std_error: float = _NAN
    ci_low: float = _NAN
    ci_high: float = _NAN
    p_value: float = _NAN
    dof: float = _NAN
    n_effective: float = _NAN
    null: float = 0.0
    reason: str = ""

    @property
    def estimable(self) -> bool:
        """Whether there is an interval."""
        return self.reason == ""


def from_influence(
    estimate: float,
    influence: FloatArray,
    effective: float,
    clusters: int,
    *,
    scale: float | None = None,
    level: float = 0.95,
    null: float = 0.0,
) -> Clustered:
    r"""Return an estimate whose error is a sum of one contribution a cluster.

    :math:`V = \frac{K}{K-1} \sum_k \psi_k^2`, and the interval is that of t with G − 1 degrees of
    freedom, K the plain and G the effective number of clusters.

    Parameters
    ----------
    estimate : float
    influence : array (cluster,)
        ψ, what each cluster adds to the error of the estimate.
    effective : float
        G.
    clusters : int
        K.
    scale : float, optional
        The size of the numbers that ψ are differences of; by default that of the estimate.
    level : float
    null : float
        What the p-value tests.
    """
    size = max(abs(estimate), scale or 0.0)
    spread = float(np.sqrt(influence @ influence))
    reason = ""
    if not np.isfinite(estimate):
        reason = "no finite estimate"
    elif not effective >= 2 * (1 - _ROUNDING) or clusters < 2:
        reason = "effective clusters below 2"
    elif not spread > _ROUNDING * size:
        reason = "variance is 0"
    if reason:
        return Clustered(estimate, n_effective=effective, null=null, reason=reason)
    std_error = spread * float(np.sqrt(clusters / (clusters - 1)))
    dof = max(effective - 1, 1.0)
    half = float(critical(significance(level) / 2, dof)) * std_error
    p_value = float(two_sided_p(np.array((estimate - null) / std_error), np.array(dof)))
    return Clustered(
        estimate,
        std_error=std_error,
        ci_low=estimate - half,
        ci_high=estimate + half,
        p_value=p_value,
        dof=dof,
        n_effective=effective,
        null=null,
    )


def ratio(
    sums: FloatArray, counts: FloatArray, *, level: float = 0.95, null: float = 0.0
) -> Clustered:
    r"""Return :math:`\theta = \sum D_k / \sum c_k`, a mean over what clusters are made of.

    Its error is :math:`\psi_k = (D_k - \theta c_k) / \sum c_k`. Clusters with c = 0 do not count.

    Parameters
    ----------
    sums, counts : array (cluster,)
        D and c.
    level, null : float
        As in `from_influence`.
    """
    counts = np.asarray(counts, dtype=np.float64)
    total = counts.sum()
    if not total > 0:
        return Clustered(_NAN, null=null, reason="nothing to count")
    # About the first mean: large outcomes would otherwise leave rounding in the second.
    near = sums.sum() / total
    estimate = float(near + (sums - near * counts).sum() / total)
    influence = (sums - estimate * counts) / total
    clusters = int(np.count_nonzero(counts))
    return from_influence(
        estimate,
        influence,
        effective(counts),
        clusters,
        scale=float(np.abs(sums).sum() / total),
        level=level,
        null=null,
    )


def mean_over_queries(
    values: FloatArray,
    cluster: IntArray,
    n_clusters: int,
    *,
    kept: BoolArray | None = None,
    level: float = 0.95,
) -> Clustered:
    """Return the mean of one number a query; queries of one cluster may go together.

    Parameters
    ----------
    values : array (query,)
    cluster : array of int64 (query,)
        The cluster of each query, from 0.
    n_clusters : int
    kept : array of bool (query,), optional
        The queries that have a value.
    level : float
    """
    if kept is not None:
        values, cluster = values[kept], cluster[kept]
    counts = np.bincount(cluster, minlength=n_clusters).astype(np.float64)
    sums = np.bincount(cluster, values, minlength=n_clusters).astype(np.float64)
    return ratio(sums, counts, level=level)


def effective(weights: FloatArray) -> float:
    """Return G = (Σc)²/Σc² of the weights of clusters; NaN where all are 0."""
    return float(effective_clusters(np.asarray(weights.sum()), np.asarray(weights @ weights)))


def query_clusters(ranking: Ranking) -> tuple[IntArray, int]:
    """Return the cluster of each query code, its unit or itself, and how many there are."""
    if ranking.unit_code is None:
        return np.arange(ranking.n_queries, dtype=np.int64), ranking.n_queries
    unit = np.empty(ranking.n_queries, dtype=np.int64)
    unit[ranking.query_code] = ranking.unit_code
    return unit, ranking.n_units


def row_clusters(ranking: Ranking) -> tuple[IntArray, int]:
    """Return the cluster of each row, its unit or its query, and how many there are."""
    code = ranking.query_code if ranking.unit_code is None else ranking.unit_code
    return code, ranking.n_units
