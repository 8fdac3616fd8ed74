"""Many cells at once: adjusted p-values, and intervals that never contradict them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mpc_lab.errors import MpcError, near_match
from mpc_lab.inference.bands import (
    DRAWS,
    absolute_normals,
    check_correlation,
    limited,
    upper_quantile,
)
from mpc_lab.inference.estimates import critical, normal_critical, significance
from mpc_lab.vocabulary import Flags, Floats, Ints

METHODS = ("holm", "romano_wolf", "fdr_bh", "none")


@dataclass(frozen=True)
class Adjusted:
    """Adjusted p-values and intervals; NaN where a cell is not estimable.

    Attributes
    ----------
    p_adjusted, ci_low_adjusted, ci_high_adjusted : array
    ci_cut : array of bool
        Where an end was set to 0 because the test rejects: the interval then excludes that 0.
        Cutting is a test decision, not extra precision.
    """

    p_adjusted: Floats
    ci_low_adjusted: Floats
    ci_high_adjusted: Floats
    ci_cut: Flags


def adjust(
    p: Floats,
    estimate: Floats,
    std_error: Floats,
    dof: Floats,
    *,
    method: str,
    level: float = 0.95,
    correlation: Floats | None = None,
    seed: int = 0,
    draws: int = DRAWS,
) -> Adjusted:
    """Adjust a family of m estimable cells; those with a NaN p-value are not in the family.

    With a = 1 − level:

    - ``holm``: Holm's p-values. Interval: Bonferroni at 1 − a/m, cut at 0 where Holm rejects and
      it still reaches across.
    - ``romano_wolf``: step-down max-|z| with z = Φ⁻¹(1 − p/2) and seeded draws of N(0, R); no
      step is stricter than Holm's [1]_. Interval from the first step, cut at 0 likewise.
    - ``fdr_bh``: Benjamini–Hochberg with R rejections; all intervals at 1 − max(R, 1)·a/m [2]_.
    - ``none``: p and intervals as they are.

    For all, p_adjusted ≤ a if and only if the adjusted interval excludes 0.

    Parameters
    ----------
    p, estimate, std_error, dof : array (cell,)
        Two-sided p-values of t tests, and what they were made of.
    method : {"holm", "romano_wolf", "fdr_bh", "none"}
    level : float
        Confidence level of the family.
    correlation : array (cell, cell), optional
        R, for ``romano_wolf``.
    seed, draws : int
        Of the simulation of ``romano_wolf``.

    Returns
    -------
    Adjusted

    References
    ----------
    .. [1] Romano & Wolf (2005), Exact and approximate stepdown methods for multiple hypothesis
       testing.
    .. [2] Benjamini & Yekutieli (2005), False discovery rate–adjusted multiple confidence
       intervals for selected parameters.

    Examples
    --------
    >>> import numpy as np
    >>> result = adjust(np.array([0.01, 0.04]), np.array([2.6, 2.1]), np.ones(2),
    ...                 np.full(2, 1e6), method="holm")
    >>> result.p_adjusted.tolist(), result.ci_cut.tolist()
    ([0.02, 0.04], [False, True])
    """
    if method not in METHODS:
        hint = near_match(method, METHODS)
        raise MpcError(f"adjust must be one of {', '.join(METHODS)}, got {method!r}.{hint}")
    a = significance(level)
    p = np.asarray(p, dtype=np.float64)
    family = np.isfinite(p)
    known = p[family]
    if method == "romano_wolf":
        among = _among(correlation, family)
        adjusted, tail = _romano_wolf(known, a, among, seed, draws)
    elif method == "holm":
        adjusted, tail = holm(known), a / (2 * max(known.size, 1))
    elif method == "fdr_bh":
        adjusted = benjamini_hochberg(known)
        rejections = max(int((adjusted <= a).sum()), 1)
        tail = rejections * a / (2 * max(known.size, 1))
    else:
        adjusted, tail = known, a / 2
    p_adjusted = np.full(p.shape, np.nan)
    p_adjusted[family] = adjusted
    half = critical(tail, np.where(family, dof, np.nan)) * std_error
    return _agreeing(p_adjusted, np.asarray(estimate), half, a)


def holm(p: Floats) -> Floats:
    """Return Holm's step-down p-values."""
    order, steps = _ascending(p)
    stepped = np.minimum(np.maximum.accumulate(p[order] * (p.size - steps)), 1.0)
    return _put_back(stepped, order)


def benjamini_hochberg(p: Floats) -> Floats:
    """Return the step-up p-values of Benjamini and Hochberg."""
    order, steps = _ascending(p)
    # In this order the largest is multiplied by exactly 1, and none falls below its own p.
    ratio = p[order] * (p.size / (steps + 1))
    stepped = np.minimum(np.minimum.accumulate(ratio[::-1])[::-1], 1.0)
    return _put_back(stepped, order)


def _romano_wolf(
    p: Floats, a: float, correlation: Floats, seed: int, draws: int
) -> tuple[Floats, float]:
    """Return the step-down p-values and the tail probability of the first step."""
    if p.size == 0:
        return p, a / 2
    order, steps = _ascending(p)
    ranked = p[order]
    statistic = normal_critical(ranked / 2)
    beyond = np.zeros(p.size, dtype=np.int64)
    maxima = []
    ordered = correlation[np.ix_(order, order)]
    for block in absolute_normals(ordered, seed=seed, draws=draws):
        # Column k becomes the maximum over the cells that are left at step k.
        left = np.maximum.accumulate(block[:, ::-1], axis=1)[:, ::-1]
        beyond += (left >= statistic).sum(axis=0)
        maxima.append(left[:, 0])
    share = (1 + beyond) / (1 + draws)
    step = np.clip(share, ranked, np.minimum(ranked * (p.size - steps), 1.0))
    first = limited(upper_quantile(np.concatenate(maxima), a), a, p.size)
    return _put_back(np.maximum.accumulate(step), order), float(ndtr(-first))


def _agreeing(p_adjusted: Floats, estimate: Floats, half: Floats, a: float) -> Adjusted:
    """Make the intervals follow the decision p_adjusted ≤ a, also where rounding disagrees."""
    low, high = estimate - half, estimate + half
    rejected = p_adjusted <= a
    cut = rejected & (low <= 0) & (high >= 0)
    stretched = ~rejected & ((low > 0) | (high < 0))
    to_zero = cut | stretched
    low = np.where(to_zero & (estimate > 0), 0.0, low)
    high = np.where(to_zero & (estimate < 0), 0.0, high)
    return Adjusted(p_adjusted, low, high, np.asarray(cut))


def _among(correlation: Floats | None, family: Flags) -> Floats:
    if correlation is None:
        raise MpcError(
            "adjust='romano_wolf' needs the correlation of the cells, got none; "
            "give it or use adjust='holm'."
        )
    check_correlation(correlation, family.size)
    return correlation[np.ix_(family, family)]


def _ascending(p: Floats) -> tuple[Ints, Ints]:
    return np.argsort(p, kind="stable"), np.arange(p.size)


def _put_back(ordered: Floats, order: Ints) -> Floats:
    result = np.empty_like(ordered)
    result[order] = ordered
    return result
