"""The standard deviation of scores, the same to the last bit in any order and any parts.

A boost by a share of it moves scores, and distances that round differently make different pairs, so
every engine must find the same number. Numbers are added as whole numbers by exponent, which is
exact.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mpc_lab.vocabulary import Floats, Ints

_DIGITS, _LOW_DIGITS = 53, 26
_SMALLEST, _LARGEST = -1080, 1025  # exponents of floating-point numbers are between these
_EXTREME = 400  # squares of numbers with such an exponent can be added
_AT_ONCE = 1 << 24  # this many numbers of 27 binary digits add up exactly as a float64
NOTHING: Ints = np.zeros((3, _LARGEST - _SMALLEST), dtype=np.int64)


def exact_sum(values: Floats) -> Ints:
    """Return the sum of numbers in a form that adds exactly with ``+``."""
    total = NOTHING.copy()
    for start in range(0, len(values), _AT_ONCE):
        part = values[start : start + _AT_ONCE]
        finite = np.isfinite(part)
        if not finite.all():
            total[2, 0] += len(part) - int(finite.sum())
            part = part[finite]
        mantissa, exponent = np.frexp(part)
        digits = (mantissa * 2.0**_DIGITS).astype(np.int64)
        at = exponent - _SMALLEST
        for row, half in enumerate((digits >> _LOW_DIGITS, digits & ((1 << _LOW_DIGITS) - 1))):
            total[row] += np.bincount(at, half, minlength=total.shape[1]).astype(np.int64)
    return total


def exact_mean(total: Ints, count: int) -> float:
    """Return the sum divided by the count, rounded once; infinite if a number was."""
    if total[2, 0]:
        return math.inf
    whole = 0
    for place in np.flatnonzero(total[:2].any(axis=0)):
        digits = (int(total[0, place]) << _LOW_DIGITS) + int(total[1, place])
        whole += digits << int(place)
    return float(Fraction(whole, count) * Fraction(2) ** (_SMALLEST - _DIGITS))


def squared_deviations(values: Floats, mean: float) -> Ints:
    """Return the exact sum of the rounded squared deviations."""
    with np.errstate(over="ignore"):
        return exact_sum((values - mean) ** 2)


def standard_deviation(values: Floats) -> float:
    """Return the population standard deviation, the same in any order."""
    exponent = math.frexp(float(np.abs(values).max(initial=0.0)))[1]
    if abs(exponent) > _EXTREME:
        # Squares would overflow or vanish; a power of two changes no digit.
        return math.ldexp(standard_deviation(np.ldexp(values, -exponent)), exponent)
    mean = exact_mean(exact_sum(values), len(values))
    return math.sqrt(exact_mean(squared_deviations(values, mean), len(values)))
