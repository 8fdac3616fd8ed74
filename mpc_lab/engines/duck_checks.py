"""What is wrong with a log in files: asked only once something was seen to be."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from mpc_lab.engines.duck_database import Database
from mpc_lab.engines.duck_rows import DuckRows
from mpc_lab.errors import MpcError
from mpc_lab.ranking import checks


def explain(database: Database, rows: DuckRows, extra: tuple[str, ...] = ()) -> MpcError:
    """Return the error for the first check that the rows, or other scores, do not pass."""
    missing = {(role, name): f"{sql} IS NULL" for role, name, sql in rows.ids}
    missing |= {(r, name): f"({sql} IS NULL OR isnan({sql}))" for r, name, sql in rows.numbers}
    if not rows.drop:
        for (role, name), (count, first) in _counted(database, rows, missing).items():
            if count:
                return checks.incomplete(_what(role, name), count, first)
    infinite = {(r, name): f"isinf({s})" for r, name, s in rows.numbers if r != "position"}
    for (role, name), (count, first) in _counted(database, rows, infinite).items():
        if count:
            return checks.not_finite(_what(role, name), count, first)
    for role, name, sql in rows.numbers:
        large = _too_large(database, rows, role, sql) if role in checks.LARGEST else None
        if large is not None:
            return checks.too_large(role, _what(role, name), *large)
    for name in extra:
        sql = rows.table.number(name, "score")
        bad: dict[tuple[str, Hashable], str] = {
            ("score", name): f"({sql} IS NULL OR NOT isfinite({sql}))"
        }
        ((count, first),) = _counted(database, rows, bad).values()
        if count:
            return _not_finite_scores(database, rows, name, count, first)
    return _explain_lists(database, rows)


def _too_large(database: Database, rows: DuckRows, role: str, sql: str) -> Any:
    """Return the first row with a number that is too large, and the number."""
    kept = f"({rows.complete}) AND " if rows.drop else ""
    return _first(
        database,
        f"SELECT row, value FROM (SELECT row_number() OVER () - 1 AS row, {sql} AS value, "
        f"{kept}abs({sql}) > {checks.LARGEST[role]!r} AS large FROM {rows.table.sql}) "
        "WHERE large ORDER BY row LIMIT 1",
    )


def _explain_lists(database: Database, rows: DuckRows) -> MpcError:
    if rows.columns.position is not None:
        position, what = rows.number("position"), _what("position", rows.columns.position)
        wrong = _first(
            database,
            f"SELECT row, p FROM (SELECT row_number() OVER () - 1 AS row, {position} AS p "
            f"FROM {rows.kept}) WHERE NOT (p >= 1 AND p <= {checks.LARGEST_WHOLE!r} "
            "AND p = floor(p)) ORDER BY row LIMIT 1",
        )
        if wrong is not None:
            return checks.no_position(what, *wrong)
        twice = _twice(database, rows, position)
        if twice is not None:
            return checks.position_twice(int(twice[0]), twice[1])
    if rows.columns.item is not None:
        twice = _twice(database, rows, rows.id("item"))
        if twice is not None:
            return checks.item_twice(*twice)
    return MpcError("The log was read twice and was not the same: let nothing write to its files.")


def check_one_per_query(database: Database, rows: DuckRows, role: str) -> None:
    """Raise if a query has two units, or two segments, or none."""
    query = [sql for this, _, sql in rows.ids if this == "query"]
    label = rows.id(role)
    keys = ", ".join(query)
    wrong = _first(
        database,
        f"SELECT {keys}, min({label}), max({label}), count({label}) < count(*) FROM {rows.kept} "
        f"GROUP BY {keys} HAVING min({label}) <> max({label}) OR count({label}) < count(*) "
        f"ORDER BY count({label}) < count(*) DESC LIMIT 1",
    )
    if wrong is None:
        return
    if wrong[-1]:
        raise explain(database, rows)
    raise checks.two_of_one(role, _id(wrong[: len(query)]), *wrong[len(query) : -1])


def _not_finite_scores(
    database: Database, rows: DuckRows, name: str, count: int, first: int
) -> MpcError:
    n_rows = _first(database, f"SELECT count(*) FROM {rows.kept}")[0]
    return MpcError(
        f"The score column {name!r} must give finite scores, but {count:,} of {n_rows:,} are "
        f"missing or infinite, the first in row {first}: fill or remove them."
    )


def _counted(
    database: Database, rows: DuckRows, bad: dict[tuple[str, Hashable], str]
) -> dict[tuple[str, Hashable], tuple[int, int]]:
    """Return how many rows are bad in each way, and the first of them."""
    # Rows are numbered as they stand in the files, whether some are left out or not.
    kept = f"({rows.complete}) AND " if rows.drop else ""
    flags = ", ".join(f"{kept}{sql} AS bad{k}" for k, sql in enumerate(bad.values()))
    asked = ", ".join(f"count_if(bad{k}), min(row) FILTER (bad{k})" for k in range(len(bad)))
    found = _first(
        database,
        f"SELECT {asked} FROM "
        f"(SELECT row_number() OVER () - 1 AS row, {flags} FROM {rows.table.sql})",
    )
    return {key: (found[2 * k], found[2 * k + 1]) for k, key in enumerate(bad)}


def _twice(database: Database, rows: DuckRows, value: str) -> tuple[Any, Any] | None:
    query = [sql for this, _, sql in rows.ids if this == "query"]
    found = _first(
        database,
        f"SELECT {value}, {', '.join(query)} FROM {rows.kept} GROUP BY ALL "
        "HAVING count(*) > 1 LIMIT 1",
    )
    return None if found is None else (found[0], _id(found[1:]))


def _id(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else values


def _what(role: str, name: Hashable) -> str:
    return f"The {role} column {name!r}"


def _first(database: Database, question: str) -> Any:
    """Return the first row of the answer, None if it has none."""
    return next(iter(database.rows(question)), None)
