"""What is wrong with a log in files: asked only once something was seen to be."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from mpc_lab.engines.duck_database import Database
from mpc_lab.engines.duck_rows import DuckRows, key_to_id
from mpc_lab.errors import MpcError
from mpc_lab.files import Files
from mpc_lab.ranking import checks


def explain(database: Database, rows: DuckRows, files: Files) -> MpcError:
    """Return the error for the first check that the rows, or other scores, do not pass."""
    missing = {(role, name): f"{sql} IS NULL" for role, name, sql in rows.ids}
    missing |= {(role, name): f"isnan({sql})" for role, name, sql in rows.numbers}
    if not rows.spec.drop:
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
    for role, name, sql in rows.extra:
        ((count, first),) = _counted(
            database, rows, {(role, name): f"NOT isfinite({sql})"}
        ).values()
        if count:
            return _not_finite_scores(database, rows, name, count, first)
    return _explain_lists(database, rows, files)


def _too_large(database: Database, rows: DuckRows, role: str, sql: str) -> Any:
    """Return the first row with a number that is too large, and the number."""
    kept = f"({rows.complete}) AND " if rows.spec.drop else ""
    large = f"{kept}abs({sql}) > {checks.LARGEST[role]!r}"
    return _first(database, f"SELECT row, {sql} FROM log WHERE {large} ORDER BY row LIMIT 1")


def _explain_lists(database: Database, rows: DuckRows, files: Files) -> MpcError:
    columns = rows.spec.columns
    if columns.position is not None:
        what, p = _what("position", columns.position), "position"
        wrong = _first(
            database,
            f"SELECT row, {p} FROM (SELECT * FROM {rows.kept}) WHERE NOT ({p} >= 1 AND "
            f"{p} <= {checks.LARGEST_WHOLE!r} AND {p} = floor({p})) ORDER BY row LIMIT 1",
        )
        if wrong is not None:
            return checks.no_position(what, *wrong)
        twice = _twice(database, rows, "position")
        if twice is not None:
            return checks.position_twice(int(twice[0]), _query_id(rows, files, twice[1:]))
    if columns.item is not None:
        twice = _twice(database, rows, "item")
        if twice is not None:
            item = key_to_id(files, columns.item, twice[0])
            return checks.item_twice(item, _query_id(rows, files, twice[1:]))
    return MpcError("The log was read twice and was not the same: let nothing write to its files.")


def check_one_per_query(database: Database, rows: DuckRows, files: Files, role: str) -> None:
    """Raise if a query has two units, or two segments, or none."""
    keys = ", ".join(_keys(rows))
    wrong = _first(
        database,
        f"SELECT {keys}, min({role}), max({role}), count({role}) < count(*) FROM {rows.kept} "
        f"GROUP BY {keys} HAVING min({role}) <> max({role}) OR count({role}) < count(*) "
        f"ORDER BY count({role}) < count(*) DESC LIMIT 1",
    )
    if wrong is None:
        return
    if wrong[-1]:
        raise explain(database, rows, files)
    name = getattr(rows.spec.columns, role)
    labels = [key_to_id(files, name, key) for key in wrong[-3:-1]]
    raise checks.two_of_one(role, _query_id(rows, files, wrong[:-3]), *labels)


def _not_finite_scores(
    database: Database, rows: DuckRows, name: Hashable, count: int, first: int
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
    # Rows are numbered as they are in the files, whether some are left out or not.
    kept = f"({rows.complete}) AND " if rows.spec.drop else ""
    asked = ", ".join(
        f"count_if({kept}{sql}), min(row) FILTER ({kept}{sql})" for sql in bad.values()
    )
    found = _first(database, f"SELECT {asked} FROM log")
    return {key: (found[2 * k], found[2 * k + 1]) for k, key in enumerate(bad)}


def _twice(database: Database, rows: DuckRows, value: str) -> Any:
    keys = ", ".join(_keys(rows))
    return _first(
        database,
        f"SELECT {value}, {keys} FROM {rows.kept} GROUP BY ALL HAVING count(*) > 1 LIMIT 1",
    )


def _keys(rows: DuckRows) -> list[str]:
    return [alias for role, _, alias in rows.ids if role == "query"]


def _query_id(rows: DuckRows, files: Files, keys: tuple[Any, ...]) -> Any:
    names = [name for role, name, _ in rows.ids if role == "query"]
    found = tuple(key_to_id(files, name, key) for name, key in zip(names, keys, strict=True))
    return found[0] if len(found) == 1 else found


def _what(role: str, name: Hashable) -> str:
    return f"The {role} column {name!r}"


def _first(database: Database, question: str) -> Any:
    """Return the first row of the answer, None if it has none."""
    return next(iter(database.rows(question)), None)
