"""Sorted rows become chunks of whole units on disk, for as many passes as are wanted."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc_lab.engines.parts import Part, cut_tables, find_starts
from mpc_lab.errors import MpcError
from mpc_lab.pairing.kernels import finish, kernel, n_threads
from mpc_lab.pairing.log import Log, add_up, below_by_position, below_by_score
from mpc_lab.pairing.threads import in_order
from mpc_lab.ranking.checks import (
    LARGEST,
    LARGEST_WEIGHT,
    LARGEST_WHOLE,
    SMALLEST_WEIGHT,
)
from mpc_lab.vocabulary import Ints

if TYPE_CHECKING:
    from mpc_lab.engines.running import Progress

Result = TypeVar("Result")
Bucket = TypeVar("Bucket")
Columns = dict[str, NDArray[Any]]


@contextmanager
def spill_folder(spill: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Make a folder of our own inside the one for spilling, and remove it at the end."""
    known = spill is None or isinstance(spill, str | os.PathLike)
    if not known or (spill is not None and not os.path.isdir(spill)):
        raise MpcError(
            f"spill must be a folder that exists; got {str(spill)!r}. Make it, or leave spill out."
        )
    made = Path(spill or tempfile.gettempdir(), f"mpc_lab-{uuid.uuid4().hex}")
    try:
        _make_folder(made)  # inside the try, so that a signal in between leaves nothing behind
        yield made
    finally:
        finish(partial(shutil.rmtree, made, ignore_errors=True))


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(0o700)
    except OSError as error:
        raise MpcError(
            f"A folder for temporary files cannot be made ({error}). Give spill=, a folder that "
            "can be written to."
        ) from error


def explain_no_room(folder: Path, error: OSError) -> MpcError:
    """Return the sentence about a folder that had no room for what spills."""
    return MpcError(
        f"Temporary files cannot be written to {str(folder.parent)!r} "
        f"({error.strerror or error}). Give spill=, a folder with more room."
    )


# ---- chunks on disk


class Spool:
    """Files of one chunk each.

    Parameters
    ----------
    folder : Path
    extra : tuple of str
        Names of other score columns.
    positions : bool
        Whether ties are broken by logged positions, which also say who is whose neighbour.
    """

    def __init__(self, folder: Path, extra: tuple[str, ...], positions: bool) -> None:
        self.folder, self.extra, self.positions = folder, extra, positions
        self.first_queries: list[int] = []
        self.outcome_ranges: list[tuple[float, float]] = []
        self.n_rows, self.n_queries, self.n_units = 0, 0, 0
        self.n_capped, self.n_floored = 0, 0
        self._columns: tuple[str, ...] = ()

    def append(self, columns: Columns, starts: Ints, units: Ints) -> None:
        """Write one chunk of whole units.

        Parameters
        ----------
        columns : dict of arrays
            ``score``, ``outcome``, ``mask0`` …, and where there are any ``item``, ``owner``,
            ``tie`` and other score columns ``extra0`` …, each with the type it had; ``weight`` by
            query. All chunks have the same columns.
        starts, units : int64 arrays
            As in `Log`.
        """
        written = {**columns, "starts": starts, "units": units}
        if self.positions:  # sorted here once, and not in every pass
            written["below"] = below_by_position(starts, -columns["tie"])
        try:
            self._write(self._path(len(self.first_queries)), written)
        except OSError as error:
            raise explain_no_room(self.folder, error) from error
        self._columns = tuple(written)
        self.first_queries.append(self.n_queries)
        outcome = columns["outcome"]
        self.outcome_ranges.append((float(outcome.min()), float(outcome.max())))
        self.n_rows += int(starts[-1])
        self.n_queries += len(starts) - 1
        self.n_units += len(units) - 1

    def read(self, number: int) -> Part:
        """Read one chunk."""
        found = self._read(self._path(number))
        starts, row = found["starts"], np.arange(len(found["score"]))
        tie = found.get("tie", row)
        masks = [values for name, values in found.items() if name.startswith("mask")]
        log = Log(
            units=found["units"],
            starts=starts,
            score=found["score"],
            outcome=found["outcome"].astype(np.float64, copy=False),
            masks=np.array(masks, dtype=np.uint64),
            item=found.get("item", np.empty(0)).astype(np.int64, copy=False),
            owner=found.get("owner", np.empty(0)).astype(np.int64, copy=False),
            below=found["below"] if self.positions else below_by_score(starts),
            row=row,
            tie=tie,
            origin=self.first_queries[number],
            weight=found.get("weight", np.empty(0)),
        )
        return Part(log, {name: found[f"extra{k}"] for k, name in enumerate(self.extra)})

    def _path(self, number: int) -> Path:
        return self.folder / f"chunk{number}"

    def _write(self, path: Path, columns: Columns) -> None:
        with open(path, "wb") as file:
            for values in columns.values():
                np.save(file, values)

    def _read(self, path: Path) -> Columns:
        try:
            with open(path, "rb") as file:
                return {name: np.load(file) for name in self._columns}
        except OSError as error:
            raise MpcError(
                f"Temporary files in {str(self.folder)!r} cannot be read again ({error}). "
                "Leave the folder alone while an audit runs, and run it again."
            ) from error
        except (EOFError, ValueError) as error:
            raise MpcError(
                f"Temporary files in {str(self.folder)!r} cannot be read to their end. Leave the "
                "folder alone while an audit runs, and run it again."
            ) from error


