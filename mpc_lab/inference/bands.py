"""How estimates move together, from query sums, and bands that cover a whole curve at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mpc_lab.errors import MpcError
from mpc_lab.inference.estimates import critical, normal_critical, significance
from mpc_lab.vocabulary import Flags, Floats

DRAWS = 20_000
_BLOCK = 1 << 20
_ADDS_NOTHING = 1e-8  # of a variance of 1


def covariance(pairs: Floats, delta: Floats, cc: Floats, cd: Floats, dd: Floats) -> Floats:
    r"""Return the query-clustered covariance of the means of cells, from sums of products.

    .. math::
        K_{kl} = \frac{\sum D_k D_l - \theta_k \sum c_k D_l - \theta_l \sum D_k c_l
                 + \theta_k \theta_l \sum c_k c_l}{P_k P_l}

    Parameters
    ----------
    pairs, delta : array (..., cell)
        Pairs, and the mean θ; where D is centred, θ less the center.
    cc, cd, dd : array (..., cell, cell)
        Σc_k c_l, Σc_k D_l (row: count, column: sum) and ΣD_k D_l over clusters.

    Returns
    -------
    array (..., cell, cell)
        Its diagonal is the raw query variance; NaN for cells without pairs.
    """
    count = np.where(pairs > 0, pairs, np.nan)
    row, column = delta[..., :, None], delta[..., None, :]
    cross = row * cd
    total = dd - cross - np.swapaxes(cross, -1, -2) + row * column * cc
    return np.asarray(total / (count[..., :, None] * count[..., None, :]))


def covariance_of_clusters(counts: Floats, sums: Floats) -> Floats:
    """Return the same covariance from a table of clusters.

    Parameters
    ----------
    counts, sums : array (cluster, cell)
        Pairs and (centred) sum of d of each cluster in each cell.
    """
    pairs = counts.sum(axis=0)
    scaled = np.where(pairs > 0, pairs, np.nan)
    residual = (sums - counts * (sums.sum(axis=0) / scaled)) / scaled
    return np.asarray(residual.T @ residual)


def correlation(covariance: Floats) -> Floats:
    """Return the correlation of a covariance; cells without variance go with no other."""
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    usable = scale > 0
    safe = np.where(usable, scale, 1.0)
    result = np.where(usable[:, None] & usable, covariance / np.outer(safe, safe), 0.0)
    np.fill_diagonal(result, 1.0)
    return np.clip(result, -1.0, 1.0)


def absolute_normals(correlation: Floats, *, seed: int, draws: int = DRAWS) -> Iterator[Floats]:
    """Yield |N(0, R)| in blocks (draw, cell) of bounded size, `draws` rows in all.

    R may be singular: a group and its complement move as one.
    """
    factor = _factor(correlation)
    generator = np.random.default_rng(seed)
    rows = max(1, _BLOCK // len(correlation))
    for start in range(0, draws, rows):
        shape = (min(rows, draws - start), len(correlation))
        yield np.abs(generator.standard_normal(shape) @ factor.T)


def _factor(correlation: Floats) -> Floats:
    """Return L with L·Lᵀ = R; a cell that hardly adds to those before it adds nothing.

    Unlike eigenvectors of a matrix that is nearly singular it does not turn with the last digit
    of R, so that draws are the same in whatever order the sums behind R were added.
    """
    factor = np.zeros(correlation.shape)
    for k in range(len(correlation)):
        rest = correlation[k:, k] - factor[k:, :k] @ factor[k, :k]
        if rest[0] > _ADDS_NOTHING:
            factor[k:, k] = rest / np.sqrt(rest[0])
    made: Floats = factor / np.linalg.norm(factor, axis=1, keepdims=True)
    return made


def upper_quantile(maxima: Floats, a: float) -> float:
    """Return the draw that a share of (1 + draws above)/(1 + draws) = a goes beyond.

    Counting the observed value among the draws keeps a simulated test from being too eager
    [1]_. Infinite where there are too few draws for so small an `a`.

    References
    ----------
    .. [1] Phipson & Smyth (2010), Permutation p-values should never be zero.
    """
    beyond = int(a * (len(maxima) + 1))
    if beyond < 1:
        return float("inf")
    return float(np.partition(maxima, len(maxima) - beyond)[len(maxima) - beyond])


def check_correlation(correlation: Floats, cells: int) -> None:
    """Raise unless the matrix is square and has a row for each cell."""
    if correlation.shape != (cells, cells):
        raise MpcError(
            f"The correlation of {cells} cells must have shape {(cells, cells)}, "
            f"got {correlation.shape}; compute it over the same cells."
        )


def sup_quantile(correlation: Floats, *, level: float, seed: int, draws: int = DRAWS) -> float:
    """Return the `level` quantile of max|N(0, R)| from seeded draws."""
    blocks = absolute_normals(correlation, seed=seed, draws=draws)
    maxima = np.concatenate([block.max(axis=1) for block in blocks])
    return upper_quantile(maxima, significance(level))


def limited(simulated: float, a: float, points: int) -> float:
    """Return a simulated critical value between the pointwise and the Bonferroni one."""
    pointwise, bonferroni = normal_critical(a / 2), normal_critical(a / (2 * points))
    return float(np.fmax(pointwise, np.fmin(simulated, bonferroni)))


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

    low: Floats
    high: Floats
    covered: Flags
    z: float


def sup_t_band(
    estimate: Floats,
    std_error: Floats,
    dof: Floats,
    covariance: Floats,
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
        K, from query sums: `mpc_lab.inference.bands.covariance`.
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
