"""What keeps a log from being audited, with the rows that have it, and how that looks.

The checks are those of a `Ranking`, which stops at the first thing it meets; a panel lists all of
them at once. Every name from data is shown as text.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from mpc_lab.engines.memory import are_paths
from mpc_lab.errors import MpcError
from mpc_lab.explorers.controls import plain_table
from mpc_lab.files import Roles, find_files
from mpc_lab.files.values import text_to_numbers
from mpc_lab.html import NO_MATH, escape
from mpc_lab.ranking.checks import (
    IDS,
    NUMBERS,
    Problem,
    check_in_query,
    check_labels,
    check_numbers,
    check_of_items,
    check_present,
    encode_numbers,
    measured_labels,
    raise_first,
    read_of_items,
)
from mpc_lab.ranking.columns import (
    Codes,
    Frame,
    Membership,
    combine,
    encode,
    get_column,
    is_missing,
    numbers,
    open_table,
    pandas_frame,
    pandas_series,
    read_groups,
    take_rows,
)
from mpc_lab.ranking.names import OF_ITEMS
from mpc_lab.roles import NEEDED_ROLES, ROLES, Role
from mpc_lab.text import name as shown
from mpc_lab.text import plural, quote
from mpc_lab.vocabulary import Flags, Floats, Ints

MOST_SHOWN = 20
_MANY_GROUPS = 200
_PREVIEW_ROWS, _PREVIEW_COLUMNS = 5, 12
_SIGNS = {"stop": "✕", "drop": "!", "note": "i"}
_WORDS = {
    "stop": "stops the audit",
    "drop": "stops the audit, unless such rows are left out",
    "note": "to be known",
}


@dataclass(frozen=True)
class ListedProblem:
    """One problem as a panel lists it.

    Attributes
    ----------
    role : str
        The role of the column: ``score``, ``query`` and so on; "" where it is the whole table.
    sentence : str
        What is wrong and what to do.
    kind : {"stop", "drop", "note"}
        Whether it stops the audit, can be met by leaving the rows out, or is only to be known.
    count : int
        How many rows have it; 0 where it concerns the column as a whole.
    rows, values : tuple
        The first of these rows, counted from 0, and the values there.
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


