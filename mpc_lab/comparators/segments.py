"""Inside an aggregate: the gap within each segment of queries, and a test that they agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtrc

from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import FloatArray, IntArray
from mpc_lab.inference.estimates import Estimates
from mpc_lab.objective.cells import cell_means
from mpc_lab.objective.position import PairTable, pair_table, queries_at

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


@dataclass(frozen=True)
class BySegment:
    """The gap of one cell within each segment; arrays over segments.

    Attributes
    ----------
    segments : tuple of str
    estimates : Estimates
        Clustered by query, or unit.
    n_pairs, n_queries : int64 array
    statistic, p_value : float
        Of the test that all segments have one gap; NaN where fewer than two are estimable.
    dof : tuple of float
        Degrees of freedom of the test: segments less one, and the smallest of the segments' own.
    left_out : tuple of str
        Segments that are not estimable and not in the test.
    """

    segments: tuple[str, ...]
    estimates: Estimates
    n_pairs: IntArray
    n_queries: IntArray
    statistic: float
    p_value: float
    dof: tuple[float, float]
    left_out: tuple[str, ...]


def by_segment(
    ranking: Ranking,
    group: str,
    epsilon: float,
    *,
    scores: FloatArray | None = None,
    mode: str = "matched",
    level: float = 0.95,
) -> BySegment:
    r"""Return the gap within each segment at one threshold, and a test that segments agree.

    The test is that of Wald, :math:`F = (R\hat\theta)' (R V R')^{-1} R\hat\theta / (S - 1)`, R the
    differences to the first segment and V the covariance over query sums times Q/(Q − 1) of each
    segment, with S − 1 and the smallest of the segments' degrees of freedom. A unit may have
    queries in several segments.

    Parameters
    ----------
    ranking : Ranking
        With a segment column.
    group : str
    epsilon : float
        The threshold, the same for all segments.
    scores : float64 array, optional
        Those of another rule than the logged ones.
    mode : {"matched", "mirrored", "adjacent"}
    level : float
    """
    if ranking.segment_code is None:
        raise MpcError("There are no segments without a segment column: pass segment= to Ranking.")
    pairs = pair_table(ranking, group, epsilon, scores=scores, mode=mode)
    of_query = np.empty(ranking.n_queries, dtype=np.int64)
    of_query[ranking.query_code] = ranking.segment_code
    return _compare(ranking.segments, pairs, of_query[pairs.query], level)


def _compare(
    segments: tuple[str, ...], pairs: PairTable, segment: IntArray, level: float
) -> BySegment:
    n = len(segments)
    found = cell_means(segment, pairs.codes.query, pairs.d, n, level=level)
    cells = found.estimates
    usable = np.flatnonzero(cells.estimable)
    statistic, p_value, dof = _wald(
        cells.estimate[usable],
        cells.std_error[usable],
        found.covariance[np.ix_(usable, usable)],
        cells.dof[usable],
    )
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


def _wald(
    theta: FloatArray, std_error: FloatArray, covariance: FloatArray, dof: FloatArray
) -> tuple[float, float, tuple[float, float]]:
    nan = float("nan")
    if len(theta) < 2:
        return nan, nan, (nan, nan)
    # The corrected standard errors, with the correlation of the raw ones.
    scale = std_error / np.sqrt(np.diagonal(covariance))
    v = covariance * np.outer(scale, scale)
    contrast = theta[1:] - theta[0]
    spread = v[1:, 1:] - v[1:, [0]] - v[[0], 1:] + v[0, 0]
    between = float(len(contrast))
    statistic = float(contrast @ np.linalg.pinv(spread, hermitian=True) @ contrast) / between
    within = float(dof.min())
    return statistic, float(fdtrc(between, within, statistic)), (between, within)
