"""Repeat a simulation in one or several processes, and print rates with their Monte-Carlo error."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple


class Bound(NamedTuple):
    """The lowest and the highest rate, and how many Monte-Carlo errors are allowed beyond them."""

    low: float
    high: float
    errors: float = 0.0


NOMINAL = Bound(0.93, 0.97, errors=2)
AT_LEAST_93 = Bound(0.93, 1.0)
AT_LEAST_90 = Bound(0.90, 1.0)
AT_MOST_5 = Bound(0.0, 0.05, errors=2)


def options(description: str, repetitions: int = 2000) -> argparse.Namespace:
    """Read ``--repetitions`` and ``--jobs`` from the command line."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=repetitions)
    parser.add_argument("--jobs", type=int, default=2, help="how many processes to share them")
    return parser.parse_args()


def repeat(call: Callable[[int], Any], repetitions: int, jobs: int) -> list[Any]:
    """Return what the call gives for the seeds 0, 1, …, in this order whatever the jobs."""
    seeds = range(repetitions)
    if jobs <= 1:
        return [call(seed) for seed in seeds]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(call, seeds, chunksize=max(1, repetitions // (8 * jobs))))


def error(rate: float, n: int) -> float:
    """Return the Monte-Carlo standard error of a rate over n repetitions."""
    return math.sqrt(max(rate * (1 - rate), 0.0) / n)


def bounded(rate: float, n: int, bound: Bound) -> tuple[bool, str]:
    """Return whether a rate over n repetitions keeps to its bound, and the bound in words."""
    # The error a true rate at the bound would have: one seen as 0 or 1 would have none.
    low = bound.low - bound.errors * error(bound.low, n)
    high = bound.high + bound.errors * error(bound.high, n)
    if bound.high == 1:
        return rate >= low, f"≥ {low:.3f}"
    return low <= rate <= high, f"≤ {high:.3f}" if bound.low == 0 else f"[{low:.3f}, {high:.3f}]"


def show_designs(
    header: Sequence[str],
    designs: Mapping[str, Any],
    rows: Callable[[str, Any, int, int], Sequence[tuple[Sequence[Any], bool]]],
    chosen: argparse.Namespace,
) -> int:
    """Print the rows of every design, and return the exit code: whether all of them hold.

    Parameters
    ----------
    header : sequence of str
    designs : mapping of str
    rows : callable
        From name, design, repetitions and jobs to rows of (cells, whether they hold).
    chosen : argparse.Namespace
        What `options` returned.
    """
    found = [
        row
        for name, design in designs.items()
        for row in rows(name, design, chosen.repetitions, chosen.jobs)
    ]
    show(header, found)
    return 0 if all(good for _, good in found) else 1


def show(header: Sequence[str], rows: Sequence[tuple[Sequence[Any], bool]]) -> None:
    """Print a Markdown table of cells and whether they hold; floats get three digits."""
    print(f"| {' | '.join(header)} | |\n|{'---|' * (len(header) + 1)}")
    for cells, good in rows:
        texts = (f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells)
        print(f"| {' | '.join(texts)} | {'holds' if good else '**missed**'} |")
