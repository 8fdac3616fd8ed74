"""Outcome against score, inside and outside a group: binned and isotonic, with bands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.comparators.calibration import BINS, checked_bins, score_bins
from mpc_lab.errors import MpcError, near_match
from mpc_lab.inference.arrays import BoolArray, FloatArray, IntArray, significance
from mpc_lab.inference.bands import sup_t_band
from mpc_lab.objective.cells import cell_means
from mpc_lab.objective.clustered import row_clusters
from mpc_lab.scoring.calibrated import isotonic

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

_POINTS = 100
_LEVELS = 256
_DRAWS_AT_ONCE = 16


@dataclass(frozen=True)
class CalibrationCurve:
    """Outcome against score for the rows of one side.

    Attributes
    ----------
    score, outcome : array (bin,)
        Mean score and mean outcome of the side's rows in each bin; NaN without rows.
    ci_low, ci_high : array (bin,)
        Interval of each bin by itself, clustered by query.
    band_low, band_high : array (bin,)
        Band over all bins of the side at once (sup-t).
    n_rows : int64 array (bin,)
    isotonic_score, isotonic : array (point,)
        The isotonic fit at up to 100 quantiles of the side's scores.
    isotonic_low, isotonic_high : array (point,)
        Percentile interval of each point, queries resampled.
    """

    score: FloatArray
    outcome: FloatArray
    ci_low: FloatArray
    ci_high: FloatArray
    band_low: FloatArray
    band_high: FloatArray
    n_rows: IntArray
    isotonic_score: FloatArray
    isotonic: FloatArray
    isotonic_low: FloatArray
    isotonic_high: FloatArray


def calibration_curves(
    ranking: Ranking,
    group: str,
    *,
    segment: str | None = None,
    scores: FloatArray | None = None,
    bins: int = BINS,
    level: float = 0.95,
    draws: int = 200,
    seed: int = 0,
) -> dict[str, CalibrationCurve]:
    """Return the calibration curves of a group and of the rest.

    Parameters
    ----------
    ranking : Ranking
    group : str
    segment : str, optional
        Only the queries of this segment; bins are then of equal counts of its rows.
    scores : float64 array, optional
        Those of another rule than the logged ones.
    bins : int
    level : float
    draws, seed : int
        Of the resampling behind the isotonic intervals. It is done on at most 256 score levels,
        and its intervals are a guide to the eye: where the fit is flat they are too narrow [2]_.

    Returns
    -------
    dict of CalibrationCurve
        ``inside`` and ``outside``.

    References
    ----------
    .. [1] Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for probabilistic
       classifiers.
    .. [2] Kosorok (2008), Bootstrapping the Grenander estimator.
    """
    rows = _rows_of(ranking, segment)
    used = (ranking.score if scores is None else scores)[rows]
    bins = checked_bins(bins)
    at = score_bins(used, bins)
    member = ranking.member(group)[rows]
    cluster = row_clusters(ranking)[0][rows]
    outcome = ranking.outcome[rows]
    return {
        name: _curve(at[side], used[side], outcome[side], cluster[side], bins, level, draws, seed)
        for name, side in (("inside", member), ("outside", ~member))
    }


def segment_index(ranking: Ranking, segment: str) -> int:
    """Return the place of a segment in the ranking's segments."""
    if ranking.segment_code is None:
        raise MpcError("There are no segments without a segment column: pass segment= to Ranking.")
    if not isinstance(segment, str) or segment not in ranking.segments:
        hint = near_match(segment, ranking.segments)
        raise MpcError(f"There is no segment {segment!r} in this ranking.{hint}")
    return ranking.segments.index(segment)


def _rows_of(ranking: Ranking, segment: str | None) -> BoolArray:
    if segment is None:
        return np.ones(ranking.n_rows, dtype=np.bool_)
    return np.asarray(segment_index(ranking, segment) == ranking.segment_code)


