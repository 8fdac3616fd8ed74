"""If lower places lose part of their outcomes: what a gap would be, and where its verdict flips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_lab.inference.clustered import estimate_listed
from mpc_lab.inference.estimates import two_sided_p
from mpc_lab.inference.multiplicity import adjust
from mpc_lab.inference.slices import PairTable
from mpc_lab.inference.verdicts import Interval, verdicts
from mpc_lab.vocabulary import NOT_ESTIMABLE, VARIANCES, Floats

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
        V_DD, V_DL and V_LL after correction, by each variance of which the largest is used.
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

    At every γ of a grid in (−1, 4] the cells of all groups are adjusted again, and the verdict is
    by the bracket of the adjusted intervals, as that of the headline. The step where it changes is
    halved until γ is known to nine digits.

    Parameters
    ----------
    sides : sequence of sequences of Sensitivity
        For each mode that the verdict rests on, all groups.
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
        intervals = [_adjusted(side, group, gamma, method, level) for side in sides]
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
                found.append(_halved(verdict, start, kept, float(gamma)))
                break
            kept = float(gamma)
    return min(found, key=abs, default=float("nan"))


def _halved(verdict: Callable[[float], str], start: str, kept: float, changed: float) -> float:
    for _ in range(_HALVINGS):
        middle = (kept + changed) / 2
        if verdict(middle) == start:
            kept = middle
        else:
            changed = middle
    return changed


def _adjusted(
    side: Sequence[Sensitivity], group: int, gamma: float, method: str, level: float
) -> Interval:
    """Return the adjusted interval of one group at γ."""
    estimate, std_error = np.array([one.at(gamma) for one in side]).T
    dof = np.array([one.dof for one in side])
    p = two_sided_p(estimate / std_error, dof)
    made = adjust(p, estimate, std_error, dof, method=method, level=level)
    low, high = made.ci_low_adjusted[group], made.ci_high_adjusted[group]
    return Interval(np.asarray(low), np.asarray(high), np.asarray(made.ci_cut[group]))
