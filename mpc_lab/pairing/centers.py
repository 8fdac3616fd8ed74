"""A number near the mean difference of each group, where sums of squares would cancel without."""

from __future__ import annotations

from functools import partial

import numpy as np

from mpc_lab.pairing.arrays import Floats, Masks
from mpc_lab.pairing.bits import ONE, lowest
from mpc_lab.pairing.compiling import kernel
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.walk import Walk

# Within so many standard deviations squares lose nothing that matters, and sums of whole numbers
# stay exact without a center.
_STANDARD_DEVIATIONS = 16.0
_COUNT, _MEAN, _SQUARES = range(3)


def centers(walk: Walk, word: int, n_groups: int) -> Floats:
    """Return the mean outcome of each group less that of the rest where it dwarfs the spread.

    Otherwise 0.
    """
    total = np.zeros((n_groups + 1, 3))
    for part in walk(partial(_spread_of_block, word, n_groups), "reading outcomes"):
        total = _merged(total, part)
    inside, everything = total[:-1], total[-1]
    with np.errstate(all="ignore"):
        outside = _rest(everything, inside)
        difference = inside[:, _MEAN] - outside[:, _MEAN]
        variance = sum(part[:, _SQUARES] / part[:, _COUNT] for part in (inside, outside))
        large = difference**2 > _STANDARD_DEVIATIONS**2 * variance
    return np.where(large & np.isfinite(difference), difference, 0.0)


def _spread_of_block(word: int, n_groups: int, log: Log, first: int, last: int) -> Floats:
    """Return count, mean and squares about the mean of each group, and of all rows at the end."""
    sums = np.zeros((n_groups + 1, 3))
    start, end = log.starts[log.units[first]], log.starts[log.units[last]]
    off = float(log.outcome[start]) if end > start else 0.0
    _outcome_sums(log.outcome, log.masks[word], off, start, end, sums)
    count = np.maximum(sums[:, 0], 1.0)
    mean = sums[:, 1] / count
    return np.column_stack([sums[:, 0], mean + off, np.maximum(sums[:, 2] - count * mean**2, 0.0)])


def _merged(one: Floats, other: Floats) -> Floats:
    """Add two parts, each with count, mean and squares about the mean."""
    count = np.maximum(one[:, _COUNT] + other[:, _COUNT], 1.0)
    share = other[:, _COUNT] / count
    apart = other[:, _MEAN] - one[:, _MEAN]
    squares = one[:, _SQUARES] + other[:, _SQUARES] + apart**2 * one[:, _COUNT] * share
    return np.column_stack(
        [one[:, _COUNT] + other[:, _COUNT], one[:, _MEAN] + share * apart, squares]
    )


def _rest(everything: Floats, inside: Floats) -> Floats:
    """Take a part away from the whole."""
    count = everything[_COUNT] - inside[:, _COUNT]
    mean = everything[_MEAN] + (everything[_MEAN] - inside[:, _MEAN]) * inside[:, _COUNT] / count
    apart = (inside[:, _MEAN] - mean) ** 2 * inside[:, _COUNT] * count / everything[_COUNT]
    squares = np.maximum(everything[_SQUARES] - inside[:, _SQUARES] - apart, 0.0)
    return np.column_stack([count, mean, squares])


@kernel
def _outcome_sums(
    outcome: Floats, mask: Masks, off: float, start: int, end: int, sums: Floats
) -> None:
    """Add count, Σy and Σy² of the rows of each group, and of all rows at the end."""
    for r in range(start, end):
        y = outcome[r] - off
        bits = mask[r]
        while bits:
            g = lowest(bits)
            bits &= bits - ONE
            sums[g, 0] += 1
            sums[g, 1] += y
            sums[g, 2] += y * y
        sums[-1, 0] += 1
        sums[-1, 1] += y
        sums[-1, 2] += y * y
