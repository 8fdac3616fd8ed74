"""What an audit of files costs beside DuckDB alone sorting the same columns to Parquet.

    python tests/benchmarks/duckdb_scale.py FOLDER [--rows 100000000] [--runs 2] [--union]

FOLDER takes the log, what spills and the sorted copy: about 70 bytes a row. 20 boolean groups, 50 ε
and query variance, once with a number as threshold and once with exact first percentiles, and with
``--union`` union variance over 50,000 items. Every run is a process of its own, under a bound of
4 GB; they take turns.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

from large_logs import GROUPS, truth, write
from machine import described
from timing import report

MEMORY_GIB = 4.0
THRESHOLD = 0.005
COLUMNS = {"query": "query", "score": "score", "outcome": "outcome"}


def sort_alone(log: str, folder: str) -> None:
    import duckdb

    config = {"threads": 2, "memory_limit": "2GB", "temp_directory": f"{folder}/spill"}
    connection = duckdb.connect(config=config)
    connection.sql(
        f"COPY (SELECT query, score, outcome, {', '.join(GROUPS)} FROM read_parquet('{log}') "
        f"ORDER BY query, score) TO '{folder}/sorted.parquet' (FORMAT parquet)"
    )


def audit_files(log: str, folder: str, kind: str) -> dict[str, list[float]]:
    import numpy as np

    import mpc_lab as mpc

    how: dict = {"cluster": "query", "threshold": THRESHOLD} if kind == "number" else {}
    if kind == "quantile":
        how = {"cluster": "query"}
    if kind in ("query items", "union items"):
        how = {"cluster": kind.split()[0], "item": "item"}
    audit = mpc.audit(
        log,
        **COLUMNS,
        **how,
        group=list(GROUPS),
        epsilon=np.linspace(0.0002, 0.01, 50),
        memory="4GB",
        spill=folder,
        progress=False,
    )
    found = audit.headline.sel(scoring_rule="baseline", pairing_mode="matched")
    known = [truth(float(e))[g] for g, e in zip(GROUPS, found.epsilon.values, strict=True)]
    error = (found.estimate.values - known) / found.std_error.values  # NaN: not estimable
    return {"standard errors from the truth": error.tolist()}


def measure(kind: str, log: str, folder: Path) -> tuple[float, float, float]:
    """Return wall seconds, GiB and processor seconds of a process of its own."""
    arguments = [sys.executable, __file__, str(folder), "--child", kind, "--log", log]
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    said = f"{kind}: {found['seconds']:.1f} s, {found['cpu']:.1f} s of processors"
    print(f"{said}, {found['gib']:.2f} GiB", file=sys.stderr, flush=True)
    if "standard errors from the truth" in found:
        # One query that has nearly all pairs leaves nothing to estimate an error from.
        away = [abs(error) for error in found["standard errors from the truth"] if error == error]
        assert max(away, default=0) < 5, f"the truth is {max(away):.1f} standard errors away"
    return found["seconds"], found["gib"], found["cpu"]


def child(kind: str, log: str, folder: str) -> None:
    start = time.perf_counter()
    found = sort_alone(log, folder) if kind == "sort" else audit_files(log, folder, kind)
    seconds = time.perf_counter() - start
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    print(json.dumps({"seconds": seconds, "cpu": cpu, "gib": gib, **(found or {})}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--longest", type=int, default=0, help="rows of one more, long query")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--union", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--log", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(asked.child, asked.log, str(asked.folder))
        return 0
    items = 50_000 if asked.union else 0
    log = asked.folder / f"log-{asked.rows}-{items}-{asked.longest}"
    if not log.exists():
        write(log, asked.rows, items=items, longest=0 if asked.union else asked.longest)
    kinds = ["query items", "union items"] if asked.union else ["sort", "number", "quantile"]
    runs = [
        [measure(kind, f"{log}/*.parquet", asked.folder) for kind in kinds]
        for _ in range(asked.runs)
    ]
    (asked.folder / "sorted.parquet").unlink(missing_ok=True)
    shutil.rmtree(asked.folder / "spill", ignore_errors=True)
    seconds = {k: min(run[n][0] for run in runs) for n, k in enumerate(kinds)}
    cpu = {k: min(run[n][2] for run in runs) for n, k in enumerate(kinds)}
    memory = {k: max(run[n][1] for run in runs) for n, k in enumerate(kinds)}
    print(f"{asked.rows:,} rows; {described('duckdb', 'numpy', 'numba')}\n")
    if asked.union:
        rows = [
            ("union variance / query variance", seconds[kinds[1]] / seconds[kinds[0]], 4.0),
            ("the same in processor time", cpu[kinds[1]] / cpu[kinds[0]], None),
            ("memory of union variance, GiB", memory[kinds[1]], MEMORY_GIB),
        ]
    else:
        rows = [
            ("one threshold / DuckDB sorting alone", seconds["number"] / seconds["sort"], 1.5),
            ("first percentiles / one threshold", seconds["quantile"] / seconds["number"], 2.0),
            ("the first in processor time", cpu["number"] / cpu["sort"], None),
            ("the second in processor time", cpu["quantile"] / cpu["number"], None),
            ("memory of the audit, GiB", max(memory["number"], memory["quantile"]), MEMORY_GIB),
            ("memory of DuckDB alone, GiB", memory["sort"], None),
            ("seconds of DuckDB alone", seconds["sort"], None),
        ]
    return 0 if report(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
