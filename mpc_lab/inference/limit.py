"""The mean outcome difference as the score distance goes to 0, and how many pairs are near 0."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mpc_lab.errors import MpcError, check_number
from mpc_lab.inference.clustered import PairCodes, estimate_listed, pair_codes
from mpc_lab.inference.estimates import Estimates
from mpc_lab.pairing.kernels import kernel
from mpc_lab.pairing.weighting import ListedWeights
from mpc_lab.vocabulary import ITEM, NOT_ESTIMABLE, Floats, Ints


@dataclass(frozen=True)
class Fit:
    """A least-squares polynomial in the distance.

    Attributes
    ----------
    coefficients : array (degree + 1,)
        The coefficients of 1, Δ, Δ², …
    loadings : array (pair,)
        l_p of the coefficient that was asked for: it is Σ l_p d_p.
    residuals : array (pair,)
        e_p.
    """

    coefficients: Floats
    loadings: Floats
    residuals: Floats


def polynomial(
    distance: Floats, d: Floats, weight: Floats | None, *, degree: int, of: int = 0
) -> Fit | None:
    """Regress d on 1, Δ, …, Δ^degree, and say how each pair enters one coefficient.

    Parameters
    ----------
    distance, d : array (pair,)
    weight : array (pair,) or None
        None: all alike.
    degree : int
    of : int
        The power of Δ whose coefficient the loadings are of.

    Returns
    -------
    Fit or None
        None where there are too few distinct distances for the degree.
    """
    if distinct(distance) <= degree:
        return None
    largest = float(distance.max())
    # With distances in units of the largest, the normal equations are well conditioned.
    x = distance / largest
    powers = np.ones((degree + 1, len(x)))
    for k in range(degree):
        np.multiply(powers[k], x, out=powers[k + 1])
    weighted = powers if weight is None else powers * weight
    inner = np.einsum("kp,lp->kl", weighted, powers)
    # Distances may differ by rounding alone.
    if np.linalg.matrix_rank(inner, hermitian=True) <= degree:
        return None
    scaled = np.linalg.solve(inner, np.einsum("kp,p->k", weighted, d))
    pick = np.linalg.solve(inner, np.eye(degree + 1)[of])
    # With distances of 1e-300 or 1e300 a slope or a curvature may overflow.
    with np.errstate(all="ignore"):
        coefficients = scaled / largest ** np.arange(degree + 1)
        loadings = np.einsum("k,kp->p", pick, weighted) / largest**of
    return Fit(
        coefficients=coefficients,
        loadings=loadings,
        residuals=d - np.einsum("k,kp->p", scaled, powers),
    )


FEWEST_DISTANCES = 4


@kernel
def distinct(values: Floats, most: float = np.inf) -> int:
    """Return how many different numbers there are up to `most`, or 4 where there are more."""
    seen = np.empty(FEWEST_DISTANCES)
    found = 0
    for value in values:
        if value <= most and not (seen[:found] == value).any():
            seen[found] = value
            found += 1
            if found == FEWEST_DISTANCES:
                break
    return found


LOCAL_QUADRATIC = "local quadratic"
MEAN_OVER_TIES = "mean over ties"
_MOST_TIE_WEIGHT = 0.5


@dataclass(frozen=True)
class Limit:
    """The limit ε → 0 of one cell; its inference is NaN where it is not estimable.

    Attributes
    ----------
    estimate, std_error, ci_low, ci_high, p_value : float
    bandwidth : float
        h, the distance at which the weight of a pair reaches 0.
    tie_share, tie_mean : float
        Share of tied pairs among the pairs with Δ < h, and their own mean.
    tie_weight : float
        Share of the kernel weight at a distance of 0.
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
    distance: Floats,
    d: Floats,
    query: Ints,
    *,
    bandwidth: float,
    item_i: Ints | None = None,
    item_j: Ints | None = None,
    owner: str = ITEM,
    weights: ListedWeights | None = None,
    cluster: str = "query",
    level: float = 0.95,
) -> Limit:
    r"""Estimate the mean of d as the distance goes to 0.

    The intercept of a regression of d on 1, Δ, Δ² over the pairs with Δ < h, weighted by
    w = 1 − Δ/h. This is the robust bias-corrected local linear estimate with one bandwidth for
    the estimate and its bias [1]_. With l_p the weight of pair p in the intercept and e_p its
    residual, the variance is that of a mean over P pairs with u_p replaced by

    .. math:: z_p = l_p \, e_p \, P,

    and under ``cluster="query"`` it is multiplied by Q/(Q − 1)·(n − 1)/(n − 3), n the pairs with
    Δ < h, so that it equals a clustered ``WLS`` of statsmodels.

    Ties enter at Δ = 0. With fewer than 4 distinct distances below h, or more than half the kernel
    weight at 0, the estimate is the mean over ties.

    Parameters
    ----------
    distance, d : array (pair,)
        Distance and outcome difference of listed pairs, all those up to the bandwidth.
    query : array of int64 (pair,)
        Query, or unit, of each pair.
    bandwidth : float
        h, see `mpc_lab.inference.bandwidth.choose_bandwidth`; at 0 only ties are used.
    item_i, item_j : array of int64 (pair,), optional
        Items, or producers, for ``cluster="item"``, ``"producer"`` and ``"union"``.
    owner : {"item", "producer"}
        Which of the two.
    weights : ListedWeights, optional
        What pairs count, besides w; a query has the pairs with Δ < h.
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
    >>> distance = np.linspace(0, 1, 400)
    >>> d = 2 - 3 * distance + distance**2 + 0.01 * np.cos(np.arange(400))
    >>> found = limit(distance, d, np.arange(400) % 40, bandwidth=0.5)
    >>> round(found.estimate, 2), found.method
    (2.0, 'local quadratic')
    """
    check_bandwidth(bandwidth)
    distance, d = np.asarray(distance), np.asarray(d)
    tied = np.flatnonzero(distance == 0)
    near = np.append(tied, np.flatnonzero((distance > 0) & (distance < bandwidth)))
    n_ties, n_near = len(tied), len(near)
    item_i, item_j = (None if item is None else item[near] for item in (item_i, item_j))
    weights = None if weights is None else weights.take(near)
    count = None if weights is None else weights.of_pairs
    codes = pair_codes(query[near], item_i, item_j, owner, weight=count)
    distance, d = distance[near], d[near]
    weight = 1 - distance / bandwidth if bandwidth > 0 else np.ones(n_near)
    weight = weight if count is None else weight * count
    tie_weight = float(weight[:n_ties].sum() / weight.sum()) if n_near else float("nan")
    ties = codes.take(slice(n_ties))
    if weights is not None:
        ties = replace(ties, weight=weights.take(slice(n_ties)).of_pairs)
    why = why_ties(distinct(distance), tie_weight)
    found = None if why else _quadratic(distance, d, weight, codes, cluster, level)
    method = LOCAL_QUADRATIC
    if found is None:
        why = why or "the distances are too alike for a curve"
        method, n_near = MEAN_OVER_TIES, n_ties
        found = _mean(d[:n_ties], ties, cluster, level)
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
        tie_share=n_ties / len(distance) if len(distance) else float("nan"),
        tie_mean=ties.mean(d[:n_ties]),
        tie_weight=tie_weight,
        n_pairs=n_near,
        n_ties=n_ties,
        dof=float(found.dof),
        n_effective=float(found.n_effective),
        variance_from=str(found.variance_from),
        method=method,
        reason=why,
    )


