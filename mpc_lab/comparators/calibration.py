"""Calibration by group: is the outcome at a given score the same inside and outside?

No query matching: items of all queries are compared. The synthetic example fools it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.comparators.base import (
    BINS,
    Case,
    Comparison,
    Conditions,
    check_bins,
    comparison,
    score_bins,
)
from mpc_lab.errors import MpcError, near_match
from mpc_lab.inference.bands import sup_t_band
from mpc_lab.inference.clustered import (
    PairCodes,
    cell_means,
    effective,
    from_influence,
    row_clusters,
)
from mpc_lab.inference.estimates import significance
from mpc_lab.pairing.kernels import kernel
from mpc_lab.scoring.calibrated import isotonic
from mpc_lab.vocabulary import UNDERVALUED, Flags, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


CONDITIONS = Conditions(scores="binned", queries="all", looks_at="outcomes")


@dataclass(frozen=True)
class _Bins:
    """Counts and mean outcomes of each bin, inside and outside a group."""

    at: Ints
    n_in: Floats
    n_out: Floats
    mean_in: Floats
    mean_out: Floats

    @property
    def used(self) -> Flags:
        return np.asarray((self.n_in > 0) & (self.n_out > 0))


def _bins(
    at: Ints, outcome: Floats, member: Flags, bins: int, weight: Floats, middle: float
) -> _Bins:
    """Return the bins of both sides.

    Outcomes are measured from a middle one, so that the differences below do not cancel for large
    outcomes. Without weights every row counts 1.
    """
    # Bins of the rest first, then those of the group.
    both, sums = np.zeros((2, bins)), np.zeros((2, bins))
    _add_bins(at, outcome, member, weight, middle, both, sums)
    counts, means = [], []
    for n, total in zip(both[::-1], sums[::-1], strict=True):
        counts.append(n)
        means.append(middle + np.divide(total, n, out=np.full(bins, np.nan), where=n > 0))
    return _Bins(at, counts[0], counts[1], means[0], means[1])


@kernel
def _add_bins(
    at: Ints,
    outcome: Floats,
    member: Flags,
    weight: Floats,
    middle: float,
    counts: Floats,
    sums: Floats,
) -> None:
    """Add what rows count, and their outcomes above a middle one, to bins of (side, bin)."""
    for row in range(len(at)):
        side, w = (1 if member[row] else 0), (weight[row] if len(weight) else 1.0)
        counts[side, at[row]] += w
        sums[side, at[row]] += w * (outcome[row] - middle)


def calibration_gap(case: Case, *, bins: int = BINS) -> list[Comparison]:
    r"""Return the mean difference in outcome between a group and the rest at about the same score.

    .. math:: \sum_b \frac{n_{gb}}{n_g} (\bar y_{gb} - \bar y_{\bar g b})

    over bins of equal counts of all rows. Bins without both are left out and counted; the weights
    are shares of all rows of g; with weights of queries, rows count these. The interval is by the
    delta method over query sums, the bins taken as given.

    Parameters
    ----------
    case : Case
    bins : int

    Returns
    -------
    list of Comparison
        ``calibration_gap``; positive: outcomes of the group are higher than its scores say.
    """
    ranking, member = case.ranking, case.member
    outcome = ranking.outcome
    bins = check_bins(bins)
    of_row = np.empty(0) if ranking.weight is None else ranking.weight
    table = _bins(case.bins(bins), outcome, member, bins, of_row, case.middle)
    used, n_g = table.used, float((of_row[member] if len(of_row) else member).sum())
    weight = np.where(used, table.n_in, 0.0) / n_g if n_g else np.zeros(bins)
    difference = np.where(used, table.mean_in - table.mean_out, 0.0)
    estimate = float(weight @ difference) if used.any() else float("nan")
    cluster, n_clusters = row_clusters(ranking)
    influence, weights, rows = np.zeros(n_clusters), np.zeros(n_clusters), np.zeros(n_clusters)
    shares = np.where(used, weight / np.where(used, table.n_out, 1.0), 0.0)
    # Without a bin of both sides, nothing adds to the error.
    means_out = np.where(used, table.mean_out, np.nan)
    rows_of = (table.at, outcome, member, cluster, of_row)
    _add_influence(*rows_of, means_out, shares, estimate, n_g, influence, weights, rows)
    found = from_influence(
        estimate,
        influence if used.any() else np.zeros(n_clusters),
        effective(weights),
        int(np.count_nonzero(rows)),
        scale=float(np.ptp(outcome)) if len(outcome) else 0.0,
        level=case.level,
    )
    if not used.any():
        found = replace(found, reason="no bin has rows of both sides")
    means = (table.mean_in, table.mean_out)
    inside, outside = (
        float(weight @ np.where(used, mean, 0.0)) if used.any() else float("nan") for mean in means
    )
    return [
        comparison(
            "calibration_gap",
            found,
            CONDITIONS,
            high_is=UNDERVALUED,
            inside=inside,
            outside=outside,
            left_out=int((~used).sum()),
        )
    ]


@kernel
def _add_influence(
    at: Ints,
    outcome: Floats,
    member: Flags,
    cluster: Ints,
    weight: Floats,
    means_out: Floats,
    shares: Floats,
    estimate: float,
    n_g: float,
    influence: Floats,
    weights: Floats,
    rows: Floats,
) -> None:
    """Add up over clusters what rows add to the error, the weights of members, and all rows.

    Inside the group a row adds (y − ȳ_out)/n_g − T/n_g, outside the rest; in bins without both
    sides, whose mean is NaN, y − ȳ_out counts as 0.
    """
    for row in range(len(at)):
        b, of, w = at[row], cluster[row], (weight[row] if len(weight) else 1.0)
        above = outcome[row] - means_out[b] if means_out[b] == means_out[b] else 0.0
        rows[of] += 1.0
        if not member[row]:
            influence[of] += w * (-shares[b] * above)
            continue
        weights[of] += w
        influence[of] += w * ((above - estimate) / n_g if n_g else 0.0)


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

    score: Floats
    outcome: Floats
    ci_low: Floats
    ci_high: Floats
    band_low: Floats
    band_high: Floats
    n_rows: Ints
    isotonic_score: Floats
    isotonic: Floats
    isotonic_low: Floats
    isotonic_high: Floats


def calibration_curves(
    ranking: Ranking,
    group: str,
    *,
    segment: str | None = None,
    scores: Floats | None = None,
    bins: int = BINS,
    level: float = 0.95,
    draws: int = 200,
    seed: int = 0,
) -> dict[str, CalibrationCurve]:
    """Return the calibration curves of a group and of the rest.

    Rows count alike, whatever the weights of their queries.

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
        Number of draws, and seed, of the resampling behind the isotonic intervals. It is done on at
        most 256 score levels, and its intervals are a guide to the eye: where the fit is flat they
        are too narrow [2]_.

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
    bins = check_bins(bins)
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
        raise MpcError(
            "The log must have a segment column to look inside segments; got none. Name the column "
            'that labels queries, such as segment="country", and run the audit again.'
        )
    if not isinstance(segment, str) or segment not in ranking.segments:
        hint = near_match(segment, ranking.segments)
        raise MpcError(f"There is no segment {segment!r} in this ranking.{hint}")
    return ranking.segments.index(segment)


