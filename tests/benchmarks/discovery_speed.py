"""What discovery of several hundred slices costs beside a default audit of the same log.

    python tests/benchmarks/discovery_speed.py [--queries 50000] [--levels 8] [--attributes 4]

A log of 20 items a query (50,000 queries: 1,000,000 rows) out of 20,000. The audit has the levels
of the first attribute as groups and all defaults. Both are timed in one run, after a small log has
had the kernels compiled. Prints seconds, their ratio, the slices, and the peak of memory.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

import mpc_lab as mpc
from machine import described

SHOWN, ITEMS = 20, 20_000
COLUMNS = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}


def draw(queries, attributes, levels, seed=0):
    """Return a log and the names of its attributes."""
    rng = np.random.default_rng(seed)
    item = (rng.integers(0, ITEMS, (queries, 1)) + np.arange(SHOWN) * 977) % ITEMS
    item, score = item.ravel(), rng.random(queries * SHOWN)
    shock = 0.3 * rng.normal(size=ITEMS)
    log = {
        "query": np.repeat(np.arange(queries), SHOWN),
        "item": item,
        "score": score,
        "outcome": score + shock[item] + rng.normal(size=len(item)),
    }
    names = [f"a{k}" for k in range(attributes)]
    for name in names:
        log[name] = np.array([f"l{k}" for k in range(levels)])[rng.integers(0, levels, ITEMS)[item]]
    return log, names


def timed(call):
    """Return what a call gives, and its seconds."""
    start = time.perf_counter()
    found = call()
    return found, time.perf_counter() - start


def main() -> int:
    """Time both, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=50_000)
    parser.add_argument("--attributes", type=int, default=4)
    parser.add_argument("--levels", type=int, default=8)
    chosen = parser.parse_args()
    small, names = draw(2_000, 2, 2)
    ranking = mpc.Ranking(small, **COLUMNS, group=names[0])
    mpc.audit(ranking, progress=False)
    mpc.discover(ranking, names, progress=False).minimal()
    log, names = draw(chosen.queries, chosen.attributes, chosen.levels)
    ranking = mpc.Ranking(log, **COLUMNS, group=names[0])
    _, audit = timed(lambda: mpc.audit(ranking, progress=False))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found, seconds = timed(lambda: mpc.discover(ranking, names, progress=False))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(described(), "\n")
    print("| rows | groups | audit, s | slices | discover, s | ratio | peak before, after, GiB |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {ranking.n_rows:,} | {chosen.levels} | {audit:.1f} | {found.data.sizes['slice']} "
        f"| {seconds:.1f} | {seconds / audit:.1f} | {before:.1f}, {after:.1f} |"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
