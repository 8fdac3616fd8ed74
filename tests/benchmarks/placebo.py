"""How often does a group without meaning look biased? Permuted genres of MovieLens 1M.

    MPC_LAB_DATA=folder python tests/benchmarks/placebo.py [--permutations 500]

Membership in each genre is shuffled inside each user's list and audited at the genre's own
threshold, the first percentile of its gaps. Prints a Markdown table with Monte-Carlo errors.
Exits with 1 if the mean of the estimates is more than four of its errors from 0 for some genre,
or if, over all genres, more are rejected than the nominal 5 % and three errors.
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
    print("| genre | mean | sd | rejected: union | query | naive | genre itself | its p |")
    print("|---|---|---|---|---|---|---|---|")
    p_values: dict[str, list[np.ndarray]] = {cluster: [] for cluster in CLUSTERS}
    centred = True
    for seed, group in enumerate(ranking.groups):
        found = placebos(ranking, group, options.permutations, seed)
        for cluster in CLUSTERS:
            p_values[cluster].append(found[cluster].p_value[np.isfinite(found[cluster].p_value)])
        one = found["query"]
        known = one.estimate[np.isfinite(one.estimate)]
        mean, spread = known.mean(), known.std()
        centred &= abs(mean) <= 4 * spread / math.sqrt(len(known))
        rates = " | ".join(share(found[c].rejected, found[c].n_estimable) for c in CLUSTERS)
        print(
            f"| {group} | {mean:+.4f} | {spread:.4f} | {rates} "
            f"| {one.observed:+.4f} | {one.observed_p_value:.3f} |"
        )
    pooled = {c: np.concatenate(p_values[c]) for c in CLUSTERS}
    rates = {c: float((p <= 1 - LEVEL).mean()) for c, p in pooled.items()}
    cells = " | ".join(share(rates[c], len(pooled[c])) for c in CLUSTERS)
    print(f"| all | | | {cells} | | |")
    slack = 3 * math.sqrt(LEVEL * (1 - LEVEL) / len(pooled["union"]))
    return 0 if centred and rates["union"] <= 1 - LEVEL + slack else 1


if __name__ == "__main__":
    sys.exit(main())
