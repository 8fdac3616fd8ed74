"""The rows of a log on the way into DuckDB: read by the rules of memory, kept in one Arrow file.

DuckDB sorts and counts. What a value means was decided before it sees one: names of columns, types,
numbers and groups are settled here, by the code that reads a `Ranking`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_lab.engines.pieces import Spec, find_groups, keep_rows, order_masks
from mpc_lab.errors import MpcError
from mpc_lab.files import Files, Roles
from mpc_lab.ranking import checks
from mpc_lab.ranking.columns import encode, numbers
from mpc_lab.ranking.groups import read_groups
from mpc_lab.ranking.table import get_column, open_table

_WORDS = {8: np.uint8, 16: np.uint16, 32: np.uint32}


def groups_in(files: Files, spec: Spec) -> tuple[str, ...]:
    """Return the names of all groups of a log."""
    import pyarrow as pa

    group = spec.columns.group
    if isinstance(group, tuple):
        # Their names are known; what is wrong with the columns is told without reading a row.
        empty = files.schema(spec.columns.roles()).empty_table()
        return read_groups(open_table(empty), group, spec.columns.group_sep).groups
    found: set[str] = set()
    for batch in files.batches(spec.columns.roles() if spec.drop else Roles(labels=(str(group),))):
        found |= set(find_groups(keep_rows(pa.Table.from_batches([batch]), spec), spec))
    return tuple(sorted(found))


class DuckRows:
    """The rows of a log in one Arrow file, its columns named for the parts they play.

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
        for role in ("item", "unit", "segment"):
            if getattr(columns, role) is not None:
                self.ids.append((role, getattr(columns, role), role))
        self.numbers: list[tuple[str, Hashable, str]] = [
            (role, getattr(columns, role), role)
            for role in ("score", "outcome", "position")
            if getattr(columns, role) is not None
        ]
        self.extra = [("score", name, f"extra{k}") for k, name in enumerate(spec.extra)]
        self.masks = [f"mask{word}" for word in range(max(1, -(-len(spec.groups) // 64)))]

    @property
    def complete(self) -> str:
        """The condition under which no value is missing."""
        wanted = [f"{sql} IS NOT NULL" for _, _, sql in self.ids]
        return " AND ".join([*wanted, *(f"NOT isnan({sql})" for _, _, sql in self.numbers)])

    @property
    def kept(self) -> str:
        """The rows that are kept."""
        return f"log{f' WHERE {self.complete}' if self.spec.drop else ''}"

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
            raise MpcError(
                f"The folder {str(path.parent.parent)!r} could not take what spills "
                f"({error.strerror or error}); give spill= with more room."
            ) from error
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
        for role, name, alias in (*self.numbers, *self.extra):
            found[alias] = numbers(get_column(table, name, role), f"The {role} column {name!r}")
        return {**found, **dict(zip(self.masks, self._words(table), strict=True))}

    def _words(self, table: Any) -> Iterator[NDArray[Any]]:
        """Yield the words of the masks, no wider than they must be: every byte is sorted."""
        columns, groups = self.spec.columns, self.spec.groups
        found = read_groups(table, columns.group, columns.group_sep)
        for word, mask in enumerate(order_masks(found.groups, found.masks, groups)):
            bits = len(groups) - 64 * word
            yield mask.astype(next((t for most, t in _WORDS.items() if bits <= most), np.uint64))


def _as_key(array: Any) -> Any:
    """Return ids as DuckDB keeps them apart; of times it knows no zones and no nanoseconds."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_null(array.type) or types.is_decimal(array.type):
        return array.cast(pa.string())
    if types.is_temporal(array.type) and not types.is_interval(array.type):
        whole = pa.int32() if array.type.bit_width == 32 else pa.int64()
        return array.cast(whole).cast(pa.int64())
    return array


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
