"""Which column plays which role, as given or guessed, and what else is known about a log.

A guess is a suggestion for a person to look at: nothing here decides on its own.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Protocol

import narwhals as nw
import numpy as np
import pandas as pd

from mpc_lab.errors import MpcError, check_flag, check_number
from mpc_lab.files import Roles
from mpc_lab.ranking.columns import get_column, open_table, pandas_series, settle
from mpc_lab.ranking.examination import FLOOR, Curve, as_examined
from mpc_lab.roles import NEEDED_ROLES, ROLES, Role
from mpc_lab.vocabulary import ITEM

# Roles that are the same in all rows of an item.
OF_ITEMS = ("label", "producer")
_NEEDED_FIRST = sorted(ROLES.values(), key=lambda role: not role.is_needed)


@dataclass(frozen=True)
class ColumnNames:
    """The columns of a `Ranking`, as they were named by the caller.

    ``query`` is a name, or a tuple of names; ``group`` is a name, or a tuple of the names of
    boolean columns; what was not given is None. Besides the columns, it holds the options about
    them: ``group_sep``, ``ascending``, ``outcome_name`` and ``examined_floor`` as in `Ranking`.
    What was ``examined`` is a column, or a curve over places. A log without ``score`` is rank-only:
    its places are its scores.
    """

    query: Hashable
    score: Hashable | None
    outcome: Hashable
    group: Hashable
    item: Hashable | None = None
    unit: Hashable | None = None
    group_sep: str | None = None
    position: Hashable | None = None
    segment: Hashable | None = None
    time: Hashable | None = None
    producer: Hashable | None = None
    weight: Hashable | None = None
    ascending: bool | None = None
    outcome_name: str | None = None
    examined: Hashable | None = None
    examined_floor: float | None = None
    label: Hashable | None = None

    @property
    def is_rank_only(self) -> bool:
        """Whether items have a place but no score."""
        return self.score is None

    @property
    def sides_by_place(self) -> bool:
        """Whether two sides of a tie are distinguished by the places at which they were shown.

        Outcomes that were divided by how likely a place is looked at do not depend on it.
        """
        return self.position is not None and self.examined is None

    @property
    def examined_curve(self) -> Curve | None:
        """How likely a place is looked at, where that was given by place."""
        return self.examined if isinstance(self.examined, Curve) else None

    @property
    def floor(self) -> float:
        """The least probability that outcomes are divided by."""
        return FLOOR if self.examined_floor is None else self.examined_floor

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The columns of ids and labels, boolean columns of groups left out."""
        played = self.played(role for role in _NEEDED_FIRST if not role.is_number)
        flags = isinstance(self.group, tuple)
        return tuple(name for role, name in played if not (flags and role.name == "group"))

    @property
    def numbers(self) -> tuple[Hashable, ...]:
        """The columns of scores, outcomes, positions and weights."""
        played = self.played(role for role in _NEEDED_FIRST if role.is_number)
        return tuple(name for _, name in played)

    def played(self, roles: Iterable[Role]) -> Iterator[tuple[Role, Hashable]]:
        """Yield each of the roles that a column plays, with that column; a query may have several.

        Examples
        --------
        >>> names = ColumnNames(query=("user", "day"), score="s", outcome="y", group="g")
        >>> [(role.name, column) for role, column in names.played(ROLES.values())]
        [('query', 'user'), ('query', 'day'), ('score', 's'), ('outcome', 'y'), ('group', 'g')]
        """
        for role in roles:
            column = getattr(self, role.name)
            for name in column if isinstance(column, tuple) and role.takes_several else (column,):
                if name is not None and not isinstance(name, Curve):
                    yield role, name

    def roles(self, extra: Iterable[Hashable] = ()) -> Roles:
        """Return how the columns are read from files, with further columns of scores."""
        flags = self.group if isinstance(self.group, tuple) else ()
        return Roles(
            labels=tuple(map(str, self.labels)),
            numbers=tuple(map(str, (*self.numbers, *extra))),
            flags=tuple(map(str, flags)),
        )

    def given(self) -> dict[str, Any]:
        """Return the keywords of `Ranking` that were given, ready to be given again."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in chosen.items() if value is not None}


def column_names(
    *,
    group_sep: str | None = None,
    ascending: Any = None,
    outcome_name: Any = None,
    examined: Any = None,
    examined_floor: Any = None,
    **given: Any,
) -> ColumnNames:
    """Return the columns that a caller named, once it is clear that they are names.

    Parameters
    ----------
    group_sep, ascending, outcome_name, examined, examined_floor
        As in `Ranking`.
    **given
        A column for each of `ROLES`; those that are not needed may be absent or None.
    """
    named: dict[str, Any] = {"score": None}
    for name, role in ROLES.items():
        column = given.pop(name, None)
        rank_only = name == "score" and given.get("position") is not None
        if column is not None or (role.is_needed and not rank_only):
            named[name] = (one_or_more if role.takes_several else one_name)(column, name)
    turned = ascending is not None and check_flag("ascending", ascending)
    for of_item in OF_ITEMS:
        if of_item in named and "item" not in named:
            raise MpcError(
                f"{of_item} must be given together with item; got {of_item}={named[of_item]!r} "
                "alone. Name the item column too, with item=."
            )
    if turned and named["score"] is None:
        raise MpcError(
            "ascending must go with a score; got none. Leave it out: position 1 is always the top."
        )
    if outcome_name is not None and not (isinstance(outcome_name, str) and outcome_name.strip()):
        raise MpcError(f'outcome_name must be a word such as "clicks"; got {outcome_name!r}.')
    said: dict[str, Any] = {
        "group_sep": group_sep,
        "ascending": turned or None,
        "outcome_name": outcome_name,
        **_examined(examined, examined_floor, named.get("position")),
    }
    return ColumnNames(**named, **given, **said)


def _examined(given: Any, floor: Any, position: Any) -> dict[str, Any]:
    """Return how likely rows are looked at, and the least probability that counts."""
    if floor is not None:
        floor = check_number("examined_floor", floor, above=0, at_most=1)
    if given is None:
        if floor is not None:
            raise MpcError("examined_floor must go with examined; got no examined. Give both.")
        return {}
    examined = as_examined(given)
    if isinstance(examined, Curve) and position is None:
        raise MpcError(
            "examined must go with position if it is given by place; got no position. Name the "
            "column of logged positions, or a column with a probability for each row."
        )
    return {"examined": examined, "examined_floor": None if floor == FLOOR else floor}


def drops(missing: object) -> bool:
    """Return whether rows with a missing value are left out rather than refused."""
    if missing not in ("raise", "drop"):
        raise MpcError(f'missing must be "raise" or "drop"; got {missing!r}.')
    return missing == "drop"


def check_named(given: Iterable[str]) -> None:
    """Insist on the columns that every log needs."""
    known = set(given)
    # A place can replace a score.
    known |= {"score"} if "position" in known else set()
    absent = [name for name in NEEDED_ROLES if name not in known]
    if absent:
        raise MpcError(
            f"A table must come with the names of its columns; got none for {', '.join(absent)}. "
            f"Pass {absent[0]}=, or a Ranking."
        )


def one_name(value: object, role: str) -> Hashable:
    """Return a single column name."""
    if value is None or isinstance(value, list | set | dict) or not isinstance(value, Hashable):
        raise MpcError(
            f"{role} must be the name of one column; got {value!r}. Give a name such as "
            f"{role}={role!r}."
        )
    return value


def one_or_more(value: object, role: str) -> Hashable:
    """Return a column name, or a tuple of names where a list was given."""
    if not isinstance(value, list | tuple):
        return one_name(value, role)
    names = tuple(one_name(part, role) for part in value)
    if not names or len(set(names)) < len(names):
        raise MpcError(
            f"{role} must be a column or a list of different columns; got {value!r}. "
            "Name each column once."
        )
    return names


# ---- what is known about a log


class Known(Protocol):
    """What is known about a log before its rows are read."""

    @property
    def columns(self) -> ColumnNames:
        """Which column plays which role."""
        ...

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, sorted."""
        ...


