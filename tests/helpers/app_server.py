"""The explorer of one file as an app, served for as long as a test or a script needs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# In a shell's background SIGINT is ignored, and children inherit that.
_SERVE = (
    "import json, pathlib, signal, sys; "
    "signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from mpc_lab.explorers.app import serve; "
    "sys.exit(serve(pathlib.Path(sys.argv[1]), columns=json.loads(sys.argv[2]), "
    "open_browser=False))"
)


@contextmanager
def running_app(
    file: Path, columns: dict[str, Any], folder: Path
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve a file from a folder; what is yielded is the address and the process."""
    command = [sys.executable, "-c", _SERVE, str(file), json.dumps(columns)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        yield _address(process), process
    finally:
        process.kill()
        process.wait(20)
        process.stdout.close()


def _address(process: subprocess.Popen[str]) -> str:
    for line in process.stdout:
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        if found:
            return found[0]
    raise AssertionError("no address was printed")
