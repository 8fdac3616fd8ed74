"""What could be detected, and how many queries that would take."""

from __future__ import annotations

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import FloatArray, significance
from mpc_lab.inference.student import critical

_ROUNDING = 1e-12


def mde(
    std_error: FloatArray,
    dof: FloatArray,
    *,
    level: float = 0.95,
    power: float = 0.8,
    tests: int = 1,
) -> FloatArray:
    """Return the minimum detectable effect (t_{1−a/2} + t_power)·SE.

    Parameters
    ----------
    std_error, dof : array
        Of the cells; NaN where not estimable.
    level : float
        Confidence level of the test.
    power : float
        Probability of finding an effect of that size.
    tests : int
        Size m of the family: a/m takes the place of a.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(mde(np.array(0.1), np.array(1e9))), 3)
    0.28
    """
    return np.asarray(_multiple(dof, level, power, tests) * std_error)


def mde_adjusted(
    std_error: FloatArray,
    dof: FloatArray,
    *,
    tests: int,
    level: float = 0.95,
    power: float = 0.8,
) -> FloatArray:
    """Return the minimum detectable effect in a family of `tests` cells: `mde` with a/m."""
    return mde(std_error, dof, level=level, power=power, tests=tests)


def floor_variance(variance_item: FloatArray, variance_both: FloatArray) -> FloatArray:
    """Return max(0, V_item − V_both), the variance that more queries cannot pass."""
    return np.maximum(0.0, np.asarray(variance_item) - np.asarray(variance_both))


def variance_at(
    new_queries: FloatArray,
    *,
    variance_query: FloatArray,
    queries: FloatArray,
    floor: FloatArray | float = 0.0,
) -> FloatArray:
    """Return V(Q′) = V_query·Q/Q′ + floor for Q′ queries of the same kind.

    Parameters
    ----------
    new_queries : array
        Q′.
    variance_query, queries : array
        V_query and the number of queries Q it was measured with.
    floor : array or float
        `floor_variance` of the same catalogue; 0 without item sums.
    """
    return np.asarray(variance_query * queries / new_queries + floor)


def queries_needed(
    effect: FloatArray | float,
    *,
    variance_query: FloatArray,
    queries: FloatArray,
    dof: FloatArray,
    floor: FloatArray | float = 0.0,
    level: float = 0.95,
    power: float = 0.8,
    tests: int = 1,
) -> FloatArray:
    """Return the smallest Q′ at which `effect` is detected with the given power.

    Solves (t_{1−a/2} + t_power)²·V(Q′) ≤ effect² with the cell's own degrees of freedom.

    Parameters
    ----------
    effect : array or float
        Size of the gap, in outcome units.
    variance_query, queries, floor
        As in `variance_at`.
    dof, level, power, tests
        As in `mde`.

    Returns
    -------
    array
        Whole numbers, at least 2; infinite where the floor alone hides the effect.

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
            f"effect must be a gap above 0 in outcome units, got {effect}; give its size only."
        )
    # The square of a gap that is large beyond measure may be infinite: then two queries show it.
    with np.errstate(over="ignore"):
        room = (effect / _multiple(dof, level, power, tests)) ** 2 - floor
    reachable = room > 0
    exact = variance_query * queries / np.where(reachable, room, np.nan)
    needed = np.maximum(np.ceil(exact * (1 - _ROUNDING)), 2.0)
    return np.where(np.isnan(room), np.nan, np.where(reachable, needed, np.inf))


def _multiple(dof: FloatArray, level: float, power: float, tests: int) -> FloatArray:
    a = significance(level)
    if not a / 2 < power < 1:
        raise MpcError(f"power must lie between {a / 2:g} and 1, got {power}; try power=0.8.")
    if tests < 1:
        raise MpcError(f"tests must be the size of the family, at least 1, got {tests}.")
    return critical(a / (2 * tests), dof) + critical(1 - power, dof)
