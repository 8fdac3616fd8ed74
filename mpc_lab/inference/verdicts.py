"""What the adjusted intervals of a cell say together, and the gate built on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_lab.errors import MpcError, check_number
from mpc_lab.vocabulary import (
    INCONCLUSIVE,
    NOT_ESTIMABLE,
    OVERVALUED,
    UNDERVALUED,
    WITHIN,
    Flags,
    Floats,
    Texts,
)

COVERS_ZERO = "interval covers 0"
BRACKET = "bracket"
AGAINST = "scores run against outcomes"
SHOWN_ORDER = "shown order"
# Without so much overlap of the places that both sides were shown at, there is no direction; nor
# where so many pairs were shown the other way round.
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
        """Where the interval lies above 0."""
        return np.asarray((self.low > 0) | (self.cut & (self.low == 0)))

    @property
    def below(self) -> Flags:
        """Where the interval lies below 0."""
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

    In this order: ``not estimable``; ``within tolerance`` where the bracket lies inside ±tolerance;
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
    """Return where the bracket lies wholly outside ±tolerance with a direction verdict.

    Without a tolerance this is every direction verdict.
    """
    check_tolerance(tolerance)
    verdict, margin = np.asarray(verdict), tolerance or 0.0
    # A direction says that 0 is excluded, also where the bracket ends there.
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
        raise MpcError("A gate needs at least one cell, got none; audit at least one group.")
    if outside(verdict, low, high, tolerance=tolerance).any():
        return 1
    if tolerance is None:
        return 0
    return 0 if bool((verdict == WITHIN).all()) else 2


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
