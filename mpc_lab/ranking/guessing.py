"""Guess from names and a few values which column of a log plays which role.

A guess is a suggestion for a person to look at: nothing here decides on its own.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from mpc_lab.ranking.columns import get_column, open_table, pandas_series, settled
from mpc_lab.vocabulary import ROLES

# What is guessed: a column for each role, and what separates the labels of the group.
GUESSED = (*ROLES, "group_sep")
_ROWS_LOOKED_AT = 2_000
_SEPARATORS = ("|", ";", ",", "/")
_SPLIT_AT_LEAST = 0.02

_RATHER_A_UNIT = frozenset({"user", "uid", "customer", "reader", "visitor", "member"})
_FAINT = frozenset(
    {"model", "estimate", "name", "title", "url", "page", "y", "kind", "class", "ranking", "list"}
)
_NO_MEANING = frozenset(
    {"id", "ids", "key", "code", "no", "num", "number", "index", "idx", "bool", "flag", "is"}
)
_OF_A_MODEL = frozenset({"pred", "predicted", "prediction", "hat", "model", "estimated"})
_LAST = frozenset({"producer", *(role.name for role in ROLES.values() if role.is_constant)})
_EXACT, _HEAD, _FITS, _WEAKER = 3.0, 2.0, 0.5, 1.0


@dataclass(frozen=True)
class _Column:
    """A column's name in words, and what its first rows hold."""

    name: Hashable
    words: tuple[str, ...]
    kind: str
    values: pd.Series[Any]


def guess_columns(frame: Any) -> dict[str, Any]:
    """Guess the keywords of a `Ranking` from the names of columns and the first rows.

    Parameters
    ----------
    frame : table or dict of arrays
        What :class:`mpc_lab.Ranking` takes.

    Returns
    -------
    dict
        ``query``, ``item``, ``score``, ``outcome``, ``group``, ``group_sep``, ``position``,
        ``segment`` and ``unit``: the name of a column (for ``group`` perhaps a list of boolean
        columns, for ``group_sep`` a text), or None where nothing suggests one.

    Examples
    --------
    >>> log = {
    ...     "userId": [1, 1, 2],
    ...     "movieId": [7, 8, 7],
    ...     "prediction": [3.5, 3.4, 4.1],
    ...     "rating": [4, 3, 5],
    ...     "genres": ["Action|Crime", "Drama", "Action|Crime"],
    ... }
    >>> {role: name for role, name in guess_columns(log).items() if name is not None}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'query': 'userId', 'item': 'movieId', 'score': 'prediction', 'outcome': 'rating',
     'group': 'genres', 'group_sep': '|'}
    """
    table = open_table(frame)
    head = table.head(_ROWS_LOOKED_AT)
    columns = [_look_at(series) for series in head.iter_columns()]
    found: dict[str, Any] = dict.fromkeys(GUESSED)
    found.update({role: column.name for role, column in _by_name(columns).items()})
    for role in ("score", "outcome"):
        if found[role] is None:
            found[role] = _only_one_left(role, columns, found)
    if found["group"] is None:
        found["group"] = _booleans_left(columns, found)
    if found["group"] is not None and not isinstance(found["group"], list):
        found["group_sep"] = guess_separator(head, found["group"])
    return found


def guess_separator(frame: Any, column: Hashable) -> str | None:
    """Return what separates several labels in one text of a group column, or None.

    Examples
    --------
    >>> guess_separator({"genres": ["Action|Crime", "Drama"]}, "genres")
    '|'
    """
    head = open_table(frame).head(_ROWS_LOOKED_AT)
    return _separator(_look_at(get_column(head, column, "group")))


def _look_at(series: nw.Series[Any]) -> _Column:
    values = pandas_series(settled(series))
    return _Column(series.name, _words(series.name), _kind(values), values)


