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


def centers(walk: Walk, word: int, n_groups: int) -> Floats:
    """Return the mean outcome of each group less that of the rest where it dwarfs the spread.

    Otherwise 0.
    """
    start = np.zeros((n_groups + 1, 3))
    sums = walk.total(partial(_sums_of_block, word, n_groups), "reading outcomes", start)
    inside, outside = sums[:-1], sums[-1] - sums[:-1]
    with np.errstate(all="ignore"):
        difference = inside[:, 1] / inside[:, 0] - outside[:, 1] / outside[:, 0]
        variance = _variance(inside) + _variance(outside)
        large = difference**2 > _STANDARD_DEVIATIONS**2 * variance
    return np.where(large & np.isfinite(difference), difference, 0.0)


def _sums_of_block(word: int, n_groups: int, log: Log, first: int, last: int) -> Floats:
    sums = np.zeros((n_groups + 1, 3))
    start, end = log.starts[log.units[first]], log.starts[log.units[last]]
    _outcome_sums(log.outcome, log.masks[word], start, end, sums)
    return sums


def _variance(sums: Floats) -> Floats:
    mean = sums[:, 1] / sums[:, 0]
    return np.maximum(sums[:, 2] / sums[:, 0] - mean**2, 0.0)


@kernel
def _outcome_sums(outcome: Floats, mask: Masks, start: int, end: int, sums: Floats) -> None:
    """Add count, Σy and Σy² of the rows of each group, and of all rows at the end."""
    for r in range(start, end):
        y = outcome[r]
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