class LogFacts(Known, Protocol):
    """What is known once the rows were read; a `Ranking` knows it, and so does every engine."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        ...

    @property
    def n_units(self) -> int:
        """Number of units; the number of queries without a unit column."""
        ...

    @property
    def n_items(self) -> int:
        """Number of different items; 0 without an item column."""
        ...

    @property
    def owner(self) -> str:
        """By whom the pairs of items are summed: "item", or "producer"."""
        ...

    @property
    def dropped(self) -> int:
        """Rows left out for missing values."""
        ...

    @property
    def n_capped(self) -> int:
        """Rows whose outcome was above the cap."""
        ...

    @property
    def n_floored(self) -> int:
        """Rows that were looked at less often than the floor says."""
        ...

    @property
    def score_std(self) -> float:
        """Population standard deviation of the scores."""
        ...

    @property
    def outcome_range(self) -> tuple[float, float]:
        """The lowest and the highest outcome of the log."""
        ...


@dataclass(frozen=True)
class Facts:
    """The facts of a log whose rows are not kept."""

    columns: ColumnNames
    groups: tuple[str, ...]
    n_rows: int = 0
    n_queries: int = 0
    n_units: int = 0
    n_items: int = 0
    owner: str = ITEM
    dropped: int = 0
    n_capped: int = 0
    n_floored: int = 0
    score_std: float = float("nan")
    outcome_range: tuple[float, float] = (float("nan"), float("nan"))


# ---- guesses, from names and a few values

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
        ``query``, ``item``, ``label``, ``score``, ``outcome``, ``group``, ``group_sep``,
        ``position``, ``segment`` and ``unit``: the name of a column (for ``group`` perhaps a list
        of boolean columns, for ``group_sep`` a text), or None where nothing suggests one.

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
    if found["item"] == "docno" and found["position"] == "rank":
        found["position"] = None  # PyTerrier: ranks from 0, and outcomes that judges gave
    for role in ("score", "outcome"):
        if found[role] is None:
            found[role] = _only_one_left(role, columns, found)
    if found["group"] is None:
        found["group"] = _booleans_left(columns, found)
    if found["group"] is not None and not isinstance(found["group"], list):
        found["group_sep"] = guess_separator(head, found["group"])
    found["label"] = _label_left(columns, found)
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
    values = pandas_series(settle(series))
    return _Column(series.name, _words(series.name), _kind(values), values)


def _words(name: Hashable) -> tuple[str, ...]:
    """Return the words of a name: ``userId``, ``user_id`` and ``User ID`` are all user, id."""
    # RecBole writes the type of a column behind its name.
    bare = re.sub(r":(token|float)(_seq)?$", "", str(name))
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", bare)
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
    """Give each role the column whose name and values fit it best; no column twice."""
    claims = [
        (points, -order, -place, role, column)
        for order, role in enumerate(ROLES)
        for place, column in enumerate(columns)
        if (points := _points(role, column)) > 0
    ]
    found: dict[str, _Column] = {}
    # The query comes first; what belongs to the query or to the item comes last and depends on it.
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
    """Whether a column fits a role that is tied to the query or item, or must differ inside it."""
    query = found.get("query")
    if role == "producer":
        return _encloses(found.get("item"), column)
    if ROLES[role].is_constant:
        return _encloses(query, column)
    if role == "group" and query is not None and query.values.duplicated().any():
        # A label that all rows of a query share leaves no item to compare with.
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
    joined, head = "".join(telling), telling[-1]
    joined = "".join(words) if "".join(words) in known else joined
    head = head if head in known else head.removesuffix("id")
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
    """Whether every query has one unit or segment, or every item has one producer.

    The answer is only as good as the rows that were seen.
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


