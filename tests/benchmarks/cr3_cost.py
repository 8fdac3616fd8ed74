"""What CR3 costs beside union variance without it.

    python tests/benchmarks/cr3_cost.py

1,000,000 rows, 20 groups, 50,000 items; one thread, processor time, the least of five runs after
one to warm up, with and without in turn. Without it the second sweep of the headline is left out,
that of the curve weighs no query, and items are not weighed when they are closed.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = "1"

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np

import mpc_lab as mpc
from logs import overlapping_groups
from machine import described
from mpc_lab.engines.memory import MemorySource
from mpc_lab.pairing import items
from mpc_lab.pairing.measure import (
    choose_thresholds,
    insert_thresholds,
    measure,
    measure_items,
    weigh_curve,
    weigh_headline,
)
from mpc_lab.scoring import Baseline
from mpc_lab.vocabulary import MATCHED, MIRRORED
from timing import report

AT_MOST = 1.3


def nothing_of(moments, group, rows):
    """Stand for what items are weighed by: no row has any weight, so none is weighed."""
    whole = items_whole_of(moments, group, rows)
    return whole._replace(weight=np.zeros_like(whole.weight), pairs=np.zeros(0))


items_whole_of = items.whole_of


def cost(call: Callable[[bool], None], runs: int = 5) -> float:
    """Return the processor time of a call with CR3 to that without, the least of some runs each."""
    least = {True: float("inf"), False: float("inf")}
    for run in range(runs + 1):
        for weighed in least:
            start = time.process_time()
            call(weighed)
            if run:
                least[weighed] = min(least[weighed], time.process_time() - start)
    return least[True] / least[False]


def main() -> int:
    frame = overlapping_groups(1_000_000, queries=10_000, items=50_000)
    columns = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
    ranking = mpc.Ranking(frame, **columns, group="groups", group_sep="|")
    source, rule = MemorySource(ranking, ranking.groups), Baseline()
    epsilon = choose_thresholds(source, rule, (mpc.Quantile(0.01),))[0].epsilon
    grid = np.linspace(epsilon.max() / 50, epsilon.max(), 50)
    edges, _, own = insert_thresholds(epsilon, grid)
    swept = measure(source, rule, edges, modes=(MATCHED, MIRRORED), items=False)
    headline = swept.at(own)

    def at_headline(weighed: bool) -> None:
        measure(source, rule, edges, modes=(MATCHED, MIRRORED), items=False)
        if weighed:
            weigh_headline(source, rule, measure_items(source, rule, headline))
        else:
            with patch.object(items, "whole_of", nothing_of):
                measure_items(source, rule, headline)

    def on_curve(weighed: bool) -> None:
        if weighed:
            weigh_curve(source, rule, measure_items(source, rule, swept))
            return
        with patch.object(items, "whole_of", nothing_of):
            found = measure_items(source, rule, swept)
        # Slots without a pair are not weighed, and the sweep goes on to the band.
        weigh_curve(source, rule, replace(found, pairs=np.zeros_like(found.pairs)))

    print(f"1,000,000 rows, one thread; {described('numpy', 'numba')}\n")
    held = report(
        [
            ("headline with CR3 / without", cost(at_headline), AT_MOST),
            ("curve with CR3 / without", cost(on_curve), AT_MOST),
        ]
    )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
