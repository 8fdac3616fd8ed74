"""Groups without meaning: the same rows, with membership dealt out anew inside each query."""

from __future__ import annotations

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.pairing.arrays import Flags, Floats, Ints
from mpc_lab.pairing.compiling import kernel
from mpc_lab.pairing.log import Log

MOST_CLOSE = 50_000_000


def close_rows(log: Log, epsilon: float) -> tuple[Ints, Ints]:
    """Return all pairs of rows of one query with a gap of at most ε, whatever their groups.

    Returns
    -------
    lower, upper : int64 arrays
        Rows of the log; the upper has the higher score or the same.
    """
    count = _count_above(log.starts, log.score, epsilon)
    total = int(count.sum())
    if total > MOST_CLOSE:
        raise MpcError(
            f"{total:,} pairs of rows have a gap of at most {epsilon:.4g}, and at most "
            f"{MOST_CLOSE:,} can be listed; choose a smaller epsilon."
        )
    lower = np.repeat(np.arange(len(count)), count)
    first = np.cumsum(count) - count
    return lower, lower + 1 + np.arange(total) - first[lower]


def shuffle_within(starts: Ints, member: Flags, rng: np.random.Generator) -> Flags:
    """Return membership shuffled inside each query: every query keeps its number of members."""
    shuffled = member.copy()
    _shuffle(starts, rng.random(len(member)), shuffled)
    return shuffled


@kernel
def _count_above(starts: Ints, score: Floats, epsilon: float) -> Ints:
    """Count, for each row, the rows after it in its query with a gap of at most ε."""
    count = np.zeros(len(score), dtype=np.int64)
    for q in range(len(starts) - 1):
        upper = starts[q]
        for lower in range(starts[q], starts[q + 1]):
            upper = max(upper, lower + 1)
            while upper < starts[q + 1] and score[upper] - score[lower] <= epsilon:
                upper += 1
            count[lower] = upper - lower - 1
    return count


@kernel
def _shuffle(starts: Ints, uniform: Floats, member: Flags) -> None:
    for q in range(len(starts) - 1):
        for k in range(starts[q + 1] - 1, starts[q], -1):
            other = starts[q] + np.int64(uniform[k] * (k - starts[q] + 1))
            member[k], member[other] = member[other], member[k]