def _rows_of(ranking: Ranking, segment: str | None) -> Flags:
    if segment is None:
        return np.ones(ranking.n_rows, dtype=np.bool_)
    return np.asarray(segment_index(ranking, segment) == ranking.segment_code)


def _curve(
    at: Ints,
    score: Floats,
    outcome: Floats,
    cluster: Ints,
    bins: int,
    level: float,
    draws: int,
    seed: int,
) -> CalibrationCurve:
    found = cell_means(at, PairCodes(cluster), outcome, bins, level=level)
    cells = found.estimates
    band = sup_t_band(
        cells.estimate, cells.std_error, cells.dof, found.covariance(), level=level, seed=seed
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


def _isotonic_points(score: Floats, outcome: Floats) -> tuple[Floats, Floats]:
    if not len(score):
        return np.empty(0), np.empty(0)
    order = np.argsort(score, kind="stable")
    place = np.unique(np.linspace(0, len(score) - 1, _POINTS).round().astype(np.int64))
    points, first = np.unique(score[order[place]], return_index=True)
    return points, isotonic(score, outcome)[order[place[first]]]


def _isotonic_interval(
    score: Floats,
    outcome: Floats,
    cluster: Ints,
    points: Floats,
    level: float,
    draws: int,
    seed: int,
) -> tuple[Floats, Floats]:
    if not len(score) or draws < 1:
        return np.full(len(points), np.nan), np.full(len(points), np.nan)
    at = score_bins(score, _LEVELS)
    step = score_bins_of(points, score, at)
    fits = np.concatenate(
        [_refit(*sums, step) for sums in _resample(at, outcome, cluster, draws, seed)]
    )
    a = significance(level)
    # A draw may hold no row at the lowest levels.
    low, high = np.nanquantile(fits, [a / 2, 1 - a / 2], axis=0)
    return low, high


def score_bins_of(points: Floats, score: Floats, at: Ints) -> Ints:
    """Return the bins that points among the scores fall in, given the bins of all scores."""
    levels, first = np.unique(score, return_index=True)
    return at[first[np.searchsorted(levels, points)]]


def _resample(
    at: Ints, outcome: Floats, cluster: Ints, draws: int, seed: int
) -> Iterator[tuple[Floats, Floats]]:
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


def _refit(counts: Floats, sums: Floats, step: Ints) -> Floats:
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
