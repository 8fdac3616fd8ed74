"""``mpc-lab notebooks``: the tutorials, copied and opened."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

from mpc_lab.errors import MpcError
from mpc_lab.terminal import plain


def run(options: argparse.Namespace) -> int:
    """Copy the tutorials, open JupyterLab unless that is not wanted, and return the exit code."""
    folder: Path = options.folder
    opens = not options.no_open
    if opens and importlib.util.find_spec("jupyterlab") is None:
        raise MpcError(
            'JupyterLab is not installed: install mpc-lab with the extra "lab" (pip install '
            '"mpc-lab[lab]"), or give --no-open to copy the notebooks only.'
        )
    from mpc_lab.tutorials import copy_notebooks

    for path in copy_notebooks(folder):
        print(plain(path))
    if not opens:
        return 0
    return _opened(folder)


def _opened(folder: Path) -> int:
    """Run JupyterLab to its end; told to stop, tell it so, and wait while it ends its kernels."""
    with subprocess.Popen([sys.executable, "-m", "jupyterlab", str(folder)]) as lab:
        try:
            return lab.wait()
        except KeyboardInterrupt:
            lab.terminate()
            raise
