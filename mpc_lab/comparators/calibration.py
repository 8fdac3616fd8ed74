"""Calibration by group: is the outcome at a given score the same inside and outside?

No query matching: items of all queries are compared. The synthetic example fools it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.arguments import as_whole
from mpc_lab.comparators.measure import UNDERVALUED, Conditions, Measure, measure
from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import BoolArray, FloatArray, IntArray
from mpc_lab.objective.clustered import effective, from_influence, row_clusters

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

BINS = 20
CONDITIONS = Conditions(scores="binned", queries="all", looks_at="outcomes")


_BINS_AT_MOST = 1_000


def checked_bins(bins: object) -> int:
    """Accept a number of bins."""
    found = as_whole(bins)
    if found is None or not 1 <= found <= _BINS_AT_MOST:
        raise MpcError(f"bins must be a whole number from 1 to {_BINS_AT_MOST}, but {bins!r} came.")
    return found


def score_bins(scores: FloatArray, bins: int = BINS) -> IntArray:
    """Return the bin of each row: `bins` bins of equal counts, but tied scores stay together.

    Bin b ends at the score that ⌈(b + 1)·n/bins⌉ rows lie at or below.
    """
    bins = checked_bins(bins)
    n = len(scores)
    last = np.array([-(-(b + 1) * n // bins) - 1 for b in range(bins - 1)], dtype=np.int64)
    ends = np.sort(scores)[np.maximum(last, 0)]
    return np.searchsorted(ends, scores, side="left").astype(np.int64)


@dataclass(frozen=True)
class _Bins:
    """Counts and mean outcomes of each bin, inside and outside a group."""

    at: IntArray
    n_in: FloatArray
    n_out: FloatArray
    mean_in: FloatArray
    mean_out: FloatArray

    @property
    def used(self) -> BoolArray:
        return np.asarray((self.n_in > 0) & (self.n_out > 0))


def _bins(at: IntArray, outcome: FloatArray, member: BoolArray, bins: int) -> _Bins:
    # About a middle outcome, so that large ones do not cancel in the differences below.
    middle = float(np.median(outcome))
    counts, means = [], []
    for side in (member, ~member):
        n = np.bincount(at[side], minlength=bins).astype(np.float64)
        total = np.bincount(at[side], outcome[side] - middle, minlength=bins)
        counts.append(n)
        means.append(middle + np.divide(total, n, out=np.full(bins, np.nan), where=n > 0))
    return _Bins(at, counts[0], counts[1], means[0], means[1])


def calibration_gap(
    ranking: Ranking,
    group: str,
    *,
    scores: FloatArray | None = None,
    bins: int = BINS,
    level: float = 0.95,
) -> Measure:
    r"""Return the mean difference in outcome between a group and the rest at about the same score.

    .. math:: \sum_b \frac{n_{gb}}{n_g} (\bar y_{gb} - \bar y_{\bar g b})

    over bins of equal counts of all rows. Bins without both are left out and counted; the weights
    are shares of all rows of g. The interval is by the delta method over query sums, the bins
    taken as given.

    Parameters
    ----------
    ranking : Ranking
    group : str
    scores : float64 array, optional
        Those of another rule than the logged ones.
    bins : int
    level : float

    Returns
    -------
    Measure
        ``calibration_gap``; positive: the group does better than its scores say.
    """
    member = ranking.member(group)
    outcome = ranking.outcome
    bins = checked_bins(bins)
    table = _bins(score_bins(_scores(ranking, scores), bins), outcome, member, bins)
    used, n_g = table.used, float(member.sum())
    weight = np.where(used, table.n_in, 0.0) / n_g if n_g else np.zeros(bins)
    difference = np.where(used, table.mean_in - table.mean_out, 0.0)
    estimate = float(weight @ difference) if used.any() else float("nan")
    cluster, n_clusters = row_clusters(ranking)
    influence = np.zeros(n_clusters)
    if used.any():
        per_row = _influence(table, outcome, member, weight, estimate, n_g)
        influence = np.bincount(cluster, per_row, minlength=n_clusters).astype(np.float64)
    inside = np.bincount(cluster[member], minlength=n_clusters).astype(np.float64)
    found = from_influence(
        estimate,
        influence,
        effective(inside),
        int(np.count_nonzero(np.bincount(cluster, minlength=n_clusters))),
        scale=float(np.ptp(outcome)) if len(outcome) else 0.0,
        level=level,
    )
    if not used.any():
        found = replace(found, reason="no bin has rows of both sides")
    return measure(
        "calibration_gap",
        found,
        CONDITIONS,
        high_is=UNDERVALUED,
        inside=float(weight @ np.where(used, table.mean_in, 0.0)) if used.any() else float("nan"),
        outside=float(weight @ np.where(used, table.mean_out, 0.0)) if used.any() else float("nan"),
        left_out=int((~used).sum()),
    )


def _influence(
    table: _Bins,
    outcome: FloatArray,
    member: BoolArray,
    weight: FloatArray,
    estimate: float,
    n_g: float,
) -> FloatArray:
    """Return what each row adds to the error: (y − ȳ_out)/n_g − T/n_g inside, the rest outside."""
    used = table.used[table.at]
    above = np.where(used, outcome - table.mean_out[table.at], 0.0)
    of_outside = np.where(table.used, weight / np.where(table.used, table.n_out, 1.0), 0.0)
    return np.where(member, (above - estimate) / n_g if n_g else 0.0, -of_outside[table.at] * above)


def _scores(ranking: Ranking, scores: FloatArray | None) -> FloatArray:
    return ranking.score if scores is None else scores
