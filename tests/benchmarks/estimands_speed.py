"""What it costs that pairs do not count alike, beside the same sums of pairs that do.

    python tests/benchmarks/estimands_speed.py [--rows 1000000]

One thread, everything warmed once, the least processor time of three runs, as ratios in one run:
20 overlapping groups, items in many queries, union variance; at the headline's threshold and on 50
thresholds. Exits with 1 above the ratio allowed.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import sys

import numpy as np

import mpc_lab as mpc
from logs import overlapping_groups
from mpc_lab.engines.memory import MemorySource
from mpc_lab.pairing.measure import choose_thresholds, measure
from mpc_lab.pairing.terms import ESTIMANDS, Quantile, Terms
from mpc_lab.scoring import Baseline
from mpc_lab.vocabulary import swept_modes
from sides_speed import least
from timing import report

HEADLINE, CURVE = 1.3, 4.0
MODES = swept_modes(["matched"])


def main() -> int:
    """Measure, print the ratios, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    frame = overlapping_groups(rows, queries=rows // 50, items=rows // 100)
    columns = {name: name for name in ("query", "item", "score", "outcome")}
    ranking = mpc.Ranking(frame, **columns, group="groups", group_sep="|")
    rule = Baseline()
    own = choose_thresholds(MemorySource(ranking, ranking.groups), rule, (Quantile(0.01),))[0]
    grid = np.geomspace(own.epsilon.min() / 10, own.epsilon.max() * 10, 50)
    edges = {
        "headline": (own.epsilon[:, None], HEADLINE),
        "curve": (np.tile(grid, (len(own.epsilon), 1)), CURVE),
    }
    found = []
    for where, (thresholds, most) in edges.items():
        times = {}
        for estimand in ESTIMANDS:
            source = MemorySource(ranking, ranking.groups, terms=Terms(estimand=estimand))
            times[estimand] = least(
                lambda source=source, thresholds=thresholds: measure(
                    source, rule, thresholds, modes=MODES, items=True
                )
            )
        for estimand in ESTIMANDS[1:]:
            what = f"{estimand}, {where}: beside pairs"
            found.append((what, times[estimand] / times["pairs"], most))
    print(f"{rows:,} rows\n")
    return 0 if report(found) else 1


if __name__ == "__main__":
    sys.exit(main())
