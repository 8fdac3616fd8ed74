"""Logs in a Dask frame: partitions become parts, sums are added in a tree."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

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
    overlap,
    read_partition,
)
from mpc_lab.engines.parts import Part
from mpc_lab.engines.running import BYTES_OF_A_ROW, check_fits, need_extra
from mpc_lab.errors import MpcError
from mpc_lab.pairing.walk import Source
from mpc_lab.ranking import ColumnNames, Facts, Ranking

if TYPE_CHECKING:
    from mpc_lab.engines.running import Progress
    from mpc_lab.results.plan import Plan

Result = TypeVar("Result")
Bucket = TypeVar("Bucket")

_FAN_IN = 8
_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)


# ---- what goes wrong


def _is_lost(error: BaseException) -> bool:
    """Tell whether an error comes from Dask: a worker died, or the scheduler is gone."""
    out_of_reach = isinstance(error, (*_CANCELLED, TimeoutError, ConnectionError))
    return out_of_reach or type(error).__module__.split(".")[0] == "distributed"


@contextmanager
def reaching_dask() -> Iterator[None]:
    """Explain in one sentence if the scheduler or the workers are lost inside the block."""
    with explain_lost(
        _is_lost,
        "The Dask cluster did not finish the audit ({}). Check that its scheduler and its workers "
        "run and have enough memory, connect to it again, and run the audit again.",
    ):
        yield


@contextmanager
def reading_partitions(blamed: type[Exception] = Exception) -> Iterator[None]:
    """Translate errors raised while a partition is computed into "could not be read".

    Parameters
    ----------
    blamed : type
        The errors to blame on the code that makes the partitions: all of them on the first read,
        ``OSError`` alone later, when rows are read again only if a worker was lost.
    """
    try:
        yield
    except blamed as error:
        # Errors that happen to a cluster, not to a log.
        if isinstance(error, MpcError | MemoryError) or _is_lost(error):
            raise
        raise explain_unreadable(error) from error


# ---- calls of Dask, which is imported when first called and has no type hints


def _dask() -> Any:
    import dask

    return dask


def later(function: Any, *, results: int | None = None) -> Callable[..., Any]:
    """Return a function that is called on the cluster, or a value that is sent there once."""
    return _dask().delayed(function, pure=False, nout=results)  # type: ignore[no-any-return]


def _find_client() -> Any:
    """Return the client of the scheduler that is in use, None if it is not a distributed one."""
    owner = getattr(_dask().base.get_scheduler(), "__self__", None)
    return owner if type(owner).__module__.split(".")[0] == "distributed" else None


# ---- the log


class DaskLog(OpenLog):
    """A log in a Dask frame.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    columns : ColumnNames
    drop : bool
        Whether rows with a missing value are left out.
    """

    origin: Mapping[str, Any] = MappingProxyType({"kind": "dask"})

    @reaching_dask()
    def __init__(self, frame: Any, columns: ColumnNames, *, drop: bool) -> None:
        need_extra("dask", "a Dask frame")
        self.frame, self.spec = frame, Spec(columns, drop)
        check_columns(frame, self.spec)
        with reading_partitions():
            shared, rows = later(self.spec), frame[self.spec.needed]
            asked = [later(_find_groups)(one, rows._meta, shared) for one in rows.to_delayed()]
            found = _dask().compute(*asked)
        self.known = Facts(columns, join_groups(found, rows._meta, self.spec))

    @reaching_dask()
    def read_rows(self, extra: Sequence[Hashable], n_rows: int) -> Ranking:
        """Collect the rows into memory, for a question that needs them."""
        check_fits(BYTES_OF_A_ROW * n_rows)
        names = replace(self.spec, extra=tuple(map(str, extra))).needed
        with reading_partitions():
            (frame,) = _dask().compute(self.frame[names])
        return Ranking(frame.reset_index(drop=True), **self.spec.keywords)

    @contextmanager
    def source(self, plan: Plan, progress: Progress | None) -> Iterator[Source]:
        """Read and sort every partition where it is; release its memory at the end."""
        with reaching_dask():
            spec = self.spec.with_plan(plan)
            check_columns(self.frame, spec)
            with reading_partitions():
                partitions, tallies = self._read_whole_units(spec)
            parts = DaskParts([later(getattr)(one, "part") for one in partitions], progress)
            yield open_source(self.known, tallies, parts, plan)

    def _read_whole_units(self, spec: Spec) -> tuple[list[Any], list[RowTally]]:
        """Return partitions that hold whole units, and what is counted of them.

        The tasks that read the partitions say themselves which units they hold: another pass over
        the frame might see other partitions.
        """
        frame = self.frame[spec.needed]
        numbered = [
            later(_number)(one, frame._meta, spec, number)
            for number, one in enumerate(frame.to_delayed())
        ]
        partitions, tallies = _read(numbered, spec)
        if overlap([tally.units for tally in tallies]):
            meta = _number(frame._meta, frame._meta, spec, 0)
            partitions, tallies = _read(_shuffle(numbered, meta, spec), spec)
        return partitions, tallies


def _find_groups(frame: pd.DataFrame, declared: pd.DataFrame, spec: Spec) -> tuple[str, ...]:
    return find_groups(settle(frame, declared, spec), spec)


def _number(frame: pd.DataFrame, declared: pd.DataFrame, spec: Spec, number: int) -> pd.DataFrame:
    """Settle the types, and store the order of the rows, which a shuffle loses."""
    settled = settle(frame, declared, spec)
    return settled.assign(**{ORDER: (number << 40) + np.arange(len(frame))})


def _shuffle(numbered: list[Any], meta: pd.DataFrame, spec: Spec) -> list[Any]:
    """Bring the rows of a unit, or of a query, into one partition."""
    import dask.dataframe as dd

    # Otherwise Dask writes objects as text, which the lists of groups would not survive.
    with _dask().config.set({"dataframe.convert-string": False}):
        whole = dd.from_delayed(numbered, meta=meta, verify_meta=False)
    # By default Dask looks for any client, even if another scheduler was chosen.
    method = "tasks" if _find_client() is None else "p2p"
    shuffled = whole.shuffle(on=spec.unit_columns, shuffle_method=method)
    return list(shuffled.to_delayed())


def _read(frames: list[Any], spec: Spec) -> tuple[list[Any], list[RowTally]]:
    shared = later(spec)
    asked = [later(_read_numbered)(frame, shared, number) for number, frame in enumerate(frames)]
    partitions = list(_dask().persist(*asked))
    return partitions, list(_dask().compute(*(later(getattr)(p, "tally") for p in partitions)))


def _read_numbered(frame: pd.DataFrame, spec: Spec, number: int) -> Partition:
    ordered = frame.sort_values(ORDER).drop(columns=ORDER).reset_index(drop=True)
    return read_partition(ordered, spec, number)


# ---- its parts


class DaskParts:
    """The `Parts` of a log, as delayed values that are kept where they are."""

    same_codes = False

    def __init__(self, parts: list[Any], progress: Progress | None) -> None:
        self.parts, self.progress = parts, progress
        self.buckets = min(max(1, len(parts)), MOST_BUCKETS)
        self.pairs_at_once = max(PAIRS_AT_LEAST, PAIRS_OF_A_PART * len(parts))

    def collect(self, task: Callable[[Part], Result], label: str) -> list[Result]:
        """Return what the task makes of every part, in their order."""
        return self._compute(self._ask(task), label)

    def total(self, task: Callable[[Part], Result], label: str, start: Result) -> Result:
        """Return the sum of what the task makes of every part, added in a tree."""
        found = self._ask(task)
        while len(found) > 1:
            found = [
                later(_add)(found[first : first + _FAN_IN])
                for first in range(0, len(found), _FAN_IN)
            ]
        (whole,) = self._compute(found, label)
        return start + whole  # type: ignore[no-any-return]

    def exchange(
        self,
        split: Callable[[Part], list[Bucket]],
        merge: Callable[[list[Bucket]], Result],
        buckets: int,
        label: str,
    ) -> list[Result]:
        """Split every part into buckets, and return what `merge` makes of each bucket of all."""
        found = self._ask(split, results=buckets)
        merged = [later(merge)([one[bucket] for one in found]) for bucket in range(buckets)]
        return self._compute(merged, label)

    def _ask(self, task: Callable[[Part], Any], *, results: int | None = None) -> list[Any]:
        shared = later(task)
        return [later(_call, results=results)(shared, part) for part in self.parts]

    def _compute(self, asked: list[Any], label: str) -> list[Any]:
        client = _find_client()
        if client is None or self.progress is None:
            with reading_partitions(OSError):
                return list(_dask().compute(*asked))
        futures = client.compute(asked)
        _wait(futures, self.progress(label, len(futures)))
        with reading_partitions(OSError):
            return list(client.gather(futures))


def _call(task: Callable[[Any], Any], part: Any) -> Any:
    return task(part)


def _add(found: list[Any]) -> Any:
    total = found[0]
    for more in found[1:]:
        total = total + more
    return total


def _wait(futures: Sequence[Any], done: Callable[[], None] | None) -> None:
    """Wait for futures, and report progress after each."""
    import distributed

    completed: Any = distributed.as_completed
    for _ in completed(futures):
        if done:
            done()


# ---- types: partitions are brought to those that the frame declares
#
# A file with a missing id holds 200.0 where another holds 200: the two are one label, but have
# different hashes and names. So every partition is given the one type before anything is hashed.

_KINDS = {
    "string": "text",
    "boolean": "truth",
    "integer": "whole",
    "floating": "fraction",
    "mixed-integer-float": "fraction",
    "empty": "nothing",
}
_NUMBERS = ("whole", "fraction")
# What Dask calls the only category of a column whose categories it has not yet seen.
_UNSEEN = "__UNKNOWN_CATEGORIES__"
_WHOLE_BELOW = 2**53  # below it every whole number is a float64 of its own


def settle(frame: pd.DataFrame, declared: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Return a partition in the types that its frame declares, if that changes no value.

    Parameters
    ----------
    frame : pandas.DataFrame
        A partition.
    declared : pandas.DataFrame
        The columns of the whole frame, without any row.
    spec : Spec
        Which of them are labels and which are numbers.

    Raises
    ------
    MpcError
        If a column holds what its declared type cannot.
    """
    if not frame.columns.is_unique:
        return frame  # which is refused where the rows are read
    labels, group = spec.columns.labels, spec.columns.group
    labels += group if isinstance(group, tuple) else ()
    made = {name: _settle_labels(name, frame, declared) for name in labels if name in frame}
    for name in (*spec.columns.numbers, *spec.extra):
        if name in frame and name not in made:
            made[name] = _settle_numbers(name, frame, declared)
    settled = frame.copy(deep=False)
    for name, values in made.items():
        settled[name] = values  # by name: a keyword of assign would have to be text
    return settled