def check_bandwidth(bandwidth: float) -> float:
    """Return the bandwidth as a float, or raise."""
    return check_number(
        "bandwidth", bandwidth, at_least=0, remedy="Leave it out to have it chosen."
    )


def why_ties(distances: int, tie_weight: float) -> str:
    """Return why no curve can be fitted and only ties are used; else an empty text."""
    if distances < FEWEST_DISTANCES:
        return f"only {distances} distinct distances inside the bandwidth"
    if tie_weight > _MOST_TIE_WEIGHT:
        return "more than half the weight is at a distance of 0"
    return ""


def _quadratic(
    distance: Floats,
    d: Floats,
    weight: Floats,
    codes: PairCodes,
    cluster: str,
    level: float,
) -> Estimates | None:
    fit = polynomial(distance, d, weight, degree=2)
    if fit is None:
        return None
    n = len(distance)
    z = fit.loadings * fit.residuals * n
    if cluster == "query":
        # The rest of statsmodels' correction, Q/(Q − 1), comes with the estimate.
        z *= np.sqrt((n - 1) / (n - 3))
    value = float(fit.coefficients[0])
    return estimate_listed(z, value, codes, cluster=cluster, level=level, weighted=True)


def _mean(d: Floats, codes: PairCodes, cluster: str, level: float) -> Estimates:
    center = float(d.mean()) if len(d) else 0.0
    return estimate_listed(d - center, center, codes, cluster=cluster, level=level)


