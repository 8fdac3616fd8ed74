"""Does the certificate ever certify a boost that lowers DCG, or one past where the mean is 0?

    python tests/benchmarks/certificate.py [--repetitions 200] [--queries 100000] [--small 1000]

The expected change of DCG is taken from queries of the synthetic example drawn apart, with expected
outcomes in place of outcomes. Small logs have a mean difference that falls with the distance, and
few queries to fill bins. Prints Markdown tables. Exits with 1 if some certified boost lowers the
expected DCG, if none is certified, or if more than 5 % of small logs of some size certify a boost
past the distance where the mean is 0, give or take two Monte-Carlo errors.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from mpc_lab.datasets.synthetic import ITEMS_PER_QUERY, SHARE_OF_TYPE_1, SLOPES
from mpc_lab.inference.certificate import certify
from repeating import AT_MOST_5, bounded, show

ALPHAS = np.arange(0, 0.31, 0.01)
CROSSINGS = (0.6, 0.75)
SIZES = (35, 50, 120, 400)
WEIGHTS = 1 / np.log2(np.arange(ITEMS_PER_QUERY) + 2)


def draw(queries: int, rng: np.random.Generator):
    """Return score, membership in group "1" and expected outcome, as tables (query, item)."""
    kind = rng.integers(0, 2, size=(queries, 1))
    member = rng.random((queries, ITEMS_PER_QUERY)) < SHARE_OF_TYPE_1[kind]
    score = rng.random((queries, ITEMS_PER_QUERY))
    slope = SLOPES[kind, np.where(member, 0, 1)]
    mean = np.where(score < 0.5, slope * score, 1 - (2 - slope) * (1 - score))
    return score, member, mean


def dcg(score, mean) -> np.ndarray:
    """Return the expected DCG of each query."""
    order = np.argsort(-score, axis=1)
    return np.take_along_axis(mean, order, axis=1) @ WEIGHTS


def expected_change(queries: int = 400_000) -> tuple[np.ndarray, np.ndarray]:
    """Return the change of the expected DCG by a boost of each α, and its standard error."""
    score, member, mean = draw(queries, np.random.default_rng(10**6))
    before = dcg(score, mean)
    changes = [dcg(score + alpha * member, mean) - before for alpha in ALPHAS]
    return np.mean(changes, axis=1), np.std(changes, axis=1) / np.sqrt(queries)


def certified(queries: int, seed: int):
    """Return the certificate of one draw."""
    rng = np.random.default_rng(seed)
    score, member, mean = draw(queries, rng)
    outcome = (rng.random(mean.shape) < mean).astype(np.float64)
    order = np.argsort(score, axis=1)
    score, member, outcome = (
        np.take_along_axis(part, order, axis=1) for part in (score, member, outcome)
    )
    lower, upper = np.triu_indices(ITEMS_PER_QUERY, 1)
    query, pair = np.nonzero(member[:, lower] & ~member[:, upper])
    i, j = (query, lower[pair]), (query, upper[pair])
    return certify(score[j] - score[i], outcome[i] - outcome[j], query)


def falling(queries: int, crossing: float, seed: int):
    """Return the certificate of a log whose mean difference at a distance is crossing − distance.

    Distances are uniform on [0, 1], and a query has 8 pairs on average.
    """
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), 1 + rng.poisson(7, queries))
    distance = rng.random(len(query))
    noise = rng.normal(size=len(query)) + 0.3 * rng.normal(size=queries)[query]
    return certify(distance, crossing - distance + noise, query)


def past_crossing(queries: int, crossing: float, seed: int) -> tuple[int, bool, bool]:
    """Return the bins, whether the boost goes too far, and whether it would with any bins."""
    found = falling(queries, crossing, seed)
    above = np.logical_and.accumulate(found.bins.band_low > 0)
    bins = len(found.edges) - 1
    return bins, found.alpha > crossing, bool(found.edges[int(above.sum())] > crossing)


def small_logs(repetitions: int) -> bool:
    """Print how often small logs certify too much, return whether it is seldom enough."""
    table = []
    for crossing in CROSSINGS:
        for queries in SIZES:
            every = [past_crossing(queries, crossing, seed) for seed in range(repetitions)]
            bins, past, without = (float(part) for part in np.mean(every, axis=0))
            good, bound = bounded(past, repetitions, AT_MOST_5)
            table.append(([crossing, queries, bins, without, past, bound], good))
    print(f"\n{repetitions} small logs of each kind\n")
    show(["mean is 0 at", "queries", "bins", "too far from any bins", "too far", "bound"], table)
    return all(good for _, good in table)


def main() -> int:
    """Run the simulation, print the tables, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--small", type=int, default=1000, help="how many small logs of each kind")
    options = parser.parse_args()
    change, error = expected_change()
    print("| boost | change of expected DCG |\n|---|---|")
    for k in range(0, len(ALPHAS), 3):
        print(f"| {ALPHAS[k]:.2f} | {change[k]:+.5f} ± {error[k]:.5f} |")
    found = [certified(options.queries, seed) for seed in range(options.repetitions)]
    print(f"\n{options.repetitions} repetitions of {options.queries} queries\n")
    print("| by | largest boost: least, mean, most | certifies some | lowers DCG |")
    print("|---|---|---|---|")
    harmful = {}
    for name, values in (
        ("distance bins", np.array([one.alpha for one in found])),
        ("MPC, which is no certificate", np.array([one.mpc_epsilon for one in found])),
    ):
        harmful[name] = int((np.interp(values, ALPHAS, change) < 0).sum())
        print(
            f"| {name} | {values.min():.4f}, {values.mean():.4f}, {values.max():.4f} "
            f"| {(values > 0).mean():.3f} | {harmful[name]} of {len(values)} |"
        )
    seldom = small_logs(options.small)
    useful = any(one.alpha > 0 for one in found)
    return 0 if harmful["distance bins"] == 0 and useful and seldom else 1


if __name__ == "__main__":
    sys.exit(main())
