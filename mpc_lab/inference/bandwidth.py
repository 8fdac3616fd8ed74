"""The bandwidth of the limit: how far from a tie the expected squared error is smallest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.clustered import dot
from mpc_lab.inference.limit import distinct
from mpc_lab.pairing.kernels import FEW_ROWS, kernel
from mpc_lab.pairing.threads import at_once, in_order
from mpc_lab.vocabulary import Floats, Ints

CANDIDATES = 20
LARGEST_LIST = 2_000_000
_RANK = 101


@dataclass(frozen=True)
class Bandwidth:
    """The chosen bandwidth and those it was compared with.

    Attributes
    ----------
    value : float
        h; 0 where every distance is 0.
    candidates, criterion : array
        The bandwidths that were compared, and the mean squared error expected at each; infinite
        where a line cannot be fitted.
    curvature, curvature_std_error : float
        m₂ and s₂ of the pilot fit; NaN where there was none.
    """

    value: float
    candidates: Floats
    criterion: Floats
    curvature: float
    curvature_std_error: float


def choose_bandwidth(distance: Floats, d: Floats, query: Ints) -> Bandwidth:
    r"""Choose the bandwidth that should give the local linear fit its least squared error.

    .. math::
        h = \arg\min_h \; (m_2^2 + s_2^2) \, b(h)^2 / 4 + V(h), \qquad
        b(h) = \sum_p l_p \Delta_p^2

    m₂ is twice the coefficient of Δ² in a cubic fitted to the nearer half of the distances, s₂ its
    standard error clustered by query, V(h) the query-clustered variance of the local linear fit
    with triangular weights. V has no closed form, because shared queries add to it a part that
    hardly depends on h. The candidates are 20 values, evenly on a log scale from the larger of the
    2 % quantile and the 101st smallest distance to the 90 % quantile.

    Parameters
    ----------
    distance, d : array (pair,)
        Distance and outcome difference of the ``matched`` pairs without limit, or of the 2,000,000
        with the smallest distances.
    query : array of int64 (pair,)
        Query, or unit, of each pair.

    Returns
    -------
    Bandwidth

    References
    ----------
    Imbens & Kalyanaraman (2012), Optimal bandwidth choice for the regression discontinuity
    estimator; the penalty s₂² is theirs in spirit.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> distance = rng.random(2000)
    >>> d = np.sin(3 * distance) + rng.normal(size=2000)
    >>> chosen = choose_bandwidth(distance, d, np.arange(2000))
    >>> 0 < chosen.value < 1
    True
    """
    if len(distance) == 0:
        raise MpcError(
            "A bandwidth must be chosen from at least one pair; got none. Choose another group."
        )
    # Powers of distances near 1 stay finite; a power of two changes no digit.
    widest = float(distance.max())
    unit = 2.0 ** math.frexp(widest)[1] if 0 < widest < 1e300 else max(widest, 1.0)
    distance = distance / unit
    few = len(distance) < FEW_ROWS
    (middle, candidates), (starts, distance, d) = at_once(
        partial(_candidates, distance), partial(_by_query, query, distance, d), here=few
    )
    # About their mean, so that large differences do not cancel in sums; no slope depends on it.
    with np.errstate(all="ignore"):
        d = d - d.mean()
    (m2, s2), (bias, variance) = at_once(
        partial(_curvature, distance, d, starts, middle),
        partial(_errors, distance, d, starts, candidates),
        here=few,
    )
    # In Python's own numbers, which know infinity without a warning.
    curved = m2 / unit / unit, s2 / unit / unit
    if not np.isfinite(m2):
        missing = np.full(len(candidates), np.inf)
        return Bandwidth(float(candidates[-1] * unit), candidates * unit, missing, *curved)
    with np.errstate(all="ignore"):
        found = (m2**2 + s2**2) * bias**2 / 4 + variance
    criterion = np.nan_to_num(found, nan=np.inf, posinf=np.inf)
    best = int(criterion.argmin()) if np.isfinite(criterion).any() else len(candidates) - 1
    return Bandwidth(float(candidates[best] * unit), candidates * unit, criterion, *curved)


def _candidates(distance: Floats) -> tuple[float, Floats]:
    """Return the median distance, and the bandwidths to compare."""
    n = len(distance)
    places = [max(math.ceil(share * n), 1) - 1 for share in (0.02, 0.5, 0.9)]
    places.append(min(_RANK, n) - 1)
    # The numbers at a few places need no sort of all.
    partly = np.partition(distance, np.unique(places))
    low, middle, high, ranked = (float(partly[place]) for place in places)
    low = max(low, ranked)
    high = max(low, high)
    if high == 0.0:
        return middle, np.zeros(1)
    if low == 0.0:
        # Ties fill the lower quantiles: a bandwidth must reach beyond them.
        low = float(distance[distance > 0].min())
    return middle, np.asarray(np.geomspace(low, high, CANDIDATES))


def _by_query(query: Ints, distance: Floats, d: Floats) -> tuple[Ints, Floats, Floats]:
    """Return where each query starts, and its pairs one after the other, as those of a log are."""
    first = _first_of_each(query)
    if len(first) > len(np.unique(query[first])):
        order = np.argsort(query, kind="stable")
        distance, d, query = distance[order], d[order], query[order]
        first = _first_of_each(query)
    return np.append(first, len(query)), distance, d


def _first_of_each(query: Ints) -> Ints:
    return np.append(0, 1 + np.flatnonzero(query[1:] != query[:-1]))


# The sums that the cubic needs: x⁰ to x⁶, then d to d·x³.
_CUBIC = 4


def _curvature(distance: Floats, d: Floats, starts: Ints, middle: float) -> tuple[float, float]:
    """Return twice the coefficient of Δ² in a cubic up to the median, and its standard error."""
    none = float("nan"), float("nan")
    if distinct(distance, middle) < _CUBIC:
        return none
    table = np.zeros((len(starts) - 1, 3 * _CUBIC - 1))
    _add_cubes(distance / middle, d, starts, table)
    x, xd = table[:, : 2 * _CUBIC - 1], table[:, 2 * _CUBIC - 1 :]
    places = np.add.outer(np.arange(_CUBIC), np.arange(_CUBIC))
    inner = x.sum(axis=0)[places]
    # Distances may differ by rounding alone.
    if np.linalg.matrix_rank(inner, hermitian=True) < _CUBIC:
        return none
    c = np.linalg.solve(inner, xd.sum(axis=0))
    pick = np.linalg.solve(inner, np.eye(_CUBIC)[2])
    # Distances of 1e-300 or 1e300 may overflow.
    with np.errstate(all="ignore"):
        of_query = (xd - x[:, places] @ c) @ pick
        n, queries = x[:, 0].sum(), int(np.count_nonzero(x[:, 0]))
        unit = np.float64(2.0) / middle / middle
        if queries < 2 or n <= _CUBIC:
            return float(c[2] * unit), float("inf")
        variance = dot(of_query, of_query) * queries / (queries - 1) * (n - 1) / (n - _CUBIC)
        return float(c[2] * unit), float(np.sqrt(variance) * unit)


@kernel
def _add_cubes(x: Floats, d: Floats, starts: Ints, table: Floats) -> None:
    """Add up what a cubic needs of the pairs of each query with x up to 1."""
    for q in range(len(starts) - 1):
        for p in range(starts[q], starts[q + 1]):
            if x[p] > 1.0:
                continue
            power = 1.0
            for k in range(7):
                table[q, k] += power
                if k < 4:
                    table[q, 7 + k] += power * d[p]
                power *= x[p]


# Sums over pairs: 1, x, …, x⁴ and d, d·x, d·x², x the distance.
_POWERS, _SUMS = 5, 8


def _errors(distance: Floats, d: Floats, starts: Ints, candidates: Floats) -> tuple[Floats, Floats]:
    """Return b(h) and V(h) of the local linear fit inside each bandwidth; V may be infinite.

    The fits and their variances are made of sums between one bandwidth and the next, so that all
    of them take two walks over the pairs.
    """
    place, reach = _place_all(distance, candidates)
    # x is in units of the largest distance inside a bandwidth, so that powers are of one size.
    reach = np.maximum.accumulate(reach)
    smallest = reach[reach > 0].min() if reach.any() else 1.0
    unit = np.where(reach > 0, reach, smallest)
    total = np.zeros((len(candidates), _SUMS))
    _add_powers(distance, d, place, unit, total)
    _add_up(total, unit)
    with np.errstate(all="ignore"):
        lines = [
            _line(sums, share, is_line=several)
            for sums, share, several in zip(
                total, unit / candidates, reach > distance.min(), strict=True
            )
        ]
    slopes = np.array([line[0] for line in lines])
    squares, queries = np.zeros(len(candidates)), np.zeros(len(candidates), dtype=np.int64)
    _square(distance, d, place, unit, starts, slopes, squares, queries)
    n = total[:, 0]
    with np.errstate(all="ignore"):
        variance = squares * queries / (queries - 1) * (n - 1) / (n - 2)
        bias = np.array([line[1] for line in lines]) * unit**2
    return bias, np.where((queries > 1) & (n > 2), variance, np.inf)


def _line(total: Floats, share: float, *, is_line: bool) -> tuple[Floats, float]:
    """Fit a line in the distance with the weight 1 − x·share, given sums over pairs.

    Returned is what each sum of a query's pairs counts in its part of the error of the intercept,
    and the intercept of a fit to x²; infinite where no line can be fitted.
    """
    none = np.zeros(_SUMS), np.inf
    # Each power of the distance brings the next one along.
    weighted = total[: _POWERS - 1] - share * total[1:_POWERS]
    inner = np.array([weighted[:2], weighted[1:3]])
    if not is_line or np.linalg.matrix_rank(inner, hermitian=True) <= 1:
        return none
    c = np.linalg.solve(inner, total[_POWERS:-1] - share * total[_POWERS + 1 :])
    pick = np.linalg.solve(inner, np.array([1.0, 0.0]))
    loading = np.array([pick[0], pick[1] - share * pick[0], -share * pick[1]])
    counts = np.zeros(_SUMS)
    counts[_POWERS:] = loading
    counts[:3] -= c[0] * loading
    counts[1:4] -= c[1] * loading
    return counts, float(pick @ weighted[2:4])


_PAIRS_IN_A_PART = 1 << 18


def _place_all(distance: Floats, candidates: Floats) -> tuple[Ints, Floats]:
    """Return the first bandwidth that each pair is inside of, and the largest distance of each."""
    place, size = np.empty(len(distance), dtype=np.int64), _PAIRS_IN_A_PART

    def part(start: int) -> Floats:
        reach = np.zeros(len(candidates))
        _place_pairs(distance[start : start + size], candidates, place[start : start + size], reach)
        return reach

    parts = in_order(part, range(0, len(distance), size), here=len(distance) <= size)
    return place, np.max(list(parts), axis=0)


@kernel
def _place_pairs(distance: Floats, candidates: Floats, place: Ints, reach: Floats) -> None:
    room = 1
    while room <= len(candidates):
        room *= 2
    # Filled up to a power of two, a search by halves has no branch that depends on the pair.
    padded = np.full(2 * room, np.inf)
    padded[: len(candidates)] = candidates
    for p, x in enumerate(distance):
        b, step = 0, room
        while step:
            b += step if padded[b + step - 1] <= x else 0
            step //= 2
        b = min(b, len(candidates))
        place[p] = b
        if b < len(candidates):
            reach[b] = max(reach[b], x)


@kernel
def _add_powers(distance: Floats, d: Floats, place: Ints, unit: Floats, to: Floats) -> None:
    """Add the sums of each pair to those of the first bandwidth that it is inside of."""
    for p in range(len(distance)):
        b = place[p]
        if b == len(unit):
            continue
        x, y = distance[p] / unit[b], d[p]
        square = x * x
        to[b, 0] += 1.0
        to[b, 1] += x
        to[b, 2] += square
        to[b, 3] += square * x
        to[b, 4] += square * square
        to[b, 5] += y
        to[b, 6] += y * x
        to[b, 7] += y * square


@kernel
def _add_up(total: Floats, unit: Floats) -> None:
    """Add to the sums of each bandwidth those of all smaller ones, in its own unit."""
    for b in range(1, len(unit)):
        smaller = unit[b - 1] / unit[b]
        scale = 1.0
        for k in range(5):
            total[b, k] += scale * total[b - 1, k]
            if k < 3:
                total[b, 5 + k] += scale * total[b - 1, 5 + k]
            scale *= smaller


@kernel
def _square(
    distance: Floats,
    d: Floats,
    place: Ints,
    unit: Floats,
    starts: Ints,
    slopes: Floats,
    squares: Floats,
    queries: Ints,
) -> None:
    """Add the squared part of each query in the error of each fit, and count the queries."""
    sums = np.zeros((len(unit), slopes.shape[1]))
    for q in range(len(starts) - 1):
        first, last = starts[q], starts[q + 1]
        sums[:] = 0.0
        _add_powers(distance[first:last], d[first:last], place[first:last], unit, sums)
        _add_up(sums, unit)
        for b in range(len(unit)):
            if sums[b, 0] == 0.0:
                continue
            part = 0.0
            for k in range(slopes.shape[1]):
                part += slopes[b, k] * sums[b, k]
            squares[b] += part * part
            queries[b] += 1
