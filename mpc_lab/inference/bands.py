"""Intervals from sums over clusters: the covariance of cells, bands over a curve, a bootstrap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr

from mpc_lab.errors import MpcError, check_whole
from mpc_lab.inference.estimates import (
    critical,
    effective_clusters,
    enough_clusters,
    normal_critical,
    significance,
)
from mpc_lab.vocabulary import Flags, Floats, Ints

DRAWS = 20_000
_BLOCK = 1 << 20
_ADDS_NOTHING = 1e-8  # as a share of a variance of 1


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
    """Return the correlation of a covariance; cells without variance correlate with no other."""
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    usable = scale > 0
    safe = np.where(usable, scale, 1.0)
    result = np.where(usable[:, None] & usable, covariance / np.outer(safe, safe), 0.0)
    np.fill_diagonal(result, 1.0)
    return np.clip(result, -1.0, 1.0)


def absolute_normals(correlation: Floats, *, seed: int, draws: int = DRAWS) -> Iterator[Floats]:
    """Yield |N(0, R)| in blocks (draw, cell) of bounded size, `draws` rows in all.

    R may be singular: a group and its complement are perfectly correlated.
    """
    factor = _factor(correlation)
    generator = np.random.default_rng(seed)
    rows = max(1, _BLOCK // len(correlation))
    for start in range(0, draws, rows):
        shape = (min(rows, draws - start), len(correlation))
        yield np.abs(generator.standard_normal(shape) @ factor.T)


def _factor(correlation: Floats) -> Floats:
    """Return L with L·Lᵀ = R; a cell that adds almost nothing to those before it adds nothing.

    Unlike the eigenvectors of a nearly singular matrix, it does not rotate with the last digit of
    R, so that draws do not depend on the order in which the sums behind R were added.
    """
    factor = np.zeros(correlation.shape)
    for k in range(len(correlation)):
        rest = correlation[k:, k] - factor[k:, :k] @ factor[k, :k]
        if rest[0] > _ADDS_NOTHING:
            factor[k:, k] = rest / np.sqrt(rest[0])
    made: Floats = factor / np.linalg.norm(factor, axis=1, keepdims=True)
    return made


def upper_quantile(maxima: Floats, a: float) -> float:
    """Return the draw that is exceeded by a share of (1 + draws above)/(1 + draws) = a.

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
            f"The correlation of {cells} cells must have shape {(cells, cells)}; got "
            f"{correlation.shape}. Compute it over the same cells."
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
    quantile of :math:`\max_k |N(0, \operatorname{corr} K)|`, limited to be between the pointwise
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
        Seed, and number of draws, of the simulation.

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


FEWEST_DRAWS = 19
MOST_DRAWS = 100_000
_WEIGHTS_AT_ONCE = 1 << 21
_TABLE_AT_ONCE = 1 << 25
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Bootstrap:
    """Bootstrap intervals of cells; NaN where a cell has fewer than 3 effective clusters.

    Attributes
    ----------
    percentile_low, percentile_high : array (cell,)
    studentised_low, studentised_high : array (cell,)
        NaN also where the variance is 0.
    draws_used : array (cell,) of int64
        Draws that gave the cell a pair and a variance: those behind the studentised interval.
    """

    percentile_low: Floats
    percentile_high: Floats
    studentised_low: Floats
    studentised_high: Floats
    draws_used: Ints


