"""Which rows of a table are wanted, as SQL: checked roles, masks of groups, codes of items."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc_lab.engines.duck_database import Database
from mpc_lab.engines.duck_table import DuckTable
from mpc_lab.pairing.log import select_groups
from mpc_lab.ranking import ColumnNames, group_index
from mpc_lab.ranking.groups import Membership, label_names, read_groups
from mpc_lab.ranking.table import open_table


@dataclass(frozen=True)
class Labels:
    """The distinct labels of a group column, as an Arrow table, and who has which groups.

    `column` is empty where groups are boolean columns; then `membership` holds names alone.
    """

    column: Any
    membership: Membership


class DuckRows:
    """The parts of a log as SQL expressions over a table.

    Parameters
    ----------
    table : DuckTable
    columns : ColumnNames
    drop : bool
        Whether rows with a missing value are left out.
    """

    def __init__(self, table: DuckTable, columns: ColumnNames, *, drop: bool) -> None:
        self.table, self.columns, self.drop = table, columns, drop
        query = columns.query if isinstance(columns.query, tuple) else (columns.query,)
        self.query_names: tuple[Hashable, ...] = query
        self.ids = [("query", name, table.label(name, "query")) for name in query]
        for role in ("item", "unit", "segment"):
            name = getattr(columns, role)
            if name is not None:
                self.ids.append((role, name, table.label(name, role)))
        self.numbers = [
            (role, name, table.number(name, role))
            for role in ("score", "outcome", "position")
            if (name := getattr(columns, role)) is not None
        ]
        if isinstance(columns.group, tuple):
            self.truths = {name: table.truth(name) for name in columns.group}
        else:
            self.truths = {}
            table.place(columns.group, "group")

    def id(self, role: str) -> str:
        """Return the expression of an id that has one column."""
        return next(sql for this, _, sql in self.ids if this == role)

    def number(self, role: str) -> str:
        """Return the expression of a number."""
        return next(sql for this, _, sql in self.numbers if this == role)

    @property
    def complete(self) -> str:
        """The condition under which no value is missing."""
        wanted = [f"{sql} IS NOT NULL" for _, _, sql in self.ids]
        wanted += [f"{sql} IS NOT NULL AND NOT isnan({sql})" for _, _, sql in self.numbers]
        return " AND ".join(wanted)

    @property
    def kept(self) -> str:
        """The table with the rows that are kept."""
        return f"{self.table.sql}{f' WHERE {self.complete}' if self.drop else ''}"

    def labels(self, database: Database) -> Labels:
        """Find the groups: names of boolean columns, or the distinct labels of a column."""
        columns = self.columns
        if isinstance(columns.group, tuple):
            frame = open_table({name: np.zeros(1, dtype=bool) for name in columns.group})
            found = read_groups(frame, columns.group, columns.group_sep)
            label_names(columns.group, "The list of group columns")
            return Labels(None, found)
        column = f"c{self.table.place(columns.group)}"
        distinct = database.table(f"SELECT DISTINCT {column} FROM {self.kept}")
        distinct = distinct.rename_columns([str(columns.group)])
        found = read_groups(open_table(distinct), columns.group, columns.group_sep)
        return Labels(distinct.column(0), found)

    def masks(self, database: Database, labels: Labels, groups: tuple[str, ...]) -> tuple[str, str]:
        """Return the masks of groups, as mask0, mask1, …, and the join they need."""
        everything = labels.membership.groups
        chosen = np.array([group_index(everything, group) for group in groups], dtype=np.int64)
        if labels.column is None:
            named = {str(name): sql for name, sql in self.truths.items()}
            return _packed([named[group] for group in groups]), ""
        masks = select_groups(labels.membership.masks, chosen)
        import pyarrow as pa

        table = {"label": labels.column}
        table |= {f"mask{word}": pa.array(mask) for word, mask in enumerate(masks)}
        database.register("labels", pa.table(table))
        words = ", ".join(
            f"coalesce(labels.mask{word}, 0)::{_wide_enough(len(groups) - 64 * word)} AS mask{word}"
            for word in range(len(masks))
        )
        # An inner join would lose the rows without a label.
        column = f"c{self.table.place(self.columns.group)}"
        return words, f"LEFT JOIN labels ON log.{column} = labels.label"


def _packed(truths: list[str]) -> str:
    words = []
    for word, start in enumerate(range(0, max(len(truths), 1), 64)):
        kind = _wide_enough(len(truths) - start)
        bits = [
            f"(CASE WHEN {sql} THEN {1 << place}::{kind} ELSE 0::{kind} END)"
            for place, sql in enumerate(truths[start : start + 64])
        ]
        words.append(f"({' | '.join(bits) or f'0::{kind}'}) AS mask{word}")
    return ", ".join(words)


def _wide_enough(n_groups: int) -> str:
    """Return the type of a mask; every byte of a row has to be sorted, written and read."""
    kinds = {8: "UTINYINT", 16: "USMALLINT", 32: "UINTEGER"}
    return next((kind for bits, kind in kinds.items() if n_groups <= bits), "UBIGINT")
