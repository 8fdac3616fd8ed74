"""``mpc-lab explore``: a log or a saved audit in the browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mpc_lab.cli.options import BY_NAME, COLUMN_OPTIONS, Command, add_option, add_path, names
from mpc_lab.errors import MpcError
from mpc_lab.files import Files, find_files

_SAVED = (".nc", ".h5")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser, "file", type=Path, metavar="FILE", help="a log or a saved audit")
    for name in COLUMN_OPTIONS:
        add_option(parser, BY_NAME[name])
    parser.add_argument("--port", type=int, default=0, help="port to serve at (a free one)")
    parser.add_argument("--no-open", action="store_true", help="open no browser")


def _run(options: argparse.Namespace) -> int:
    """Serve the explorer until it is stopped, and return the exit code."""
    path: Path = options.file
    if path.suffix.lower() not in _SAVED:
        find_files(path, options.sep, options.encoding)
    elif not path.is_file():
        raise MpcError(
            f"There is no file {str(path)!r}. Give the path of a log or of a saved audit."
        )
    columns = _columns(path, options)
    how: dict[str, Any] = {
        name: columns.pop(name) for name in ("sep", "encoding") if name in columns
    }
    with options.signals.while_serving():
        from mpc_lab.explorers.app import serve

        return serve(
            path,
            columns=columns,
            how=how,
            port=options.port,
            open_browser=not options.no_open,
        )


def _columns(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the keywords of a ranking that were given."""
    found: dict[str, Any] = {}
    files: Files | None = None
    for name in COLUMN_OPTIONS:
        given = getattr(options, name)
        if given is None:
            continue
        if path.suffix.lower() in _SAVED:
            raise MpcError(
                f"{BY_NAME[name].flag} must go with a log, whose column it names; got a "
                "saved audit. Leave it out."
            )
        if BY_NAME[name].is_list:
            files = files or find_files(path, options.sep, options.encoding)
            several = names(given, files.names)
            found[name] = several[0] if len(several) == 1 else several
        else:
            found[name] = given
    return found


EXPLORE = Command(
    "explore",
    "explore a log, or a saved audit, in the browser",
    _add_arguments,
    _run,
    {
        "description": "Serve the explorer of one file on this machine and open it in the "
        "browser. Columns that are not named are asked for there."
    },
)
