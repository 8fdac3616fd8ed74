"""Logs in a Spark frame: Spark shuffles by query, its workers sum, and the sums come back.

What travels is rows of two columns: the number of a bucket, and a pickled value.
"""

from __future__ import annotations

import itertools
import pickle
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mpc_lab.engines import OpenLog
from mpc_lab.engines.partitions import (
    MOST_BUCKETS,
    ORDER,
    PAIRS_AT_LEAST,
    PAIRS_OF_A_PART,
    Partition,
    RowTally,
    Spec,
    check_columns,
    explain_lost,
    explain_unreadable,
    find_groups,
    join_groups,
    open_source,
    read_partition,
)
from mpc_lab.engines.parts import Part, cut_tables
from mpc_lab.engines.running import BYTES_OF_A_ROW, check_fits, need_extra
from mpc_lab.errors import MpcError
from mpc_lab.pairing.walk import Source
from mpc_lab.ranking import ColumnNames, Facts, Ranking

if TYPE_CHECKING:
    from mpc_lab.engines.running import Progress
    from mpc_lab.results.plan import Plan

Result = TypeVar("Result")
Bucket = TypeVar("Bucket")

_ROWS_AT_ONCE = 1 << 18
_ANSWER = "bucket int, payload binary"
_TREE_ABOVE = 64  # up to so many sums are added by the driver
_UNREAD = "[FAILED_READ_FILE"


# ---- what goes wrong


def _is_lost(error: BaseException) -> bool:
    """Tell whether an error is about the connection to Spark, or about a stopped session."""
    if isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError":
        return True
    if type(error).__module__.split(".")[0] == "grpc":  # a session on a server
        return "UNAVAILABLE" in str(error)
    return "stopped SparkContext" in str(error) or _is_stopped(error)


def _is_stopped(error: BaseException) -> bool:
    """Whether an assertion of PySpark failed because no session is active."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return isinstance(error, AssertionError) and not getattr(context, "_active_spark_context", True)


@contextmanager
def reaching_spark() -> Iterator[None]:
    """Explain in one sentence if the session is lost inside the block."""
    with explain_lost(
        _is_lost,
        "The Spark session does not answer any more ({}). Start a session, make the frame again "
        "from it, and run the audit again.",
    ):
        yield


# ---- the log


class SparkLog(OpenLog):
    """A log in a Spark frame.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    columns : ColumnNames
    drop : bool
        Whether rows with a missing value are left out.
    """

    origin: Mapping[str, Any] = MappingProxyType({"kind": "spark"})

    @reaching_spark()
    def __init__(self, frame: Any, columns: ColumnNames, *, drop: bool) -> None:
        need_extra("spark", "a Spark frame")
        self.frame, self.spec = frame, Spec(columns, drop)
        check_columns(frame, self.spec)
        rows = _select(frame, self.spec)
        found = _run(rows, partial(_find_groups, self.spec))
        self.known = Facts(columns, join_groups(found, rows.limit(0).toArrow(), self.spec))

    @reaching_spark()
    def read_rows(self, extra: Sequence[Hashable], n_rows: int) -> Ranking:
        """Collect the rows into memory, for a question that needs them."""
        check_fits(BYTES_OF_A_ROW * n_rows)
        selected = _select(self.frame, replace(self.spec, extra=tuple(map(str, extra))))
        return Ranking(selected.toArrow(), **self.spec.keywords)

    @contextmanager
    def source(self, plan: Plan, progress: Progress | None) -> Iterator[Source]:
        """Shuffle the rows by query and turn them into parts, which are kept until the end."""
        with reaching_spark():
            spec = self.spec.with_plan(plan)
            check_columns(self.frame, spec)
            job = partial(_pickle, partial(_read_partitions, spec))
            stored = _sort(self.frame, spec).mapInArrow(job, _ANSWER).persist()
            try:
                parts = SparkParts(stored, progress)
                yield open_source(self.known, parts.tallies(), parts, plan)
            finally:
                with suppress(Exception):  # nothing is left to release in a session that is gone
                    stored.unpersist()


def _select(frame: Any, spec: Spec) -> Any:
    """Return the columns that are needed."""
    return frame.select(*map(_column, spec.needed))


def _column(name: Any) -> Any:
    from pyspark.sql import functions

    quoted = str(name).replace("`", "``")  # a dot in a name is not a path into a struct
    return functions.col(f"`{quoted}`")


def _sort(frame: Any, spec: Spec) -> Any:
    """Bring the rows of a unit into one partition, and sort each by unit."""
    from pyspark.sql import functions

    keys = list(map(_column, spec.unit_columns))
    rows = _select(frame, spec).withColumn(ORDER, functions.monotonically_increasing_id())
    return rows.repartition(*keys).sortWithinPartitions(*keys)


# ---- its parts


class SparkParts:
    """The `Parts` of a log, kept as bytes by Spark."""

    same_codes = False

    def __init__(self, rows: Any, progress: Progress | None) -> None:
        self.rows, self.progress = rows, progress
        partitions = int(rows.rdd.getNumPartitions())
        self.buckets = min(partitions, MOST_BUCKETS)
        self.pairs_at_once = max(PAIRS_AT_LEAST, PAIRS_OF_A_PART * partitions)

    def tallies(self) -> list[RowTally]:
        """Return what is counted of every part."""
        return _run(self.rows, partial(_each, _get_tally))

    def collect(self, task: Callable[[Part], Result], label: str) -> list[Result]:
        """Return what the task makes of every part, in their order."""
        return self._run(self.rows, partial(_each, partial(_apply, task)), label)

    def total(self, task: Callable[[Part], Result], label: str, start: Result) -> Result:
        """Return the sum of what the task makes of every part, added in a tree."""
        job = partial(_each, partial(_apply, task))
        for found in self._run(self.rows, partial(_add, job), label, tree=True):
            start = start + found
        return start

    def exchange(
        self,
        split: Callable[[Part], list[Bucket]],
        merge: Callable[[list[Bucket]], Result],
        buckets: int,
        label: str,
    ) -> list[Result]:
        """Split every part into buckets, and return what `merge` makes of each bucket of all."""
        rows = self.rows.mapInArrow(partial(_pickle, partial(_split, split)), _ANSWER)
        gathered = rows.repartition(buckets, "bucket").sortWithinPartitions("bucket")
        found = self._run(gathered, partial(_merge, merge), label)
        return [result for _, result in sorted(found, key=lambda pair: pair[0])]

    def _run(self, rows: Any, job: Any, label: str, *, tree: bool = False) -> list[Any]:
        done = self.progress(label, 1) if self.progress else None
        found = _run(rows, job, tree=tree)
        if done:
            done()
        return found


def _run(rows: Any, job: Callable[..., Any], *, tree: bool = False) -> list[Any]:
    """Run a job over all partitions, and return what it yields; errors arrive as values."""
    answers = rows.mapInArrow(partial(_pickle, job), _ANSWER)
    if tree and rows.rdd.getNumPartitions() > _TREE_ABOVE:
        fewer = answers.repartition(_TREE_ABOVE // 4)
        answers = fewer.mapInArrow(partial(_pickle, partial(_add, _values)), _ANSWER)
    found = [pickle.loads(row.payload) for row in _collect(answers)]
    for answer in found:
        if isinstance(answer, MpcError):
            raise answer
    return found


def _collect(answers: Any) -> list[Any]:
    """Return the rows of the answers, or say that Spark could not read a file."""
    try:
        return list(answers.collect())
    except Exception as error:
        # Its class depends on how the session is reached; the mark of the error does not.
        said = [line for line in str(error).splitlines() if _UNREAD in line]
        if not said:
            raise
        raise explain_unreadable(error, said[0][said[0].index(_UNREAD) :].strip()) from error


# ---- jobs: what workers do with the record batches of a partition


class _InBucket(NamedTuple):
    """What a job yields for a bucket; everything else goes to the first bucket."""

    bucket: int
    value: Any


def _pickle(job: Callable[..., Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Yield what a job yields as rows, and the error that ends it as the last."""
    import pyarrow as pa

    def row(bucket: int, value: Any) -> Any:
        payload = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        columns = [pa.array([bucket], pa.int32()), pa.array([payload], pa.binary())]
        return pa.RecordBatch.from_arrays(columns, ["bucket", "payload"])

    try:
        for answer in job(batches):
            yield row(*(answer if isinstance(answer, _InBucket) else (0, answer)))
    except MpcError as error:
        yield row(0, MpcError(str(error)))


