"""From intervals to verdicts: many cells at once, brackets, and what could have been found.

Adjusted p-values come with intervals that never contradict them; the smallest detectable gap says
what a cell without a finding could have shown, and how many queries another gap would take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from mpc_lab.errors import MpcError, check_count, check_number, near_match
from mpc_lab.inference.bands import (
    DRAWS,
    absolute_normals,
    check_correlation,
    limited,
    upper_quantile,
)
from mpc_lab.inference.estimates import critical, normal_critical, significance
from mpc_lab.vocabulary import (
    AGAINST,
    BRACKET,
    COMPLEMENT,
    DIRECTIONS,
    INCONCLUSIVE,
    NOT_ESTIMABLE,
    OVERVALUED,
    SHOWN_ORDER,
    UNDERVALUED,
    WITHIN,
    Flags,
    Floats,
    Ints,
    Texts,
)

COVERS_ZERO = "interval covers 0"
# No direction is given if the places of both sides overlap less than this, or if more than this
# share of the pairs was shown the other way round.
LEAST_OVERLAP = 0.2
MOST_SHOWN_ABOVE = 0.25


@dataclass(frozen=True)
class Interval:
    """Adjusted intervals of cells; NaN where a cell is not estimable.

    Attributes
    ----------
    low, high : array
    cut : array of bool or bool
        Where an end was set to 0 by a test that rejects: the interval then excludes that 0.
    """

    low: Floats
    high: Floats
    cut: Flags | bool = False

    @property
    def above(self) -> Flags:
        """Where the interval is above 0."""
        return np.asarray((self.low > 0) | (self.cut & (self.low == 0)))

    @property
    def below(self) -> Flags:
        """Where the interval is below 0."""
        return np.asarray((self.high < 0) | (self.cut & (self.high == 0)))

    @property
    def estimable(self) -> Flags:
        """Where there is an interval."""
        return np.asarray(np.isfinite(self.low) & np.isfinite(self.high))


def bracket(sides: Sequence[Interval]) -> Interval:
    """Return the hull of the intervals of all sides; NaN where one of them is not estimable.

    It excludes 0 where every side does, in the same direction.

    Examples
    --------
    >>> import numpy as np
    >>> hull = bracket([Interval(np.array(-0.1), np.array(0.1)),
    ...                 Interval(np.array(0.05), np.array(0.2))])
    >>> float(hull.low), float(hull.high)
    (-0.1, 0.2)
    """
    # minimum and maximum, unlike fmin and fmax, carry a NaN along.
    low = np.minimum.reduce([side.low for side in sides])
    high = np.maximum.reduce([side.high for side in sides])
    above = np.logical_and.reduce([side.above for side in sides])
    below = np.logical_and.reduce([side.below for side in sides])
    return Interval(low, high, np.asarray((above & (low == 0)) | (below & (high == 0))))


def bracket_p(p_adjusted: Sequence[Floats], estimate: Sequence[Floats]) -> Floats:
    """Return the larger adjusted p-value of the sides where their estimates have one sign, else 1.

    It is at most a = 1 − level if and only if the `bracket` of the sides excludes 0. No further
    correction is needed: both tests have to reject.

    Examples
    --------
    >>> import numpy as np
    >>> p, estimate = [np.array([0.01, 0.01]), np.array([0.03, 0.03])], np.array([0.2, -0.2])
    >>> bracket_p(p, [np.array([0.1, 0.1]), estimate]).tolist()
    [0.03, 1.0]
    """
    largest = np.maximum.reduce(list(p_adjusted))
    signs = [np.sign(values) for values in estimate]
    agree = np.logical_and.reduce([sign == signs[0] for sign in signs])
    return np.where(agree | np.isnan(largest), largest, 1.0)


def verdicts(sides: Sequence[Interval], *, tolerance: float | None = None) -> tuple[Texts, Texts]:
    """Return the verdict of each cell and its reason, by the `bracket` of its sides.

    In this order: ``not estimable``; ``within tolerance`` where the bracket is inside ±tolerance;
    ``undervalued`` where it is above 0; ``overvalued`` where it is below 0; otherwise
    ``inconclusive``. Its reason is ``scores run against outcomes`` (`matched` is above 0 and
    `mirrored` below), ``bracket`` (`matched` is below 0 or `mirrored` above: a ranking without
    any bias shows this too, because outcomes rise with the score), or ``interval covers 0``.

    Parameters
    ----------
    sides : sequence of Interval
        The adjusted intervals of `matched` and of `mirrored` at the same threshold; for a mode
        that is judged by its own interval, this one alone.
    tolerance : float, optional
        Equivalence margin in outcome units.

    Returns
    -------
    verdict, verdict_reason : array of str
        The reason is "" unless the verdict is ``inconclusive``.

    Examples
    --------
    >>> import numpy as np
    >>> matched = Interval(np.array([0.1, -0.3]), np.array([0.2, -0.1]))
    >>> mirrored = Interval(np.array([0.1, -0.1]), np.array([0.3, 0.2]))
    >>> verdict, reason = verdicts([matched, mirrored])
    >>> verdict.tolist(), reason.tolist()
    (['undervalued', 'inconclusive'], ['', 'bracket'])
    """
    check_tolerance(tolerance)
    hull, first, last = bracket(sides), sides[0], sides[-1]
    conditions = [~hull.estimable, _inside(hull, tolerance), hull.above, hull.below]
    names = [NOT_ESTIMABLE, WITHIN, UNDERVALUED, OVERVALUED]
    verdict = np.select(conditions, names, INCONCLUSIVE)
    reasons = [verdict != INCONCLUSIVE, first.above & last.below, first.below | last.above]
    return verdict, np.select(reasons, ["", AGAINST, BRACKET], COVERS_ZERO)


def outside(verdict: Texts, low: Floats, high: Floats, *, tolerance: float | None = None) -> Flags:
    """Return where the bracket is wholly outside ±tolerance with a direction verdict.

    Without a tolerance this is every direction verdict.
    """
    check_tolerance(tolerance)
    verdict, margin = np.asarray(verdict), tolerance or 0.0
    # A direction means that 0 is excluded, even where the bracket ends at 0.
    under = (verdict == UNDERVALUED) & ((np.asarray(low) > margin) | (margin == 0))
    over = (verdict == OVERVALUED) & ((np.asarray(high) < -margin) | (margin == 0))
    return np.asarray(under | over)


def gate(verdict: Texts, low: Floats, high: Floats, *, tolerance: float | None = None) -> int:
    """Return 0 to pass, 1 to fail, 2 where the cells do not decide.

    0 if every cell is within tolerance (without a tolerance: if there is no direction verdict);
    1 if some cell is `outside`; else 2.

    Parameters
    ----------
    verdict : array of str
        As `verdicts` gave them, with the same tolerance.
    low, high : array
        Ends of the brackets that the verdicts rest on.
    tolerance : float, optional
        Equivalence margin in outcome units.

    Examples
    --------
    >>> import numpy as np
    >>> gate(np.array(["undervalued"]), np.array([0.1]), np.array([0.2]))
    1
    """
    verdict = np.asarray(verdict)
    if verdict.size == 0:
        raise MpcError("A gate must have at least one cell; got none. Audit at least one group.")
    if outside(verdict, low, high, tolerance=tolerance).any():
        return 1
    if tolerance is None:
        return 0
    return 0 if bool((verdict == WITHIN).all()) else 2


def without_contradictions(
    verdict: Texts,
    verdict_reason: Texts,
    complements: Sequence[tuple[int, int]],
    rules: Sequence[int],
) -> tuple[Texts, Texts]:
    """Take the direction from a group and its complement where both have the same one.

    At one threshold the gap of a group is minus that of its complement. At thresholds of their own
    the two have different pairs, and only this function keeps them from contradicting each other.

    Parameters
    ----------
    verdict, verdict_reason : array of str (rule, mode, group)
    complements : sequence of (int, int)
        Pairs of groups, by number, such that every row is in exactly one of the two.
    rules : sequence of int
        The rules, by number, that give an item the same score whichever group is audited: under
        other rules both verdicts may be true.

    Examples
    --------
    >>> import numpy as np
    >>> both = np.array([[["overvalued", "overvalued"]]])
    >>> without_contradictions(both, np.full((1, 1, 2), ""), [(0, 1)], [0])[0].tolist()
    [[['inconclusive', 'inconclusive']]]
    """
    bound = np.isin(np.arange(len(verdict)), rules)[:, None]
    for one, other in complements:
        same = (verdict[:, :, one] == verdict[:, :, other]) & bound
        same &= np.isin(verdict[:, :, one], DIRECTIONS)
        both = same[:, :, None] & np.isin(np.arange(verdict.shape[2]), (one, other))
        verdict = np.where(both, INCONCLUSIVE, verdict)
        verdict_reason = np.where(both, COMPLEMENT, verdict_reason)
    return verdict, verdict_reason


def check_tolerance(tolerance: float | None) -> None:
    """Raise unless `tolerance` is None or a finite number that is not negative."""
    if tolerance is not None:
        check_number(
            "tolerance", tolerance, at_least=0, remedy="Leave it out to ask for a direction only."
        )


def _inside(hull: Interval, tolerance: float | None) -> Flags:
    if tolerance is None:
        return np.zeros(np.shape(hull.low), dtype=np.bool_)
    return np.asarray((hull.low >= -tolerance) & (hull.high <= tolerance))


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
        Two-sided p-values of t tests, and the numbers behind them.
    method : {"holm", "romano_wolf", "fdr_bh", "none"}
    level : float
        Confidence level of the family.
    correlation : array (cell, cell), optional
        R, for ``romano_wolf``.
    seed, draws : int
        Seed, and number of draws, of the simulation of ``romano_wolf``.

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
        raise MpcError(f"adjust must be one of {', '.join(METHODS)}; got {method!r}.{hint}")
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
    """Make the intervals follow the decision p_adjusted ≤ a even where rounding disagrees."""
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
            "adjust='romano_wolf' must have the correlation of the cells; got none. Give it, or "
            "use adjust='holm'."
        )
    check_correlation(correlation, family.size)
    return correlation[np.ix_(family, family)]


def _ascending(p: Floats) -> tuple[Ints, Ints]:
    return np.argsort(p, kind="stable"), np.arange(p.size)


def _put_back(ordered: Floats, order: Ints) -> Floats:
    result = np.empty_like(ordered)
    result[order] = ordered
    return result


_ROUNDING = 1e-12


def mde(
    std_error: Floats,
    dof: Floats,
    *,
    level: float = 0.95,
    power: float = 0.8,
    tests: Ints | int = 1,
    sides: Ints | int = 1,
) -> Floats:
    """Return the minimum detectable effect (t_{1−a/2} + t_p)·SE, p = power^(1/sides).

    A verdict by a bracket needs both sides to agree. Two sides that are each found with probability
    √power are both found with probability `power` if they are independent.

    Parameters
    ----------
    std_error, dof : array
        Standard errors of the cells; for a bracket, of the side with the larger one. NaN where not
        estimable.
    level : float
        Confidence level of the test.
    power : float
        Probability of finding an effect of that size.
    tests : int or array of int
        Size m of the family: a/m takes the place of a.
    sides : int or array of int
        Intervals that a verdict rests on: 2 for a bracket.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(mde(np.array(0.1), np.array(1e9))), 3)
    0.28
    >>> round(float(mde(np.array(0.1), np.array(1e9), sides=2)), 3)
    0.321
    """
    return np.asarray(_multiple(dof, level, power, tests, sides) * std_error)


def floor_variance(variance_item: Floats, variance_both: Floats) -> Floats:
    """Return max(0, V_item − V_both), the variance that more queries cannot pass."""
    return np.maximum(0.0, np.asarray(variance_item) - np.asarray(variance_both))


def queries_needed(
    effect: Floats | float,
    *,
    variance_query: Floats,
    queries: Floats,
    dof: Floats,
    floor: Floats | float = 0.0,
    level: float = 0.95,
    power: float = 0.8,
    tests: Ints | int = 1,
    sides: Ints | int = 1,
) -> Floats:
    """Return the smallest Q′ at which `effect` is detected with the given power.

    Solves (t_{1−a/2} + t_p)²·V(Q′) ≤ effect², p = power^(1/sides), with the cell's own degrees
    of freedom.

    Parameters
    ----------
    effect : array or float
        Size of the gap, in outcome units.
    variance_query, queries : array
        V_query and the number of queries Q it was measured with: V(Q′) = V_query·Q/Q′ + floor.
    floor : array or float
        The `floor_variance` of the same catalogue; 0 without item sums.
    dof, level, power, tests, sides
        As in `mde`.

    Returns
    -------
    array
        Whole numbers, at least 2; infinite where the floor alone is too large for the effect.

    Examples
    --------
    >>> import numpy as np
    >>> one = {"variance_query": np.array(0.01), "queries": np.array(100), "dof": np.array(1e9)}
    >>> float(queries_needed(0.1, **one)), float(queries_needed(0.1, floor=0.002, **one))
    (785.0, inf)
    """
    effect = np.asarray(effect, dtype=np.float64)
    if not (effect > 0).all():
        raise MpcError(
            f"effect must be a gap above 0 in outcome units; got {effect}. Give its size only."
        )
    # The square of an enormous gap may be infinite: then two queries are enough.
    with np.errstate(over="ignore"):
        room = (effect / _multiple(dof, level, power, tests, sides)) ** 2 - floor
    reachable = room > 0
    exact = variance_query * queries / np.where(reachable, room, np.nan)
    needed = np.maximum(np.ceil(exact * (1 - _ROUNDING)), 2.0)
    return np.where(np.isnan(room), np.nan, np.where(reachable, needed, np.inf))


def _multiple(
    dof: Floats, level: float, power: float, tests: Ints | int, sides: Ints | int
) -> Floats:
    a = significance(level)
    check_number("power", power, above=a / 2, below=1, remedy="Try power=0.8.")
    for name, given in (("tests", tests), ("sides", sides)):
        for count in np.unique(given).tolist():
            check_count(name, count)
    each = power ** (1 / np.asarray(sides))
    return critical(a / (2 * np.asarray(tests)), dof) + critical(1 - each, dof)


def withhold_directions(cells: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Remove the direction from cells whose pairs were shown in another order than it claims.

    Parameters
    ----------
    cells : dict of arrays (rule, mode, group)
        ``verdict``, ``verdict_reason`` and, where the log has positions, ``place_overlap`` and
        ``shown_above``.
    """
    if "place_overlap" not in cells:
        return {}
    guard = (cells["place_overlap"] < LEAST_OVERLAP) | (cells["shown_above"] > MOST_SHOWN_ABOVE)
    guard &= np.isin(cells["verdict"], DIRECTIONS)
    return {
        "verdict": np.where(guard, INCONCLUSIVE, cells["verdict"]),
        "verdict_reason": np.where(guard, SHOWN_ORDER, cells["verdict_reason"]),
    }
