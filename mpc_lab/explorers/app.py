"""The explorer of a file as an app in the browser, served by Voila to this machine alone.

Opening it requires the token, and the page may contact no server but its own. The name of the file
never becomes code: the notebook that is served is always the same, and reads from the environment
what to show.
"""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

from mpc_lab.engines.memory import open_log
from mpc_lab.errors import MpcError
from mpc_lab.files import find_files
from mpc_lab.html import label, paragraphs
from mpc_lab.results import load
from mpc_lab.results.base import settings
from mpc_lab.results.recipe import recipe
from mpc_lab.results.wording import log_in_words
from mpc_lab.roles import NEEDED_ROLES
from mpc_lab.run import audit
from mpc_lab.text import plain

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_HOST = "127.0.0.1"
_GIVEN = "MPC_LAB_EXPLORE"
_TEMPLATE = Path(__file__).parent / "voila"
_NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "id": "explore",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": "from mpc_lab.explorers.app import show\nshow()",
        }
    ],
    "metadata": {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
    },
    "nbformat": 4,
    "nbformat_minor": 5,
}
# The page fetches from its own server only. Vega and the widgets' loader make functions of text.
_POLICY = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "style-src 'self' 'unsafe-inline'; connect-src 'self' ws://{host} data: blob:; "
    "frame-ancestors 'none'; form-action 'self'; base-uri 'self'"
)


def serve(
    path: Path,
    *,
    columns: dict[str, Any],
    how: dict[str, Any] | None = None,
    port: int = 0,
    open_browser: bool = True,
) -> int:
    """Serve the explorer of a log or of a saved audit until it is interrupted.

    Parameters
    ----------
    path : Path
        A log that :func:`mpc_lab.audit` reads, or an audit that was saved (``.nc``).
    columns : dict
        The keywords of :class:`mpc_lab.Ranking` for a log; empty for a saved audit. Where some
        that a log needs are not given, the page guesses them and asks.
    how : dict, optional
        ``sep`` and ``encoding`` of a text file, where they are given.
    port : int
        Where to listen on 127.0.0.1; 0 for any free port.
    open_browser : bool
        Whether to open the page.

    Returns
    -------
    int
        0, once it was stopped by Ctrl-C or a signal to end.
    """
    if importlib.util.find_spec("voila") is None:
        raise MpcError('Voila must be installed for the app. Run pip install "mpc-lab[lab]".')
    chosen = _free_port(port)
    with _own_folder() as folder:
        print(f"Reading {plain(path)} …", flush=True)
        given = _prepare(path, columns, how or {}, folder)
        with _environment(_GIVEN, json.dumps(given)), _own_handler():
            _run(folder, chosen, open_browser)
    print("Stopped.", flush=True)
    return 0


def show() -> None:
    """Show what :func:`serve` was given; runs in the kernel of the page."""
    from IPython.display import HTML, display

    from mpc_lab.explorers.address import Address

    given = json.loads(os.environ[_GIVEN])
    file = Path(given["log"] or given["audit"]).name
    address = Address(title=f"{plain(file)} · mpc_lab")
    if given["audit"] is None:
        shown: Any = _asked(given, address.follow)
        about = "Check what each column means, then run the audit."
    else:
        audit = _given_audit(given)
        shown = audit.explore()
        shown.state.origin = _origin(audit, given)
        address.follow(shown)
        about = log_in_words(settings(audit))
    for part in (address, HTML(_heading(file, about)), shown):  # type: ignore[no-untyped-call]
        display(part)  # type: ignore[no-untyped-call]


def _heading(file: str, about: str) -> str:
    """Return the head of the page: which file it shows."""
    style = "font: 14px/1.45 system-ui, sans-serif; color: var(--jp-ui-font-color1); margin: 0"
    return (
        f'<header class="mpc-app" style="{style}"><h1 style="font-size: 22px; margin: 0">'
        f"{label(file)}</h1>{paragraphs([about])}</header>"
    )


def _origin(audit: Audit, given: dict[str, Any]) -> str:
    """Return the code that makes the audit of the page, for people who copy code."""
    if given["log"] is None:
        return f"import mpc_lab as mpc\n\naudit = mpc.load({given['audit']!r})"
    return recipe(audit).call


