"""Intervals for repeated looks that rest on many queries; those for bounded outcomes: betting."""

from __future__ import annotations

import math

import numpy as np

from mpc_lab.errors import check_count
from mpc_lab.inference.estimates import significance
from mpc_lab.vocabulary import Floats, Ints

SMALLEST = 100
PLANNED = 1_000
_MOST_PLANNED = 10**15


def check_planned(planned: object) -> int:
    """Return the number of queries at which a sequence should be tightest, or raise."""
    return check_count(
        "planned", planned, at_most=_MOST_PLANNED, remedy="Fix it before the first look."
    )


def confidence_sequence(
    estimate: Floats,
    variance_query: Floats,
    queries: Ints,
    with_pair: Ints,
    *,
    level: float = 0.95,
    planned: int = PLANNED,
    tests: int = 1,
) -> tuple[Floats, Floats]:
    r"""Return the ends of an asymptotic confidence sequence for the mean gap.

    .. math::
        \hat\theta \pm \sqrt{Q V} \sqrt{\frac{2 (Q \rho^2 + 1)}{Q^2 \rho^2}
        \ln \frac{\sqrt{Q \rho^2 + 1}}{a}}, \qquad
        \rho^2 = \frac{-2 \ln a + \ln(1 - 2 \ln a)}{Q_0}

    It covers the gap at all looks together once queries are many; with few pairs and skewed
    outcomes it misses more often than its level says. It covers no item shocks, and ε must have
    been fixed in advance.

    Parameters
    ----------
    estimate : array
        The mean gap so far.
    variance_query : array
        Its raw query variance V.
    queries : array of int64
        All queries Q seen so far, also those without a pair.
    with_pair : array of int64
        Those of them that have a pair.
    level : float
        Probability that no look ever misses.
    planned : int
        Q₀, the number of queries at which the interval should be tightest; to be fixed before
        the first look.
    tests : int
        Size m of the family: a/m takes the place of a.

    Returns
    -------
    low, high : array
        NaN before 100 queries with a pair and where the variance is NaN.

    References
    ----------
    Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas (2024), Time-uniform central limit theory and
    asymptotic confidence sequences.

    Examples
    --------
    >>> import numpy as np
    >>> seen = np.array(1000)
    >>> low, high = confidence_sequence(np.array(0.0), np.array(0.0004), seen, seen)
    >>> round(float(high), 4)
    0.0607
    """
    count = check_planned(planned)
    a = significance(level) / check_count("tests", tests)
    rho2 = (-2 * math.log(a) + math.log(1 - 2 * math.log(a))) / count
    seen = np.where(np.asarray(with_pair) >= SMALLEST, queries, np.nan)
    grown = seen * rho2 + 1
    width = np.sqrt(2 * grown / (seen**2 * rho2) * np.log(np.sqrt(grown) / a))
    half = np.sqrt(seen * variance_query) * width
    return np.asarray(estimate - half), np.asarray(estimate + half)
