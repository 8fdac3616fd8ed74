"""How often does a group without meaning look biased? Permuted genres of MovieLens 1M.

    MPC_LAB_DATA=folder python tests/benchmarks/placebo.py [--permutations 500]

Membership in each genre is shuffled inside each user's list and audited at the genre's own
threshold, the first percentile of its gaps. Prints a Markdown table with Monte-Carlo errors.
Exits with 1 if the mean of the estimates is more than four of its errors from 0 for some genre,
or if, over all genres, the placebos' own test does not reject 4 to 6 %.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np

from mpc_lab.datasets import movielens_ranking
from mpc_lab.inference.placebo import Placebo, placebo
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.reach import count_matched, nearest_gap

LEVEL = 0.95
ACCEPTED = (0.04, 0.06)
CLUSTERS = ("union", "query", "naive")


def placebos(ranking, group: str, permutations: int, seed: int) -> dict[str, Placebo]:
    """Return the same permutations of a genre, clustered in different ways."""
    member = ranking.member(group)
    log = sort_rows(ranking, None, member.astype(np.uint64)[None])
    epsilon = nearest_gap(log, math.ceil(count_matched(log) / 100))
    return {
        cluster: placebo(
            log,
            member[log.row],
            ranking.query_code[log.row],
            epsilon=epsilon,
            item=log.item,
            cluster=cluster,
            level=LEVEL,
            permutations=permutations,
            seed=seed,
        )
        for cluster in CLUSTERS
    }


def share(rate: float, n: int) -> str:
    """Return a rate with the Monte-Carlo error it would have at its nominal value."""
    return f"{rate:.3f} ± {math.sqrt(max(rate * (1 - rate), LEVEL * (1 - LEVEL)) / n):.3f}"


def main() -> int:
    """Run the permutations, print the table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--permutations", type=int, default=500)
    options = parser.parse_args()
    ranking = movielens_ranking("1m")
    print(f"{options.permutations} permutations of each genre, nominal {1 - LEVEL:.2f}\n")
    print("| genre | mean | sd | rejected | as union | query | naive | genre itself | its p |")
    print("|---|---|---|---|---|---|---|---|---|")
    rates, centred = [], True
    for seed, group in enumerate(ranking.groups):
        found = placebos(ranking, group, options.permutations, seed)
        one = found["query"]
        known = one.estimate[np.isfinite(one.estimate)]
        mean, spread = known.mean(), known.std()
        centred &= abs(mean) <= 4 * spread / math.sqrt(len(known))
        rates.append([one.rejected, *(found[c].audited_rejected for c in CLUSTERS)])
        cells = " | ".join(share(rate, one.n_estimable) for rate in rates[-1])
        print(
            f"| {group} | {mean:+.4f} | {spread:.4f} | {cells} "
            f"| {one.observed:+.4f} | {one.observed_p_value:.3f} |",
            flush=True,
        )
    pooled = np.mean(rates, axis=0)
    number = options.permutations * len(rates)
    print(f"| all | | | {' | '.join(share(rate, number) for rate in pooled)} | | |")
    return 0 if centred and ACCEPTED[0] <= pooled[0] <= ACCEPTED[1] else 1


if __name__ == "__main__":
    sys.exit(main())
