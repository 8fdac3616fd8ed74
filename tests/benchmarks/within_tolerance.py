"""How often is a gap as large as the tolerance called within tolerance, whatever the threshold?

    python tests/benchmarks/within_tolerance.py [--repetitions 2000] [--jobs 2]

The outcome rises with the score, and that of items of the group is higher by a known gap at every
score. Matched pairs are pushed down by the rise and mirrored pairs up, both more at a larger ε.
Prints a Markdown table with Monte-Carlo errors: how often the interval of matched pairs alone is
inside the tolerance, and how often the verdict is ``within tolerance``, for a gap as large as the
tolerance and for no gap. Exits with 1 if the first is called within above 2.5 % at some threshold.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from functools import partial

import numpy as np

from mpc_lab.results.assemble import infer
from repeating import Bound, bounded, error, options, repeat, show
from simulated import LEVEL, rising_outcomes, source_of, sums, verdicts

EPSILONS = (0.005, 0.02, 0.05, 0.1)
TOLERANCE = 0.05
# The two one-sided tests of an equivalence at 95 %, each at 2.5 %.
AT_MOST = Bound(0.0, 0.025, errors=2)
HEADER = ["ε", "matched alone", "verdict", "Monte-Carlo error", "bound", "verdict, no gap"]


def called_within(gap, seed):
    """Return for each threshold whether matched pairs alone, and whether the verdict, say within.

    There is one group, so that nothing is adjusted.
    """
    moments = sums(source_of(rising_outcomes(np.random.default_rng(seed), gap=gap)), EPSILONS)
    cells = infer(moments.of_modes(["matched"]), cluster="union", level=LEVEL)
    alone = (cells.ci_low >= -TOLERANCE) & (cells.ci_high <= TOLERANCE)
    verdict, _ = verdicts(moments, tolerance=TOLERANCE)
    return np.stack([alone[0, 0], verdict[:, 0] == "within tolerance"], axis=1)


def main() -> int:
    """Run the simulations, print the table, return the exit code."""
    chosen = options(__doc__)
    print(f"{chosen.repetitions} repetitions, tolerance {TOLERANCE:g}\n")
    at_edge, at_zero = (
        np.mean(repeat(partial(called_within, gap), chosen.repetitions, chosen.jobs), axis=0)
        for gap in (TOLERANCE, 0.0)
    )
    rows = []
    for k, epsilon in enumerate(EPSILONS):
        alone, verdict = at_edge[k].tolist()
        good, text = bounded(verdict, chosen.repetitions, AT_MOST)
        spread = error(verdict, chosen.repetitions)
        rows.append(([str(epsilon), alone, verdict, spread, text, float(at_zero[k, 1])], good))
    show(HEADER, rows)
    return 0 if all(good for _, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
