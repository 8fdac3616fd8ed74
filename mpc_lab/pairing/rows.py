"""The rows that make the pairs of one group, for what cannot be had from sums alone."""

from __future__ import annotations

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.pairing import reach
from mpc_lab.pairing.arrays import Flags, Floats, Ints
from mpc_lab.pairing.compiling import kernel
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.stopping import interruptible
from mpc_lab.pairing.windows import sums_by_unit


def pair_rows(
    log: Log,
    member: Flags,
    mode: str,
    epsilon: float,
    *,
    units: tuple[int, int] | None = None,
    count: int | None = None,
) -> tuple[Ints, Ints]:
    """Return rows of the log: the item of the group, and the other item, of each pair.

    Parameters
    ----------
    log : Log
    member : bool array (row,)
        Whether the row of the log is in the group.
    mode : {"matched", "mirrored", "adjacent"}
    epsilon : float
        The largest gap.
    units : (first, last), optional
        Only the units from `first` to before `last`.
    count : int, optional
        The number of pairs, where it is known.

    Returns
    -------
    i, j : int64 arrays
        Ascending by unit and query.
    """
    first, last = units or (0, len(log.units) - 1)
    starts = log.starts[log.units[first] : log.units[last] + 1]
    if mode == "adjacent":
        return _neighbours(log, member, epsilon, int(starts[0]), int(starts[-1]))
    if count is None:
        count = int(sums_by_unit(log, member, mode, epsilon)[0][first:last].sum())
    if count > reach.MOST_LISTED:
        raise MpcError(
            f"{count:,} pairs have a gap of at most {epsilon:.4g}, and at most "
            f"{reach.MOST_LISTED:,} can be listed; ask for smaller gaps."
        )
    i, j = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    interruptible(len(log.row), _list, starts, log.score, member, mode == "matched", epsilon, i, j)
    return i, j


def _neighbours(log: Log, member: Flags, epsilon: float, start: int, end: int) -> tuple[Ints, Ints]:
    upper = start + np.flatnonzero(log.below[start:end] >= 0)
    lower = log.below[upper]
    close = log.gap(upper, lower) <= epsilon
    cross = close & (member[upper] != member[lower])
    upper, lower = upper[cross], lower[cross]
    return np.where(member[upper], upper, lower), np.where(member[upper], lower, upper)


@kernel
def _list(
    starts: Ints,
    score: Floats,
    member: Flags,
    matched: bool,
    epsilon: float,
    i: Ints,
    j: Ints,
) -> None:
    """Write the pairs down; the arrays have room for all of them."""
    n = 0
    for q in range(len(starts) - 1):
        for lower in range(starts[q], starts[q + 1]):
            for upper in range(lower + 1, starts[q + 1]):
                gap = score[upper] - score[lower]
                if gap > epsilon:
                    break
                if member[lower] == member[upper] or (member[lower] != matched and gap > 0):
                    continue
                i[n] = lower if member[lower] else upper
                j[n] = upper if member[lower] else lower
                n += 1
