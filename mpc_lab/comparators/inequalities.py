"""Outcome tests on neighbours: swapping two neighbours of the list must not help."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri, stdtr

from mpc_lab.comparators.base import Case, Comparison, Conditions, comparison
from mpc_lab.inference.bands import DRAWS, correlation
from mpc_lab.inference.clustered import Clustered, ratio
from mpc_lab.inference.estimates import significance
from mpc_lab.pairing.kernels import kernel
from mpc_lab.vocabulary import OVERVALUED, UNDERVALUED, Flags, Floats, Ints

CONDITIONS = Conditions(scores="neighbours", queries="same", looks_at="outcomes")
_HIGHEST_RANK = 10
_LARGEST_Z = 40.0
# What a failed inequality says of the group.
_SAYS = {"above": OVERVALUED, "below": UNDERVALUED}


@dataclass(frozen=True)
class _Inequality:
    side: str
    name: str
    found: Clustered
    p_value: float
    statistic: float
    residual: Floats


def inequalities(case: Case, *, by_rank: bool = False, draws: int = DRAWS) -> list[Comparison]:
    r"""Test that neighbours of the list are in the order of their expected outcomes.

    .. math:: E\big[(y_a - y_{a+1})\, 1\{\text{group of } a, \text{group of } a + 1\}\big] \ge 0

    for (g, not g), ``inequality_group_above``, and (not g, g), ``inequality_group_below``: the
    mean over all queries of the query's sum, with a one-sided t test and a two-sided interval.
    ``inequalities_joint`` is the test of all at once: the largest statistic, as a normal quantile
    of its one-sided p-value, against the largest of normal draws with mean 0 and the same
    correlation, the least favourable case.

    Parameters
    ----------
    case : Case
    by_rank : bool
        Separately for a = 1, …, 10 in place of pooled over all ranks; names end in the rank, and
        the joint test is ``inequalities_joint_by_rank``.
    draws : int
        Number of normal draws behind the joint test.

    References
    ----------
    Roth, Saint-Jacques & Yu (2022), An outcome test of discrimination for ranked lists.
    """
    ranks = range(1, _HIGHEST_RANK + 1) if by_rank else [None]
    tested = [_test(case, side, rank) for rank in ranks for side in _SAYS]
    a = significance(case.level)
    single = [_as_comparison(one, a) for one in tested]
    joint = _joint(tested, a, case.seed, draws)
    return [*single, replace(joint, name=f"{joint.name}_by_rank") if by_rank else joint]


def _test(case: Case, side: str, rank: int | None) -> _Inequality:
    lists = case.lists
    upper = lists.uppers if rank is None else lists.uppers[lists.position[lists.uppers] == rank]
    sums, counts = np.zeros(lists.n_clusters), lists.clusters
    weight = np.empty(0) if lists.weight is None else lists.weight
    n = _add_neighbours(
        upper,
        case.listed_member,
        side == "above",
        case.listed_outcome,
        lists.query,
        lists.cluster,
        weight,
        sums,
    )
    found = ratio(sums, counts, level=case.level)
    if not n:
        found = Clustered(0.0, reason="no such neighbours")
    p, z = float("nan"), float("nan")
    if found.estimable:
        t = found.estimate / found.std_error
        p = float(stdtr(found.dof, t))
        # By the smaller tail, which keeps its digits until it is too small for a number.
        z = float(np.copysign(max(ndtri(stdtr(found.dof, -abs(t))), -_LARGEST_Z), t))
    name = f"inequality_group_{side}" + ("" if rank is None else f"_{rank}")
    return _Inequality(side, name, found, p, z, (sums - found.estimate * counts) / counts.sum())


@kernel
def _add_neighbours(
    uppers: Ints,
    member: Flags,
    above: bool,
    outcome: Floats,
    query: Ints,
    cluster: Ints,
    weight: Floats,
    to: Floats,
) -> int:
    """Add the difference of outcomes of neighbours with one in the group, and count them.

    `above`: whether it is the upper one. They add to their cluster, times the weight of the query.
    """
    n = 0
    for upper in uppers:
        if member[upper] == above and member[upper + 1] != above:
            difference, of = outcome[upper] - outcome[upper + 1], query[upper]
            to[cluster[of]] += difference * weight[of] if len(weight) else difference
            n += 1
    return n


def _as_comparison(one: _Inequality, a: float) -> Comparison:
    flagged = bool(one.p_value <= a)
    return replace(
        comparison(one.name, one.found, CONDITIONS),
        p_value=one.p_value,
        two_sided=False,
        flagged=flagged,
        leans=_SAYS[one.side],
        says=_SAYS[one.side] if flagged else "",
    )


def _joint(tested: list[_Inequality], a: float, seed: int, draws: int) -> Comparison:
    usable = [one for one in tested if one.found.estimable]
    left_out = len(tested) - len(usable)
    empty = Comparison("inequalities_joint", float("nan"), CONDITIONS, left_out=left_out)
    if not usable:
        return replace(empty, reason="no inequality can be tested")
    p = np.array([one.p_value for one in usable])
    worst = int(np.argmin([one.statistic for one in usable]))
    statistic = -usable[worst].statistic
    residual = np.stack([one.residual for one in usable])
    largest = _largest_normals(correlation(residual @ residual.T), seed, draws)
    joint = float((1 + (largest >= statistic).sum()) / (1 + draws))
    # The p-value must be between those under no and under full dependence.
    joint = float(np.clip(joint, p[worst], min(1.0, len(p) * p[worst])))
    return replace(
        empty,
        estimate=statistic,
        p_value=joint,
        null=float("nan"),
        flagged=joint <= a,
        leans=_SAYS[usable[worst].side],
        says=_SAYS[usable[worst].side] if joint <= a else "",
        n_effective=min(one.found.n_effective for one in usable),
        reason="a joint test has no interval",
    )


def _largest_normals(together: Floats, seed: int, draws: int) -> Floats:
    """Return draws of max N(0, R); R may be singular."""
    values, vectors = np.linalg.eigh(together)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    factor /= np.linalg.norm(factor, axis=1, keepdims=True)
    normals = np.random.default_rng(seed).standard_normal((draws, len(together)))
    return np.asarray((normals @ factor.T).max(axis=1))
