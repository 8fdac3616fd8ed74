"""How the partitions of a cluster's frame become the parts of a log without being moved.

Every partition is read and checked by the same code as a `Ranking`. Whatever else Dask and Spark
share is here too: what they count, what they refuse, and the sentences for a cluster that is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mpc_lab.engines.parts import Part, Parts, PartsSource, count_rows, fit_by_exchange
from mpc_lab.errors import MpcError, near_match
from mpc_lab.pairing.log import Log, sort_rows
from mpc_lab.ranking import ColumnNames, Ranking, cap_outcomes, checks, sum_by
from mpc_lab.ranking.checks import complete_rows
from mpc_lab.ranking.columns import get_column, open_table, read_groups, take_rows
from mpc_lab.roles import ROLES
from mpc_lab.scoring import Column
from mpc_lab.scoring.rules import check_scores
from mpc_lab.vocabulary import ITEM, Ints, Masks

if TYPE_CHECKING:
    from mpc_lab.ranking import Known
    from mpc_lab.results.plan import Plan

# The column that stores the order of the rows, which a shuffle loses.
ORDER = "mpc_lab row"
# How many pairs a part can hold on a cluster, and how many a small cluster can.
PAIRS_OF_A_PART, PAIRS_AT_LEAST = 2_000_000, 50_000_000
# Every part sends something to every bucket of an exchange.
MOST_BUCKETS = 64


def _no_names() -> Masks:
    return np.empty(0, dtype=np.uint64)


@dataclass(frozen=True)
class Spec:
    """How the rows of a log are read.

    Attributes
    ----------
    columns : ColumnNames
    drop : bool
        Whether rows with a missing value are left out.
    groups : tuple of str
        The groups to audit, in the order of the masks.
    extra : tuple of str
        Other score columns.
    outcome_cap : float, optional
        Outcomes above it are set to it.
    owner : {"item", "producer"}
        By whom items are summed.
    """

    columns: ColumnNames
    drop: bool
    groups: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    outcome_cap: float | None = None
    owner: str = ITEM

    @property
    def needed(self) -> list[Any]:
        """All columns that are read."""
        played = (name for _, name in self.columns.played(ROLES.values()))
        return list(dict.fromkeys([*self.extra, *played]))

    @property
    def unit_columns(self) -> list[Any]:
        """The columns that make a unit: those of the query where none is named."""
        query, unit = self.columns.query, self.columns.unit
        made = query if unit is None else unit
        return list(made) if isinstance(made, tuple) else [made]

    @property
    def keywords(self) -> dict[str, Any]:
        """The keywords of the `Ranking` that the rows make."""
        columns = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self.columns.given().items()
        }
        return {**columns, "missing": "drop" if self.drop else "raise"}

    def with_plan(self, plan: Plan) -> Spec:
        """Add the groups of a plan, and the columns that its scoring rules name."""
        columns = [rule for rule in plan.scoring_rules if isinstance(rule, Column)]
        extra = tuple(dict.fromkeys(str(rule.name) for rule in columns))
        groups, cap = plan.masked_groups, plan.outcome_cap
        return replace(self, groups=groups, extra=extra, outcome_cap=cap, owner=plan.owner)


def find_groups(frame: Any, spec: Spec) -> tuple[str, ...]:
    """Return the names of the groups that some rows have."""
    table, columns = open_table(frame), spec.columns
    if spec.drop:
        table = take_rows(table, complete_rows(table, columns))
    if (values := checks.measured_labels(table, columns.group)) is not None:
        checks.raise_first(checks.check_labels(columns.group, values))
    return read_groups(table, columns.group, columns.group_sep).groups if len(table) else ()


def join_groups(found: Iterable[Iterable[str]], empty: Any, spec: Spec) -> tuple[str, ...]:
    """Return the groups of a log from those of its parts, each as in :func:`find_groups`.

    Parameters
    ----------
    found : iterable of iterables of str
    empty : table
        The columns of the log with their types; its rows are not looked at.
    spec : Spec
    """
    groups = tuple(sorted(set().union(*found)))
    if groups and checks.measured_labels(open_table(empty), spec.columns.group) is not None:
        values = np.array([float(group) for group in groups])
        checks.raise_first(checks.check_labels(spec.columns.group, values))
    return groups


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
    made = np.zeros((count_words(wanted), masks.shape[1]), dtype=np.uint64)
    place = {group: k for k, group in enumerate(groups)}
    for k, group in enumerate(wanted):
        if group in place:
            bit = masks[place[group] // 64] >> np.uint64(place[group] % 64) & np.uint64(1)
            made[k // 64] |= bit << np.uint64(k % 64)
    return made


def count_words(groups: tuple[str, ...]) -> int:
    """Return how many words of 64 bits the mask of a row takes."""
    return max(1, -(-len(groups) // 64))


# ---- one partition, read where it is


@dataclass(frozen=True)
class RowTally:
    """What is counted in a partition.

    Attributes
    ----------
    n_rows, dropped, n_capped, n_floored : int
    queries, units, items : uint64 arrays
        Hashes that identify the queries, units and items of the partition among all others.
    producers : uint64 array
        The same for the producer of each item; empty where producers are not known.
    called : uint64 array
        The same for the label of each item, or for the item itself where it has no label; empty
        where labels are not known.
    """

    n_rows: int
    dropped: int
    n_capped: int = 0
    n_floored: int = 0
    queries: Masks = field(default_factory=_no_names)
    units: Masks = field(default_factory=_no_names)
    items: Masks = field(default_factory=_no_names)
    outcome_range: tuple[float, float] | None = None
    producers: Masks = field(default_factory=_no_names)
    called: Masks = field(default_factory=_no_names)


@dataclass(frozen=True)
class Partition:
    """A part of a log, and the counts of its rows."""

    part: Part
    tally: RowTally


def read_partition(frame: Any, spec: Spec, number: int) -> Partition:
    """Read and sort the rows of a partition, which hold whole units."""
    try:
        table = open_table(frame)
        for name in spec.needed:
            get_column(table, name)
        if not len(table) or (spec.drop and not len(complete_rows(table, spec.columns))):
            return Partition(_make_empty(spec), RowTally(0, len(table)))
        ranking = cap_outcomes(Ranking(frame, **spec.keywords), spec.outcome_cap)
        ranking = sum_by(ranking, spec.owner)
        return _sort_partition(ranking, spec, number)
    except MpcError as error:
        raise MpcError(f"In partition {number}: {error}") from error


def _sort_partition(ranking: Ranking, spec: Spec, number: int) -> Partition:
    log = sort_rows(ranking, masks=order_masks(ranking.groups, ranking.masks, spec.groups))
    extra = {}
    for name in spec.extra:
        what = f"The score column {name!r}"
        found = check_scores(ranking.column(name), ranking.n_rows, what)
        extra[name] = ranking.directed(found)[log.row]
    items = _no_names()
    if ranking.item_code is not None:
        items = _hash(ranking.item_labels(np.arange(ranking.n_items)))
    units = queries = _hash(ranking.query_labels(np.arange(ranking.n_queries)))
    if ranking.unit_code is not None:
        units = _hash(ranking.unit_labels(np.arange(ranking.n_units)))
    owners, of_items = _name_producers(ranking, items)
    called = _no_names()
    if ranking.item_label is not None:
        unknown = np.array([label is None for label in ranking.item_label], dtype=np.bool_)
        called = np.where(unknown, items, ~_hash(ranking.item_label))
    kept = len(of_items) or len(called)
    labels = ranking.item_labels(np.arange(ranking.n_items)) if kept else None
    # With equal seeds, partitions would draw the same places of their lists again and again.
    part = Part(replace(log, origin=number << 32), extra, items, owners, labels)
    counts = (ranking.n_rows, ranking.dropped, ranking.n_capped, ranking.n_floored)
    counted = (*counts, queries, units, items, ranking.outcome_range, of_items, called)
    return Partition(part, RowTally(*counted))


def _name_producers(ranking: Ranking, items: Masks) -> tuple[Masks, Masks]:
    """Return hashes that identify producers, by their codes and by the codes of their items."""
    code, item = ranking.producer_code, ranking.item_code
    if code is None or item is None:
        return _no_names(), _no_names()
    labels = ranking.producer_labels(np.arange(ranking.n_producers))
    item_of = np.empty(len(labels), dtype=np.int64)
    item_of[code] = item
    # An item without a producer is its own; no producer has the name of an item.
    unknown = np.array([label is None for label in labels], dtype=np.bool_)
    names = np.where(unknown, items[item_of], ~_hash(labels))
    producer_of = np.empty(len(items), dtype=np.int64)
    producer_of[item] = code
    return names, names[producer_of]


def _check_of_items(role: str, named: list[tuple[Masks, Masks]], parts: Parts) -> None:
    """Refuse an item that has another producer, or label, in another partition."""
    found = _distinct_columns(np.concatenate([np.stack(one) for one in named], axis=1))
    if role == "label":
        found = found[:, found[0] != found[1]]  # it may be missing in some partitions
    twice = np.flatnonzero(found[0, 1:] == found[0, :-1])
    if not len(twice):
        return
    items = [one for one in parts.collect(partial(_label_of, found[0, twice[0]]), "") if one]
    raise MpcError(
        f"An item must have one {role}; got several, in different partitions, for item "
        f"{items[0]}. Correct the column, or name columns in item that tell such items apart."
    )


def _distinct_columns(table: Masks) -> Masks:
    """Return the distinct columns of two rows, ascending; `np.unique` takes many times as long."""
    table = table[:, np.lexsort(table[::-1])]
    fresh = np.ones(table.shape[1], dtype=np.bool_)
    fresh[1:] = (table[:, 1:] != table[:, :-1]).any(axis=0)
    return np.asarray(table[:, fresh])


def _label_of(name: np.uint64, part: Part) -> str:
    """Return an item's label as it is spelt, or nothing if this part does not have the item."""
    at = np.flatnonzero(part.names == name)
    return repr(part.labels[at[0]]) if len(at) and part.labels is not None else ""