def _words(name: Hashable) -> tuple[str, ...]:
    """Return the words of a name: ``userId``, ``user_id`` and ``User ID`` are all user, id."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", str(name))
    return tuple(re.findall(r"[^\W_]+", text.lower()))


def _kind(values: pd.Series[Any]) -> str:
    """Return boolean, whole, number, text, list or other."""
    present = values.dropna()
    kind = "empty" if present.empty else pd.api.types.infer_dtype(present, skipna=True)
    if isinstance(values.dtype, pd.CategoricalDtype):
        kind = pd.api.types.infer_dtype(values.dtype.categories, skipna=True)
    if kind in ("boolean", "integer"):
        return "boolean" if kind == "boolean" else "whole"
    if kind in ("floating", "mixed-integer-float", "decimal"):
        numbers = present.to_numpy(dtype=np.float64)
        whole = np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
        return "whole" if whole else "number"
    if kind == "string":
        return "text"
    listed = len(present) > 0 and isinstance(present.iloc[0], list | tuple | set | np.ndarray)
    return "list" if listed else "other"


def _by_name(columns: list[_Column]) -> dict[str, _Column]:
    """Give each role the column whose name and values speak most for it; no column twice."""
    claims = [
        (points, -order, -place, role, column)
        for order, role in enumerate(ROLES)
        for place, column in enumerate(columns)
        if (points := _points(role, column)) > 0
    ]
    found: dict[str, _Column] = {}
    # The query first, and last what belongs to it or to the item: these depend on which it is.
    claims.sort(
        key=lambda claim: (claim[3] == "query", claim[3] not in _LAST, *claim[:3]),
        reverse=True,
    )
    for _, _, _, role, column in claims:
        if role in found or any(column is other for other in found.values()):
            continue
        if _can_be(role, column, found):
            found[role] = column
    return found


def _can_be(role: str, column: _Column, found: dict[str, _Column]) -> bool:
    """Whether a role that is tied to the query or the item, or must differ inside it, fits it."""
    query = found.get("query")
    if role == "producer":
        return _encloses(found.get("item"), column)
    if ROLES[role].is_constant:
        return _encloses(query, column)
    if role == "group" and query is not None and query.values.duplicated().any():
        # A label that all rows of a query share leaves nobody to be compared with.
        return not _encloses(query, column)
    return True


def _points(role: str, column: _Column) -> float:
    words = column.words
    telling = tuple(word for word in words if word not in _NO_MEANING) or words
    known = ROLES[role].words
    if not telling or (role == "outcome" and _OF_A_MODEL.intersection(words)):
        return 0.0
    if role == "group" and len(telling) > 1 and telling[0] in ROLES["query"].words:
        return 0.0  # the type of a query, the gender of a user
    joined, head = "".join(telling), telling[-1].removesuffix("id")
    if role == "score" and _OF_A_MODEL.intersection(words):
        match, points = "score", _EXACT
    elif joined in known:
        match, points = joined, _EXACT
    elif head in known:
        match, points = head, _EXACT if len(telling) == 1 else _HEAD
    else:
        return 0.0
    # The order of the words settles what is otherwise equal.
    points -= 0.01 * known.index(match)
    points -= _WEAKER if match in _FAINT else 0.0
    if role == "query" and match in _RATHER_A_UNIT:
        points -= 2 * _FITS + _WEAKER / 2
    return points + (_FITS if _fits(role, column) else -_WEAKER)


def _fits(role: str, column: _Column) -> bool:
    kind = column.kind
    if role == "score":
        return kind in ("number", "whole")
    if role == "outcome":
        return kind in ("number", "whole", "boolean")
    if role == "position":
        return kind == "whole" and bool((column.values.dropna() >= 1).all())
    if role == "group":
        return kind in ("text", "list", "boolean") or (
            kind == "whole" and column.values.nunique() <= 50
        )
    return kind in ("text", "whole")


def _encloses(query: _Column | None, unit: _Column) -> bool:
    """Whether every query lies in one unit or segment, or every item has one producer.

    As far as the rows show.
    """
    if query is None or "list" in (query.kind, unit.kind):
        return False
    seen = pd.DataFrame({"query": query.values.to_numpy(), "unit": unit.values.to_numpy()})
    seen = seen.dropna().astype(str).drop_duplicates()
    return bool(seen["query"].is_unique)


def _only_one_left(role: str, columns: list[_Column], found: dict[str, Any]) -> Hashable | None:
    """Return the one column that could play the role, if there is one and no other."""
    wanted = ("number",) if role == "score" else ("number", "boolean")
    free = [column for column in _free(columns, found) if column.kind in wanted]
    return free[0].name if len(free) == 1 else None


def _booleans_left(columns: list[_Column], found: dict[str, Any]) -> list[Hashable] | None:
    return [c.name for c in _free(columns, found) if c.kind == "boolean"] or None


def _free(columns: list[_Column], found: dict[str, Any]) -> list[_Column]:
    taken = [name for name in found.values() if name is not None]
    return [column for column in columns if column.name not in taken]


def _separator(column: _Column) -> str | None:
    """Return what separates several labels in one text, if splitting leaves fewer labels."""
    if column.kind != "text":
        return None
    texts = [text for text in column.values.dropna().astype(str) if text.strip()]
    for separator in _SEPARATORS:
        split = [text for text in texts if separator in text]
        if len(split) < max(1, _SPLIT_AT_LEAST * len(texts)):
            continue
        if separator == "|" or _recur(split, texts, separator):
            return separator
    return None


def _recur(split: Iterable[str], texts: Iterable[str], separator: str) -> bool:
    """Whether labels met in several texts: those of one text alone are probably a name."""
    whole = set(texts)
    parts = {part.strip() for text in whole for part in text.split(separator)}
    return len(parts) < len(whole) or any(
        part.strip() in whole for text in split for part in text.split(separator)
    )