class Chunks:
    """The `Parts` of a log on disk, read one at a time by whoever works on them.

    Parameters
    ----------
    spool : Spool
    pairs_at_once : int
        Pairs whose items may be held in memory.
    progress : Progress, optional
    """

    same_codes = True

    def __init__(self, spool: Spool, pairs_at_once: int, progress: Progress | None) -> None:
        self.spool, self.pairs_at_once, self.progress = spool, pairs_at_once, progress
        self.buckets = 2 * n_threads()

    def collect(self, task: Callable[[Part], Result], label: str) -> Iterator[Result]:
        """Yield what the task makes of every chunk, in their order."""
        numbers = range(len(self.spool.first_queries))
        done = self.progress(label, len(numbers)) if self.progress else None
        for result in in_order(lambda number: task(self.spool.read(number)), numbers):
            if done:
                done()
            yield result

    def total(self, task: Callable[[Part], Result], label: str, start: Result) -> Result:
        """Return the sum of what the task makes of every chunk, added in their order."""
        return add_up(self.collect(task, label), start)

    def exchange(
        self,
        split: Callable[[Part], list[Bucket]],
        merge: Callable[[list[Bucket]], Result],
        buckets: int,
        label: str,
    ) -> list[Result]:
        """Split every chunk into buckets, and return what `merge` makes of each bucket of all."""
        found = list(self.collect(split, label))
        return list(in_order(lambda k: merge([chunk[k] for chunk in found]), range(buckets)))


# ---- from sorted batches to chunks


class BadRows(Exception):
    """Raised when rows fail a check; what is wrong with them has to be found out separately."""


class Cut(NamedTuple):
    """Whole units: their columns by name, and where queries and units start."""

    columns: Columns
    starts: Ints
    units: Ints


def cut_chunks(
    batches: Iterable[Any], keys: Sequence[str], unit_keys: Sequence[str], rows_at_once: int
) -> Iterator[Cut]:
    """Cut batches, sorted by unit and query, into chunks of whole units.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        They come in any size.
    keys, unit_keys : sequences of str
        The columns that make a query, and those that make a unit; none: every query is a unit.
    rows_at_once : int
        A chunk has about this many rows, or one long unit.
    """
    both = [*unit_keys, *keys]
    for table in cut_tables(batches, unit_keys or keys, rows_at_once):
        if any(column.null_count for column in table.columns):
            raise BadRows
        first = find_starts(table, both)
        first_of_unit = find_starts(table, unit_keys) if unit_keys else first
        names = [name for name in table.column_names if name not in both]
        yield Cut(
            {name: table.column(name).to_numpy() for name in names},
            starts=np.append(first, table.num_rows),
            units=np.append(np.searchsorted(first, first_of_unit), len(first)),
        )


class Inspector:
    """Checks chunks as they pass by: numbers are finite, items and positions differ in a query.

    Parameters
    ----------
    n_items : int
        0 where items are not known.
    positions : bool
        Whether there are logged positions; ``tie`` is the position with its sign turned.
    numbers : sequence of str
        The columns of scores and outcomes.
    """

    def __init__(self, n_items: int, positions: bool, numbers: Sequence[str]) -> None:
        self.n_items, self.positions, self.numbers = n_items, positions, numbers
        self._query = np.full(n_items, -1, dtype=np.int64)
        self._n_queries = 0

    def check(self, chunk: Cut) -> Columns:
        """Return the columns as they are written; raise `BadRows` if they do not pass."""
        columns = dict(chunk.columns)
        if not all(_are_in_range(columns[name], name) for name in self.numbers):
            raise BadRows
        if "examined" in columns and not _are_probabilities(columns["examined"]):
            raise BadRows
        if self.positions and not _positions_differ(-columns["tie"], chunk.starts):
            raise BadRows
        if "weight" in columns:
            columns["weight"] = _weights_of_queries(columns["weight"], chunk.starts)
        if "tie" in columns:
            columns["tie"] = columns["tie"].astype(np.int64)
        if "item" in columns:
            item = columns["item"].astype(np.int64)
            if not _items_differ(item, chunk.starts, self._query, self._n_queries):
                raise BadRows
            columns["item"] = item.astype(np.int32) if self.n_items < 1 << 31 else item
        if "owner" in columns:
            columns["owner"] = columns["owner"].astype(np.int64)
        self._n_queries += len(chunk.starts) - 1
        return columns


def _are_in_range(values: NDArray[Any], name: str) -> bool:
    # One number that is not finite makes the sum not finite; an overflow of the sum is handled
    # below.
    with np.errstate(over="ignore", invalid="ignore"):
        suspect = not np.isfinite(np.sum(values))
    if suspect and not np.isfinite(values).all():
        return False
    return max(abs(float(values.min())), abs(float(values.max()))) <= LARGEST.get(name, np.inf)


def _weights_of_queries(weight: NDArray[np.float64], starts: Ints) -> NDArray[np.float64]:
    """Return one weight a query; raise `BadRows` if there is none."""
    of_query = weight[starts[:-1]]
    fit = (of_query >= SMALLEST_WEIGHT) & (of_query <= LARGEST_WEIGHT)
    if not fit.all() or (weight != np.repeat(of_query, np.diff(starts))).any():
        raise BadRows
    return of_query


def _are_probabilities(values: NDArray[Any]) -> bool:
    return bool(((values > 0) & (values <= 1)).all())


def _positions_differ(position: NDArray[np.float64], starts: Ints) -> bool:
    if not ((position >= 1) & (position <= LARGEST_WHOLE) & (position == np.floor(position))).all():
        return False
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((position, query))
    same = (query[order[1:]] == query[order[:-1]]) & (position[order[1:]] == position[order[:-1]])
    return not same.any()


@kernel
def _items_differ(item: Ints, starts: Ints, query: Ints, number: int) -> bool:
    """Store the last query of each item; an item that has this query already occurs twice."""
    for q in range(len(starts) - 1):
        for row in range(starts[q], starts[q + 1]):
            if query[item[row]] == number + q:
                return False
            query[item[row]] = number + q
    return True
