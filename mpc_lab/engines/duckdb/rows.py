"""The database that sorts a log in files, and the Arrow file through which rows enter it.

DuckDB sorts and counts. What a value means is decided before it sees one: names of columns, types,
numbers and groups are settled here, by the code that reads a `Ranking`. Only when something is seen
to be wrong are the rows searched for what it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc_lab.engines.duckdb.chunks import explain_no_room
from mpc_lab.engines.partitions import Spec, count_words, find_groups, join_groups, order_masks
from mpc_lab.engines.running import Limits
from mpc_lab.errors import MpcError
from mpc_lab.files import Files, Roles
from mpc_lab.pairing.kernels import finish, n_threads, start_pool, wait_for, wait_out
from mpc_lab.ranking import checks
from mpc_lab.ranking.columns import encode, get_column, numbers, open_table, read_groups
from mpc_lab.ranking.names import OF_ITEMS
from mpc_lab.roles import ROLES
from mpc_lab.vocabulary import PRODUCER

Result = TypeVar("Result")

_BATCH = 122_880  # rows; DuckDB returns batches of this size whatever size is asked for


class Database:
    """A connection to DuckDB that sees Ctrl-C while it works.

    Python sees Ctrl-C only between two of its own steps in the main thread, and a sort is one step
    that may take minutes. So DuckDB runs in another thread, and is stopped from this one.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._thread = start_pool(1)

    def do(self, command: str) -> None:
        """Carry out a command."""
        self._heard(lambda: self._connection.execute(command))

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        """Return the rows of the answer."""
        return self._heard(lambda: self._connection.sql(question).fetchall())

    @contextmanager
    def batches(self, question: str) -> Iterator[Iterator[Any]]:
        """Give the answer as record batches, one after the other."""
        reader = self._heard(lambda: self._connection.sql(question).to_arrow_reader(_BATCH))

        def following() -> Any:
            return self._heard(lambda: next(reader, None))

        try:
            yield iter(following, None)
        finally:
            reader.close()  # frees what it spilled

    def register(self, name: str, rows: Any) -> None:
        """Give Arrow's table or dataset a name to ask for."""
        self._connection.register(name, rows)

    def close(self) -> None:
        """Release everything it holds."""
        finish(self._close)

    def _close(self) -> None:
        self._thread.shutdown()
        self._connection.close()

    def _heard(self, work: Callable[[], Result]) -> Result:
        future = self._thread.submit(work)
        try:
            return wait_for(future)
        except BaseException:  # whatever exception a signal raises here
            if not future.done():
                self._connection.interrupt()
                wait_out(future)  # nothing may be closed while the thread still uses it
            raise


def _load_duckdb() -> Any:
    """Import DuckDB in another thread: a signal inside its import ends the process."""

    def load() -> Any:
        import duckdb

        return duckdb

    with start_pool(1) as thread:
        return wait_for(thread.submit(load))


