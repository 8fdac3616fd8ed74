"""Outcome tests on neighbours: swapping two neighbours of the list must not help."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, stdtr

from mpc_lab.comparators.lists import Lists, ranked_lists
from mpc_lab.comparators.measure import FAVOURED, UNDERVALUED, Conditions, Measure, measure
from mpc_lab.inference.arrays import FloatArray, significance
from mpc_lab.inference.correlation import DRAWS, correlation
from mpc_lab.objective.clustered import Clustered, ratio
from mpc_lab.pairing.log import Log

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

CONDITIONS = Conditions(scores="neighbours", queries="same", looks_at="outcomes")
_HIGHEST_RANK = 10
_LARGEST_Z = 40.0
# What an inequality that fails says of the group.
_SAYS = {"above": FAVOURED, "below": UNDERVALUED}


@dataclass(frozen=True)
class _Inequality:
    side: str
    name: str
    found: Clustered
    p_value: float
    statistic: float
    residual: FloatArray


def inequalities(
    ranking: Ranking,
    group: str,
    *,
    scores: FloatArray | None = None,
    by_rank: bool = False,
    level: float = 0.95,
    seed: int = 0,
    draws: int = DRAWS,
    log: Log | None = None,
) -> list[Measure]:
    r"""Test that neighbours of the list stand in the order of their expected outcomes.

    .. math:: E\big[(y_a - y_{a+1})\, 1\{\text{group of } a, \text{group of } a + 1\}\big] \ge 0

    for (g, not g), ``inequality_group_above``, and (not g, g), ``inequality_group_below``: the
    mean over all queries of the query's sum, with a one-sided t test and a two-sided interval.
    ``inequalities_joint`` is the test of all at once: the largest statistic, as a normal quantile
    of its one-sided p-value, against the largest of normal draws with mean 0 and the same
    correlation, the least favourable case.

    Parameters
    ----------
    ranking : Ranking
    group : str
    scores : float64 array, optional
        Those of another rule than the logged ones.
    by_rank : bool
        Separately for a = 1, …, 10 in place of pooled over all ranks.
    level : float
    seed, draws : int
        Of the joint test.
    log : Log, optional
        The rows sorted by these scores, where they are sorted already.

    References
    ----------
    Roth, Saint-Jacques & Yu (2022), An outcome test of discrimination for ranked lists.
    """
    lists = ranked_lists(ranking, scores, log=log)
    ranks = range(1, _HIGHEST_RANK + 1) if by_rank else [None]
    tested = [_test(lists, ranking, group, side, rank, level) for rank in ranks for side in _SAYS]
    a = significance(level)
    single = [_as_measure(one, a) for one in tested]
    return [*single, _joint(tested, a, seed, draws)]


def _test(
    lists: Lists, ranking: Ranking, group: str, side: str, rank: int | None, level: float
) -> _Inequality:
    member = ranking.member(group)[lists.row]
    y = ranking.outcome[lists.row]
    upper = np.flatnonzero((lists.query[1:] == lists.query[:-1]) & (np.diff(lists.position) == 1))
    wanted = (member[upper] == (side == "above")) & (member[upper] != member[upper + 1])
    if rank is not None:
        wanted &= lists.position[upper] == rank
    upper = upper[wanted]
    sums = lists.by_cluster(y[upper] - y[upper + 1], lists.query[upper])
    counts = np.bincount(lists.cluster, minlength=lists.n_clusters).astype(np.float64)
    found = ratio(sums, counts, level=level)
    if not len(upper):
        found = Clustered(0.0, reason="no such neighbours")
    p, z = float("nan"), float("nan")
    if found.estimable:
        t = found.estimate / found.std_error
        p = float(stdtr(found.dof, t))
        # By the smaller tail, which keeps its digits until it is too small for a number.
        z = float(np.copysign(max(ndtri(stdtr(found.dof, -abs(t))), -_LARGEST_Z), t))
    name = f"inequality_group_{side}" + ("" if rank is None else f"_{rank}")
    return _Inequality(side, name, found, p, z, (sums - found.estimate * counts) / counts.sum())


def _as_measure(one: _Inequality, a: float) -> Measure:
    flagged = bool(one.p_value <= a)
    return replace(
        measure(one.name, one.found, CONDITIONS),
        p_value=one.p_value,
        flagged=flagged,
        says=_SAYS[one.side] if flagged else "",
    )


def _joint(tested: list[_Inequality], a: float, seed: int, draws: int) -> Measure:
    usable = [one for one in tested if one.found.estimable]
    left_out = len(tested) - len(usable)
    empty = Measure("inequalities_joint", float("nan"), CONDITIONS, left_out=left_out)
    if not usable:
        return replace(empty, reason="no inequality can be tested")
    p = np.array([one.p_value for one in usable])
    worst = int(np.argmin([one.statistic for one in usable]))
    statistic = -usable[worst].statistic
    residual = np.stack([one.residual for one in usable])
    largest = _largest_normals(correlation(residual @ residual.T), seed, draws)
    joint = float((1 + (largest >= statistic).sum()) / (1 + draws))
    # The draws can only lie between no and full dependence.
    joint = float(np.clip(joint, p[worst], min(1.0, len(p) * p[worst])))
    return replace(
        empty,
        estimate=statistic,
        p_value=joint,
        null=float("nan"),
        flagged=joint <= a,
        says=_SAYS[usable[worst].side] if joint <= a else "",
        n_effective=min(one.found.n_effective for one in usable),
        reason="a joint test has no interval",
    )


def _largest_normals(together: FloatArray, seed: int, draws: int) -> FloatArray:
    """Return draws of max N(0, R); R may be singular."""
    values, vectors = np.linalg.eigh(together)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    factor /= np.linalg.norm(factor, axis=1, keepdims=True)
    normals = np.random.default_rng(seed).standard_normal((draws, len(together)))
    return np.asarray((normals @ factor.T).max(axis=1))
