"""How often the alarm of a trend rings in 52 weeks without a change, and how soon with one.

    python tests/benchmarks/trend_alarm.py --repetitions 1000 --keep FILE --store

Pairs are drawn directly, not found in a log: every week has new queries with a few pairs each, and
all weeks share one catalogue whose items have shocks of their own. The change against all weeks
before, and its stacked standard error (the largest of the raw query, item and union variance, none
corrected), are worked out here from sums; the alarm is the package's.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from mpc_lab.inference.sequence import change_evidence
from repeating import AT_MOST_5, bounded, error, show
from sharded import add_shards, commit, print_and_store, run_shard

WEEKS, QUERIES, PAIRS, ITEMS = 52, 60, 3, 30
SHOCK, NOISE, LEVEL, START = 0.5, 1.0, 0.95, 12
# The standard deviation of the gap of one week, over catalogues.
WEEKLY = float(np.sqrt((2 * SHOCK**2 + NOISE**2) / (QUERIES * PAIRS)))
STEPS = (0.0, 1.0, 2.0)
STORED = Path(__file__).resolve().parents[2] / "docs/explanation/measured/trend.md"
HEADER = ["step (standard errors of a week)", "runs", "weeks", "alarm", "Monte-Carlo error"]
HEADER += ["bound", "median delay (weeks)"]


class Sums:
    """Counts and sums of pairs by query, item, dyad and item within query."""

    def __init__(self) -> None:
        self.count, self.total = 0.0, 0.0
        self.item = np.zeros((2, 2 * ITEMS))
        self.dyad = np.zeros((2, ITEMS * ITEMS))
        # Σc², ΣcD, ΣD² of what never recurs in a later week.
        self.query, self.within, self.pair = np.zeros(3), np.zeros(3), np.zeros(3)

    def add(self, query, i, j, d) -> None:
        """Add the pairs of a week."""
        self.count, self.total = self.count + len(d), self.total + d.sum()
        for item in (i, ITEMS + j):
            self.item += _sums(item, d, 2 * ITEMS)
        self.dyad += _sums(i * ITEMS + j, d, ITEMS * ITEMS)
        self.query += _squares(_sums(query, d, QUERIES))
        self.pair += _squares(np.stack([np.ones(len(d)), d]))
        for item in (i, ITEMS + j):
            self.within += _squares(_sums(query * 2 * ITEMS + item, d, QUERIES * 2 * ITEMS))

    @property
    def mean(self) -> float:
        """The gap."""
        return self.total / self.count

    def at(self, squares) -> float:
        """Return Σ(D − θc)²/P²."""
        cc, cd, dd = squares
        return (dd - 2 * self.mean * cd + self.mean**2 * cc) / self.count**2

    def errors(self, table):
        """Return (D − θc)/P of each cluster."""
        return (table[1] - self.mean * table[0]) / self.count


def _sums(code, d, size):
    return np.stack([np.bincount(code, minlength=size), np.bincount(code, d, minlength=size)])


def _squares(table):
    return np.array([table[0] @ table[0], table[0] @ table[1], table[1] @ table[1]])


def std_error(new: Sums, old: Sums) -> float:
    """Return the standard error of the difference of two gaps that share items, not queries."""
    query, within, pair = (
        sum(one.at(getattr(one, name)) for one in (new, old))
        for name in ("query", "within", "pair")
    )
    item, dyad = (
        new.errors(getattr(new, name)) - old.errors(getattr(old, name)) for name in ("item", "dyad")
    )
    by_item = item @ item - dyad @ dyad
    union = by_item + query - (within - pair)
    return float(np.sqrt(max(union, query, by_item)))


def draw(seed: int, step: float, weeks: int = WEEKS):
    """Draw the pairs of each week: query, item, other item, difference.

    The step comes after week `START`.
    """
    rng = np.random.default_rng(seed)
    shock = rng.normal(0, SHOCK, 2 * ITEMS)
    for week in range(weeks):
        query = np.repeat(np.arange(QUERIES), PAIRS)
        i, j = rng.integers(0, ITEMS, (2, len(query)))
        d = shock[i] - shock[ITEMS + j] + rng.normal(0, NOISE, len(query))
        yield query, i, j, d + (step * WEEKLY if week >= START else 0.0)


def changes(seed: int, step: float, weeks: int = WEEKS) -> np.ndarray:
    """Return z of every week after the first."""
    before, found = Sums(), []
    for week, pairs in enumerate(draw(seed, step, weeks)):
        now = Sums()
        now.add(*pairs)
        if week:
            found.append((now.mean - before.mean) / std_error(now, before))
        before.add(*pairs)
    return np.array(found)


def rang(step: float, seed: int) -> tuple[float, float]:
    """Return whether the alarm ever rang, and how many weeks of the step it took, NaN for never."""
    z = changes(seed, step, WEEKS if step == 0 else START + WEEKS)
    over = change_evidence(z) >= 1 / (1 - LEVEL)
    first = int(over.argmax()) + 1 if over.any() else -1
    delay = float(first - START + 1) if first >= START else -1.0
    return float(over.any()), delay


def table(chosen: argparse.Namespace) -> list[tuple[list, bool]]:
    """Return a row of each step, and whether the alarm keeps its level without one."""
    rows = []
    for step in STEPS:
        seen = np.array(run_shard(f"{step:g}", Rang(step), chosen))
        rate, n = float(seen[:, 0].mean()), len(seen)
        good, bound = bounded(rate, n, AT_MOST_5) if step == 0 else (True, "")
        # A run in which it never rings waits longer than all others.
        middle = np.median(np.where(seen[:, 1] < 0, np.inf, seen[:, 1]))
        delay = "–" if step == 0 else f"{middle:g}" if np.isfinite(middle) else "never"
        weeks = WEEKS if step == 0 else f"{START} + {WEEKS}"
        cells = [f"{step:g}", f"{n:,}", weeks, rate, error(rate, n), bound, delay]
        rows.append((cells, good))
    return rows


def main() -> int:
    """Run the simulation, print the table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_shards(parser)
    parser.add_argument("--store", action="store_true", help=f"write the table to {STORED.name}")
    chosen = parser.parse_args()
    rows = table(chosen)
    with print_and_store(STORED if chosen.store else None):
        print(f"{QUERIES} queries a week, level 5 %; commit {commit(chosen.keep)}\n")
        show(HEADER, rows)
    return 0 if all(good for _, good in rows) else 1


class Rang:
    """What is called for each seed."""

    def __init__(self, step: float) -> None:
        self.step = step

    def __call__(self, seed: int) -> tuple[float, float]:
        return rang(self.step, seed)


if __name__ == "__main__":
    sys.exit(main())
