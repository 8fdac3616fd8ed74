"""Groups as labels, as split text, as lists and as boolean columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.ranking_logs import KINDS, make, small_log
from helpers.strategies import calmly
from mpc_lab.errors import MpcError
from mpc_lab.ranking import Ranking

LISTS = [["x", "y", "x"], [], None, ["", "y"], [None, "z"]]


def members(ranking: Ranking) -> dict[str, list[int]]:
    """Return the rows of each group."""
    return {name: np.flatnonzero(ranking.member(name)).tolist() for name in ranking.groups}


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_column(kind: str) -> None:
    log = KINDS[kind](small_log(genres=["x", "y", None, "", "x"]))
    assert members(make(log, group_sep=None)) == {"x": [0, 4], "y": [1]}


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"arrays", "pandas"}))
def test_whole_number_labels_beside_nulls_keep_their_names(kind: str) -> None:
    log = KINDS[kind](small_log(genres=[10, 2, None, 10, 3]))
    assert members(make(log, group_sep=None)) == {"10": [0, 3], "2": [1], "3": [4]}


@pytest.mark.parametrize("kind", KINDS)
def test_one_boolean_column_by_its_name_is_a_label_column(kind: str) -> None:
    log = KINDS[kind](small_log(genres=[True, None, False, False, True]))
    assert members(make(log, group_sep=None)) == {"False": [2, 3], "True": [0, 4]}


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_split_and_blank_parts_are_left_out(kind: str) -> None:
    log = KINDS[kind](small_log(genres=["|a||b|", "a | a", " ", None, "c d"]))
    assert members(make(log)) == {"a": [0, 1], "b": [0], "c d": [4]}


def test_a_separator_may_be_several_characters() -> None:
    log = small_log(genres=["a::b", "b:c", "", "c", "a"])
    assert members(make(log, group_sep="::")) == {"a": [0, 4], "b": [0], "b:c": [1], "c": [3]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_lists(kind: str) -> None:
    log = KINDS[kind](small_log(genres=LISTS))
    assert members(make(log, group_sep=None)) == {"x": [0], "y": [0, 3], "z": [4]}


@pytest.mark.parametrize("collection", [tuple, set, frozenset, np.array])
def test_lists_of_other_types(collection: Any) -> None:
    lists = [["x", "y"], ["x"], ["y"], ["z"], ["z", "x"]]
    column = np.empty(5, dtype=object)
    column[:] = [collection(labels) for labels in lists]
    found = members(make(small_log(genres=column), group_sep=None))
    assert found == {"x": [0, 1, 4], "y": [0, 2], "z": [3, 4]}


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([["x", "y"], ["y", ""], None, ["z", "z"], [None, "x"]], dtype=pl.Array(str, 2)),
        pl.Series(
            [["x", "y"], ["y", ""], [], ["z", "z"], [None, "x"]], dtype=pl.List(pl.Categorical)
        ),
    ],
    ids=["array", "categorical"],
)
def test_lists_of_other_polars_types(column: pl.Series) -> None:
    frame = pl.DataFrame(small_log()).with_columns(genres=column)
    assert members(make(frame, group_sep=None)) == {"x": [0, 4], "y": [0, 1], "z": [3]}


@pytest.mark.parametrize(
    "dtype",
    [
        pa.large_list(pa.string()),
        pa.list_(pa.string(), 2),
        pa.list_(pa.dictionary(pa.int8(), pa.string())),
    ],
    ids=["large", "fixed", "dictionary"],
)
@pytest.mark.parametrize("library", ["pyarrow", "pandas"])
def test_lists_of_other_pyarrow_types(dtype: pa.DataType, library: str) -> None:
    lists = pa.array([["x", "y"], ["y", ""], None, ["z", "z"], [None, "x"]], dtype)
    table = pa.table(small_log(genres=lists))
    if library == "pandas":
        table = table.to_pandas(types_mapper=pd.ArrowDtype)
    assert members(make(table, group_sep=None)) == {"x": [0, 4], "y": [0, 1], "z": [3]}


@pytest.mark.parametrize("kind", KINDS)
def test_boolean_columns_are_groups_and_null_is_outside(kind: str) -> None:
    log = small_log(old=[True, None, False, True, False], new=[False, True, True, False, True])
    ranking = make(KINDS[kind](log), group=["old", "new"], group_sep=None)
    assert members(ranking) == {"new": [1, 2, 4], "old": [0, 3]}
    assert ranking.columns.group == ("old", "new")


def test_groups_with_no_item_and_with_every_item_are_groups() -> None:
    log = small_log(none=[False] * 5, every=[True] * 5, null=[None] * 5)
    ranking = make(log, group=["none", "every", "null"], group_sep=None)
    assert members(ranking) == {"every": [0, 1, 2, 3, 4], "none": [], "null": []}


def test_a_log_whose_rows_are_in_no_group_is_read() -> None:
    ranking = make(small_log(genres=[None] * 5))
    assert (ranking.groups, ranking.masks.tolist()) == ((), [[0] * 5])


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_declared_categories_are_groups(kind: str) -> None:
    labels, categories = ["x", "y", "x", None, "z"], ["z", "y", "x", "w"]
    frame: Any = pd.DataFrame(small_log(genres=pd.Categorical(labels, categories=categories)))
    if kind == "polars":
        frame = pl.DataFrame(small_log(genres=pl.Series(labels, dtype=pl.Enum(categories))))
    if kind == "pyarrow":
        frame = pa.Table.from_pandas(frame)
    assert members(make(frame, group_sep=None)) == {"w": [], "x": [0, 2], "y": [1], "z": [4]}


def test_text_in_categories_is_split_too() -> None:
    genres = pd.Categorical(["a|b", "b", None, "a|b", "b"], categories=["b", "a|b", "c|"])
    found = members(make(pd.DataFrame(small_log(genres=genres))))
    assert found == {"a": [0, 3], "b": [0, 1, 3, 4], "c": []}


def test_more_than_64_groups() -> None:
    names = [f"g{number:03}" for number in range(200)]
    rng = np.random.default_rng(0)
    table = rng.random((300, 200)) < 0.1
    texts = ["|".join(np.array(names)[row]) for row in table]
    log = {"q": np.arange(300) // 3, "s": np.zeros(300), "g": texts}
    ranking = Ranking(log, query="q", score="s", outcome="s", group="g", group_sep="|")
    assert ranking.masks.shape == (4, 300)
    np.testing.assert_array_equal([ranking.member(name) for name in names], table.T)


@pytest.mark.parametrize("kind", ["lists", "labels", "booleans"])
def test_more_than_64_groups_in_every_form(kind: str) -> None:
    names = [f"g{number:02}" for number in range(70)]
    log: dict[str, Any] = {"q": np.arange(70), "s": np.zeros(70)}
    log |= {"lists": [[name] for name in names], "labels": names}
    log |= {name: np.arange(70) == row for row, name in enumerate(names)}
    group = names if kind == "booleans" else kind
    ranking = Ranking(log, query="q", score="s", outcome="s", group=group)
    assert members(ranking) == {name: [row] for row, name in enumerate(names)}


def test_names_of_groups_are_kept_letter_by_letter() -> None:
    names = ["<script>", "🎬", "a'b\"c", "naïve café", "C:\\x\n"]
    ranking = make(small_log(genres=names), group_sep=None)
    assert ranking.groups == tuple(sorted(names))
    assert members(ranking)["🎬"] == [1]


@calmly(30)
@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=4), min_size=1, max_size=30))
def test_text_and_lists_agree_with_a_loop_over_rows(lists: list[list[str]]) -> None:
    log = {"q": list(range(len(lists))), "s": [0.0] * len(lists)}
    columns: dict[str, Any] = {"query": "q", "score": "s", "outcome": "s", "group": "g"}
    expected = {
        name: [row for row, labels in enumerate(lists) if name in labels]
        for name in sorted({name for labels in lists for name in labels})
    }
    text = Ranking({**log, "g": ["|".join(labels) for labels in lists]}, group_sep="|", **columns)
    assert members(text) == expected
    for kind in ("pandas", "polars", "pyarrow"):
        assert members(Ranking(KINDS[kind]({**log, "g": lists}), **columns)) == expected


ERRORS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "two labels, one name": ({"genres": [1, "1", 2, 3, 4]}, {"group_sep": None}, "1 and '1'"),
    "NUL": ({"genres": ["a\0", "b", "", "", ""]}, {}, "NUL character"),
    "lists and text": (
        {"genres": [["a"], "b", [], [], []]},
        {"group_sep": None},
        "got list, str",
    ),
    "lists of lists": ({"genres": [[["a"]]] * 5}, {"group_sep": None}, "compared and hashed"),
    "split numbers": ({"genres": [1, 2, 3, 4, 5]}, {}, r"text to be split by group_sep='\|'"),
    "split lists": ({"genres": LISTS}, {}, "must hold text to be split"),
    "split booleans": ({"a": [True] * 5}, {"group": ["a"]}, "list of boolean columns. Leave"),
    "empty separator": ({}, {"group_sep": ""}, "group_sep must be a text such as"),
    "no column": ({}, {"group": [], "group_sep": None}, "list of different columns"),
    "column twice": (
        {"a": [True] * 5},
        {"group": ["a", "a"], "group_sep": None},
        "each column once",
    ),
    "text as boolean": ({}, {"group": ["genres"], "group_sep": None}, "as in group='genres'"),
    "number as boolean": (
        {},
        {"group": ["rating"], "group_sep": None},
        "got 'rating'",
    ),
    "unknown boolean": ({}, {"group": ["genre"], "group_sep": None}, "Did you mean 'genres'"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_groups_that_cannot_be_read(case: str) -> None:
    changes, columns, message = ERRORS[case]
    with pytest.raises(MpcError, match=message):
        make(small_log(**changes), **columns)


def test_more_groups_than_fit_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpc_lab.ranking.columns._MOST_WORDS", 4)
    with pytest.raises(MpcError, match="no more groups than fit in memory; got 4 for 5 rows"):
        make(group="movie", group_sep=None)


def prices(count: int, step: float) -> dict[str, Any]:
    """Return a log whose groups are so many prices, each of two rows."""
    price = np.tile(np.arange(1, count + 1) * step, 2)
    rows = len(price)
    return {
        "q": np.arange(rows) % 10,
        "s": np.arange(rows, dtype=float),
        "y": np.ones(rows),
        "price": price,
    }


TABLES = {"arrays": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def of_prices(log: Any) -> Ranking:
    return Ranking(log, query="q", score="s", outcome="y", group="price")


@pytest.mark.parametrize("kind", TABLES)
def test_a_column_of_measurements_is_no_column_of_labels(kind: str) -> None:
    log = TABLES[kind](prices(51, 0.25))
    with pytest.raises(
        MpcError, match=r"must hold labels; got 51 different numbers such as 0\.25\."
    ) as error:
        of_prices(log)
    assert "Cut it into bins, as with pandas.qcut, or pass it to audit.partial(" in str(error.value)


@pytest.mark.parametrize("kind", TABLES)
def test_few_floats_and_floats_that_are_whole_numbers_are_labels(kind: str) -> None:
    assert len(of_prices(TABLES[kind](prices(50, 0.25))).groups) == 50
    assert len(of_prices(TABLES[kind](prices(300, 1.0))).groups) == 300


def test_whole_numbers_beside_missing_ones_are_labels() -> None:
    frame = pd.DataFrame(prices(300, 1.0))
    frame.loc[3, "price"] = np.nan
    assert len(of_prices(frame).groups) == 300


def test_categories_that_are_floats_are_labels() -> None:
    frame = pd.DataFrame(prices(60, 0.25)).astype({"price": "category"})
    assert len(of_prices(frame).groups) == 60
