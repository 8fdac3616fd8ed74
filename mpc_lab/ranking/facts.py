"""What an audit has to know of a log, whether its rows are in memory or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mpc_lab.errors import MpcError, near_match
from mpc_lab.ranking.names import ColumnNames


class Known(Protocol):
    """What is known of a log before its rows are read."""

    @property
    def columns(self) -> ColumnNames:
        """Which column plays which part."""
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
    def dropped(self) -> int:
        """Rows left out for missing values."""
        ...

    @property
    def score_std(self) -> float:
        """Population standard deviation of the scores."""
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
    dropped: int = 0
    score_std: float = float("nan")


def group_index(groups: tuple[str, ...], group: str) -> int:
    """Return the place of a group among the groups of a log."""
    try:
        return groups.index(group)
    except ValueError:
        hint = near_match(group, groups)
        raise MpcError(f"There is no group {group!r} in this ranking.{hint}") from None
