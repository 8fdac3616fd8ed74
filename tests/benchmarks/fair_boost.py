"""Does the fair boost find the root of the mean difference, and does its set hold it?

    python tests/benchmarks/fair_boost.py [--repetitions 1000] [--shard 1/1] [--keep seen.jsonl]
                                          [--table docs/explanation/measured/fair-boost.md]

Two designs with a known root. The paper's synthetic example at 5,000 queries. And a harder one:
groups with unlike scores, lists of unlike length, one query with a tenth of the pairs, a shock of
each query to its group, and scores rounded so that many are tied; its outcome rises by 1 with the
score and is 0.12 higher in the group, so the root is 0.12. Beside the set's width is the exact one:
twice the 95 % quantile of how far α* is from the root.

Exits with 1 if the root mean squared error of the example exceeds 0.02, if a set covers its root in
fewer than 93 % of logs, or if the median width in the example exceeds 0.12.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np

import mpc_lab as mpc
from mpc_lab.objective.offsets import fair_boost
from repeating import AT_LEAST_93, bounded
from sharded import add_shards, commit, run_shard

EXAMPLE_ROOT, HARDER_ROOT = 0.0734, 0.12
QUERIES, HEAVY, SHIFT = 1500, 220, 0.15


def example(seed: int) -> tuple[mpc.Ranking, str]:
    """Return the paper's synthetic example."""
    return mpc.datasets.synthetic(queries=5000, seed=seed), "1"


def harder(seed: int) -> tuple[mpc.Ranking, str]:
    """Return a log of unlike groups, one heavy query, shocks and ties."""
    rng = np.random.default_rng(10**6 + seed)
    length = 4 + rng.poisson(10 * rng.gamma(1.0, size=QUERIES))
    length[0] = HEAVY
    query = np.repeat(np.arange(QUERIES), length)
    member = rng.random(len(query)) < 0.3
    # Rounded to hundredths: a tie inside a list is common. The group's scores are lower.
    score = np.round(rng.beta(2, 2, len(query)) - SHIFT * member, 2)
    shock = 0.1 * rng.normal(size=QUERIES)
    noise = 0.5 * rng.normal(size=len(query))
    outcome = score + (HARDER_ROOT + shock[query]) * member + noise
    frame = {"query": query, "score": score, "outcome": outcome, "g": member}
    return mpc.Ranking(frame, query="query", score="score", outcome="outcome", group=["g"]), "g"


DESIGNS = {
    "synthetic example, 5,000 queries": (example, EXAMPLE_ROOT),
    "unlike groups, one heavy query, ties": (harder, HARDER_ROOT),
}


def seen(draw, truth: float, seed: int) -> tuple[float, ...]:
    """Return root, ends of the set, whether it covers, and whether it is bounded."""
    ranking, group = draw(seed)
    found = fair_boost(ranking, group, 0.02)
    if not found.confidence_set:
        return found.alpha, np.nan, np.nan, 0.0, 1.0
    ((low, high),) = found.confidence_set
    bounded_set = not (found.unbounded_low or found.unbounded_high)
    covers = low <= truth <= high
    return found.alpha, low, high, float(covers), float(bounded_set)


def summarise(every, truth: float) -> dict[str, float]:
    """Return what the logs of a design show."""
    alpha, low, high, covers, closed = np.array(every, dtype=float).T
    return {
        "logs": len(alpha),
        "without a root": float(np.isnan(alpha).mean()),
        "mean": float(np.nanmean(alpha)),
        "rmse": float(np.sqrt(np.nanmean((alpha - truth) ** 2))),
        "wrong sign": float((alpha < 0).mean()),
        "covers": float(covers.mean()),
        "width": float(np.nanmedian(high - low)),
        "exact width": float(2 * np.nanquantile(abs(alpha - truth), 0.95)),
        "bounded": float(closed.mean()),
    }


def main() -> int:
    """Run the simulation, print and store the table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_shards(parser)
    parser.add_argument("--table", type=Path, help="file to write the table to")
    options = parser.parse_args()
    columns = ["log", "logs", "root", "mean of α*", "RMSE", "wrong sign", "set covers"]
    columns += ["median width", "exact width", "bounded"]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    good = True
    for name, (draw, truth) in DESIGNS.items():
        found = summarise(run_shard(name, partial(seen, draw, truth), options), truth)
        holds, _ = bounded(found["covers"], found["logs"], AT_LEAST_93)
        if draw is example:
            holds = holds and found["rmse"] <= 0.02 and found["width"] <= 0.12
        good = good and holds and found["without a root"] == 0
        lines.append(
            f"| {name} | {found['logs']:,} | {truth} | {found['mean']:.4f} | {found['rmse']:.4f} | "
            f"{found['wrong sign']:.3f} | {found['covers']:.3f} | {found['width']:.3f} | "
            f"{found['exact width']:.3f} | {found['bounded']:.3f} |"
        )
    table = "\n".join(lines) + f"\n\nSeeds 0, 1, …; commit {commit(options.keep)}.\n"
    print(table)
    if options.table:
        options.table.write_text(table, encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
