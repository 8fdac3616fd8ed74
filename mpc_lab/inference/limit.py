"""The mean outcome difference at a gap of 0, where no item is scored above the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpc_lab.arguments import as_number
from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import FloatArray, IntArray
from mpc_lab.inference.estimates import Estimates
from mpc_lab.inference.fitting import distinct, polynomial
from mpc_lab.inference.listed import PairCodes, estimate_listed, pair_codes

LOCAL_QUADRATIC = "local quadratic"
MEAN_OVER_TIES = "mean over ties"
NOT_ESTIMABLE = "not estimable"
_FEWEST_GAPS = 4
_MOST_TIE_WEIGHT = 0.5


@dataclass(frozen=True)
class Limit:
    """The limit ε → 0 of one cell; its inference is NaN where it is not estimable.

    Attributes
    ----------
    estimate, std_error, ci_low, ci_high, p_value : float
    bandwidth : float
        h, the gap at which the weight of a pair reaches 0.
    tie_share, tie_mean : float
        Share of tied pairs among the pairs with Δ < h, and their own mean.
    tie_weight : float
        Share of the kernel weight that stands at a gap of 0.
    n_pairs : int
        The pairs behind the estimate: those with Δ < h, or the ties.
    n_ties : int
        The tied pairs.
    dof, n_effective : float
        Degrees of freedom, and effective number of clusters.
    variance_from : str
        The variance that was used; "" where there is none.
    method : str
        "local quadratic", "mean over ties" or "not estimable".
    reason : str
        Why that method and not a local quadratic, or why there is no estimate; else "".
    """

    estimate: float
    std_error: float
    ci_low: float
    ci_high: float
    p_value: float
    bandwidth: float
    tie_share: float
    tie_mean: float
    tie_weight: float
    n_pairs: int
    n_ties: int
    dof: float
    n_effective: float
    variance_from: str
    method: str
    reason: str


def limit(
    gap: FloatArray,
    d: FloatArray,
    query: IntArray,
    *,
    bandwidth: float,
    item_i: IntArray | None = None,
    item_j: IntArray | None = None,
    cluster: str = "query",
    level: float = 0.95,
) -> Limit:
    r"""Estimate the mean of d as the gap goes to 0.

    The intercept of a regression of d on 1, Δ, Δ² over the pairs with Δ < h, weighted by
    w = 1 − Δ/h. This is the robust bias-corrected local linear estimate with one bandwidth for
    the estimate and its bias [1]_. With l_p the weight of pair p in the intercept and e_p its
    residual, the variance is that of a mean over P pairs with u_p replaced by

    .. math:: z_p = l_p \, e_p \, P,

    and under ``cluster="query"`` it is multiplied by Q/(Q − 1)·(n − 1)/(n − 3), n the pairs with
    Δ < h, so that it equals a clustered ``WLS`` of statsmodels.

    Ties enter at Δ = 0. With fewer than 4 distinct gaps below h, or more than half the kernel
    weight at 0, the estimate is the mean over ties.

    Parameters
    ----------
    gap, d : array (pair,)
        Gap and outcome difference of listed pairs, all those up to the bandwidth.
    query : array of int64 (pair,)
        Query, or unit, of each pair.
    bandwidth : float
        h, see `mpc_lab.inference.bandwidth.choose_bandwidth`; at 0 only ties are used.
    item_i, item_j : array of int64 (pair,), optional
        Items, for ``cluster="item"`` and ``"union"``.
    cluster : {"naive", "query", "item", "union"}
    level : float
        Confidence level.

    Returns
    -------
    Limit

    References
    ----------
    .. [1] Calonico, Cattaneo & Titiunik (2014), Robust nonparametric confidence intervals for
       regression-discontinuity designs.

    Examples
    --------
    >>> import numpy as np
    >>> gap = np.linspace(0, 1, 400)
    >>> d = 2 - 3 * gap + gap**2 + 0.01 * np.cos(np.arange(400))
    >>> found = limit(gap, d, np.arange(400) % 40, bandwidth=0.5)
    >>> round(found.estimate, 2), found.method
    (2.0, 'local quadratic')
    """
    check_bandwidth(bandwidth)
    order = np.argsort(gap, kind="stable")
    gap, d = np.asarray(gap)[order], np.asarray(d)[order]
    n_ties = int(np.searchsorted(gap, 0.0, side="right"))
    n_near = max(int(np.searchsorted(gap, bandwidth, side="left")), n_ties)
    near = order[:n_near]
    item_i, item_j = (None if item is None else item[near] for item in (item_i, item_j))
    codes = pair_codes(query[near], item_i, item_j)
    gap, d = gap[:n_near], d[:n_near]
    weight = 1 - gap / bandwidth if bandwidth > 0 else np.ones(n_near)
    tie_weight = n_ties / float(weight.sum()) if n_near else float("nan")
    why = _why_ties(distinct(gap), tie_weight)
    found = None if why else _quadratic(gap, d, weight, codes, cluster, level)
    method = LOCAL_QUADRATIC
    if found is None:
        why = why or "the gaps are too alike for a curve"
        method, n_near = MEAN_OVER_TIES, n_ties
        found = _mean(d[:n_ties], codes.take(slice(n_ties)), cluster, level)
    if not found.estimable:
        method = NOT_ESTIMABLE
        why = f"{why}; {found.reason}" if why else str(found.reason)
    return Limit(
        estimate=float(found.estimate),
        std_error=float(found.std_error),
        ci_low=float(found.ci_low),
        ci_high=float(found.ci_high),
        p_value=float(found.p_value),
        bandwidth=float(bandwidth),
        tie_share=n_ties / len(gap) if len(gap) else float("nan"),
        tie_mean=float(d[:n_ties].mean()) if n_ties else float("nan"),
        tie_weight=tie_weight,
        n_pairs=n_near,
        n_ties=n_ties,
        dof=float(found.dof),
        n_effective=float(found.n_effective),
        variance_from=str(found.variance_from),
        method=method,
        reason=why,
    )


def check_bandwidth(bandwidth: float) -> None:
    """Raise unless `bandwidth` is a finite number that is not negative."""
    if not 0 <= as_number(bandwidth) < np.inf:
        raise MpcError(
            f"bandwidth must be a finite score gap, 0 or above, got {bandwidth!r}; "
            "leave it out to have it chosen."
        )


def _why_ties(gaps: int, tie_weight: float) -> str:
    if gaps < _FEWEST_GAPS:
        return f"only {gaps} distinct gaps inside the bandwidth"
    if tie_weight > _MOST_TIE_WEIGHT:
        return "more than half the weight is at a gap of 0"
    return ""


def _quadratic(
    gap: FloatArray,
    d: FloatArray,
    weight: FloatArray,
    codes: PairCodes,
    cluster: str,
    level: float,
) -> Estimates | None:
    fit = polynomial(gap, d, weight, degree=2)
    if fit is None:
        return None
    n = len(gap)
    z = fit.loadings * fit.residuals * n
    if cluster == "query":
        # The rest of statsmodels' correction, Q/(Q − 1), comes with the estimate.
        z *= np.sqrt((n - 1) / (n - 3))
    return estimate_listed(z, float(fit.coefficients[0]), codes, cluster=cluster, level=level)


def _mean(d: FloatArray, codes: PairCodes, cluster: str, level: float) -> Estimates:
    center = float(d.mean()) if len(d) else 0.0
    return estimate_listed(d - center, center, codes, cluster=cluster, level=level)
