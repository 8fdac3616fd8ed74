"""Files as a table: CSV by fixed rules, Parquet and Feather by the types that all files share."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

from mpc_lab.engines.duck_database import Database
from mpc_lab.engines.duck_table import DuckTable, as_text
from mpc_lab.engines.files import Files
from mpc_lab.errors import MpcError
from mpc_lab.ranking import ColumnNames


def open_files(database: Database, files: Files, columns: ColumnNames) -> DuckTable:
    """Return the table that files make."""
    if files.kind == "csv":
        return _open_csv(database, files)
    if files.kind == "feather":
        return _open_feather(database, files, columns)
    return _open_parquet(database, files, columns)


# -- CSV -------------------------------------------------------------------------------------


def _open_csv(database: Database, files: Files) -> DuckTable:
    """Return the table of CSV files, every column as the text that stands there.

    Left to itself DuckDB guesses from the first rows what separates, quotes and types the others.
    """
    separators = {_separator(path) for path in files.paths}
    if len(separators) > 1:
        raise MpcError("The files of a log must be of one kind, but csv, tsv came: name one kind.")
    how = "all_varchar=true, header=true, skip=0, quote='\"', escape='\"', comment='', nullstr=''"
    relation = (
        f"read_csv({_listed(files)}, delim={as_text(separators.pop())}, {how}, "
        "hive_partitioning=false)"
    )
    names, types = _described(database, relation)
    true = _header(files.paths[0], len(names))
    return _table(relation, true or names, types, written=True)


def _header(path: str, count: int) -> list[str]:
    """Return the names as they stand in the file: DuckDB renames those that differ in case alone.

    Nothing where they cannot be read here; then its names are good enough.
    """
    opened: Any = gzip.open if path.lower().endswith(".gz") else open
    if path.lower().endswith(".zst"):
        return []
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file, delimiter=_separator(path)), [])
    except (OSError, UnicodeError, csv.Error):
        return []
    return names if len(names) == count else []


def _separator(path: str) -> str:
    return "\t" if ".tsv" in Path(path).name.lower() else ","


# -- Parquet and Feather ---------------------------------------------------------------------


def _open_parquet(database: Database, files: Files, columns: ColumnNames) -> DuckTable:
    import pyarrow.parquet as pq

    schemas = _schemas(files, pq.read_schema, "Parquet")
    own = list(schemas[0].names)
    # The name of a folder, such as day=1, stands for a column unless the files have it themselves.
    keys = {part.split("=")[0] for path in files.paths for part in Path(path).parts if "=" in part}
    folders = "true" if keys and keys.isdisjoint(own) else "false"
    _check_alike(files, schemas, columns)
    unlike = any(not schema.equals(schemas[0]) for schema in schemas)
    how = f"hive_partitioning={folders}, union_by_name={'true' if unlike else 'false'}"
    relation = f"read_parquet({_listed(files)}, {how})"
    names, types = _described(database, relation)
    names[: len(own)] = own  # what follows are columns of later files, or of folders
    return _table(relation, names, types)


def _open_feather(database: Database, files: Files, columns: ColumnNames) -> DuckTable:
    import pyarrow as pa
    import pyarrow.dataset as ds

    def read(path: str) -> Any:
        with pa.memory_map(path) as source, pa.ipc.open_file(source) as reader:
            return reader.schema

    schemas = _schemas(files, read, "Feather")
    _check_alike(files, schemas, columns)
    try:
        unified = pa.unify_schemas(schemas, promote_options="permissive")
        rows = ds.dataset(list(files.paths), format="feather", schema=unified)
    except (pa.ArrowException, OSError) as error:
        raise MpcError(f"{files.paths[0]!r} cannot be read as Feather: {error}.") from error
    database.register("feather_files", rows)
    _, types = _described(database, "feather_files")
    return _table("feather_files", rows.schema.names, types)


def _schemas(files: Files, read: Any, kind: str) -> list[Any]:
    import pyarrow as pa

    found = []
    for path in files.paths:
        try:
            found.append(read(path).remove_metadata())
        except (pa.ArrowException, OSError) as error:
            raise MpcError(f"{path!r} cannot be read as {kind}: {error}.") from error
    return found


def _check_alike(files: Files, schemas: list[Any], columns: ColumnNames) -> None:
    """Refuse files in which a column is of different kinds: its values could not be compared."""
    flags: Iterable[Hashable] = columns.group if isinstance(columns.group, tuple) else ()
    for name in dict.fromkeys((*columns.labels, *columns.numbers, *flags)):
        first = None
        for path, schema in zip(files.paths, schemas, strict=True):
            if name not in schema.names:
                if first is not None:
                    raise MpcError(f"{path!r} has no column {name!r}, which {first[0]!r} has.")
                continue
            here = schema.field(name).type
            first = first or (path, here)
            kinds = {_kind(here), _kind(first[1])}
            if len(kinds) > 1 and kinds != _MIXED:
                raise MpcError(
                    f"Column {name!r} is {first[1]} in {first[0]!r} and {here} in {path!r}; write "
                    "it in one kind, so that equal values are equal."
                )


# 2 and 2.0 are equal, also as ids.
_MIXED = {"whole number", "number"}


def _kind(type_: Any) -> str:
    """Return what a type holds, whatever its width."""
    from pyarrow import types

    if types.is_dictionary(type_):
        return _kind(type_.value_type)
    if types.is_integer(type_):
        return "whole number"
    if types.is_floating(type_) or types.is_decimal(type_):
        return "number"
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return "text"
    return str(type_)


# -- any -------------------------------------------------------------------------------------


def _listed(files: Files) -> str:
    # A star in the name of a file is a star here, and no pattern.
    paths = (re.sub(r"([*?\[])", r"[\1]", path) for path in files.paths)
    return f"[{', '.join(map(as_text, paths))}]"


def _described(database: Database, relation: str) -> tuple[list[str], list[str]]:
    """Return the names of the columns and their types."""
    found = database.rows(f"DESCRIBE SELECT * FROM {relation}")
    return [row[0] for row in found], [row[1] for row in found]


def _table(
    relation: str, names: list[str], types: list[str], *, written: bool = False
) -> DuckTable:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise MpcError(
            f"Column names must differ, but {', '.join(map(repr, repeated))} occurs more than "
            "once: rename them."
        )
    aliases = ", ".join(f"c{number}" for number in range(len(names)))
    return DuckTable(f"{relation} AS log({aliases})", tuple(names), tuple(types), written)
