"""Logs in a Spark frame: Spark shuffles by query, its workers make sums, and sums come back."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mpc_lab.engines.cluster import ClusterSource
from mpc_lab.engines.cluster_logs import (
    ORDER,
    check_columns,
    check_rows,
    check_units,
    facts_of,
    spec_of,
    unreadable,
)
from mpc_lab.engines.exchanged_items import MOST_BUCKETS, PAIRS_AT_LEAST, PAIRS_OF_A_PART
from mpc_lab.engines.extras import need_extra
from mpc_lab.engines.limits import BYTES_OF_A_ROW, check_fits
from mpc_lab.engines.lost_clusters import reaching_spark
from mpc_lab.engines.parts import Part
from mpc_lab.engines.pieces import Piece, Spec, find_groups, keep_rows, keywords, make_piece
from mpc_lab.engines.progress import Progress
from mpc_lab.engines.sources import OpenLog, Source
from mpc_lab.errors import MpcError
from mpc_lab.ranking import ColumnNames, Facts, Ranking

if TYPE_CHECKING:
    from mpc_lab.results.plan import Plan

Result = TypeVar("Result")
Chunk = TypeVar("Chunk")

_ROWS_AT_ONCE = 1 << 18
_ANSWER = "bucket int, payload binary"
_TREE_ABOVE = 64  # so many sums are added by the driver
_UNREAD = "[FAILED_READ_FILE"


class SparkLog(OpenLog):
    """A log in a Spark frame.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    columns : ColumnNames
    drop : bool
        Whether rows with a missing value are left out.
    """

    @reaching_spark()
    def __init__(self, frame: Any, columns: ColumnNames, *, drop: bool) -> None:
        need_extra("spark", "A Spark frame")
        self.frame, self.spec = frame, Spec(columns, drop)
        check_columns(frame, self.spec)
        found = _answers(_chosen(frame, self.spec), partial(_groups_of, self.spec))
        groups = tuple(sorted({group for part in found for group in part}))
        self._facts = Facts(columns, groups)

    @property
    def known(self) -> Facts:
        """Its columns and groups."""
        return self._facts

    @reaching_spark()
    def read_rows(self, extra: Sequence[Hashable], n_rows: int) -> Ranking:
        """Collect the rows into memory, for a question that needs them."""
        check_fits(BYTES_OF_A_ROW * n_rows)
        chosen = _chosen(self.frame, replace(self.spec, extra=tuple(map(str, extra))))
        return Ranking(chosen.toArrow(), **keywords(self.spec))

    @contextmanager
    def source(self, plan: Plan, progress: Progress | None) -> Iterator[Source]:
        """Shuffle the rows by query and make parts of them, which are kept until the end."""
        with reaching_spark():
            spec = spec_of(self.frame, self.spec, plan)
            stored = _sorted(self.frame, spec).mapInArrow(partial(_stored, spec), _ANSWER).persist()
            try:
                cluster = SparkCluster(stored, progress)
                pieces = cluster.pieces()
                check_rows(pieces)
                check_units(pieces)
                items = [piece.part.names for piece in pieces]
                facts = facts_of(self._facts, pieces, items, cluster, plan)
                yield ClusterSource(cluster, plan.groups, facts)
            finally:
                with suppress(Exception):  # a session that is gone keeps nothing
                    stored.unpersist()


class SparkCluster:
    """The parts of a log, kept as bytes by Spark."""

    def __init__(self, rows: Any, progress: Progress | None) -> None:
        self.rows, self.progress = rows, progress
        parts = int(rows.rdd.getNumPartitions())
        self.buckets = min(parts, MOST_BUCKETS)
        self.pairs_at_once = max(PAIRS_AT_LEAST, PAIRS_OF_A_PART * parts)

    def pieces(self) -> list[Piece]:
        """Return all pieces without their rows."""
        return _answers(self.rows, partial(_each, _counted))

    def collect(self, task: Callable[[Part], Result], label: str) -> list[Result]:
        """Return what the task makes of every part."""
        return self._asked(self.rows, partial(_each, partial(_of_part, task)), label)

    def total(self, task: Callable[[Part], Result], label: str, start: Result) -> Result:
        """Return the sum of what the task makes of every part, added in a tree."""
        found = self._asked(self.rows, partial(_sums, task), label, add=True)
        for part in found:
            start = start + part
        return start

    def exchange(
        self,
        split: Callable[[Part], list[Chunk]],
        merge: Callable[[list[Chunk]], Result],
        buckets: int,
        label: str,
    ) -> list[Result]:
        """Split every part into buckets, and return what `merge` makes of each bucket of all."""
        chunks = self.rows.mapInArrow(partial(_chunks, split), _ANSWER)
        gathered = chunks.repartition(buckets, "bucket").sortWithinPartitions("bucket")
        found = self._asked(gathered, partial(_merged, merge), label)
        return [result for _, result in sorted(found, key=lambda pair: pair[0])]

    def _asked(self, rows: Any, job: Any, label: str, *, add: bool = False) -> list[Any]:
        done = self.progress(label, 1) if self.progress else None
        found = _answers(rows, job, add=add)
        if done:
            done()
        return found


def _answers(rows: Any, job: Callable[..., Any], *, add: bool = False) -> list[Any]:
    """Run a job over all partitions, and return what it yields; errors come as values."""
    answers = rows.mapInArrow(partial(_pickled, job), _ANSWER)
    if add and rows.rdd.getNumPartitions() > _TREE_ABOVE:
        answers = answers.repartition(_TREE_ABOVE // 4).mapInArrow(_added, _ANSWER)
    found = [pickle.loads(row.payload) for row in _collected(answers)]
    for answer in found:
        if isinstance(answer, MpcError):
            raise answer
    return found


def _collected(answers: Any) -> list[Any]:
    """Return the rows of the answers, or say that Spark could not read a file."""
    try:
        return list(answers.collect())
    except Exception as error:
        # Its class depends on how the session is reached; the mark of the error does not.
        said = [line for line in str(error).splitlines() if _UNREAD in line]
        if not said:
            raise
        raise unreadable(error, said[0][said[0].index(_UNREAD) :].strip()) from error


def _pickled(job: Callable[..., Any], batches: Iterator[Any]) -> Iterator[Any]:
    try:
        for answer in job(batches):
            yield _row(0, answer)
    except MpcError as error:
        yield _row(0, MpcError(str(error)))


def _row(bucket: int, value: Any) -> Any:
    import pyarrow as pa

    payload = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return pa.RecordBatch.from_arrays(
        [pa.array([bucket], pa.int32()), pa.array([payload], pa.binary())], ["bucket", "payload"]
    )


def _payloads(batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    for batch in batches:
        for bucket, payload in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield bucket, pickle.loads(payload)


def _added(batches: Iterator[Any]) -> Iterator[Any]:
    total = None
    for _, part in _payloads(batches):
        if isinstance(part, MpcError):
            yield _row(0, part)
            return
        total = part if total is None else total + part
    if total is not None:
        yield _row(0, total)


def _groups_of(spec: Spec, batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    seen: set[str] = set()
    for batch in batches:
        seen |= set(find_groups(keep_rows(pa.Table.from_batches([batch]), spec), spec))
    yield seen


def _pieces(spec: Spec, batches: Iterator[Any]) -> Iterator[Piece]:
    """Yield pieces of whole units; the rows come sorted by unit and query."""
    import pyarrow.compute as pc
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    number = partition << 12
    for table in _whole_units(batches, spec):
        order = pc.sort_indices(table, sort_keys=[(ORDER, "ascending")])
        yield make_piece(table.take(order).drop_columns([ORDER]), spec, number)
        number += 1


def _whole_units(batches: Iterator[Any], spec: Spec) -> Iterator[Any]:
    """Cut a sorted partition where a unit, or a query, begins."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = _keys(spec)
    held: list[Any] = []
    n_held = 0
    for batch in batches:
        held.append(batch)
        n_held += batch.num_rows
        if n_held < _ROWS_AT_ONCE:
            continue
        table = pa.Table.from_batches(held).combine_chunks()
        last = 0
        for key in keys:
            column = table.column(key).combine_chunks()
            changed = pc.fill_null(pc.not_equal(column[1:], column[:-1]), True)
            found = np.flatnonzero(changed.to_numpy(zero_copy_only=False))
            last = max(last, int(found[-1]) + 1 if len(found) else 0)
        if last:
            yield table.slice(0, last)
        held = table.slice(last).to_batches()
        n_held -= last
    if held:
        yield pa.Table.from_batches(held)