@contextmanager
def connect(limits: Limits, folder: Path | None) -> Iterator[Database]:
    """Open a database in memory that spills to a folder; its errors become ours."""
    duckdb = _load_duckdb()
    config: dict[str, Any] = {
        "threads": n_threads(),
        "memory_limit": f"{limits.sorting // 10**6}MB",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if folder is not None:
        config["temp_directory"] = str(folder)
    try:
        database = Database(duckdb.connect(":memory:", config=config))
        try:
            # It only sorts what it is given, and has no need for files or the network.
            database.do("SET enable_external_access = false")
            database.do("SET lock_configuration = true")
            yield database
        finally:
            database.close()
    except duckdb.OutOfMemoryException as error:
        raise MpcError(
            "The log cannot be sorted in the memory and the disk space it may use "
            f"({_first_line(error)}). Allow more memory=, or give spill=, a folder with more room."
        ) from error
    except duckdb.IOException as error:
        raise MpcError(
            f"A file cannot be read or written ({_first_line(error)}). Check the files of the log "
            "and the room in the folder spill=."
        ) from error
    except duckdb.Error as error:
        raise MpcError(
            f"The log cannot be read ({_first_line(error)}). Check its files."
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")


# ---- the rows, read by the rules of memory

# Types that sort as fast as their hashes.
_QUICK = ("BIGINT", "UBIGINT", "BOOLEAN")
_WORDS = {8: np.uint8, 16: np.uint16, 32: np.uint32}


def groups_in(files: Files, spec: Spec) -> tuple[str, ...]:
    """Return the names of all groups of a log."""
    import pyarrow as pa

    group = spec.columns.group
    if isinstance(group, tuple):
        # Their names are known already; column problems are reported without reading a row.
        empty = files.schema(spec.columns.roles()).empty_table()
        return read_groups(open_table(empty), group, spec.columns.group_sep).groups
    roles = spec.columns.roles() if spec.drop else Roles(labels=(str(group),))
    tables = (pa.Table.from_batches([batch]) for batch in files.batches(roles))
    found = (find_groups(table, spec) for table in tables)
    return join_groups(found, files.schema(roles).empty_table(), spec)


class DuckRows:
    """The rows of a log in one Arrow file, its columns named after their roles.

    Parameters
    ----------
    spec : Spec
    """

    def __init__(self, spec: Spec) -> None:
        self.spec, columns = spec, spec.columns
        query = columns.query if isinstance(columns.query, tuple) else (columns.query,)
        self.ids: list[tuple[str, Hashable, str]] = [
            ("query", name, f"query{k}") for k, name in enumerate(query)
        ]
        for role in ("item", "label", "producer", "unit", "segment", "time"):
            if getattr(columns, role) is not None:
                self.ids.append((role, getattr(columns, role), role))
        self.numbers: list[tuple[str, Hashable, str]] = [
            (role, getattr(columns, role), role)
            for role in ("score", "outcome", "position", "weight", "examined")
            if getattr(columns, role) is not None
            and not (role == "examined" and columns.examined_curve)
        ]
        self.extra = [("score", name, f"extra{k}") for k, name in enumerate(spec.extra)]
        self.masks = [f"mask{word}" for word in range(count_words(spec.groups))]

    @property
    def keys(self) -> list[str]:
        """The columns that make a query."""
        return [alias for role, _, alias in self.ids if role == "query"]

    @property
    def unit_keys(self) -> list[str]:
        """The column that makes a unit, where one is named."""
        return [alias for role, _, alias in self.ids if role == "unit"]

    @property
    def complete(self) -> str:
        """The condition under which no value is missing."""
        wanted = [f"{sql} IS NOT NULL" for _, _, sql in self.needed_ids]
        numbers = [sql for _, _, sql in self.numbers]
        numbers += ["examined"] if self.spec.columns.examined_curve else []
        return " AND ".join([*wanted, *(f"NOT isnan({sql})" for sql in numbers)])

    @property
    def needed_ids(self) -> list[tuple[str, Hashable, str]]:
        """The ids that no row may lack."""
        return [one for one in self.ids if not ROLES[one[0]].may_be_missing]

    @property
    def kept(self) -> str:
        """The rows that are kept."""
        return f"log{f' WHERE {self.complete}' if self.spec.drop else ''}"

    def count(self, database: Database) -> int:
        """Return how many rows there are, those that are left out included."""
        return int(database.rows("SELECT count(*) FROM log")[0][0])

    def number_items(self, database: Database) -> int:
        """Give every item a number, and return how many there are."""
        if self.spec.columns.item is None:
            return 0
        database.do(
            "CREATE TEMP TABLE items AS SELECT item, row_number() OVER () - 1 AS code FROM "
            f"(SELECT DISTINCT item FROM {self.kept})"
        )
        return int(database.rows("SELECT count(item) FROM items")[0][0])

    def number_owners(self, database: Database) -> None:
        """Give the producer of every item a number; an item without one is its own."""
        if self.by_producer:
            # Numbers of items that are their own come before those of producers.
            database.do(
                "CREATE TEMP TABLE owners AS SELECT items.item, CASE WHEN producer IS NULL THEN "
                "items.code ELSE (SELECT count(*) FROM items) + dense_rank() OVER "
                "(ORDER BY producer NULLS FIRST) END AS code FROM items JOIN (SELECT item, "
                f"any_value(producer) AS producer FROM {self.kept} GROUP BY item) USING (item)"
            )

    @property
    def by_producer(self) -> bool:
        """Whether the pairs of items move with those of their producer."""
        return self.spec.owner == PRODUCER

    def ask_by_score(self) -> str:
        """Return the query that gives the rows in the order of their scores."""
        cap = self.spec.outcome_cap
        outcome = "outcome" if cap is None else f"least(outcome, {cap!r})"
        if self.spec.columns.examined is not None:
            outcome = f"{outcome} / greatest(examined, {self.spec.columns.floor!r})"
        outcome = outcome if outcome == "outcome" else f"{outcome} AS outcome"
        return f"SELECT score, {outcome}, {', '.join(self.masks)} FROM {self.kept} ORDER BY score"

    def ask_by_query(self, database: Database, *, in_order: bool) -> str:
        """Return the SQL that gives the rows by unit, query and score.

        Parameters
        ----------
        database : Database
            In which items are numbered.
        in_order : bool
            Whether tied rows without a position keep the order of the files.
        """
        kinds = {row[0]: row[1] for row in database.rows("DESCRIBE SELECT * FROM log")}
        names = [*self.unit_keys, *self.keys]
        numbers = ["score", "outcome", *(alias for _, _, alias in self.extra)]
        numbers += [] if self.spec.columns.weight is None else ["weight"]
        numbers += ["examined"] if self.spec.columns.examined is not None else []
        columns = [f"log.{name}" for name in (*names, *numbers, *self.masks)]
        order = [
            key
            for name in names
            # Long texts are sorted by their hash first.
            for key in ([name] if kinds[name] in _QUICK else [f"hash({name})", name])
        ]
        order.append("score")
        tie = "position" if self.spec.columns.position is not None else "row" if in_order else ""
        if tie:
            columns.append(f"(-{tie}) AS tie")
            order.append("tie")
        kept = self.kept
        if self.spec.columns.item is not None:
            columns.append("items.code AS item")
            kept = kept.replace("log", "log LEFT JOIN items ON log.item = items.item", 1)
            if self.by_producer:
                columns.append("owners.code AS owner")
                kept = kept.replace(
                    "= items.item", "= items.item LEFT JOIN owners ON log.item = owners.item", 1
                )
            kept = kept.replace(" item IS", " log.item IS")
        return f"SELECT {', '.join(columns)} FROM {kept} ORDER BY {', '.join(order)}"

    def write(self, files: Files, path: Path, done: Callable[[], None] | None) -> Any:
        """Write the rows of all files to one, and return it as a dataset."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        packed = pa.ipc.IpcWriteOptions(compression="lz4")
        batches = self._batches(files, done)
        try:
            first = next(batches, None)
            if first is None:
                raise checks.no_rows()
            with (
                pa.OSFile(str(path), "wb") as file,
                pa.ipc.new_file(file, first.schema, options=packed) as writer,
            ):
                for batch in itertools.chain([first], batches):
                    writer.write_batch(batch)
        except OSError as error:
            raise explain_no_room(path.parent, error) from error
        return ds.dataset(str(path), format="ipc")

    def _batches(self, files: Files, done: Callable[[], None] | None) -> Iterator[Any]:
        import pyarrow as pa

        first = 0
        for batch in files.batches(self.spec.columns.roles(self.spec.extra), done):
            if not batch.num_rows:
                continue
            row = np.arange(first, first + batch.num_rows)
            first += batch.num_rows
            yield pa.RecordBatch.from_pydict({**self._columns(batch), "row": row})

    def _columns(self, batch: Any) -> dict[str, Any]:
        import pyarrow as pa

        table = open_table(pa.Table.from_batches([batch]))
        found: dict[str, Any] = {}
        for role, name, alias in self.ids:
            encode(get_column(table, name, role)[:1], f"The {role} column {name!r}")
            found[alias] = _as_key(batch.column(str(name)))
            if role in OF_ITEMS:
                found[alias] = _without_blanks(found[alias])
        for role, name, alias in (*self.numbers, *self.extra):
            found[alias] = numbers(get_column(table, name, role), f"The {role} column {name!r}")
        columns = self.spec.columns
        for alias in ("score", *(alias for _, _, alias in self.extra)):
            if columns.ascending:
                found[alias] = 0.0 - found[alias]
        if columns.is_rank_only:
            found["score"] = 0.0 - found["position"]
        if columns.examined_curve is not None:
            found["examined"] = columns.examined_curve.at(found["position"])
        return {**found, **dict(zip(self.masks, self._words(table), strict=True))}

    def _words(self, table: Any) -> Iterator[NDArray[Any]]:
        """Yield the words of the masks, no wider than they must be: every byte is sorted."""
        columns, groups = self.spec.columns, self.spec.groups
        found = read_groups(table, columns.group, columns.group_sep)
        for word, mask in enumerate(order_masks(found.groups, found.masks, groups)):
            bits = len(groups) - 64 * word
            yield mask.astype(next((t for most, t in _WORDS.items() if bits <= most), np.uint64))


def _as_key(array: Any) -> Any:
    """Return ids in a form that DuckDB keeps distinct: it knows no time zones or nanoseconds."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_null(array.type) or types.is_decimal(array.type):
        return array.cast(pa.string())
    if types.is_temporal(array.type) and not types.is_interval(array.type):
        whole = pa.int32() if array.type.bit_width == 32 else pa.int64()
        return array.cast(whole).cast(pa.int64())
    return array


def _without_blanks(array: Any) -> Any:
    """Return labels with null for blank texts."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    if not (types.is_string(array.type) or types.is_large_string(array.type)):
        return array
    blank = pc.equal(pc.utf8_trim_whitespace(array), "")
    return pc.if_else(pc.fill_null(blank, True), pa.scalar(None, array.type), array)


def check_of_items(database: Database, rows: DuckRows, files: Files) -> None:
    """Raise if an item has two labels or producers, or a producer in some rows only."""
    for role in OF_ITEMS:
        if getattr(rows.spec.columns, role) is None:
            continue
        differs = f"min({role}) <> max({role})"
        if role == "producer":
            differs += " OR count(producer) NOT IN (0, count(*))"
        if _first(database, f"SELECT 1 FROM {rows.kept} GROUP BY item HAVING {differs} LIMIT 1"):
            raise explain(database, rows, files)


def _two_of_item(database: Database, rows: DuckRows, files: Files, role: str) -> Iterator[MpcError]:
    """Yield the error for the first row whose item had another producer, or label, before."""
    # A label may be missing in some rows.
    known = f"(SELECT * FROM {rows.kept})"
    known = f"(SELECT * FROM {known} WHERE label IS NOT NULL)" if role == "label" else known
    found = _first(
        database,
        f"SELECT item, one, {role} FROM {known} JOIN (SELECT item, "
        f"min_by([{role}], row)[1] AS one FROM {known} GROUP BY item) USING (item) "
        f"WHERE {role} IS DISTINCT FROM one ORDER BY row LIMIT 1",
    )
    if found is not None:
        columns = rows.spec.columns
        name = getattr(columns, role)
        labels = [None if key is None else key_to_id(files, name, key) for key in found[1:]]
        yield checks.two_of_item(role, key_to_id(files, columns.item, found[0]), *labels)


def key_to_id(files: Files, name: Hashable, key: Any) -> Any:
    """Return an id as it is in the log."""
    import pyarrow as pa
    from pyarrow import types

    type_ = files.schema(Roles(labels=(str(name),))).field(0).type
    if types.is_decimal(type_):
        return pa.scalar(key).cast(type_).as_py()
    if types.is_temporal(type_):
        whole = pa.int32() if type_.bit_width == 32 else pa.int64()
        return pa.scalar(key, whole).cast(type_).as_py()
    return key


# ---- what is wrong with the rows


def explain(database: Database, rows: DuckRows, files: Files) -> MpcError:
    """Return the error of the first failing check, in the order of a log in memory."""
    changed = (
        "The files of the log must not change during an audit; got other rows at the second "
        "reading. Let nothing write to them."
    )
    return next(_errors(database, rows, files), MpcError(changed))


def check_one_per_query(database: Database, rows: DuckRows, files: Files, role: str) -> None:
    """Raise if a query has two units, or two segments, or none."""
    keys = ", ".join(rows.keys)
    wrong = f"min({role}) <> max({role}) OR count({role}) < count(*)"
    if _first(database, f"SELECT 1 FROM {rows.kept} GROUP BY {keys} HAVING {wrong} LIMIT 1"):
        raise explain(database, rows, files)


def _errors(database: Database, rows: DuckRows, files: Files) -> Iterator[MpcError]:
    columns = rows.spec.columns
    missing = {(role, name): f"{sql} IS NULL" for role, name, sql in rows.needed_ids}
    missing |= {(role, name): f"isnan({sql})" for role, name, sql in rows.numbers}
    for (role, name), found in _count_bad(database, rows, missing).items():
        if not rows.spec.drop and found[0]:
            yield checks.incomplete(_what(role, name), *found)
    for role, name, sql in (one for one in rows.numbers if one[0] in checks.LARGEST):
        ((_, found),) = _count_bad(database, rows, {(role, name): f"isinf({sql})"}).items()
        if found[0]:
            yield checks.not_finite(_what(role, name), *found)
        as_given = f"-{sql}" if role == "score" and columns.ascending else sql
        large = _row_where(database, rows, as_given, f"abs({sql}) > {checks.LARGEST[role]!r}")
        if large is not None:
            yield checks.too_large(role, _what(role, name), *large)
    if columns.item is not None and (twice := _twice(database, rows, "item")) is not None:
        item = key_to_id(files, columns.item, twice[0])
        yield checks.item_twice(item, _query_id(rows, files, twice[1:]))
    for role in ("unit", "segment"):
        if getattr(columns, role) is not None:
            yield from _two_of_one(database, rows, files, role)
    for role in OF_ITEMS:
        if getattr(columns, role) is not None:
            yield from _two_of_item(database, rows, files, role)
    if columns.position is not None:
        whole = f"position >= 1 AND position <= {checks.LARGEST_WHOLE!r}"
        wrong = f"NOT ({whole} AND position = floor(position))"
        found_row = _row_where(database, rows, "position", wrong)
        if found_row is not None:
            yield checks.no_position(_what("position", columns.position), *found_row)
        if (twice := _twice(database, rows, "position")) is not None:
            yield checks.position_twice(int(twice[0]), _query_id(rows, files, twice[1:]))
    if columns.weight is not None:
        fit = f"weight >= {checks.SMALLEST_WEIGHT!r} AND weight <= {checks.LARGEST_WEIGHT!r}"
        found_row = _row_where(database, rows, "weight", f"NOT ({fit})")
        if found_row is not None:
            yield checks.no_weight(_what("weight", columns.weight), *found_row)
        yield from _two_of_one(database, rows, files, "weight")
    if columns.examined_curve is not None and not rows.spec.drop:
        unknown = "isnan(examined)"
        found_row = _row_where(database, rows, "position", unknown)
        if found_row is not None:
            count = _first(database, f"SELECT count_if({unknown}) FROM log")[0]
            yield checks.no_examination(found_row[1], count)
    elif columns.examined is not None:
        wrong = "NOT (examined > 0 AND examined <= 1)"
        found_row = _row_where(database, rows, "examined", wrong)
        if found_row is not None:
            yield checks.no_probability(_what("examined", columns.examined), *found_row)
    for role, name, sql in rows.extra:
        ((_, found),) = _count_bad(database, rows, {(role, name): f"NOT isfinite({sql})"}).items()
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
    keys = ", ".join(rows.keys)
    found = _first(
        database,
        f"SELECT {keys}, one, {role} FROM (SELECT * FROM {rows.kept}) JOIN (SELECT {keys}, "
        f"arg_min({role}, row) AS one FROM {rows.kept} GROUP BY {keys}) USING ({keys}) "
        f"WHERE {role} <> one ORDER BY row LIMIT 1",
    )
    if found is not None:
        name, query = getattr(rows.spec.columns, role), _query_id(rows, files, found[:-2])
        if role == "weight":
            yield checks.two_weights(query, *found[-2:])
            return
        labels = [key_to_id(files, name, key) for key in found[-2:]]
        yield checks.two_of_one(role, query, *labels)


def _not_finite_scores(
    database: Database, rows: DuckRows, name: Hashable, count: int, first: int
) -> MpcError:
    n_rows = _first(database, f"SELECT count(*) FROM {rows.kept}")[0]
    return MpcError(
        f"The score column {name!r} must give finite scores; got {count:,} of {n_rows:,} missing "
        f"or infinite, the first in row {first}. Fill or remove them."
    )


def _count_bad(
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
    keys = ", ".join(rows.keys)
    # The first row among those that were there before.
    return _first(
        database,
        f"SELECT {value}, {keys} FROM {rows.kept} GROUP BY {value}, {keys} "
        "HAVING count(*) > 1 ORDER BY min(row, 2)[2] LIMIT 1",
    )


def _query_id(rows: DuckRows, files: Files, keys: tuple[Any, ...]) -> Any:
    names = [name for role, name, _ in rows.ids if role == "query"]
    found = tuple(key_to_id(files, name, key) for name, key in zip(names, keys, strict=True))
    return found[0] if len(found) == 1 else found


def _what(role: str, name: Hashable) -> str:
    return f"The {role} column {name!r}"


def _first(database: Database, question: str) -> Any:
    """Return the first row of the answer, None if it has none."""
    return next(iter(database.rows(question)), None)
