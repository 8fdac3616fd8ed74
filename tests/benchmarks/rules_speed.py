"""What the four rules of the paper cost, beside a sort of the same rows.

    python tests/benchmarks/rules_speed.py [--rows 1000000] [--runs 3] [--processor]

20 overlapping groups, lists of about 100 items, items in many queries: the default audit of each
rule and of all four, and the curve of all groups once the audit is there, as multiples of
``np.lexsort`` in one run; exits with 1 above what is allowed. `--processor` divides processor time
by the threads, for a machine on which others work.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

import mpc_lab as mpc
from logs import overlapping_groups
from mpc_lab.pairing.kernels import n_threads
from timing import report

FOUR = ["baseline", "boosted", "demoted", "calibrated"]
MOST = {"baseline": 2.2, "four": 25.0, "curve": 10.0}


def main() -> int:
    """Measure, print the ratios, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--processor", action="store_true")
    options = parser.parse_args()
    rows, threads = options.rows, n_threads()

    def least(call, share: int) -> float:
        clock = time.process_time if options.processor else time.perf_counter
        call()
        found = []
        for _ in range(options.runs):
            start = clock()
            call()
            found.append(clock() - start)
        return min(found) / (share if options.processor else 1)

    frame = overlapping_groups(rows, queries=rows // 100, items=rows // 20)
    columns = {name: name for name in ("query", "item", "score", "outcome")}
    ranking = mpc.Ranking(frame, **columns, group="groups", group_sep="|")
    query, score = frame["query"].to_numpy(), frame["score"].to_numpy()
    sort = least(lambda: np.lexsort((score, query)), 1)
    print(f"{rows:,} rows, {threads} threads; np.lexsort {sort:.3f} s\n")

    def audit(rules: list[str]) -> mpc.Audit:
        return mpc.audit(ranking, scoring_rules=rules, progress=False)

    def ratio(rules: list[str]) -> float:
        return least(lambda: audit(rules), threads) / sort

    lines = [(rule, ratio([rule]), MOST.get(rule)) for rule in FOUR]
    lines.append(("the four rules", ratio(FOUR), MOST["four"]))
    fresh = iter([audit(["baseline"]) for _ in range(options.runs + 1)])
    curve = least(lambda: next(fresh).curve, threads) / sort
    lines.append(("the curve of all groups, after it", curve, MOST["curve"]))
    good = report(lines)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\npeak memory {peak:,.0f} MB")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