def _hash(labels: Any) -> Masks:
    """Return 64 bits for each label, the same on every machine."""
    texts = np.array([repr(label) for label in labels.tolist()], dtype=object)
    return pd.util.hash_array(texts, categorize=False).astype(np.uint64)


def _make_empty(spec: Spec) -> Part:
    none: Ints = np.empty(0, dtype=np.int64)
    no_number, start = np.empty(0), np.zeros(1, dtype=np.int64)
    words = np.empty((count_words(spec.groups), 0), dtype=np.uint64)
    log = Log(start, start, no_number, no_number, words, none, none, none, none)
    return Part(log, dict.fromkeys(spec.extra, no_number))


# ---- all partitions


def check_columns(frame: Any, spec: Spec) -> None:
    """Refuse a frame that lacks a column."""
    known = list(frame.columns)
    checks.check_names(spec.columns, known)
    for name in spec.needed:
        if name not in known:
            raise MpcError(f"There is no column {name!r}.{near_match(str(name), map(str, known))}")


def open_source(known: Known, tallies: list[RowTally], parts: Parts, plan: Plan) -> PartsSource:
    """Check and count what is in all partitions, and make them ready to be walked."""
    dropped = sum(tally.dropped for tally in tallies)
    if not sum(tally.n_rows for tally in tallies):
        raise checks.nothing_left(dropped) if dropped else checks.no_rows()
    if overlap([tally.queries for tally in tallies]):
        raise MpcError(
            "A query must have one unit; got a query with two. Give each query one unit, or name "
            "more columns in query."
        )
    if known.columns.label is not None:
        _check_of_items("label", [(tally.items, tally.called) for tally in tallies], parts)
    if known.columns.producer is not None:
        producers = [(tally.items, tally.producers) for tally in tallies if len(tally.producers)]
        _check_of_items("producer", producers, parts)
    facts = count_rows(
        known,
        parts,
        plan,
        [tally.outcome_range for tally in tallies if tally.outcome_range is not None],
        n_rows=sum(tally.n_rows for tally in tallies),
        n_queries=sum(len(tally.queries) for tally in tallies),
        n_units=sum(len(tally.units) for tally in tallies),
        n_items=len(np.unique(np.concatenate([tally.items for tally in tallies]))),
        dropped=dropped,
        n_capped=sum(tally.n_capped for tally in tallies),
        n_floored=sum(tally.n_floored for tally in tallies),
    )
    fit = partial(fit_by_exchange, parts, len(plan.groups))
    return PartsSource(parts, plan.groups, facts, fit, plan.terms, plan.against_bit)


