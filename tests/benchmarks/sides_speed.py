"""What both sides of a tie cost beside the sweep that every audit makes.

    python tests/benchmarks/sides_speed.py [--rows 1000000]

One thread, everything warmed once, the least processor time of three runs, as ratios in one run:
20 overlapping groups, 50 thresholds, items in many queries. Exits with 1 above the ratio allowed.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import sys
import time

import numpy as np

import mpc_lab as mpc
from logs import overlapping_groups
from mpc_lab.engines.memory import MemorySource
from mpc_lab.pairing.measure import choose_thresholds, measure, measure_items
from mpc_lab.pairing.measure_sides import compare_sides
from mpc_lab.pairing.terms import Quantile
from mpc_lab.scoring import Baseline
from mpc_lab.vocabulary import swept_modes
from timing import report

MOST = {"symmetric": 1.25, "symmetric, positions": 1.8, "item sums": 1.6}
ONE, BOTH = swept_modes(["matched"]), swept_modes(["symmetric"])


def least(call) -> float:
    """Return the least processor time of three runs, after one that warms."""
    call()
    found = []
    for _ in range(3):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def main() -> int:
    """Measure, print the ratios, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    frame = overlapping_groups(rows, queries=rows // 50, items=rows // 100)
    shown = frame.groupby("query")["score"].rank(ascending=False, method="first").astype(int)
    columns = {name: name for name in ("query", "item", "score", "outcome")}
    columns |= {"group": "groups", "group_sep": "|"}
    plain = MemorySource(*_ready(mpc.Ranking(frame, **columns)))
    placed = mpc.Ranking(frame.assign(place=shown), **columns, position="place")
    placed = MemorySource(*_ready(placed))
    own = choose_thresholds(plain, Baseline(), (Quantile(0.01),))[0].epsilon
    grid = np.geomspace(own.min() / 10, own.max() * 10, 50)
    edges = np.tile(grid, (len(own), 1))
    rule = Baseline()

    def swept(source, modes):
        return measure(source, rule, edges, modes=modes, items=False, count_items=False)

    def summed(source, modes):
        at = measure(source, rule, own[:, None], modes=modes, items=False, count_items=False)
        return lambda: measure_items(source, rule, at)

    at_own = measure(placed, rule, own[:, None], modes=BOTH, items=False, count_items=False)

    def placed_sweep():
        swept(placed, BOTH)
        compare_sides(placed, rule, at_own)

    base = least(lambda: swept(plain, ONE))
    items = least(summed(plain, ONE))
    found = {
        "symmetric": least(lambda: swept(plain, BOTH)) / base,
        "symmetric, positions": least(placed_sweep) / base,
        "item sums": least(summed(plain, BOTH)) / items,
    }
    print(f"{rows:,} rows; sweep {base:.2f} s, item sums at the headline {items:.2f} s\n")
    return 0 if report([(name, ratio, MOST[name]) for name, ratio in found.items()]) else 1


def _ready(ranking: mpc.Ranking):
    return ranking, ranking.groups


if __name__ == "__main__":
    sys.exit(main())
