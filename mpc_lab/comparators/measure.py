"""What every measure of a group has: a number, its interval, and what it conditions on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mpc_lab.inference.arrays import FloatArray, significance
from mpc_lab.inference.student import critical
from mpc_lab.objective.clustered import Clustered

_NAN = float("nan")
UNDERVALUED, FAVOURED = "undervalued", "favoured"


@dataclass(frozen=True)
class Conditions:
    """What a measure holds fixed and what it looks at.

    Attributes
    ----------
    scores : {"close", "binned", "all"}
        Whether the items compared have close scores, scores in one of a few bins, or any scores.
    queries : {"same", "all"}
        Whether they come from one query.
    looks_at : {"outcomes", "exposure", "both"}
        Whether it looks at outcomes, at who stands where only, or sets one against the other.
    """

    scores: str
    queries: str
    looks_at: str


@dataclass(frozen=True)
class Measure:
    """One measure of one group.

    Attributes
    ----------
    name : str
    estimate, std_error, ci_low, ci_high, p_value : float
        NaN where there is none; the estimate may be there without an interval.
    null : float
        The value that says nothing is amiss; NaN where the measure has none.
    high_is : {"undervalued", "favoured", ""}
        What an estimate above `null` says of the group; "" where it says neither.
    flagged : bool
        Whether the interval (for one-sided tests, the p-value) excludes `null`.
    says : {"undervalued", "favoured", ""}
        What a flag says of the group.
    conditions : Conditions
    inside, outside : float
        What is compared, in the group and outside it, where the measure has such parts.
    n_effective : float
        Effective number of queries.
    left_out : int
        What could not be used: bins, queries or inequalities, as the measure says.
    reason : str
        Why there is no interval; "" where there is one.
    """

    name: str
    estimate: float
    conditions: Conditions
    std_error: float = _NAN
    ci_low: float = _NAN
    ci_high: float = _NAN
    p_value: float = _NAN
    null: float = 0.0
    high_is: str = ""
    flagged: bool = False
    says: str = ""
    inside: float = _NAN
    outside: float = _NAN
    n_effective: float = _NAN
    left_out: int = 0
    reason: str = ""


def measure(
    name: str, found: Clustered, conditions: Conditions, *, high_is: str = "", **parts: Any
) -> Measure:
    """Return a measure that is flagged where its interval excludes its null."""
    made = Measure(
        name=name,
        estimate=found.estimate,
        conditions=conditions,
        std_error=found.std_error,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        p_value=found.p_value,
        null=found.null,
        high_is=high_is,
        n_effective=found.n_effective,
        reason=found.reason,
        **parts,
    )
    return flagged_by_interval(made)


def flagged_by_interval(made: Measure) -> Measure:
    """Return the measure with its flag and what it says, from its interval."""
    above, below = made.ci_low > made.null, made.ci_high < made.null
    low_is = {UNDERVALUED: FAVOURED, FAVOURED: UNDERVALUED}.get(made.high_is, "")
    says = made.high_is if above else low_is if below else ""
    return replace(made, flagged=bool(above or below), says=says)


def on_log_scale(found: Clustered, level: float) -> Clustered:
    """Turn an estimate of ln R with null 0 into one of R with null 1.

    The interval is that of ln R, carried over; the standard error is R·SE(ln R).
    """
    with np.errstate(over="ignore"):
        value = float(np.exp(found.estimate))
    if not found.estimable:
        return replace(found, estimate=value, null=1.0)
    half = float(critical(significance(level) / 2, found.dof)) * found.std_error
    with np.errstate(over="ignore"):
        low, high = np.exp([found.estimate - half, found.estimate + half]).tolist()
    return replace(
        found,
        estimate=value,
        std_error=value * found.std_error,
        ci_low=low,
        ci_high=high,
        null=1.0,
    )


def share(part: FloatArray, whole: FloatArray) -> float:
    """Return Σpart/Σwhole; NaN where there is nothing."""
    total = float(np.sum(whole))
    return float(np.sum(part)) / total if total else _NAN
