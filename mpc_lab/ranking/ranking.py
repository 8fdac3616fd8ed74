"""The `Ranking`: a checked log as plain arrays."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Hashable, Iterable
from typing import Any, overload

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from mpc_lab.errors import MpcError, near_match
from mpc_lab.files import Files
from mpc_lab.ranking.checks import LeftOut, ReadRows, read_rows
from mpc_lab.ranking.columns import (
    Codes,
    get_column,
    label_kind,
    open_table,
    pandas_frame,
    take_rows,
)
from mpc_lab.ranking.names import ColumnNames, check_named, column_names, drops
from mpc_lab.ranking.spread import standard_deviation
from mpc_lab.vocabulary import ITEM, PRODUCER, Flags, Floats, Ints, Masks, Objects

_GLIMPSED_ROWS = 2000


class Ranking:
    """Rows of a ranking log, checked once and kept as plain arrays.

    One row is an item shown for a query, with the score it was ranked by and the outcome it had.
    The rows keep the order of the table they are read from, which is never modified.

    Parameters
    ----------
    frame : table or dict of arrays
        A pandas, polars or pyarrow table, any other eager frame narwhals knows, or a dict of
        one-dimensional arrays.
    query : column or list of columns
        What a ranked list belongs to. Pairs are made within a query.
    score, outcome : column
        Numbers or booleans. They are kept as float64; float32 is widened exactly. Without a score
        the log is rank-only and needs a `position`: its places are all that is known of its order.
    group : column or list of columns
        A column of labels; a column of lists of labels; or a list of boolean columns, each of
        which is a group. The name of a group is ``str(label)``. Empty text, an empty list or null
        is in no group. Categories that are declared (pandas categorical, polars ``Enum``, a
        pyarrow dictionary) are groups even if no row has them. One boolean column given by its
        name alone is a column of labels, with the groups ``"False"`` and ``"True"``.
    item : column, optional
        What was ranked; at most once in a query. Without it items cannot be recognised in several
        queries.
    label : column, optional
        What an item is called where it is shown, such as its title; the same in all rows of an
        item, or missing. An item without one is called by its id. Needs `item`.
    producer : column, optional
        Whom an item belongs to: its seller, author or employer; the same in all rows of an item.
        Two pairs with items of one producer are then dependent. An item whose producer is missing,
        or blank, is its own. Needs `item`.
    unit : column, optional
        A coarser cluster that each query belongs to, such as the user of a request.
    group_sep : str, optional
        Split the text of `group` by this separator. Space around a label and blank labels are
        left out.
    position : column, optional
        Logged position, 1 = top: whole numbers, different within a query.
    segment : column, optional
        A label of the query, such as a country.
    time : column, optional
        When the row was shown: numbers, dates, or texts such as ``"2026-03-01 12:00"``. The order
        in which :meth:`mpc_lab.Audit.confidence_sequence` takes queries; by default that of their
        first rows.
    weight : column, optional
        How much a query counts, such as one over the probability that it was sampled: numbers above
        0, the same in all rows of a query. Every pair of the query, and its NDCG, counts that many
        times; thresholds and counts of pairs do not depend on it.
    examined : column, dict, Series, PowerLaw or Dataset, optional
        How likely a row is to be looked at, above 0 and at most 1: a column, a probability for each
        place, :class:`mpc_lab.PowerLaw`, or what :meth:`mpc_lab.Audit.examination` returned.
        Outcomes are divided by it, so that they no longer depend on the place.
    examined_floor : float, optional
        Probabilities below it, by default 0.05, are raised to it and counted, so that no outcome
        weighs too much.
    missing : {"raise", "drop"}
        What to do with a row in which any of the columns above but `group` is null or NaN, or whose
        place is not in `examined`.
    ascending : bool
        Whether a smaller score is better, as a distance is. Scores, and those of other columns
        that scoring rules name, are negated once, on the way in, and shown as they were given.
    outcome_name : str, optional
        What the outcome is called in sentences; by default the name of its column.

    Attributes
    ----------
    groups : tuple of str
        Names of the groups, sorted.
    n_rows, n_queries, n_items, n_producers, n_units : int
        Sizes; ``n_items`` is 0 without `item`, ``n_producers`` without `producer`; ``n_units`` is
        ``n_queries`` without `unit`.
    dropped : int
        Rows left out by ``missing="drop"``.
    columns : ColumnNames
        Which column plays which role.
    query_code, item_code, producer_code, unit_code : int64 array
        Ids as 0, 1, … in order of first appearance, those of items without a producer last; None
        for a part that was not given.
    item_label : object array or None
        The label of each item code as text; None for an item without one.
    owner : {"item", "producer"}
        Whose pairs are taken to move together: producers where they are given.
    score, outcome : float64 array
        The score is larger for items that are ranked higher.
    outcome_given : float64 array
        The outcomes before any cap, and before they are divided by `examined`.
    examined : float64 array or None
        What outcomes are divided by.
    n_floored : int
        Rows whose probability in `examined` was below `examined_floor` and raised to it.
    masks : uint64 array, words × rows
        Bit ``g % 64`` of ``masks[g // 64, row]`` says whether the row is in ``groups[g]``.
    position, segment_code : int64 array or None
    time : int64 array or None
        The place of each row's time among all times, the earliest first.
    weight : float64 array or None
        The weight of each row's query.
    segments : tuple of str
        Names of the segments, sorted; ``segment_code`` counts in this order.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> log = {
    ...     "user": [1, 1, 2, 2],
    ...     "movie": ["Heat", "Alien", "Heat", "Up"],
    ...     "score": [0.9, 0.8, 0.7, 0.6],
    ...     "rating": [3, 5, 4, 4],
    ...     "genres": ["Action|Crime", "Horror", "Action|Crime", ""],
    ... }
    >>> columns = dict(query="user", item="movie", score="score", outcome="rating")
    >>> ranking = mpc.Ranking(log, **columns, group="genres", group_sep="|")
    >>> ranking.groups
    ('Action', 'Crime', 'Horror')
    >>> ranking.member("Action")
    array([ True, False,  True, False])
    """

    columns: ColumnNames
    groups: tuple[str, ...]
    segments: tuple[str, ...]
    dropped: int
    query_code: Ints
    owner: str
    item_code: Ints | None
    item_label: Objects | None
    producer_code: Ints | None
    unit_code: Ints | None
    segment_code: Ints | None
    position: Ints | None
    time: Ints | None
    weight: Floats | None
    score: Floats
    outcome: Floats
    outcome_given: Floats
    examined: Floats | None
    masks: Masks

    def __init__(
        self,
        frame: Any,
        *,
        query: Any,
        outcome: Hashable,
        group: Any,
        score: Hashable | None = None,
        item: Hashable | None = None,
        label: Hashable | None = None,
        unit: Hashable | None = None,
        group_sep: str | None = None,
        position: Hashable | None = None,
        segment: Hashable | None = None,
        time: Hashable | None = None,
        producer: Hashable | None = None,
        weight: Hashable | None = None,
        missing: str = "raise",
        ascending: bool = False,
        outcome_name: str | None = None,
        examined: Any = None,
        examined_floor: float | None = None,
    ) -> None:
        drop = drops(missing)
        table = open_table(frame)
        self.columns = column_names(
            query=query,
            score=score,
            outcome=outcome,
            group=group,
            item=item,
            label=label,
            producer=producer,
            unit=unit,
            group_sep=group_sep,
            position=position,
            segment=segment,
            time=time,
            weight=weight,
            ascending=ascending,
            outcome_name=outcome_name,
            examined=examined,
            examined_floor=examined_floor,
        )
        self._keep(read_rows(table, self.columns, drop=drop))

    def _keep(self, rows: ReadRows) -> None:
        self._table = rows.table
        self.dropped = rows.dropped
        self.query_code, self._query_labels = rows.query.codes, rows.query.labels
        self.item_code, self._item_labels = _codes_and_labels(rows.item)
        self.item_label = rows.item_label
        self.producer_code, self._producer_labels = _codes_and_labels(rows.producer)
        self.owner = ITEM if rows.producer is None else PRODUCER
        self.unit_code, self._unit_labels = _codes_and_labels(rows.unit)
        self.segment_code, segments = _codes_and_labels(rows.segment)
        self.segments = tuple(segments)
        self.score, self.outcome, self.position = rows.score, rows.outcome, rows.position
        self.time, self.weight = rows.time, rows.weight
        self.groups, self.masks = rows.membership.groups, rows.membership.masks
        self._left_out = rows.left_out
        self._files: Files | None = None
        self._stamp: list[dict[str, Any]] = []
        self._kept = rows.kept
        self._fingerprint: str | None = None
        self._score_std: float | None = None
        self.outcome_given = self.outcome
        self._cap = np.inf
        self.examined = rows.examined
        self._floored: Flags | None = None
        if rows.examined is not None:
            self._floored = rows.examined < self.columns.floor
            self.examined = np.maximum(rows.examined, self.columns.floor)
            self.outcome = self.outcome / self.examined

    @property
    def stamp(self) -> list[dict[str, Any]]:
        """Size, time and checksum of the files that the rows were read from; else empty."""
        return self._stamp

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.score)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self._query_labels)

    @property
    def n_items(self) -> int:
        """Number of different items; 0 without an item column."""
        return len(self._item_labels)

    @property
    def n_producers(self) -> int:
        """Number of different producers; 0 without a producer column."""
        return len(self._producer_labels)

    @property
    def owner_code(self) -> Ints | None:
        """Whose pairs are taken to be dependent: the producer of each row, or its item."""
        return self.producer_code if self.owner == PRODUCER else self.item_code

    @property
    def n_units(self) -> int:
        """Number of units; the number of queries without a unit column."""
        return self.n_queries if self.unit_code is None else len(self._unit_labels)

    @property
    def score_std(self) -> float:
        """Population standard deviation of the scores."""
        if self._score_std is None:
            self._score_std = standard_deviation(self.score)
        return self._score_std

    @property
    def query_weights(self) -> Floats | None:
        """The weight of each query code; None where every query counts 1."""
        if self.weight is None:
            return None
        weights = np.empty(self.n_queries)
        weights[self.query_code] = self.weight
        return weights

    @property
    def outcome_range(self) -> tuple[float, float]:
        """The lowest and the highest outcome."""
        return float(self.outcome.min()), float(self.outcome.max())

    @property
    def n_capped(self) -> int:
        """Number of rows whose outcome is above the cap of the audit."""
        return int((self.outcome_given > self._cap).sum())

    @property
    def n_floored(self) -> int:
        """Number of rows whose probability in `examined` was raised to the floor."""
        return 0 if self._floored is None else int(self._floored.sum())

    def directed(self, scores: Floats) -> Floats:
        """Turn scores of the log's own columns so that larger is better, or turn them back."""
        return 0.0 - scores if self.columns.ascending else scores

    def group_index(self, group: str) -> int:
        """Return the place of a group in `groups`."""
        return group_index(self.groups, group)

    def member(self, group: str) -> Flags:
        """Return which rows are in a group."""
        index = self.group_index(group)
        bit = np.uint64(1) << np.uint64(index % 64)
        inside: Flags = self.masks[index // 64] & bit != 0
        return inside

    def column(self, name: Hashable) -> NDArray[Any]:
        """Return a copy of any column of the table the rows were read from, as an array."""
        if self._files is not None and name not in self._table.columns:
            # From files, only the columns that an audit needs are read at first.
            if self._files.stamp() != self._stamp:
                raise MpcError(
                    f"The files must not change before {name!r} is read from them; got changed "
                    "files. Run the audit again."
                )
            return np.array(self._files.column(str(name)).to_numpy())[self._kept]
        return np.array(get_column(self._table, name).to_numpy())

    def left_out(self) -> LeftOut | None:
        """Return what ``missing="drop"`` left out, with its groups; None where nothing was."""
        return None if self._left_out is None else self._left_out()

    @property
    def group_kind(self) -> str:
        """How the table says who is in which group: see `mpc_lab.ranking.columns.label_kind`."""
        return label_kind(self._table, self.columns.group, self.columns.group_sep)

    @property
    def table_columns(self) -> list[Hashable]:
        """The names of the columns that were read, in the order of the table."""
        return list(self._table.columns)

    @property
    def is_pandas(self) -> bool:
        """Whether the rows were given as a pandas frame."""
        return self._files is None and self._table.implementation.is_pandas()

    def glimpse(self) -> Any:
        """Return the first rows with all columns, for files also those that were not read."""
        if self._files is not None:
            return self._files.head()
        return self._table.head(_GLIMPSED_ROWS)

    def query_labels(self, codes: ArrayLike) -> Objects:
        """Return the original ids of queries; tuples where query has several columns."""
        return self._query_labels[np.asarray(codes, dtype=np.int64)]

    def unit_labels(self, codes: ArrayLike) -> Objects:
        """Return the original labels of unit codes; needs a unit column."""
        if self.unit_code is None:
            raise MpcError(
                "The ranking must have units; got none. Name the unit column when making it."
            )
        return self._unit_labels[np.asarray(codes, dtype=np.int64)]

    def item_labels(self, codes: ArrayLike) -> Objects:
        """Return the original ids of items."""
        if self.item_code is None:
            raise MpcError(
                "The ranking must have an item column to name items; got none. "
                "Pass item= to Ranking."
            )
        return self._item_labels[np.asarray(codes, dtype=np.int64)]

    def item_names(self, codes: ArrayLike) -> Objects:
        """Return what items are called: their labels, or their ids where these are not given."""
        ids = self.item_labels(codes)
        if self.item_label is None:
            return ids
        known = self.item_label[np.asarray(codes, dtype=np.int64)]
        pairs = zip(known, ids, strict=True)
        return np.array([str(own) if one is None else one for one, own in pairs], dtype=object)

    def producer_labels(self, codes: ArrayLike) -> Objects:
        """Return the original ids of producers; None for an item without a producer."""
        if self.producer_code is None:
            raise MpcError(
                "The ranking must have producers; got none. Name the producer column when "
                "making it."
            )
        return self._producer_labels[np.asarray(codes, dtype=np.int64)]

    def subset(self, keep: ArrayLike) -> Ranking:
        """Return the rows where `keep` is true, with the same groups and segments.

        Ids are renumbered, so that codes of the subset are dense.
        """
        wanted = np.asarray(keep)
        if wanted.dtype != np.bool_ or wanted.shape != (self.n_rows,) or not wanted.any():
            raise MpcError(
                f"keep must be {self.n_rows:,} booleans, at least one of them true; got "
                f"{wanted.dtype} of shape {wanted.shape}, {int(np.sum(wanted != 0))} true."
            )
        rows = np.flatnonzero(wanted)
        part = copy.copy(self)
        part._table = take_rows(self._table, rows)
        part._kept = self._kept[rows]
        part._fingerprint = None
        part._score_std = None
        part._left_out = None
        part.query_code, part._query_labels = _renumber(self.query_code, self._query_labels, rows)
        part.item_code, part._item_labels = _renumber(self.item_code, self._item_labels, rows)
        if self.item_label is not None:
            part.item_label = _renumber(self.item_code, self.item_label, rows)[1]
        part.producer_code, part._producer_labels = _renumber(
            self.producer_code, self._producer_labels, rows
        )
        part.unit_code, part._unit_labels = _renumber(self.unit_code, self._unit_labels, rows)
        part.segment_code = None if self.segment_code is None else self.segment_code[rows]
        part.position = None if self.position is None else self.position[rows]
        part.time = None if self.time is None else self.time[rows]
        part.weight = None if self.weight is None else self.weight[rows]
        part.score, part.outcome = self.score[rows], self.outcome[rows]
        part.outcome_given = self.outcome_given[rows]
        if self.examined is not None:
            part.examined = self.examined[rows]
            part._floored = None if self._floored is None else self._floored[rows]
        part.masks = np.take(self.masks, rows, axis=1)
        return part

    def fingerprint(self) -> str:
        """Return a hash of the rows in their order; how ids are spelt does not count."""
        if self._fingerprint is None:
            digest = hashlib.sha256(repr((self.groups, self.segments)).encode())
            for part in (
                self.query_code,
                self.item_code,
                self.unit_code,
                self.segment_code,
                self.position,
                self.score,
                self.outcome_given,
                self.masks,
            ):
                digest.update(b"none" if part is None else np.ascontiguousarray(part).data)
            for more in (self.time, self.weight):
                if more is not None:
                    digest.update(np.ascontiguousarray(more).data)
            if self.producer_code is not None:
                digest.update(b"producer")
                digest.update(np.ascontiguousarray(self.producer_code).data)
            if self.examined is not None:
                digest.update(b"examined")
                digest.update(np.ascontiguousarray(self.examined).data)
            self._fingerprint = digest.hexdigest()
        return self._fingerprint

    def to_frame(self) -> pd.DataFrame:
        """Return the kept rows as a pandas frame, with all columns of their table."""
        return pandas_frame(self._table)

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        counts = {"rows": self.n_rows, "queries": self.n_queries, "items": self.n_items}
        counts["producers"] = self.n_producers
        counts["units"] = 0 if self.unit_code is None else self.n_units
        sizes = [f"{count:,} {what}" for what, count in counts.items() if count]
        sizes.append(f"{len(self.groups):,} groups")
        if self.dropped:
            sizes.append(f"{self.dropped:,} dropped for missing values")
        named = ", ".join(f"{role}={name!r}" for role, name in self.columns.given().items())
        return f"<Ranking: {', '.join(sizes)}; {named}>"


def _codes_and_labels(found: Codes | None) -> tuple[Ints | None, Objects]:
    return (None, np.empty(0, dtype=object)) if found is None else (found.codes, found.labels)


@overload
def _renumber(codes: Ints, labels: Objects, rows: Ints) -> tuple[Ints, Objects]: ...
@overload
def _renumber(codes: Ints | None, labels: Objects, rows: Ints) -> tuple[Ints | None, Objects]: ...
def _renumber(codes: Ints | None, labels: Objects, rows: Ints) -> tuple[Ints | None, Objects]:
    if codes is None:
        return None, labels
    renumbered, kept = pd.factorize(codes[rows])
    return renumbered.astype(np.int64), labels[kept]


def sum_by(ranking: Ranking, owner: str) -> Ranking:
    """Return a ranking whose items move with their producers, or each on its own.

    Parameters
    ----------
    ranking : Ranking
    owner : {"item", "producer"}
    """
    if ranking.owner == owner or ranking.producer_code is None:
        return ranking
    made = copy.copy(ranking)
    made.owner = owner
    return made


def cap_outcomes(ranking: Ranking, cap: float | None) -> Ranking:
    """Return a ranking with outcomes above a cap set to it; ``outcome_given`` keeps them.

    Parameters
    ----------
    ranking : Ranking
    cap : float or None
        None: the ranking as it is.
    """
    if cap is None:
        return ranking
    capped = copy.copy(ranking)
    capped._cap = cap
    capped.outcome = np.minimum(ranking.outcome_given, cap)
    if ranking.examined is not None:
        capped.outcome = capped.outcome / ranking.examined
    return capped


def regroup(ranking: Ranking, groups: tuple[str, ...], masks: Masks) -> Ranking:
    """Return the same rows with other groups; masks as in `Ranking`."""
    made = copy.copy(ranking)
    made.groups, made.masks = groups, masks
    made._fingerprint = made._left_out = None
    return made


def read_ranking(
    files: Files,
    columns: ColumnNames,
    *,
    drop: bool,
    extra: Iterable[Hashable] = (),
    done: Callable[[], None] | None = None,
) -> Ranking:
    """Read a log from files into memory.

    Parameters
    ----------
    files : Files
    columns : ColumnNames
    drop : bool
        Whether rows with a missing value are left out.
    extra : iterable of str
        Further columns of scores; any other column is read when it is asked for.
    done : callable, optional
        Called after each file.
    """
    given: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in columns.given().items()
    }
    stamp = files.stamp()
    table = files.read(columns.roles(extra), done)
    made = Ranking(table, **given, missing="drop" if drop else "raise")
    made._files, made._stamp = files, stamp
    return made


def as_ranking(data: Any, **columns: Any) -> Ranking:
    """Return `data` if it is a `Ranking`, else make one of it with the keywords of `Ranking`."""
    given = {name: value for name, value in columns.items() if value is not None}
    if isinstance(data, Ranking):
        if given:
            raise MpcError(
                f"A Ranking must be passed alone, because it already names its columns; got "
                f"{', '.join(given)} too. Leave the keywords out, or pass the table itself."
            )
        return data
    check_named(given)
    return Ranking(data, **given)


def group_index(groups: tuple[str, ...], group: str) -> int:
    """Return the place of a group among the groups of a log."""
    try:
        return groups.index(group)
    except ValueError:
        hint = near_match(group, groups)
        raise MpcError(f"There is no group {group!r} in this ranking.{hint}") from None
