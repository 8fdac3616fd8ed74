"""Keep what each simulated log showed, by its seed, so that shards and stopped runs go together."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

HERE = Path(__file__).resolve().parent


def add_shards(parser: argparse.ArgumentParser, repetitions: int = 1000) -> None:
    """Give a command the options of a run in shards."""
    parser.add_argument("--repetitions", type=int, default=repetitions)
    parser.add_argument("--jobs", type=int, default=1, help="how many processes to share them")
    parser.add_argument("--shard", default="1/1", help="which of how many shards of the seeds")
    parser.add_argument("--keep", type=Path, help="file of what each log showed; added to")
    parser.add_argument("--kept", action="store_true", help="make no log, take those kept")


def current_commit() -> str:
    """Return the commit of the code that runs, marked where files differ from it."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(asked, cwd=HERE, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def _kept(path: Path | None) -> list[dict]:
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def commit(path: Path | None) -> str:
    """Return the commits that made what was kept."""
    return ", ".join(sorted({line["commit"] for line in _kept(path)})) or current_commit()


@contextmanager
def print_and_store(stored: Path | None) -> Iterator[None]:
    """Print at the end what the block prints, and write it to a file where one is given."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        yield
    print(printed.getvalue())
    if stored is not None:
        stored.write_text(printed.getvalue(), encoding="utf-8")


def run_shard(
    key: str, call: Callable[[int], Sequence[float]], chosen: argparse.Namespace
) -> list[Sequence[float]]:
    """Call for the seeds of a shard that are not kept yet, and return all that there are.

    Parameters
    ----------
    key : str
        Of the design.
    call : function of a seed
        Gives numbers.
    chosen : Namespace
        With the options of `add_shards`.
    """
    shard, shards = (int(part) for part in chosen.shard.split("/"))
    kept = {line["seed"]: line["seen"] for line in _kept(chosen.keep) if line["key"] == key}
    if chosen.kept:
        return [kept[seed] for seed in sorted(kept)]
    seeds = [seed for seed in range(shard - 1, chosen.repetitions, shards) if seed not in kept]
    made = current_commit()
    pool = ProcessPoolExecutor(chosen.jobs) if chosen.jobs > 1 and seeds else None
    each = max(1, len(seeds) // (8 * chosen.jobs))
    results = pool.map(call, seeds, chunksize=each) if pool else map(call, seeds)
    for seed, seen in zip(seeds, results, strict=True):
        kept[seed] = list(seen)
        if chosen.keep is not None:
            line = {"key": key, "seed": seed, "seen": list(seen), "commit": made}
            with chosen.keep.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
    if pool:
        pool.shutdown()
    return [kept[seed] for seed in sorted(kept) if seed < chosen.repetitions]
