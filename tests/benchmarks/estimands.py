"""Do intervals cover where lists are of very unequal length, and for a sample with weights?

Lists have lognormal lengths and a gap of their own that goes with the length, so that pairs,
queries and the root between them have different truths. Scores have nothing to do with outcomes,
and each item is in the group by the toss of a coin: given its length the expected gap of a list is
known, and the truth is the mean over a large drawn population. In a second design one list has
more than half of all pairs, so that most logs are not estimable under ``pairs``. In the third, long
lists of a full log are sampled with a smaller probability, and weights must give what the full log
has.

    python tests/benchmarks/estimands.py --repetitions 1000 --keep estimands.jsonl --store

Coverage is that of the logs with an interval; where most have none, it is not held to a bound.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache, partial
from pathlib import Path

import numpy as np

import mpc_lab as mpc
from mpc_lab.engines.memory import MemorySource
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.measure import measure, weigh_headline
from mpc_lab.pairing.pairs import count_and_sum
from mpc_lab.pairing.terms import ESTIMANDS, Terms
from mpc_lab.results.assemble import infer
from mpc_lab.scoring import Baseline
from mpc_lab.vocabulary import CR3, MATCHED
from repeating import AT_LEAST_93, bounded, error, show
from sharded import add_shards, commit, print_and_store, run_shard

LEVEL, EPSILON = 0.95, 0.05
QUERIES, SHOCK, LONGEST = 300, 0.3, 120
DESIGNS = ("lognormal", "dominant")
STORED = Path(__file__).resolve().parents[2] / "docs/explanation/measured/estimands.md"
HEADER = ["design", "estimand", "covers", "Monte-Carlo error", "not estimable", "bound"]


def lengths(rng, queries):
    return np.clip(rng.lognormal(2.5, 0.8, queries), 2, LONGEST).astype(np.int64)


def gap_of(length):
    """Return the expected gap of a list: it falls with the length."""
    return 0.4 - 0.2 * np.log(length)


def draw_log(rng, size, weight=None):
    query = np.repeat(np.arange(len(size)), size)
    member = rng.random(len(query)) < 0.5
    own = gap_of(size) + SHOCK * rng.normal(size=len(size))
    outcome = own[query] * member + rng.normal(size=len(query))
    columns = {"query": query, "score": rng.random(len(query)), "outcome": outcome, "g": member}
    roles = {"query": "query", "score": "score", "outcome": "outcome", "group": ["g"]}
    if weight is not None:
        columns["w"], roles["weight"] = weight[query], "w"
    return mpc.Ranking(columns, **roles)


def pairs_in(ranking):
    """Return the matched pairs of each query: what an estimand goes by."""
    log = sort_rows(ranking)
    return count_and_sum(log, ranking.member("g")[log.row], MATCHED.side, EPSILON)[0]


@cache
def truth(estimand, queries=20_000):
    """Return the mean that an estimand is about, in a large population of lists."""
    rng = np.random.default_rng(1)
    size = lengths(rng, queries)
    pairs = pairs_in(draw_log(rng, size))
    weight = {"pairs": pairs, "queries": pairs > 0, "root": np.sqrt(pairs)}[estimand]
    return float(np.average(gap_of(size), weights=weight))


def estimates(ranking, estimand):
    source = MemorySource(ranking, ranking.groups, terms=Terms(estimand=estimand))
    moments = measure(source, Baseline(), np.array([[EPSILON]]), modes=(MATCHED,), items=False)
    moments = weigh_headline(source, Baseline(), moments)[0]
    return infer(moments, cluster="query", level=LEVEL, correction=CR3)


def holds(found, wanted):
    """Return whether an interval holds a number; NaN where there is no interval."""
    low, high = (float(end[0, 0, 0]) for end in (found.ci_low, found.ci_high))
    return float(low <= wanted <= high) if np.isfinite(low) else np.nan


def covered(design, seed):
    """Return, for each estimand, whether its interval holds its truth.

    A list that is always there is no draw from the population, so that the dominant one has the
    gap of a list of ordinary length.
    """
    rng = np.random.default_rng(seed)
    size = lengths(rng, QUERIES)
    if design == "dominant":
        size = np.append(size, 4 * LONGEST)
    ranking = draw_log(rng, size)
    wanted = {estimand: truth(estimand) for estimand in ESTIMANDS}
    if design == "dominant":
        pairs = pairs_in(ranking)
        weights = {"pairs": pairs, "queries": pairs > 0, "root": np.sqrt(pairs)}
        # About the lists as they were drawn: what is left to chance are shocks and noise.
        wanted = {name: np.average(gap_of(size), weights=w) for name, w in weights.items()}
    return [holds(estimates(ranking, estimand), wanted[estimand]) for estimand in ESTIMANDS]


def sampled(seed):
    """Return, for each estimand, whether a weighted sample holds the truth of the full log."""
    rng = np.random.default_rng(seed)
    size = lengths(rng, 4 * QUERIES)
    kept_with = np.where(size > 15, 0.15, 0.5)
    kept = rng.random(len(size)) < kept_with
    ranking = draw_log(rng, size[kept], 1 / kept_with[kept])
    plain = draw_log(np.random.default_rng(seed + 1), size[kept])
    found = [holds(estimates(ranking, estimand), truth(estimand)) for estimand in ESTIMANDS]
    without = holds(estimates(plain, "queries"), truth("queries"))
    return [*found, without]


def row_of(name, estimand, held, *, judged=True):
    """Return the cells of one estimand in one design, and whether it is held."""
    known = held[np.isfinite(held)]
    missing = 1 - len(known) / len(held)
    rate = float(known.mean()) if len(known) else float("nan")
    good, words = bounded(rate, len(known), AT_LEAST_93) if len(known) else (True, "")
    if not judged or missing > 0.5:
        good, words = True, ""
    cells = [name, estimand, rate, error(rate, len(known)) if len(known) else rate, missing]
    return [*cells, words], good


def table(chosen):
    """Return the rows of all designs."""
    rows = []
    for design in DESIGNS:
        seen = np.array(run_shard(design, partial(covered, design), chosen), dtype=float)
        rows += [row_of(design, name, seen[:, k]) for k, name in enumerate(ESTIMANDS)]
    seen = np.array(run_shard("sampled", sampled, chosen), dtype=float)
    rows += [row_of("sampled, weighted", name, seen[:, k]) for k, name in enumerate(ESTIMANDS)]
    return [*rows, row_of("sampled, without weights", "queries", seen[:, -1], judged=False)]


def main() -> int:
    """Run the simulation, print the table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_shards(parser)
    parser.add_argument("--store", action="store_true", help=f"write the table to {STORED.name}")
    chosen = parser.parse_args()
    rows = table(chosen)
    with print_and_store(STORED if chosen.store else None):
        print(f"{chosen.repetitions:,} logs, nominal 95 %; commit {commit(chosen.keep)}\n")
        show(HEADER, rows)
    return 0 if all(good for _, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
