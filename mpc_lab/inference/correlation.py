"""How estimates move together, from query sums, and draws from that law."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import FloatArray, significance
from mpc_lab.inference.student import normal_critical

DRAWS = 20_000
_BLOCK = 1 << 20
_ADDS_NOTHING = 1e-8  # of a variance of 1


def covariance(
    pairs: FloatArray, delta: FloatArray, cc: FloatArray, cd: FloatArray, dd: FloatArray
) -> FloatArray:
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


def covariance_of_clusters(counts: FloatArray, sums: FloatArray) -> FloatArray:
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


def correlation(covariance: FloatArray) -> FloatArray:
    """Return the correlation of a covariance; cells without variance go with no other."""
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    usable = scale > 0
    safe = np.where(usable, scale, 1.0)
    result = np.where(usable[:, None] & usable, covariance / np.outer(safe, safe), 0.0)
    np.fill_diagonal(result, 1.0)
    return np.clip(result, -1.0, 1.0)


def absolute_normals(
    correlation: FloatArray, *, seed: int, draws: int = DRAWS
) -> Iterator[FloatArray]:
    """Yield |N(0, R)| in blocks (draw, cell) of bounded size, `draws` rows in all.

    R may be singular: a group and its complement move as one.
    """
    factor = _factor(correlation)
    generator = np.random.default_rng(seed)
    rows = max(1, _BLOCK // len(correlation))
    for start in range(0, draws, rows):
        shape = (min(rows, draws - start), len(correlation))
        yield np.abs(generator.standard_normal(shape) @ factor.T)


def _factor(correlation: FloatArray) -> FloatArray:
    """Return L with L·Lᵀ = R; a cell that hardly adds to those before it adds nothing.

    Unlike eigenvectors of a matrix that is nearly singular it does not turn with the last digit
    of R, so that draws are the same in whatever order the sums behind R were added.
    """
    factor = np.zeros(correlation.shape)
    for k in range(len(correlation)):
        rest = correlation[k:, k] - factor[k:, :k] @ factor[k, :k]
        if rest[0] > _ADDS_NOTHING:
            factor[k:, k] = rest / np.sqrt(rest[0])
    made: FloatArray = factor / np.linalg.norm(factor, axis=1, keepdims=True)
    return made


def upper_quantile(maxima: FloatArray, a: float) -> float:
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


def check_correlation(correlation: FloatArray, cells: int) -> None:
    """Raise unless the matrix is square and has a row for each cell."""
    if correlation.shape != (cells, cells):
        raise MpcError(
            f"The correlation of {cells} cells must have shape {(cells, cells)}, "
            f"got {correlation.shape}; compute it over the same cells."
        )


def sup_quantile(correlation: FloatArray, *, level: float, seed: int, draws: int = DRAWS) -> float:
    """Return the `level` quantile of max|N(0, R)| from seeded draws."""
    blocks = absolute_normals(correlation, seed=seed, draws=draws)
    maxima = np.concatenate([block.max(axis=1) for block in blocks])
    return upper_quantile(maxima, significance(level))


def limited(simulated: float, a: float, points: int) -> float:
    """Return a simulated critical value between the pointwise and the Bonferroni one."""
    pointwise, bonferroni = normal_critical(a / 2), normal_critical(a / (2 * points))
    return float(np.fmax(pointwise, np.fmin(simulated, bonferroni)))
