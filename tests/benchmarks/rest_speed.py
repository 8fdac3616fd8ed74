"""What the questions beside the audit cost, as ratios to a sort of the log's rows.

    python tests/benchmarks/rest_speed.py [--rows 1000000] [--only NAME …]

20 overlapping groups, 50,000 items that are in many queries. As many threads as the machine has;
kernels are warmed on a small log, then each question is asked of a fresh audit, the least of two.
Processor time is given beside wall time: other work on the machine changes it less. The Boost tab
is opened on a log of 100,000 rows whatever ``--rows``, and timed in seconds. 4,000 placebos, 200
of each group, are a row without a limit. Ends in 1 where a limit is missed;
``results_page.py FOLDER rest-speed`` keeps what it prints.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mpc_lab as mpc
from logs import overlapping_groups
from machine import described
from timing import least_of

BOOST_ROWS = 100_000
COLUMNS = {name: name for name in ("query", "item", "score", "outcome")}
IMPORTS = "import pandas, xarray, numba, statsmodels.api"
FIRST_AUDIT = """
import numpy as np, pandas as pd
import mpc_lab as mpc
r = np.random.default_rng(0)
n = 2000
frame = pd.DataFrame({"q": np.repeat(np.arange(n // 10), 10), "i": np.tile(np.arange(20), n // 20),
    "s": r.random(n), "y": r.integers(0, 2, n), "g": r.choice(["a", "b"], n)})
mpc.audit(frame, query="q", item="i", score="s", outcome="y", group="g", progress=False).headline
"""


def make_ranking(rows: int) -> mpc.Ranking:
    frame = overlapping_groups(rows, queries=max(rows // 100, 10), items=max(rows // 20, 200))
    return mpc.Ranking(frame, **COLUMNS, group="groups", group_sep="|")


def write_report(audit: mpc.Audit) -> None:
    with tempfile.TemporaryDirectory() as folder:
        audit.report(Path(folder) / "report.html", progress=False)


def open_boost_tab(audit: mpc.Audit) -> None:
    """Build and draw the tab, up to what is sent to the page."""
    explorer = mpc.explorers.BoostExplorer(audit, group=audit.groups[-1])
    assert explorer.widget.children
    assert not explorer.error


def ask_limits(audit: mpc.Audit) -> None:
    for group in audit.groups:
        audit.limit(group)


QUESTIONS: dict[str, tuple[str, Callable[[mpc.Audit], Any], float]] = {
    "compare": ("compare() of 20 groups", lambda audit: audit.compare(), 8.0),
    "limit": ("limit of 20 groups", ask_limits, 20.0),
    "balance": (
        "balance of a group, 200 placebos",
        lambda audit: audit.balance(group=audit.groups[-1]),
        10.0,
    ),
    "balance_alone": (
        "balance of 20 groups, no placebos",
        lambda audit: audit.balance(permutations=0),
        10.0,
    ),
    "placebos": (
        "balance of 20 groups, 200 placebos each",
        lambda audit: audit.balance(),
        math.inf,
    ),
    "certificate": (
        "certificate of a group",
        lambda audit: audit.certificate(audit.groups[-1]),
        5.0,
    ),
    "fair_boost": (
        "fair boost of a group",
        lambda audit: audit.fair_boost(audit.groups[-1]),
        5.0,
    ),
    "report": ("the whole report", write_report, 60.0),
}


def ask(ranking: mpc.Ranking, question: Callable[[mpc.Audit], Any], runs: int) -> tuple[float, ...]:
    """Return the least wall and processor time of a question to a fresh audit."""
    walls, processors = [], []
    for _ in range(runs):
        audit = mpc.audit(ranking, progress=False)
        wall, processor = time.perf_counter(), time.process_time()
        question(audit)
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return min(walls), min(processors)


def start(code: str) -> float:
    """Return the processor time of a new Python process that runs some code, warm."""
    import resource

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    times = []
    for _ in range(6):
        before = used()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(used() - before)
    return statistics.median(times[1:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[*QUESTIONS, "audit", "boost", "start"])
    asked = parser.parse_args()
    small = make_ranking(20_000)
    ranking = make_ranking(asked.rows)
    query, score = ranking.query_code, ranking.score
    sort, _ = least_of(3, lambda: np.lexsort((score, query)))
    before = time.process_time()
    np.lexsort((score, query))
    sort_processor = time.process_time() - before
    print(f"{asked.rows:,} rows, 20 groups; {described('numpy', 'pandas', 'xarray')}\n")
    print(
        f"np.lexsort of {asked.rows:,} rows: {sort:.2f} s, {sort_processor:.2f} s of a processor\n"
    )
    print("| what | ratio of wall time | of processor time | at most | |")
    print("|---|---|---|---|---|")
    held = True

    def line(what: str, wall: str, processor: float, most: float, found: float) -> None:
        nonlocal held
        held &= found <= most
        mark = "holds" if found <= most else "**missed**"
        held_to = f"{most:g} | {mark}" if math.isfinite(most) else " | "
        print(f"| {what} | {wall} | {processor:.2f} | {held_to} |", flush=True)

    if "audit" in asked.only:
        mpc.audit(small, progress=False)
        processor = time.process_time()
        wall, _ = least_of(asked.runs, lambda: mpc.audit(ranking, progress=False))
        processor = (time.process_time() - processor) / (asked.runs + 1)
        line("audit by default", f"{wall / sort:.2f}", processor / sort_processor, 2.0, wall / sort)
    for name, (what, question, most) in QUESTIONS.items():
        if name in asked.only:
            ask(small, question, 1)
            wall, processor = ask(ranking, question, asked.runs)
            line(what, f"{wall / sort:.2f}", processor / sort_processor, most, wall / sort)
    if "boost" in asked.only:
        ask(small, open_boost_tab, 1)
        wall, processor = ask(make_ranking(BOOST_ROWS), open_boost_tab, asked.runs)
        line(f"the Boost tab opens on {BOOST_ROWS:,} rows, s", f"{wall:.2f}", processor, 1.0, wall)
    if "start" in asked.only:
        ratio = start(FIRST_AUDIT) / start(IMPORTS)
        line("start to first audit / bare imports", "", ratio, 1.5, ratio)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
