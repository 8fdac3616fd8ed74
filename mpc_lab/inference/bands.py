"""Bands that cover a whole curve at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mpc_lab.inference.arrays import BoolArray, FloatArray, significance
from mpc_lab.inference.correlation import (
    DRAWS,
    check_correlation,
    correlation,
    limited,
    sup_quantile,
)
from mpc_lab.inference.student import critical


@dataclass(frozen=True)
class Band:
    """A simultaneous band; NaN at the points that were left out.

    Attributes
    ----------
    low, high : array
    covered : array of bool
        The points the band is about; the others were not estimable.
    z : float
        The normal critical value; NaN where no point was estimable.
    """

    low: FloatArray
    high: FloatArray
    covered: BoolArray
    z: float


def sup_t_band(
    estimate: FloatArray,
    std_error: FloatArray,
    dof: FloatArray,
    covariance: FloatArray,
    *,
    level: float = 0.95,
    seed: int = 0,
    draws: int = DRAWS,
) -> Band:
    r"""Return the sup-t band of one curve.

    :math:`\hat\theta_k \pm c_k \, SE_k` with the point's own standard error. z is the `level`
    quantile of :math:`\max_k |N(0, \operatorname{corr} K)|`, limited to lie between the pointwise
    and the Bonferroni normal quantile; c_k is the t quantile at Φ(z) with the point's degrees
    of freedom.

    Parameters
    ----------
    estimate, std_error, dof : array (point,)
        NaN where not estimable; such points are left out.
    covariance : array (point, point)
        K, from query sums: `mpc_lab.inference.correlation.covariance`.
    level : float
        Probability that the band covers the whole curve.
    seed, draws : int
        Of the simulation.

    Returns
    -------
    Band

    References
    ----------
    Montiel Olea & Plagborg-Møller (2019), Simultaneous confidence bands.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(2)
    >>> band = sup_t_band(0 * one, one, 1e9 * one, np.eye(2))
    >>> 1.96 < band.z < 2.25
    True
    """
    a = significance(level)
    estimate, std_error, dof = (np.asarray(part) for part in (estimate, std_error, dof))
    check_correlation(covariance, len(estimate))
    covered = np.isfinite(estimate) & np.isfinite(std_error) & np.isfinite(dof)
    if not covered.any():
        missing = np.full(len(estimate), np.nan)
        return Band(missing, missing, covered, float("nan"))
    points = int(covered.sum())
    simulated = float("nan")
    if points > 1:
        together = correlation(covariance[np.ix_(covered, covered)])
        simulated = sup_quantile(together, level=level, seed=seed, draws=draws)
    z = limited(simulated, a, points)
    half = critical(float(ndtr(-z)), np.where(covered, dof, np.nan)) * std_error
    return Band(estimate - half, estimate + half, covered, z)
