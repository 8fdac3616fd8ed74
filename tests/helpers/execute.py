"""Run the notebooks as a reader would, and hold them to their limits of time and memory.

    python tests/helpers/execute.py FOLDER [NOTEBOOK ...]

writes an executed copy of each notebook into the folder. Those that need no data run without it and
without a network.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NEED_NO_DATA = (
    "01_first_audit",
    "02_why_not_calibration",
    "04_epsilon",
    "06_rivals",
    "07_clicks_and_places",
)
# Of processor time: what one core of a small machine takes, however busy this one is.
SECONDS = 45
BYTES = 1_000_000_000

# A kernel that runs this first can reach nothing but its own machine.
NO_NETWORK = """
import socket

INTERNET = (socket.AF_INET, socket.AF_INET6)

def _stay_here(connect):
    def only_here(self, address, *rest):
        if self.family in INTERNET and address[0] not in ("127.0.0.1", "::1"):
            raise OSError(f"the network is cut, but {address!r} was asked for")
        return connect(self, address, *rest)
    return only_here

def _no_names(host, *rest, **more):
    raise socket.gaierror(f"the network is cut, but {host!r} was asked for")

socket.socket.connect = _stay_here(socket.socket.connect)
socket.socket.connect_ex = _stay_here(socket.socket.connect_ex)
socket.getaddrinfo = _no_names
"""


@dataclass(frozen=True)
class Ran:
    """An executed notebook and what it took."""

    notebook: nbformat.NotebookNode
    seconds: float
    processor_seconds: float
    peak_bytes: int


class _Measured(NotebookClient):
    """A client that asks what its kernel took before the kernel is gone."""

    used = (0.0, 0)

    async def _async_cleanup_kernel(self) -> None:
        self.used = _used(self.km.provisioner.pid)
        await super()._async_cleanup_kernel()


def _used(process: int) -> tuple[float, int]:
    """Return the processor seconds and the peak memory of a process, 0 where /proc is not."""
    home = Path(f"/proc/{process}")
    if not home.exists():
        return 0.0, 0
    # The name of a process may hold blanks and brackets; what follows the last one is plain.
    ticks = home.joinpath("stat").read_text().rpartition(")")[2].split()[11:13]
    lines = home.joinpath("status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), peak * 1024


def execute(path: Path, *, network: bool = True, variables: Mapping[str, str | None] = {}) -> Ran:
    """Execute one notebook in a folder that holds only what the notebooks ship beside them.

    Parameters
    ----------
    path : Path
        The notebook; it is not changed.
    network : bool
        Whether the kernel may reach other machines.
    variables : mapping
        Changes to the environment of the kernel; None takes a variable away.
    """
    notebook = nbformat.read(path, as_version=4)
    own = {**os.environ, **{name: text for name, text in variables.items() if text is not None}}
    for name in [name for name, text in variables.items() if text is None]:
        own.pop(name, None)
    if not network:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(NO_NETWORK))
    with tempfile.TemporaryDirectory() as folder:
        for stored in path.parent.glob("*.nc"):
            shutil.copy(stored, folder)
        client = _Measured(
            notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        start = time.monotonic()
        asyncio.run(client.async_execute(env=own))
        seconds = time.monotonic() - start
    if not network:
        del notebook.cells[0]
        _count_from_1(notebook)
    return Ran(notebook, seconds, *client.used)


def _count_from_1(notebook: nbformat.NotebookNode) -> None:
    """Number the cells as if there had been none before the first."""
    for cell in notebook.cells:
        for counted in (cell, *cell.get("outputs", ())):
            if counted.get("execution_count"):
                counted["execution_count"] -= 1


def main() -> int:
    """Execute notebooks, write the copies, and fail where one is too slow or too large."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the executed copies go")
    parser.add_argument("notebooks", type=Path, nargs="*", help="by default all")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    too_much = []
    for path in options.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        alone = path.stem in NEED_NO_DATA
        ran = execute(path, network=not alone, variables={"MPC_LAB_DATA": None} if alone else {})
        nbformat.write(ran.notebook, options.folder / path.name)
        took = f"{ran.seconds:.0f} s ({ran.processor_seconds:.0f} s of one core)"
        print(f"{path.name}: {took}, {ran.peak_bytes / 1e6:,.0f} MB", flush=True)
        if ran.processor_seconds > SECONDS or ran.peak_bytes > BYTES:
            too_much.append(path.name)
    if too_much:
        limits = f"{SECONDS} s of one core or {BYTES / 1e6:,.0f} MB"
        print(f"over {limits}: {', '.join(too_much)}", file=sys.stderr)
    return bool(too_much)


if __name__ == "__main__":
    sys.exit(main())
