"""Logs in files, larger than memory: DuckDB sorts them, and the chunks are walked from disk.

The rows are sorted by query and score once, only the columns that are needed, and written to a
folder of our own; every pass of an audit reads them from there, chunk by chunk.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpc_lab.engines import OpenLog
from mpc_lab.engines.duckdb.chunks import (
    BadRows,
    Chunks,
    Inspector,
    Spool,
    cut_chunks,
    spill_folder,
)
from mpc_lab.engines.duckdb.rows import (
    Database,
    DuckRows,
    check_of_items,
    check_one_per_query,
    connect,
    explain,
    groups_in,
)
from mpc_lab.engines.partitions import Spec
from mpc_lab.engines.parts import PartsSource, count_rows, fit_sorted
from mpc_lab.engines.running import Limits, check_fits, need_extra
from mpc_lab.errors import MpcError
from mpc_lab.files import Files
from mpc_lab.pairing.walk import Source
from mpc_lab.ranking import ColumnNames, Facts, Ranking, checks, read_ranking
from mpc_lab.scoring import Calibrated

if TYPE_CHECKING:
    from mpc_lab.engines.running import Progress
    from mpc_lab.results.plan import Plan
    from mpc_lab.scoring.calibrated import Steps

_BYTES_IN_A_ROW = 128  # bytes per row of a chunk, with the copies that a pass makes


class DuckLog(OpenLog):
    """A log in files.

    Parameters
    ----------
    files : Files
    columns : ColumnNames
    drop : bool
        Whether rows with a missing value are left out.
    limits : Limits
    spill : path or None
        Where to make the folder for what does not fit into memory.
    """

    def __init__(
        self,
        files: Files,
        columns: ColumnNames,
        *,
        drop: bool,
        limits: Limits,
        spill: str | os.PathLike[str] | None,
    ) -> None:
        need_extra("duckdb", "a log larger than memory")
        self.files, self.spec = files, Spec(columns, drop)
        self.limits, self.spill = limits, spill
        with spill_folder(spill):  # report a missing folder before the work
            self.stamp = files.stamp()
            groups = groups_in(files, self.spec)
            if not groups and not any(batch.num_rows for batch in files.batches(columns.roles())):
                raise checks.no_rows()
            self.known = Facts(columns, groups)

    def read_rows(self, extra: Sequence[Hashable], n_rows: int) -> Ranking:
        """Read the rows into memory, for a question that needs them."""
        self._check_unchanged()
        columns = self.spec.columns
        check_fits(self.files.bytes_in_memory(columns.roles(extra)))
        return read_ranking(self.files, columns, drop=self.spec.drop, extra=extra)

    def _check_unchanged(self) -> None:
        if self.files.stamp() != self.stamp:
            raise MpcError(
                "The files of the log must not change during an audit; got other sizes or "
                "times than at the first reading. Run the audit again."
            )

    @contextmanager
    def source(self, plan: Plan, progress: Progress | None) -> Iterator[Source]:
        """Sort the rows into a folder of our own, which is removed at the end."""
        self._check_unchanged()
        rows = DuckRows(self.spec.with_plan(plan))
        done = progress("reading files", len(self.files.paths)) if progress else None
        with spill_folder(self.spill) as folder:
            dataset = rows.write(self.files, folder / "rows.arrow", done)
            with connect(self.limits, folder) as database:
                database.register("log", dataset)
                for role in ("unit", "segment"):
                    if getattr(self.spec.columns, role) is not None:
                        check_one_per_query(database, rows, self.files, role)
                n_items = rows.number_items(database)
                check_of_items(database, rows, self.files)
                rows.number_owners(database)
                spool = self._sort(database, rows, n_items, folder, plan)
                dropped = rows.count(database) - spool.n_rows if self.spec.drop else 0
                fits: list[tuple[Steps, Steps]] = []
                if any(isinstance(rule, Calibrated) for rule in plan.scoring_rules):
                    with database.batches(rows.ask_by_score()) as batches:
                        fits = fit_sorted(batches, len(plan.groups))
            (folder / "rows.arrow").unlink()  # the sorted rows are there now
            chunks = Chunks(spool, self.limits.pairs_at_once, progress)
            facts = count_rows(
                self.known,
                chunks,
                plan,
                spool.outcome_ranges,
                n_rows=spool.n_rows,
                n_queries=spool.n_queries,
                n_units=spool.n_units,
                n_items=n_items,
                dropped=dropped,
                n_capped=spool.n_capped,
                n_floored=spool.n_floored,
            )
            yield PartsSource(
                chunks, plan.groups, facts, lambda: fits, plan.terms, plan.against_bit
            )

    def _sort(
        self, database: Database, rows: DuckRows, n_items: int, folder: Path, plan: Plan
    ) -> Spool:
        """Sort the rows and write them to disk in chunks."""
        in_order = any(side.neighbours for mode in plan.swept_modes for side in mode.sides)
        question = rows.ask_by_query(database, in_order=in_order)
        positions = self.spec.columns.position is not None
        spool = Spool(folder, rows.spec.extra, positions)
        numbers = ["score", "outcome", *(alias for _, _, alias in rows.extra)]
        inspector = Inspector(n_items, positions, numbers)
        at_once = self.limits.rows_at_once(_BYTES_IN_A_ROW + 8 * len(rows.masks))
        try:
            with database.batches(question) as batches:
                for chunk in cut_chunks(batches, rows.keys, rows.unit_keys, at_once):
                    columns = inspector.check(chunk)
                    columns["outcome"], above = _cap(columns["outcome"], rows.spec.outcome_cap)
                    if "examined" in columns:
                        examined, floor = columns.pop("examined"), rows.spec.columns.floor
                        columns["outcome"] = columns["outcome"] / np.maximum(examined, floor)
                        spool.n_floored += int((examined < floor).sum())
                    spool.append(columns, chunk.starts, chunk.units)
                    spool.n_capped += above
        except BadRows:
            raise explain(database, rows, self.files) from None
        if not spool.n_rows:
            raise checks.nothing_left(rows.count(database))
        return spool


def _cap(outcome: NDArray[Any], cap: float | None) -> tuple[NDArray[Any], int]:
    """Set outcomes above a cap to it, and count them."""
    if cap is None:
        return outcome, 0
    return np.minimum(outcome, cap), int((outcome > cap).sum())
