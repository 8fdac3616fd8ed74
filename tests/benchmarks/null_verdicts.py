"""How often is a ranker without bias called biased, whatever the threshold?

    python tests/benchmarks/null_verdicts.py [--repetitions 2000] [--jobs 2]

An outcome has the chance that its score says, in the group and outside it. The group and its
complement are audited with Holm's adjustment. Prints a Markdown table with Monte-Carlo errors: how
often either is called undervalued or overvalued, and how often an interval below 0 is kept back
because its mirror image is not. Exits with 1 if a threshold gives verdicts above nominal.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from functools import partial

import numpy as np

from repeating import AT_MOST_5, bounded, error, options, repeat, show
from simulated import source_of, sums, thresholds, verdicts, without_bias

EPSILONS = (0.0005, 0.002, 0.01, 0.05, 0.2, 1.0)
SIZES = (300, 3000)
HEADER = ["queries", "ε", "undervalued", "overvalued", "either", "Monte-Carlo error", "bound"]
HEADER += ["below 0, no verdict"]


def said(queries, seed):
    """Return for each threshold whether a group is undervalued, overvalued, below 0 without either.

    The last threshold is each group's own first percentile.
    """
    source = source_of(without_bias(np.random.default_rng(seed), queries=queries))
    parts = [verdicts(sums(source, EPSILONS)), verdicts(sums(source, thresholds(source)[:, None]))]
    verdict, reason = (np.concatenate(part) for part in zip(*parts, strict=True))
    marks = (verdict == "undervalued", verdict == "overvalued", reason == "bracket")
    return np.array([mark.any(axis=1) for mark in marks]).T


def rows(queries, repetitions, jobs):
    """Return the cells of every threshold, and whether they hold."""
    found = np.array(repeat(partial(said, queries), repetitions, jobs))
    table = []
    for k, epsilon in enumerate([*EPSILONS, "first percentile"]):
        under, over, bracket = found[:, k].mean(axis=0).tolist()
        either = float(found[:, k, :2].any(axis=1).mean())
        good, text = bounded(either, repetitions, AT_MOST_5)
        cells = [under, over, either, error(either, repetitions), text, bracket]
        table.append(([queries, str(epsilon), *cells], good))
    return table


def main() -> int:
    """Run the simulations, print the table, return the exit code."""
    chosen = options(__doc__)
    print(f"{chosen.repetitions} repetitions, 10 items a query, nominal 5 %\n")
    found = [row for size in SIZES for row in rows(size, chosen.repetitions, chosen.jobs)]
    show(HEADER, found)
    return 0 if all(good for _, good in found) else 1


if __name__ == "__main__":
    sys.exit(main())