def _settle_labels(name: Hashable, frame: pd.DataFrame, declared: pd.DataFrame) -> Any:
    values, wanted = frame[name], declared[name]
    made = _as_declared(values, wanted)
    if made is None:
        raise _differs(name, values, wanted)
    return made


def _as_declared(values: pd.Series[Any], wanted: pd.Series[Any]) -> pd.Series[Any] | None:
    """Return labels in the declared type, None if that is impossible or changes one of them."""
    if isinstance(wanted.dtype, pd.CategoricalDtype):
        return _as_category(values, wanted.dtype)
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(object)
    target, kind = _target(wanted), _kind(values)
    if values.dtype == target and target.kind != "f":
        # Objects may be anything, and a float among them may be a whole number.
        return None if target == np.dtype(object) and kind == "fraction" else values
    if kind == "nothing" or not values.notna().any():
        none: pd.Series[Any] = pd.Series(None, index=values.index, dtype=target, name=values.name)
        return none
    if target == np.dtype(object):
        return values.astype(object) if kind in ("text", "whole", "truth") else None
    return _cast(values, target) if _alike(kind, _kind(wanted)) else None


def _as_category(values: pd.Series[Any], wanted: pd.CategoricalDtype) -> pd.Series[Any] | None:
    categories = wanted.categories
    unseen = _UNSEEN in categories or not len(categories)
    known = pd.Series([], dtype=object if unseen else categories.dtype)
    if not isinstance(values.dtype, pd.CategoricalDtype):
        made = _as_declared(values, known)
        return None if made is None else made.astype("category")
    found = _as_declared(pd.Series(values.cat.categories), known)
    return None if found is None else values.cat.rename_categories(found.tolist())


