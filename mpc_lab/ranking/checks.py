"""What must hold before a log can be audited; each check has its own sentence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mpc_lab.errors import MpcError
from mpc_lab.ranking.columns import Bools, Codes, Floats, Ints

LARGEST_WHOLE = 2.0**53


def no_rows() -> MpcError:
    """Return the error for a log without rows."""
    return MpcError("The table must have rows, but it is empty: check how it was made.")


def nothing_left(n_rows: int) -> MpcError:
    """Return the error for a log in which every row lacks a value."""
    return MpcError(
        f'A value is missing in each of the {n_rows:,} rows, so that missing="drop" '
        "leaves none: check the columns that were named."
    )


def check_complete(missing: Mapping[str, Bools]) -> None:
    """Raise for the first column, described by its key, that has a missing value."""
    for what, absent in missing.items():
        if absent.any():
            raise incomplete(what, int(absent.sum()), int(absent.argmax()))


def incomplete(what: str, count: int, first: int) -> MpcError:
    """Return the error for missing values, the first of them in row `first`."""
    return MpcError(
        f"{what} must be complete, but it has {_found(count, 'missing value')} in row {first} "
        "(rows count from 0): fill in what is missing, or pass "
        'missing="drop" to leave such rows out.'
    )


def check_finite(values: Floats, rows: Ints, what: str) -> None:
    """Raise where a number is infinite; `rows` are the row numbers the caller knows."""
    infinite = np.isinf(values)
    if infinite.any():
        raise not_finite(what, int(infinite.sum()), int(rows[infinite.argmax()]))


def not_finite(what: str, count: int, first: int) -> MpcError:
    """Return the error for infinite values, the first of them in row `first`."""
    return MpcError(
        f"{what} must be finite, but it has {_found(count, 'infinite value')} in row {first} "
        "(rows count from 0): remove or replace such values."
    )


# Differences of scores and sums of squared outcomes stay finite up to these.
LARGEST = {"score": 1e300, "outcome": 1e100}


def check_size(values: Floats, rows: Ints, role: str, what: str) -> None:
    """Raise where a number is too large to reckon with in 64 bits."""
    large = np.abs(values) > LARGEST[role]
    if large.any():
        first = int(large.argmax())
        raise too_large(role, what, int(rows[first]), float(values[first]))


def too_large(role: str, what: str, row: int, value: float) -> MpcError:
    """Return the error for a number that is too large to reckon with."""
    return MpcError(
        f"{what} must hold numbers of at most {LARGEST[role]:g} in size, but row "
        f"{row} (rows count from 0) has {value:g}: give it in other units."
    )


def _found(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s, the first"


def whole_positions(values: Floats, rows: Ints, what: str) -> Ints:
    """Return positions as int64, or raise unless they are whole numbers from 1 up."""
    wrong = ~((values >= 1) & (values <= LARGEST_WHOLE) & (values == np.floor(values)))
    if wrong.any():
        first = int(wrong.argmax())
        raise no_position(what, int(rows[first]), float(values[first]))
    return values.astype(np.int64)


def no_position(what: str, row: int, value: float) -> MpcError:
    """Return the error for a position that is none."""
    return MpcError(
        f"{what} must hold whole numbers from 1 up, but row {row} (rows count from 0) "
        f"has {value:g}: number the ranked list 1, 2, 3, … from the top."
    )


def check_items(query: Codes, item: Codes) -> None:
    """Raise if an item stands twice in one query."""
    row = _repeated_row(query.codes, item.codes, len(item.labels))
    if row is not None:
        raise item_twice(item.labels[item.codes[row]], query.labels[query.codes[row]])


def item_twice(item: object, query: object) -> MpcError:
    """Return the error for an item that stands twice in a query."""
    return MpcError(
        f"An item may stand only once in a query, but item {item!r} occurs twice in query "
        f"{query!r}: keep one row, or name more columns in query."
    )


def check_positions(query: Codes, position: Ints) -> None:
    """Raise if two rows of one query have one position."""
    codes, uniques = pd.factorize(position)
    row = _repeated_row(query.codes, codes.astype(np.int64), len(uniques))
    if row is not None:
        raise position_twice(int(position[row]), query.labels[query.codes[row]])


def position_twice(position: int, query: object) -> MpcError:
    """Return the error for a position that occurs twice in a query."""
    return MpcError(
        f"Positions must differ within a query, but position {position} occurs twice in "
        f"query {query!r}: correct them, or leave position out."
    )


def _repeated_row(query: Ints, other: Ints, n_other: int) -> int | None:
    """Return the first row whose (query, other) was seen before; both codes are below n rows."""
    key = query * n_other + other
    ordered = np.sort(key)  # vectorised in numpy, and several times faster than a hash table
    if not (ordered[1:] == ordered[:-1]).any():
        return None
    return int(pd.Series(key).duplicated().to_numpy().argmax())


def check_one_per_query(query: Codes, label: Codes, role: str) -> None:
    """Raise if a query has two units, or two segments."""
    of_query = label.codes[query.first_rows()]
    differs = label.codes != of_query[query.codes]
    if differs.any():
        row = int(differs.argmax())
        first = label.labels[of_query[query.codes[row]]]
        second = label.labels[label.codes[row]]
        raise two_of_one(role, query.labels[query.codes[row]], first, second)


def two_of_one(role: str, query: object, first: object, second: object) -> MpcError:
    """Return the error for a query in two units, or two segments."""
    return MpcError(
        f"A query must lie in one {role}, but query {query!r} has {role}s {first!r} and "
        f"{second!r}: give each query one {role}, or name more columns in query."
    )
