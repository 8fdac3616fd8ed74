"""Does the rank of a group among its placebos hold its level, and are placebos rejected too often?

    [MPC_LAB_DATA=folder] python tests/benchmarks/placebo.py [--repetitions 1000]
                                                          [--permutations 39] [--draws 2000]

First, logs of a shared catalogue without any gap: how often the group's own p-value among its
placebos is at most 5 %, by item as `audit.balance` does and by row, in three designs. Then, where
MovieLens 1M is in the folder, placebos of each genre at the genre's own threshold, the first
percentile of its distances: what they centre on, and how often the union variance rejects them.
Prints Markdown tables with Monte-Carlo errors. Exits with 1 if the group's own p-value rejects more
often than 5 %, give or take two Monte-Carlo errors, or placebos of MovieLens more than 7 %.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import math
import sys
from functools import partial

import numpy as np

from mpc_lab.datasets import movielens_ranking
from mpc_lab.inference.balance import placebo
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.pairs import count_matched, nearest_distance
from repeating import AT_MOST_5, bounded, error, repeat, show
from simulated import ITEMS, QUERIES, SHOWN, ranking_of, shown_items

A = 0.05
EPSILON = 0.05
MOST_REJECTED = 0.07
DESIGNS = {
    "item shocks": {"item_sd": 0.5},
    "item shocks, members shown more often": {"item_sd": 0.5, "popular": True},
    "item shocks, 10 members": {"item_sd": 0.5, "in_group": 10},
}


def without_gap(rng, *, in_group=80, item_sd=0.0, popular=False):
    """Return a log whose outcomes are shocks of items and noise, whatever the group.

    Where `popular`, items are shown unequally often, and members more often than others.
    """
    weight = np.linspace(1, 5, ITEMS) if popular else np.ones(ITEMS)
    item = shown_items(rng)
    if popular:
        rank = rng.exponential(size=(QUERIES, ITEMS)) / weight
        item = np.argsort(rank, axis=1)[:, :SHOWN]
    chance = weight / weight.sum()
    members = rng.choice(ITEMS, in_group, replace=False, p=chance)
    outcome = item_sd * rng.normal(size=ITEMS)[item] + rng.normal(size=item.shape)
    return ranking_of(item, rng.random(item.shape), outcome, {"g": np.isin(item, members)})


def own_p(design, permutations, seed):
    """Return the p-value of the group among its placebos, by item and by row."""
    ranking = without_gap(np.random.default_rng(seed), **design)
    log = sort_rows(ranking)
    rows = (log, ranking.member("g")[log.row], ranking.query_code[log.row])
    how = {"epsilon": EPSILON, "permutations": permutations, "seed": seed}
    return [
        placebo(*rows, item=log.item, cluster="union", **how).observed_p_value,
        placebo(*rows, **how).observed_p_value,
    ]


def levels(repetitions: int, permutations: int) -> bool:
    """Print how often the group's own p-value rejects, return whether by item it holds."""
    table = []
    for name, design in DESIGNS.items():
        p = np.array(repeat(partial(own_p, design, permutations), repetitions, 1))
        by_item, by_row = (float(rate) for rate in (p <= A).mean(axis=0))
        good, bound = bounded(by_item, repetitions, AT_MOST_5)
        table.append(([name, by_item, error(by_item, repetitions), bound, by_row], good))
    print(f"{repetitions} logs, {permutations} placebos each, nominal {A:.2f}\n")
    show(["design", "rejected by item", "Monte-Carlo error", "bound", "by row"], table)
    return all(good for _, good in table)


def movielens(draws: int, seed: int = 0) -> bool:
    """Print how placebos of each genre fare, return whether few enough are rejected."""
    ranking = movielens_ranking("1m")
    each = math.ceil(draws / len(ranking.groups))
    print(f"\nMovieLens 1M, {each} placebos of each genre, nominal {A:.2f}\n")
    print("| genre | centre on | sd | rejected | between | genre itself | its p |")
    print("|---|---|---|---|---|---|---|")
    rejected = known = 0
    for k, group in enumerate(ranking.groups):
        member = ranking.member(group)
        log = sort_rows(ranking, None, member.astype(np.uint64)[None])
        epsilon = nearest_distance(log, math.ceil(count_matched(log) / 100))
        found = placebo(
            log,
            member[log.row],
            ranking.query_code[log.row],
            epsilon=epsilon,
            item=log.item,
            cluster="union",
            permutations=each,
            seed=seed + k,
        )
        rejected += round(found.rejected * found.n_estimable)
        known += found.n_estimable
        print(
            f"| {group} | {found.expected:+.3f} | {np.nanstd(found.estimate):.3f} "
            f"| {found.rejected:.3f} | {found.rejected_low:.3f} to {found.rejected_high:.3f} "
            f"| {found.observed:+.3f} | {found.observed_p_value:.3f} |",
            flush=True,
        )
    rate = rejected / known
    print(f"| all | | | {rate:.4f} ± {error(rate, known):.4f} | | | |")
    return rate <= MOST_REJECTED


def main() -> int:
    """Run the simulations, print the tables, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--permutations", type=int, default=39)
    parser.add_argument("--draws", type=int, default=2000)
    options = parser.parse_args()
    holds = levels(options.repetitions, options.permutations)
    if os.environ.get("MPC_LAB_DATA"):
        holds &= movielens(options.draws)
    else:
        print("\nMovieLens 1M is left out: MPC_LAB_DATA does not name the folder that holds it.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
