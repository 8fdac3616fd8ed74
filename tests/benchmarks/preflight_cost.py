"""What the preflight costs beside the audit that it belongs to, in one run.

    python tests/benchmarks/preflight_cost.py

A ratio above 0.3 is a failure.
"""

from __future__ import annotations

import sys
import time

import mpc_lab as mpc
from logs import overlapping_groups
from timing import report

LIMIT = 0.3
ROUNDS = 3


def main() -> int:
    """Print the ratio and return whether it is within the limit."""
    frame = overlapping_groups(1_000_000, queries=10_000, items=50_000)
    ranking = mpc.Ranking(
        frame,
        query="query",
        item="item",
        score="score",
        outcome="outcome",
        group="groups",
        group_sep="|",
    )
    mpc.audit(ranking, progress=False)
    audits, checks = [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        audit = mpc.audit(ranking, progress=False)
        middle = time.perf_counter()
        states = audit.preflight["state"]
        audits.append(middle - start)
        checks.append(time.perf_counter() - middle)
    ratio = min(checks) / min(audits)
    print(
        f"1,000,000 rows, {len(states)} checks; audit {min(audits):.2f} s, preflight "
        f"{min(checks):.2f} s\n"
    )
    return 0 if report([("preflight beside its audit", ratio, LIMIT)]) else 1


if __name__ == "__main__":
    sys.exit(main())
