"""What could be detected, and how many queries that would take."""

from __future__ import annotations

import numpy as np

from mpc_lab.errors import MpcError, check_count, check_number
from mpc_lab.inference.estimates import critical, significance
from mpc_lab.vocabulary import Floats, Ints

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

    A verdict by a bracket needs two sides to say the same. Two that are found with probability
    √power each are both found with `power` if they have nothing to do with each other.

    Parameters
    ----------
    std_error, dof : array
        Of the cells, of a bracket the side with the larger standard error; NaN where not estimable.
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
        `floor_variance` of the same catalogue; 0 without item sums.
    dof, level, power, tests, sides
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
