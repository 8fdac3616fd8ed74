"""What is wrong with a log in files: asked only once something was seen to be."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from mpc_lab.engines.duck_database import Database
from mpc_lab.engines.duck_rows import DuckRows, key_to_id
from mpc_lab.errors import MpcError
from mpc_lab.files import Files
from mpc_lab.ranking import checks


def explain(database: Database, rows: DuckRows, files: Files) -> MpcError:
    """Return the error for the first check that the rows do not pass, in the order of memory."""
    changed = "The log was read twice and was not the same: let nothing write to its files."
    return next(_errors(database, rows, files), MpcError(changed))


def check_one_per_query(database: Database, rows: DuckRows, files: Files, role: str) -> None:
    """Raise if a query has two units, or two segments, or none."""
    keys = ", ".join(_keys(rows))
    wrong = f"min({role}) <> max({role}) OR count({role}) < count(*)"
    if _first(database, f"SELECT 1 FROM {rows.kept} GROUP BY {keys} HAVING {wrong} LIMIT 1"):
        raise explain(database, rows, files)


def _errors(database: Database, rows: DuckRows, files: Files) -> Iterator[MpcError]:
    columns = rows.spec.columns
    missing = {(role, name): f"{sql} IS NULL" for role, name, sql in rows.ids}
    missing |= {(role, name): f"isnan({sql})" for role, name, sql in rows.numbers}
    for (role, name), found in _counted(database, rows, missing).items():
        if not rows.spec.drop and found[0]:
            yield checks.incomplete(_what(role, name), *found)
    for role, name, sql in (one for one in rows.numbers if one[0] in checks.LARGEST):
        ((_, found),) = _counted(database, rows, {(role, name): f"isinf({sql})"}).items()
        if found[0]:
            yield checks.not_finite(_what(role, name), *found)
        large = _row_where(database, rows, sql, f"abs({sql}) > {checks.LARGEST[role]!r}")
        if large is not None:
            yield checks.too_large(role, _what(role, name), *large)
    if columns.item is not None and (twice := _twice(database, rows, "item")) is not None:
        item = key_to_id(files, columns.item, twice[0])
        yield checks.item_twice(item, _query_id(rows, files, twice[1:]))
    for role in ("unit", "segment"):
        if getattr(columns, role) is not None:
            yield from _two_of_one(database, rows, files, role)
    if columns.position is not None:
        whole = f"position >= 1 AND position <= {checks.LARGEST_WHOLE!r}"
        wrong = f"NOT ({whole} AND position = floor(position))"
        found_row = _row_where(database, rows, "position", wrong)
        if found_row is not None:
            yield checks.no_position(_what("position", columns.position), *found_row)
        if (twice := _twice(database, rows, "position")) is not None:
            yield checks.position_twice(int(twice[0]), _query_id(rows, files, twice[1:]))
    for role, name, sql in rows.extra:
        ((_, found),) = _counted(database, rows, {(role, name): f"NOT isfinite({sql})"}).items()
        if found[0]:
            yield _not_finite_scores(database, rows, name, *found)


def _row_where(database: Database, rows: DuckRows, value: str, wrong: str) -> Any:
    """Return the first row in which something is wrong, and the value there."""
    kept = f"({rows.complete}) AND " if rows.spec.drop else ""
    return _first(
        database, f"SELECT row, {value} FROM log WHERE {kept}{wrong} ORDER BY row LIMIT 1"
    )


def _two_of_one(database: Database, rows: DuckRows, files: Files, role: str) -> Iterator[MpcError]:
    """Yield the error for the first row that differs from the first row of its query."""
    keys = ", ".join(_keys(rows))
    found = _first(
        database,
        f"SELECT {keys}, one, {role} FROM (SELECT * FROM {rows.kept}) JOIN (SELECT {keys}, "
        f"arg_min({role}, row) AS one FROM {rows.kept} GROUP BY {keys}) USING ({keys}) "
        f"WHERE {role} <> one ORDER BY row LIMIT 1",
    )
    if found is not None:
        name = getattr(rows.spec.columns, role)
        labels = [key_to_id(files, name, key) for key in found[-2:]]
        yield checks.two_of_one(role, _query_id(rows, files, found[:-2]), *labels)


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
    # The row that comes first of those that were there before.
    return _first(
        database,
        f"SELECT {value}, {keys} FROM {rows.kept} GROUP BY {value}, {keys} "
        "HAVING count(*) > 1 ORDER BY min(row, 2)[2] LIMIT 1",
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
