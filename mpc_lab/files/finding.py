"""Which files a path, a pattern, a folder or a list of these stands for."""

from __future__ import annotations

import glob
import itertools
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpc_lab.errors import MpcError

_TEXT, _JSON = (".csv", ".tsv", ".txt"), (".jsonl", ".ndjson")
_PACKED = ("", ".gz", ".bz2", ".zst", ".xz")
_KINDS = {
    **{end + packed: "text" for end in _TEXT for packed in _PACKED},
    **{end + packed: "json" for end in _JSON for packed in _PACKED},
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), "feather"),
}
ENDS = tuple(_KINDS)
ACCEPTED = (
    "CSV (.csv, .tsv, .txt) or JSON lines (.jsonl, .ndjson), each also .gz, .bz2, .zst or .xz; "
    "Parquet (.parquet, .pq) or Feather (.feather, .arrow)"
)


def are_paths(data: Any) -> bool:
    """Say whether the rows were given as a path or as a list of paths."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(part, str | os.PathLike) for part in data)
    return isinstance(data, str | os.PathLike)


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return the kind of a file by the end of its name; nothing for a file that is no log."""
    name = os.path.basename(os.fspath(path)).lower()
    return next((kind for end, kind in _KINDS.items() if name.endswith(end)), "")


def find_paths(data: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return each file once, and a sentence for each that was named again."""
    given = data if isinstance(data, list | tuple) else [data]
    found: dict[tuple[int, int], str] = {}
    again: dict[str, None] = {}
    for path in itertools.chain.from_iterable(map(_expand, given)):
        status = _status(path)
        file = (status.st_dev, status.st_ino)
        first = found.get(file)
        if first is None:
            found[file] = path
        elif first == path:
            again[f"{path!r} is named more than once; it is read once."] = None
        else:
            again[f"{path!r} is the same file as {first!r}; it is read once."] = None
    for path in found.values():
        if not kind_of(path):
            raise MpcError(f"A file of a log must be {ACCEPTED}; got {path!r}.")
    return tuple(found.values()), tuple(again)


def _status(path: str) -> os.stat_result:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise MpcError(f"A file of a log must be an ordinary file; got {path!r}.")
        with open(path, "rb"):
            return status
    except FileNotFoundError as error:
        raise MpcError(f"{path!r} is a link to a file that does not exist.") from error
    except OSError as error:
        raise MpcError(f"{path!r} cannot be read: {error.strerror}.") from error


def _expand(given: str | os.PathLike[str]) -> list[str]:
    path = os.fspath(given)
    if isinstance(path, bytes) or "\0" in path:
        raise MpcError(f"A path must be text without NUL; got {path!r}.")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://?", path) and not os.path.exists(path):
        raise MpcError(
            f"A path must be a file of this machine; got {path!r}. Download it or mount it first."
        )
    whole = os.path.expanduser(path)
    if os.path.isdir(whole):
        found = sorted(str(file) for file in _walk(whole) if _is_of_log(file, whole))
    elif os.path.lexists(whole):
        found = [whole]
    else:
        matched = glob.glob(whole, recursive=True)
        found = sorted(file for file in matched if not os.path.isdir(file))
    if not found:
        raise MpcError(
            f"There is no file {path!r}. Give the path of a file of a log, a pattern such as "
            '"logs/*.csv", or a folder of such files.'
        )
    return found


def _walk(folder: str) -> Iterator[Path]:
    """Yield what is in a folder and in those that it holds or links to, each of them once."""
    seen = set()

    def refuse(error: OSError) -> None:
        raise MpcError(f"{error.filename!r} cannot be read: {error.strerror}.") from error

    for place, inner, names in os.walk(folder, followlinks=True, onerror=refuse):
        seen.add(os.path.realpath(place))
        inner[:] = [one for one in inner if os.path.realpath(Path(place, one)) not in seen]
        yield from (Path(place, name) for name in names)


def _is_of_log(file: Path, folder: str) -> bool:
    """Say whether a file in a folder is part of the log: not what is hidden or being written.

    Beside logs a .txt is mostly a README, so it has to be named.
    """
    hidden = any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)
    named = ".txt" in (suffix.lower() for suffix in file.suffixes)
    return bool(kind_of(file)) and not hidden and not named and not file.is_dir()
