"""Bootstrap of any smooth function of sums over clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import FloatArray, significance
from mpc_lab.inference.bootstrap import _quantiles, _weights

Statistic = Callable[[FloatArray], FloatArray]

# The step of a central difference that balances its two errors, as a share of the size of a sum.
_STEP = float(np.finfo(np.float64).eps) ** (1 / 3)


@dataclass(frozen=True)
class Resampled:
    """Bootstrap intervals of one statistic; NaN where it has no variance.

    Attributes
    ----------
    estimate, std_error : float
        The statistic of all clusters, and its standard error by the delta method.
    percentile_low, percentile_high, studentised_low, studentised_high : float
    draws_used : int
        Draws with a statistic and a standard error.
    """

    estimate: float
    std_error: float
    percentile_low: float
    percentile_high: float
    studentised_low: float
    studentised_high: float
    draws_used: int


def bootstrap_statistic(
    sums: FloatArray,
    statistic: Statistic,
    *,
    draws: int,
    level: float = 0.95,
    seed: int = 0,
) -> Resampled:
    r"""Resample clusters and recompute a statistic of their sums.

    A draw takes as many clusters as there are, with replacement. With T* the sums of a draw and f
    the statistic, the percentile interval lies between quantiles of f(T*); the studentised one is
    f(T) − q·SE with q the quantiles of (f(T*) − f(T))/SE* [1]_, and

    .. math:: SE^2 = \nabla f^\top \Big( \sum_k x_k x_k^\top - T T^\top / n \Big) \nabla f

    over the sums x of n clusters, with differences in place of derivatives.

    Parameters
    ----------
    sums : array (cluster, sum)
        What each query (or unit) adds to each sum, such as its pairs and its sum of d.
    statistic : callable
        From an array (…, sum) of totals to an array (…,).
    draws : int
        Number of resamples.
    level : float
        Confidence level.
    seed : int
        Of the draws; the same clusters are drawn as by `mpc_lab.inference.bootstrap.bootstrap`.

    Returns
    -------
    Resampled

    References
    ----------
    .. [1] Davison & Hinkley (1997), Bootstrap Methods and their Application, chapter 5.

    Examples
    --------
    >>> import numpy as np
    >>> sums = np.random.default_rng(0).random((300, 2))
    >>> found = bootstrap_statistic(sums, lambda t: np.log(t[..., 0] / t[..., 1]), draws=201)
    >>> found.percentile_low < found.estimate < found.percentile_high
    True
    """
    sums = np.asarray(sums, dtype=np.float64)
    if sums.ndim != 2 or sums.size == 0 or draws < 1:
        raise MpcError(
            "A bootstrap needs a table (cluster, sum) that is not empty and at least 1 draw, "
            f"got shape {sums.shape} and {draws}."
        )
    a = significance(level)
    size = np.abs(sums).sum(axis=0)
    total = sums.sum(axis=0)[None]
    products = np.einsum("ck,cl->ckl", sums, sums).reshape(len(sums), -1)
    blocks = [(weights @ sums, weights @ products) for weights in _weights(len(sums), draws, seed)]
    drawn = np.vstack([block[0] for block in blocks])
    crossed = np.vstack([block[1] for block in blocks])
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = statistic(total)
        std_error = _std_error(statistic, total, products.sum(axis=0)[None], len(sums), size)
        shift = statistic(drawn) - estimate
        ratio = shift / _std_error(statistic, drawn, crossed, len(sums), size)
    shift = np.where(np.isfinite(shift), shift, np.nan)[:, None]
    ratio = np.where(np.isfinite(ratio), ratio, np.nan)[:, None]
    low, high = _quantiles(shift, a)
    ratio_low, ratio_high = _quantiles(ratio, a)
    theta, error = float(estimate[0]), float(std_error[0])
    return Resampled(
        estimate=theta,
        std_error=error,
        percentile_low=theta + float(low[0]),
        percentile_high=theta + float(high[0]),
        studentised_low=theta - float(ratio_high[0]) * error,
        studentised_high=theta - float(ratio_low[0]) * error,
        draws_used=int(np.isfinite(ratio).sum()),
    )


def _std_error(
    statistic: Statistic, total: FloatArray, products: FloatArray, n: int, size: FloatArray
) -> FloatArray:
    """Return the standard error at each row of totals, NaN where it is 0."""
    steps = np.diag(_STEP * np.where(size > 0, size, 1.0))
    up, down = (statistic(total[:, None, :] + sign * steps) for sign in (1, -1))
    gradient = (up - down) / (2 * np.diagonal(steps))
    k = total.shape[1]
    spread = products.reshape(-1, k, k) - np.einsum("rk,rl->rkl", total, total) / n
    variance = np.einsum("rk,rkl,rl->r", gradient, spread, gradient)
    scale = np.einsum("rk,rkl,rl->r", np.abs(gradient), np.abs(spread), np.abs(gradient))
    return np.sqrt(np.where(variance > 1e-12 * scale, variance, np.nan))
