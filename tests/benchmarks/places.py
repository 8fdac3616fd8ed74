"""Do clicks that depend on the place pass for a gap, and is a gap found in spite of them?

    python tests/benchmarks/places.py --repetitions 1000 --keep places.jsonl [--shard 1/4]
    python tests/benchmarks/places.py --keep places.jsonl --kept --store
    python tests/benchmarks/places.py --only honest --named cascade --lists 16000

Lists of items worth r are shown in the order of their scores. A click needs the item to be looked
at: by k^-0.7 or 1/k at place k, by a cascade that ends with the first click, or always. The scores
are honest, or the group is worth 0.05 more than they say. Both groups have scores alike, or not. A
later rule may have lifted half of the group's items, or all of them, after scoring.

Prints Markdown tables: how often symmetric and matched pairs give a direction at the default
threshold, how often the limit of symmetric pairs and the middle of the jump exclude 0, and how
often the interval of the place effect covers its population value. A log has its seed; what it
showed is kept, so that shards and runs that were stopped go together. Exits with 1 if an honest
ranker gets a direction above nominal, a gap is not found far more often than by matched pairs, a
later rule that lifts everything is not seen, or a place effect is not covered, or is found where
there is none.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import io
import itertools
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path

import numpy as np

import mpc_lab as mpc
from mpc_lab.results.questions.limit import tie
from mpc_lab.vocabulary import DIRECTIONS, NOT_ESTIMABLE, UNDERVALUED
from repeating import AT_LEAST_93, AT_MOST_5, bounded, error, show
from sharded import add_shards, commit, run_shard

# Lists and items in a list: at the default threshold, and for the limit, which lists its pairs.
SIZES = {"headline": (4000, 20), "limit": (1500, 10), "tie": (4000, 20)}
WORTH, LIFT, BIAS = (0.1, 0.6), 0.15, 0.05
# For the population value of the place effect: logs of many lists whose outcomes are their own
# expectations. One such log is off by as much as a seventh of the standard error of a small one.
MANY, DRAWN = 5, 12
FEWEST_FOUND = 0.1
STORED = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "measured" / "places.md"
DESIGN = ["looked at", "scores", "later rule", "true gap"]
HEADER = {
    "headline": ["`symmetric`", "bound", "`matched`", "not estimable", "mean estimate"],
    "limit": ["excludes 0", "bound", "mean estimate", "logs"],
}
HEADER["tie"] = HEADER["limit"]
HEADER["headline"] += ["place effect covers", "bound", "excludes 0", "logs"]
NAMES = {
    "headline": ("symmetric", "matched", "unknown", "estimate", "low", "high"),
    "limit": ("excludes", "estimate"),
    "tie": ("excludes", "estimate"),
}
LATER = {0.0: "none", 0.5: "lifts half", 1.0: "lifts all"}


@dataclass(frozen=True)
class Design:
    """How a log is made."""

    clicks: str
    like: bool = True
    lifted: float = 0.0
    bias: float = 0.0

    @property
    def cells(self) -> list[str]:
        """What it is kept under."""
        alike = "like" if self.like else "unlike"
        return [self.clicks, alike, LATER[self.lifted], f"{self.bias:g}"]

    @property
    def shown(self) -> list[str]:
        """How a table names it."""
        return ["always" if self.clicks == "none" else self.clicks, *self.cells[1:]]


CLICKS = ("k^-0.7", "1/k", "cascade")
HONEST = [
    Design(clicks, like, lifted)
    for lifted in (0.0, 0.5)
    for clicks in (*CLICKS, "none")
    for like in (True, False)
]
BIASED = [
    Design(clicks, like, lifted, BIAS)
    for lifted in (0.0, 0.5)
    for clicks in CLICKS
    for like in (True, False)
]
ALL_LIFTED = [Design("1/k", like, 1.0) for like in (True, False)]
STUDIES = {
    "honest": [("headline", design) for design in HONEST],
    "gap": [("headline", design) for design in BIASED],
    "lifted": [("headline", design) for design in ALL_LIFTED],
    "limit": [("limit", design) for design in HONEST],
    "tie": [("tie", design) for design in HONEST if not design.lifted],
}


def lists(design: Design, rng: np.random.Generator, shape: tuple[int, int]) -> dict:
    """Return scores, membership, places and the chance that each item is worth a click."""
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
    frame = {"query": np.repeat(np.arange(len(outcome)), outcome.shape[1]), "y": outcome.ravel()}
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


def audit_of(study: str, design: Design, seed: int) -> mpc.Audit:
    """Draw a log and audit it at the default threshold."""
    return _audited(SIZES[study], design, seed)


@lru_cache(maxsize=1)  # studies of one size ask the same log
def _audited(shape: tuple[int, int], design: Design, seed: int) -> mpc.Audit:
    rng = np.random.default_rng(seed)
    log = lists(design, rng, shape)
    return mpc.audit(ranking_of(log, clicked(design, log, rng)), epsilon=[0.01], progress=False)


@cache
def place_effect(design: Design, drawn: int = DRAWN) -> float:
    """Return the population value of the place effect: that of expected outcomes of many lists."""
    if design.clicks == "none":
        return 0.0
    queries, size = SIZES["headline"]
    found = []
    for seed in range(10**6, 10**6 + drawn):
        log = lists(design, np.random.default_rng(seed), (MANY * queries, size))
        outcome = looked_at(design, log) * log["worth"]
        audit = mpc.audit(ranking_of(log, outcome), epsilon=[0.01], progress=False)
        found.append(float(audit.headline["place_effect"].isel(pairing_mode=0).item()))
    return float(np.mean(found))


def found(design: Design, seed: int) -> list[float]:
    """Return what one log shows at the default threshold, in the order of NAMES.

    Whether symmetric and matched pairs give a direction, whether symmetric ones are not estimable;
    the estimate; the interval of the place effect.
    """
    cells = audit_of("headline", design, seed).headline.squeeze()
    # Which direction is right is known only where there is one.
    right = (UNDERVALUED,) if design.bias else DIRECTIONS
    verdicts = cells["verdict"].values
    low, high = (float(cells[f"place_effect_{end}"].values[0]) for end in ("low", "high"))
    symmetric, matched = np.isin(verdicts, right).astype(float)
    unknown = float(verdicts[0] == NOT_ESTIMABLE)
    return [symmetric, matched, unknown, float(cells["estimate"].values[0]), low, high]


def covered(low: np.ndarray, high: np.ndarray, truth: float) -> float:
    """Return how many of the intervals that there are cover a number."""
    known = np.isfinite(low)
    return _mean(np.where(known, (low <= truth) & (truth <= high), np.nan))


def limit_of(design: Design, seed: int) -> list[float]:
    """Return whether the interval of the limit of symmetric pairs excludes 0, and its estimate."""
    limit = audit_of("limit", design, seed).limit("member", pairing_mode="symmetric")
    low, high = float(limit["ci_low"]), float(limit["ci_high"])
    return [float(low > 0 or high < 0), float(limit["estimate"])]


def middle_of(design: Design, seed: int) -> list[float]:
    """Return whether the interval of the middle of the jump excludes 0, and the middle."""
    middle, low, high = tie(audit_of("tie", design, seed), "member").middle
    return [float(low > 0 or high < 0), middle]


CALLS = {"headline": found, "limit": limit_of, "tie": middle_of}


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def headline_row(design: Design, seen: np.ndarray) -> tuple[list, bool]:
    """Return the cells of one design at the default threshold, and whether they hold."""
    n = len(seen)
    symmetric, matched, unknown, mean = (_mean(column) for column in seen.T[:4])
    low, high = seen.T[4:]
    covers = covered(low, high, place_effect(design)) if design.lifted < 1 else float("nan")
    excludes = 1 - covered(low, high, 0.0)
    effect = ""
    if design.lifted == 1:
        good, text = unknown == 1, "not estimable"
    elif design.bias:
        good, text = symmetric >= max(10 * matched, FEWEST_FOUND), "≥ 10 × `matched`"
    else:
        good, text = bounded(symmetric, n, AT_MOST_5)
    if design.clicks == "none":
        held, effect = bounded(excludes, n, AT_MOST_5)
        good &= held
    elif design.lifted < 1:
        held, effect = bounded(covers, n, AT_LEAST_93)
        good &= held
    numbers = [symmetric, text, matched, unknown, f"{mean:+.4f}", covers, effect, excludes, n]
    return [*design.shown, *numbers], good


def limit_row(design: Design, seen: np.ndarray) -> tuple[list, bool]:
    """Return the cells of the limit in one design, and whether they hold."""
    excludes, mean = (_mean(column) for column in seen.T)
    good, text = bounded(excludes, len(seen), AT_MOST_5)
    return [*design.shown, excludes, text, f"{mean:+.4f}", len(seen)], good


ROWS = {"headline": headline_row, "limit": limit_row, "tie": limit_row}
HOW = {
    "headline": "at the first percentile",
    "limit": "by the limit",
    "tie": "by the middle of the jump of `charts.tie`",
}


def print_tables(results: dict) -> bool:
    """Print the table of each study, and return whether everything holds."""
    holds = True
    for study, (queries, size) in SIZES.items():
        rows = [
            ROWS[study](design, seen) for (name, design), seen in results.items() if name == study
        ]
        if not rows:
            continue
        print(f"{queries:,} lists of {size} items, {HOW[study]}\n")
        show([*DESIGN, *HEADER[study]], rows)
        print()
        holds &= all(good for _, good in rows)
    return holds


def main() -> int:
    """Run the simulations, print the tables, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_shards(parser)
    parser.add_argument("--only", nargs="*", default=list(STUDIES), choices=list(STUDIES))
    parser.add_argument("--named", default="", help="only designs with these words in their row")
    parser.add_argument("--lists", type=int, help="how many lists a log of the first table has")
    parser.add_argument("--store", action="store_true", help="write the tables into the docs")
    chosen = parser.parse_args()
    results = {}
    if chosen.lists:
        SIZES["headline"] = (chosen.lists, SIZES["headline"][1])
    for study, design in itertools.chain(*(STUDIES[name] for name in chosen.only)):
        key = "; ".join([study, *design.cells])
        if chosen.named not in key:
            continue
        key += f"; {chosen.lists} lists" if chosen.lists else ""
        seen = run_shard(key, partial(CALLS[study], design), chosen)
        if len(seen):
            results[study, design] = np.array(seen, dtype=float)
    page = io.StringIO()
    with redirect_stdout(page):
        holds = print_tables(results)
    most = error(0.05, min(len(seen) for seen in results.values()))
    text = f"nominal 5 %, Monte-Carlo error of it {most:.3f}; commit {commit(chosen.keep)}\n\n"
    text += page.getvalue().rstrip() + "\n"
    print(text)
    if chosen.store:
        some = "" if set(chosen.only) == set(STUDIES) else "-".join(["", *chosen.only])
        STORED.with_stem(STORED.stem + some).write_text(text, encoding="utf-8")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
