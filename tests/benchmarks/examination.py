"""Do the intervals of the estimated examination hold the truth, place by place?

    python tests/benchmarks/examination.py --repetitions 1000 --keep examination.jsonl
    python tests/benchmarks/examination.py --repetitions 1000 --keep examination.jsonl --store

Logs of 20,000 lists of 20 items, clicked by k^-0.7 or 1/k at place k, or read from the top until
the first click (a cascade), where the truth is how often a place is looked at on average and no
bound is asked. From neighbours in the list with nearly equal scores alone, `audit.examination()`
says how often places 2 to 10 are looked at.
Lists are drawn as arrays and handed to the estimator behind it, with the same default distance; a
test holds the two paths to the same numbers. Prints coverage of the 95 % intervals with its
Monte-Carlo error, and the mean estimate. Exits with 1 if a place is covered in less than 93 %.
"""

from __future__ import annotations

import os

os.environ["MPC_LAB_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import sys
from functools import cache, partial
from pathlib import Path

import numpy as np

from mpc_lab.inference.examination import Neighbours, estimate_examination
from repeating import AT_LEAST_93, bounded, error, show
from sharded import add_shards, commit, print_and_store, run_shard

LISTS, SIZE, LAST = 20_000, 20, 10
SHARE = 0.05
DESIGNS = {"k^-0.7": 0.7, "1/k": 1.0, "cascade": None}
STORED = Path(__file__).resolve().parents[2] / "docs/explanation/measured/examination.md"
HEADER = ["clicks", "place", "truth", "mean estimate", "covers", "Monte-Carlo error", "bound"]
HEADER += ["known", "logs"]
MANY = 100_000


def draw(rng: np.random.Generator, lists: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores in the order that they are shown in, and what the items are worth."""
    score = np.sort(0.1 + 0.5 * rng.random((lists, SIZE)), axis=1)[:, ::-1]
    return score, score + 0.05 * (rng.random(score.shape) < 0.4)


def clicked(eta: float | None, worth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw clicks; without an exponent a list is read until the first one."""
    if eta is not None:
        return rng.random(worth.shape) < np.arange(1.0, SIZE + 1) ** -eta * worth
    wanted = rng.random(worth.shape) < worth
    return wanted & (np.cumsum(wanted, axis=1) == 1)


@cache
def truth_of(eta: float | None) -> np.ndarray:
    """Return how often each place is looked at; in a cascade by the mean of many lists."""
    if eta is not None:
        return np.arange(1.0, LAST + 1) ** -eta
    skipped = np.cumprod(1 - draw(np.random.default_rng(10**6), MANY)[1], axis=1).mean(axis=0)
    return np.concatenate([[1.0], skipped[: LAST - 1]])


def neighbours(eta: float | None, seed: int, lists: int = LISTS) -> Neighbours:
    """Draw a log, and return its neighbours with nearly equal scores."""
    rng = np.random.default_rng(seed)
    score, worth = draw(rng, lists)
    click = clicked(eta, worth, rng).astype(float)
    distance = score[:, :-1] - score[:, 1:]
    k = int(np.ceil(SHARE * distance.size))
    near = distance <= np.partition(distance, k - 1, axis=None)[k - 1]
    query, upper = np.nonzero(near)
    return Neighbours(
        upper + 1, click[query, upper], click[query, upper + 1], distance[near], query
    )


def found(eta: float | None, lists: int, seed: int) -> list[float]:
    """Return the estimates of places 2 to 10, and whether their intervals hold the truth."""
    made = estimate_examination(neighbours(eta, seed, lists), places=LAST)
    truth = truth_of(eta)
    known = len(made.place)
    estimate, covers = np.full(LAST, np.nan), np.full(LAST, np.nan)
    estimate[:known] = made.examined
    covers[:known] = (made.low <= truth[:known]) & (truth[:known] <= made.high)
    return [*estimate[1:].tolist(), *covers[1:].tolist()]


def table(chosen: argparse.Namespace) -> list[tuple[list, bool]]:
    rows = []
    for name in chosen.only:
        eta = DESIGNS[name]
        seen = np.array(run_shard(name, partial(found, eta, LISTS), chosen))
        estimates, covers = np.split(seen, 2, axis=1)
        for k in range(LAST - 1):
            known = np.isfinite(covers[:, k])
            if not known.any():
                continue
            rate = float(covers[known, k].mean())
            good, text = bounded(rate, int(known.sum()), AT_LEAST_93)
            good, text = (True, "") if eta is None else (good and known.all(), text)
            mean = f"{estimates[known, k].mean():.4f}"
            cells = [name, k + 2, f"{truth_of(eta)[k + 1]:.4f}", mean, rate]
            cells += [error(rate, int(known.sum())), text, float(known.mean()), len(known)]
            rows.append((cells, good))
    return rows


def main() -> int:
    """Run the simulation, print the table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_shards(parser)
    parser.add_argument("--only", nargs="*", default=list(DESIGNS), choices=list(DESIGNS))
    parser.add_argument("--store", action="store_true", help=f"write the table to {STORED.name}")
    chosen = parser.parse_args()
    rows = table(chosen)
    with print_and_store(STORED if chosen.store else None):
        print(f"Logs of {LISTS:,} lists of {SIZE}, nominal 95 %; commit {commit(chosen.keep)}\n")
        show(HEADER, rows)
    return 0 if all(good for _, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
