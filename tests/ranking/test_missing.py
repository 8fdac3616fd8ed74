"""Missing values are an error, or are left out and counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from helpers.ranking_logs import KINDS, assert_same, make, small_log
from mpc_lab.errors import MpcError

PARTS: dict[str, list[Any]] = {
    "query": [7, 7, None, 3, None],
    "item": ["b", "a", None, "a", None],
    "score": [0.5, 0.25, None, -1.0, None],
    "outcome": [5, 3, None, 1, None],
    "unit": ["x", "x", None, "y", None],
    "segment": ["x", "x", None, "y", None],
    "position": [2, 1, None, 1, None],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", PARTS)
def test_missing_values_are_counted_in_the_error(part: str, kind: str) -> None:
    log = KINDS[kind](small_log(part=PARTS[part]))
    message = f'{part} column .part.*2 missing values, the first in row 2 .*missing="drop"'
    with pytest.raises(MpcError, match=message):
        make(log, **{part: "part"})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", PARTS)
def test_dropping_is_the_same_as_never_having_had_the_rows(part: str, kind: str) -> None:
    log = small_log(part=PARTS[part])
    whole = {name: [values[row] for row in (0, 1, 3)] for name, values in log.items()}
    dropped = make(KINDS[kind](log), **{part: "part"}, missing="drop")
    assert dropped.dropped == 2
    assert_same(dropped, make(whole, **{part: "part"}))


@pytest.mark.parametrize("kind", ["arrays", "pandas", "pandas arrow", "polars", "pyarrow"])
def test_nan_is_missing_everywhere(kind: str) -> None:
    log = small_log(user=[7.0, 7.0, np.nan, 3.0, 3.0], score=[np.nan, 1.0, 1.0, 1.0, 2.0])
    ranking = make(KINDS[kind](log), missing="drop")
    assert ranking.dropped == 2
    assert ranking.query_labels(ranking.query_code).tolist() == [7.0, 3.0, 3.0]


def test_a_row_with_two_missing_values_is_dropped_once() -> None:
    log = small_log(movie=[None, "a", "c", "a", "d"], score=[None, 1.0, 2.0, None, 3.0])
    ranking = make(log, missing="drop")
    assert (ranking.dropped, ranking.n_rows) == (2, 3)


def test_one_missing_value_is_not_called_values() -> None:
    with pytest.raises(MpcError, match="got 1 missing value in row 3 "):
        make(small_log(score=[1.0, 2.0, 3.0, None, 4.0]))


def test_one_of_several_query_columns_may_be_missing() -> None:
    log = small_log(day=[1, 1, 1, None, 2])
    with pytest.raises(MpcError, match="query column 'day' must be complete"):
        make(log, query=["user", "day"])
    assert make(log, query=["user", "day"], missing="drop").n_rows == 4


def test_a_null_group_is_not_a_missing_value() -> None:
    assert make(small_log(genres=[None] * 5), missing="drop").dropped == 0


def test_a_group_of_dropped_rows_only_disappears() -> None:
    ranking = make(
        small_log(genres=list("abcde"), score=[None, 1.0, 1.0, 1.0, 1.0]), missing="drop"
    )
    assert ranking.groups == ("b", "c", "d", "e")


def test_row_numbers_in_errors_are_those_of_the_table() -> None:
    log = small_log(score=[None, None, 1.0, np.inf, 2.0])
    with pytest.raises(MpcError, match="1 infinite value in row 3 "):
        make(log, missing="drop")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_after_dropping(kind: str) -> None:
    with pytest.raises(MpcError, match="got 5 rows that each lack a value"):
        make(KINDS[kind](small_log(score=[None] * 5)), missing="drop")


def test_an_item_is_counted_once_after_dropping() -> None:
    log = pd.DataFrame(small_log(movie=["a", "a", "c", "a", "d"], score=[None, 1, 2, 3, 4]))
    assert make(log, missing="drop").n_items == 3
