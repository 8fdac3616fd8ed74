"""Cells of the places that two items were shown at: where both sides of a tie can be compared.

A place is a logged position, 1 = top. A cell is the place of the upper item and how many places
are between the two; a *part* is one side inside one cell, the cells below coming first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.kernels import ONE, inlined
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.moments import ABOVE, BELOW
from mpc_lab.pairing.terms import MOST_VISITED
from mpc_lab.pairing.windows import count_close
from mpc_lab.vocabulary import Flags, Floats, Ints

# The first place, and the first distance in places, of each class.
PLACES = (1, 2, 3, 4, 6, 10, 20)
APART = (1, 2, 3, 5, 9)
N_CELLS = len(PLACES) * len(APART)
N_PARTS = 2 * N_CELLS
# A side of a cell with fewer pairs says nothing about its mean.
FEWEST = 2


def _classes(first: tuple[int, ...]) -> Ints:
    """Return the class of each number up to the first of the last class."""
    return np.asarray(np.searchsorted(first, np.arange(first[-1] + 1), side="right") - 1)


_PLACE_CLASS, _APART_CLASS = _classes(PLACES), _classes(APART)
_LAST_PLACE, _LAST_APART, _N_APART = PLACES[-1], APART[-1], len(APART)


@inlined
def cell_of(upper: int, lower: int) -> int:
    """Return the cell of two places, the upper one the lesser number."""
    place = _PLACE_CLASS[min(upper, _LAST_PLACE)]
    return place * _N_APART + _APART_CLASS[min(lower - upper, _LAST_APART)]  # type: ignore[no-any-return]


@inlined
def too_many(score: Floats, start: int, end: int, epsilon: float) -> bool:
    """Whether a query has too many close pairs to visit."""
    n = end - start
    if 0.5 * n * n <= MOST_VISITED:
        return False
    return bool(count_close(score, start, end, epsilon) > MOST_VISITED)


def parts_of(place: Ints, other: Ints) -> Ints:
    """Return the part of each pair, given the places of the group's item and of the other."""
    upper, lower = np.minimum(place, other), np.maximum(place, other)
    cell = _PLACE_CLASS[np.minimum(upper, _LAST_PLACE)] * _N_APART
    cell = cell + _APART_CLASS[np.minimum(lower - upper, _LAST_APART)]
    return np.asarray(np.where(place < other, ABOVE, BELOW) * N_CELLS + cell)


class Combined(NamedTuple):
    r"""The result of comparing two sides inside cells.

    Attributes
    ----------
    estimate : float64 array (…)
        :math:`\theta = \sum_l \omega_l \, \tfrac12(\theta_{al} + \theta_{bl}) / \sum_l \omega_l`;
        NaN where no cell has both sides.
    share : float64 array (cell, …)
        :math:`\omega_l / \sum \omega`.
    means : float64 array (2, cell, …)
        The mean of either side in each cell; 0 where it has no share.
    overlap : float64 array (…)
        :math:`4 \sum_l \omega_l / \sum W`: 1 where both sides were shown in the same cells, 0 where
        in none of them.
    """

    estimate: Floats
    share: Floats
    means: Floats
    overlap: Floats


def combine_cells(
    weight: Floats, total: Floats, fewest: float = FEWEST, number: Floats | None = None
) -> Combined:
    r"""Compare both sides inside cells.

    With :math:`W_{al}, W_{bl}` the weight of either side in cell l,
    :math:`\omega_l = W_{al} W_{bl} / (W_{al} + W_{bl})`, and 0 with less than `fewest` pairs on a
    side.

    Parameters
    ----------
    weight, total : float64 arrays (2, cell, …)
        For either side, the weight of its pairs and their (centred) sum.
    fewest : float
        How many pairs a side of a cell must have; at least, and a weight above 0.
    number : float64 array (2, cell, …), optional
        How many pairs there are, where they do not all count 1.

    Examples
    --------
    >>> import numpy as np
    >>> found = combine_cells(np.array([[[4.0], [9.0]], [[4.0], [0.0]]]).squeeze(-1),
    ...                       np.array([[[0.0], [9.0]], [[8.0], [0.0]]]).squeeze(-1))
    >>> float(found.estimate), found.share.tolist()
    (1.0, [1.0, 0.0])
    """
    counted = weight if number is None else number
    enough = (counted >= fewest).all(axis=0) & (weight > 0).all(axis=0)
    safe = np.where(enough, weight, 1.0)
    omega = np.where(enough, safe[BELOW] * safe[ABOVE] / (safe[BELOW] + safe[ABOVE]), 0.0)
    means = np.where(enough, total / safe, 0.0)
    sums, everything = omega.sum(axis=0), weight.sum(axis=(0, 1))
    share = omega / np.where(sums > 0, sums, np.nan)
    estimate = (share * means.mean(axis=0)).sum(axis=0)
    overlap = 4 * sums / np.where(everything > 0, everything, np.nan)
    return Combined(estimate, np.nan_to_num(share), means, overlap)


# ---- queries with more close pairs than can be visited, where each pair has to be looked at


def find_left_out(log: Log, first: int, last: int, reach: float) -> Ints:
    """Return which queries, counted from the first, have too many close pairs to visit."""
    size = np.diff(log.starts[first : last + 1]).astype(np.float64)
    long = np.flatnonzero(0.5 * size**2 > MOST_VISITED)
    ends = (log.starts[first + long], log.starts[first + long + 1])
    close = [count_close(log.score, start, end, reach) for start, end in zip(*ends, strict=True)]
    return np.asarray(long[np.array(close, dtype=np.int64) > MOST_VISITED])


def count_left_out(log: Log, word: int, epsilon: Floats, left_out: Ints) -> Ints:
    """Return how many queries left out, and units with no other query, have a pair of each group.

    Parameters
    ----------
    left_out : int64 array
        Queries of the log.
    """
    found = np.zeros((2, len(epsilon)), dtype=np.int64)
    for q in left_out:
        found[0] += _has_pair(log, word, epsilon, q)
    for unit in np.unique(np.searchsorted(log.units, left_out, side="right") - 1):
        queries = range(log.units[unit], log.units[unit + 1])
        whole = np.array([_has_pair(log, word, epsilon, q) for q in queries])
        kept = whole[~np.isin(queries, left_out)]
        found[1] += whole.any(axis=0) & ~kept.any(axis=0)
    return found


def _has_pair(log: Log, word: int, epsilon: Floats, query: int) -> Flags:
    """Tell for each group whether a query has a pair: the closest one is of neighbours."""
    rows = slice(log.starts[query], log.starts[query + 1])
    score, mask = log.score[rows], log.masks[word, rows]
    differ = (mask[1:] ^ mask[:-1])[:, None] >> np.arange(len(epsilon), dtype=np.uint64)
    close = np.diff(score)[:, None] <= epsilon
    return np.asarray((((differ & ONE) != 0) & close).any(axis=0))
