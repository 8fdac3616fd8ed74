"""Coverage of 95 % intervals where few queries or items carry the pairs, with and without CR3.

    python tests/benchmarks/heavy_coverage.py [--repetitions 1000] [--jobs 1] [--shard 1/1]
        [--keep FILE]

Prints a Markdown table: how often the interval of an audit holds the truth, the same with the plain
correction, and how much wider it is. Exits with 1 if the former is below its bound. A design that
is not estimable in a log is left out of that log's count.
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
import pandas as pd

import mpc_lab as mpc
from mpc_lab.results.assemble import infer
from mpc_lab.vocabulary import MATCHED, MIRRORED, SYMMETRIC
from repeating import Bound, bounded, error, show
from sharded import add_shards, commit, run_shard
from simulated import LEVEL, source_of, sums

AT_LEAST_93 = Bound(0.93, 1.0, errors=2)
ANY = Bound(0.0, 1.0)
MODES = (MATCHED, MIRRORED, SYMMETRIC)


def log_of(rng, lengths, *, items=None, score=None, outcome=None, shock=0.5, item_sd=0.0):
    """Return a log whose outcome has nothing to do with group or score: the true gap is 0.

    Parameters
    ----------
    lengths : int array
        Rows of each query.
    items : function of (rng, query), optional
        Draws the item of each row; by default every row is an item of its own.
    score, outcome : function of (rng, n), optional
        By default uniform, and normal.
    shock : float
        Standard deviation of what a query adds to its items on either side of the group.
    item_sd : float
        Standard deviation of what an item adds.
    """
    query = np.repeat(np.arange(len(lengths)), lengths)
    item = np.arange(len(query)) if items is None else items(rng, query)
    rows = pd.DataFrame({"query": query, "item": item}).drop_duplicates()
    n, item = len(rows), rows["item"].to_numpy()
    member = rng.random(item.max() + 1)[item] < 0.4
    outcomes = rng.normal(size=n) if outcome is None else outcome(rng, member)
    of_query = rng.normal(size=(len(lengths), 2))[rows["query"], member.astype(int)]
    outcomes = outcomes + shock * of_query + item_sd * rng.normal(size=item.max() + 1)[item]
    return mpc.Ranking(
        {
            "query": rows["query"].to_numpy(),
            "item": item,
            "score": rng.random(n) if score is None else score(rng, n),
            "outcome": outcomes,
            "g": member,
        },
        query="query",
        item="item",
        score="score",
        outcome="outcome",
        group=["g"],
    )


def unequal_lengths(rng):
    return log_of(rng, np.clip(rng.lognormal(2.0, 1.0, 300).astype(int), 2, 400))


def dominant_query(rng):
    return log_of(rng, np.r_[90, np.full(199, 12)])


def few_queries(rng, queries):
    return log_of(rng, np.full(queries, 30))


def integer_ties(rng):
    def stars(rng, n):
        return rng.integers(1, 6, n).astype(float)

    lengths = np.clip(rng.lognormal(2.0, 0.7, 200).astype(int), 2, 200)
    return log_of(rng, lengths, score=stars, outcome=lambda rng, who: stars(rng, len(who)))


def rare_outcomes(rng):
    lengths = np.clip(rng.lognormal(2.5, 0.7, 1000).astype(int), 2, 200)
    return log_of(
        rng, lengths, outcome=lambda rng, who: 1.0 * (rng.random(len(who)) < 0.01), shock=0
    )


def zipf(rng, query, items=400):
    share = 1 / np.arange(1, items + 1)
    return rng.choice(items, size=len(query), p=share / share.sum())


def zipf_catalogue(rng):
    return log_of(rng, np.full(300, 20), items=zipf, item_sd=0.5)


def blockbuster(rng):
    """Return a log with one item in four of five lists, among 300."""

    def items(rng, query):
        drawn = rng.integers(1, 300, len(query))
        first = np.r_[True, query[1:] != query[:-1]]
        return np.where(first & (rng.random(len(query)) < 0.8), 0, drawn)

    return log_of(rng, np.full(300, 20), items=items, item_sd=0.5)


def money(rng, member):
    """Return amounts of mean 1 with a long tail in the group and a short one outside."""
    sigma = np.where(member, 2.0, 0.5)
    return np.exp(sigma * rng.normal(size=len(member)) - sigma**2 / 2)


def skewed_money(rng):
    return log_of(rng, np.full(300, 20), outcome=money, shock=0)


def one_side_in(rng, queries):
    """Return a log in which the group's items are the lower ones in all but a few queries."""
    n_queries, shown = 200, 12
    score = rng.random((n_queries, shown))
    rank = np.argsort(np.argsort(score, axis=1), axis=1)
    low = np.arange(n_queries)[:, None] >= queries
    # Four groups of three neighbours; the item of the group is the lowest, or the highest, of each.
    member = (rank % 3 == 0) == low
    member &= rank % 3 != 1
    score = (rank // 3) + 0.01 * (rank % 3)
    outcome = rng.normal(size=score.shape)
    outcome += 0.5 * rng.normal(size=(n_queries, 2))[np.arange(n_queries)[:, None], member * 1]
    return mpc.Ranking(
        {
            "query": np.repeat(np.arange(n_queries), shown),
            "item": np.arange(score.size),
            "score": score.ravel(),
            "outcome": outcome.ravel(),
            "g": member.ravel(),
        },
        query="query",
        item="item",
        score="score",
        outcome="outcome",
        group=["g"],
    )


@dataclass(frozen=True)
class Design:
    """How a log is drawn, and what is asked of it."""

    draw: Callable
    epsilon: float = 0.1
    mode: str = "matched"
    bound: Bound = AT_LEAST_93
    terms: tuple = ()
    truth: float = 0.0


DESIGNS = {
    "300 lists, lognormal lengths": Design(unequal_lengths),
    "one query with a fifth of the pairs": Design(dominant_query),
    "5 queries": Design(partial(few_queries, queries=5)),
    "10 queries": Design(partial(few_queries, queries=10)),
    "15 queries": Design(partial(few_queries, queries=15)),
    "whole-number scores and outcomes": Design(integer_ties, epsilon=0.0),
    "outcomes of 1 %": Design(rare_outcomes),
    "Zipf catalogue, item shocks": Design(zipf_catalogue),
    "one item in four of five lists, item shocks": Design(blockbuster),
    "money with a long tail, its mean": Design(skewed_money, bound=ANY),
    **{
        f"symmetric, one side in {n} queries": Design(
            partial(one_side_in, queries=n), epsilon=0.03, mode="symmetric"
        )
        for n in (3, 4, 6, 10)
    },
}


def seen(design: Design, seed: int) -> list[float]:
    """Return whether the interval holds the truth, the same if plain, and the ratio of widths.

    NaN where there is no interval.
    """
    ranking = design.draw(np.random.default_rng(seed))
    moments = sums(source_of(ranking), [design.epsilon], MODES)
    row = moments.mode_names.index(design.mode)
    held, width = [], []
    for correction in ("cr3", "plain"):
        cells = infer(moments, cluster="union", level=LEVEL, correction=correction)
        at = (row, 0, 0)
        inside = cells.ci_low[at] <= design.truth <= cells.ci_high[at]
        held.append(float(inside) if cells.estimable[at] else np.nan)
        width.append(cells.std_error[at])
    return [*held, float(width[0] / width[1])]


def main() -> int:
    """Run the simulation, print the table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_shards(parser)
    chosen = parser.parse_args()
    rows = []
    for name, design in DESIGNS.items():
        found = np.array(run_shard(name, partial(seen, design), chosen))
        known = found[~np.isnan(found[:, 0])]
        n = len(known)
        cr3, plain, ratio = (float(np.nanmean(column)) for column in known.T)
        good, text = bounded(cr3, n, design.bound)
        cells = [cr3, plain, ratio, error(cr3, n), len(found) - n, text]
        rows.append(([name, *cells], good))
    print(f"{chosen.repetitions} repetitions, nominal 95 %; commit {commit(chosen.keep)}\n")
    show(
        [
            "design",
            "CR3",
            "plain",
            "ratio of widths",
            "Monte-Carlo error",
            "not estimable",
            "bound",
        ],
        rows,
    )
    return 0 if all(good for _, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
