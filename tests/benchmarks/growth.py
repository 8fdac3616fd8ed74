"""How time and memory grow with the rows, in memory and out of core, and what threads bring.

    python tests/benchmarks/growth.py FOLDER [--most 10000000]

20 groups, 50 ε, first percentiles, query variance. Every run is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from large_logs import GROUPS, write
from machine import described

COLUMNS = {"query": "query", "score": "score", "outcome": "outcome"}
IN_MEMORY_UP_TO = 10_000_000


def child(log: str, engine: str) -> None:
    import numpy as np
    import pyarrow.parquet as pq

    import mpc_lab as mpc

    mpc.audit(mpc.datasets.synthetic(queries=200), progress=False)  # compile
    start = time.perf_counter()
    how = {**COLUMNS, "group": list(GROUPS), "progress": False}
    how["epsilon"] = np.linspace(0.0002, 0.01, 50)
    if engine == "files":
        mpc.audit(f"{log}/*.parquet", memory="4GB", spill=str(Path(log).parent), **how)
    else:
        mpc.audit(pq.read_table(log), **how)
    seconds = time.perf_counter() - start
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps([seconds, gib]))


def measure(log: Path, engine: str, threads: int) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, __file__, str(log), "--child", engine],
        capture_output=True,
        text=True,
        env={**os.environ, "MPC_LAB_THREADS": str(threads)},
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    seconds, gib = json.loads(done.stdout.splitlines()[-1])
    return seconds, gib


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(str(asked.folder), asked.child)
        return
    print(f"{described('duckdb', 'numpy', 'numba')}\n")
    print("| rows | engine | threads | seconds | microseconds a row | GiB |")
    print("|---|---|---|---|---|---|")
    rows = 100_000
    while rows <= asked.most:
        log = asked.folder / f"growth-{rows}"
        if not log.exists():
            write(log, rows)
        for engine in ("memory", "files"):
            if engine == "memory" and rows > IN_MEMORY_UP_TO:
                continue
            for threads in (1, 2):
                seconds, gib = measure(log, engine, threads)
                each = f"{1e6 * seconds / rows:.2f}"
                print(f"| {rows:,} | {engine} | {threads} | {seconds:.1f} | {each} | {gib:.2f} |")
        rows *= 10


if __name__ == "__main__":
    main()
