"""Run the benchmarks of the pages in ``docs/explanation`` and keep what they print.

    python tests/benchmarks/results_page.py FOLDER [NAME…]

FOLDER takes logs and what spills, about 12 GB; with names, only those tables are made again. Each
table goes to ``docs/explanation/measured``, from where a page includes it, also where a ratio
misses its limit. Takes half an hour on two cores that have nothing else to do.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MEASURED = HERE.parents[1] / "docs" / "explanation" / "measured"
TABLES = {
    "speed": ["speed.py"],
    "peers": ["peers.py"],
    "union": ["union_cost.py"],
    "rules-speed": ["rules_speed.py", "--processor", "--runs", "2"],
    "sides-speed": ["sides_speed.py"],
    "producers-cost": ["producers_cost.py"],
    "cr3-cost": ["cr3_cost.py"],
    "estimands-speed": ["estimands_speed.py"],
    "preflight-cost": ["preflight_cost.py"],
    "long-list": ["long_list.py"],
    "saving": ["storage_speed.py"],
    "rest-speed": ["rest_speed.py"],
    "explorer-speed": ["explorer_speed.py"],
    "files": ["duckdb_scale.py", "{folder}"],
    "files-union": ["duckdb_scale.py", "{folder}", "--rows", "10000000", "--union"],
    "files-skewed": ["duckdb_scale.py", "{folder}", "--longest", "1000000", "--runs", "1"],
    "new-numbers": ["new_numbers_out_of_core.py", "{folder}"],
    "growth": ["growth.py", "{folder}", "--most", "100000000"],
    "repeated-looks": ["repeated_looks.py"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES))
    asked = parser.parse_args()
    unknown = set(asked.names) - set(TABLES)
    if unknown:
        parser.error(f"there is no table {', '.join(sorted(unknown))}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    MEASURED.mkdir(exist_ok=True)
    missed = [name for name in asked.names or TABLES if not make(name, asked.folder)]
    print(f"missed a limit: {', '.join(missed)}" if missed else "every limit holds")
    return 1 if missed else 0


def make(name: str, folder: Path) -> bool:
    """Run one benchmark, keep its table and return whether its limits hold."""
    script, *arguments = (part.format(folder=folder) for part in TABLES[name])
    print(name, file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments], stdout=subprocess.PIPE, text=True
    )
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise RuntimeError(f"{script} ended with {done.returncode}")
    (MEASURED / f"{name}.md").write_text(done.stdout, "utf-8")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
