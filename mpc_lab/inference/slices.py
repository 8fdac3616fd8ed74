"""Inside an aggregate: the gap by segment of queries and by position in the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import fdtrc

from mpc_lab.errors import MpcError, near_match
from mpc_lab.inference.clustered import (
    CellMeans,
    PairCodes,
    cell_means,
    estimate_listed,
    pair_codes,
)
from mpc_lab.inference.estimates import Estimates, two_sided_p
from mpc_lab.inference.verdicts import Interval, adjust, verdicts
from mpc_lab.pairing.pairs import list_pairs
from mpc_lab.pairing.terms import AS_LOGGED, PAIRS, Terms
from mpc_lab.vocabulary import MODES, NOT_ESTIMABLE, VARIANCES, Flags, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


_FEWEST_QUERIES = 2
_ROUNDING = 1e-12


@dataclass(frozen=True)
class PairTable:
    """The pairs of one cell, one entry each.

    Attributes
    ----------
    d : float64 array
        Difference of outcomes.
    position, other_position : int64 array
        Place of the group's item and of the other item in the ranked list.
    outcome, other_outcome : float64 array
    query : int64 array
        The query.
    codes : PairCodes
        What pairs share.
    """

    d: Floats
    position: Ints
    other_position: Ints
    outcome: Floats
    other_outcome: Floats
    query: Ints
    codes: PairCodes

    def take(self, chosen: Flags) -> PairTable:
        """Return some of the pairs."""
        return PairTable(
            self.d[chosen],
            self.position[chosen],
            self.other_position[chosen],
            self.outcome[chosen],
            self.other_outcome[chosen],
            self.query[chosen],
            self.codes.take(chosen),
        )


def pair_table(
    ranking: Ranking,
    group: str,
    epsilon: float,
    *,
    scores: Floats | None = None,
    mode: str = "matched",
    terms: Terms = AS_LOGGED,
) -> PairTable:
    """List the pairs of one cell with what is needed below.

    Parameters
    ----------
    ranking : Ranking
    group : str
    epsilon : float
        The largest distance.
    scores : float64 array, optional
        Scores of another rule. The ranked list of the logged scores goes by logged positions, where
        there are any, and these need not follow the scores.
    mode : str
        The name of a pairing mode.
    terms : Terms
        On what terms rows are compared.
    """
    if mode not in MODES:
        hint = near_match(mode, tuple(MODES))
        raise MpcError(f"There is no pairing mode {mode!r}.{hint}")
    listed = list_pairs(ranking, group, scores, mode, epsilon, terms=terms)
    i, j = listed["row_i"], listed["row_j"]
    cluster = ranking.query_code if ranking.unit_code is None else ranking.unit_code
    owner = ranking.owner_code
    return PairTable(
        d=listed["d"],
        position=listed["rank_i"],
        other_position=listed["rank_j"],
        outcome=ranking.outcome[i],
        other_outcome=ranking.outcome[j],
        query=ranking.query_code[i],
        codes=pair_codes(
            cluster[i],
            None if owner is None else owner[i],
            None if owner is None else owner[j],
            ranking.owner,
            weight=listed["weight"] if _has_weights(ranking, terms) else None,
        ),
    )


def _has_weights(ranking: Ranking, terms: Terms) -> bool:
    """Whether pairs have weights of their own."""
    return ranking.weight is not None or terms.estimand != PAIRS


@dataclass(frozen=True)
class ByPosition:
    """MPC of the pairs whose group item is at each position; arrays over positions.

    Attributes
    ----------
    position : int64 array
        The positions with a pair, ascending.
    estimates : Estimates
    n_pairs, n_queries : int64 array
    """

    position: Ints
    estimates: Estimates
    n_pairs: Ints
    n_queries: Ints


def by_position(pairs: PairTable, *, cluster: str = "query", level: float = 0.95) -> ByPosition:
    """Return MPC by the position of the group's item.

    Parameters
    ----------
    pairs : PairTable
    cluster : {"query", "naive", "item", "union"}
        The variance of the pairs at a position.
    level : float
    """
    position, at = np.unique(pairs.position, return_inverse=True)
    found = cell_means(at, pairs.codes, pairs.d, len(position), cluster=cluster, level=level)
    n_queries = queries_at(at, pairs.query, len(position))
    return ByPosition(position, found.estimates, found.counts, n_queries)


@dataclass(frozen=True)
class PositionWeighted:
    """One mean over positions, each counted by its weight.

    Attributes
    ----------
    estimates : Estimates
        With 0-dimensional arrays.
    n_positions, n_left_out : int
        Positions that count, and those left out because fewer than two queries have a pair there.
    n_pairs : int
        Pairs at the positions that count.
    """

    estimates: Estimates
    n_positions: int
    n_left_out: int
    n_pairs: int


def position_weighted(
    pairs: PairTable,
    *,
    weights: Floats | None = None,
    cluster: str = "query",
    level: float = 0.95,
) -> PositionWeighted:
    r"""Return MPC with each position of the group's item counted by its weight.

    .. math:: \sum_k w_k \mathrm{MPC}_k / W, \qquad W = \sum_k w_k,

    over the positions k with pairs in at least 2 queries. Its variance is that of MPC with
    :math:`(w_k/W)(d_p - \mathrm{MPC}_k)/P_k` in place of :math:`u_p/P`.

    Parameters
    ----------
    pairs : PairTable
    weights : float64 array, optional
        Weights of the positions from 1 to the last with a pair; by default 1/log2(k + 1).
    cluster : {"query", "naive", "item", "union"}
    level : float
    """
    position, at = np.unique(pairs.position, return_inverse=True)
    enough = queries_at(at, pairs.query, len(position)) >= _FEWEST_QUERIES
    kept = enough[at]
    used = pairs.take(kept)
    place = (np.cumsum(enough) - 1)[at[kept]]
    w = 1 / np.log2(position[enough] + 1.0) if weights is None else weights[position[enough] - 1]
    count = used.codes.counts
    n = np.bincount(place, count, minlength=len(w)).astype(np.float64)
    mean = np.bincount(place, count * used.d, minlength=len(w)) / n
    share = w / w.sum() if len(w) else w
    z = len(used.d) * (share / n)[place] * count * (used.d - mean[place])
    how: dict[str, Any] = {"cluster": cluster, "level": level, "weighted": True}
    return PositionWeighted(
        estimates=estimate_listed(z, float(share @ mean), used.codes, **how),
        n_positions=int(enough.sum()),
        n_left_out=int((~enough).sum()),
        n_pairs=len(used.d),
    )


def queries_at(at: Ints, query: Ints, n: int) -> Ints:
    """Return in how many different queries each of `n` places occurs."""
    key = np.unique(np.stack([at, query], axis=1), axis=0)
    return np.bincount(key[:, 0], minlength=n).astype(np.int64)


@dataclass(frozen=True)
class BySegment:
    """The gap of one cell within each segment; arrays over segments.

    Attributes
    ----------
    segments : tuple of str
    estimates : Estimates
    n_pairs, n_queries : int64 array
    statistic, p_value : float
        The test that all segments have the same gap; NaN where fewer than two are estimable.
    dof : tuple of float
        Degrees of freedom of the test: segments less one, and the smallest of the segments' own.
    left_out : tuple of str
        Segments that are not estimable and not in the test.
    """

    segments: tuple[str, ...]
    estimates: Estimates
    n_pairs: Ints
    n_queries: Ints
    statistic: float
    p_value: float
    dof: tuple[float, float]
    left_out: tuple[str, ...]


def by_segment(
    ranking: Ranking,
    group: str,
    epsilon: float,
    *,
    scores: Floats | None = None,
    mode: str = "matched",
    cluster: str = "query",
    level: float = 0.95,
    terms: Terms = AS_LOGGED,
) -> BySegment:
    r"""Return the gap within each segment at one threshold, and a test that segments agree.

    The test is that of Wald, :math:`F = (R\hat\theta)' (R V R')^{-1} R\hat\theta / (S - 1)`, R the
    differences to the first segment and V the covariance of the segments' gaps, with the correction
    of each segment's own variance, and with S − 1 and the smallest of the segments' degrees of
    freedom. Units and items may be in several segments. Just as a union variance is the largest of
    three, the test by union is the smallest of the three F.

    Parameters
    ----------
    ranking : Ranking
        With a segment column.
    group : str
    epsilon : float
        The threshold, the same for all segments.
    scores : float64 array, optional
        Those of another rule than the logged ones.
    mode : str
        The name of a pairing mode.
    cluster : {"query", "naive", "item", "union"}
        The variance of the pairs of a segment.
    level : float
    terms : Terms
        On what terms rows are compared.
    """
    if ranking.segment_code is None:
        raise MpcError(
            "The log must have a segment column to look inside segments; got none. Name the column "
            'that labels queries, such as segment="country", and run the audit again.'
        )
    pairs = pair_table(ranking, group, epsilon, scores=scores, mode=mode, terms=terms)
    of_query = np.empty(ranking.n_queries, dtype=np.int64)
    of_query[ranking.query_code] = ranking.segment_code
    return _compare(ranking.segments, pairs, of_query[pairs.query], cluster, level)


def _compare(
    segments: tuple[str, ...], pairs: PairTable, segment: Ints, cluster: str, level: float
) -> BySegment:
    n = len(segments)
    found = cell_means(segment, pairs.codes, pairs.d, n, cluster=cluster, level=level)
    cells = found.estimates
    statistic, p_value, dof = _wald(found, cluster, pairs.codes.owner)
    return BySegment(
        segments=segments,
        estimates=cells,
        n_pairs=found.counts,
        n_queries=queries_at(segment, pairs.query, n),
        statistic=statistic,
        p_value=p_value,
        dof=dof,
        left_out=tuple(segments[k] for k in np.flatnonzero(~cells.estimable)),
    )


def _wald(found: CellMeans, cluster: str, owner: str) -> tuple[float, float, tuple[float, float]]:
    cells, nan = found.estimates, float("nan")
    usable = np.flatnonzero(cells.estimable)
    if len(usable) < 2:
        return nan, nan, (nan, nan)
    theta = cells.estimate[usable]
    used = [cells.variance_by[str(cells.variance_from[k])][k] for k in usable]
    correction = cells.std_error[usable] / np.sqrt(used)
    contrast = theta[1:] - theta[0]
    statistics = []
    for family in (cluster, *VARIANCES[cluster].floors(owner)):
        raw = found.covariance(family)[np.ix_(usable, usable)]
        v = raw * np.outer(correction, correction)
        spread = v[1:, 1:] - v[1:, [0]] - v[[0], 1:] + v[0, 0]
        statistics.append(_quadratic_form(contrast, spread) / len(contrast))
    statistic = min((one for one in statistics if one == one), default=nan)
    between, within = float(len(contrast)), float(cells.dof[usable].min())
    return statistic, float(fdtrc(between, within, statistic)), (between, within)


def _quadratic_form(contrast: Floats, spread: Floats) -> float:
    """Return c'V⁻c; NaN where V is no covariance, as can happen by item and by union."""
    values, vectors = np.linalg.eigh(spread)
    largest = float(values.max())
    if not largest > 0 or values.min() < -_ROUNDING * largest:
        return float("nan")
    kept = values > _ROUNDING * largest
    return float((((vectors.T @ contrast)[kept]) ** 2 / values[kept]).sum())