def find_problems(frame: Any, columns: Mapping[str, Any]) -> list[ListedProblem]:
    """List the problems of a table and of the columns chosen for an audit.

    Parameters
    ----------
    frame : table
        What :class:`mpc_lab.Ranking` takes.
    columns : mapping
        Keywords of a ranking; what is None or absent is not chosen.

    Returns
    -------
    list of ListedProblem
        Those that stop the audit first; empty where there are none.

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
        return [ListedProblem("", "The table has no rows: check how it was made."), *found]
    bad = np.zeros(len(table), dtype=np.bool_)
    for role in (*IDS, *NUMBERS):
        for column in _several(chosen.get(role.name)):
            native = pandas_series(get_column(table, column, role.name)).reset_index(drop=True)
            for problem in _row_problems(table, role, column):
                bad |= problem.where
                found.append(_list(problem, column, np.flatnonzero(problem.where), native))
    keep = np.flatnonzero(~bad)
    if not len(keep):
        said = "Every row has a problem, so that none can be left for an audit."
        found.append(ListedProblem("", said))
    elif "query" in chosen:
        found += _query_problems(take_rows(table, keep), chosen, keep)
    if "group" in chosen:
        found += _groups(table, chosen)
    return sorted(found, key=lambda one: list(_WORDS).index(one.kind))


def can_run(problems: list[ListedProblem], *, leave_out: bool) -> bool:
    """Whether nothing stops an audit, given that rows with a problem may be left out."""
    in_the_way = ("stop",) if leave_out else ("stop", "drop")
    return not any(one.kind in in_the_way for one in problems)


def readable(
    frame: Any,
    columns: Mapping[str, Any],
    *,
    leave_out: bool,
    sep: str | None = None,
    encoding: str | None = None,
) -> Any:
    """Return a table with numbers written as text read as numbers, as the panel of `start` does.

    With `leave_out`, what cannot be one (text, infinity, a position below 1) becomes missing, so
    that ``missing="drop"`` leaves its row out. A table that needs nothing of this comes back as
    it is.

    Parameters
    ----------
    frame : table or path
        What :class:`mpc_lab.Ranking` takes, or files as :func:`mpc_lab.audit` takes them.
    columns : mapping
        Keywords of a ranking; what is None or absent is not chosen.
    leave_out : bool
    sep, encoding : str, optional
        For text files; detected unless given.

    Examples
    --------
    >>> log = {"q": [1, 1, 1], "s": ["0.5", "high", "0.1"], "y": [1, 0, 1], "g": ["a", "b", "a"]}
    >>> readable(log, {"query": "q", "score": "s"}, leave_out=True)["s"].tolist()
    [0.5, nan, 0.1]
    """
    if are_paths(frame):
        frame = find_files(frame, sep, encoding).read_all().by_role(roles_of(columns))
    table = open_table(frame)
    changed: dict[Hashable, Floats] = {}
    for role in NUMBERS:
        column = columns.get(role.name)
        if column is None:
            continue
        read = _Numbers(table, role, column)
        if (read.is_text and not read.unreadable.any()) or (leave_out and read.unfit.any()):
            changed[column] = np.where(read.unfit, np.nan, read.values)
    return _replace(table, frame, changed)


def roles_of(columns: Mapping[str, Any]) -> Roles:
    """Return how the chosen columns are read from files, while some may not be chosen yet."""

    def named(roles: Sequence[Role]) -> tuple[str, ...]:
        return tuple(name for role in roles for name in _several(columns.get(role.name)))

    group = tuple(_several(columns.get("group")))
    if isinstance(columns.get("group"), list):
        return Roles(named(IDS), named(NUMBERS), group)
    return Roles((*named(IDS), *group), named(NUMBERS))


def _several(column: Any) -> list[Any]:
    """Return the columns that play a role, which may be none, one or a list."""
    if column is None:
        return []
    return list(column) if isinstance(column, list) else [column]


def _replace(table: Frame, frame: Any, changed: Mapping[Hashable, Floats]) -> Any:
    if not changed:
        return frame
    made = pandas_frame(table).copy(deep=False)
    for column, values in changed.items():
        made[column] = values
    return made


class _Numbers:
    """A column of numbers, read as far as that goes, with its problems."""

    def __init__(self, table: Frame, role: Role, column: Any) -> None:
        series = get_column(table, column, role.name)
        try:
            self.values, self.is_text = numbers(series, ""), False
            self.missing = np.isnan(self.values)
        except MpcError:
            self.values, wrong = _as_numbers(pandas_series(series).reset_index(drop=True))
            self.is_text = True
            self.missing = np.isnan(self.values) & ~wrong
        self.unreadable: Flags = np.isnan(self.values) & ~self.missing
        rows = np.arange(len(self.values))
        unusable = list(check_numbers(role, column, self.values, rows))
        if self.unreadable.any():
            error = MpcError(f"{role.describe(column)} must hold numbers; got text.")
            unusable.insert(0, Problem(role, "is not a number", self.unreadable, error))
        self.unfit: Flags = np.zeros(len(rows), dtype=np.bool_)
        for problem in unusable:
            self.unfit |= problem.where
        self.problems = [*check_present(role, column, self.missing, rows), *unusable]


def _as_numbers(column: pd.Series[Any]) -> tuple[Floats, Flags]:
    """Read numbers that are written as text by the rules for files."""
    import pyarrow as pa

    absent = column.isna().to_numpy()
    cells = [None if none else str(cell) for cell, none in zip(column, absent, strict=True)]
    found, wrong = text_to_numbers(pa.array(cells, pa.string()))
    return np.array(found.to_numpy(zero_copy_only=False), dtype=np.float64), wrong


def _not_chosen(chosen: Mapping[str, Any]) -> list[ListedProblem]:
    found = [
        ListedProblem(role, f"Choose the column that holds the {role}.")
        for role in NEEDED_ROLES
        if role not in chosen
    ]
    for role in OF_ITEMS:
        if role in chosen and "item" not in chosen:
            said = f"The {role} is a property of items: choose the item too, or no {role}."
            found.append(ListedProblem(role, said))
    return found


def _chosen_twice(chosen: Mapping[str, Any]) -> list[ListedProblem]:
    """Note a column with two roles that one column hardly has."""
    seen: dict[Hashable, str] = {}
    found = []
    for role in ("query", "item", "score", "outcome", "position"):
        if role not in chosen or isinstance(chosen[role], list):
            continue
        first = seen.setdefault(chosen[role], role)
        if first != role:
            said = f"The column {quote(chosen[role])} is both {first} and {role}: is that intended?"
            found.append(ListedProblem(role, said, "note"))
    return found


def _row_problems(table: Frame, role: Role, column: Any) -> list[Problem]:
    """Return what is wrong in single rows of a column."""
    if role.is_number:
        return _Numbers(table, role, column).problems
    if role.may_be_missing:
        return []
    missing = is_missing(get_column(table, column, role.name))
    return list(check_present(role, column, missing, np.arange(len(table))))


def _query_problems(kept: Frame, chosen: Mapping[str, Any], keep: Ints) -> Iterator[ListedProblem]:
    """Yield what is wrong among the rows of a query, once rows with a problem are left out."""
    query = _codes(kept, ROLES["query"], chosen["query"])
    if len(query.labels) == len(keep):
        said = "Every query has one row only, so that no two items can be compared"
        yield ListedProblem("query", f"{said}: choose a column that several rows share.")
        return
    for role in (*IDS, *NUMBERS):
        if role.name not in chosen or not (role.is_unique or role.is_constant):
            continue
        for problem in check_in_query(role, query, _codes(kept, role, chosen[role.name])):
            yield _list_with(problem, kept, chosen[role.name], keep, "query", query)
    for role in (ROLES[name] for name in OF_ITEMS if name in chosen and "item" in chosen):
        column, item = chosen[role.name], _codes(kept, ROLES["item"], chosen["item"])
        made = read_of_items(get_column(kept, column, role.name), role.describe(column), item)
        for problem in check_of_items(role, item, made):
            yield _list_with(problem, kept, column, keep, "item", item)


def _list_with(
    problem: Problem, kept: Frame, column: Any, keep: Ints, role: str, of: Codes
) -> ListedProblem:
    """List the rows of a problem, each with the query or item that it is wrong in."""
    where = np.flatnonzero(problem.where)
    native = pandas_series(get_column(kept, column, problem.role.name)).reset_index(drop=True)
    listed = _list(problem, column, where, native, "stop")
    texts = [_query_text(of.labels[code]) for code in of.codes[where[:MOST_SHOWN]]]
    values = [f"{one} ({role} {text})" for one, text in zip(listed.values, texts, strict=True)]
    said = listed.sentence.removesuffix(".") + ": correct them, or leave the column out."
    rows = tuple(keep[list(listed.rows)].tolist())
    return ListedProblem(problem.role.name, said, "stop", listed.count, rows, tuple(values))


def _list(
    problem: Problem, column: Hashable, where: Ints, values: pd.Series[Any], kind: str = "drop"
) -> ListedProblem:
    rows = where[:MOST_SHOWN]
    role = problem.role.name
    said = f"The {role} in column {quote(column)} {problem.words} in {plural(len(where), 'row')}."
    texts = tuple(_text(values.iloc[row]) for row in rows)
    return ListedProblem(role, said, kind, len(where), tuple(rows.tolist()), texts)


def _text(value: Any) -> str:
    """Return a value as it is shown: what is not there has a word of its own."""
    missing = pd.isna(value)
    if not isinstance(missing, np.ndarray) and missing:
        return "(missing)"
    return shown(f"{value:.12g}" if isinstance(value, float) else value) or "(empty text)"


def _query_text(label: Any) -> str:
    return ", ".join(map(shown, label)) if isinstance(label, tuple) else shown(label)


def _codes(table: Frame, role: Role, column: Any) -> Codes:
    """Return a number for each row, the same for equal values."""
    if role.is_number:
        return encode_numbers(_Numbers(table, role, column).values)
    parts = []
    for name in _several(column):
        series = get_column(table, name, role.name)
        try:
            parts.append(encode(series, ""))
        except MpcError:  # lists and the like
            texts = pandas_series(series).astype(str)
            parts.append(encode(nw.from_native(texts, series_only=True), ""))
    return parts[0] if len(parts) == 1 else combine(parts)


def _groups(table: Frame, chosen: Mapping[str, Any]) -> Iterator[ListedProblem]:
    group = tuple(chosen["group"]) if isinstance(chosen["group"], list) else chosen["group"]
    try:
        if (values := measured_labels(table, group)) is not None:
            raise_first(check_labels(group, values))
        found = read_groups(table, group, chosen.get("group_sep"))
    except MpcError as error:
        yield ListedProblem("group", str(error))
        return
    if not found.groups:
        said = "No row has a label of a group: choose another column for the group."
        yield ListedProblem("group", said)
        return
    if not _any_outside(found):
        said = f"Every row is in group {quote(found.groups[0])}, so that there are no other items"
        yield ListedProblem(
            "group", f"{said} to compare with: choose another column for the group."
        )
    elif len(found.groups) > _MANY_GROUPS:
        said = f"There are {len(found.groups):,} groups: is this the right column, and does its"
        yield ListedProblem("group", f"{said} text need a separator?", "note")


def _any_outside(found: Membership) -> bool:
    """Whether any group has a row outside it."""
    full = np.bitwise_and.reduce(found.masks, axis=1)
    count = len(found.groups)
    inside_everywhere = sum(int(word).bit_count() for word in full.tolist())
    return inside_everywhere < count


# ---- how it looks


def preview_html(frame: Any) -> str:
    """Return the first rows of a table."""
    table = open_table(frame)
    shown = list(table.columns)[:_PREVIEW_COLUMNS]
    head = pandas_frame(table.head(_PREVIEW_ROWS))
    rows = [[head[column].iloc[row] for column in shown] for row in range(len(head))]
    more = len(table.columns) - len(shown)
    caption = f"The first {len(head)} of {plural(len(table), 'row')}"
    caption += f", without {plural(more, 'more column')}" if more > 0 else ""
    return plain_table(list(map(str, shown)), [_texts(row) for row in rows], caption=caption)


def problems_html(
    problems: Sequence[ListedProblem], frame: Any, columns: Mapping[str, Any], *, leave_out: bool
) -> str:
    """Return each problem beside the rows that have it, the first one unfolded."""
    if not problems:
        return _status("The log can be audited.")
    parts = [
        _problem_html(one, frame, columns, first=place == 0, leave_out=leave_out)
        for place, one in enumerate(problems)
    ]
    return f'<div class="mpc-problems {NO_MATH}">{"".join(parts)}</div>'


def _problem_html(
    problem: ListedProblem, frame: Any, columns: Mapping[str, Any], *, first: bool, leave_out: bool
) -> str:
    met = leave_out and problem.kind == "drop"
    kind = "note" if met else problem.kind
    words = "such rows are left out" if met else _WORDS[kind]
    line = (
        f'<span class="mpc-sign mpc-{kind}-sign" role="img" aria-label="{words}" '
        f'title="{words}">{_SIGNS[kind]}</span> '
        f'<span dir="auto">{escape(problem.sentence)}</span>'
        f' <span class="mpc-note">({words})</span>'
    )
    if not problem.rows:
        return f'<div class="mpc-problem">{line}</div>'
    rows = _rows_html(problem, frame, columns)
    unfolded = " open" if first else ""
    return f'<details class="mpc-problem"{unfolded}><summary>{line}</summary>{rows}</details>'


def _rows_html(problem: ListedProblem, frame: Any, columns: Mapping[str, Any]) -> str:
    """Return the rows of a problem with the columns that play a role, the bad one marked."""
    table = open_table(frame)
    rows = pandas_frame(take_rows(table, np.array(problem.rows, dtype=np.int64)))
    others = [
        (role, column)
        for role in ROLES
        if role != problem.role and (column := columns.get(role)) is not None
        if not isinstance(column, list)
    ]
    header = ["row", f"{problem.role} (has problems)", *(_heading(*other) for other in others)]
    body = [
        [number, value, *_texts([rows[column].iloc[place] for _, column in others])]
        for place, (number, value) in enumerate(zip(problem.rows, problem.values, strict=True))
    ]
    made = plain_table(header, body, bad=1)
    more = f"<p>and {plural(problem.more, 'row')} more</p>" if problem.more else ""
    return f"{made}{more}<p class='mpc-note'>Rows count from 0.</p>"


def _heading(role: str, column: Any) -> str:
    return role if role == str(column) else f"{role}: {shown(column)}"


def code_html(code: str) -> str:
    """Return Python to copy, folded away."""
    return (
        "<details class='mpc-code'><summary>The same in Python</summary>"
        f"<pre>{escape(code, lines=True)}</pre></details>"
    )


def _status(words: str) -> str:
    return f'<div role="status"><p>✓ {escape(words)}</p></div>'


def _texts(values: Sequence[Any]) -> list[Any]:
    """Return values of cells: numbers as they are, lists and the like as text."""
    kinds = (bool, int, float, np.bool_, np.integer, np.floating, str)
    return [value if value is None or isinstance(value, kinds) else str(value) for value in values]
