"""From a table and the names of its columns to checked arrays."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from mpc_lab.ranking import checks
from mpc_lab.ranking.columns import (
    Bools,
    Codes,
    Floats,
    Ints,
    combine,
    encode,
    is_missing,
    numbers,
)
from mpc_lab.ranking.groups import Membership, label_names, read_groups
from mpc_lab.ranking.names import ColumnNames
from mpc_lab.ranking.table import Frame, get_column, take_rows


@dataclass(frozen=True)
class Rows:
    """The columns of a log as arrays; what was not given is None."""

    table: Frame
    kept: Ints
    dropped: int
    query: Codes
    item: Codes | None
    unit: Codes | None
    segment: Codes | None
    score: Floats
    outcome: Floats
    position: Ints | None
    membership: Membership


def read_rows(table: Frame, columns: ColumnNames, *, drop: bool) -> Rows:
    """Read and check every column; `drop` leaves out rows with a missing value."""
    if not len(table):
        raise checks.no_rows()
    floats = _read_numbers(table, columns)
    keep = _complete_rows(table, columns, floats, drop=drop)
    dropped = len(table) - len(keep)
    if dropped:
        table = take_rows(table, keep)
        floats = {role: values[keep] for role, values in floats.items()}
    for role in ("score", "outcome"):
        checks.check_finite(floats[role], keep, _what(role, getattr(columns, role)))
        checks.check_size(floats[role], keep, role, _what(role, getattr(columns, role)))
    ids = _read_ids(table, columns)
    position = None
    if columns.position is not None:
        what = _what("position", columns.position)
        position = checks.whole_positions(floats["position"], keep, what)
        checks.check_positions(ids["query"], position)
    return Rows(
        table=table,
        kept=keep,
        dropped=dropped,
        query=ids["query"],
        item=ids.get("item"),
        unit=ids.get("unit"),
        segment=ids.get("segment"),
        score=floats["score"],
        outcome=floats["outcome"],
        position=position,
        membership=read_groups(table, columns.group, columns.group_sep),
    )


def _what(role: str, name: Hashable) -> str:
    return f"The {role} column {name!r}"


def _read_numbers(table: Frame, columns: ColumnNames) -> dict[str, Floats]:
    named = {role: getattr(columns, role) for role in ("score", "outcome", "position")}
    return {
        role: numbers(get_column(table, name, role), _what(role, name))
        for role, name in named.items()
        if name is not None
    }


def _id_columns(columns: ColumnNames) -> list[tuple[str, Hashable]]:
    """Return (role, column) for all ids; the query may have several columns."""
    query = columns.query
    found = [("query", name) for name in (query if isinstance(query, tuple) else (query,))]
    for role in ("item", "unit", "segment"):
        if getattr(columns, role) is not None:
            found.append((role, getattr(columns, role)))
    return found


def _complete_rows(
    table: Frame, columns: ColumnNames, floats: dict[str, Floats], *, drop: bool
) -> Ints:
    """Return the numbers of the rows in which nothing is missing."""
    missing = _missing(table, columns, floats)
    if not drop:
        checks.check_complete(missing)
    keep = np.flatnonzero(~np.logical_or.reduce(list(missing.values())))
    if not len(keep):
        raise checks.nothing_left(len(table))
    return keep


def _missing(table: Frame, columns: ColumnNames, floats: dict[str, Floats]) -> dict[str, Bools]:
    missing = {
        _what(role, name): is_missing(get_column(table, name, role))
        for role, name in _id_columns(columns)
    }
    for role, values in floats.items():
        missing[_what(role, getattr(columns, role))] = np.isnan(values)
    return missing


def complete_rows(table: Frame, columns: ColumnNames) -> Ints:
    """Return the numbers of the rows in which nothing is missing."""
    missing = _missing(table, columns, _read_numbers(table, columns))
    return np.flatnonzero(~np.logical_or.reduce(list(missing.values())))


def _read_ids(table: Frame, columns: ColumnNames) -> dict[str, Codes]:
    parts: dict[str, list[Codes]] = {}
    for role, name in _id_columns(columns):
        coded = encode(get_column(table, name, role), _what(role, name))
        parts.setdefault(role, []).append(coded)
    ids = {role: found[0] if len(found) == 1 else combine(found) for role, found in parts.items()}
    if "item" in ids:
        checks.check_items(ids["query"], ids["item"])
    if "unit" in ids:
        checks.check_one_per_query(ids["query"], ids["unit"], "unit")
    if "segment" in ids:
        checks.check_one_per_query(ids["query"], ids["segment"], "segment")
        ids["segment"] = _by_name(ids["segment"], _what("segment", columns.segment))
    return ids


def _by_name(segment: Codes, what: str) -> Codes:
    """Renumber the segments in the order of their names."""
    names = np.array(label_names(segment.labels.tolist(), what), dtype=object)
    order = np.argsort(names, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Codes(rank[segment.codes], names[order])
