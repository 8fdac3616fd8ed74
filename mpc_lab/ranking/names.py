"""Which column plays which part."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from typing import Any

from mpc_lab.errors import MpcError
from mpc_lab.files import Roles

_REQUIRED = ("query", "score", "outcome", "group")


@dataclass(frozen=True)
class ColumnNames:
    """The columns of a `Ranking`, as they were named by the caller.

    ``query`` is a name, or a tuple of names; ``group`` is a name, or a tuple of the names of
    boolean columns; what was not given is None.
    """

    query: Hashable
    score: Hashable
    outcome: Hashable
    group: Hashable
    item: Hashable | None = None
    unit: Hashable | None = None
    group_sep: str | None = None
    position: Hashable | None = None
    segment: Hashable | None = None

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The columns of ids and labels, boolean columns of groups left out."""
        query = self.query if isinstance(self.query, tuple) else (self.query,)
        group = () if isinstance(self.group, tuple) else (self.group,)
        others = (self.item, self.unit, self.segment)
        return (*query, *group, *(name for name in others if name is not None))

    @property
    def numbers(self) -> tuple[Hashable, ...]:
        """The columns of scores, outcomes and positions."""
        others = () if self.position is None else (self.position,)
        return (self.score, self.outcome, *others)

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
    query: object,
    score: object,
    outcome: object,
    group: object,
    item: Hashable | None = None,
    unit: Hashable | None = None,
    group_sep: str | None = None,
    position: Hashable | None = None,
    segment: Hashable | None = None,
) -> ColumnNames:
    """Return the columns that a caller named, once it is clear that they are names."""
    return ColumnNames(
        query=one_or_more(query, "query"),
        score=one_name(score, "score"),
        outcome=one_name(outcome, "outcome"),
        group=one_or_more(group, "group"),
        item=item if item is None else one_name(item, "item"),
        unit=unit if unit is None else one_name(unit, "unit"),
        group_sep=group_sep,
        position=position if position is None else one_name(position, "position"),
        segment=segment if segment is None else one_name(segment, "segment"),
    )


def drops(missing: object) -> bool:
    """Return whether rows with a missing value are left out rather than refused."""
    if missing not in ("raise", "drop"):
        raise MpcError(f'missing must be "raise" or "drop", but {missing!r} came.')
    return missing == "drop"


def check_named(given: Iterable[str]) -> None:
    """Insist on the columns that every log needs."""
    absent = [name for name in _REQUIRED if name not in set(given)]
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
