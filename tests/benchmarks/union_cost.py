"""What union variance costs beside the query-only sweep, and how much memory it takes.

    python tests/benchmarks/union_cost.py

1,000,000 rows, 20 groups, 50 ε up to the first percentile, 50,000 items; one thread, the least of
three runs after one to warm up.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = "1"

import resource
import sys

import numpy as np

import mpc_lab as mpc
from logs import overlapping_groups
from machine import described
from mpc_lab.engines.memory import MemorySource
from mpc_lab.pairing.measure import choose_thresholds, insert_thresholds, measure
from mpc_lab.scoring import Baseline
from mpc_lab.vocabulary import MATCHED, MIRRORED
from timing import least_of, report

MEMORY_GIB = 2.0


def main() -> int:
    frame = overlapping_groups(1_000_000, queries=10_000, items=50_000)
    columns = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
    ranking = mpc.Ranking(frame, **columns, group="groups", group_sep="|")
    source, rule = MemorySource(ranking, ranking.groups), Baseline()
    epsilon = choose_thresholds(source, rule, (mpc.Quantile(0.01),))[0].epsilon
    grid = np.linspace(epsilon.max() / 50, epsilon.max(), 50)
    edges, _, _ = insert_thresholds(epsilon, grid)

    def sweep(items: bool) -> float:
        how = {"modes": (MATCHED, MIRRORED), "items": items}
        return least_of(3, lambda: measure(source, rule, edges, **how))[0]

    query, union = sweep(False), sweep(True)
    mpc.audit(ranking, epsilon=grid, cluster="union", progress=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"1,000,000 rows, one thread; {described('numpy', 'numba')}\n")
    print(f"query-only sweep: {query:.2f} s\n")
    held = report(
        [
            ("sums for union variance / query-only sweep", union / query, 8.0),
            ("peak memory of the process, GiB", peak, MEMORY_GIB),
        ]
    )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