def bootstrap(
    counts: Floats,
    sums: Floats,
    *,
    draws: int,
    level: float = 0.95,
    seed: int = 0,
) -> Bootstrap:
    """Resample clusters and recompute the mean gap of every cell.

    A draw takes as many clusters as there are, with replacement, the same for all cells:
    θ* = Σ w_k D_k / Σ w_k c_k. The percentile interval is between the a/2 and 1 − a/2 quantiles
    of θ*. The studentised one is θ − q·SE with q the quantiles of (θ* − θ)/SE*, both standard
    errors from query sums [1]_.

    Parameters
    ----------
    counts, sums : array (cluster, cell)
        Pairs c and sum D of d of each query (or unit) in each cell. All queries of the log or
        those with a pair in some cell.
    draws : int
        Number of resamples.
    level : float
        Confidence level.
    seed : int
        Seed of the draws; the result of a cell does not depend on the other cells.

    Returns
    -------
    Bootstrap

    References
    ----------
    .. [1] Davison & Hinkley (1997), Bootstrap Methods and their Application, chapter 5.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> counts, sums = np.ones((200, 1)), rng.normal(1.0, size=(200, 1))
    >>> result = bootstrap(counts, sums, draws=201)
    >>> bool(result.percentile_low[0] < sums.mean() < result.percentile_high[0])
    True
    """
    _check(counts, sums, draws)
    a = significance(level)
    cells = counts.shape[1]
    width = max(1, _TABLE_AT_ONCE // (5 * max(len(counts), 1)))
    parts = [
        _cells(counts[:, start : start + width], sums[:, start : start + width], draws, a, seed)
        for start in range(0, cells, width)
    ]
    return Bootstrap(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def bootstrap_sides(
    weight: csr_array,
    total: csr_array,
    number: csr_array,
    *,
    draws: int,
    level: float = 0.95,
    seed: int = 0,
) -> Bootstrap:
    """Resample clusters and recompute an estimate that is the mean of two sides.

    As :func:`bootstrap` does, for one cell; both standard errors are from what each query adds to
    the error of the estimate.

    Parameters
    ----------
    weight, total : sparse array (cluster, part)
        Weight c and sum D of d of each query (or unit) on either side, inside cells of places
        where there are any: the cells below, then the cells above.
    number : sparse array (cluster, part)
        How many pairs these are, where a side of a cell must have 2 to count; else no columns.
    draws, level, seed
        As in :func:`bootstrap`.
    """
    check_whole("draws", draws, at_least=FEWEST_DRAWS, at_most=MOST_DRAWS)
    a, clusters = significance(level), weight.shape[0]
    everyone = np.ones(clusters)
    theta, std_error = _of_draw(weight, total, number, everyone)
    some = np.count_nonzero(np.diff(weight.indptr)) > 1
    shift, ratio = np.full((draws, 1), np.nan), np.full((draws, 1), np.nan)
    drawn = (row for block in _weights(clusters, draws, seed) for row in block)
    for k, times in enumerate(drawn if some and np.isfinite(theta) else ()):
        found, spread = _of_draw(weight, total, number, times)
        shift[k] = found - theta
        ratio[k] = (found - theta) / spread
    low, high = _quantiles(shift, a)
    ratio_low, ratio_high = _quantiles(ratio, a)
    used = np.isfinite(ratio).sum(axis=0)
    ends = (theta - ratio_high * std_error, theta - ratio_low * std_error)
    return Bootstrap(theta + low, theta + high, *ends, used)


def _of_draw(
    weight: csr_array, total: csr_array, number: csr_array, times: Floats
) -> tuple[float, float]:
    """Return the estimate and its standard error when each cluster is taken this many times."""
    from mpc_lab.pairing.places import FEWEST, combine_cells  # this loads numba

    c, d = times @ weight, times @ total
    by_side = (c.reshape(2, -1), d.reshape(2, -1))
    if number.shape[1]:
        found = combine_cells(*by_side, FEWEST, (times @ number).reshape(2, -1))
    else:
        found = combine_cells(*by_side, 0.0)
    share = np.concatenate([found.share, found.share])
    per_weight = 0.5 * share / np.where(share > 0, c, 1.0)
    each = total @ per_weight - weight @ (per_weight * found.means.ravel())
    variance = float(times @ each**2)
    size = float(times @ (abs(total) @ per_weight) ** 2)
    estimate = float(found.estimate)
    return estimate, float(np.sqrt(variance)) if variance > _ROUNDING**2 * size else float("nan")


def _cells(
    counts: Floats, sums: Floats, draws: int, a: float, seed: int
) -> tuple[Floats, Floats, Floats, Floats, Ints]:
    counts = np.asarray(counts, dtype=np.float64)
    pairs = counts.sum(axis=0)
    enough = enough_clusters(effective_clusters(pairs, (counts**2).sum(axis=0)))
    theta = sums.sum(axis=0) / np.where(enough, pairs, np.nan)
    # Centred sums, so that the quadratic below does not cancel; the gap is then 0.
    centred = sums - counts * np.where(enough, theta, 0.0)
    std_error = np.sqrt((centred**2).sum(axis=0)) / np.where(enough, pairs, np.nan)
    std_error = np.where(std_error > _ROUNDING * np.abs(theta), std_error, np.nan)
    shift, spread = _resample(counts, centred, draws, seed)
    shift[:, ~enough] = np.nan
    ratio = shift / np.where(np.isfinite(std_error), spread, np.nan)
    low, high = _quantiles(shift, a)
    ratio_low, ratio_high = _quantiles(ratio, a)
    return (
        theta + low,
        theta + high,
        theta - ratio_high * std_error,
        theta - ratio_low * std_error,
        np.isfinite(ratio).sum(axis=0),
    )


def _resample(counts: Floats, centred: Floats, draws: int, seed: int) -> tuple[Floats, Floats]:
    """Return θ* − θ and SE* as arrays (draw, cell); NaN where a draw has no pair or no variance."""
    table = np.hstack([counts, centred, counts**2, counts * centred, centred**2])
    blocks = [weights @ table for weights in _weights(len(counts), draws, seed)]
    c, u, cc, cu, uu = np.split(np.vstack(blocks), 5, axis=1)
    pairs = np.where(c > 0, c, np.nan)
    shift = u / pairs
    variance = uu - 2 * shift * cu + shift**2 * cc
    size = uu + 2 * np.abs(shift * cu) + shift**2 * cc
    # A draw may hold one cluster many times: its variance is then 0, apart from rounding.
    return shift, np.sqrt(np.where(variance > _ROUNDING * size, variance, np.nan)) / pairs


def _weights(clusters: int, draws: int, seed: int) -> Iterator[Floats]:
    """Yield how often each cluster is drawn, in blocks (draw, cluster)."""
    generator = np.random.default_rng(seed)
    rows = max(1, _WEIGHTS_AT_ONCE // clusters)
    for start in range(0, draws, rows):
        block = np.empty((min(rows, draws - start), clusters))
        for row in block:
            row[:] = np.bincount(generator.integers(clusters, size=clusters), minlength=clusters)
        yield block


def _quantiles(values: Floats, a: float) -> tuple[Floats, Floats]:
    """Return the a/2 and 1 − a/2 quantiles of each column, over its draws that exist."""
    known = np.isfinite(values).any(axis=0)
    result = np.full((2, values.shape[1]), np.nan)
    result[:, known] = np.nanquantile(values[:, known], [a / 2, 1 - a / 2], axis=0)
    return result[0], result[1]


def _check(counts: Floats, sums: Floats, draws: int) -> None:
    if counts.ndim != 2 or counts.shape != sums.shape or counts.size == 0:
        raise MpcError(
            "counts and sums must be tables (cluster, cell) of one shape with at least one "
            f"cluster; got {counts.shape} and {sums.shape}. Make them from the same clusters."
        )
    check_whole("draws", draws, at_least=FEWEST_DRAWS, at_most=MOST_DRAWS)
