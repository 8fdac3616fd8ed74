"""Logs in files, larger than memory: DuckDB sorts them, and the chunks are walked from disk.

The rows are sorted by query and score once, only the columns that are needed, and written to a
folder of our own; every pass of an audit reads them from there, chunk by chunk.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab.engines.chunked import ChunkedSource, Parts
from mpc_lab.engines.cutting import BadRows, Cut, cut
from mpc_lab.engines.duck_checks import check_one_per_query, explain
from mpc_lab.engines.duck_database import Database, connect
from mpc_lab.engines.duck_fits import fits_of_all
from mpc_lab.engines.duck_rows import DuckRows, groups_in
from mpc_lab.engines.extras import need_extra
from mpc_lab.engines.limits import Limits, check_fits
from mpc_lab.engines.list_checks import ListChecks
from mpc_lab.engines.parts import Part
from mpc_lab.engines.pieces import Spec
from mpc_lab.engines.progress import Progress
from mpc_lab.engines.sources import OpenLog, Source
from mpc_lab.engines.spool import Spool, spill_folder
from mpc_lab.errors import MpcError
from mpc_lab.files import Files
from mpc_lab.pairing.arrays import Ints
from mpc_lab.pairing.walk import added
from mpc_lab.ranking import ColumnNames, Facts, Ranking, checks, read_ranking
from mpc_lab.ranking.spread import NOTHING, exact_mean, exact_sum, squared_deviations
from mpc_lab.scoring import Boosted, Calibrated, Column

if TYPE_CHECKING:
    from mpc_lab.results.plan import Plan

_BYTES_IN_A_ROW = 128  # of a chunk, with the copies that a pass makes


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
        need_extra("duckdb", "A log larger than memory")
        self.files, self.spec = files, Spec(columns, drop)
        self.limits, self.spill = limits, spill
        with spill_folder(spill):  # a folder that is not there is told before the work
            self.stamp = files.stamp()
            groups = groups_in(files, self.spec)
            if not groups and not any(batch.num_rows for batch in files.batches(columns.roles())):
                raise checks.no_rows()
            self._facts = Facts(columns, groups)

    @property
    def known(self) -> Facts:
        """Its columns and groups."""
        return self._facts

    def read_rows(self, extra: Sequence[Hashable], n_rows: int) -> Ranking:
        """Read the rows into memory, for a question that needs them."""
        self._check_unchanged()
        columns = self.spec.columns
        check_fits(self.files.bytes_in_memory(columns.roles(extra)))
        return read_ranking(self.files, columns, drop=self.spec.drop, extra=extra)

    def _check_unchanged(self) -> None:
        if self.files.stamp() != self.stamp:
            raise MpcError(
                "The files of the log have changed since they were first read: run the audit again."
            )

    @contextmanager
    def source(self, plan: Plan, progress: Progress | None) -> Iterator[Source]:
        """Sort the rows into a folder of our own, which is removed at the end."""
        self._check_unchanged()
        extra = tuple(
            dict.fromkeys(str(rule.name) for rule in plan.scoring_rules if isinstance(rule, Column))
        )
        rows = DuckRows(replace(self.spec, groups=plan.groups, extra=extra))
        done = progress("reading files", len(self.files.paths)) if progress else None
        with spill_folder(self.spill) as folder:
            dataset = rows.write(self.files, folder / "rows.arrow", done)
            with connect(self.limits, folder) as database:
                database.register("log", dataset)
                for role in ("unit", "segment"):
                    if getattr(self.spec.columns, role) is not None:
                        check_one_per_query(database, rows, self.files, role)
                spool, n_items = self._sorted(database, rows, plan, folder)
                dropped = _count(database) - spool.n_rows if self.spec.drop else 0
                fits = None
                if any(isinstance(rule, Calibrated) for rule in plan.scoring_rules):
                    fits = fits_of_all(database, rows)
            (folder / "rows.arrow").unlink()  # the sorted rows are there now
            facts = replace(
                self._facts,
                n_rows=spool.n_rows,
                n_queries=spool.n_queries,
                n_units=spool.n_units,
                n_items=n_items,
                dropped=dropped,
            )
            parts = Parts(spool.read, len(spool.chunks), self.limits.pairs_at_once, progress)
            if any(isinstance(rule, Boosted) and rule.alpha is None for rule in plan.scoring_rules):
                facts = replace(facts, score_std=_score_std(parts, spool.n_rows))
            yield ChunkedSource(parts, plan.groups, facts, partial(_fit, fits))

    def _sorted(
        self, database: Database, rows: DuckRows, plan: Plan, folder: Path
    ) -> tuple[Spool, int]:
        """Sort the rows and write them to disk; return them and how many items there are."""
        asked = _Asked(rows, in_order="adjacent" in plan.swept_modes)
        n_items = asked.number_items(database)
        positions = self.spec.columns.position is not None
        spool = Spool(folder, len(rows.masks), rows.spec.extra, positions)
        listed = ListChecks(n_items, positions)
        at_once = self.limits.rows_at_once(_BYTES_IN_A_ROW + 8 * len(rows.masks))
        try:
            with database.batches(asked.sql(database)) as batches:
                for chunk in cut(batches, asked.keys, asked.unit_keys, at_once):
                    spool.append(_checked(chunk, listed, rows.extra), chunk.starts, chunk.units)
        except BadRows:
            raise explain(database, rows, self.files) from None
        finally:
            spool.close()
        if not spool.n_rows:
            raise checks.nothing_left(_count(database))
        return spool, n_items


class _Asked:
    """The question that gives the sorted rows."""

    def __init__(self, rows: DuckRows, *, in_order: bool) -> None:
        self.rows = rows
        roles = {role: alias for role, _, alias in rows.ids}
        self.has_items = "item" in roles
        self.keys = [alias for role, _, alias in rows.ids if role == "query"]
        self.unit_keys = ["unit"] if "unit" in roles else []
        self.tie = ""
        if any(role == "position" for role, _, _ in rows.numbers):
            self.tie = "(-position)"
        elif in_order:
            self.tie = "(-row)"

    def number_items(self, database: Database) -> int:
        """Give every item a number, and return how many there are."""
        if not self.has_items:
            return 0
        database.do(
            "CREATE TEMP TABLE items AS SELECT item, row_number() OVER () - 1 AS code FROM "
            f"(SELECT DISTINCT item FROM {self.rows.kept})"
        )
        return int(database.rows("SELECT count(item) FROM items")[0][0])

    def sql(self, database: Database) -> str:
        """Return the question."""
        kinds = {row[0]: row[1] for row in database.rows("DESCRIBE SELECT * FROM log")}
        names = [*self.unit_keys, *self.keys]
        numbers = ["score", "outcome", *(alias for _, _, alias in self.rows.extra)]
        columns = [f"log.{name}" for name in (*names, *numbers, *self.rows.masks)]
        order = [
            key
            for name in names
            # Long texts go by their hash first.
            for key in ([name] if kinds[name] in _QUICK else [f"hash({name})", name])
        ]
        order.append("score")
        if self.tie:
            columns.append(f"{self.tie} AS tie")
            order.append("tie")
        join = ""
        if self.has_items:
            columns.append("items.code AS item")
            join = " LEFT JOIN items ON log.item = items.item"
        kept = self.rows.kept.replace("log", f"log{join}", 1)
        if self.has_items:
            kept = kept.replace(" item IS", " log.item IS")
        return f"SELECT {', '.join(columns)} FROM {kept} ORDER BY {', '.join(order)}"


_QUICK = ("BIGINT", "UBIGINT", "BOOLEAN")


def _checked(chunk: Cut, listed: ListChecks, extra: list[Any]) -> dict[str, Any]:
    """Return the columns as they are written, if they pass the checks."""
    columns = dict(chunk.columns)
    for name in ("score", "outcome", *(alias for _, _, alias in extra)):
        # One number that is not finite makes their sum so; an overflow is found to be none.
        with np.errstate(over="ignore", invalid="ignore"):
            suspect = not np.isfinite(np.sum(columns[name]))
        if suspect and not np.isfinite(columns[name]).all():
            raise BadRows
        ends = (float(columns[name].min()), float(columns[name].max()))
        if max(map(abs, ends)) > checks.LARGEST.get(name, np.inf):
            raise BadRows
    if "item" in columns:
        columns["item"] = columns["item"].astype(np.int64)
    if not listed.passed(columns, chunk.starts):
        raise BadRows
    if "tie" in columns:
        columns["tie"] = columns["tie"].astype(np.int64)
    if "item" in columns and listed.n_items < 1 << 31:
        columns["item"] = columns["item"].astype(np.int32)
    return columns


def _count(database: Database) -> int:
    return int(database.rows("SELECT count(*) FROM log")[0][0])


def _score_std(parts: Parts, n_rows: int) -> float:
    """Return the standard deviation of the scores, to the bit that memory finds."""
    totals = parts.spread(lambda part: exact_sum(part.log.score), "reading scores")
    mean = exact_mean(added(totals, NOTHING), n_rows)

    def deviations(part: Part) -> Ints:
        return squared_deviations(part.log.score, mean)

    squares = added(parts.spread(deviations, "reading scores"), NOTHING)
    return float(np.sqrt(exact_mean(squares, n_rows)))


def _fit(fits: Any, group: int) -> Any:
    return fits[group]
