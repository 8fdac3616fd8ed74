"""Time a few calls in one run, and print what they cost as ratios."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def least_of(runs: int, call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least wall time of some runs, after one to warm up, and the last result."""
    result = call()
    least = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        result = call()
        least = min(least, time.perf_counter() - start)
    return least, result


def report(rows: list[tuple[str, float, float | None]]) -> bool:
    """Print a Markdown table of (what, ratio, at most) and return whether every ratio holds."""
    print("| what | ratio | at most | |\n|---|---|---|---|")
    held = True
    for what, ratio, limit in rows:
        good = limit is None or ratio <= limit
        held &= good
        mark = "" if limit is None else "holds" if good else "**missed**"
        print(f"| {what} | {ratio:.2f} | {'' if limit is None else f'{limit:g}'} | {mark} |")
    return held
