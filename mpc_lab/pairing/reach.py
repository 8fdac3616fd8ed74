"""How far from a gap of 0 one can look before there are too many pairs to list."""

from __future__ import annotations

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.selection import count_pairs, count_up_to, kth_smallest_gaps
from mpc_lab.pairing.walk import PlainWalk

MOST_LISTED = 50_000_000


def count_matched(log: Log, epsilon: float | None = None) -> int:
    """Count the ``matched`` pairs of the first group of a log, up to a gap or all of them."""
    if epsilon is None:
        return int(count_pairs(PlainWalk(log), 0, 1)[0])
    return int(count_up_to(PlainWalk(log), 0, np.array([epsilon]))[0])


def nearest_gap(log: Log, most: int) -> float:
    """Return the gap up to which there are `most` ``matched`` pairs of the first group.

    The pairs tied at that gap come along. Where there are no more than `most`, it is the largest
    gap; where there is none, NaN.
    """
    total = np.array([count_matched(log)])
    return float(kth_smallest_gaps(PlainWalk(log), 0, total, np.minimum(total, most))[0])


def check_listable(log: Log, epsilon: float) -> int:
    """Return the number of ``matched`` pairs up to a gap, or raise where it is out of reach."""
    pairs = count_matched(log, epsilon)
    if pairs > MOST_LISTED:
        raise MpcError(
            f"{pairs:,} pairs have a gap of at most {epsilon:.4g}, and at most {MOST_LISTED:,} can "
            "be listed; ask for smaller gaps, or, where scores have few values, for the estimate "
            "at epsilon=0."
        )
    return pairs