def overlap(names: list[Masks]) -> bool:
    """Tell whether a name occurs in two partitions."""
    every = np.sort(np.concatenate(names))
    return bool((every[1:] == every[:-1]).any())


# ---- what goes wrong with a cluster


def explain_unreadable(error: Exception, why: str = "") -> MpcError:
    """Return the sentence about a part of a log that its frame could not deliver."""
    lines = str(error).strip().splitlines()
    why = why or ": ".join([type(error).__name__, *lines[:1]])
    return MpcError(
        f"Every part of the log must be readable; got one that is not ({why}). Look for a "
        "damaged or missing file, or an error in the code that makes the frame."
    )


@contextmanager
def explain_lost(is_lost: Callable[[BaseException], bool], sentence: str) -> Iterator[None]:
    """Say in one sentence that a cluster is gone, in place of the pages that its errors fill.

    Parameters
    ----------
    is_lost : callable
        Tells whether an error, or its cause, means that a cluster is gone.
    sentence : str
        With a placeholder for the cluster's own message.
    """
    try:
        yield
    except MpcError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        lost = next((one for one in _chain(error) if is_lost(one)), None)
        if lost is None:
            raise
        raise MpcError(sentence.format(_shorten(lost))) from error


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes: the lost connection may be far down the chain."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _shorten(error: BaseException) -> str:
    """Return the name of an error and its first sentence."""
    first = str(error).strip().split("\n")[0].split(". ")[0].rstrip(".")
    return ": ".join([type(error).__name__, *([first] if first else [])])
