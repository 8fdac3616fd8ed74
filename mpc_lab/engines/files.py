"""The files of a log, from what a user writes: a path, a pattern, a folder, a list of these."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpc_lab.errors import MpcError

_KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".csv.gz": "csv",
    ".tsv.gz": "csv",
    ".csv.zst": "csv",
    ".feather": "feather",
    ".arrow": "feather",
}

# The words of a CSV, whoever reads it; as tuples they are SQL too.
NO_NUMBER = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")
TRUE, FALSE = ("True", "true", "TRUE"), ("False", "false", "FALSE")
ONE, ZERO = ("1", "1.0"), ("0", "0.0")


@dataclass(frozen=True)
class Files:
    """Files of one kind: ``"parquet"``, ``"csv"`` or ``"feather"``."""

    kind: str
    paths: tuple[str, ...]

    def stamp(self) -> tuple[tuple[str, int, int], ...]:
        """Return what changes when a file does."""
        found = []
        for path in self.paths:
            try:
                status = os.stat(path)
            except OSError as error:
                raise MpcError(f"The file {path!r} can no longer be read: {error}.") from error
            found.append((path, status.st_size, status.st_mtime_ns))
        return tuple(found)


def are_paths(data: Any) -> bool:
    """Tell whether the rows were given as a path or as a list of paths."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(part, str | os.PathLike) for part in data)
    return isinstance(data, str | os.PathLike)


def find_files(data: Any) -> Files:
    """Return the files that a path, a pattern, a folder or a list of these stands for."""
    given = data if isinstance(data, list | tuple) else [data]
    paths = [path for part in given for path in _expanded(os.fspath(part))]
    kinds = {path: _kind(path) for path in dict.fromkeys(paths)}
    if len(set(kinds.values())) > 1:
        listed = ", ".join(sorted(set(kinds.values())))
        raise MpcError(f"The files of a log must be of one kind, but {listed} came: name one kind.")
    for path in kinds:
        if not os.path.exists(path):
            raise MpcError(f"The file {path!r} is a link to a file that is not there.")
        if not os.access(path, os.R_OK):
            raise MpcError(f"The file {path!r} cannot be read: check who may read it.")
    return Files(next(iter(kinds.values())), tuple(kinds))


def _expanded(path: str) -> Iterator[str]:
    whole = os.path.expanduser(path)
    if os.path.isdir(whole):
        found = sorted(str(file) for file in Path(whole).rglob("*") if _is_data(file, whole))
    elif os.path.exists(whole):
        found = [whole]
    else:
        matched = glob.glob(whole, recursive=True)
        found = sorted(file for file in matched if not os.path.isdir(file))
    if not found:
        raise MpcError(
            f"There is no file {path!r}: give the path of a Parquet, CSV or Feather file, a "
            'pattern such as "logs/*.parquet", or a folder of such files.'
        )
    yield from found


def _is_data(file: Path, folder: str) -> bool:
    """Tell whether a file of a folder is part of the log: not what is hidden or being written."""
    inside = file.relative_to(folder).parts
    return bool(_suffix(str(file))) and not any(part.startswith(("_", ".")) for part in inside)


def _suffix(path: str) -> str:
    name = os.path.basename(path).lower()
    return next((end for end in _KINDS if name.endswith(end)), "")


def _kind(path: str) -> str:
    suffix = _suffix(path)
    if not suffix:
        raise MpcError(
            f"The kind of {path!r} is not known: its name must end in one of {', '.join(_KINDS)}."
        )
    return _KINDS[suffix]
