"""What the adjusted intervals of a cell say, and the gate built on it."""

from __future__ import annotations

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

Cut = Flags | bool


def verdicts(
    low: Floats,
    high: Floats,
    mirrored_low: Floats,
    mirrored_high: Floats,
    *,
    cut: Cut = False,
    mirrored_cut: Cut = False,
    tolerance: float | None = None,
) -> tuple[Texts, Texts]:
    """Return the verdict of each cell and its reason.

    In this order: ``not estimable``; ``within tolerance`` where the adjusted interval lies
    inside ±tolerance; ``undervalued`` where it is above 0; ``overvalued`` where it and the
    mirrored interval at the same threshold are both below 0; otherwise ``inconclusive``, with
    the reason ``interval covers 0`` or ``bracket`` (below 0, but mirrored is not: a ranking
    without any bias shows this too, because the item scored lower should do a little worse).

    Parameters
    ----------
    low, high : array
        Adjusted intervals of `matched`; NaN where not estimable. For `adjacent`, its own.
    mirrored_low, mirrored_high : array
        Adjusted intervals of `mirrored` at the same threshold. For `adjacent`, its own again.
    cut, mirrored_cut : array of bool or bool
        Where an end was set to 0 and 0 is excluded.
    tolerance : float, optional
        Equivalence margin in outcome units.

    Returns
    -------
    verdict, verdict_reason : array of str
        The reason is "" unless the verdict is ``inconclusive``.

    Examples
    --------
    >>> import numpy as np
    >>> verdict, reason = verdicts(np.array([0.1, -0.3]), np.array([0.2, -0.1]),
    ...                            np.array([0.1, -0.1]), np.array([0.3, 0.2]))
    >>> verdict.tolist(), reason.tolist()
    (['undervalued', 'inconclusive'], ['', 'bracket'])
    """
    check_tolerance(tolerance)
    low, high = np.asarray(low), np.asarray(high)
    estimable = np.isfinite(low) & np.isfinite(high)
    above = _above(low, cut, 0.0)
    below = _below(high, cut, 0.0)
    both_below = below & _below(np.asarray(mirrored_high), mirrored_cut, 0.0)
    conditions = [~estimable, _inside(low, high, tolerance), above, both_below]
    names = [NOT_ESTIMABLE, WITHIN, UNDERVALUED, OVERVALUED]
    verdict = np.select(conditions, names, INCONCLUSIVE)
    reason = np.where(verdict == INCONCLUSIVE, np.where(below, BRACKET, COVERS_ZERO), "")
    return verdict, reason


def outside(
    verdict: Texts,
    low: Floats,
    high: Floats,
    *,
    cut: Cut = False,
    tolerance: float | None = None,
) -> Flags:
    """Return where the interval lies wholly outside ±tolerance with a direction verdict.

    Without a tolerance this is every direction verdict.
    """
    check_tolerance(tolerance)
    margin = tolerance or 0.0
    under = (np.asarray(verdict) == UNDERVALUED) & _above(np.asarray(low), cut, margin)
    over = (np.asarray(verdict) == OVERVALUED) & _below(np.asarray(high), cut, -margin)
    return np.asarray(under | over)


def gate(
    verdict: Texts,
    low: Floats,
    high: Floats,
    *,
    cut: Cut = False,
    tolerance: float | None = None,
) -> int:
    """Return 0 to pass, 1 to fail, 2 where the cells do not decide.

    0 if every cell is within tolerance (without a tolerance: if there is no direction verdict);
    1 if some cell is `outside`; else 2.

    Parameters
    ----------
    verdict, low, high, cut
        As `verdicts` gave and took them, with the same tolerance.
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
    if outside(verdict, low, high, cut=cut, tolerance=tolerance).any():
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


def _inside(low: Floats, high: Floats, tolerance: float | None) -> Flags:
    if tolerance is None:
        return np.zeros(low.shape, dtype=np.bool_)
    return np.asarray((low >= -tolerance) & (high <= tolerance))


def _above(low: Floats, cut: Cut, bound: float) -> Flags:
    return np.asarray((low > bound) | (cut & (low == 0) & (bound == 0)))


def _below(high: Floats, cut: Cut, bound: float) -> Flags:
    return np.asarray((high < bound) | (cut & (high == 0) & (bound == 0)))
