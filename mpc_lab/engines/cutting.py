"""Sorted record batches become chunks of whole units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpc_lab.pairing.arrays import Flags, Ints


class Cut(NamedTuple):
    """Whole units: their columns by name, and where queries and units start."""

    columns: dict[str, NDArray[Any]]
    starts: Ints
    units: Ints


class BadRows(Exception):
    """Rows do not pass a check; what is wrong with them has to be asked."""


def cut(
    batches: Iterable[Any], keys: list[str], unit_keys: list[str], rows_at_once: int
) -> Iterator[Cut]:
    """Cut batches, sorted by unit and query, into chunks of whole units.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        They come in any size.
    keys, unit_keys : list of str
        The columns that make a query, and those that make a unit; none: every query is a unit.
    rows_at_once : int
        A chunk has at least so many rows, except the last.
    """
    marks = _Marks(keys, unit_keys)
    held: list[dict[str, NDArray[Any]]] = []
    n_held = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(marks.mark(batch))
        n_held += batch.num_rows
        if n_held < rows_at_once:
            continue
        whole = _joined(held)
        last = int(np.flatnonzero(whole["new_unit"])[-1])  # its unit may go on in the next batch
        if last:
            yield _bounded({name: values[:last] for name, values in whole.items()})
            whole = {name: values[last:].copy() for name, values in whole.items()}
        held, n_held = [whole], n_held - last
    if held:
        yield _bounded(_joined(held))


class _Marks:
    """Marks where a new query or unit begins; remembers the last row of the batch before."""

    def __init__(self, keys: list[str], unit_keys: list[str]) -> None:
        self.keys, self.unit_keys = keys, unit_keys
        self.last: dict[str, Any] = {}

    def mark(self, batch: Any) -> dict[str, NDArray[Any]]:
        if any(column.null_count for column in batch.columns):
            raise BadRows
        is_key = {*self.keys, *self.unit_keys}
        fresh = {name: self._changes(name, batch.column(name)) for name in is_key}
        columns = {
            name: batch.column(name).to_numpy(zero_copy_only=False)
            for name in batch.schema.names
            if name not in is_key
        }
        new_unit = np.logical_or.reduce([fresh[name] for name in self.unit_keys or self.keys])
        new_query = np.logical_or.reduce([fresh[name] for name in self.keys]) | new_unit
        return {**columns, "new_query": new_query, "new_unit": new_unit}

    def _changes(self, name: str, column: Any) -> Flags:
        import pyarrow.compute as pc

        changed = np.empty(len(column), dtype=np.bool_)
        changed[0] = name not in self.last or bool(self.last[name] != column[0].as_py())
        changed[1:] = pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
        self.last[name] = column[len(column) - 1].as_py()
        return changed


def _joined(held: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    if len(held) == 1:
        return held[0]
    return {name: np.concatenate([part[name] for part in held]) for name in held[0]}


def _bounded(rows: dict[str, NDArray[Any]]) -> Cut:
    first = np.flatnonzero(rows.pop("new_query"))
    new_unit = np.flatnonzero(rows.pop("new_unit"))
    n_rows = len(next(iter(rows.values())))
    starts = np.append(first, n_rows).astype(np.int64)
    units = np.append(np.searchsorted(first, new_unit), len(first)).astype(np.int64)
    return Cut(rows, starts, units)