def _target(wanted: pd.Series[Any]) -> Any:
    """Return the type of all partitions, in which a value may be missing."""
    kind = _kind(wanted)
    if kind == "whole":
        return (
            pd.UInt64Dtype() if str(wanted.dtype).lower().startswith("uint64") else pd.Int64Dtype()
        )
    if kind == "fraction":
        return np.dtype(np.float64)
    return pd.BooleanDtype() if kind == "truth" else wanted.dtype


def _kind(values: pd.Series[Any]) -> str:
    """Return what a column holds: text, whole numbers, fractions, truth values, or its type."""
    dtype, known = values.dtype, pd.api.types
    if dtype == np.dtype(object):
        found = known.infer_dtype(values, skipna=True)
        return _KINDS.get(found, found)
    for kind, is_kind in (
        ("text", known.is_string_dtype),
        ("truth", known.is_bool_dtype),
        ("whole", known.is_integer_dtype),
        ("fraction", known.is_float_dtype),
        ("moment", known.is_datetime64_any_dtype),
    ):
        if is_kind(dtype):
            return kind
    return str(dtype)


def _alike(kind: str, wanted: str) -> bool:
    return kind == wanted or (kind in _NUMBERS and wanted in _NUMBERS)


def _cast(values: pd.Series[Any], target: Any) -> pd.Series[Any] | None:
    """Return the values in another type, None if one of them would not be the same."""
    try:
        with np.errstate(invalid="ignore"):  # what does not fit is refused below
            made: pd.Series[Any] = values.astype(target)
    except (TypeError, ValueError, OverflowError):
        return None
    present = values.notna().to_numpy(dtype=bool)
    if not (made[present] == values[present]).all():
        return None
    kind = _kind(values)
    crosses = kind in _NUMBERS and (target.kind == "f") != (kind == "fraction")
    if crosses and not (made[present].abs() < _WHOLE_BELOW).all():
        return None  # two whole numbers may be one float, here or where the file was written
    return made + 0.0 if target.kind == "f" else made  # -0.0 and 0.0 are one label with two names


def _settle_numbers(name: Hashable, frame: pd.DataFrame, declared: pd.DataFrame) -> Any:
    values, wanted = frame[name], declared[name]
    kind, expected = _kind(values), _kind(wanted)
    if expected not in (*_NUMBERS, "truth"):
        return values  # which is judged where the numbers are read
    if kind == "nothing" or not values.notna().any():
        return pd.Series(np.nan, index=values.index, name=values.name)
    if not _alike(kind, expected):
        raise _differs(name, values, wanted)
    return pd.Series(
        values.to_numpy(dtype=np.float64, na_value=np.nan), index=values.index, name=values.name
    )


def _differs(name: Hashable, values: pd.Series[Any], wanted: pd.Series[Any]) -> MpcError:
    return MpcError(
        f"Column {name!r} must have one type in all partitions; got {wanted.dtype} in the "
        f"frame's declaration and {values.dtype} in a partition, with values that "
        f"{wanted.dtype} cannot hold. Cast the column to one type where the frame is made."
    )
