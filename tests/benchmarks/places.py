"""Do clicks that depend on the place pass for a gap, and is a gap found in spite of them?

    python tests/benchmarks/places.py [--repetitions 1000] [--jobs 2]

Lists of items worth r are shown in the order of their scores. A click needs the item to be looked
at: by k^-0.7 or 1/k at place k, or by a cascade that ends with the first click. The scores are
honest, or the group is worth 0.05 more than they say. Both groups have scores alike, or not. A
later rule may have lifted half of the group's items, or all of them, after scoring. Prints a
Markdown table with Monte-Carlo errors: how often symmetric and matched pairs give a direction at
the default threshold, and how often the interval of the place effect covers its population value.
Exits with 1 if an honest ranker gets a direction above nominal, or a gap is not found far more
often than by matched pairs.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

import mpc_lab as mpc
from repeating import AT_LEAST_93, AT_MOST_5, bounded, error, options, repeat, show

QUERIES, SIZE = 4000, 20
WORTH, LIFT, BIAS = (0.1, 0.6), 0.15, 0.05
# For the population value of the place effect: lists whose outcomes are their own expectations.
MANY = 5
HEADER = ["clicks", "scores", "later rule", "gap", "symmetric", "matched", "Monte-Carlo error"]
HEADER += ["bound", "mean", "place effect covers", "of 0 rejected"]


@dataclass(frozen=True)
class Design:
    """How a log is made."""

    clicks: str
    like: bool = True
    lifted: float = 0.0
    bias: float = 0.0


DESIGNS = [
    Design(clicks, like, lifted, bias)
    for clicks in ("k^-0.7", "1/k", "cascade")
    for like in (True, False)
    for lifted in (0.0, 0.5)
    for bias in (0.0, BIAS)
]
DESIGNS += [Design("1/k", lifted=1.0), Design("none")]


def lists(design: Design, rng: np.random.Generator, queries: int) -> dict[str, np.ndarray]:
    """Return scores, membership, places and the chance that each item is worth a click."""
    shape = (queries, SIZE)
    member = rng.random(shape) < 0.4
    if design.like:
        quality = rng.random(shape)
    else:
        quality = np.where(member, rng.beta(2, 4, shape), rng.beta(4, 2, shape))
    score = WORTH[0] + (WORTH[1] - WORTH[0]) * quality
    shown = score + LIFT * (member & (rng.random(shape) < design.lifted))
    place = np.argsort(np.argsort(-shown, axis=1), axis=1) + 1
    worth = score + design.bias * member
    return {"score": score, "member": member, "place": place, "worth": worth}


def looked_at(design: Design, log: dict[str, np.ndarray]) -> np.ndarray:
    """Return the chance that an item is looked at."""
    place = log["place"]
    if design.clicks == "cascade":
        order = np.argsort(place, axis=1)
        skipped = np.cumprod(1 - np.take_along_axis(log["worth"], order, axis=1), axis=1)
        before = np.concatenate([np.ones((len(place), 1)), skipped[:, :-1]], axis=1)
        return np.take_along_axis(before, place - 1, axis=1)
    return {"k^-0.7": place**-0.7, "1/k": 1 / place, "none": np.ones(place.shape)}[design.clicks]


def ranking_of(log: dict[str, np.ndarray], outcome: np.ndarray) -> mpc.Ranking:
    frame = {"query": np.repeat(np.arange(len(outcome)), SIZE), "y": outcome.ravel()}
    frame |= {name: log[name].ravel() for name in ("score", "member", "place")}
    return mpc.Ranking(
        frame, query="query", score="score", outcome="y", group=["member"], position="place"
    )


def clicked(design: Design, log: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Draw clicks; a cascade ends with the first."""
    if design.clicks != "cascade":
        return rng.random(log["worth"].shape) < looked_at(design, log) * log["worth"]
    order = np.argsort(log["place"], axis=1)
    wanted = rng.random(log["worth"].shape) < np.take_along_axis(log["worth"], order, axis=1)
    first = wanted & (np.cumsum(wanted, axis=1) == 1)
    return np.take_along_axis(first, log["place"] - 1, axis=1)


@cache
def place_effect(design: Design) -> float:
    """Return the population value of the place effect: that of expected outcomes of many lists."""
    if design.clicks == "none":
        return 0.0
    log = lists(design, np.random.default_rng(10**6), MANY * QUERIES)
    outcome = looked_at(design, log) * log["worth"]
    audit = mpc.audit(ranking_of(log, outcome), epsilon=[0.01], progress=False)
    return float(audit.headline["place_effect"].isel(pairing_mode=0).item())


def found(design: Design, seed: int) -> list[float]:
    """Return what one log shows.

    Whether symmetric and matched pairs give a direction; the estimate; whether the place effect
    covers its truth, and whether it excludes 0.
    """
    rng = np.random.default_rng(seed)
    log = lists(design, rng, QUERIES)
    ranking = ranking_of(log, clicked(design, log, rng))
    cells = mpc.audit(ranking, epsilon=[0.01], progress=False).headline.squeeze()
    # Which direction is right is known only where there is one.
    right = ("undervalued",) if design.bias else ("undervalued", "overvalued")
    directions = np.isin(cells["verdict"].values, right)
    low, high = (cells[f"place_effect_{end}"].values[0] for end in ("low", "high"))
    truth = place_effect(design)
    known = np.isfinite(low)
    covers = float(low <= truth <= high) if known else np.nan
    excludes = float(low > 0 or high < 0) if known else np.nan
    return [*directions.astype(float), float(cells["estimate"].values[0]), covers, excludes]


def row(design: Design, repetitions: int, jobs: int):
    """Return the cells of one design, and whether they hold."""
    place_effect(design)
    seen = np.array(repeat(partial(found, design), repetitions, jobs))
    symmetric, matched = seen[:, 0].mean(), seen[:, 1].mean()
    with np.errstate(invalid="ignore"):
        covers, excludes, mean = (
            float(np.nanmean(seen[:, k])) if np.isfinite(seen[:, k]).any() else float("nan")
            for k in (3, 4, 2)
        )
    if design.bias:
        good, text = symmetric >= 10 * matched and symmetric > 0.1, "≥ 10 × matched"
    else:
        good, text = bounded(symmetric, repetitions, AT_MOST_5)
    if design.clicks in ("k^-0.7", "1/k") and np.isfinite(covers):
        good &= bounded(covers, repetitions, AT_LEAST_93)[0]
    if design.clicks == "none":
        good &= bounded(excludes, repetitions, AT_MOST_5)[0]
    later = {0.0: "none", 0.5: "lifts half", 1.0: "lifts all"}[design.lifted]
    scores = "like" if design.like else "unlike"
    cells = [design.clicks, scores, later, f"{design.bias:g}", symmetric, matched]
    return [*cells, error(symmetric, repetitions), text, f"{mean:+.4f}", covers, excludes], good


def main() -> int:
    """Run the simulations, print the table, return the exit code."""
    chosen = options(__doc__)
    print(
        f"{chosen.repetitions} logs of {QUERIES:,} lists of {SIZE}, first percentile, nominal 5 %\n"
    )
    table = [row(design, chosen.repetitions, chosen.jobs) for design in DESIGNS]
    show(HEADER, table)
    return 0 if all(good for _, good in table) else 1


if __name__ == "__main__":
    sys.exit(main())
