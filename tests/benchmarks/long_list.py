"""One list of a million items: does an audit stay within a minute and 2 GiB?

    python tests/benchmarks/long_list.py [--rows 1000000] [--items none|alone|shared] [--curve]

Twenty groups, the threshold at the first percentile of gaps: up to a thousand million pairs a
group. ``alone``: every item is in one row; ``shared``: ten lists of a tenth of the rows, with the
same items. Prints time, memory and pairs. Exits with 1 beyond 60 s or 2 GiB; ``--curve`` also asks
for the curve, which is not limited.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

import mpc_lab as mpc
from machine import described
from timing import report

GROUPS = 20
SECONDS, GIBIBYTES = 60.0, 2.0


def long_list(rows: int, items: str) -> mpc.Ranking:
    rng = np.random.default_rng(0)
    score = rng.normal(size=rows)
    frame = {"query": np.zeros(rows, dtype=np.int64), "score": score}
    frame["outcome"] = (rng.normal(size=rows) + score > 0).astype(np.int64)
    names = {"query": "query", "score": "score", "outcome": "outcome"}
    if items != "none":
        frame["item"], names["item"] = np.arange(rows), "item"
    if items == "shared":
        frame["query"], frame["item"] = np.divmod(np.arange(rows), rows // 10)
    groups = [f"g{k:02d}" for k in range(GROUPS)]
    for share, group in zip(np.linspace(0.02, 0.3, GROUPS), groups, strict=True):
        frame[group] = rng.random(rows) < share
    return mpc.Ranking(frame, **names, group=groups)


def peak() -> float:
    """Return the most memory this process ever held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> int:
    """Run the audit, print what it took, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--items", choices=["none", "alone", "shared"], default="alone")
    parser.add_argument("--curve", action="store_true")
    options = parser.parse_args()
    mpc.audit(long_list(3_000, options.items), progress=False)
    ranking = long_list(options.rows, options.items)
    wall, worked = time.perf_counter(), time.process_time()
    audit = mpc.audit(ranking, progress=False)
    wall, worked = time.perf_counter() - wall, time.process_time() - worked
    pairs = audit.headline.n_pairs.values
    print(f"one query of {options.rows:,} rows, 20 groups, items {options.items}; {described()}\n")
    print(
        f"{pairs.min():,} to {pairs.max():,} pairs a group, {worked:.1f} s of processors, dyads "
        f"taken once: {bool(audit.attrs['dyads_once'])}\n"
    )
    holds = report([("seconds", wall, SECONDS), ("memory, GiB", peak(), GIBIBYTES)])
    if options.curve:
        start = time.perf_counter()
        points = audit.curve.sizes["epsilon"]
        print(f"curve of {points} points: {time.perf_counter() - start:.1f} s, {peak():.2f} GiB")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
