"""Files as a table that DuckDB can ask for columns by their true names."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpc_lab.engines.files import Files
from mpc_lab.engines.limits import Limits
from mpc_lab.engines.memory import n_threads
from mpc_lab.errors import MpcError, near_match
from mpc_lab.ranking import ColumnNames

_NUMBERS = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)|BOOLEAN|\"NULL\")"
)
_NARROW = re.compile(r"U?(TINY|SMALL)INT|U?INTEGER")
_FLOATS = ("FLOAT", "DOUBLE")
_WHOLE = re.compile(r"U?(TINY|SMALL|BIG)INT|U?INTEGER|DATE|TIMESTAMP.*|BOOLEAN")


@dataclass(frozen=True)
class DuckTable:
    """A relation whose columns are called c0, c1 and so on.

    DuckDB takes names that differ only in case for one column, so none of its own are used.

    Attributes
    ----------
    sql : str
        The relation.
    names : tuple of str
        The true names of its columns.
    types : tuple of str
        Their types, as DuckDB calls them.
    """

    sql: str
    names: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def numbered(self) -> str:
        """The relation with the number of each row, from 1, in the order of the files."""
        return f"(SELECT *, row_number() OVER () AS row FROM {self.sql}) AS log"

    def place(self, name: Hashable, role: str = "") -> int:
        """Return the number of a column, or say which name was probably meant."""
        if name not in self.names:
            purpose = f" to use as {role}" if role else ""
            hint = near_match(str(name), self.names)
            raise MpcError(f"There is no column {name!r}{purpose}.{hint}")
        return self.names.index(str(name))

    def type(self, name: Hashable, role: str = "") -> str:
        """Return the type of a column."""
        return self.types[self.place(name, role)]

    def label(self, name: Hashable, role: str = "") -> str:
        """Return a column of labels or ids; NaN is null."""
        column = f"c{self.place(name, role)}"
        if self.type(name) in _FLOATS:
            return f"(CASE WHEN isnan({column}) THEN NULL ELSE {column} END)"
        return column

    def number(self, name: Hashable, role: str) -> str:
        """Return a column of numbers, as float64."""
        kind = self.type(name, role)
        if not _NUMBERS.fullmatch(kind):
            held = "text" if kind == "VARCHAR" else kind
            raise MpcError(
                f"The {role} column {name!r} must hold numbers, but it holds {held}: convert it "
                "first, for example with pandas.to_numeric or a cast to Float64."
            )
        return f"(c{self.place(name)}::DOUBLE)"

    def carried(self, name: Hashable, role: str) -> str:
        """Return a column of numbers as the sort may carry it: no wider than it is."""
        number = self.number(name, role)
        if self.type(name) == "BOOLEAN":
            return f"(c{self.place(name)}::UTINYINT)"
        return f"c{self.place(name)}" if _NARROW.fullmatch(self.type(name)) else number

    def truth(self, name: Hashable) -> str:
        """Return a boolean column."""
        if self.type(name, "group") not in ("BOOLEAN", '"NULL"'):
            raise MpcError(
                f"A list of group columns must name boolean columns, but {name!r} is not boolean: "
                f"convert it, or give a column of labels by its name alone, as in group={name!r}."
            )
        return f"c{self.place(name)}"

    def sorts_quickly(self, name: Hashable) -> bool:
        """Tell whether the column itself is a good key; long texts go by their hash first."""
        return bool(_WHOLE.fullmatch(self.type(name)))


@contextmanager
def connect(limits: Limits, folder: Path | None) -> Iterator[Any]:
    """Open a database in memory that spills to a folder; its errors become ours."""
    import duckdb

    config: dict[str, Any] = {
        "threads": n_threads(),
        "memory_limit": f"{limits.sorting // 10**6}MB",
    }
    if folder is not None:
        config["temp_directory"] = str(folder)
    try:
        connection = duckdb.connect(":memory:", config=config)
        try:
            yield connection
        finally:
            connection.close()
    except duckdb.OutOfMemoryException as error:
        raise MpcError(
            f"The log could not be sorted in the memory and the room on disk there is: "
            f"{_first_line(error)}; allow more memory=, or give a spill= folder with more room."
        ) from error
    except duckdb.IOException as error:
        raise MpcError(
            f"A file could not be read or written: {_first_line(error)}; check the files of the "
            "log and the room in the spill= folder."
        ) from error
    except duckdb.Error as error:
        raise MpcError(f"The log could not be read: {_first_line(error)}.") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().split("\n")
    # Of a field in a CSV that is not what it should be, the third line says what it is.
    said = [lines[0], *(line for line in lines[1:4] if line.startswith("Error when converting"))]
    return ": ".join(line.rstrip(".") for line in said)


def open_files(connection: Any, files: Files, columns: ColumnNames) -> DuckTable:
    """Return the table that files make."""
    if files.kind == "feather":
        return _open_feather(connection, files)
    listed = f"[{', '.join(map(_text, files.paths))}]"
    if files.kind == "csv":
        return _open_csv(connection, listed, columns)
    names, types = _described(connection, f"read_parquet({listed})")
    true = _parquet_names(files.paths[0])
    names[: len(true)] = true  # what follows are columns that folder names stand for
    return _table(f"read_parquet({listed})", names, types)


def _open_csv(connection: Any, listed: str, columns: ColumnNames) -> DuckTable:
    """Return the table of CSV files; the first rows alone do not say how columns are read.

    Ids and labels are the text that stands there, so that 007 is not 7 in a later row, and a number
    may have a fraction for the first time far down.
    """
    found = dict(zip(*_described(connection, f"read_csv({listed})"), strict=True))
    read_as = {name: _read_as(name, kind, columns) for name, kind in found.items()}
    types = ", ".join(f"{_text(name)}: '{kind}'" for name, kind in read_as.items() if kind)
    relation = f"read_csv({listed}, types={{{types}}})" if types else f"read_csv({listed})"
    return _table(relation, list(found), [read_as[name] or kind for name, kind in found.items()])


def _read_as(name: str, kind: str, columns: ColumnNames) -> str:
    """Return the type that a column of a CSV is read as, nothing where the first rows tell."""
    if name in columns.numbers:  # a position may be an id as well
        return "DOUBLE" if _NUMBERS.fullmatch(kind) else ""
    if name in columns.labels:
        return "VARCHAR"
    flags = columns.group if isinstance(columns.group, tuple) else ()
    return "BOOLEAN" if name in flags and kind == "BIGINT" else ""  # of 0 and 1


def _described(connection: Any, relation: str) -> tuple[list[str], list[str]]:
    """Return the names of the columns and their types."""
    found = connection.sql(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    return [row[0] for row in found], [row[1] for row in found]


def _text(words: str) -> str:
    return "'" + words.replace("'", "''") + "'"


def _open_feather(connection: Any, files: Files) -> DuckTable:
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        rows = ds.dataset(list(files.paths), format="feather")
    except (pa.ArrowException, OSError) as error:
        raise MpcError(f"{files.paths[0]!r} cannot be read as Feather: {error}.") from error
    connection.register("feather_files", rows)
    found = connection.sql("DESCRIBE SELECT * FROM feather_files").fetchall()
    return _table("feather_files", rows.schema.names, [row[1] for row in found])


def _parquet_names(path: str) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowException, OSError) as error:
        raise MpcError(f"{path!r} cannot be read as Parquet: {error}.") from error


def _table(relation: str, names: list[str], types: list[str]) -> DuckTable:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise MpcError(
            f"Column names must differ, but {', '.join(map(repr, repeated))} occurs more than "
            "once: rename them."
        )
    aliases = ", ".join(f"c{number}" for number in range(len(names)))
    return DuckTable(f"{relation} AS log({aliases})", tuple(names), tuple(types))
