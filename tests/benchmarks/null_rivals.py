"""How often does a rival measure flag a group where there is nothing to flag?

    python tests/benchmarks/null_rivals.py [--repetitions 1000] [--jobs 2]

The rows of 300 lists of 10 are in one of six groups at random, whatever their scores and outcomes;
the outcome has the chance that the score says, or has nothing to do with it. Prints a Markdown
table with Monte-Carlo errors: how often each measure flags any of the six groups, adjusted over
groups as `audit.compare` does and by itself; then how often some measure flags some group, and how
often a sentence explains why one of them disagrees with MPC, which flags nothing here. Exits with 1
if an adjusted measure or the sentence is above 5 %, give or take two Monte-Carlo errors.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from functools import partial

import numpy as np

from mpc_lab.comparators.base import Case
from mpc_lab.comparators.registry import adjust, compare, compare_mpc, explain
from mpc_lab.pairing.log import sort_rows
from repeating import AT_MOST_5, bounded, error, options, repeat, show_designs
from simulated import LEVEL, ranking_of

GROUPS, LISTS, SHOWN, TOP = 6, 300, 10, 3
DESIGNS = {"the score is right": True, "the score says nothing": False}
SILENT = compare_mpc(0.0, 1.0, -2.0, 2.0, 1.0, 100.0, "inconclusive")
HEADER = ["outcomes", "measure", "flags any group", "Monte-Carlo error", "bound", "unadjusted"]


def null_log(rng, informative):
    """Return a log whose six groups are drawn at random."""
    score = rng.random((LISTS, SHOWN))
    outcome = rng.random(score.shape) < (score if informative else 0.5)
    label = rng.integers(0, GROUPS, score.shape)
    item = np.arange(score.size).reshape(score.shape)
    return ranking_of(item, score, outcome, {f"g{k}": label == k for k in range(GROUPS)})


def measured(informative, seed):
    """Return measures' names, whether each flags any group before and after, and the sentence."""
    ranking = null_log(np.random.default_rng(seed), informative)
    log = sort_rows(ranking)
    plain = [compare(Case(ranking, group, k=TOP, log=log)) for group in ranking.groups]
    made = adjust(plain, LEVEL)
    before, after = (
        [any(rivals[m].flagged for rivals in every) for m in range(len(plain[0]))]
        for every in (plain, made)
    )
    groups = zip(ranking.groups, made, strict=True)
    explained = not all(explain(group, SILENT, rivals).agree for group, rivals in groups)
    return [one.name for one in plain[0]], before, after, explained


def rows(name, informative, repetitions, jobs):
    """Return the cells of every measure and of all together, and whether they hold."""
    found = repeat(partial(measured, informative), repetitions, jobs)
    names = found[0][0]
    before, after = (np.array([one[k] for one in found], dtype=float) for k in (1, 2))
    explained = np.array([one[3] for one in found], dtype=float)
    lines = [(measure, after[:, m], before[:, m], AT_MOST_5) for m, measure in enumerate(names)]
    some = "some measure"
    lines.append((some, after.max(axis=1), before.max(axis=1), None))
    lines.append(("a sentence explains it", explained, np.full(1, np.nan), AT_MOST_5))
    table = []
    for measure, adjusted, plain, limit in lines:
        rate = float(adjusted.mean())
        good, bound = (True, "") if limit is None else bounded(rate, repetitions, limit)
        cells = [name, measure, rate, error(rate, repetitions), bound, float(plain.mean())]
        table.append((cells, good))
    return table


def main() -> int:
    """Run the simulations, print the table, return the exit code."""
    chosen = options(__doc__, repetitions=1000)
    print(f"{chosen.repetitions} repetitions, six groups, nominal 5 %\n")
    return show_designs(HEADER, DESIGNS, rows, chosen)


if __name__ == "__main__":
    sys.exit(main())
