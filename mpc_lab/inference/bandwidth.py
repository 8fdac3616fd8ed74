"""How near to 0 a gap must be to count for the limit ε → 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import FloatArray, IntArray
from mpc_lab.inference.fitting import clustered_variance, dot, polynomial

CANDIDATES = 20
LARGEST_LIST = 2_000_000
_RANK = 101


@dataclass(frozen=True)
class Bandwidth:
    """A bandwidth and the comparison it won.

    Attributes
    ----------
    value : float
        h; 0 where every gap is 0.
    candidates, criterion : array
        The bandwidths that were compared, and the mean squared error expected at each; infinite
        where a line cannot be fitted.
    curvature, curvature_std_error : float
        m₂ and s₂ of the pilot fit; NaN where there was none.
    """

    value: float
    candidates: FloatArray
    criterion: FloatArray
    curvature: float
    curvature_std_error: float


def choose_bandwidth(gap: FloatArray, d: FloatArray, query: IntArray) -> Bandwidth:
    r"""Choose the bandwidth that should give the local linear fit its least squared error.

    .. math::
        h = \arg\min_h \; (m_2^2 + s_2^2) \, b(h)^2 / 4 + V(h), \qquad
        b(h) = \sum_p l_p \Delta_p^2

    m₂ is twice the coefficient of Δ² in a cubic fitted to the nearer half of the gaps, s₂ its
    standard error clustered by query, V(h) the query-clustered variance of the local linear fit
    with triangular weights. No closed form stands in for V: shared queries add a part to it that
    hardly depends on h. The candidates are 20 values, evenly on a log scale from the larger of
    the 2 % quantile and the 101st smallest gap to the 90 % quantile.

    Parameters
    ----------
    gap, d : array (pair,)
        Gap and outcome difference of the ``matched`` pairs without limit, or of the 2,000,000
        with the smallest gaps.
    query : array of int64 (pair,)
        Query, or unit, of each pair.

    Returns
    -------
    Bandwidth

    References
    ----------
    Imbens & Kalyanaraman (2012), Optimal bandwidth choice for the regression discontinuity
    estimator; the penalty s₂² is theirs in spirit.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> gap = rng.random(2000)
    >>> chosen = choose_bandwidth(gap, np.sin(3 * gap) + rng.normal(size=2000), np.arange(2000))
    >>> 0 < chosen.value < 1
    True
    """
    if len(gap) == 0:
        raise MpcError("A bandwidth needs pairs, but there is none; choose another group.")
    order = np.argsort(gap, kind="stable")
    gap, d, query = gap[order], d[order], query[order]
    # Powers of gaps near 1 stay finite; a power of two changes no digit.
    widest = float(gap[-1])
    unit = 2.0 ** math.frexp(widest)[1] if 0 < widest < 1e300 else max(widest, 1.0)
    gap = gap / unit
    candidates = _candidates(gap)
    m2, s2 = _curvature(gap, d, query)
    # In Python's own numbers, which know infinity without a warning.
    curved = m2 / unit / unit, s2 / unit / unit
    if not np.isfinite(m2):
        missing = np.full(len(candidates), np.inf)
        return Bandwidth(float(candidates[-1] * unit), candidates * unit, missing, *curved)
    criterion = np.array([_squared_error(gap, d, query, h, m2, s2) for h in candidates])
    best = int(criterion.argmin()) if np.isfinite(criterion).any() else len(candidates) - 1
    return Bandwidth(float(candidates[best] * unit), candidates * unit, criterion, *curved)


def _candidates(gap: FloatArray) -> FloatArray:
    """Return the bandwidths to compare; `gap` ascends."""
    low = max(_quantile(gap, 0.02), float(gap[min(_RANK, len(gap)) - 1]))
    high = max(low, _quantile(gap, 0.9))
    if high == 0.0:
        return np.zeros(1)
    # Ties may fill the lower quantiles: a bandwidth must reach beyond them.
    nearest = float(gap[np.searchsorted(gap, 0.0, side="right")])
    return np.asarray(np.geomspace(max(low, nearest), high, CANDIDATES))


def _quantile(gap: FloatArray, share: float) -> float:
    return float(gap[max(int(np.ceil(share * len(gap))), 1) - 1])


def _curvature(gap: FloatArray, d: FloatArray, query: IntArray) -> tuple[float, float]:
    n = int(np.searchsorted(gap, _quantile(gap, 0.5), side="right"))
    fit = polynomial(gap[:n], d[:n], None, degree=3, of=2)
    if fit is None:
        return float("nan"), float("nan")
    variance = clustered_variance(fit, query[:n])
    return 2 * float(fit.coefficients[2]), 2 * float(np.sqrt(variance))


def _squared_error(
    gap: FloatArray, d: FloatArray, query: IntArray, h: float, m2: float, s2: float
) -> float:
    n = int(np.searchsorted(gap, h, side="left"))
    near = gap[:n]
    fit = polynomial(near, d[:n], 1 - near / h, degree=1)
    if fit is None:
        return float("inf")
    bias = float(dot(fit.loadings, near**2))
    return (m2**2 + s2**2) * bias**2 / 4 + clustered_variance(fit, query[:n])
