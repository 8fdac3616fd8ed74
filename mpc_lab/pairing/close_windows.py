r"""Sums of a regression over all close pairs, from windows of sorted rows: no pair is visited.

The weight of a pair, 1 − Δ/h, is a line in its distance, so that sums over the partners of a row
are differences of running sums. With z the features of a row (its groups, its score in units of h,
its outcome), c its total weight and b the weighted sum of its partners' features,

.. math:: \sum_{pairs} w (z_i - z_j)(z_i - z_j)' = \sum_{rows} (c z z' - z b').

The cost is that of the rows, however long a list is. The same numbers, pair by pair, are in
`mpc_lab.pairing.close`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.close import Gram
from mpc_lab.pairing.kernels import ONE, kernel, lowest, tight
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.weighting import weight_of_pair
from mpc_lab.vocabulary import Floats, Ints, Masks


class Window(NamedTuple):
    """Which pairs a regression is over.

    Attributes
    ----------
    n_groups : int
        The groups of the masks.
    width : float
        h, above 0.
    by_place : bool
        As in `mpc_lab.pairing.close.Design`.
    """

    n_groups: int
    width: float
    by_place: bool


class _WindowRows(NamedTuple):
    """The arrays of a log that kernels read."""

    units: Ints
    starts: Ints
    score: Floats
    outcome: Floats
    masks: Masks
    tie: Ints
    weight: Floats
    estimand: int
    width: float
    by_place: bool
    n_groups: int


def _rows(window: Window, log: Log) -> _WindowRows:
    weights = log.weights
    return _WindowRows(
        log.units,
        log.starts,
        log.score,
        log.outcome,
        log.masks,
        log.tie,
        np.empty(0) if weights is None else weights.weight,
        0 if weights is None else weights.estimand,
        float(window.width),
        window.by_place,
        window.n_groups,
    )


def gram_by_windows(window: Window, log: Log, first: int, last: int) -> Gram:
    """Return the sums of some units, laid out as those of `mpc_lab.pairing.close.gram_of`."""
    k = window.n_groups + 3
    own, cross, totals = np.zeros((k, k)), np.zeros((k, k)), np.zeros(3)
    _add_gram(_rows(window, log), first, last, own, cross, totals)
    return Gram(own - cross - cross.T, float(totals[0]), int(totals[1]), int(totals[2]))


class UnitScores(NamedTuple):
    """What units add to the error of a regression, added up; sums of blocks go together.

    Attributes
    ----------
    outer : float64 array (column, column)
        Σ over units of g g', g the sum of w x e over the pairs of a unit.
    weight, weight_squares : float
        The weight of the pairs that are not tied: Σ over units, and Σ of squares.
    units : int
        Units with a pair.
    """

    outer: Floats
    weight: float
    weight_squares: float
    units: int


def scores_by_windows(window: Window, fit: Floats, log: Log, first: int, last: int) -> UnitScores:
    """Return what some units add, given the coefficients (column,)."""
    outer, apart = np.zeros((len(fit), len(fit))), np.zeros((last - first, 2))
    _add_scores(_rows(window, log), fit, first, last, outer, apart)
    free = apart[:, 0]
    met = int(np.count_nonzero(apart[:, 1]))
    return UnitScores(outer, float(free.sum()), float((free**2).sum()), met)


def join_scores(parts: list[UnitScores], n_columns: int) -> UnitScores:
    """Add up what blocks gave."""
    return UnitScores(
        np.sum([np.zeros((n_columns, n_columns)), *(part.outer for part in parts)], axis=0),
        sum(part.weight for part in parts),
        sum(part.weight_squares for part in parts),
        sum(part.units for part in parts),
    )


@tight
def _find_windows(
    rows: _WindowRows, start: int, end: int, upper: Ints, lower: Ints, place: Floats
) -> tuple[int, int]:
    """Write where the partners of each row end, above and below; return pairs and ties.

    The partners of row r of a query are the rows from ``lower[r]`` to before ``upper[r]``.
    """
    n = end - start
    pairs, ties, top, run = 0, 0, 0, 0
    for r in range(n):
        place[r] = (rows.score[start + r] - rows.score[start]) / rows.width
        top = max(top, r + 1)
        while top < n and rows.score[start + top] - rows.score[start + r] < rows.width:
            top += 1
        upper[r] = top
        pairs += top - r - 1
        run = run + 1 if r and rows.score[start + r] == rows.score[start + r - 1] else 0
        ties += run
    bottom = 0
    for r in range(n):
        while upper[bottom] <= r:
            bottom += 1
        lower[r] = bottom
    return pairs, ties


@tight
def _add_up(
    rows: _WindowRows,
    start: int,
    end: int,
    upper: Ints,
    lower: Ints,
    place: Floats,
    running: Floats,
    total: Floats,
    turned: Floats,
) -> float:
    """Write the weight of each row's pairs, and that as the upper less that as the lower one.

    Returns the weight of all pairs. Of a tied pair half counts in each orientation, unless places
    tell which one was shown above.
    """
    n = end - start
    running[0] = 0.0
    for r in range(n):
        running[r + 1] = running[r] + place[r]
    whole = 0.0
    first = 0
    for r in range(n):
        above, below = upper[r] - r - 1, r - lower[r]
        up = above - ((running[upper[r]] - running[r + 1]) - above * place[r])
        down = below - (below * place[r] - (running[r] - running[lower[r]]))
        total[r] = up + down
        turned[r] = 0.0 if rows.by_place else down - up
        whole += up
        # Tied rows weigh 1 each, and cancel.
        if not rows.by_place:
            same = r > 0 and rows.score[start + r] == rows.score[start + r - 1]
            if not same:
                first = r
            last = r + 1
            while last < n and rows.score[start + last] == rows.score[start + r]:
                last += 1
            turned[r] += (last - r - 1) - (r - first)
    if rows.by_place:
        for r in range(n):
            for p in range(r + 1, upper[r]):
                w = 1.0 - (place[p] - place[r])
                if rows.tie[start + r] > rows.tie[start + p]:
                    w = -w
                turned[p] += w
                turned[r] -= w
    return whole


@tight
def _features(
    rows: _WindowRows, row: int, place: float, outcome: float, at: Ints, z: Floats
) -> int:
    """Write the features of a row that are not 0; return how many there are."""
    n = 0
    for word in range(len(rows.masks)):
        bits = rows.masks[word, row]
        while bits:
            g = 64 * word + lowest(bits)
            if g < rows.n_groups:
                at[n], z[n] = g, 1.0
                n += 1
            bits &= bits - ONE
    at[n], z[n] = rows.n_groups, place
    at[n + 1], z[n + 1] = rows.n_groups + 2, outcome
    return n + 2


@tight
def _longest(rows: _WindowRows, first: int, last: int) -> int:
    longest = 0
    for q in range(rows.units[first], rows.units[last]):
        longest = max(longest, rows.starts[q + 1] - rows.starts[q])
    return longest


@kernel
def _add_gram(
    rows: _WindowRows, first: int, last: int, own: Floats, cross: Floats, totals: Floats
) -> None:
    k = len(own)
    constant = rows.n_groups + 1
    longest = _longest(rows, first, last)
    upper, lower = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    place, running = np.empty(longest), np.empty(longest + 1)
    total, turned = np.empty(longest), np.empty(longest)
    at, z = np.empty(k, dtype=np.int64), np.empty(k)
    near, far = np.zeros(k), np.zeros(k)
    for q in range(rows.units[first], rows.units[last]):
        start, end = rows.starts[q], rows.starts[q + 1]
        pairs, ties = _find_windows(rows, start, end, upper, lower, place)
        if pairs == 0:
            continue
        own_weight = rows.weight[q] if len(rows.weight) else 1.0
        weight = weight_of_pair(own_weight, rows.estimand, float(pairs))
        whole = _add_up(rows, start, end, upper, lower, place, running, total, turned)
        totals[0] += weight * whole
        totals[1] += pairs
        totals[2] += ties
        own[constant, constant] += weight * whole
        near[:], far[:] = 0.0, 0.0
        filled = 0
        for r in range(end - start):
            # The window of row r: what was added, without row r itself.
            while filled < upper[r]:
                n = _features(
                    rows,
                    start + filled,
                    place[filled],
                    rows.outcome[start + filled] - rows.outcome[start],
                    at,
                    z,
                )
                for a in range(n):
                    near[at[a]] += z[a]
                    far[at[a]] += z[a] * place[filled]
                filled += 1
            n = _features(
                rows, start + r, place[r], rows.outcome[start + r] - rows.outcome[start], at, z
            )
            for a in range(n):
                near[at[a]] -= z[a]
                far[at[a]] -= z[a] * place[r]
            of_own, of_turned = weight * total[r], weight * turned[r]
            for a in range(n):
                i, value = at[a], z[a]
                for b in range(n):
                    own[i, at[b]] += of_own * value * z[b]
                own[i, constant] += of_turned * value
                own[constant, i] += of_turned * value
                value *= weight
                if value != 0.0:
                    for j in range(k):
                        cross[i, j] += value * ((1.0 + place[r]) * near[j] - far[j])


@kernel
def _add_scores(
    rows: _WindowRows, fit: Floats, first: int, last: int, outer: Floats, apart: Floats
) -> None:
    # Outer products are added up by hand: a matrix product called from our own threads would start
    # further threads and take longer than everything else.
    constant = rows.n_groups + 1
    longest = _longest(rows, first, last)
    upper, lower = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    place, running = np.empty(longest), np.empty(longest + 1)
    total, turned = np.empty(longest), np.empty(longest)
    left, left_far = np.empty(longest + 1), np.empty(longest + 1)
    residual = np.empty(longest)
    at, z = np.empty(rows.n_groups + 3, dtype=np.int64), np.empty(rows.n_groups + 3)
    found = np.empty(len(fit))
    for unit in range(first, last):
        found[:] = 0.0
        for q in range(rows.units[unit], rows.units[unit + 1]):
            start, end = rows.starts[q], rows.starts[q + 1]
            pairs, ties = _find_windows(rows, start, end, upper, lower, place)
            if pairs == 0:
                continue
            own_weight = rows.weight[q] if len(rows.weight) else 1.0
            weight = weight_of_pair(own_weight, rows.estimand, float(pairs))
            whole = _add_up(rows, start, end, upper, lower, place, running, total, turned)
            apart[unit - first, 0] += weight * (whole - ties)
            apart[unit - first, 1] += pairs
            left[0], left_far[0] = 0.0, 0.0
            for r in range(end - start):
                outcome = rows.outcome[start + r] - rows.outcome[start]
                n = _features(rows, start + r, place[r], outcome, at, z)
                residual[r] = outcome
                for a in range(n - 1):
                    residual[r] -= fit[at[a]] * z[a]
                left[r + 1] = left[r] + residual[r]
                left_far[r + 1] = left_far[r] + residual[r] * place[r]
            error = 0.0
            for r in range(end - start):
                high, low = upper[r], lower[r]
                above, above_far = left[high] - left[r + 1], left_far[high] - left_far[r + 1]
                below, below_far = left[r] - left[low], left_far[r] - left_far[low]
                partners = (1.0 + place[r]) * above - above_far
                partners += (1.0 - place[r]) * below + below_far
                of_row = total[r] * residual[r] - partners - fit[constant] * turned[r]
                error += turned[r] * residual[r]
                n = _features(rows, start + r, place[r], 0.0, at, z)
                for a in range(n - 1):
                    found[at[a]] += weight * of_row * z[a]
            found[constant] += weight * (error - fit[constant] * whole)
        if apart[unit - first, 1] > 0:
            for i in range(len(found)):
                if found[i] != 0.0:
                    for j in range(len(found)):
                        outer[i, j] += found[i] * found[j]
