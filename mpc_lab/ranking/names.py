"""Which column plays which role, and what else is known of a log, in memory or not."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Protocol

from mpc_lab.errors import MpcError, check_flag, check_number
from mpc_lab.files import Roles
from mpc_lab.ranking.examination import FLOOR, Curve, as_examined
from mpc_lab.vocabulary import ITEM, NEEDED_ROLES, ROLES, Role

_NEEDED_FIRST = sorted(ROLES.values(), key=lambda role: not role.is_needed)


@dataclass(frozen=True)
class ColumnNames:
    """The columns of a `Ranking`, as they were named by the caller.

    ``query`` is a name, or a tuple of names; ``group`` is a name, or a tuple of the names of
    boolean columns; what was not given is None. Beside the columns, what was said of them:
    ``group_sep``, ``ascending``, ``outcome_name`` and ``examined_floor`` as in `Ranking`. What was
    ``examined`` is a column, or a curve over places. A log without ``score`` is
    rank-only: its places are its scores.
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

    @property
    def is_rank_only(self) -> bool:
        """Whether there is no score but the place."""
        return self.score is None

    @property
    def sides_by_place(self) -> bool:
        """Whether two sides of a tie are told apart by the places at which they were shown.

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
    if "producer" in named and "item" not in named:
        raise MpcError(
            f"producer must go with item, of which it is a property; got producer="
            f"{named['producer']!r} alone. Name the item column too, with item=."
        )
    if turned and named["score"] is None:
        raise MpcError("ascending must go with a score; got none. Places begin at 1 = top.")
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
            "examined must go with position where it is given by place; got no position. Name the "
            "column of logged positions, or a column with a probability for each row."
        )
    return {"examined": examined, "examined_floor": None if floor == FLOOR else floor}


def drops(missing: object) -> bool:
    """Return whether rows with a missing value are left out rather than refused."""
    if missing not in ("raise", "drop"):
        raise MpcError(f'missing must be "raise" or "drop", but {missing!r} came.')
    return missing == "drop"


def check_named(given: Iterable[str]) -> None:
    """Insist on the columns that every log needs."""
    known = set(given)
    # A place can stand for a score.
    known |= {"score"} if "position" in known else set()
    absent = [name for name in NEEDED_ROLES if name not in known]
    if absent:
        raise MpcError(
            f"A table needs the names of its columns, but {', '.join(absent)} "
            f"{'is' if len(absent) == 1 else 'are'} not given: pass {absent[0]}=, or a Ranking."
        )


def one_name(value: object, role: str) -> Hashable:
    """Return a single column name."""
    if value is None or isinstance(value, list | set | dict) or not isinstance(value, Hashable):
        raise MpcError(
            f"{role} must be the name of one column, but {value!r} came: give a name such as "
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
            f"{role} must be a column or a list of different columns, but {value!r} came: "
            "name each column once."
        )
    return names


# ---- what is known of a log


class Known(Protocol):
    """What is known of a log before its rows are read."""

    @property
    def columns(self) -> ColumnNames:
        """Which column plays which role."""
        ...

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, sorted."""
        ...


class LogFacts(Known, Protocol):
    """What is known once they were; a `Ranking` knows it, and so does every engine."""

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
