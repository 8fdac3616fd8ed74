"""A partition of a cluster's frame becomes a part of a log, where it lies.

Every partition is read and checked as a `Ranking` is, by the same code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mpc_lab.engines.parts import Part
from mpc_lab.errors import MpcError
from mpc_lab.pairing.arrays import Ints, Masks
from mpc_lab.pairing.log import Log, sort_rows
from mpc_lab.ranking import ColumnNames, Ranking
from mpc_lab.ranking.groups import read_groups
from mpc_lab.ranking.reading import complete_rows
from mpc_lab.ranking.table import Frame, get_column, open_table, take_rows
from mpc_lab.scoring.checks import checked_scores


@dataclass(frozen=True)
class Spec:
    """How partitions are read.

    Attributes
    ----------
    columns : ColumnNames
    drop : bool
        Whether rows with a missing value are left out.
    groups : tuple of str
        The groups to audit, in the order of the masks.
    extra : tuple of str
        Other score columns.
    """

    columns: ColumnNames
    drop: bool
    groups: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def needed(self) -> list[Any]:
        """All columns that are read."""
        names: list[Any] = list(self.extra)
        for role, name in self.columns.given().items():
            if role != "group_sep":
                names += name if isinstance(name, tuple) else (name,)
        return list(dict.fromkeys(names))


@dataclass(frozen=True)
class Piece:
    """A part and what is counted over all of them.

    Attributes
    ----------
    part : Part
    n_rows, n_queries, n_units, dropped : int
    queries, units : uint64 arrays
        What tells the queries, and the units, of the piece from all others.
    """

    part: Part
    n_rows: int
    n_queries: int
    n_units: int
    dropped: int
    queries: Masks
    units: Masks


def keep_rows(frame: Any, spec: Spec) -> Frame:
    """Return the rows of a partition, without those that lack a value where these are left out."""
    table = open_table(frame)
    return take_rows(table, complete_rows(table, spec.columns)) if spec.drop else table


def find_groups(table: Frame, spec: Spec) -> tuple[str, ...]:
    """Return the names of the groups that some rows have."""
    columns = spec.columns
    return read_groups(table, columns.group, columns.group_sep).groups if len(table) else ()


def make_piece(frame: Any, spec: Spec, number: int) -> Piece:
    """Read and sort the rows of a partition, which hold whole units."""
    try:
        table = open_table(frame)
        for name in spec.needed:
            get_column(table, name)
        if not len(table) or (spec.drop and not len(complete_rows(table, spec.columns))):
            return _empty(len(table), spec)
        return _filled(Ranking(frame, **keywords(spec)), spec, number)
    except MpcError as error:
        raise MpcError(f"In partition {number}: {error}") from error


def keywords(spec: Spec) -> dict[str, Any]:
    """Return the keywords of the `Ranking` that partitions make."""
    columns = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in spec.columns.given().items()
    }
    return {**columns, "missing": "drop" if spec.drop else "raise"}


def _filled(ranking: Ranking, spec: Spec, number: int) -> Piece:
    log = sort_rows(ranking, masks=order_masks(ranking.groups, ranking.masks, spec.groups))
    extra = {
        name: checked_scores(ranking.column(name), ranking.n_rows, f"The score column {name!r}")[
            log.row
        ]
        for name in spec.extra
    }
    names = np.empty(0, dtype=np.uint64)
    if ranking.item_code is not None:
        names = _hashed(ranking.item_labels(np.arange(ranking.n_items)))
    queries = _hashed(ranking.query_labels(np.arange(ranking.n_queries)))
    units = queries
    if ranking.unit_code is not None:
        units = _hashed(ranking.unit_labels(np.arange(ranking.n_units)))
    # Pieces that drew alike would draw the same places of their lists again and again.
    part = Part(replace(log, origin=number << 32), extra, names)
    return Piece(
        part, ranking.n_rows, ranking.n_queries, ranking.n_units, ranking.dropped, queries, units
    )


def order_masks(groups: tuple[str, ...], masks: Masks, wanted: tuple[str, ...]) -> Masks:
    """Return the masks of some rows with their groups in the order of the whole log's.

    Parameters
    ----------
    groups : tuple of str
        The groups that these rows have.
    masks : uint64 array, words × rows
        By these groups.
    wanted : tuple of str
        The groups to audit.
    """
    if groups == wanted:
        return masks
    made = np.zeros((max(1, -(-len(wanted) // 64)), masks.shape[1]), dtype=np.uint64)
    place = {group: k for k, group in enumerate(groups)}
    for k, group in enumerate(wanted):
        if group in place:
            bit = masks[place[group] // 64] >> np.uint64(place[group] % 64) & np.uint64(1)
            made[k // 64] |= bit << np.uint64(k % 64)
    return made


def _hashed(labels: Any) -> Masks:
    """Return 64 bits for each label, the same on every machine."""
    texts = np.array([repr(label) for label in labels.tolist()], dtype=object)
    return pd.util.hash_array(texts, categorize=False).astype(np.uint64)


def _empty(dropped: int, spec: Spec) -> Piece:
    none: Ints = np.empty(0, dtype=np.int64)
    no_number, nothing = np.empty(0), np.empty(0, dtype=np.uint64)
    start = np.zeros(1, dtype=np.int64)
    words = np.empty((max(1, -(-len(spec.groups) // 64)), 0), dtype=np.uint64)
    log = Log(start, start, no_number, no_number, words, none, none, none, none)
    part = Part(log, dict.fromkeys(spec.extra, no_number))
    return Piece(part, 0, 0, 0, dropped, nothing, nothing)
