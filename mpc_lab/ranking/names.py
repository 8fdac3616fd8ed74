"""Which column plays which part."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields
from typing import Any

from mpc_lab.errors import MpcError


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

    def given(self) -> dict[str, Any]:
        """Return the keywords of `Ranking` that were given, ready to be given again."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in chosen.items() if value is not None}


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
