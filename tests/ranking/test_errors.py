"""Bad input gets one sentence: what was expected, what was given, what to do."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from helpers.ranking_logs import KINDS, make, small_log
from mpc_lab.errors import MpcError
from mpc_lab.ranking import as_ranking

INFINITE = [1.0, np.inf, 2.0, 3.0, -np.inf]

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "misspelt query": (
        {},
        {"query": "usr"},
        "no column 'usr' to use as query. Did you mean 'user'",
    ),
    "misspelt part": ({}, {"query": ["user", "dya"]}, "no column 'dya' to use as query"),
    "misspelt score": ({}, {"score": "scroe"}, "Did you mean 'score'"),
    "unlike any": ({}, {"outcome": "zzz"}, "There are: 'user', 'movie', 'score'"),
    "misspelt group": ({}, {"group": "genre"}, "Did you mean 'genres'"),
    "no query": ({}, {"query": None}, "query must be the name of one column; got None"),
    "empty query": ({}, {"query": []}, "list of different columns; got .."),
    "query twice": ({}, {"query": ["user", "user"]}, "Name each column once"),
    "two items": ({}, {"item": ["movie", "user"]}, "item must be the name of one column"),
    "bad missing": ({}, {"missing": "ignore"}, "missing must be .raise. or .drop.; got 'ignore'"),
    "text score": (
        {"score": list("abcde")},
        {},
        "score column 'score' must hold numbers.*text. Convert",
    ),
    "digits": ({"rating": list("12345")}, {}, "outcome column 'rating'.*got text.*to_numeric"),
    "dates": (
        {"score": [dt.datetime(2024, 1, 1)] * 5},
        {},
        "must hold numbers; got ",
    ),
    "infinite score": (
        {"score": INFINITE},
        {},
        "'score' must be finite.*2 infinite values.*row 1 ",
    ),
    "infinite outcome": ({"rating": INFINITE}, {}, "outcome column 'rating' must be finite"),
    "item twice": (
        {"movie": ["b", "a", "b", "x", "y"]},
        {},
        "item 'b' twice in query 7",
    ),
    "position 0": ({"p": [1, 0, 2, 1, 2]}, {"position": "p"}, "numbers from 1 up; got 0 in row 1 "),
    "position 2.5": ({"p": [1, 2, 2.5, 1, 2]}, {"position": "p"}, "got 2.5 in row 2 "),
    "position inf": ({"p": [1, 2, np.inf, 1, 2]}, {"position": "p"}, "got inf in row 2 "),
    "position twice": (
        {"p": [1, 2, 2, 1, 2]},
        {"position": "p"},
        "position 2 twice in query 7",
    ),
    "text position": (
        {"p": list("12312")},
        {"position": "p"},
        "position column 'p' must hold numbers",
    ),
    "two units": ({"u": [1, 1, 2, 1, 1]}, {"unit": "u"}, "got units 1 and 2 for query 7"),
    "two segments": (
        {"c": list("aaabc")},
        {"segment": "c"},
        "got segments 'b' and 'c' for query 3",
    ),
}


@pytest.mark.parametrize("kind", ["dict", "pandas", "pandas objects", "polars", "pyarrow"])
@pytest.mark.parametrize("case", CASES)
def test_bad_columns(case: str, kind: str) -> None:
    changes, columns, message = CASES[case]
    with pytest.raises(MpcError, match=message):
        make(KINDS[kind](small_log(**changes)), **columns)


NOT_TABLES: dict[str, tuple[Callable[[], Any], str]] = {
    "list": (lambda: [1, 2], "a dict of arrays; got list"),
    "path": (lambda: "log.csv", "got str"),
    "matrix": (lambda: np.zeros((2, 2)), "got numpy.ndarray"),
    "series": (lambda: pd.Series([1]), "got pandas.*Series"),
    "lazy polars": (lambda: pl.LazyFrame(small_log()), "must be in memory.*LazyFrame.*collect"),
    "duckdb": (lambda: duckdb.sql("select 1 as user"), "must be in memory.*Collect it first"),
    "ranking": (make, "got mpc_lab.*Ranking"),
}


@pytest.mark.parametrize("case", NOT_TABLES)
def test_what_is_not_a_table(case: str) -> None:
    build, message = NOT_TABLES[case]
    data = build()
    with pytest.raises(MpcError, match=message):
        make(data)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (np.zeros((5, 2)), "'score' of the dict must have one dimension; got 2"),
        ([1.0, 2.0], "one length; got 5 for 'user', 5 for 'movie', 2 for 'score'"),
        (3.0, "'score' of the dict must be an array; got float"),
        ("abcde", "must be an array; got str"),
        ({1.0, 2.0}, "must be an array; got set"),
        (np.float64(3), "must be an array; got float64"),
        ([1j] * 5, "must hold numbers; got complex128"),
        ([10**400, 1, 2, 3, 4], "some value does not fit a float64|too large to convert to float"),
        ([[1], [2], [3], [4], [5]], "must hold numbers; got Python objects"),
    ],
)
def test_a_dict_of_something_else(score: Any, message: str) -> None:
    with pytest.raises(MpcError, match=message):
        make(small_log(score=score))


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([[1, 2, 3]], columns=["user", "twin", "twin"]),
        pa.table([[1], [2], [3]], names=["user", "twin", "twin"]),
    ],
    ids=["pandas", "pyarrow"],
)
def test_column_names_that_repeat(table: Any) -> None:
    with pytest.raises(MpcError, match="names must differ; got 'twin' more than once"):
        make(table)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_table_without_rows(kind: str) -> None:
    with pytest.raises(MpcError, match="must have rows; got none"):
        make(KINDS[kind](small_log())[:0])


def test_a_dict_without_arrays() -> None:
    with pytest.raises(MpcError, match="must have rows; got none"):
        make({})


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_ids_that_cannot_be_hashed(kind: str) -> None:
    with pytest.raises(MpcError, match="item column 'movie' must hold values that can be compared"):
        make(KINDS[kind](small_log(movie=[["b"], ["a"], ["c"], ["a"], ["d"]])))


def test_an_item_twice_names_all_parts_of_the_query() -> None:
    log = small_log(day=[1, 1, 1, 2, 2], movie=["b", "a", "c", "d", "d"])
    with pytest.raises(MpcError, match=r"item 'd' twice in query \(3, 2\)"):
        make(log, query=["user", "day"])


def test_segments_with_one_name() -> None:
    log = pd.DataFrame(small_log(country=[1, 1, 1, "1", "1"]))
    with pytest.raises(
        MpcError, match="segment column 'country' must have labels with different names"
    ):
        make(log, segment="country")


def test_an_unknown_group_lists_the_near_match() -> None:
    with pytest.raises(
        MpcError, match=r"no group 'Actoin' in this ranking\. Did you mean 'Action'"
    ):
        make().member("Actoin")


def test_an_unknown_column_lists_the_near_match() -> None:
    with pytest.raises(MpcError, match=r"no column 'raiting'\. Did you mean 'rating'"):
        make().column("raiting")


def test_items_have_no_names_without_a_column() -> None:
    with pytest.raises(MpcError, match="Pass item= to Ranking"):
        make(item=None).item_labels([0])


def test_a_ranking_takes_no_columns() -> None:
    with pytest.raises(MpcError, match="already names its columns; got query too"):
        as_ranking(make(), query="user")


def test_a_table_needs_its_columns() -> None:
    with pytest.raises(MpcError, match=r"got none for outcome, group\. Pass outcome="):
        as_ranking(small_log(), query="user", score="score")


@pytest.mark.parametrize("keep", [[1, 0, 1, 1, 1], [True] * 4, [False] * 5])
def test_a_subset_needs_a_boolean_for_each_row(keep: list[Any]) -> None:
    with pytest.raises(MpcError, match="keep must be 5 booleans, at least one of them true"):
        make().subset(keep)
