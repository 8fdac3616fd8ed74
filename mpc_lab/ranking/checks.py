"""What must hold before a log can be audited: one list of checks, each with its own sentence.

Every check gives a `Problem`. A `Ranking` raises the first; the panel that starts from a log shows
all of them; DuckDB, which has no arrays, uses only the sentences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from mpc_lab.errors import MpcError, near_matches
from mpc_lab.ranking.columns import (
    Codes,
    Frame,
    Membership,
    combine,
    encode,
    get_column,
    is_missing,
    label_names,
    numbers,
    pandas_series,
    read_groups,
    take_rows,
)
from mpc_lab.ranking.examination import Curve
from mpc_lab.ranking.names import OF_ITEMS, ColumnNames
from mpc_lab.roles import ROLES, Role
from mpc_lab.text import listing
from mpc_lab.vocabulary import Flags, Floats, Ints, Objects

LARGEST_WHOLE = 2.0**53
# Differences of scores and sums of squared outcomes stay finite up to these.
LARGEST = {"score": 1e300, "outcome": 1e100}
# Squares of weights and of sums of weights are numbers between these.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100
# A column of floats with more different values is a price or an age, not labels.
MOST_DECIMALS = 50
IDS = tuple(role for role in ROLES.values() if not role.is_number and role.name != "group")
NUMBERS = tuple(role for role in ROLES.values() if role.is_number)


@dataclass(frozen=True)
class Problem:
    """Rows that break a rule.

    Attributes
    ----------
    role : Role
        The role of the column that breaks the rule.
    words : str
        What is wrong, in words that follow the name of the column: "is missing".
    where : array of bool
        The rows.
    error : MpcError
        What a `Ranking` raises.
    """

    role: Role
    words: str
    where: Flags
    error: MpcError


def raise_first(problems: Iterable[Problem]) -> None:
    """Raise the error of the first problem, if there is one."""
    for problem in problems:
        raise problem.error


# ---- the checks


def check_present(role: Role, column: Hashable, missing: Flags, rows: Ints) -> Iterator[Problem]:
    """Yield the rows that lack a value; `rows` are their numbers as the caller knows them."""
    if missing.any():
        error = incomplete(role.describe(column), *_count_and_first(missing, rows))
        yield Problem(role, "is missing", missing, error)


def check_numbers(role: Role, column: Hashable, values: Floats, rows: Ints) -> Iterator[Problem]:
    """Yield the rows whose number cannot be used; NaN is not looked at."""
    what = role.describe(column)
    if role.name == "weight":
        wrong = ~((values >= SMALLEST_WEIGHT) & (values <= LARGEST_WEIGHT)) & ~np.isnan(values)
        if wrong.any():
            first = int(wrong.argmax())
            error = no_weight(what, int(rows[first]), float(values[first]))
            yield Problem(role, "is not above 0 and finite", wrong, error)
        return
    if role.name == "position":
        wrong = ~((values >= 1) & (values <= LARGEST_WHOLE) & (values == np.floor(values)))
        wrong &= ~np.isnan(values)
        if wrong.any():
            first = int(wrong.argmax())
            error = no_position(what, int(rows[first]), float(values[first]))
            yield Problem(role, "is not a whole number from 1 up", wrong, error)
        return
    if role.name == "examined":
        wrong = ~((values > 0) & (values <= 1)) & ~np.isnan(values)
        if wrong.any():
            first = int(wrong.argmax())
            error = no_probability(what, int(rows[first]), float(values[first]))
            yield Problem(role, "is not above 0 and at most 1", wrong, error)
        return
    infinite = np.isinf(values)
    if infinite.any():
        error = not_finite(what, *_count_and_first(infinite, rows))
        yield Problem(role, "is infinite", infinite, error)
    large = (np.abs(values) > LARGEST[role.name]) & ~infinite
    if large.any():
        first = int(large.argmax())
        error = too_large(role.name, what, int(rows[first]), float(values[first]))
        yield Problem(role, "is too large", large, error)


def check_labels(group: Hashable, values: Floats) -> Iterator[Problem]:
    """Yield the rows with decimals of a column of groups that measures and does not label.

    Parameters
    ----------
    group : hashable
        The column.
    values : float64 array
        As in :func:`measured_labels`.
    """
    decimal = np.isfinite(values) & (values != np.floor(values))
    if not decimal.any():
        return
    count = len(np.unique(values[~np.isnan(values)]))
    if count > MOST_DECIMALS:
        error = too_many_decimals(group, count, float(values[decimal.argmax()]))
        yield Problem(ROLES["group"], "is a number with decimals", decimal, error)


def measured_labels(table: Frame, group: Hashable) -> Floats | None:
    """Return the labels of groups where they are one column of floats; NaN where one is missing."""
    if isinstance(group, tuple):
        return None
    series = get_column(table, group, "group")
    return numbers(series, "") if series.dtype.is_float() else None


def check_in_query(role: Role, query: Codes, other: Codes) -> Iterator[Problem]:
    """Yield rows of a query with equal values that must differ, or unequal ones that must agree."""
    if role.is_unique:
        key = query.codes * len(other.labels) + other.codes  # both are below the number of rows
        ordered = np.sort(key)  # numpy's sort is several times faster than a hash table
        if (ordered[1:] == ordered[:-1]).any():
            keys = pd.Series(key)
            row = int(keys.duplicated().to_numpy().argmax())
            error = _twice(role, other.labels[other.codes[row]], query.labels[query.codes[row]])
            where = keys.duplicated(keep=False).to_numpy()
            yield Problem(role, "occurs more than once in a query", where, error)
    if role.is_constant:
        of_query = other.codes[query.first_rows()][query.codes]
        differs = other.codes != of_query
        if differs.any():
            row = int(differs.argmax())
            labels = other.labels[of_query[row]], other.labels[other.codes[row]]
            said = two_weights if role.is_number else partial(two_of_one, role.name)
            error = said(query.labels[query.codes[row]], *labels)
            yield Problem(role, "differs inside a query", differs, error)


def _count_and_first(where: Flags, rows: Ints) -> tuple[int, int]:
    return int(where.sum()), int(rows[where.argmax()])


# ---- their sentences


def no_rows() -> MpcError:
    """Return the error for a log without rows."""
    return MpcError("The table must have rows; got none. Check how it was made.")


def nothing_left(n_rows: int) -> MpcError:
    """Return the error for a log in which every row lacks a value."""
    return MpcError(
        f"At least one row must be complete; got {n_rows:,} rows that each lack a value, so "
        'missing="drop" would leave none. Check the columns that were named.'
    )


def incomplete(what: str, count: int, first: int) -> MpcError:
    """Return the error for missing values, the first of them in row `first`."""
    return MpcError(
        f"{what} must be complete; got {_found(count, 'missing value')} in row {first} "
        '(rows count from 0). Fill in what is missing, or pass missing="drop" to leave such rows '
        "out."
    )


def not_finite(what: str, count: int, first: int) -> MpcError:
    """Return the error for infinite values, the first of them in row `first`."""
    return MpcError(
        f"{what} must be finite; got {_found(count, 'infinite value')} in row {first} "
        "(rows count from 0). Remove or replace such values."
    )


def _found(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s, the first"


def too_large(role: str, what: str, row: int, value: float) -> MpcError:
    """Return the error for a number that is too large for sums in 64 bits."""
    return MpcError(
        f"{what} must hold numbers of at most {LARGEST[role]:g} in size; got {value:g} in row "
        f"{row} (rows count from 0). Give it in other units."
    )


def no_position(what: str, row: int, value: float) -> MpcError:
    """Return the error for a number that is not a position."""
    return MpcError(
        f"{what} must hold whole numbers from 1 up; got {value:g} in row {row} (rows count from "
        "0). Number the ranked list 1, 2, 3, … from the top."
    )


def no_probability(what: str, row: int, value: float) -> MpcError:
    """Return the error for a number that is not a probability above 0."""
    return MpcError(
        f"{what} must hold numbers above 0 and at most 1; got {value:g} in row {row} (rows count "
        "from 0). Give the probability that the row was looked at."
    )


def no_examination(place: float, count: int) -> MpcError:
    """Return the error for a place of the log that `examined` does not have."""
    rows = "1 row" if count == 1 else f"{count:,} rows"
    return MpcError(
        f"examined must have each place in the log; got none for place {place:g} ({rows} at such "
        'places). Add the places, or pass missing="drop" to leave such rows out.'
    )


def too_many_decimals(group: Hashable, count: int, example: float) -> MpcError:
    """Return the error for a group column that is a measurement."""
    return MpcError(
        f"{ROLES['group'].describe(group)} must hold labels; got {count:,} different numbers such "
        f"as {example:g}. Cut it into bins, as with pandas.qcut, or pass it to "
        f"audit.partial(covariates=[{group!r}])."
    )


def _twice(role: Role, value: Any, query: object) -> MpcError:
    if role.name == "position":
        return position_twice(int(value), query)
    return item_twice(value, query)


def item_twice(item: object, query: object) -> MpcError:
    """Return the error for an item that occurs twice in a query."""
    return MpcError(
        f"An item must occur only once in a query; got item {item!r} twice in query {query!r}. "
        "Keep one row, or name more columns in query."
    )


def position_twice(position: int, query: object) -> MpcError:
    """Return the error for a position that occurs twice in a query."""
    return MpcError(
        f"Positions must differ within a query; got position {position} twice in query {query!r}. "
        "Correct them, or leave position out."
    )


def two_of_one(role: str, query: object, first: object, second: object) -> MpcError:
    """Return the error for a query in two units, or two segments."""
    return MpcError(
        f"A query must have one {role}; got {role}s {first!r} and {second!r} for query {query!r}. "
        f"Give each query one {role}, or name more columns in query."
    )


def two_of_item(role: str, item: object, first: object, second: object) -> MpcError:
    """Return the error for an item with two producers or labels; None is a missing one."""
    one, other = ("none" if label is None else repr(label) for label in (first, second))
    return MpcError(
        f"An item must have one {role}; got {one} and {other} for item {item!r}. Correct the "
        "column, or name columns in item that tell such items apart."
    )


def no_weight(what: str, row: int, value: float) -> MpcError:
    """Return the error for a number that cannot be the weight of a query."""
    return MpcError(
        f"{what} must hold numbers above 0, from {SMALLEST_WEIGHT:g} to {LARGEST_WEIGHT:g}; got "
        f"{value:g} in row {row} (rows count from 0). Give each query one over the probability "
        "that it was sampled, or leave its rows out."
    )


def two_weights(query: object, first: object, second: object) -> MpcError:
    """Return the error for a query with two weights."""
    return MpcError(
        f"All rows of a query must have one weight; got {first:g} and {second:g} for query "
        f"{query!r}. Give each query one weight, or name more columns in query."
    )


# ---- rows that were left out because a value is missing: are they as common in every group?


@dataclass(frozen=True)
class LeftOut:
    """All rows of a table of which some were left out.

    Attributes
    ----------
    membership : Membership
        The groups of all rows.
    gone : bool array
        Which rows were left out.
    query : int64 array
        The query of each row; a row without one is a query of its own.
    """

    membership: Membership
    gone: Flags
    query: Ints

    def compare(self) -> Iterator[tuple[str, float, float, float]]:
        """Yield for each group: the shares left out inside and outside, and a p-value.

        The p-value is two-sided, normal, and clustered by query. It is of the angles of the shares,
        whose error does not depend on them: a small group of which little was left out, by chance,
        would seem to know its share exactly.
        """
        centred = self.gone.astype(np.float64) - float(self.gone.mean())
        every: Floats = np.bincount(self.query, centred).astype(np.float64)
        for number, group in enumerate(self.membership.groups):
            word = self.membership.masks[number // 64]
            inside = np.flatnonzero((word >> np.uint64(number % 64)) & np.uint64(1))
            if 0 < len(inside) < len(self.gone):
                of_group: Floats = np.zeros(len(every))
                of_group += np.bincount(self.query[inside], centred[inside], len(every))
                yield group, *self._difference(inside, of_group, every - of_group)

    def _difference(
        self, inside: Ints, of_group: Floats, of_others: Floats
    ) -> tuple[float, float, float]:
        """Compare the rows of a group with the others, given what queries add up to in each."""
        rows = len(inside), len(self.gone) - len(inside)
        gone = int(self.gone[inside].sum())
        counts = gone, int(self.gone.sum()) - gone
        shares = [count / n for count, n in zip(counts, rows, strict=True)]
        all_gone = sum(counts) / sum(rows)
        apart = [
            (count * (1 - all_gone) ** 2 + (n - count) * all_gone**2) / n**2
            for count, n in zip(counts, rows, strict=True)
        ]
        together = ((of_group / rows[0] - of_others / rows[1]) ** 2).sum()
        clustered = together / max(sum(apart), 1e-300)
        error = math.sqrt((1 / rows[0] + 1 / rows[1]) * float(clustered)) / 2
        angles = [math.asin(math.sqrt(share)) for share in shares]
        distance = abs(angles[0] - angles[1])
        z = distance / error if error > 0 else np.inf if distance else 0.0
        return shares[0], shares[1], math.erfc(z / math.sqrt(2))


def find_left_out(table: Frame, columns: ColumnNames, kept: Ints) -> LeftOut:
    """Return what was left out of a table, given the rows that stay."""
    gone = np.ones(len(table), dtype=np.bool_)
    gone[kept] = False
    first = columns.query[0] if isinstance(columns.query, tuple) else columns.query
    series = get_column(table, first, "query")
    absent = is_missing(series)
    query = np.empty(len(table), dtype=np.int64)
    known = np.flatnonzero(~absent)
    query[known] = encode(series[known], "query").codes
    query[absent] = len(known) + np.arange(int(absent.sum()))
    return LeftOut(read_groups(table, columns.group, columns.group_sep), gone, query)


# ---- a log, read and checked


@dataclass(frozen=True)
class ReadRows:
    """The columns of a log as arrays; None for columns that were not given."""

    table: Frame
    kept: Ints
    dropped: int
    query: Codes
    item: Codes | None
    producer: Codes | None
    item_label: Objects | None
    unit: Codes | None
    segment: Codes | None
    score: Floats
    outcome: Floats
    position: Ints | None
    examined: Floats | None
    time: Ints | None
    weight: Floats | None
    membership: Membership
    left_out: Callable[[], LeftOut] | None


def read_rows(table: Frame, columns: ColumnNames, *, drop: bool) -> ReadRows:
    """Read and check every column; `drop` leaves out rows with a missing value."""
    if not len(table):
        raise no_rows()
    check_names(columns, table.columns)
    floats = _read_numbers(table, columns)
    keep = _complete_rows(table, columns, floats, drop=drop)
    dropped = len(table) - len(keep)
    left_out = None
    if dropped:
        left_out = partial(find_left_out, table, columns, keep)
        table = take_rows(table, keep)
        floats = {role: values[keep] for role, values in floats.items()}
    for role in LARGEST.keys() & floats.keys():
        raise_first(check_numbers(ROLES[role], getattr(columns, role), floats[role], keep))
    if (values := measured_labels(table, columns.group)) is not None:
        raise_first(check_labels(columns.group, values))
    ids = _read_ids(table, columns)
    for name in ("item", "unit", "segment"):
        if name in ids:
            raise_first(check_in_query(ROLES[name], ids["query"], ids[name]))
    for name in OF_ITEMS:
        if name in ids:
            raise_first(check_of_items(ROLES[name], ids["item"], ids[name]))
    if "segment" in ids:
        what = ROLES["segment"].describe(columns.segment)
        ids["segment"] = _sort_by_name(ids["segment"], what)
    return ReadRows(
        table=table,
        kept=keep,
        dropped=dropped,
        query=ids["query"],
        item=ids.get("item"),
        producer=ids.get("producer"),
        item_label=_label_items(ids["item"], ids["label"]) if "label" in ids else None,
        unit=ids.get("unit"),
        segment=ids.get("segment"),
        score=directed_score(columns, floats),
        outcome=floats["outcome"],
        position=_read_positions(columns, floats, ids["query"], keep),
        examined=_read_examined(columns, floats, keep),
        time=_read_times(table, columns),
        weight=_read_weights(columns, floats, ids["query"], keep),
        membership=read_groups(table, columns.group, columns.group_sep),
        left_out=left_out,
    )


def check_names(columns: ColumnNames, known: Iterable[object], log: str = "The log") -> None:
    """Refuse a log that lacks several columns, naming all; one alone is refused where it is read.

    Parameters
    ----------
    columns : ColumnNames
    known : iterable
        The columns that there are.
    log : str
        What the log is called in the message.
    """
    there = list(known)
    played = [(role.name, name) for role, name in columns.played(ROLES.values())]
    absent = {name: role for role, name in played if isinstance(name, str) and name not in there}
    if len(absent) > 1:
        named = listing([f"{name!r} as {role}" for name, role in absent.items()])
        hint = near_matches(absent, map(str, there))
        raise MpcError(
            f"{log} must have every column that is named; got {named}, which are not there.{hint}"
        )


def directed_score(columns: ColumnNames, floats: dict[str, Floats]) -> Floats:
    """Return the score of each row, larger for items that are ranked higher."""
    if columns.is_rank_only:
        return 0.0 - floats["position"]
    return 0.0 - floats["score"] if columns.ascending else floats["score"]


def complete_rows(table: Frame, columns: ColumnNames) -> Ints:
    """Return the numbers of the rows in which nothing is missing."""
    missing = _missing(table, columns, _read_numbers(table, columns))
    return np.flatnonzero(~np.logical_or.reduce([where for _, _, where in missing]))


def _complete_rows(
    table: Frame, columns: ColumnNames, floats: dict[str, Floats], *, drop: bool
) -> Ints:
    missing = _missing(table, columns, floats)
    if not drop:
        rows = np.arange(len(table))
        for role, name, where in missing:
            if isinstance(name, Curve) and where.any():
                place = floats["position"][where]
                raise no_examination(float(place[0]), int(where.sum()))
            raise_first(check_present(role, name, where, rows))
    keep = np.flatnonzero(~np.logical_or.reduce([where for _, _, where in missing]))
    if not len(keep):
        raise nothing_left(len(table))
    return keep


def _missing(
    table: Frame, columns: ColumnNames, floats: dict[str, Floats]
) -> list[tuple[Role, Hashable, Flags]]:
    found = [
        (role, name, is_missing(get_column(table, name, role.name)))
        for role, name in columns.played(role for role in IDS if not role.may_be_missing)
    ]
    found += [(role, name, np.isnan(floats[role.name])) for role, name in columns.played(NUMBERS)]
    if columns.examined_curve is not None:
        found.append((ROLES["examined"], columns.examined, np.isnan(floats["examined"])))
    return found


def _read_numbers(table: Frame, columns: ColumnNames) -> dict[str, Floats]:
    found = {
        role.name: numbers(get_column(table, name, role.name), role.describe(name))
        for role, name in columns.played(NUMBERS)
    }
    if columns.examined_curve is not None:
        found["examined"] = columns.examined_curve.at(found["position"])
    return found


def _read_ids(table: Frame, columns: ColumnNames) -> dict[str, Codes]:
    parts: dict[str, list[Codes]] = {}
    apart = ("time", *OF_ITEMS)
    for role, name in columns.played(role for role in IDS if role.name not in apart):
        coded = encode(get_column(table, name, role.name), role.describe(name))
        parts.setdefault(role.name, []).append(coded)
    ids = {role: found[0] if len(found) == 1 else combine(found) for role, found in parts.items()}
    for role, name in columns.played(ROLES[name] for name in OF_ITEMS):
        series = get_column(table, name, role.name)
        ids[role.name] = read_of_items(series, role.describe(name), ids["item"])
    return ids


def read_of_items(series: Any, what: str, item: Codes) -> Codes:
    """Return the producer, or label, of each row; an item without one gets one of its own.

    Its label is None, which no column contains.
    """
    missing = is_missing(series)
    rows = np.flatnonzero(~missing)
    named = encode(series[rows], what) if len(rows) else Codes(rows, np.empty(0, dtype=object))
    blank = (isinstance(label, str) and not label.strip() for label in named.labels)
    is_blank = np.fromiter(blank, dtype=np.bool_, count=len(named.labels))
    rows = rows[~is_blank[named.codes]]
    missing = np.ones(len(missing), dtype=np.bool_)
    missing[rows] = False
    place = np.cumsum(~is_blank) - 1
    codes = np.empty(len(missing), dtype=np.int64)
    codes[rows] = place[named.codes[~is_blank[named.codes]]]
    own, items = pd.factorize(item.codes[missing])
    codes[missing] = int((~is_blank).sum()) + own
    labels = np.concatenate([named.labels[~is_blank], np.full(len(items), None, dtype=object)])
    return Codes(codes, labels)


def check_of_items(role: Role, item: Codes, other: Codes) -> Iterator[Problem]:
    """Yield the rows whose item has another producer, or label, in an earlier row."""
    known, first = _first_of_items(item, other, may_lack=role.name == "label")
    differs = known & (other.codes != first[item.codes])
    if differs.any():
        row = int(differs.argmax())
        labels = other.labels[first[item.codes[row]]], other.labels[other.codes[row]]
        error = two_of_item(role.name, item.labels[item.codes[row]], *labels)
        yield Problem(role, "differs for one item", differs, error)


def _label_items(item: Codes, label: Codes) -> Objects:
    """Return the label of each item as text; None where no row has one."""
    first = _first_of_items(item, label, may_lack=True)[1].tolist()
    return np.array([None if one < 0 else str(label.labels[one]) for one in first], dtype=object)


def _first_of_items(item: Codes, other: Codes, *, may_lack: bool) -> tuple[Flags, Ints]:
    """Return which rows count, and the first code of each item in these, else -1."""
    counts = np.array([not may_lack or one is not None for one in other.labels], dtype=np.bool_)
    known, first = counts[other.codes], np.full(len(item.labels), -1, dtype=np.int64)
    rows = np.flatnonzero(known)[::-1]
    first[item.codes[rows]] = other.codes[rows]
    return known, first


def _read_positions(
    columns: ColumnNames, floats: dict[str, Floats], query: Codes, rows: Ints
) -> Ints | None:
    if columns.position is None:
        return None
    role, values = ROLES["position"], floats["position"]
    raise_first(check_numbers(role, columns.position, values, rows))
    position = values.astype(np.int64)
    raise_first(check_in_query(role, query, encode_numbers(position)))
    return position


def _read_weights(
    columns: ColumnNames, floats: dict[str, Floats], query: Codes, rows: Ints
) -> Floats | None:
    """Return the weight of each row's query."""
    if columns.weight is None:
        return None
    role, values = ROLES["weight"], floats["weight"]
    raise_first(check_numbers(role, columns.weight, values, rows))
    raise_first(check_in_query(role, query, encode_numbers(values)))
    return values


