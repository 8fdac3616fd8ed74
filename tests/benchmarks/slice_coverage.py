"""Do the intervals of segments and single positions cover, and does Holm hold over all of them?

    python tests/benchmarks/slice_coverage.py [--repetitions 1000] [--jobs 2]

300 queries in three segments list 20 items each out of 200, outcomes have nothing to do with
scores, and the true gap is 0 in every segment and at every position. Prints a Markdown table with
Monte-Carlo errors: how often intervals cover by the variance an audit takes and by queries alone,
how often the test that segments agree rejects, and how often any cell is rejected after Holm. Exits
with 1 if the intervals cover less than 93 %, or a test rejects more often than its level.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from functools import partial

import numpy as np

from mpc_lab.inference.slices import by_position, by_segment, pair_table
from mpc_lab.inference.verdicts import adjust
from repeating import AT_LEAST_93, AT_MOST_5, bounded, options, repeat, show_designs
from simulated import LEVEL, shared_catalogue

EPSILON = 0.05
SEGMENTS = 3
DESIGNS = {
    "item shocks": {"item_sd": 0.5},
    "item and query × group shocks": {"item_sd": 0.5, "side_sd": 0.5},
    "item shocks, 10 items in g": {"item_sd": 0.5, "in_group": 10},
}
HEADER = ["design", "cells", "covers", "Monte-Carlo error", "bound", "by query alone"]
HEADER += ["any after Holm", "bound", "segments disagree", "bound"]


def inside(cells):
    """Return the share of the estimable cells whose interval holds 0."""
    held = (cells.ci_low <= 0) & (cells.ci_high >= 0)
    return float(held[cells.estimable].mean())


def rejected(cells):
    """Return whether Holm rejects any cell."""
    made = adjust(cells.p_value, cells.estimate, cells.std_error, cells.dof, method="holm")
    return bool((made.p_adjusted <= 1 - LEVEL).any())


def held(design, seed):
    """Return for segments and positions: coverage as audited, by query, any rejected, disagree."""
    ranking = shared_catalogue(np.random.default_rng(seed), segments=SEGMENTS, **design)
    pairs = pair_table(ranking, "g", EPSILON)
    found = {c: by_segment(ranking, "g", EPSILON, cluster=c) for c in ("union", "query")}
    place = {c: by_position(pairs, cluster=c) for c in ("union", "query")}
    rows = []
    for by, p in ((found, found["union"].p_value), (place, float("nan"))):
        union, query = (by[cluster].estimates for cluster in ("union", "query"))
        rows.append([inside(union), inside(query), rejected(union), p <= 1 - LEVEL])
    return rows


def rows(name, design, repetitions, jobs):
    """Return the cells of segments and positions, and whether they hold."""
    found = np.array(repeat(partial(held, design), repetitions, jobs), dtype=float)
    table = []
    for k, cells in enumerate(("segments", "positions")):
        covers, query, any_cell, disagree = found[:, k].mean(axis=0).tolist()
        spread = float(found[:, k, 0].std() / np.sqrt(repetitions))
        good, bound = bounded(covers, repetitions, AT_LEAST_93)
        few, most = bounded(any_cell, repetitions, AT_MOST_5)
        agree, at_most = bounded(disagree, repetitions, AT_MOST_5)
        shown = [f"{disagree:.3f}", at_most] if cells == "segments" else ["", ""]
        line = [name, cells, covers, spread, bound, query, any_cell, most, *shown]
        table.append((line, good and few and agree))
    return table


def main() -> int:
    """Run the simulations, print the table, return the exit code."""
    chosen = options(__doc__, repetitions=1000)
    print(f"{chosen.repetitions} repetitions, nominal 95 %\n")
    return show_designs(HEADER, DESIGNS, rows, chosen)


if __name__ == "__main__":
    sys.exit(main())
