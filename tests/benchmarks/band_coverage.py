"""Coverage of whole curves by the simultaneous band over ε.

    [MPC_LAB_DATA=folder] python tests/benchmarks/band_coverage.py [--repetitions 2000] [--jobs 2]

The grid is the one an audit takes by default; on MovieLens 1M, which needs the folder that holds
it, the part of it up to the headline. Prints a Markdown table with Monte-Carlo errors: how often
the band holds the whole true curve, how often the intervals for one point at a time all do, and
the mean width of the band beside Bonferroni's and beside theirs. Exits with 1 if the band covers
less or more often than it may, or is no narrower than Bonferroni's.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from functools import partial

import numpy as np

from designs import study
from repeating import bounded, error, repeat
from simulated import band_over

HEADER = ["design", "points", "band covers", "Monte-Carlo error", "bound", "pointwise covers"]
HEADER += ["width / Bonferroni", "width / pointwise"]


def held(design, seed):
    """Return whether band and pointwise intervals hold the curve, widths as ratios, and points."""
    source = design.draw(seed)
    grid = design.grid(source)
    truth = np.array([design.truth(float(epsilon)) for epsilon in grid])
    found = band_over(source, grid)
    known = np.isfinite(found["band"][0])
    inside = {
        name: ((low <= truth) & (truth <= high))[known] for name, (low, high) in found.items()
    }
    width = {name: (high - low)[known] for name, (low, high) in found.items()}
    return (
        inside["band"].all(),
        inside["pointwise"].all(),
        (width["band"] / width["Bonferroni"]).mean(),
        (width["band"] / width["pointwise"]).mean(),
        known.sum(),
    )


def rows(name, design, repetitions, jobs):
    """Return the cells of a design, and whether its bound holds."""
    found = np.array(repeat(partial(held, design), repetitions, jobs), dtype=float)
    band, pointwise, bonferroni, beside, points = found.mean(axis=0).tolist()
    good, text = bounded(band, repetitions, design.bound)
    cells = [f"{points:.1f}", band, error(band, repetitions), text, pointwise, bonferroni, beside]
    return [([name, *cells], good and bonferroni < 1)]


if __name__ == "__main__":
    sys.exit(study(__doc__, HEADER, rows))
