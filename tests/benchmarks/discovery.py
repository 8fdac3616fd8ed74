"""How often discovery finds a slice where there is none, and the planted one where there is one.

    python tests/benchmarks/discovery.py [--repetitions 1000] [--jobs 1] [--shard 1/4]
        [--keep seen.jsonl] [--kept] [--only null] [--save]

600 queries list 20 items each out of 1,000. Items have three attributes of four levels that go
together and a flag, queries one of three kinds: 128 slices up to depth 2. Outcomes rise with the
score; items have shocks of their own (sd 0.5), and there is noise (sd 1). In the null logs no slice
has a gap. In the planted ones the items of one conjunction of two levels have outcomes that are
higher by 1.2. Prints a Markdown table with Monte-Carlo errors and exits with 1 if a bound is
missed; `--save` writes it to docs/explanation/measured/discovery.md.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np

import mpc_lab as mpc
from repeating import AT_LEAST_90, AT_MOST_5, Bound, bounded, error
from sharded import add_shards, commit, run_shard

QUERIES, SHOWN, ITEMS = 600, 20, 1000
ATTRIBUTES = ("genre", "seller", "price", "new", "country")
PLANTED = ("genre = g1", "seller = s1")
EFFECT = 1.2
STORED = Path(__file__).resolve().parents[2] / "docs/explanation/measured/discovery.md"

# What is drawn, the share of the repetitions that is made, and what each log shows with its bound.
FOUND_NONE = ("finds a slice", AT_MOST_5)
DESIGNS = {
    "null": ({}, 1.0, [FOUND_NONE]),
    "null, honest": ({"honest": True}, 1.0, [FOUND_NONE]),
    "planted": (
        {"effect": EFFECT},
        0.2,
        [
            ("finds the planted slice", AT_LEAST_90),
            ("minimal() is the planted slice alone", AT_LEAST_90),
            ("finds others too", Bound(0.0, 1.0)),
        ],
    ),
    "planted, honest": (
        {"effect": EFFECT, "honest": True},
        0.2,
        [("finds the planted slice", Bound(0.0, 1.0))],
    ),
}


def draw(seed, effect=0.0, queries=QUERIES):
    """Return a log as a dict of arrays; its attributes overlap, because they go together."""
    rng = np.random.default_rng(seed)
    # Three attributes of an item lean on one trait of it.
    trait = rng.normal(size=ITEMS)
    noisy = trait[:, None] + 1.5 * rng.normal(size=(ITEMS, 3))
    genre, seller = (np.argsort(np.argsort(noisy[:, k])) * 4 // ITEMS for k in range(2))
    new = rng.random(ITEMS) < 0.4
    shock = 0.5 * rng.normal(size=ITEMS) + effect * ((genre == 1) & (seller == 1))
    item = np.argsort(rng.random((queries, ITEMS)), axis=1)[:, :SHOWN].ravel()
    score = rng.random(len(item))
    kind = rng.integers(0, 3, queries)
    return {
        "query": np.repeat(np.arange(queries), SHOWN),
        "item": item,
        "score": score,
        "outcome": score + shock[item] + rng.normal(size=len(item)),
        "genre": np.array([f"g{k}" for k in genre])[item],
        "seller": np.array([f"s{k}" for k in seller])[item],
        "price": np.exp(noisy[item, 2]),
        "new": new[item],
        "country": np.repeat(np.array(["x", "y", "z"])[kind], SHOWN),
    }


def look(seed, effect=0.0, honest=False, queries=QUERIES):
    """Return what discovery makes of one log."""
    names = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
    return mpc.discover(
        draw(seed, effect, queries),
        list(ATTRIBUTES),
        honest=honest,
        seed=seed,
        progress=False,
        **names,
    )


def seen(design, seed):
    """Return the slices looked at, how many were found, and what the design asks for."""
    found = look(seed, **design)
    n = float(found.data.attrs["n_slices"])
    if not design.get("effect"):
        return [n, len(found.found), float(len(found.found) > 0)]
    planted = " & ".join(PLANTED)
    there = float(planted in found.found)
    if design.get("honest"):
        return [n, len(found.found), there]
    alone = float(found.minimal().index.tolist() == [planted])
    return [n, len(found.found), there, alone, float(len(found.found) > 1)]


def rows(name, chosen):
    """Return the rows of a design, each with whether it holds."""
    design, share, asked = DESIGNS[name]
    wanted = argparse.Namespace(**vars(chosen))
    wanted.repetitions = max(1, round(chosen.repetitions * share))
    made = np.array(run_shard(name, partial(seen, design), wanted))
    table = []
    if not len(made):
        return table
    for k, (what, bound) in enumerate(asked):
        rate, n = float(made[:, 2 + k].mean()), len(made)
        good, words = bounded(rate, n, bound)
        words = "" if bound == Bound(0.0, 1.0) else words
        slices = f"{made[:, 0].mean():.0f}"
        found = f"{made[:, 1].mean():.2f}"
        table.append(([name, n, slices, found, what, rate, error(rate, n), words], good))
    return table


HEADER = ["log", "logs", "slices", "found a log", "", "share", "Monte-Carlo error", "bound"]


def written(table, made):
    """Return the table as Markdown."""
    lines = [f"| {' | '.join(HEADER)} |", f"|{'---|' * len(HEADER)}"]
    for cells, _ in table:
        texts = (f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells)
        lines.append(f"| {' | '.join(texts)} |")
    lines += ["", f"`tests/benchmarks/discovery.py`, seeds 0, 1, …; commit {made}.", ""]
    return "\n".join(lines)


def main() -> int:
    """Run the simulations, print the table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_shards(parser)
    parser.add_argument("--only", choices=list(DESIGNS), help="one kind of log")
    parser.add_argument("--save", action="store_true", help="write the table into the docs")
    chosen = parser.parse_args()
    names = [chosen.only] if chosen.only else list(DESIGNS)
    table = [row for name in names for row in rows(name, chosen)]
    text = written(table, commit(chosen.keep))
    print(text)
    if chosen.save:
        STORED.write_text(text, encoding="utf-8")
    return 0 if all(good for _, good in table) else 1


if __name__ == "__main__":
    sys.exit(main())
