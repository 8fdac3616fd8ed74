"""What happens to a group and to the lists along boosts of its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import FloatArray
from mpc_lab.objective.boosts import Boosts, Gaps
from mpc_lab.objective.change import Change
from mpc_lab.objective.weights import Weights

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

__all__ = [
    "STEPS",
    "BoostCurve",
    "Boosts",
    "Gaps",
    "boost_curve",
    "check_epsilon",
    "default_alphas",
    "flat",
    "prepared",
]

STEPS = 201


@dataclass(frozen=True)
class BoostCurve:
    """A group under boosts by each α; arrays over α.

    Attributes
    ----------
    gaps : Gaps
        MPC(α) of the group.
    objective : dict of arrays
        ``dcg``, ``ndcg`` and their ``_std_error``; ``dcg_change`` and ``ndcg_change`` against no
        boost, paired, each with ``_low`` and ``_high``.
    share_changed : array
        Share of the places of all lists that have a new row.
    """

    gaps: Gaps
    objective: dict[str, FloatArray]
    share_changed: FloatArray


def boost_curve(
    ranking: Ranking | Boosts,
    group: str,
    epsilon: float,
    alphas: ArrayLike | None = None,
    *,
    cluster: str = "query",
    level: float = 0.95,
    weights: Weights = None,
    gain: str = "linear",
) -> BoostCurve:
    """Follow a group's gap and the objective along boosts.

    Parameters
    ----------
    ranking : Ranking or Boosts
        `Boosts` of the same group where it was prepared before: a step then costs no sort.
    group : str
    epsilon : float
        The threshold, the same for every α: that of the baseline's headline.
    alphas : array, optional
        By default 201 steps over ± the standard deviation of all scores.
    cluster, level
        Of the interval of the gap; those of the objective are by query.
    weights, gain
        Of the objective.
    """
    ready = prepared(ranking, group, weights, gain)
    steps = _alphas(alphas, ready.ranking)
    epsilon = check_epsilon(epsilon)
    changes = [ready.change(alpha, level=level) for alpha in steps]
    columns: dict[str, list[float]] = {}
    for change, _ in changes:
        for name, value in change.flat().items():
            columns.setdefault(name, []).append(value)
    return BoostCurve(
        gaps=ready.gap(steps, epsilon, cluster=cluster, level=level),
        objective={name: np.array(values) for name, values in columns.items()},
        share_changed=np.array([share for _, share in changes]),
    )


def flat(change: Change) -> dict[str, float]:
    """Return a change as plain numbers, under the names of ``audit.objective``."""
    return change.flat()


def default_alphas(ranking: Ranking, steps: int = STEPS) -> FloatArray:
    """Return steps of α over ± the standard deviation of all scores, 0 among them."""
    half = steps // 2
    return np.asarray(ranking.score_std * (np.arange(-half, half + 1) / half))


def check_epsilon(epsilon: Any) -> float:
    """Return a threshold that is a finite number of at least 0."""
    value = float(epsilon)
    if not (np.isfinite(value) and value >= 0):
        raise MpcError(
            f"epsilon must be a finite number of at least 0, but {epsilon!r} came; a group "
            "without pairs has no threshold of its own: give one."
        )
    return value


def _alphas(alphas: ArrayLike | None, ranking: Ranking) -> FloatArray:
    if alphas is None:
        return default_alphas(ranking)
    try:
        steps = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise MpcError(f"alphas must be numbers, but {alphas!r} came.") from None
    if steps.ndim != 1 or not len(steps) or not np.isfinite(steps).all():
        raise MpcError(f"alphas must be a list of finite numbers, but {alphas!r} came.")
    return steps


def prepared(ranking: Ranking | Boosts, group: str, weights: Weights, gain: str) -> Boosts:
    """Return `Boosts` as they came, or prepare them."""
    if isinstance(ranking, Boosts):
        if ranking.group != group:
            raise MpcError(
                f"These Boosts were prepared for group {ranking.group!r}, but {group!r} is asked "
                "for: prepare Boosts for each group."
            )
        return ranking
    return Boosts(ranking, group, weights=weights, gain=gain)