def _unpickle(batches: Iterator[Any]) -> Iterator[_InBucket]:
    """Yield the values of rows with their buckets, or raise the error that one of them is."""
    for batch in batches:
        for bucket, payload in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            value = pickle.loads(payload)
            if isinstance(value, MpcError):
                raise value
            yield _InBucket(bucket, value)


def _values(batches: Iterator[Any]) -> Iterator[Any]:
    return (row.value for row in _unpickle(batches))


def _each(task: Callable[[Partition], Any], batches: Iterator[Any]) -> Iterator[Any]:
    return map(task, _values(batches))


def _apply(task: Callable[[Part], Any], partition: Partition) -> Any:
    return task(partition.part)


def _get_tally(partition: Partition) -> RowTally:
    return partition.tally


def _add(job: Callable[..., Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the sum of what a job yields."""
    total = None
    for found in job(batches):
        total = found if total is None else total + found
    if total is not None:
        yield total


def _split(split: Callable[[Part], list[Any]], batches: Iterator[Any]) -> Iterator[_InBucket]:
    for partition in _values(batches):
        yield from itertools.starmap(_InBucket, enumerate(split(partition.part)))


def _merge(merge: Callable[[list[Any]], Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Yield what is made of each bucket; the rows come sorted by bucket."""
    for bucket, rows in itertools.groupby(_unpickle(batches), key=itemgetter(0)):
        yield bucket, merge([row.value for row in rows])


def _find_groups(spec: Spec, batches: Iterator[Any]) -> Iterator[set[str]]:
    import pyarrow as pa

    yield set().union(*(find_groups(pa.Table.from_batches([batch]), spec) for batch in batches))


def _read_partitions(spec: Spec, batches: Iterator[Any]) -> Iterator[Partition]:
    """Yield partitions of whole units; the rows come sorted by unit."""
    import pyarrow.compute as pc
    from pyspark import TaskContext

    context = TaskContext.get()
    number = (context.partitionId() if context is not None else 0) << 12
    keys = list(map(str, spec.unit_columns))
    for more, table in enumerate(cut_tables(batches, keys, _ROWS_AT_ONCE)):
        order = pc.sort_indices(table, sort_keys=[(ORDER, "ascending")])
        yield read_partition(table.take(order).drop_columns([ORDER]), spec, number + more)
