"""Logs in files, larger than memory: DuckDB reads and sorts them, the chunks are walked from disk.

The rows are sorted by query and score once, only the columns that are needed, and written to a
folder of our own; every pass of an audit reads them from there, chunk by chunk.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
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
from mpc_lab.engines.duck_files import open_files
from mpc_lab.engines.duck_fits import fits_of_all
from mpc_lab.engines.duck_rows import DuckRows, Labels
from mpc_lab.engines.extras import need_extra
from mpc_lab.engines.files import Files
from mpc_lab.engines.limits import Limits
from mpc_lab.engines.list_checks import ListChecks
from mpc_lab.engines.parts import Part
from mpc_lab.engines.progress import Progress
from mpc_lab.engines.sources import Source
from mpc_lab.engines.spool import Spool, spill_folder
from mpc_lab.errors import MpcError
from mpc_lab.pairing.arrays import Ints
from mpc_lab.pairing.walk import added
from mpc_lab.ranking import ColumnNames, Facts, checks
from mpc_lab.ranking.spread import NOTHING, exact_mean, exact_sum, squared_deviations
from mpc_lab.scoring import Boosted, Calibrated, Column

if TYPE_CHECKING:
    from mpc_lab.results.plan import Plan

_BYTES_IN_A_ROW = 128  # of a chunk, with the copies that a pass makes


class DuckLog:
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

    ranking = None

    def __init__(
        self,
        files: Files,
        columns: ColumnNames,
        *,
        drop: bool,
        limits: Limits,
        spill: str | os.PathLike[str] | None,
    ) -> None:
        need_extra("duckdb", "A log in files")
        self.files, self.columns, self.drop = files, columns, drop
        self.limits, self.spill = limits, spill
        self.stamp = files.stamp()
        with spill_folder(spill) as folder, connect(limits, folder) as database:
            rows = self._rows(database)
            self.labels: Labels = rows.labels(database)
        self.known = Facts(columns, self.labels.membership.groups)

    def _rows(self, database: Database) -> DuckRows:
        return DuckRows(
            open_files(database, self.files, self.columns), self.columns, drop=self.drop
        )

    @contextmanager
    def source(self, plan: Plan, progress: Progress | None) -> Iterator[Source]:
        """Sort the rows into a folder of our own, which is removed at the end."""
        if self.files.stamp() != self.stamp:
            raise MpcError(
                "The files of the log have changed since they were first read: run the audit again."
            )
        with spill_folder(self.spill) as folder:
            with connect(self.limits, folder) as database:
                rows = self._rows(database)
                for role in ("unit", "segment"):
                    if getattr(self.columns, role) is not None:
                        check_one_per_query(database, rows, role)
                spool, n_items = self._sorted(database, rows, plan, folder)
                dropped = self._dropped(database, rows, spool.n_rows)
                fits = None
                if any(isinstance(rule, Calibrated) for rule in plan.scoring_rules):
                    fits = fits_of_all(database, rows, self.labels, plan.groups)
            facts = replace(
                self.known,
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
        extra = tuple(
            dict.fromkeys(str(rule.name) for rule in plan.scoring_rules if isinstance(rule, Column))
        )
        asked = _Asked(rows, extra, in_order="adjacent" in plan.swept_modes)
        n_items = asked.number_items(database)
        masks, join = rows.masks(database, self.labels, plan.groups)
        n_words = max(1, -(-len(plan.groups) // 64))
        positions = self.columns.position is not None
        spool = Spool(folder, n_words, extra, positions)
        listed = ListChecks(n_items, positions)
        at_once = self.limits.rows_at_once(_BYTES_IN_A_ROW + 8 * n_words)
        try:
            with database.batches(asked.sql(masks, join)) as batches:
                for chunk in cut(batches, asked.keys, asked.unit_keys, at_once):
                    spool.append(_checked(chunk, listed, extra), chunk.starts, chunk.units)
        except BadRows:
            raise explain(database, rows, extra) from None
        finally:
            spool.close()
        if not spool.n_rows:
            n_rows = _count(database, rows)
            raise checks.nothing_left(n_rows) if n_rows else checks.no_rows()
        return spool, n_items

    def _dropped(self, database: Database, rows: DuckRows, n_rows: int) -> int:
        return _count(database, rows) - n_rows if self.drop else 0


class _Asked:
    """The question that gives the sorted rows."""

    def __init__(self, rows: DuckRows, extra: tuple[str, ...], *, in_order: bool) -> None:
        self.rows = rows
        by_row = in_order and rows.columns.position is None
        self.table = rows.table.numbered if by_row else rows.table.sql
        names: list[tuple[str, Hashable, str]] = []
        if rows.columns.unit is not None:
            names.append(("unit", rows.columns.unit, rows.id("unit")))
        names += [
            (f"query{k}", name, sql)
            for k, (_, name, sql) in enumerate(i for i in rows.ids if i[0] == "query")
        ]
        self.ids = {alias: sql for alias, _, sql in names}
        self.keys = [alias for alias in self.ids if alias != "unit"]
        self.unit_keys = [alias for alias in self.ids if alias == "unit"]
        self.order = []
        for alias, name, _ in names:
            quick = rows.table.sorts_quickly(name)
            self.order += [alias] if quick else [f"hash({alias})", alias]
        self.order.append("score")
        outcome = rows.table.carried(rows.columns.outcome, "outcome")
        self.plain = {"score": rows.number("score"), "outcome": outcome}
        self.plain |= {
            f"extra{k}": rows.table.number(name, "score") for k, name in enumerate(extra)
        }
        if rows.columns.position is not None:
            self.plain["tie"] = f"(-{rows.number('position')})"
        elif by_row:
            self.plain["tie"] = "(-row)"
        if "tie" in self.plain:
            self.order.append("tie")

    def number_items(self, database: Database) -> int:
        """Give every item a number, and return how many there are."""
        if self.rows.columns.item is None:
            return 0
        database.do(
            "CREATE TEMP TABLE items AS SELECT item, row_number() OVER () - 1 AS code FROM "
            f"(SELECT DISTINCT {self.rows.id('item')} AS item FROM {self.rows.kept})"
        )
        return int(database.rows("SELECT count(item) FROM items")[0][0])

    def sql(self, masks: str, join: str) -> str:
        """Return the question, given the masks of groups and the join they need."""
        columns = [f"{sql} AS {alias}" for alias, sql in {**self.ids, **self.plain}.items()]
        if self.rows.columns.item is not None:
            columns.append("items.code AS item")
            join += f" LEFT JOIN items ON {self.rows.id('item')} = items.item"
        kept = f" WHERE {self.rows.complete}" if self.rows.drop else ""
        return (
            f"SELECT {', '.join(columns)}, {masks} FROM {self.table} {join}{kept} "
            f"ORDER BY {', '.join(self.order)}"
        )


def _checked(chunk: Cut, listed: ListChecks, extra: tuple[str, ...]) -> dict[str, Any]:
    """Return the columns as they are written, if they pass the checks."""
    columns = dict(chunk.columns)
    for name in ("score", "outcome", *(f"extra{k}" for k in range(len(extra)))):
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


def _count(database: Database, rows: DuckRows) -> int:
    return int(database.rows(f"SELECT count(*) FROM {rows.table.sql}")[0][0])


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
