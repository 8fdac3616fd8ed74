"""Student's t and the normal distribution, by the tails."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from mpc_lab.inference.arrays import FloatArray


def two_sided_p(statistic: FloatArray, dof: FloatArray) -> FloatArray:
    """Return the two-sided p-value of a t statistic; NaN where either is NaN."""
    return np.asarray(2 * stdtr(dof, -np.abs(statistic)), dtype=np.float64)


def critical(tail: FloatArray | float, dof: FloatArray | float) -> FloatArray:
    """Return the t quantile with probability `tail` above it.

    Asked for by the tail, because 1 − tail loses digits where the tail is small.
    """
    return np.asarray(-stdtrit(dof, np.asarray(tail)), dtype=np.float64)


def normal_critical(tail: FloatArray | float) -> FloatArray:
    """Return the normal quantile with probability `tail` above it."""
    return np.asarray(-ndtri(np.asarray(tail)), dtype=np.float64)
