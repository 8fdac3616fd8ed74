"""Scores made comparable inside and outside a group, each by its own isotonic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpc_lab.vocabulary import Floats

_DIGITS = 12


def isotonic(score: Floats, outcome: Floats) -> Floats:
    """Return the isotonic fit of outcome on score at each row, ties averaged first."""
    levels, at = np.unique(score, return_inverse=True)
    weight = np.bincount(at, minlength=len(levels)).astype(np.float64)
    total = np.bincount(at, weights=outcome, minlength=len(levels)).astype(np.float64)
    pool = Pool()
    pool.add(levels, total, weight)
    return pool.steps()(levels)[at]


def fit_sorted(score: Floats, outcome: Floats) -> Steps:
    """Return the isotonic fit of outcome on score; scores ascend, ties in the order of rows."""
    pool = Pool()
    fresh = np.diff(score, prepend=np.nan) != 0
    if fresh.all():
        pool.add(score, outcome, np.ones(len(score)))
        return pool.steps()
    at = np.cumsum(fresh) - 1
    # Added in the order of rows, which gives the same bits as the fit of unsorted rows.
    total = np.bincount(at, weights=outcome).astype(np.float64)
    pool.add(score[fresh], total, np.bincount(at).astype(np.float64))
    return pool.steps()


@dataclass(frozen=True)
class Steps:
    """An isotonic fit: the lowest score of each block, ascending, and its value."""

    start: Floats
    value: Floats

    def __call__(self, score: Floats) -> Floats:
        """Return the fit at scores that it was made with; NaN if there were none."""
        if not len(self.start):
            return np.full(len(score), np.nan)
        return self.value[np.maximum(np.searchsorted(self.start, score, side="right") - 1, 0)]


class Pool:
    """Fits scores that arrive in ascending parts, no score in two of them.

    Blocks that were pooled stay pooled whatever follows, so that only the blocks need to be stored.
    """

    def __init__(self) -> None:
        self.start, self.total, self.weight = np.empty(0), np.empty(0), np.empty(0)

    def add(self, score: Floats, total: Floats, weight: Floats) -> None:
        """Add scores, ascending without ties, the sums of their outcomes and their rows."""
        from scipy.optimize import isotonic_regression

        self.start = np.concatenate([self.start, score])
        self.total = np.concatenate([self.total, total])
        self.weight = np.concatenate([self.weight, weight])
        if len(self.start):
            mean = self.total / self.weight
            first = isotonic_regression(mean, weights=self.weight).blocks[:-1]
            self.start = self.start[first]
            self.total = np.add.reduceat(self.total, first)
            self.weight = np.add.reduceat(self.weight, first)

    def steps(self) -> Steps:
        """Return the fit."""
        return Steps(self.start, rounded(self.total / self.weight))


def rounded(values: Floats) -> Floats:
    """Return numbers with 12 significant digits."""
    size = np.abs(values)
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log10(size))
    shift = np.where(size > 0, np.clip(_DIGITS - 1 - exponent, -300, 300), 0.0)
    # Powers of ten with a positive exponent are exact where it matters; negative ones are not.
    power = 10.0 ** np.abs(shift)
    with np.errstate(over="ignore"):
        up = np.round(values * power) / power
        down = np.round(values / power) * power
    return np.where(shift >= 0, up, down)
