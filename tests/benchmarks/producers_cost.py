"""What clustering by producer costs beside clustering by item.

    python tests/benchmarks/producers_cost.py [--rows 1000000]

One thread, everything warmed once, the least processor time of three runs, as ratios in one run:
20 overlapping groups, items in many queries, ten items a producer. Exits with 1 above the ratio
allowed.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import sys

import mpc_lab as mpc
from logs import overlapping_groups
from sides_speed import least
from timing import report

MOST = 1.3


def main() -> int:
    """Measure, print the ratios, return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    frame = overlapping_groups(rows, queries=rows // 50, items=rows // 100)
    frame["producer"] = frame["item"] // 10
    columns = {name: name for name in ("query", "item", "producer", "score", "outcome")}
    by_producer = mpc.Ranking(frame, **columns, group="groups", group_sep="|")

    del columns["producer"]
    by_item = mpc.Ranking(frame, **columns, group="groups", group_sep="|")

    def headline(ranking: mpc.Ranking) -> float:
        return least(lambda: mpc.audit(ranking, progress=False))

    def curve(ranking: mpc.Ranking) -> float:
        return least(lambda: mpc.audit(ranking, progress=False).curve)

    items, producers = headline(by_item), headline(by_producer)
    print(f"{rows:,} rows, one thread; union over items: {items:.2f} s of processor time\n")
    held = report(
        [
            ("headline: union over producers / over items", producers / items, MOST),
            ("curve: union over producers / over items", curve(by_producer) / curve(by_item), MOST),
        ]
    )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
