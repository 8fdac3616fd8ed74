r"""Repeated looks at a growing log: intervals that hold at every look, an alarm for a change.

Some are valid only for many queries. Those for bounded outcomes need no such limit, and come from
bets: a query (or unit) adds :math:`x_q = D_q - \theta c_q`, with :math:`D_q` the sum of the
differences of its :math:`c_q` pairs. If θ is the gap, :math:`x_q` has mean 0 given all before it.
Outcomes within bounds that are R apart, and at most C pairs of a query, give
:math:`|x_q| \le C (R + |\theta|)`, so that a bet of less than the inverse of this never loses all.
Bets against the true θ multiply the stake by :math:`1/a` at any time with probability a at most;
the interval holds every θ against which the bets have not won that much.

Both kinds of capital fall (bets on larger gaps) or rise (on smaller ones) with θ, so that what
happens between two points of a grid is bounded by what happens at them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mpc_lab.errors import check_count
from mpc_lab.inference.estimates import significance
from mpc_lab.pairing.kernels import kernel
from mpc_lab.vocabulary import Flags, Floats, Ints

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
        How many of these have a pair.
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


BETS = (0.5, 1.0, 2.0)


def change_evidence(z: Floats) -> Floats:
    r"""Return the evidence for a change after each period.

    .. math:: E_t = (E_{t-1} + \tfrac{1}{t(t+1)}) \exp(\pm\lambda z_t - \lambda^2/2)

    as the mean over λ in {½, 1, 2} and both signs. If each z is standard normal given those before
    it, E ever reaches 1/a with probability at most a, however many periods there are. A period
    whose z is NaN changes nothing.

    Parameters
    ----------
    z : float64 array (period, …)
        The change of each period against all before, in standard errors.

    References
    ----------
    Shin, Ramdas & Rinaldo (2024), E-detectors: a nonparametric framework for sequential change
    detection.

    Examples
    --------
    >>> import numpy as np
    >>> change_evidence(np.array([0.0, 4.0, 4.0])).round(2).tolist()
    [0.27, 19.02, 6452.86]
    """
    bets = np.array([sign * bet for bet in BETS for sign in (1.0, -1.0)])
    bets = bets.reshape(-1, *[1] * (z.ndim - 1))
    each = np.zeros((bets.size, *z.shape[1:]))
    counted = np.zeros(z.shape[1:])
    found = np.empty(z.shape)
    for t, now in enumerate(z):
        known = np.isfinite(now)
        counted = counted + known
        step = 1 / np.maximum(counted * (counted + 1), 1)
        # The evidence is capped far above any alarm.
        factor = np.exp(np.clip(bets * np.where(known, now, 0.0) - bets**2 / 2, -500, 300))
        each = np.where(known, np.minimum((each + step) * factor, 1e100), each)
        found[t] = each.mean(axis=0)
    return found


# The share of the stake that one query may lose. For bets from sums it is a half, since ln(1 + x) ≥
# x − x² holds for x ≥ −1/2.
MOST_LOST = 0.9
MOST_LOST_OF_SUMS = 0.5
# Bets from sums are a mixture, each bet half the one before.
_HALVINGS = 12
_POINTS = 257
_ZOOMS = 2
_FACTORS_AT_ONCE = 64

# Log capital of bets on a gap above θ, and on one below, at every θ of an ascending array.
Capital = Callable[[Floats], tuple[Floats, Floats]]


def predictable_bets(
    pairs: Floats, sums: Floats, *, width: float, level: float, planned: int
) -> Floats:
    r"""Return the bet on each query, from the queries before it alone.

    .. math::
        \lambda_q = \sqrt{\frac{2 \ln(2/a)}{\hat\sigma^2_{q-1} \max(Q_0, q)}}, \qquad
        \hat\sigma^2_{q-1} = \frac{R^2/4 + \sum_{r<q} (D_r - \hat\theta_{q-1} c_r)^2}{q}

    Parameters
    ----------
    pairs, sums : float64 arrays (query,)
        c and D of every query in order, including those without a pair.
    width : float
        R, how far apart the bounds of the outcome are.
    level : float
    planned : int
        Q₀, the number of queries at which the interval should be tightest.
    """
    before = [
        np.concatenate([[0.0], np.cumsum(part)[:-1]])
        for part in (pairs, sums, pairs * pairs, pairs * sums, sums * sums)
    ]
    count, total, cc, cd, dd = before
    mean = total / np.maximum(count, 1.0)
    number = np.arange(1, len(pairs) + 1)
    squares = np.maximum(dd - 2 * mean * cd + mean**2 * cc, 0.0)
    variance = (width**2 / 4 + squares) / number
    a = significance(level)
    return np.asarray(np.sqrt(2 * math.log(2 / a) / (variance * np.maximum(planned, number))))


def betting_sequence(
    pairs: Floats,
    sums: Floats,
    *,
    width: float,
    cap: int,
    level: float = 0.95,
    planned: int = PLANNED,
    tests: int = 1,
) -> tuple[float, float]:
    r"""Return the interval of the queries so far: the hull of :math:`\frac12(M^+ + M^-) < m/a`.

    .. math:: M^\pm(\theta) = \prod_q (1 \pm \lambda_q (D_q - \theta c_q))

    It covers the gap at all looks together, exactly, if the queries to come are like those before.

    Parameters
    ----------
    pairs, sums : float64 arrays (query,)
        c, at most `cap`, and D of every query in its order, also of those without a pair.
    width : float
        R, how far apart the bounds of the outcome are.
    cap : int
        C, the most pairs of a query, fixed before the first look.
    level : float
        Probability that no look ever misses.
    planned : int
        The number of queries at which the interval should be tightest, fixed before the first
        look.
    tests : int
        Size m of the family.

    Returns
    -------
    low, high : float
        NaN where no query has a pair.

    References
    ----------
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.integers(0, 3, 2_000).astype(float)
    >>> sums = rng.binomial(pairs.astype(int), 0.4) - rng.binomial(pairs.astype(int), 0.2)
    >>> low, high = betting_sequence(pairs, sums, width=1, cap=2)
    >>> round(low, 2), round(high, 2)
    (0.14, 0.22)
    """
    bets = predictable_bets(pairs, sums, width=width, level=level, planned=check_planned(planned))
    some = pairs > 0
    c, d, bets = (np.ascontiguousarray(part[some], np.float64) for part in (pairs, sums, bets))
    if not len(c):
        return math.nan, math.nan

    def capital(theta: Floats) -> tuple[Floats, Floats]:
        limit = _limit(theta, width, cap, MOST_LOST)
        found = np.zeros((2, len(theta)))
        _multiply(c, d, bets, theta, limit, found)
        return found[0], found[1]

    return _hull(capital, width, _enough(level, tests))


def sequence_from_sums(
    totals: Floats, *, width: float, cap: int, level: float = 0.95, tests: int = 1
) -> tuple[float, float]:
    r"""Return an interval from sums over queries alone, valid at every look.

    With :math:`\ln(1 + x) \ge x - x^2` for :math:`x \ge -1/2`, bets that were fixed in advance and
    are no larger than :math:`\lambda_0 = 1/(2 C (R + |\theta|))` hold in any order of the queries:

    .. math::
        E^\pm(\theta) = \frac1K \sum_{k<K} \exp\Big(\pm\lambda_k \sum_q x_q
        - \lambda_k^2 \sum_q x_q^2\Big), \qquad \lambda_k = 2^{-k} \lambda_0

    and the interval is the hull of :math:`\frac12(E^+ + E^-) < m/a`. Sums of several logs that
    share no query are added first.

    Parameters
    ----------
    totals : float64 array
        Σc, ΣD, Σc², ΣcD and ΣD², of at most `cap` pairs of a query.
    width, cap, level, tests
        As in :func:`betting_sequence`.

    Returns
    -------
    low, high : float
        NaN where no query has a pair.
    """
    if not totals[0] > 0:
        return math.nan, math.nan

    def capital(theta: Floats) -> tuple[Floats, Floats]:
        return log_capital_of_sums(totals, theta, width=width, cap=cap)

    return _hull(capital, width, _enough(level, tests))


def log_capital_of_sums(
    totals: Floats, theta: Floats, *, width: float, cap: int
) -> tuple[Floats, Floats]:
    """Return the logs of E⁺ and E⁻ of :func:`sequence_from_sums`.

    Parameters
    ----------
    totals : float64 array (5,) or (5, look)
    theta : float64 array (θ,), or (1,) for several looks
    width, cap
        As in :func:`betting_sequence`.
    """
    count, total, cc, cd, dd = totals
    share = MOST_LOST_OF_SUMS * 0.5 ** np.arange(_HALVINGS)
    bets = share[:, None] * _limit(theta, width, cap, 1.0)
    x = total - theta * count
    squares = np.maximum(dd - 2 * theta * cd + theta**2 * cc, 0.0)
    up, down = (
        np.logaddexp.reduce(sign * bets * x - bets**2 * squares) - math.log(_HALVINGS)
        for sign in (1, -1)
    )
    return up, down


def _enough(level: float, tests: int) -> float:
    """Return the joint log capital of both kinds of bets at which a gap is excluded."""
    return math.log(2 * check_count("tests", tests) / significance(level))


def _limit(theta: Floats | float, width: float, cap: int, most_lost: float) -> Floats:
    return np.asarray(most_lost / (cap * (width + np.abs(theta))))


def _hull(capital: Capital, width: float, enough: float) -> tuple[float, float]:
    """Return the ends of the θ against which the bets have won too little to exclude them."""
    grid = np.linspace(-width, width, _POINTS)
    left = np.flatnonzero(_little(capital, grid, enough))
    if not len(left):
        # The data contradict their bounds or their order: every gap is excluded.
        up, down = capital(grid)
        least = float(grid[np.argmin(np.logaddexp(up, down))])
        return least, least
    low, high = grid[left[0] : left[0] + 2], grid[left[-1] : left[-1] + 2]
    for _ in range(_ZOOMS):
        low, high = _zoom(capital, low, enough, 0), _zoom(capital, high, enough, -1)
    return float(low[0]), float(high[1])


def _little(capital: Capital, grid: Floats, enough: float) -> Flags:
    """Return the steps of a grid in which some θ may not be excluded."""
    up, down = capital(grid)
    # Between two points, bets on a larger gap hold at least as much as at the right point.
    return np.asarray(np.logaddexp(up[1:], down[:-1]) < enough)


def _zoom(capital: Capital, step: Floats, enough: float, end: int) -> Floats:
    """Return the first (0) or last (-1) part of a step that may not be excluded."""
    fine = np.linspace(step[0], step[1], _POINTS)
    left = np.flatnonzero(_little(capital, fine, enough))
    if not len(left):
        # Finer bounds exclude the whole step: what is left begins beyond it.
        return step[[1, 1]] if end == 0 else step[[0, 0]]
    return fine[left[end] : left[end] + 2]


@kernel
def _multiply(
    pairs: Floats, sums: Floats, bets: Floats, theta: Floats, limit: Floats, found: Floats
) -> None:
    """Add the log capital at each θ; products of a few factors are taken before their log."""
    for k in range(len(theta)):
        for start in range(0, len(pairs), _FACTORS_AT_ONCE):
            up, down = 1.0, 1.0
            for q in range(start, min(start + _FACTORS_AT_ONCE, len(pairs))):
                x = min(bets[q], limit[k]) * (sums[q] - theta[k] * pairs[q])
                up *= 1.0 + x
                down *= 1.0 - x
            found[0, k] += np.log(up)
            found[1, k] += np.log(down)
