"""How often does a group without meaning look biased? Permuted groups of two logs.

    MPC_LAB_DATA=folder python tests/benchmarks/placebo.py [--permutations 1000] [--seed 0]

Membership in each genre of MovieLens 1M is shuffled inside each user's list and audited at the
genre's own threshold, the first percentile of its gaps; the same for the two groups of the
synthetic example. Prints Markdown tables with Monte-Carlo errors: the placebos' own test by random
signs, and what the variances of an audit make of the same placebos. Exits with 1 if the mean of
the estimates is more than four of its errors from 0 for some group, or if, over all groups of a
log, the placebos' own test does not reject 4.5 to 5.5 %, give or take three Monte-Carlo errors.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np

from mpc_lab.datasets import movielens_ranking, synthetic
from mpc_lab.inference.placebo import Placebo, placebo
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.pairs import count_matched, nearest_distance

LEVEL = 0.95
ACCEPTED = (0.045, 0.055)


def placebos(ranking, group: str, permutations: int, seed: int) -> tuple[Placebo, Placebo]:
    """Return the same permutations of a group, as audited by union and by naive variance."""
    member = ranking.member(group)
    log = sort_rows(ranking, None, member.astype(np.uint64)[None])
    epsilon = nearest_distance(log, math.ceil(count_matched(log) / 100))
    rows = (log, member[log.row], ranking.query_code[log.row])
    how = {"epsilon": epsilon, "level": LEVEL, "permutations": permutations, "seed": seed}
    return (
        placebo(*rows, item=log.item, cluster="union", **how),
        placebo(*rows, cluster="naive", **how),
    )


def error(rate: float, n: int) -> float:
    """Return the Monte-Carlo error of a rate, at least that of the nominal one."""
    return math.sqrt(max(rate * (1 - rate), LEVEL * (1 - LEVEL)) / n)


def share(rate: float, n: int) -> str:
    return f"{rate:.4f} ± {error(rate, n):.4f}"


def table(ranking, permutations: int, seed: int) -> bool:
    """Print the table of one log, return whether it holds."""
    print("| group | mean | sd | rejected | as union | query | naive | group itself | its p |")
    print("|---|---|---|---|---|---|---|---|---|")
    rates, centred = [], True
    for k, group in enumerate(ranking.groups):
        one, naive = placebos(ranking, group, permutations, seed + k)
        known = one.estimate[np.isfinite(one.estimate)]
        mean, spread = known.mean(), known.std()
        centred &= abs(mean) <= 4 * spread / math.sqrt(len(known))
        rates.append(
            [one.rejected, one.audited_rejected, one.query_rejected, naive.audited_rejected]
        )
        cells = " | ".join(share(rate, one.n_estimable) for rate in rates[-1])
        print(
            f"| {group} | {mean:+.4f} | {spread:.4f} | {cells} "
            f"| {one.observed:+.4f} | {one.observed_p_value:.3f} |",
            flush=True,
        )
    pooled, number = np.mean(rates, axis=0), permutations * len(rates)
    print(f"| all | | | {' | '.join(share(rate, number) for rate in pooled)} | | |\n")
    slack = 3 * error(float(pooled[0]), number)
    return centred and ACCEPTED[0] - slack <= pooled[0] <= ACCEPTED[1] + slack


def main() -> int:
    """Run the permutations, print the tables, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--permutations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logs = {"MovieLens 1M": movielens_ranking("1m"), "synthetic": synthetic(2_000, seed=1)}
    holds = True
    for name, ranking in logs.items():
        permutations = options.permutations * (1 if len(ranking.groups) > 2 else 9)
        print(f"{name}: {permutations} permutations of each group, nominal {1 - LEVEL:.2f}\n")
        holds &= table(ranking, permutations, options.seed)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
