"""A Jupyter server of our own, and Chromium with the network cut, for tests and scripts."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# A CDN must fail on every machine, also on one that has a network.
CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
HOME = "127.0.0.1"
NO_NEWS = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}


@dataclass
class Server:
    """A running Jupyter server: JupyterLab and Notebook 7."""

    address: str
    token: str
    root: Path


def own_jupyter(folder: Path) -> dict[str, str]:
    """Return an environment in which Jupyter reads and writes no settings of this machine."""
    news = folder / "config" / "labconfig" / "page_config.json"
    news.parent.mkdir(parents=True)
    news.write_text(json.dumps(NO_NEWS))
    own = {
        "JUPYTER_CONFIG_DIR": folder / "config",
        "JUPYTER_DATA_DIR": folder / "data",
        "JUPYTER_RUNTIME_DIR": folder / "runtime",
        "IPYTHONDIR": folder / "ipython",
    }
    return {**os.environ, **{name: str(path) for name, path in own.items()}}


@contextmanager
def running_lab(root: Path, environment: dict[str, str]) -> Iterator[Server]:
    """Serve a folder with JupyterLab and Notebook 7 for as long as the block lasts."""
    port, token = free_port(), secrets.token_hex(16)
    command = [
        *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"),
        *(f"--ServerApp.ip={HOME}", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        *(f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}"),
        *("--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True"),
    ]
    address = f"http://{HOME}:{port}"
    with running(command, environment, f"{address}/api?token={token}", root.with_suffix(".log")):
        yield Server(address, token, root)


@contextmanager
def running(
    command: list[str], environment: dict[str, str], address: str, log_file: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server from when its address answers until the block is left."""
    with log_file.open("w") as written:
        process = subprocess.Popen(command, env=environment, stdout=written, stderr=written)
    try:
        _wait_for(address, process, log_file)
        yield process
    finally:
        stop(process)


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind((HOME, 0))
        return int(tried.getsockname()[1])


def _wait_for(address: str, process: subprocess.Popen[bytes], log_file: Path) -> None:
    for _ in range(1200):
        if process.poll() is not None:
            raise RuntimeError(log_file.read_text("utf-8"))
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"nothing answered at {address}: {log_file.read_text('utf-8')}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server, kindly at first."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(20)
