"""A table that DuckDB can ask for columns by their true names."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

from mpc_lab.engines.files import FALSE, NO_NUMBER, ONE, TRUE, ZERO
from mpc_lab.errors import MpcError, near_match

_NUMBERS = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)|BOOLEAN|\"NULL\")"
)
_NO_LABEL = re.compile(r"\]$|^(STRUCT|MAP|UNION|INTERVAL)")
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
    written : bool
        Whether every column is the text that stands in a CSV, and what it means is up to us.
    """

    sql: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    written: bool = False

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
        if _NO_LABEL.search(self.type(name)):
            raise MpcError(
                f"The {role} column {name!r} must hold values that can be compared and hashed, but "
                f"it holds {self.type(name)}: convert them to text or whole numbers."
            )
        if self.type(name) in _FLOATS:
            return f"(CASE WHEN isnan({column}) THEN NULL ELSE {column} END)"
        return column

    def number(self, name: Hashable, role: str) -> str:
        """Return a column of numbers, as float64."""
        kind = self.type(name, role)
        if self.written:
            return self._number_written(name, role)
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
        if self.written:
            return self._truth_written(name)
        if self.type(name, "group") not in ("BOOLEAN", '"NULL"'):
            raise MpcError(
                f"A list of group columns must name boolean columns, but {name!r} is not boolean: "
                f"convert it, or give a column of labels by its name alone, as in group={name!r}."
            )
        return f"c{self.place(name)}"

    def _number_written(self, name: Hashable, role: str) -> str:
        column = f"c{self.place(name)}"
        what = as_text(f"The {role} column {name!r} must hold numbers, but it has ")
        # DuckDB takes 1_000 for a number.
        number = (
            f"CASE WHEN contains({column}, '_') THEN NULL ELSE TRY_CAST({column} AS DOUBLE) END"
        )
        return (
            f"(CASE WHEN {column} IS NULL OR {column} IN {NO_NUMBER} THEN NULL "
            f"WHEN {column} IN {TRUE} THEN 1.0 WHEN {column} IN {FALSE} THEN 0.0 "
            f"ELSE coalesce({number}, error({what} || {column})::DOUBLE) END)"
        )

    def _truth_written(self, name: Hashable) -> str:
        column = f"c{self.place(name, 'group')}"
        what = as_text(f"Column {name!r} must hold true and false, or 1 and 0, but it has ")
        return (
            f"(CASE WHEN {column} IS NULL THEN NULL "
            f"WHEN {column} IN {(*TRUE, *ONE)} THEN true "
            f"WHEN {column} IN {(*FALSE, *ZERO)} THEN false "
            f"ELSE error({what} || {column})::BOOLEAN END)"
        )

    def sorts_quickly(self, name: Hashable) -> bool:
        """Tell whether the column itself is a good key; long texts go by their hash first."""
        return bool(_WHOLE.fullmatch(self.type(name)))


def as_text(words: str) -> str:
    """Return words as SQL writes them."""
    return "'" + words.replace("'", "''") + "'"