LARGEST = 4.0
_STEPS = 500
_HALVINGS = 30


@dataclass(frozen=True)
class Sensitivity:
    """How a gap depends on γ, when the outcome of the lower item is multiplied by 1 + γ.

    Attributes
    ----------
    estimate, slope : float
        θ(γ) = estimate + γ·slope; NaN where the gap is not estimable.
    variances : float64 array (family, 3)
        V_DD, V_DL and V_LL after correction, for each variance; the largest variance is used.
    dof : float
    """

    estimate: float
    slope: float
    variances: Floats
    dof: float

    def at(self, gamma: float) -> tuple[float, float]:
        """Return the estimate and its standard error at γ; NaN where the variance is 0."""
        powers = np.array([1.0, 2 * gamma, gamma**2])
        variance = float((self.variances @ powers).max(initial=-np.inf))
        std_error = float(np.sqrt(variance)) if variance > 0 else float("nan")
        return self.estimate + gamma * self.slope, std_error


def position_sensitivity(pairs: PairTable, *, cluster: str = "query") -> Sensitivity:
    r"""Return what a gap would be if the outcomes of lower items were multiplied by 1 + γ.

    With D = Σd and L = Σ ±y(lower), + where the lower item of the list is the group's,
    :math:`\theta(\gamma) = (D + \gamma L)/P` and
    :math:`V(\gamma) = V_{DD} + 2\gamma V_{DL} + \gamma^2 V_{LL}`.

    Parameters
    ----------
    pairs : PairTable
    cluster : {"query", "naive", "item", "union"}
    """
    lower_is_inside = pairs.position > pairs.other_position
    lower = np.where(lower_is_inside, pairs.outcome, -pairs.other_outcome)
    mean, slope = (pairs.codes.mean(x) for x in (pairs.d, lower))
    d, x = pairs.d - mean, lower - slope
    base = estimate_listed(d, mean, pairs.codes, cluster=cluster)
    if not base.estimable:
        return Sensitivity(float("nan"), slope, np.zeros((0, 3)), float("nan"))
    families = (cluster, *VARIANCES[cluster].floors(pairs.codes.owner))
    correction = float(base.std_error) ** 2 / float(base.variance_by[str(base.variance_from)])

    def variance(u: Floats) -> Floats:
        # A constant u has no variance, which is not an error here.
        found = estimate_listed(u, 0.0, pairs.codes, cluster=cluster)
        return correction * np.array([float(found.variance_by[family]) for family in families])

    dl = (variance(d + x) - variance(d - x)) / 4
    parts = np.stack([variance(d), dl, variance(x)], axis=1)
    return Sensitivity(mean, slope, parts, float(base.dof))


