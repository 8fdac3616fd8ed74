"""How many pairs there are near a gap of 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import FloatArray, IntArray
from mpc_lab.inference.fitting import polynomial

BINS = 20


@dataclass(frozen=True)
class GapDensity:
    """Density of the gaps above 0 and up to a width; ties stand apart.

    Attributes
    ----------
    edges : array (bin + 1,)
        From 0 to the width; a bin holds its right end.
    counts : array of int64 (bin,)
    density : array (bin,)
        Share of all pairs for each unit of the gap.
    at_zero : float
        The density at 0, from the right; NaN where there is no pair.
    n_ties : int
        Pairs with a gap of 0, which have no density.
    """

    edges: FloatArray
    counts: IntArray
    density: FloatArray
    at_zero: float
    n_ties: int


def gap_density(
    gap: FloatArray, width: float, *, total: int | None = None, bins: int = BINS
) -> GapDensity:
    """Estimate the density of gaps near 0.

    A histogram of equal bins; at 0, where half of a kernel would look at nothing, the intercept
    of a line through the heights at the middles of the bins, weighted by 1 − Δ/width.

    Parameters
    ----------
    gap : array (pair,)
        Gaps of pairs, all those up to `width`.
    width : float
        How far from 0 to look.
    total : int, optional
        Number of all pairs, whatever their gap; by default those given.
    bins : int
        Number of bins, at least 2.

    Returns
    -------
    GapDensity

    References
    ----------
    McCrary (2008), Manipulation of the running variable in the regression discontinuity design:
    a density test.

    Examples
    --------
    >>> import numpy as np
    >>> found = gap_density(np.linspace(0.0005, 0.9995, 1000), 0.2)
    >>> round(found.at_zero, 3), int(found.counts.sum())
    (1.0, 200)
    """
    if not (np.isfinite(width) and width > 0) or bins < 2:
        raise MpcError(
            f"A density needs a width above 0 and at least 2 bins, got {width} and {bins}."
        )
    gap = np.asarray(gap, dtype=np.float64)
    number = len(gap) if total is None else total
    edges = np.linspace(0.0, width, bins + 1)
    near = gap[(gap > 0) & (gap <= width)]
    place = np.searchsorted(edges, near, side="left") - 1
    counts = np.bincount(place, minlength=bins).astype(np.int64)
    # In units of the width, at which heights can be written whatever the scale of scores is.
    heights = np.asarray(counts * (bins / number) if number else np.full(bins, np.nan), np.float64)
    middles = (np.arange(bins) + 0.5) / bins
    line = polynomial(middles, heights, 1 - middles, degree=1)
    with np.errstate(over="ignore"):
        density = np.asarray(heights / width, np.float64)
        at_zero = float("nan") if line is None or not number else line.coefficients[0] / width
    return GapDensity(edges, counts, density, max(float(at_zero), 0.0), int((gap == 0).sum()))
