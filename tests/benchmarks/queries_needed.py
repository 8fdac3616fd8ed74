"""Is a gap found as often as planned in a log of the size that the plan says?

    python tests/benchmarks/queries_needed.py [--repetitions 1000] [--jobs 2]

Six groups; the outcome of items of the first is higher by a known gap at every score. A first log
says how many queries that gap needs, for one group alone (``queries_needed``) and adjusted over
the family (``queries_needed_adjusted``). New logs of these sizes are audited: how often is the
first group found by the p-values of both sides of its bracket, and by the adjusted ones? Prints a
Markdown table with Monte-Carlo errors, and exits with 1 where a planned size finds the gap less
often than planned.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from functools import partial

import numpy as np

import mpc_lab as mpc
from repeating import Bound, bounded, error, options, repeat, show

GROUPS = ("a", "b", "c", "d", "e", "f")
GAP, EPSILON, POWER = 0.2, 0.05, 0.8
FIRST_LOG = 3000
# Holm's later steps and the other groups' own gaps may help a little, so there is no upper bound.
AT_LEAST_POWER = Bound(POWER, 1.0, errors=2)
HEADER = ["queries", "planned for", "found alone", "found adjusted", "Monte-Carlo error", "bound"]


def log(queries, seed):
    """Return a log of 12 items a query in six groups; those of "a" have a higher outcome."""
    rng = np.random.default_rng(seed)
    shape = (queries, 12)
    group = rng.integers(0, len(GROUPS), shape)
    outcome = rng.normal(size=shape) + GAP * (group == 0) + rng.normal(size=(queries, 1))
    frame = {
        "query": np.repeat(np.arange(queries), shape[1]),
        "score": rng.random(shape).ravel(),
        "outcome": outcome.ravel(),
        "group": np.array(GROUPS)[group].ravel(),
    }
    columns = {"query": "query", "score": "score", "outcome": "outcome", "group": "group"}
    how = {"pairing_modes": ("matched", "mirrored"), "threshold": EPSILON, "progress": False}
    return mpc.audit(frame, **columns, **how)


def planned_sizes():
    """Return how many queries the gap needs in one group alone, and over the family."""
    found = log(FIRST_LOG, 10**6).power(GAP, POWER)
    found = found.sel(group="a", pairing_mode="matched").squeeze()
    return int(found["queries_needed"]), int(found["queries_needed_adjusted"])


def found_in(queries, seed):
    """Return whether both sides find the gap, for this group alone and adjusted over the family."""
    cell = log(queries, seed).headline.sel(group="a").squeeze()
    alone = (cell["p_value"] <= 0.05) & (cell["estimate"] > 0)
    return [bool(alone.all()), str(cell["verdict"].values[0]) == "undervalued"]


def main() -> int:
    """Run the simulation, print the table, return the exit code."""
    chosen = options(__doc__)
    alone, adjusted = planned_sizes()
    print(f"{chosen.repetitions} repetitions, gap {GAP:g}, planned power {POWER:g}\n")
    rows = []
    for column, (size, kind) in enumerate([(alone, "one group"), (adjusted, "the family")]):
        hits = np.array(repeat(partial(found_in, size), chosen.repetitions, chosen.jobs))
        rates = hits.mean(axis=0).tolist()
        good, text = bounded(rates[column], chosen.repetitions, AT_LEAST_POWER)
        rows.append(([size, kind, *rates, error(rates[column], chosen.repetitions), text], good))
    show(HEADER, rows)
    return 0 if all(good for _, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
