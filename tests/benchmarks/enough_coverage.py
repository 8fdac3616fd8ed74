"""Coverage of 95 % intervals on small logs whose threshold was chosen by `mpc.Enough`.

    python tests/benchmarks/enough_coverage.py [--repetitions 1000] [--jobs 1] [--shard 1/1]
        [--keep FILE]

Outcomes have nothing to do with group or score, so that the true gap is 0 at every threshold and
only the choice of it could spoil the interval. Prints a Markdown table: how often the interval
holds 0, the median of the pairs, and in how many logs too few pairs were close enough. Exits with 1
if a coverage is below its bound. A log whose group is not estimable is left out of the count.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import mpc_lab as mpc
from repeating import Bound, bounded, error, show
from sharded import add_shards, commit, run_shard

AT_LEAST_93 = Bound(0.93, 1.0, errors=2)
COLUMNS = {"query": "query", "score": "score", "outcome": "outcome", "group": ["g"]}


def draw(rng, queries, share=0.4, shift=0.0, score=None):
    """Return lists of unequal length, in which queries favour one side or the other.

    Parameters
    ----------
    queries : int
    share : float
        Of the rows that are in the group.
    shift : float
        Standard deviations by which the scores of the group are lower.
    score : function of scores, optional
        Makes them coarse.
    """
    lengths = np.clip(rng.lognormal(2.0, 0.7, queries).astype(int), 2, 60)
    query = np.repeat(np.arange(queries), lengths)
    member = rng.random(len(query)) < share
    scores = rng.normal(size=len(query)) - shift * member
    favour = 0.3 * rng.normal(size=(queries, 2))[query, member.astype(int)]
    outcome = rng.normal(size=len(query)) + favour
    scores = scores if score is None else score(scores)
    return {"query": query, "score": scores, "outcome": outcome, "g": member}


@dataclass(frozen=True)
class Design:
    """How a log is drawn, and what is asked of its threshold."""

    draw: Callable
    threshold: mpc.Enough = mpc.Enough(pairs=200, queries=50)  # noqa: RUF009


DESIGNS = {
    "150 lists, too few pairs": Design(partial(draw, queries=150)),
    "400 lists": Design(partial(draw, queries=400)),
    "1,000 lists": Design(partial(draw, queries=1000)),
    "400 lists, 60 pairs in 30 queries": Design(
        partial(draw, queries=400), mpc.Enough(pairs=60, queries=30)
    ),
    "1,000 lists, a group of 5 %": Design(partial(draw, queries=1000, share=0.05)),
    "1,000 lists, scores of the group 1.5 deviations lower": Design(
        partial(draw, queries=1000, shift=1.5)
    ),
    "400 lists, scores in steps of 0.05 deviations": Design(
        partial(draw, queries=400, score=lambda score: np.round(score * 20) / 20)
    ),
    "400 lists, scores in steps of a deviation": Design(partial(draw, queries=400, score=np.round)),
}
# Of these a tenth of the scores' standard deviation does not reach 200 pairs.
TOO_FEW = ("150 lists, too few pairs", "1,000 lists, a group of 5 %")


def seen(design: Design, seed: int) -> list[float]:
    """Return whether the interval holds 0, how many pairs there are, and whether these fall short.

    NaN for the first where there is no interval.
    """
    rows = design.draw(np.random.default_rng(seed))
    audit = mpc.audit(rows, **COLUMNS, threshold=design.threshold, progress=False)
    cell = audit.headline.isel(group=0, scoring_rule=0).sel(pairing_mode="matched")
    low, high = float(cell["ci_low"]), float(cell["ci_high"])
    held = float(low <= 0 <= high) if np.isfinite([low, high]).all() else np.nan
    return [held, float(cell["n_pairs"]), float(cell["short_of_pairs"])]


def main() -> int:
    """Run the simulation, print the table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_shards(parser)
    chosen = parser.parse_args()
    rows = []
    for name, design in DESIGNS.items():
        found = np.array(run_shard(name, partial(seen, design), chosen))
        known = found[~np.isnan(found[:, 0])]
        n, rate = len(known), float(known[:, 0].mean())
        good, text = bounded(rate, n, AT_LEAST_93)
        pairs, short = int(np.median(found[:, 1])), float(found[:, 2].mean())
        rows.append(([name, n, rate, error(rate, n), pairs, short, text], good))
    print(f"{chosen.repetitions} repetitions, nominal 95 %; commit {commit(chosen.keep)}\n")
    show(["design", "logs", "covers", "Monte-Carlo error", "pairs", "too few", "bound"], rows)
    return 0 if all(good for _, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
