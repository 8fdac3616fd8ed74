"""What saving and loading an audit cost, beside the layout of 0.1.

    python tests/benchmarks/storage_speed.py [--runs 7]

20 groups × 60 ε. 0.1 wrote and read one netCDF variable after the other with xarray; its way is
kept here in short. Both take turns in one run, everything warmed once, and the least time counts.
Both write the same audit to the same folder, and both give back the same numbers.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import mpc_lab as mpc
from logs import overlapping_groups
from machine import described
from mpc_lab.results.schema import clean_attrs, text
from mpc_lab.writing import replacing
from timing import report

AT_MOST = 1 / 8


def save_0_1(audit: mpc.Audit, path: Path) -> None:
    """Write each variable on its own, then the seal, as 0.1 did."""
    packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
    tree = audit.tree
    encoding = {
        node.path: {
            str(name): packed
            for name, variable in node.data_vars.items()
            if variable.size > 10_000 and variable.dtype.kind in "fiu"
        }
        for node in tree.subtree
    }
    with replacing(path) as part:
        tree.to_netcdf(part, engine="h5netcdf", encoding=encoding)
        seal = hashlib.sha256(part.read_bytes()).hexdigest()
        with open(part, "ab") as file:
            file.write(f"\nmpc_lab sha256 {seal}\n".encode())


def load_0_1(path: Path) -> mpc.Audit:
    """Read each variable on its own, as 0.1 did."""
    hashlib.sha256(path.read_bytes()[:-81]).hexdigest()
    with xr.open_datatree(path, engine="h5netcdf", decode_times=False) as tree:
        tree.load()
        parts = {name: restored(child.to_dataset()) for name, child in tree.children.items()}
        attrs = clean_attrs(tree.attrs)
    found = mpc.Audit(
        parts["headline"],
        parts["curve"],
        parts["moments"],
        attrs,
        saved={"objective": parts["objective"]},
    )
    _ = found.curve, found.moments
    return found


def restored(ds: xr.Dataset) -> xr.Dataset:
    def plain(variable: xr.Variable) -> xr.Variable:
        values = text(variable.values) if variable.dtype.kind in "OUT" else variable.values
        return xr.Variable(variable.dims, values, variable.attrs)

    whole = {name: plain(variable) for name, variable in ds.variables.items()}
    dims = dict.fromkeys(dim for name in ds.data_vars for dim in whole[name].dims)
    return xr.Dataset(
        {name: whole[name] for name in ds.data_vars},
        coords={dim: whole[dim] for dim in dims if dim in ds.coords},
        attrs=clean_attrs(ds.attrs),
    )


def in_turn(
    runs: int, calls: dict[str, Callable[[], Any]], clock: Callable[[], float]
) -> dict[str, float]:
    """Return the least time of each call, all called in turn, after one round to warm up."""
    least = dict.fromkeys(calls, float("inf"))
    for run in range(runs + 1):
        for name, call in calls.items():
            start = clock()
            call()
            seconds = clock() - start
            if run:
                least[name] = min(least[name], seconds)
    return least


def build() -> mpc.Audit:
    frame = overlapping_groups(50_000, queries=2_000, items=3_000)
    columns = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
    ranking = mpc.Ranking(frame, **columns, group="groups", group_sep="|")
    audit = mpc.audit(ranking, epsilon=np.linspace(0.001, 0.06, 60), progress=False)
    # Curve, sums and objective are made when first asked for, which is no part of saving.
    _ = audit.tree
    return audit


def measure(
    audit: mpc.Audit, runs: int, clock: Callable[[], float] = time.perf_counter
) -> tuple[dict[str, float], dict[str, int]]:
    """Return the seconds of saving and loading in both ways, and the bytes of both files."""
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder, "old.nc"), Path(folder, "new.nc")
        seconds = in_turn(
            runs,
            {
                "save 0.1": lambda: save_0_1(audit, old),
                "save": lambda: audit.save(new),
                "load 0.1": lambda: load_0_1(old),
                "load": lambda: mpc.load(new),
            },
            clock,
        )
        for part in ("headline", "curve", "moments"):
            assert getattr(load_0_1(old), part).identical(getattr(mpc.load(new), part)), part
        return seconds, {path.stem: path.stat().st_size for path in (old, new)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    seconds, sizes = measure(build(), parser.parse_args().runs)
    print(f"20 groups × 60 ε; {described('h5py', 'h5netcdf', 'xarray', 'numpy')}\n")
    print(", ".join(f"{name}: {1000 * least:.0f} ms" for name, least in seconds.items()) + "\n")
    held = report(
        [
            ("save / save of 0.1", seconds["save"] / seconds["save 0.1"], AT_MOST),
            ("load / load of 0.1", seconds["load"] / seconds["load 0.1"], AT_MOST),
            ("bytes / bytes of 0.1", sizes["new"] / sizes["old"], None),
        ]
    )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
