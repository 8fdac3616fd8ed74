"""``mpc-lab notebooks``: the tutorials, copied and opened."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

from mpc_lab.cli.options import Command, add_path
from mpc_lab.errors import MpcError
from mpc_lab.text import plain
from mpc_lab.tutorials import copy_notebooks


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(
        parser,
        "folder",
        is_folder=True,
        nargs="?",
        type=Path,
        default=Path("mpc-lab-notebooks"),
        metavar="FOLDER",
        help="where to copy them (%(default)s); a notebook that is there already stays",
    )
    parser.add_argument("--no-open", action="store_true", help="copy only")


def _run(options: argparse.Namespace) -> int:
    """Copy the tutorials, open JupyterLab unless that is not wanted, and return the exit code."""
    folder: Path = options.folder
    opens = not options.no_open
    if opens and importlib.util.find_spec("jupyterlab") is None:
        raise MpcError(
            'JupyterLab is not installed: install mpc-lab with the extra "lab" (pip install '
            '"mpc-lab[lab]"), or give --no-open to copy the notebooks only.'
        )
    for path in copy_notebooks(folder):
        print(plain(path))
    return _run_lab(folder) if opens else 0


def _run_lab(folder: Path) -> int:
    """Run JupyterLab to its end; told to stop, tell it so, and wait while it ends its kernels."""
    with subprocess.Popen([sys.executable, "-m", "jupyterlab", str(folder)]) as lab:
        try:
            return lab.wait()
        except KeyboardInterrupt:
            lab.terminate()
            raise


NOTEBOOKS = Command(
    "notebooks",
    "copy the tutorials and open them in JupyterLab",
    _add_arguments,
    _run,
    {"description": "Copy the tutorial notebooks into a folder and open JupyterLab there."},
)
