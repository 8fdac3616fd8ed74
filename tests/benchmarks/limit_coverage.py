"""Coverage of the limit ε → 0 on the synthetic example, beside plain estimates at a threshold.

    python tests/benchmarks/limit_coverage.py [--repetitions 500] [--queries 20000]

Prints a Markdown table with Monte-Carlo errors. Exits with 1 if the interval of the limit covers
the truth, 0.06875, at a rate that is more than three of these errors from 95 %, or if the plain
interval at ε = 0.1 covers it as often as half the time.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict

import numpy as np

from mpc_lab.datasets import synthetic
from mpc_lab.datasets.synthetic import synthetic_truth
from mpc_lab.inference.bandwidth import choose_bandwidth
from mpc_lab.inference.clustered import estimate_listed, pair_codes
from mpc_lab.inference.limit import limit
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.pairs import pair_rows
from mpc_lab.vocabulary import MODES

LEVEL = 0.95
THRESHOLDS = (0.02, 0.1)


def pairs(log, member, query, mode: str):
    """Return gap, difference and query of all pairs."""
    i, j = pair_rows(log, member, MODES[mode].side, np.inf)
    return np.abs(log.score[i] - log.score[j]), log.outcome[i] - log.outcome[j], query[i]


def intervals(queries: int, seed: int) -> dict[str, tuple[float, float, float]]:
    """Return (estimate, low, high) of one draw, by what was estimated."""
    ranking = synthetic(queries=queries, seed=seed)
    log = sort_rows(ranking)
    member, query = ranking.member("1")[log.row], ranking.query_code[log.row]
    matched = pairs(log, member, query, "matched")
    h = choose_bandwidth(*matched).value
    found = {}
    for mode in ("matched", "mirrored"):
        listed = matched if mode == "matched" else pairs(log, member, query, mode)
        one = limit(*listed, bandwidth=h, level=LEVEL)
        found[f"limit, {mode}"] = (one.estimate, one.ci_low, one.ci_high)
    gap, d, query = matched
    for epsilon in THRESHOLDS:
        near = gap <= epsilon
        plain = estimate_listed(d[near], 0.0, pair_codes(query[near]), cluster="query", level=LEVEL)
        found[f"plain, ε = {epsilon}"] = tuple(
            float(x) for x in (plain.estimate, plain.ci_low, plain.ci_high)
        )
    return found


def main() -> int:
    """Run the simulation, print the table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--queries", type=int, default=20_000)
    options = parser.parse_args()
    rows = defaultdict(list)
    for seed in range(options.repetitions):
        for name, interval in intervals(options.queries, seed).items():
            rows[name].append(interval)
    truth = synthetic_truth(0)
    print(f"{options.repetitions} repetitions of {options.queries} queries, truth {truth:.5f}\n")
    print("| estimate | mean | sd | half width | covers | excludes 0 |\n|---|---|---|---|---|---|")
    rates = {}
    for name, values in rows.items():
        estimate, low, high = np.array(values).T
        covers = rates[name] = ((low <= truth) & (truth <= high)).mean()
        error = np.sqrt(max(covers * (1 - covers), LEVEL * (1 - LEVEL)) / len(estimate))
        half = (high - low).mean() / 2
        print(
            f"| {name} | {estimate.mean():.4f} | {estimate.std():.4f} | {half:.4f} "
            f"| {covers:.3f} ± {error:.3f} | {((low > 0) | (high < 0)).mean():.3f} |"
        )
    slack = 3 * np.sqrt(LEVEL * (1 - LEVEL) / options.repetitions)
    held = all(abs(rates[f"limit, {mode}"] - LEVEL) <= slack for mode in ("matched", "mirrored"))
    return 0 if held and rates["plain, ε = 0.1"] < 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
