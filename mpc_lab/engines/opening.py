"""Which engine walks what was given to an audit."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable
from typing import Any

from mpc_lab.engines import OpenLog
from mpc_lab.engines.limits import as_limits
from mpc_lab.engines.memory import InMemory
from mpc_lab.engines.progress import Progress
from mpc_lab.errors import MpcError
from mpc_lab.files import Files, find_files
from mpc_lab.ranking import ColumnNames, as_ranking, read_ranking
from mpc_lab.ranking.names import check_named, column_names, drops
from mpc_lab.scoring import Column


def open_log(
    data: Any,
    columns: dict[str, Any],
    *,
    memory: Any = None,
    spill: Any = None,
    sep: Any = None,
    encoding: Any = None,
    rules: Any = (),
    progress: Progress | None = None,
) -> OpenLog:
    """Choose the engine for what was given.

    Parameters
    ----------
    data : Ranking, table, path or paths, Files, OpenLog
    columns : dict
        The keywords of `Ranking`.
    memory, spill, sep, encoding
        The keywords of :func:`mpc_lab.audit`, for files.
    rules : sequence
        Scoring rules, which may name further columns of scores.
    progress : Progress, optional
    """
    if isinstance(data, OpenLog):
        return data
    if isinstance(data, Files) or are_paths(data):
        names, drop = _named(columns)
        files = data if isinstance(data, Files) else find_files(data, sep, encoding)
        return _open_files(files, names, drop, memory, spill, _columns_of(rules), progress)
    for name, given in {"memory": memory, "spill": spill, "sep": sep, "encoding": encoding}.items():
        if given is not None:
            raise MpcError(
                f"{name} must go with files; got rows that came in another way. Leave {name} out, "
                "or give the path of the files."
            )
    if _comes_from(data, "dask"):
        from mpc_lab.engines.dask import DaskLog

        names, drop = _named(columns)
        return DaskLog(data, names, drop=drop)
    if _comes_from(data, "pyspark"):
        from mpc_lab.engines.spark import SparkLog

        names, drop = _named(columns)
        return SparkLog(data, names, drop=drop)
    return InMemory(as_ranking(data, **columns))


def are_paths(data: Any) -> bool:
    """Say whether the rows were given as a path or as a list of paths."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(part, str | os.PathLike) for part in data)
    return isinstance(data, str | os.PathLike)


def _open_files(
    files: Files,
    names: ColumnNames,
    drop: bool,
    memory: Any,
    spill: Any,
    extra: list[Hashable],
    progress: Progress | None,
) -> OpenLog:
    """Read files that fit into memory; walk others, and those for which memory is limited."""
    for note in files.notes():
        print(note, file=sys.stderr)
    limits = as_limits(memory)
    files.schema(names.roles(extra))  # what is wrong with a column is told before any row is read
    if memory is None and files.bytes_in_memory(names.roles(extra)) <= limits.memory:
        done = progress("reading files", len(files.paths)) if progress else None
        ranking = read_ranking(files, names, drop=drop, extra=extra, done=done)
        return InMemory(ranking, files.origin(ranking.stamp))
    from mpc_lab.engines.duckdb import DuckLog

    log = DuckLog(files, names, drop=drop, limits=limits, spill=spill)
    log.origin = {**files.origin(log.stamp), "memory": memory}
    return log


def _columns_of(rules: Any) -> list[Hashable]:
    """Return the columns that scoring rules name; what is no list of rules is refused later."""
    listed = rules if isinstance(rules, list | tuple) else [rules]
    return [rule.name for rule in listed if isinstance(rule, Column)]


def _comes_from(data: Any, package: str) -> bool:
    """Tell whether the rows are a frame of a package that need not be installed."""
    return type(data).__module__.split(".")[0] == package and hasattr(type(data), "columns")


def _named(columns: dict[str, Any]) -> tuple[ColumnNames, bool]:
    """Return the names of columns, and whether rows with a missing value are left out."""
    given = {name: value for name, value in columns.items() if value is not None}
    check_named(given)
    drop = drops(given.pop("missing", "raise"))
    return column_names(**given), drop
