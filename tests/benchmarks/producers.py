"""Coverage of 95 % intervals where the items of a seller have something in common.

    python tests/benchmarks/producers.py [--repetitions 1000] [--jobs 2] [--keep FILE] [--store]

80 sellers with 10 items each; 300 queries list 20 items each. Outcomes have a shock of the seller
and noise, and nothing to do with scores: the true gap is 0. Prints a Markdown table with
Monte-Carlo errors. Exits with 1 if intervals by query and producer cover less than 93 %.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import io
import sys
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

from mpc_lab.ranking import sum_by
from mpc_lab.results.assemble import infer
from repeating import AT_LEAST_93, bounded, error, show
from sharded import add_shards, commit, run_shard
from simulated import LEVEL, ranking_of, shown_items, source_of, sums

SELLERS, ITEMS_EACH, IN_GROUP = 80, 10, 32
SELLER_SD, EPSILON = 0.5, 0.05
STORED = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "measured" / "producers.md"
KINDS = ("query", "union over items", "union over producers")


def sellers_with_many_items(rng, *, seller_sd=SELLER_SD):
    """Return a log in which the sellers of group "g" are neither better nor worse than others."""
    item = shown_items(rng, items=SELLERS * ITEMS_EACH)
    seller = item // ITEMS_EACH
    outcome = seller_sd * rng.normal(size=SELLERS)[seller] + rng.normal(size=item.shape)
    score, member = rng.random(item.shape), seller < IN_GROUP
    return ranking_of(item, score, outcome, {"g": member}, producer=seller)


def held(seed):
    """Return for each kind of clustering whether the interval of matched pairs holds 0."""
    ranking = sellers_with_many_items(np.random.default_rng(90_000 + seed))
    by_item = sums(source_of(sum_by(ranking, "item")), [EPSILON])
    by_producer = sums(source_of(ranking), [EPSILON])
    found = [
        infer(by_item, cluster="query", level=LEVEL),
        infer(by_item, cluster="union", level=LEVEL),
        infer(by_producer, cluster="union", level=LEVEL),
    ]
    return [float(cells.ci_low[0, 0, 0] <= 0 <= cells.ci_high[0, 0, 0]) for cells in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_shards(parser)
    parser.add_argument("--store", action="store_true", help="write the table into the docs")
    chosen = parser.parse_args()
    seen = np.array(run_shard(f"sellers {SELLER_SD}", held, chosen))
    n = len(seen)
    rows = []
    for kind, rate in zip(KINDS, seen.mean(axis=0).tolist(), strict=True):
        good, text = bounded(rate, n, AT_LEAST_93) if kind == KINDS[-1] else (True, "")
        rows.append(([kind, rate, error(rate, n), text], good))
    page = io.StringIO()
    with redirect_stdout(page):
        show(["clustered by", "coverage", "Monte-Carlo error", "bound"], rows)
    text = f"{n:,} logs, nominal 95 %; commit {commit(chosen.keep)}\n\n{page.getvalue()}"
    print(text)
    if chosen.store:
        STORED.write_text(text, encoding="utf-8")
    return 0 if all(good for _, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
