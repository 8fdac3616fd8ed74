"""Coverage of 95 % intervals where pairs share queries, items or both.

    [MPC_LAB_DATA=folder] python tests/benchmarks/union_coverage.py [--repetitions 2000] [--jobs 2]

Prints a Markdown table with Monte-Carlo errors. Exits with 1 if the intervals with union variance
cover less or more often than they may. The designs on MovieLens 1M need the folder that holds it.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from functools import partial

import numpy as np

from designs import study
from repeating import bounded, error, repeat
from simulated import covers, sums

FAMILIES = ("union", "query", "query, Q − 1", "naive")
HEADER = ["design", "ε", *FAMILIES, "Monte-Carlo error", "not estimable", "bound of union"]


def held(design, seed):
    """Return for each threshold and family whether the interval holds the truth; None without."""
    truth = np.array([design.truth(epsilon) for epsilon in design.epsilons])
    found = covers(sums(design.draw(seed), design.epsilons), truth)
    return [[found[family][k] for family in FAMILIES] for k in range(len(truth))]


def rows(name, design, repetitions, jobs):
    """Return for each threshold the cells of a design, and whether its bound holds."""
    found = np.array(repeat(partial(held, design), repetitions, jobs))
    table = []
    for k, epsilon in enumerate(design.epsilons):
        here = [[hit for hit in hits if hit is not None] for hits in found[:, k].T]
        shares, n = [float(np.mean(hits)) for hits in here], len(here[0])
        good, text = bounded(shares[0], n, design.bound)
        cells = [*shares, error(shares[0], n), repetitions - n, text]
        table.append(([name, f"{epsilon:.2g}", *cells], good))
    return table


if __name__ == "__main__":
    sys.exit(study(__doc__, HEADER, rows))
