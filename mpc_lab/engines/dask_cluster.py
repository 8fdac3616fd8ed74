"""Logs in a Dask frame: partitions become parts, sums are added in a tree."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from mpc_lab.engines.cluster import ClusterSource
from mpc_lab.engines.cluster_logs import (
    ORDER,
    check_columns,
    check_rows,
    check_units,
    facts_of,
    spans,
    spec_of,
)
from mpc_lab.engines.dask_calls import (
    as_they_are,
    client,
    compute,
    each_done,
    later,
    persist,
    reading,
)
from mpc_lab.engines.dtypes import settle
from mpc_lab.engines.exchanged_items import MOST_BUCKETS, PAIRS_AT_LEAST, PAIRS_OF_A_PART
from mpc_lab.engines.extras import need_extra
from mpc_lab.engines.limits import BYTES_OF_A_ROW, check_fits
from mpc_lab.engines.lost_clusters import reaching_dask
from mpc_lab.engines.parts import Part
from mpc_lab.engines.pieces import Piece, Spec, find_groups, keep_rows, keywords, make_piece
from mpc_lab.engines.progress import Progress
from mpc_lab.engines.sources import OpenLog, Source
from mpc_lab.pairing.arrays import Masks
from mpc_lab.ranking import ColumnNames, Facts, Ranking

if TYPE_CHECKING:
    from mpc_lab.results.plan import Plan

Result = TypeVar("Result")
Chunk = TypeVar("Chunk")

_FAN_IN = 8


class DaskLog(OpenLog):
    """A log in a Dask frame.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    columns : ColumnNames
    drop : bool
        Whether rows with a missing value are left out.
    """

    @reaching_dask()
    def __init__(self, frame: Any, columns: ColumnNames, *, drop: bool) -> None:
        need_extra("dask", "A Dask frame")
        self.frame, self.spec = frame, Spec(columns, drop)
        check_columns(frame, self.spec)
        with reading():
            shared, declared = later(self.spec), frame[self.spec.needed]._meta
            wanted = frame[self.spec.needed].to_delayed()
            found = compute([later(_groups)(part, declared, shared) for part in wanted])
        groups = tuple(sorted({group for part in found for group in part}))
        self._facts = Facts(columns, groups)

    @property
    def known(self) -> Facts:
        """Its columns and groups."""
        return self._facts

    @reaching_dask()
    def read_rows(self, extra: Sequence[Hashable], n_rows: int) -> Ranking:
        """Collect the rows into memory, for a question that needs them."""
        check_fits(BYTES_OF_A_ROW * n_rows)
        names = replace(self.spec, extra=tuple(map(str, extra))).needed
        with reading():
            (frame,) = compute([self.frame[names]])
        return Ranking(frame.reset_index(drop=True), **keywords(self.spec))

    @contextmanager
    def source(self, plan: Plan, progress: Progress | None) -> Iterator[Source]:
        """Read and sort every partition where it lies; what that holds is let go at the end."""
        with reaching_dask():
            spec = spec_of(self.frame, self.spec, plan)
            with reading():
                pieces, counts = self._whole(spec)
            cluster = DaskCluster([_get(piece, "part") for piece in pieces], progress)
            check_rows(counts)
            items = cluster.collect(_names, "counting items")
            facts = facts_of(self._facts, counts, items, cluster, plan)
            yield ClusterSource(cluster, plan.groups, facts)

    def _whole(self, spec: Spec) -> tuple[list[Any], list[Piece]]:
        """Return pieces that hold whole units, and all of them but their rows.

        The tasks that read the pieces say themselves which queries they hold: another pass over
        the frame might see other partitions.
        """
        frame = self.frame[spec.needed]
        numbered = [
            later(_numbered)(part, frame._meta, spec, number)
            for number, part in enumerate(frame.to_delayed())
        ]
        pieces, counts = _read(numbered, spec)
        if spans([piece.units for piece in counts]):
            meta = _numbered(frame._meta, frame._meta, spec, 0)
            pieces, counts = _read(_shuffled(numbered, meta, spec), spec)
        check_units(counts)
        return pieces, counts


class DaskCluster:
    """The parts of a log, as delayed values that are kept where they lie."""

    def __init__(self, parts: list[Any], progress: Progress | None) -> None:
        self.parts, self.progress = parts, progress
        self.buckets = min(max(1, len(parts)), MOST_BUCKETS)
        self.pairs_at_once = max(PAIRS_AT_LEAST, PAIRS_OF_A_PART * len(parts))

    def collect(self, task: Callable[[Part], Result], label: str) -> list[Result]:
        """Return what the task makes of every part, in their order."""
        return self._computed([self._asked(task, part) for part in self.parts], label)

    def total(self, task: Callable[[Part], Result], label: str, start: Result) -> Result:
        """Return the sum of what the task makes of every part, added in a tree."""
        found = [self._asked(task, part) for part in self.parts]
        while len(found) > 1:
            found = [
                later(_sum)(found[first : first + _FAN_IN])
                for first in range(0, len(found), _FAN_IN)
            ]
        (whole,) = self._computed(found, label)
        return start + whole  # type: ignore[no-any-return]

    def exchange(
        self,
        split: Callable[[Part], list[Chunk]],
        merge: Callable[[list[Chunk]], Result],
        buckets: int,
        label: str,
    ) -> list[Result]:
        """Split every part into buckets, and return what `merge` makes of each bucket of all."""
        shared = later(split)
        chunks = [later(_call, parts=buckets)(shared, part) for part in self.parts]
        merged = [later(merge)([chunk[bucket] for chunk in chunks]) for bucket in range(buckets)]
        return self._computed(merged, label)

    def _asked(self, task: Callable[[Part], Any], part: Any) -> Any:
        return later(_call)(later(task), part)

    def _computed(self, asked: list[Any], label: str) -> list[Any]:
        here = client()
        if here is None or self.progress is None:
            with reading(OSError):
                return compute(asked)
        futures = here.compute(asked)
        each_done(futures, self.progress(label, len(futures)))
        with reading(OSError):
            return list(here.gather(futures))


def _call(task: Callable[[Any], Any], part: Any) -> Any:
    return task(part)


def _sum(parts: list[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _groups(frame: pd.DataFrame, declared: pd.DataFrame, spec: Spec) -> tuple[str, ...]:
    return find_groups(keep_rows(settle(frame, declared, spec), spec), spec)


def _numbered(frame: pd.DataFrame, declared: pd.DataFrame, spec: Spec, number: int) -> pd.DataFrame:
    """Settle the types, and write down the order of the rows, which a shuffle loses."""
    settled = settle(frame, declared, spec)
    return settled.assign(**{ORDER: (number << 40) + np.arange(len(frame))})


def _shuffled(numbered: list[Any], meta: pd.DataFrame, spec: Spec) -> list[Any]:
    """Bring the rows of a unit, or of a query, into one partition."""
    import dask.dataframe as dd

    columns = spec.columns
    key = columns.query if columns.unit is None else columns.unit
    with as_they_are():
        whole = dd.from_delayed(numbered, meta=meta, verify_meta=False)
    # Left to itself, Dask looks for any client, also where another scheduler was chosen.
    method = "tasks" if client() is None else "p2p"
    on = list(key) if isinstance(key, tuple) else key
    shuffled = whole.shuffle(on=on, shuffle_method=method)
    return list(shuffled.to_delayed())


def _read(frames: list[Any], spec: Spec) -> tuple[list[Any], list[Piece]]:
    shared = later(spec)
    pieces = persist([later(_piece)(frame, shared, number) for number, frame in enumerate(frames)])
    return pieces, compute([later(_without_rows)(piece) for piece in pieces])


def _piece(frame: pd.DataFrame, spec: Spec, number: int) -> Piece:
    ordered = frame.sort_values(ORDER).drop(columns=ORDER).reset_index(drop=True)
    return make_piece(ordered, spec, number)


def _without_rows(piece: Piece) -> Piece:
    return replace(piece, part=None)  # type: ignore[arg-type]


def _get(piece: Any, name: str) -> Any:
    return later(getattr)(piece, name)


def _names(part: Part) -> Masks:
    return part.names
