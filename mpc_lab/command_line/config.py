"""The settings of a run: a config file under the options of the line, which win."""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path
from typing import Any

from mpc_lab.command_line.options import BY_NAME, OPTIONS
from mpc_lab.command_line.values import from_file, from_line
from mpc_lab.errors import MpcError, near_match

_FILES = "files"


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the value of every option that was given, on the line or in the config file.

    Parameters
    ----------
    options : argparse.Namespace
        With ``files``, ``config`` and every option of ``mpc_lab.command_line.options``.

    Returns
    -------
    dict
        By the names of options, and ``files``.
    """
    found = {} if options.config is None else read_config(options.config)
    if options.files:
        found[_FILES] = list(options.files)
    for option in OPTIONS:
        given = getattr(options, option.name)
        if given is not None:
            found[option.name] = from_line(option, given)
    return found


def read_config(path: Path) -> dict[str, Any]:
    """Return the settings of a TOML file; its paths are taken from the folder that it is in."""
    known = [_FILES, *BY_NAME]
    found: dict[str, Any] = {}
    for key, value in _toml(path).items():
        name = key.replace("-", "_")
        if name not in known:
            raise MpcError(f"{str(path)!r} has an unknown key {key!r}.{near_match(name, known)}")
        try:
            found[name] = _files(value) if name == _FILES else from_file(name, value)
        except MpcError as error:
            raise MpcError(f"{str(path)!r}: {error}") from error
        if name == _FILES:
            found[name] = [str(path.parent / file) for file in found[name]]
        elif BY_NAME[name].kind == "path" and str(found[name]) != "-":
            found[name] = path.parent / found[name]
    return found


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise MpcError(
            f"The config file {str(path)!r} cannot be read: {error.strerror}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise MpcError(f"The config file {str(path)!r} is not valid TOML: {error}.") from error


def _files(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(file, str) and file for file in listed):
        raise MpcError(f"files takes the name of a file, or a list of them, not {value!r}.")
    return listed
