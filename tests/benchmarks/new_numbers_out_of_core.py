"""What symmetric pairs, producers, CR3, differences and partial gaps cost where rows are walked.

    python tests/benchmarks/new_numbers_out_of_core.py FOLDER [--engines memory files dask spark]
        [--kinds matched symmetric ...] [--rows 10000000] [--cluster-rows 1000000] [--runs 2]
        [--keep FILE] [--kept] [--processor]

Ratios to the plain audit of the same log: Parquet through DuckDB under a bound of 4 GB, a Dask
cluster of two threads, Spark with two local workers, and for comparison rows in memory. 20 groups,
50 ε, first percentiles, 50,000 items (of ten a producer), lists that lie scattered over the files.
Wall and processor time, the least of some runs that take turns, after a small log that warms; on
files every run is a process of its own, else all are in one. Processor time includes that of child
processes. Exits with 1 where that of files or a cluster is above the limit. ``--keep`` adds what
was measured to a file, so that engines and kinds can be measured one after the other; ``--kept``
prints what is there. ``--processor`` leaves wall time out, for a machine that others use too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import psutil

import mpc_lab as mpc
from large_logs import EFFECT, GROUPS, write
from machine import described

MEMORY_GIB = 4.0
ENGINES = ("memory", "files", "dask", "spark")
WARMING_ROWS = 20_000
COLUMNS = {"query": "query", "score": "score", "outcome": "outcome", "group": list(GROUPS)}
BY_ITEM = {"item": "item"}
BOTH_MODES = ("matched", "symmetric")
KINDS: dict[str, dict[str, Any]] = {
    "matched": {},
    "symmetric": {"pairing_modes": BOTH_MODES},
    "positions": {"pairing_modes": BOTH_MODES, "position": "place"},
    "root": {"estimand": "root"},
    "items": BY_ITEM,
    "without CR3": {**BY_ITEM, "correction": "plain"},
    "symmetric items": {**BY_ITEM, "pairing_modes": BOTH_MODES},
    "producers": {**BY_ITEM, "producer": "producer"},
    "two rules": {**BY_ITEM, "scoring_rules": ["baseline", mpc.Column("new")]},
}
# Questions that walk the log again, timed apart from the audit that is asked.
QUESTIONS: dict[str, tuple[str, Callable[[mpc.Audit], Any]]] = {
    "two rules": ("difference", lambda audit: audit.difference("new", "baseline")),
    "items": ("partial", lambda audit: audit.partial(["price"])),
}


class Cost(NamedTuple):
    """One line of the table: a cost, what it is divided by, and the most that it may be."""

    words: str
    kind: str
    base: str
    most: float | None


COSTS = (
    Cost("symmetric pairs too / matched pairs", "symmetric", "matched", 1.25),
    Cost("symmetric pairs inside cells of places / matched pairs", "positions", "matched", 1.8),
    Cost("`root` / all pairs alike", "root", "matched", 1.3),
    Cost("union variance / query variance", "items", "matched", 4.0),
    Cost("union variance: symmetric pairs too / matched", "symmetric items", "items", 1.6),
    Cost("union variance: producers / items", "producers", "items", 1.3),
    Cost("union variance: with CR3 / without", "items", "without CR3", 1.3),
    Cost("`difference` of two rules / audit of both", "difference", "two rules", 1.5),
    Cost("`partial` with a covariate / audit with union variance", "partial", "items", None),
)


class Spent(NamedTuple):
    """What one run took: seconds, seconds of all processors, and GiB of this process."""

    wall: float
    processor: float
    gib: float


# ---- the log


def prepare(folder: Path, rows: int) -> Path:
    """Write a log with places, producers, another score and a covariate; return its folder."""
    import duckdb

    made = folder / f"new-numbers-{rows}"
    if made.exists():
        return made
    plain = folder / f"plain-{rows}"
    write(plain, rows, items=50_000)
    made.mkdir()
    config = {"threads": 2, "memory_limit": "3GB", "temp_directory": f"{folder}/spill"}
    shown = "row_number() OVER (PARTITION BY query ORDER BY score DESC)"
    noise, price = (f"hash(item, query, {k}) / 18446744073709551616.0" for k in (1, 2))
    with duckdb.connect(config=config) as connection:
        connection.sql(
            f"COPY (SELECT *, item // 10 AS producer, {shown} AS place, "
            f"score + 0.1 * {noise} AS new, {price} AS price FROM '{plain}/*.parquet' "
            f"ORDER BY hash(score)) TO '{made}/part-0.parquet'"
        )
    for part in plain.iterdir():
        part.unlink()
    plain.rmdir()
    return made


# ---- one run


@contextmanager
def without_second_sweep() -> Iterator[None]:
    """Leave out the sweep that finds what single queries weigh, which CR3 alone needs."""
    from mpc_lab.pairing.moments import UnitWeights

    def unweighed(_source, _rule, own):
        return own, UnitWeights(*np.full((3, *own.pairs.shape), np.nan))

    with patch("mpc_lab.run.weigh_headline", unweighed):
        yield


def run(kind: str, opened: Callable[[], Any], **files: str) -> dict[str, Spent]:
    """Audit a log once, ask the audit what belongs to the kind, and return what each took."""
    options = {**COLUMNS, **KINDS[kind], **files, "progress": False}
    options["epsilon"] = np.linspace(0.0002, 0.01, 50)
    made: list[mpc.Audit] = []

    def audit() -> None:
        made.append(mpc.audit(opened(), **options))

    if kind == "without CR3":
        with without_second_sweep():
            return {kind: time_of(audit)}
    spent = {kind: time_of(audit)}
    check_truth(made[0])
    if kind in QUESTIONS:
        name, ask = QUESTIONS[kind]
        spent[name] = time_of(lambda: ask(made[0]))
    return spent


def time_of(call: Callable[[], Any]) -> Spent:
    start, used = time.perf_counter(), used_by_all()
    call()
    wall, processor = time.perf_counter() - start, used_by_all() - used
    return Spent(wall, processor, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def used_by_all() -> float:
    """Return the processor seconds of this process and of those it started."""
    own = psutil.Process()
    return sum(sum(one.cpu_times()[:4]) for one in (own, *own.children(recursive=True)))


def check_truth(audit: mpc.Audit) -> None:
    """Stop where a symmetric gap, which no slope of the score biases, is far from the truth."""
    found = audit.headline.sel(scoring_rule="baseline")
    if "symmetric" not in found.pairing_mode or audit.headline.n_queries.max() < 1000:
        return
    found = found.sel(pairing_mode="symmetric")
    away = np.abs(found.estimate.values - EFFECT) / found.std_error.values
    assert away.max() < 5, f"the truth is {away.max():.1f} standard errors away"


# ---- an engine


@contextmanager
def opening(engine: str) -> Iterator[Callable[[Path], Any]]:
    """Give a function that opens the log in a folder, as an engine takes it."""
    if engine == "memory":
        import pyarrow.parquet as pq

        yield pq.read_table
    elif engine == "files":
        yield lambda log: f"{log}/*.parquet"
    elif engine == "dask":
        import dask.dataframe as dd
        from distributed import Client

        alone = {"processes": False, "n_workers": 1, "threads_per_worker": 2}
        with Client(**alone, dashboard_address=None):
            yield lambda log: dd.read_parquet(log, split_row_groups=True)
    else:
        with spark_session() as session:
            yield lambda log: session.read.parquet(str(log))


@contextmanager
def spark_session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    try:
        yield session
    finally:
        session.stop()


def child(engine: str, kinds: list[str], folder: Path, rows: int, runs: int) -> None:
    """Run kinds in turn in this process, and print a line for each."""
    files = {"memory": "4GB", "spill": str(folder)} if engine == "files" else {}
    log, small = prepare(folder, rows), prepare(folder, WARMING_ROWS)
    with opening(engine) as opened:
        for kind in kinds:
            run(kind, partial(opened, small), **files)
        for kind in kinds * runs:
            spent = run(kind, partial(opened, log), **files)
            print(json.dumps({name: tuple(one) for name, one in spent.items()}), flush=True)


def measure(engine: str, kinds: list[str], folder: Path, rows: int, runs: int) -> Iterator[dict]:
    """Yield what every run took: each in a process of its own on files, else in one for all."""
    prepare(folder, rows), prepare(folder, WARMING_ROWS)
    turns = [[kind] for _ in range(runs) for kind in kinds] if engine == "files" else [kinds]
    for some in turns:
        own_runs = 1 if engine == "files" else runs
        arguments = [str(folder), "--child", engine, "--kinds", *some]
        arguments += ["--rows", str(rows), "--runs", str(own_runs)]
        done = subprocess.run(
            [sys.executable, __file__, *arguments], capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        for line in done.stdout.splitlines():
            if line.startswith('{"'):
                print(f"{engine}: {line}", file=sys.stderr, flush=True)
                yield {"engine": engine, "rows": rows, "spent": json.loads(line)}


# ---- the table


def show(lines: list[dict], *, wall: bool) -> bool:
    """Print ratios by engine, and return whether those of processor time keep to their limits."""
    least: dict[tuple[str, str], Spent] = {}
    for line in lines:
        for name, values in line["spent"].items():
            key, spent = (line["engine"], name), Spent(*values)
            before = least.get(key, spent)
            least[key] = Spent(*map(min, before[:2], spent[:2]), max(before.gib, spent.gib))
    engines = [engine for engine in ENGINES if any(line["engine"] == engine for line in lines)]
    for engine in engines:
        rows = next(line["rows"] for line in lines if line["engine"] == engine)
        base = least.get((engine, "matched"))
        took = f"; matched pairs take {base.processor:.1f} s of processor time" if base else ""
        print(f"{engine}: {rows:,} rows{took}  ")
    times = ("wall", "processor") if wall else ("processor",)
    heads = [f"{engine}, {what}" for engine in engines for what in times]
    print(f"\n| ratio | {' | '.join(heads)} | at most | |\n|{'---|' * (len(heads) + 3)}")
    held = True
    for cost in COSTS:
        found = {e: (least.get((e, cost.kind)), least.get((e, cost.base))) for e in engines}
        held &= show_cost(cost, found, times)
    gib = max((spent.gib for (engine, _), spent in least.items() if engine == "files"), default=0.0)
    print(f"\nMost memory of an audit of files: {gib:.2f} GiB (at most {MEMORY_GIB:g}).")
    return held and gib <= MEMORY_GIB


def show_cost(
    cost: Cost, found: dict[str, tuple[Spent | None, Spent | None]], times: Sequence[str]
) -> bool:
    """Print one line; a ratio that was not measured is left empty."""
    cells, held = [], True
    for engine, (spent, base) in found.items():
        if spent is None or base is None:
            cells += [""] * len(times)
            continue
        ratio = spent.processor / base.processor
        cells += [f"{getattr(spent, what) / getattr(base, what):.2f}" for what in times]
        held &= cost.most is None or engine == "memory" or ratio <= cost.most
    if not any(cells):
        return True
    mark = "" if cost.most is None else "holds" if held else "**missed**"
    most = "" if cost.most is None else f"{cost.most:g}"
    print(f"| {cost.words} | {' | '.join(cells)} | {most} | {mark} |")
    return held


def main() -> int:
    """Measure what is asked for, print the table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--cluster-rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="file of what each run took; added to")
    parser.add_argument("--kept", action="store_true", help="print what is kept, run nothing")
    parser.add_argument("--processor", action="store_true", help="leave wall time out")
    parser.add_argument("--child", choices=ENGINES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    if asked.child:
        child(asked.child, asked.kinds, asked.folder, asked.rows, asked.runs)
        return 0
    lines = []
    if asked.keep and asked.keep.exists():
        lines = [json.loads(line) for line in asked.keep.read_text("utf-8").splitlines()]
    for engine in () if asked.kept else asked.engines:
        rows = asked.rows if engine == "files" else asked.cluster_rows
        for line in measure(engine, asked.kinds, asked.folder, rows, asked.runs):
            lines.append(line)
            if asked.keep:
                with asked.keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
    print(f"{described('duckdb', 'dask', 'pyspark', 'numpy', 'numba')}\n")
    return 0 if show(lines, wall=not asked.processor) else 1


if __name__ == "__main__":
    sys.exit(main())
