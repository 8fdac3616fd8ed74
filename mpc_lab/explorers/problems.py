"""What stands in the way of an audit, with the rows that have it.

A plain function of a table and its chosen columns, so that a panel can list everything at once; a
`Ranking` stops at the first thing it meets.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.files.cells import text_to_numbers
from mpc_lab.ranking.columns import is_missing, numbers
from mpc_lab.ranking.groups import Membership, read_groups
from mpc_lab.ranking.table import Frame, get_column, open_table, pandas_frame, pandas_series
from mpc_lab.results.wording import name as shown
from mpc_lab.results.wording import quoted

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

REQUIRED = ("query", "score", "outcome", "group")
NUMBERS = ("score", "outcome", "position")
MOST_SHOWN = 20
_MANY_GROUPS = 200
_IDS = ("query", "item", "unit", "segment")


@dataclass(frozen=True)
class Problem:
    """One thing that is amiss.

    Attributes
    ----------
    role : str
        The part of the column: ``score``, ``query`` and so on.
    sentence : str
        What is amiss and what to do.
    kind : {"stop", "drop", "note"}
        Whether it stops the audit, can be met by leaving the rows out, or is only to be known.
    count : int
        How many rows have it; 0 where it concerns the column as a whole.
    rows, values : tuple
        The first of these rows, counted from 0, and what stands there.
    """

    role: str
    sentence: str
    kind: str = "stop"
    count: int = 0
    rows: tuple[int, ...] = ()
    values: tuple[str, ...] = ()

    @property
    def more(self) -> int:
        """How many rows are not shown."""
        return self.count - len(self.rows)


def find_problems(frame: Any, columns: Mapping[str, Any]) -> list[Problem]:
    """List what is amiss with a table and the columns chosen for an audit.

    Parameters
    ----------
    frame : table
        What :class:`mpc_lab.Ranking` takes.
    columns : mapping
        Keywords of a ranking; what is None or absent is not chosen.

    Returns
    -------
    list of Problem
        What stops the audit first; empty where nothing is amiss.

    Examples
    --------
    >>> log = {"q": [1, 1, 1], "s": ["0.5", "n/a", "0.1"], "y": [1, 0, 1], "g": ["a", "b", "a"]}
    >>> found = find_problems(log, {"query": "q", "score": "s", "outcome": "y", "group": "g"})
    >>> [(one.role, one.kind, one.rows, one.values) for one in found]
    [('score', 'drop', (1,), ('n/a',))]
    """
    table = open_table(frame)
    chosen = {role: value for role, value in columns.items() if value is not None}
    found = [*_not_chosen(chosen), *_chosen_twice(chosen)]
    if not len(table):
        return [Problem("", "The table has no rows: check how it was made."), *found]
    bad = np.zeros(len(table), dtype=np.bool_)
    for role in (*_IDS, *NUMBERS):
        if role in chosen:
            found += _mark(_rows_of(table, role, chosen[role]), bad)
    keep = np.flatnonzero(~bad)
    if not len(keep):
        found.append(Problem("", "Every row has a problem, so that none can be left for an audit."))
    elif "query" in chosen:
        found += _inside_queries(table, chosen, keep)
    if "group" in chosen:
        found += _groups(table, chosen)
    return sorted(found, key=lambda one: ("stop", "drop", "note").index(one.kind))


def can_run(problems: list[Problem], *, leave_out: bool) -> bool:
    """Whether nothing stops an audit, given that rows with a problem may be left out."""
    in_the_way = ("stop",) if leave_out else ("stop", "drop")
    return not any(one.kind in in_the_way for one in problems)


def readable(frame: Any, columns: Mapping[str, Any], *, leave_out: bool) -> Any:
    """Return the table with numbers written as text read as numbers.

    With `leave_out`, what cannot be one (text, infinity, a position below 1) becomes missing, so
    that ``missing="drop"`` leaves its row out. A table that needs nothing of this comes back as
    it is.
    """
    table = open_table(frame)
    changed: dict[Hashable, Floats] = {}
    for role in NUMBERS:
        column = columns.get(role)
        if column is None:
            continue
        read = _Read(get_column(table, column, role), role)
        if (read.written and not read.unreadable.any()) or (leave_out and read.unfit.any()):
            changed[column] = np.where(read.unfit, np.nan, read.values)
    return _replaced(table, frame, changed)


def _replaced(table: Frame, frame: Any, changed: Mapping[Hashable, Floats]) -> Any:
    if not changed:
        return frame
    made = pandas_frame(table).copy(deep=False)
    for column, values in changed.items():
        made[column] = values
    return made


class _Read:
    """A column that should hold numbers, read as far as that goes."""

    def __init__(self, series: Any, role: str) -> None:
        self.native = pandas_series(series).reset_index(drop=True)
        try:
            self.values, self.written = numbers(series, ""), False
            self.missing = np.isnan(self.values)
        except MpcError:
            self.values, wrong = _as_numbers(self.native)
            self.written = True
            self.missing = np.isnan(self.values) & ~wrong
        self.unreadable: Bools = np.isnan(self.values) & ~self.missing
        self.infinite: Bools = np.isinf(self.values)
        fits = ~self.missing & ~self.unreadable & ~self.infinite
        whole = (self.values >= 1) & (self.values == np.floor(self.values))
        self.no_position: Bools = fits & ~whole if role == "position" else np.zeros_like(fits)
        self.unfit: Bools = self.unreadable | self.infinite | self.no_position


def _as_numbers(column: pd.Series[Any]) -> tuple[Floats, Bools]:
    """Read numbers that are written as text by the rules for files."""
    import pyarrow as pa

    absent = column.isna().to_numpy()
    cells = [None if none else str(cell) for cell, none in zip(column, absent, strict=True)]
    found, wrong = text_to_numbers(pa.array(cells, pa.string()))
    return np.array(found.to_numpy(zero_copy_only=False), dtype=np.float64), wrong


def _not_chosen(chosen: Mapping[str, Any]) -> list[Problem]:
    return [
        Problem(role, f"Choose the column that holds the {role}.")
        for role in REQUIRED
        if role not in chosen
    ]


def _chosen_twice(chosen: Mapping[str, Any]) -> list[Problem]:
    """Note a column with two parts that hardly one column has."""
    seen: dict[Hashable, str] = {}
    found = []
    for role in ("query", "item", "score", "outcome", "position"):
        if role not in chosen or isinstance(chosen[role], list):
            continue
        first = seen.setdefault(chosen[role], role)
        if first != role:
            said = f"The column {quoted(chosen[role])} is both {first} and {role}: is that meant?"
            found.append(Problem(role, said, "note"))
    return found


def _rows_of(table: Frame, role: str, column: Any) -> Iterator[tuple[Problem, Bools]]:
    """Yield what is amiss in single rows of a column, and which rows those are."""
    for name in column if isinstance(column, list | tuple) and role == "query" else [column]:
        series = get_column(table, name, role)
        if role not in NUMBERS:
            native = pandas_series(series)
            yield _problem(role, f"{_the(role, name)} is missing", is_missing(series), native)
            continue
        read = _Read(series, role)
        said = {
            "is missing": read.missing,
            "is not a number": read.unreadable,
            "is infinite": read.infinite,
            "is not a whole number from 1 up": read.no_position,
        }
        for words, where in said.items():
            yield _problem(role, f"{_the(role, name)} {words}", where, read.native)


def _the(role: str, column: Hashable) -> str:
    return f"The {role} in column {quoted(column)}"


def _mark(found: Iterator[tuple[Problem, Bools]], bad: Bools) -> list[Problem]:
    problems = []
    for problem, where in found:
        bad |= where
        if problem.count:
            problems.append(problem)
    return problems


def _problem(
    role: str, words: str, where: Bools, values: pd.Series[Any], kind: str = "drop"
) -> tuple[Problem, Bools]:
    count = int(where.sum())
    rows = np.flatnonzero(where)[:MOST_SHOWN]
    texts = tuple(_text(values.iloc[row]) for row in rows)
    sentence = f"{words} in {_times(count)}."
    return Problem(role, sentence, kind, count, tuple(rows.tolist()), texts), where


def _text(value: Any) -> str:
    """Return a value as it is shown: what is not there has a word of its own."""
    missing = pd.isna(value)
    if not isinstance(missing, np.ndarray) and missing:
        return "(missing)"
    return shown(f"{value:.12g}" if isinstance(value, float) else value) or "(empty text)"


def _times(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _inside_queries(
    table: Frame, chosen: Mapping[str, Any], keep: NDArray[np.int64]
) -> Iterator[Problem]:
    """Yield what is amiss among the rows of a query, once rows with holes are left out."""
    query = _codes(table, chosen["query"], "query")[keep]
    if not pd.Series(query).duplicated().any():
        said = "Every query has one row only, so that no two items can be compared"
        yield Problem("query", f"{said}: choose a column that several rows share.")
        return
    for role in ("item", "position"):
        if role not in chosen:
            continue
        other = _codes(table, chosen[role], role)[keep]
        again = pd.DataFrame({"query": query, "other": other}).duplicated(keep=False).to_numpy()
        said = f"{_the(role, chosen[role])} occurs more than once in a query"
        yield from _shared(role, said, table, chosen, keep, again)
    for role in ("unit", "segment"):
        if role not in chosen:
            continue
        other = _codes(table, chosen[role], role)[keep]
        first = pd.Series(other).groupby(query).transform("first").to_numpy()
        said = f"{_the(role, chosen[role])} differs inside a query"
        yield from _shared(role, said, table, chosen, keep, np.asarray(first != other))


def _shared(
    role: str,
    words: str,
    table: Frame,
    chosen: Mapping[str, Any],
    keep: NDArray[np.int64],
    where: Bools,
) -> Iterator[Problem]:
    if not where.any():
        return
    rows = np.zeros(len(table), dtype=np.bool_)
    rows[keep[where]] = True
    own = pandas_series(get_column(table, chosen[role], role)).reset_index(drop=True)
    query = _query_texts(table, chosen["query"], np.flatnonzero(rows)[:MOST_SHOWN])
    problem, _ = _problem(role, words, rows, own, "stop")
    values = tuple(f"{value} (query {of})" for value, of in zip(problem.values, query, strict=True))
    said = problem.sentence.removesuffix(".") + ": correct them, or leave the column out."
    yield Problem(role, said, "stop", problem.count, problem.rows, values)


def _query_texts(table: Frame, query: Any, rows: NDArray[np.int64]) -> list[str]:
    names = query if isinstance(query, list | tuple) else [query]
    columns = [pandas_series(get_column(table, name, "query")) for name in names]
    return [", ".join(shown(column.iloc[row]) for column in columns) for row in rows]


def _codes(table: Frame, column: Any, role: str) -> NDArray[np.int64]:
    """Return a number for each row, the same for equal values."""
    parts: list[NDArray[Any]] = []
    for name in column if isinstance(column, list | tuple) else [column]:
        series = get_column(table, name, role)
        if role == "position":
            parts.append(_Read(series, role).values)
            continue
        native = pandas_series(series)
        try:
            parts.append(pd.factorize(native)[0])
        except TypeError:  # lists and the like
            parts.append(pd.factorize(native.astype(str))[0])
    if len(parts) == 1 and role != "position":
        return np.asarray(parts[0], dtype=np.int64)
    frame = pd.DataFrame(dict(enumerate(parts)))
    number = frame.groupby(list(frame), sort=False, dropna=False).ngroup()
    return np.asarray(number, dtype=np.int64)


def _groups(table: Frame, chosen: Mapping[str, Any]) -> Iterator[Problem]:
    group = chosen["group"]
    try:
        found = read_groups(
            table, tuple(group) if isinstance(group, list) else group, chosen.get("group_sep")
        )
    except MpcError as error:
        yield Problem("group", str(error))
        return
    if not found.groups:
        said = "No row has a label of a group: choose another column for the group."
        yield Problem("group", said)
        return
    if not _any_outside(found):
        said = f"Every row is in group {quoted(found.groups[0])}, so that there are no other items"
        yield Problem("group", f"{said} to compare with: choose another column for the group.")
    elif len(found.groups) > _MANY_GROUPS:
        said = f"There are {len(found.groups):,} groups; is the column meant, or does a separator"
        yield Problem("group", f"{said} split its text?", "note")


def _any_outside(found: Membership) -> bool:
    """Whether any group has a row outside it."""
    full = np.bitwise_and.reduce(found.masks, axis=1)
    count = len(found.groups)
    inside_everywhere = sum(int(word).bit_count() for word in full.tolist())
    return inside_everywhere < count
