"""What the difference of two rules costs, beside the audit of both.

    python tests/benchmarks/difference_speed.py [--rows 1000000] [--runs 3] [--store]

20 overlapping groups, lists of about 100 items, items in many queries, union variance: the
candidate's score is that of the log with some noise. Processor time, everything warmed once, the
least of some runs, as a ratio in one run; exits with 1 above what is allowed.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import mpc_lab as mpc
from logs import overlapping_groups
from machine import described
from sharded import current_commit, print_and_store
from timing import report

MOST = 1.5
STORED = Path(__file__).resolve().parents[2] / "docs/explanation/measured/difference-speed.md"


def measure(rows: int, runs: int) -> list[tuple[str, float, float | None]]:
    """Return the ratio of the difference to the audit."""
    frame = overlapping_groups(rows, queries=rows // 100, items=rows // 20)
    frame["new"] = frame["score"] + 0.1 * np.random.default_rng(1).normal(size=rows)
    columns = {name: name for name in ("query", "item", "score", "outcome")}
    rules = ["baseline", mpc.Column("new")]
    ranking = mpc.Ranking(frame, **columns, group="groups", group_sep="|")

    def least(call) -> float:
        call()
        found = []
        for _ in range(runs):
            start = time.process_time()
            call()
            found.append(time.process_time() - start)
        return min(found)

    made: list[mpc.Audit] = []

    def audit() -> None:
        made[:] = [mpc.audit(ranking, scoring_rules=rules, progress=False)]

    both = least(audit)
    difference = least(lambda: made[0].difference("new", "baseline"))
    print(f"{rows:,} rows, 20 groups, 1 thread: the audit of two rules takes {both:.2f} s\n")
    return [("difference of two rules / audit of both", difference / both, MOST)]


def main() -> int:
    """Measure, print the ratio, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--store", action="store_true", help=f"write the table to {STORED.name}")
    chosen = parser.parse_args()
    with print_and_store(STORED if chosen.store else None):
        print(f"{described()}; commit {current_commit()}")
        good = report(measure(chosen.rows, chosen.runs))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