BINS = 20


@dataclass(frozen=True)
class DistanceDensity:
    """Density of the distances above 0 and up to a width; ties are counted apart.

    Attributes
    ----------
    edges : array (bin + 1,)
        From 0 to the width; a bin holds its right end.
    counts : array of int64 (bin,)
    density : array (bin,)
        Share of all pairs for each unit of the distance.
    at_zero : float
        The density at 0, from the right; NaN where there is no pair.
    n_ties : int
        Pairs with a distance of 0, which have no density.
    """

    edges: Floats
    counts: Ints
    density: Floats
    at_zero: float
    n_ties: int


def distance_density(
    distance: Floats, width: float, *, total: int | None = None, bins: int = BINS
) -> DistanceDensity:
    """Estimate the density of distances near 0.

    A histogram of equal bins; at 0, where half of a kernel would look at nothing, the intercept
    of a line through the heights at the middles of the bins, weighted by 1 − Δ/width.

    Parameters
    ----------
    distance : array (pair,)
        Distances of pairs, all those up to `width`.
    width : float
        How far from 0 to look.
    total : int, optional
        Number of all pairs, whatever their distance; by default those given.
    bins : int
        Number of bins, at least 2.

    Returns
    -------
    DistanceDensity

    References
    ----------
    McCrary (2008), Manipulation of the running variable in the regression discontinuity design:
    a density test.

    Examples
    --------
    >>> import numpy as np
    >>> found = distance_density(np.linspace(0.0005, 0.9995, 1000), 0.2)
    >>> round(found.at_zero, 3), int(found.counts.sum())
    (1.0, 200)
    """
    if not (np.isfinite(width) and width > 0) or bins < 2:
        raise MpcError(
            f"A density must have a width above 0 and at least 2 bins; got {width} and {bins}."
        )
    distance = np.asarray(distance, dtype=np.float64)
    number = len(distance) if total is None else total
    edges = np.linspace(0.0, width, bins + 1)
    near = distance[(distance > 0) & (distance <= width)]
    place = np.searchsorted(edges, near, side="left") - 1
    counts = np.bincount(place, minlength=bins).astype(np.int64)
    # In units of the width, at which heights can be written whatever the scale of scores is.
    heights = np.asarray(counts * (bins / number) if number else np.full(bins, np.nan), np.float64)
    middles = (np.arange(bins) + 0.5) / bins
    line = polynomial(middles, heights, 1 - middles, degree=1)
    with np.errstate(over="ignore"):
        density = np.asarray(heights / width, np.float64)
        at_zero = float("nan") if line is None or not number else line.coefficients[0] / width
    return DistanceDensity(
        edges, counts, density, max(float(at_zero), 0.0), int((distance == 0).sum())
    )