def _label_left(columns: list[_Column], found: dict[str, Any]) -> Hashable | None:
    """Return the one text column that is constant for items and tells most of them apart.

    Items that never recur would have one text each in any column.
    """
    item = next((column for column in columns if column.name == found["item"]), None)
    if item is None or not item.values.duplicated().any():
        return None
    most = item.values.nunique() / 2
    free = [column for column in _free(columns, found) if column.kind == "text"]
    fit = [one for one in free if one.values.nunique() > most and _encloses(item, one)]
    return fit[0].name if len(fit) == 1 else None


def _free(columns: list[_Column], found: dict[str, Any]) -> list[_Column]:
    taken = [name for name in found.values() if name is not None]
    return [column for column in columns if column.name not in taken]


def _separator(column: _Column) -> str | None:
    """Return what separates several labels in one text, if splitting leaves fewer labels."""
    if column.kind != "text":
        return None
    if str(column.name).endswith(":token_seq"):
        return " "
    texts = [text for text in column.values.dropna().astype(str) if text.strip()]
    for separator in _SEPARATORS:
        split = [text for text in texts if separator in text]
        if len(split) < max(1, _SPLIT_AT_LEAST * len(texts)):
            continue
        if separator == "|" or _recur(split, texts, separator):
            return separator
    return None


def _recur(split: Iterable[str], texts: Iterable[str], separator: str) -> bool:
    """Whether labels occur in several texts: those that occur in one text are probably a name."""
    whole = set(texts)
    parts = {part.strip() for text in whole for part in text.split(separator)}
    return len(parts) < len(whole) or any(
        part.strip() in whole for text in split for part in text.split(separator)
    )