def _given_audit(given: dict[str, Any]) -> Audit:
    if given["log"] is None:
        return load(given["audit"])
    log = open_log(given["log"], given["columns"], **given["how"])
    return load(given["audit"], ranking=log.ranking)


def _asked(given: dict[str, Any], on_land: Callable[[Any], None] | None = None) -> Any:
    """Return the panel that asks for the columns that were not given."""
    from mpc_lab.explorers.start_panel import Start

    begun = Start(namespace=None, on_land=on_land)
    sheet = find_files(given["log"], **given["how"]).read_all()
    begun.state.use(sheet, Path(given["log"]).name, {"data": given["log"], **given["how"]})
    for role, column in given["columns"].items():
        begun.state.choose(role, column)
    return begun


def _prepare(
    path: Path, columns: dict[str, Any], how: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """Audit a log once for all pages, so that what is wrong with it is said before any opens."""
    if path.suffix.lower() == ".nc":
        if columns:
            raise MpcError(
                "The names of columns must go with a log; got the saved audit "
                f"{str(path)!r}. Leave them out."
            )
        load(path)
        return {"audit": str(path.absolute()), "log": None, "columns": {}}
    given = {"audit": None, "log": str(path.absolute()), "columns": columns, "how": how}
    if any(columns.get(name) is None for name in NEEDED_ROLES):
        _asked(given)
        return given
    saved = folder / "audit.nc"
    audit(path, **columns, **how).save(saved)
    return {**given, "audit": str(saved)}


def _free_port(port: int) -> int:
    if not 0 <= port <= 65535:
        raise MpcError(f"port must be a number from 0 to 65535; got {port}.")
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((_HOST, port))
        except OSError as error:
            raise MpcError(
                f"Port {port} cannot be used ({error.strerror}). Give another, or 0 for any."
            ) from error
        return int(tried.getsockname()[1])


@contextmanager
def _own_folder() -> Iterator[Path]:
    """Make a folder and remove it, also where a signal comes while it is made."""
    made = Path(gettempdir(), f"mpc_lab_{secrets.token_hex(8)}")
    try:
        made.mkdir(0o700)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


@contextmanager
def _own_handler() -> Iterator[None]:
    """Take back the signal to end, which Voila takes for itself."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(folder: Path, port: int, open_browser: bool) -> None:
    from tornado.ioloop import IOLoop

    notebook = folder / "mpc_lab.ipynb"
    notebook.write_text(json.dumps(_NOTEBOOK), "utf-8")
    token = secrets.token_urlsafe(24)
    app = _app(notebook, port, token)
    # Scheduled here and called once the loop runs: by then the server listens to the port.
    address = f"http://{_HOST}:{port}/?token={token}"
    IOLoop.current().add_callback(_announce, address, open_browser)
    app.start()


def _announce(address: str, open_browser: bool) -> None:
    print(f"The explorer is at {address}\nPress Ctrl-C to stop.", flush=True)
    if open_browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _app(notebook: Path, port: int, token: str) -> Any:
    import logging

    from jupyter_client.kernelspec import KernelSpecManager
    from traitlets.config import Config
    from voila.app import Voila

    class ThisPython(KernelSpecManager):
        """The kernel of the Python that runs this, whatever others of that name there are."""

        def _kernel_dirs_default(self) -> list[str]:
            return []

    config = Config()
    config.VoilaConfiguration.kernel_spec_manager_class = ThisPython
    config.VoilaConfiguration.file_allowlist = []
    config.VoilaConfiguration.allow_template_override = "NO"
    headers = {"Content-Security-Policy": _POLICY.format(host=f"{_HOST}:{port}")}
    app = Voila(
        config=config,
        # A file called voila.py in the current folder must not be run.
        config_file_paths=[],
        notebook_path=str(notebook),
        connection_dir_root=str(notebook.parent),
        ip=_HOST,
        port=port,
        port_retries=0,
        open_browser=False,
        token=token,
        log_level=logging.ERROR,
        tornado_settings={"allow_remote_access": False, "headers": headers},
    )
    app.initialize([])
    app.template_paths.insert(0, str(_TEMPLATE))
    return app