def _read_examined(columns: ColumnNames, floats: dict[str, Floats], rows: Ints) -> Floats | None:
    if columns.examined is None:
        return None
    raise_first(check_numbers(ROLES["examined"], columns.examined, floats["examined"], rows))
    return floats["examined"]


def _read_times(table: Frame, columns: ColumnNames) -> Ints | None:
    """Return the place of each row's time among all times."""
    if columns.time is None:
        return None
    values = pandas_series(get_column(table, columns.time, "time")).infer_objects()
    try:
        if not pd.api.types.is_numeric_dtype(values.dtype):
            values = pd.to_datetime(values, utc=True, format="ISO8601")
        return np.unique(values.to_numpy(), return_inverse=True)[1].astype(np.int64)
    except (TypeError, ValueError) as error:
        raise MpcError(
            f"{ROLES['time'].describe(columns.time)} must hold numbers, dates or texts such as "
            f"'2026-03-01 12:00'; got one such as {values.iloc[0]!r}. Convert the column first."
        ) from error


def encode_numbers(values: Ints | Floats) -> Codes:
    """Return the codes of numbers."""
    codes, labels = pd.factorize(values)
    return Codes(codes.astype(np.int64), labels.astype(object))


def _sort_by_name(segment: Codes, what: str) -> Codes:
    """Renumber the segments in the order of their names."""
    names = np.array(label_names(segment.labels.tolist(), what), dtype=object)
    order = np.argsort(names, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Codes(rank[segment.codes], names[order])
