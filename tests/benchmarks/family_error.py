"""Family-wise error over 20 overlapping groups, and what each adjustment finds where there is bias.

    python tests/benchmarks/family_error.py [--repetitions 2000] [--jobs 2]

300 queries list 20 items each out of 200, neighbouring groups have most of their items in common,
and the score says nothing. Prints a Markdown table with Monte-Carlo errors: how often a method
rejects anything where no group has a gap, and how much it rejects where some have. Exits with 1 if
the error of Holm or Romano–Wolf is above nominal, or if Romano–Wolf ever rejects less than Holm.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from functools import partial

import numpy as np

from mpc_lab.inference.verdicts import METHODS
from repeating import AT_MOST_5, bounded, error, options, repeat, show_designs
from simulated import overlapping_groups, rejections, source_of

EPSILON = 0.05
DESIGNS = {
    "no gap, noise alone": {},
    "no gap, item shocks": {"item_sd": 0.5},
    "gaps, item shocks": {"item_sd": 0.5, "effect": 0.3},
}
BOUND = ("holm", "romano_wolf")
HEADER = ["design", "method", "rejects any", "Monte-Carlo error", "bound"]
HEADER += ["rejections", "rejects what Holm rejects"]


def rejected(design, seed):
    """Return an array (method, group) of what is rejected in one log."""
    source = source_of(overlapping_groups(np.random.default_rng(seed), **design))
    found = rejections(source, EPSILON)
    return np.array([found[method] for method in METHODS])


def rows(name, design, repetitions, jobs):
    """Return the cells of every method, and whether they hold."""
    found = np.array(repeat(partial(rejected, design), repetitions, jobs))
    holm = found[:, METHODS.index("holm")]
    table = []
    for k, method in enumerate(METHODS):
        here = found[:, k]
        rate = float(here.any(axis=1).mean())
        no_less = bool((here >= holm).all())
        good, bound = True, ""
        if method in BOUND and "effect" not in design:
            good, bound = bounded(rate, repetitions, AT_MOST_5)
        mean = float(here.sum(axis=1).mean())
        cells = [rate, error(rate, repetitions), bound, mean, "always" if no_less else "no"]
        table.append(([name, method, *cells], good and (no_less or method != "romano_wolf")))
    return table


def main() -> int:
    """Run the simulations, print the table, return the exit code."""
    chosen = options(__doc__)
    print(f"{chosen.repetitions} repetitions, 20 groups, nominal 5 %\n")
    return show_designs(HEADER, DESIGNS, rows, chosen)


if __name__ == "__main__":
    sys.exit(main())
