"""What must hold before a log can be audited; each check has its own sentence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mpc_lab.errors import MpcError
from mpc_lab.ranking.columns import Bools, Codes, Floats, Ints

_LARGEST_WHOLE = 2.0**53


def check_complete(missing: Mapping[str, Bools]) -> None:
    """Raise for the first column, described by its key, that has a missing value."""
    for what, absent in missing.items():
        if absent.any():
            raise MpcError(
                f"{what} must be complete, but it has {_found(absent, 'missing value')} in row "
                f"{int(absent.argmax())} (rows count from 0): fill in what is missing, or pass "
                'missing="drop" to leave such rows out.'
            )


def check_finite(values: Floats, rows: Ints, what: str) -> None:
    """Raise where a number is infinite; `rows` are the row numbers the caller knows."""
    infinite = np.isinf(values)
    if infinite.any():
        raise MpcError(
            f"{what} must be finite, but it has {_found(infinite, 'infinite value')} in row "
            f"{rows[infinite.argmax()]} (rows count from 0): remove or replace such values."
        )


# Differences of scores and sums of squared outcomes stay finite up to these.
_LARGEST = {"score": 1e300, "outcome": 1e100}


def check_size(values: Floats, rows: Ints, role: str, what: str) -> None:
    """Raise where a number is too large to reckon with in 64 bits."""
    large = np.abs(values) > _LARGEST[role]
    if large.any():
        first = int(large.argmax())
        raise MpcError(
            f"{what} must hold numbers of at most {_LARGEST[role]:g} in size, but row "
            f"{rows[first]} (rows count from 0) has {values[first]:g}: give it in other units."
        )


def _found(where: Bools, noun: str) -> str:
    count = int(where.sum())
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s, the first"


def whole_positions(values: Floats, rows: Ints, what: str) -> Ints:
    """Return positions as int64, or raise unless they are whole numbers from 1 up."""
    wrong = ~((values >= 1) & (values <= _LARGEST_WHOLE) & (values == np.floor(values)))
    if wrong.any():
        first = int(wrong.argmax())
        raise MpcError(
            f"{what} must hold whole numbers from 1 up, but row {rows[first]} (rows count from 0) "
            f"has {values[first]:g}: number the ranked list 1, 2, 3, … from the top."
        )
    return values.astype(np.int64)


def check_items(query: Codes, item: Codes) -> None:
    """Raise if an item stands twice in one query."""
    row = _repeated_row(query.codes, item.codes, len(item.labels))
    if row is not None:
        raise MpcError(
            f"An item may stand only once in a query, but item {item.labels[item.codes[row]]!r} "
            f"occurs twice in query {query.labels[query.codes[row]]!r}: keep one row, "
            "or name more columns in query."
        )


def check_positions(query: Codes, position: Ints) -> None:
    """Raise if two rows of one query have one position."""
    codes, uniques = pd.factorize(position)
    row = _repeated_row(query.codes, codes.astype(np.int64), len(uniques))
    if row is not None:
        raise MpcError(
            f"Positions must differ within a query, but position {position[row]} occurs twice in "
            f"query {query.labels[query.codes[row]]!r}: correct them, or leave position out."
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
        raise MpcError(
            f"A query must lie in one {role}, but query {query.labels[query.codes[row]]!r} has "
            f"{role}s {first!r} and {label.labels[label.codes[row]]!r}: give each query one "
            f"{role}, or name more columns in query."
        )