def _curve(
    at: IntArray,
    score: FloatArray,
    outcome: FloatArray,
    cluster: IntArray,
    bins: int,
    level: float,
    draws: int,
    seed: int,
) -> CalibrationCurve:
    found = cell_means(at, cluster, outcome, bins, level=level)
    cells = found.estimates
    band = sup_t_band(
        cells.estimate, cells.std_error, cells.dof, found.covariance, level=level, seed=seed
    )
    points, fit = _isotonic_points(score, outcome)
    low, high = _isotonic_interval(score, outcome, cluster, points, level, draws, seed)
    n = np.where(found.counts > 0, found.counts, np.nan)
    return CalibrationCurve(
        score=np.asarray(np.bincount(at, score, minlength=bins) / n),
        outcome=found.mean,
        ci_low=cells.ci_low,
        ci_high=cells.ci_high,
        band_low=band.low,
        band_high=band.high,
        n_rows=found.counts,
        isotonic_score=points,
        isotonic=fit,
        isotonic_low=low,
        isotonic_high=high,
    )


def _isotonic_points(score: FloatArray, outcome: FloatArray) -> tuple[FloatArray, FloatArray]:
    if not len(score):
        return np.empty(0), np.empty(0)
    order = np.argsort(score, kind="stable")
    place = np.unique(np.linspace(0, len(score) - 1, _POINTS).round().astype(np.int64))
    points, first = np.unique(score[order[place]], return_index=True)
    return points, isotonic(score, outcome)[order[place[first]]]


def _isotonic_interval(
    score: FloatArray,
    outcome: FloatArray,
    cluster: IntArray,
    points: FloatArray,
    level: float,
    draws: int,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    if not len(score) or draws < 1:
        return np.full(len(points), np.nan), np.full(len(points), np.nan)
    at = score_bins(score, _LEVELS)
    step = score_bins_of(points, score, at)
    fits = np.concatenate(
        [_refit(*sums, step) for sums in _resampled(at, outcome, cluster, draws, seed)]
    )
    a = significance(level)
    # A draw may hold no row at the lowest levels.
    low, high = np.nanquantile(fits, [a / 2, 1 - a / 2], axis=0)
    return low, high


def score_bins_of(points: FloatArray, score: FloatArray, at: IntArray) -> IntArray:
    """Return the bins that points among the scores fall in, given the bins of all scores."""
    levels, first = np.unique(score, return_index=True)
    return at[first[np.searchsorted(levels, points)]]


def _resampled(
    at: IntArray, outcome: FloatArray, cluster: IntArray, draws: int, seed: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield counts and outcome sums (level, draw) with clusters resampled."""
    from scipy.sparse import csr_array

    dense = np.unique(cluster, return_inverse=True)[1]
    n_clusters = int(dense.max()) + 1
    shape = (_LEVELS, n_clusters)
    counts = csr_array((np.ones(len(at)), (at, dense)), shape=shape)
    sums = csr_array((outcome, (at, dense)), shape=shape)
    generator = np.random.default_rng(seed)
    for start in range(0, draws, _DRAWS_AT_ONCE):
        n = min(_DRAWS_AT_ONCE, draws - start)
        drawn = [generator.integers(n_clusters, size=n_clusters) for _ in range(n)]
        weights = np.stack([np.bincount(d, minlength=n_clusters) for d in drawn], axis=1)
        yield counts @ weights.astype(np.float64), sums @ weights.astype(np.float64)


def _refit(counts: FloatArray, sums: FloatArray, step: IntArray) -> FloatArray:
    """Return the isotonic fit of each draw at each point (draw, point)."""
    from scipy.optimize import isotonic_regression

    fits = np.full((counts.shape[1], len(step)), np.nan)
    for k, (n, total) in enumerate(zip(counts.T, sums.T, strict=True)):
        held = np.flatnonzero(n)
        fit = isotonic_regression(total[held] / n[held], weights=n[held]).x
        # At a level that was not drawn, the fit is that of the next level below.
        place = np.searchsorted(held, step, side="right") - 1
        fits[k] = np.where(place >= 0, fit[np.maximum(place, 0)], np.nan)
    return fits
