"""The mean outcome difference of a group as a falling function of the distance, and where it is 0.

Pairs are added up in narrow cells of the signed distance. Only the pairs of the few cells in which
the fit may cross 0 are listed, which is enough to find the root of the fit to all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.inference.estimates import critical, effective_clusters, enough_clusters, significance
from mpc_lab.pairing.kernels import interruptible, kernel, tight
from mpc_lab.vocabulary import Flags, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.objective.boosts import Runs

# Cells on each side of 0. Steps of α are 8 of them, and the narrowest window is 25.
CELLS = 800
N_CELLS = 2 * CELLS + 1
STEPS_A_SIDE = 100
WINDOWS = tuple(CELLS // 2**k for k in range(6))
FEWEST_PAIRS = 50
MOST_LISTED = 10_000_000
_ZERO = 1e-12

# The rows of sums over the pairs of a cell: how many, their weights, the sums of d and of d where
# it is above 0, the smallest and the largest distance.
PAIRS, WEIGHT, TOTAL, RISE, LEAST, MOST = range(6)


@tight
def _cell(distance: float, edges: Floats, per_width: float) -> int:
    """Return the cell of a distance; one exactly on an edge is in the cell nearer to 0."""
    size = abs(distance)
    if size == 0.0:
        return CELLS
    # For scores close to the smallest positive float, per_width is infinite.
    k = int(min(size * per_width, CELLS - 1.0)) + 1
    while edges[k - 1] >= size:
        k -= 1
    while edges[k] < size:
        k += 1
    return CELLS + k if distance > 0 else CELLS - k


@tight
def _before(distance: float, bound: int, edges: Floats) -> bool:
    """Whether a distance is in a cell before a bound: bound b is the left end of cell b."""
    if bound <= CELLS:
        return bool(distance < -edges[CELLS - bound])
    return bool(distance <= edges[bound - CELLS - 1])


@tight
def _add_query(
    in_score: Floats,
    in_outcome: Floats,
    out_score: Floats,
    out_outcome: Floats,
    edges: Floats,
    per_width: float,
    weight: float,
    sums: Floats,
) -> None:
    """Add the pairs of a query to the cells of their distances, in `sums` (6, cell).

    This goes pair by pair, or, where there are far more pairs than rows, bound by bound with two
    pointers; the sum of the d above 0 is then an upper bound.
    """
    n_in, n_out = len(in_score), len(out_score)
    if n_in * n_out <= 4 * N_CELLS * (n_in + n_out):
        behind = 0
        for i in range(n_in):
            while behind < n_out and out_score[behind] - in_score[i] < -edges[CELLS]:
                behind += 1
            for j in range(behind, n_out):
                distance = out_score[j] - in_score[i]
                if distance > edges[CELLS]:
                    break
                c = _cell(distance, edges, per_width)
                d = weight * (in_outcome[i] - out_outcome[j])
                sums[PAIRS, c] += 1
                sums[WEIGHT, c] += weight
                sums[TOTAL, c] += d
                sums[RISE, c] += max(d, 0.0)
                sums[LEAST, c] = min(sums[LEAST, c], distance)
                sums[MOST, c] = max(sums[MOST, c], distance)
        return
    largest = max(0.0, in_outcome.max() - out_outcome.min())
    origin = out_outcome[0]
    pairs_before, total_before = 0.0, 0.0
    for bound in range(N_CELLS + 1):
        pairs, total, ahead, passed = 0.0, 0.0, 0, 0.0
        for i in range(n_in):
            while ahead < n_out and _before(out_score[ahead] - in_score[i], bound, edges):
                passed += out_outcome[ahead] - origin
                ahead += 1
            pairs += ahead
            total += ahead * (in_outcome[i] - origin) - passed
            if ahead < n_out and bound < N_CELLS:
                distance = out_score[ahead] - in_score[i]
                if _before(distance, bound + 1, edges):
                    sums[LEAST, bound] = min(sums[LEAST, bound], distance)
            if ahead > 0 and bound > 0:
                distance = out_score[ahead - 1] - in_score[i]
                if not _before(distance, bound - 1, edges):
                    sums[MOST, bound - 1] = max(sums[MOST, bound - 1], distance)
        if bound > 0 and pairs > pairs_before:
            n = pairs - pairs_before
            sums[PAIRS, bound - 1] += n
            sums[WEIGHT, bound - 1] += weight * n
            sums[TOTAL, bound - 1] += weight * (total - total_before)
            sums[RISE, bound - 1] += weight * n * largest
        pairs_before, total_before = pairs, total


@kernel
def _add_cells(
    units: Ints,
    half: Ints,
    weight: Floats,
    in_starts: Ints,
    in_score: Floats,
    in_outcome: Floats,
    out_starts: Ints,
    out_score: Floats,
    out_outcome: Floats,
    edges: Floats,
    per_width: float,
    sums: Floats,
) -> None:
    """Add the pairs of all queries to the cells of the half that their unit is in."""
    for unit in range(len(units) - 1):
        h = half[unit]
        for q in range(units[unit], units[unit + 1]):
            a, b, c, d = in_starts[q], in_starts[q + 1], out_starts[q], out_starts[q + 1]
            if a < b and c < d:
                _add_query(
                    in_score[a:b],
                    in_outcome[a:b],
                    out_score[c:d],
                    out_outcome[c:d],
                    edges,
                    per_width,
                    weight[q],
                    sums[h],
                )


@kernel
def _list_cells(
    units: Ints,
    kept: Flags,
    weight: Floats,
    in_starts: Ints,
    in_score: Floats,
    in_outcome: Floats,
    out_starts: Ints,
    out_score: Floats,
    out_outcome: Floats,
    edges: Floats,
    per_width: float,
    wanted: Flags,
    low: float,
    high: float,
    found: Floats,
) -> None:
    """Write distance, weight and weighted d of the pairs in some cells, which span low to high."""
    n = 0
    for unit in range(len(units) - 1):
        if not kept[unit]:
            continue
        for q in range(units[unit], units[unit + 1]):
            behind, last = out_starts[q], out_starts[q + 1]
            for i in range(in_starts[q], in_starts[q + 1]):
                while behind < last and out_score[behind] - in_score[i] < low:
                    behind += 1
                for j in range(behind, last):
                    distance = out_score[j] - in_score[i]
                    if distance > high:
                        break
                    if wanted[_cell(distance, edges, per_width)]:
                        found[0, n] = distance
                        found[1, n] = weight[q]
                        found[2, n] = weight[q] * (in_outcome[i] - out_outcome[j])
                        n += 1


@kernel
def _add_residuals(
    units: Ints,
    weight: Floats,
    in_starts: Ints,
    in_score: Floats,
    in_outcome: Floats,
    out_starts: Ints,
    out_score: Floats,
    out_outcome: Floats,
    edges: Floats,
    per_width: float,
    low: Ints,
    high: Ints,
    whole: Floats,
    mean: Floats,
    found: Floats,
) -> None:
    """Add over units, for each window, squared residual sums, squared counts and the units.

    The residual sum of a unit is divided by 1 less its share of the pairs, as in CR3.
    """
    sums = np.zeros((6, N_CELLS))
    c_up, t_up = np.zeros(N_CELLS + 1), np.zeros(N_CELLS + 1)
    for unit in range(len(units) - 1):
        sums[:] = 0.0
        some = False
        for q in range(units[unit], units[unit + 1]):
            a, b, c, d = in_starts[q], in_starts[q + 1], out_starts[q], out_starts[q + 1]
            if a < b and c < d:
                some = True
                _add_query(
                    in_score[a:b],
                    in_outcome[a:b],
                    out_score[c:d],
                    out_outcome[c:d],
                    edges,
                    per_width,
                    weight[q],
                    sums,
                )
        if not some:
            continue
        for k in range(N_CELLS):
            c_up[k + 1] = c_up[k] + sums[WEIGHT, k]
            t_up[k + 1] = t_up[k] + sums[TOTAL, k]
        for w in range(len(low)):
            n = c_up[high[w]] - c_up[low[w]]
            # Pairs that cancel in the running sums leave a rounding error, not a pair.
            if n > 1e-9 * c_up[N_CELLS] and n < whole[w]:
                residual = t_up[high[w]] - t_up[low[w]] - mean[w] * n
                residual /= 1 - n / whole[w]
                found[0, w] += residual * residual
                found[1, w] += n * n
                found[2, w] += 1


def _arguments(runs: Runs) -> tuple[Ints | Floats, ...]:
    inside, outside = runs.inside, runs.outside
    first = (inside.starts, inside.score, inside.outcome)
    return (*first, outside.starts, outside.score, outside.outcome)


def _edges(reach: float) -> tuple[Floats, float]:
    with np.errstate(over="ignore"):
        per_width = float(np.float64(CELLS) / reach) if reach > 0 else 0.0
    return reach * (np.arange(CELLS + 1) / CELLS), per_width


def add_cells(runs: Runs, half: Flags, weight: Floats, reach: float) -> tuple[Floats, Floats]:
    """Add up the pairs of the units in `half`, and of those that are not: arrays (6, cell).

    Parameters
    ----------
    runs : Runs
    half : array of bool (unit,)
    weight : array (query,)
        Weights of the queries, in the order of the log.
    reach : float
        The largest distance, σ. A cell is 1/800 of it wide; tied pairs have a cell of their own.
    """
    sums = np.zeros((2, 6, N_CELLS))
    sums[:, LEAST], sums[:, MOST] = np.inf, -np.inf
    interruptible(
        len(runs.inside.score) + len(runs.outside.score),
        _add_cells,
        runs.units,
        half.astype(np.int64),
        weight,
        *_arguments(runs),
        *_edges(reach),
        sums,
    )
    return sums[1], sums[0]


def join_cells(one: Floats, other: Floats) -> Floats:
    """Return the sums over the pairs of both."""
    joined = one + other
    joined[LEAST] = np.minimum(one[LEAST], other[LEAST])
    joined[MOST] = np.maximum(one[MOST], other[MOST])
    return joined


def split_cells(
    runs: Runs, kept: Flags, weight: Floats, reach: float, cells: Floats
) -> tuple[Floats, bool]:
    """Take apart the cells in which the fit may cross 0, into single distances.

    The fit crosses 0 where the running sum of d is largest. A cell can hold that place only if the
    sum before it plus all d above 0 inside it reaches the largest sum at the end of any cell; only
    the pairs of such cells are listed. Where these are more than 10,000,000, cells stay whole.

    Parameters
    ----------
    runs, weight, reach
        As in `add_cells`.
    kept : array of bool (unit,)
        The units that were added up.
    cells : array (6, cell)

    Returns
    -------
    cells : array (6, cell or distance)
        Without the empty ones.
    exact : bool
        Whether the root is that of the fit to all pairs.
    """
    up = np.concatenate([[0.0], np.cumsum(cells[TOTAL])])
    rounding = _ZERO * np.abs(up).max()
    some = cells[PAIRS] > 0
    wanted = some & (up[:-1] + cells[RISE] >= up.max() - rounding)
    wanted &= cells[LEAST] < cells[MOST]
    n = int(cells[PAIRS, wanted].sum())
    if n == 0 or n > MOST_LISTED:
        return cells[:, some], n == 0
    found = np.empty((3, n))
    low, high = cells[LEAST, wanted].min(), cells[MOST, wanted].max()
    interruptible(
        len(runs.inside.score) + len(runs.outside.score),
        _list_cells,
        runs.units,
        kept,
        weight,
        *_arguments(runs),
        *_edges(reach),
        wanted,
        low,
        high,
        found,
    )
    distance, place = np.unique(found[0], return_inverse=True)
    single = np.empty((6, len(distance)))
    single[PAIRS] = np.bincount(place)
    single[WEIGHT], single[TOTAL] = (np.bincount(place, row) for row in found[1:])
    single[RISE] = np.maximum(single[TOTAL], 0.0)
    single[LEAST] = single[MOST] = distance
    every = np.concatenate([cells[:, some & ~wanted], single], axis=1)
    return every[:, np.argsort(every[LEAST], kind="stable")], True


@dataclass(frozen=True)
class AntitonicFit:
    """The non-increasing least-squares fit of d on the distance; arrays over its steps.

    Attributes
    ----------
    value : array
        Mean of d over the step, falling.
    start, end : array
        From where to where a step is drawn: halfway to the pairs of the neighbouring steps.
    count : array
        Pairs, or their weights.
    root : float
        The middle of the stretch between the last pair with a value above 0 and the first with
        one below; NaN where there is none.
    sign : int
        Where there is no root, the sign of the fit; 0 where it is 0 throughout or has no pairs.
    """

    value: Floats
    start: Floats
    end: Floats
    count: Floats
    root: float
    sign: int

    def at(self, distance: Floats) -> Floats:
        """Return the fit at distances, NaN beyond its ends; where it drops, the value before."""
        if not len(self.value):
            return np.full(np.shape(distance), np.nan)
        step = np.minimum(np.searchsorted(self.end, distance), len(self.value) - 1)
        within = (self.start[0] <= distance) & (distance <= self.end[-1])
        return np.where(within, self.value[step], np.nan)


def fit_antitonic(cells: Floats) -> AntitonicFit:
    r"""Fit the mean of d as a non-increasing function of the distance.

    .. math:: \hat m = \arg\min_{m \downarrow} \sum_p w_p (d_p - m(D_p))^2

    with all pairs of a cell at one distance. After `split_cells` its root is that of the fit to
    all pairs, while steps may be off by the width of a cell elsewhere.

    Parameters
    ----------
    cells : array (6, cell)
        In ascending distance, none of them empty.

    References
    ----------
    Robertson, Wright & Dykstra (1988), Order Restricted Statistical Inference, chapter 1.
    """
    from scipy.optimize import isotonic_regression

    if not cells.shape[1]:
        none = np.empty(0)
        return AntitonicFit(none, none, none, none, float("nan"), 0)
    means = cells[TOTAL] / cells[WEIGHT]
    found = isotonic_regression(means, weights=cells[WEIGHT], increasing=False)
    first, last = found.blocks[:-1], found.blocks[1:] - 1
    value = found.x[first]
    value[np.abs(value) <= _ZERO * np.abs(means).max()] = 0.0
    least, most = cells[LEAST, first], cells[MOST, last]
    between = most[:-1] / 2 + least[1:] / 2
    root, sign = _root(value, least, most)
    return AntitonicFit(
        value=value,
        start=np.concatenate([least[:1], between]),
        end=np.concatenate([between, most[-1:]]),
        count=np.asarray(np.add.reduceat(cells[WEIGHT], first)),
        root=root,
        sign=sign,
    )


def _root(value: Floats, least: Floats, most: Floats) -> tuple[float, int]:
    above, below = np.flatnonzero(value > 0), np.flatnonzero(value < 0)
    if len(above) and len(below):
        return float(most[above[-1]] / 2 + least[below[0]] / 2), 0
    return float("nan"), int(len(above) > 0) - int(len(below) > 0)


def default_steps(reach: float) -> Floats:
    """Return the 201 boosts that are tested."""
    return np.asarray(reach * (np.arange(-STEPS_A_SIDE, STEPS_A_SIDE + 1) / STEPS_A_SIDE))


def _bounds() -> tuple[Ints, Ints]:
    """Return the first cell and the end of each window, (side, width, step): above, below."""
    at = np.arange(-STEPS_A_SIDE, STEPS_A_SIDE + 1) * (CELLS // STEPS_A_SIDE)
    width = np.array(WINDOWS)[:, None]
    low = np.stack([np.broadcast_to(at, (len(WINDOWS), len(at))), np.maximum(at - width, -CELLS)])
    high = np.stack([np.minimum(at + width, CELLS), np.broadcast_to(at, low.shape[1:])])
    # A window that starts at 0 leaves out ties, and so does one that ends there.
    return np.where(low >= 0, low + 1, low) + CELLS, np.where(high > 0, high + 1, high) + CELLS


def steps_not_rejected(
    runs: Runs, cells: Floats, weight: Floats, reach: float, level: float
) -> Flags:
    r"""Return which of the 201 boosts no test rejects.

    If the mean at a distance falls with it and is 0 at α, then with a = 1 − level and each of six
    widths w = σ, σ/2, …, σ/32 the mean of d over :math:`\alpha < D < \alpha + w` is not above 0,
    and that over :math:`\alpha - w < D < \alpha` not below. Each of the twelve is tested
    one-sided at a/12: query-clustered, CR3, t with G − 1 degrees of freedom, G effective. Windows
    with fewer than 50 pairs, fewer than 3 effective queries or no variance are left out. Windows
    end at ±σ.

    Parameters
    ----------
    runs : Runs
    cells : array (6, cell)
        The cells of all units.
    weight : array (query,)
    reach : float
        σ.
    level : float
    """
    low, high = _bounds()

    def inside(values: Floats) -> Floats:
        up = np.concatenate([[0.0], np.cumsum(values)])
        return np.asarray(up[high] - up[low])

    whole, tested = inside(cells[WEIGHT]), inside(cells[PAIRS]) >= FEWEST_PAIRS
    mean = np.where(tested, inside(cells[TOTAL]) / np.where(tested, whole, 1.0), np.nan)
    found = np.zeros((3, int(tested.sum())))
    interruptible(
        len(runs.inside.score) + len(runs.outside.score),
        _add_residuals,
        runs.units,
        weight,
        *_arguments(runs),
        *_edges(reach),
        low[tested].astype(np.int64),
        high[tested].astype(np.int64),
        whole[tested],
        mean[tested],
        found,
    )
    squares, counts, units = found
    mean, whole = mean[tested], whole[tested]
    effective = effective_clusters(whole, counts)
    variance = squares / whole**2 * (units - 1) / np.maximum(units, 1)
    known = enough_clusters(effective) & (variance > (_ZERO * mean) ** 2)
    error = np.sqrt(np.where(known, variance, np.nan))
    tail = significance(level) / low[:, :, 0].size
    t = mean / error / critical(tail, np.maximum(effective - 1, 1.0))
    side = np.broadcast_to(np.array([1.0, -1.0])[:, None, None], low.shape)[tested]
    rejects = np.zeros(low.shape, dtype=np.bool_)
    rejects[tested] = t * side > 1
    return np.asarray(~rejects.any(axis=(0, 1)))
