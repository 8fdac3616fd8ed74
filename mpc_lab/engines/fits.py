"""Distinct scores and the sums of their outcomes, for the rule ``calibrated``."""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.arrays import Flags, Floats


def levels(score: Floats, outcome: Floats, here: Flags) -> tuple[Floats, Floats, Floats]:
    """Return the distinct scores of some rows, the sums of their outcomes, and how many they are.

    Parameters
    ----------
    score, outcome : float64 arrays
        Scores ascend.
    here : bool array
        Which rows.
    """
    mine, y = score[here], outcome[here]
    first = np.flatnonzero(np.diff(mine, prepend=np.nan) != 0)
    if not len(first):
        return np.empty(0), np.empty(0), np.empty(0)
    count = np.diff(first, append=len(mine)).astype(np.float64)
    return mine[first], np.add.reduceat(y, first), count