def gamma_flip(
    sides: Sequence[Sequence[Sensitivity]],
    group: int,
    *,
    method: str = "holm",
    level: float = 0.95,
    tolerance: float | None = None,
) -> float:
    """Return the γ nearest 0 at which the verdict of a group is no longer that at γ = 0.

    At every γ of a grid in (−1, 4] the cells of all groups are adjusted again, and the verdict
    follows from the bracket of the adjusted intervals, as in the headline. The step where it
    changes is halved until γ is known to nine digits.

    Parameters
    ----------
    sides : sequence of sequences of Sensitivity
        All groups, for each mode that the verdict rests on.
    group : int
        Which of them is asked about.
    method : {"holm", "fdr_bh", "none"}
    level : float
    tolerance : float, optional

    Returns
    -------
    float
        NaN: it never flips, or there is no verdict.
    """

    def verdict(gamma: float) -> str:
        intervals = [_adjust(side, group, gamma, method, level) for side in sides]
        return str(verdicts(intervals, tolerance=tolerance)[0])

    start = verdict(0.0)
    if start == NOT_ESTIMABLE:
        return float("nan")
    found = []
    for end in (-1.0, LARGEST):
        # γ = −1 would leave nothing of the outcome, and is not in the range.
        grid = np.linspace(0.0, end, int(abs(end) * _STEPS / LARGEST) + 1)
        kept = 0.0
        for gamma in grid[1:-1] if end < 0 else grid[1:]:
            if verdict(float(gamma)) != start:
                found.append(_halve(verdict, start, kept, float(gamma)))
                break
            kept = float(gamma)
    return min(found, key=abs, default=float("nan"))


def _halve(verdict: Callable[[float], str], start: str, kept: float, changed: float) -> float:
    for _ in range(_HALVINGS):
        middle = (kept + changed) / 2
        if verdict(middle) == start:
            kept = middle
        else:
            changed = middle
    return changed


def _adjust(
    side: Sequence[Sensitivity], group: int, gamma: float, method: str, level: float
) -> Interval:
    """Return the adjusted interval of one group at γ."""
    estimate, std_error = np.array([one.at(gamma) for one in side]).T
    dof = np.array([one.dof for one in side])
    p = two_sided_p(estimate / std_error, dof)
    made = adjust(p, estimate, std_error, dof, method=method, level=level)
    low, high = made.ci_low_adjusted[group], made.ci_high_adjusted[group]
    return Interval(np.asarray(low), np.asarray(high), np.asarray(made.ci_cut[group]))