def _stored(spec: Spec, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield pieces as bytes, so that rows are read and sorted once."""
    return _pickled(partial(_pieces, spec), batches)


def _kept(batches: Iterator[Any]) -> Iterator[Piece]:
    """Yield the pieces that were kept, or raise what stood against them."""
    for _, piece in _payloads(batches):
        if isinstance(piece, MpcError):
            raise piece
        yield piece


def _each(make: Callable[[Piece], Any], batches: Iterator[Any]) -> Iterator[Any]:
    return (make(piece) for piece in _kept(batches))


def _counted(piece: Piece) -> Piece:
    return replace(piece, part=Part(None, names=piece.part.names))  # type: ignore[arg-type]


def _of_part(task: Callable[[Part], Any], piece: Piece) -> Any:
    return task(piece.part)


def _sums(task: Callable[[Part], Any], batches: Iterator[Any]) -> Iterator[Any]:
    total = None
    for piece in _kept(batches):
        part = task(piece.part)
        total = part if total is None else total + part
    if total is not None:
        yield total


def _chunks(split: Callable[[Part], list[Any]], batches: Iterator[Any]) -> Iterator[Any]:
    try:
        for piece in _kept(batches):
            for bucket, chunk in enumerate(split(piece.part)):
                yield _row(bucket, chunk)
    except MpcError as error:
        yield _row(0, MpcError(str(error)))


def _merged(merge: Callable[[list[Any]], Any], batches: Iterator[Any]) -> Iterator[Any]:
    held: list[Any] = []
    last = -1
    for bucket, chunk in _payloads(batches):
        if isinstance(chunk, MpcError):
            raise chunk
        if bucket != last and held:
            yield last, merge(held)
            held = []
        held.append(chunk)
        last = bucket
    if held:
        yield last, merge(held)


def _keys(spec: Spec) -> list[str]:
    query = spec.columns.query
    unit = spec.columns.unit
    if unit is not None:
        return [str(unit)]
    return [str(name) for name in (query if isinstance(query, tuple) else (query,))]


def _chosen(frame: Any, spec: Spec) -> Any:
    """Return the columns that are needed; a dot in a name is no path into a struct."""
    return frame.select(*(_column(frame, name) for name in spec.needed))


def _column(frame: Any, name: Any) -> Any:
    from pyspark.sql import functions

    quoted = str(name).replace("`", "``")
    return functions.col(f"`{quoted}`")


def _sorted(frame: Any, spec: Spec) -> Any:
    from pyspark.sql import functions

    keys = [_column(frame, name) for name in _keys(spec)]
    rows = _chosen(frame, spec).withColumn(ORDER, functions.monotonically_increasing_id())
    return rows.repartition(*keys).sortWithinPartitions(*keys)
