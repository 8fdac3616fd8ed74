"""Do intervals of differences cover, and does "no worse" keep its size?

    python tests/benchmarks/difference_coverage.py --repetitions 1000 --keep FILE --store

Every design has a true difference of 0: two rankers whose scores differ a little on one log, two
dates with one catalogue whose items have shocks, two groups that are alike. One side has 150
queries, the other as many, or 10, or 4. Beside the interval of the difference is the naive one, of
two gaps as if independent, with the same degrees of freedom. Power is that against a true
difference added to the estimate: three of its standard deviations with 150 queries on both sides.
The size of "no worse" is that of the package's test of estimates drawn from a normal law.
Exits with 1 if an interval covers in less than 93 %, or "no worse" has a size above 5 %.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import mpc_lab as mpc
from mpc_lab.inference.difference import Differences, assess_no_worse
from mpc_lab.inference.estimates import critical
from repeating import AT_LEAST_93, AT_MOST_5, bounded, error, show
from sharded import add_shards, commit, print_and_store, run_shard

ITEMS, SIZE, MANY = 200, 30, 150
LEVEL, EPSILON = 0.95, 0.05
KINDS = ("two rankers", "two dates", "two groups")
DESIGNS = {f"{kind}, {few}": (kind, few) for few in (MANY, 10, 4) for kind in KINDS}
STEP = 3.0  # standard deviations, of what power is asked against
IN_ERRORS = (0.0, 0.5, 1.0, 4.0)
STORED = Path(__file__).resolve().parents[2] / "docs/explanation/measured/differences.md"
COVERS = ["compared", "queries of one side", "logs", "estimable", "covers", "Monte-Carlo error"]
COVERS += ["bound", "half width", "half width that covers 95 %"]
POWER = ["compared", "queries of one side", "standard deviation", "standard error"]
POWER += ["naive standard error", "naive covers", "power", "naive power"]
SIZE_OF = ["old gap (standard errors)", "draws", 'called "no worse"', "bound"]


def draw(rng: np.random.Generator, shock: np.ndarray, queries: int, first: int) -> pd.DataFrame:
    """Draw lists of items with shocks, two scores that differ a little, and three groups."""
    item = np.concatenate([rng.choice(ITEMS, SIZE, replace=False) for _ in range(queries)])
    worth = rng.random(len(item))
    old = worth + 0.1 * rng.normal(size=len(item))
    return pd.DataFrame(
        {
            "q": first + np.repeat(np.arange(queries), SIZE),
            "item": item,
            "g": np.where(item % 3 == 0, "a", np.where(item % 3 == 1, "b", "c")),
            "old": old,
            "new": old + 0.02 * rng.normal(size=len(item)),
            "y": worth + shock[item] + rng.normal(size=len(item)),
        }
    )


def audit(frame: pd.DataFrame, rules: list, groups: list[str]) -> mpc.Audit:
    """Audit at a fixed threshold."""
    columns = {"query": "q", "item": "item", "score": "old", "outcome": "y", "group": "g"}
    options = {"threshold": EPSILON, "epsilon": [EPSILON], "pairing_modes": ["matched"]}
    return mpc.audit(
        frame, **columns, **options, scoring_rules=rules, groups=groups, progress=False
    )


def compare(kind: str, few: int, seed: int) -> mpc.Difference:
    """Draw a log, and compare two sides of it, one of which has pairs in few queries."""
    rng = np.random.default_rng([seed, 19])
    shock = 0.5 * rng.normal(size=ITEMS)
    frame = draw(rng, shock, MANY, 0)
    late = frame["q"] >= few
    if kind == "two rankers":
        # Scores that are far apart make no pair.
        frame["new"] *= np.where(late, 1e4, 1.0)
        return audit(frame, ["baseline", mpc.Column("new")], ["a"]).difference("new", "baseline")
    if kind == "two groups":
        frame.loc[late & (frame["g"] == "b"), "g"] = "c"
        return audit(frame, ["baseline"], ["a", "b"]).difference(groups=("a", "b"))
    other = draw(rng, shock, few, 1_000)
    return mpc.difference(*(audit(rows, ["baseline"], ["a"]) for rows in (frame, other)))


def one_log(kind: str, few: int, seed: int) -> list[float]:
    """Return the difference, half its interval, its standard error, and both as if independent."""
    cell = compare(kind, few, seed).data.isel(group=0, pairing_mode=0)
    names = ("difference", "std_error", "std_error_independent", "dof")
    value, spread, apart, dof = (float(cell[name]) for name in names)
    half = (float(cell["ci_high"]) - float(cell["ci_low"])) / 2
    naive = float(critical((1 - LEVEL) / 2, np.array([dof]))[0]) * apart
    return [value, half, spread, naive, apart]


def tables(chosen: argparse.Namespace, designs=DESIGNS) -> tuple[list, list]:
    """Return how each design covers, and its power."""
    covers, powers, steps = [], [], {}
    for name, (kind, few) in designs.items():
        found = np.array(run_shard(name, partial(one_log, kind, few), chosen), dtype=np.float64)
        known = np.isfinite(found[:, 1])
        value, half, spread, naive, apart = found[known].T
        steps.setdefault(kind, STEP * value.std())
        rate = float((abs(value) <= half).mean())
        good, bound = bounded(rate, len(value), AT_LEAST_93)
        cells = [kind, few, f"{len(found):,}", float(known.mean()), rate, error(rate, len(value))]
        cells += [bound, float(half.mean()), float(np.quantile(abs(value), LEVEL))]
        covers.append((cells, good))
        cells = [kind, few, *(float(x) for x in (value.std(), spread.mean(), apart.mean()))]
        cells += [float((abs(value) <= naive).mean())]
        cells += [float((abs(value + steps[kind]) > width).mean()) for width in (half, naive)]
        powers.append([cell if isinstance(cell, str | int) else f"{cell:.3f}" for cell in cells])
    return covers, powers


def no_worse_size(in_errors: float, draws: int = 20_000, seed: int = 0) -> float:
    """Return how often a gap at the margin is called no worse; θ_old in standard errors."""
    rng = np.random.default_rng([seed, 12])
    margin = 0.5
    truth = np.array([abs(in_errors) + margin, in_errors])
    shared = np.linalg.cholesky([[1.0, 0.5], [0.5, 1.0]])
    new, old = (truth + rng.normal(size=(draws, 2)) @ shared.T).T
    size, dof = np.ones(draws), np.full(draws, 1e6)
    nothing = np.zeros(draws)
    cells = Differences(
        new - old, size * 1.0, nothing, nothing, nothing, dof, dof, nothing > 0,
        nothing, nothing, new + old, size * np.sqrt(3.0), dof,
    )  # fmt: skip
    return float(assess_no_worse(cells, new, old, margin=margin, level=LEVEL).no_worse.mean())


def sizes(draws: int = 20_000) -> list[tuple[list, bool]]:
    """Return the size of "no worse" for each old gap."""
    rows = []
    for in_errors in IN_ERRORS:
        size = no_worse_size(in_errors, draws)
        good, bound = bounded(size, draws, AT_MOST_5)
        rows.append(([f"{in_errors:g}", f"{draws:,}", size, bound], good))
    return rows


def main() -> int:
    """Run the simulation, print both tables, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_shards(parser)
    parser.add_argument("--store", action="store_true", help=f"write the tables to {STORED.name}")
    chosen = parser.parse_args()
    (covers, powers), of_size = tables(chosen), sizes()
    with print_and_store(STORED if chosen.store else None):
        print(f"True difference 0, nominal 95 %; commit {commit(chosen.keep)}\n")
        show(COVERS, covers)
        print()
        for cells in (POWER, ["---"] * len(POWER), *powers):
            print("|", " | ".join(map(str, cells)), "|")
        print()
        show(SIZE_OF, of_size)
    return 0 if all(good for _, good in covers + of_size) else 1


if __name__ == "__main__":
    sys.exit(main())
