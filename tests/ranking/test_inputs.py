"""Every kind of table gives the same arrays, and keeps what it was."""

from __future__ import annotations

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from helpers.ranking_logs import KINDS, assert_same, make, small_log
from mpc_lab.ranking import Ranking

EXTRA = {
    "day": [dt.date(2024, 1, 1)] * 3 + [dt.date(2024, 1, 2)] * 2,
    "country": ["no", "no", "no", "de", "de"],
    "rank": [2, 3, 1, 1, 2],
}


def test_the_arrays_of_a_small_log() -> None:
    ranking = make(small_log(**EXTRA), unit="country", segment="country", position="rank")
    assert ranking.query_code.tolist() == [0, 0, 0, 1, 1]
    assert ranking.item_code.tolist() == [0, 1, 2, 1, 3]
    assert ranking.unit_code.tolist() == [0, 0, 0, 1, 1]
    assert (ranking.segments, ranking.segment_code.tolist()) == (("de", "no"), [1, 1, 1, 0, 0])
    assert ranking.position.tolist() == [2, 3, 1, 1, 2]
    assert ranking.score.tolist() == [0.5, 0.25, 0.5, -1.0, 2.0]
    assert ranking.outcome.tolist() == [5.0, 3.0, 4.0, 1.0, 2.0]
    assert (ranking.groups, ranking.masks.tolist()) == (("Action", "Drama"), [[3, 2, 0, 0, 1]])
    assert (ranking.n_rows, ranking.n_queries, ranking.n_items, ranking.n_units) == (5, 2, 4, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_arrays(kind: str) -> None:
    columns = {
        "query": ["user", "day"],
        "unit": "country",
        "segment": "country",
        "position": "rank",
    }
    log = small_log(**EXTRA)
    assert_same(make(KINDS[kind](log), **columns), make(log, **columns))


def test_types_of_the_arrays_are_those_the_kernels_take() -> None:
    ranking = make(pd.DataFrame(small_log(rank=[1, 2, 3, 1, 2])), position="rank")
    codes = (ranking.query_code, ranking.item_code, ranking.position)
    assert {values.dtype for values in codes} == {np.dtype(np.int64)}
    assert {ranking.score.dtype, ranking.outcome.dtype} == {np.dtype(np.float64)}
    assert (ranking.masks.dtype, ranking.masks.shape) == (np.dtype(np.uint64), (1, 5))


def test_columns_that_are_not_given_are_none() -> None:
    ranking = make(item=None)
    assert ranking.item_code is ranking.unit_code is ranking.position is None
    assert ranking.segment_code is None
    assert ranking.segments == ()
    assert (ranking.n_items, ranking.n_units) == (0, 2)


@pytest.mark.parametrize("kind", ["arrays", "pandas", "polars", "pyarrow"])
def test_float32_is_widened_exactly(kind: str) -> None:
    scores = np.array([0.1, 0.2, 0.3, 1e-40, 3e38], dtype=np.float32)
    ranking = make(KINDS[kind](small_log(score=scores)))
    assert ranking.score.tolist() == [float(score) for score in scores]


@pytest.mark.parametrize("kind", KINDS)
def test_boolean_outcomes_are_ones_and_zeros(kind: str) -> None:
    ranking = make(KINDS[kind](small_log(rating=[True, False, True, True, False])))
    assert ranking.outcome.tolist() == [1.0, 0.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("kind", KINDS)
def test_decimals_are_numbers(kind: str) -> None:
    scores = [decimal.Decimal(text) for text in ("1.5", "2.25", "3", "4", "-5")]
    assert make(KINDS[kind](small_log(score=scores))).score.tolist() == [1.5, 2.25, 3.0, 4.0, -5.0]


def test_large_integers_become_the_nearest_float() -> None:
    scores = np.array([2**64 - 1, 2**53 + 1, 1, 2, 3], dtype=np.uint64)
    ranking = make(pd.DataFrame(small_log(score=scores)))
    assert ranking.score.tolist() == [2.0**64, 2.0**53, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "score",
    [
        pd.Categorical([4, 2, 4, 1, 3]),
        pd.array([4, 2, 4, 1, 3], dtype="Int8"),
        pd.array([4, 2, 4, 1, 3], dtype="Float32"),
        pd.array([4, 2, 4, 1, 3], dtype="int64[pyarrow]"),
        pd.arrays.SparseArray([4, 2, 4, 1, 3]),
        np.array([4, 2, 4, 1, 3], dtype=np.float16),
    ],
    ids=lambda score: str(score.dtype)[:20],
)
def test_categorical_nullable_and_odd_numbers_work(score: object) -> None:
    assert make(pd.DataFrame(small_log(score=score))).score.tolist() == [4.0, 2.0, 4.0, 1.0, 3.0]


ITEMS = {
    "integers": [2**62, 1, 3, 1, 2],
    "unsigned": np.array([2**64 - 1, 1, 3, 1, 2], dtype=np.uint64),
    "floats": [0.5, -0.0, 3.5, 0.0, 2.5],
    "text": ["b", "a", "c", "a", "d"],
    "tuples": [("b", 1), ("a", 1), ("c", 1), ("a", 1), ("d", 1)],
    "mixed": ["b", 1, "1", 1, None],
    "categorical": pd.Categorical(["b", "a", "c", "a", "d"], categories=list("zdcba")),
    "times": pd.to_datetime(["2020-02-01", "2020-01-01", "2021-01-01", "2020-01-01", "2022-01-01"]),
    "arrow dictionary": pd.Series(["b", "a", "c", "a", "d"]).astype(
        pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    ),
}


@pytest.mark.parametrize("kind", [kind for kind in ITEMS if kind != "mixed"])
def test_ids_may_be_anything_hashable(kind: str) -> None:
    ranking = make(pd.DataFrame(small_log(movie=ITEMS[kind])))
    assert ranking.item_code.tolist() == [0, 1, 2, 1, 3]
    expected = pd.Series(ITEMS[kind]).tolist()
    assert ranking.item_labels(ranking.item_code).tolist() == expected


def test_one_and_the_text_one_are_two_items() -> None:
    ranking = make(pd.DataFrame(small_log(movie=ITEMS["mixed"])), missing="drop")
    assert ranking.item_labels(ranking.item_code).tolist() == ["b", 1, "1", 1]
    assert ranking.n_items == 3


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["d", "c", "b", "a"]), pl.Binary])
def test_polars_ids_of_any_type(dtype: pl.DataType) -> None:
    frame = pl.DataFrame(small_log()).with_columns(pl.col("movie").cast(dtype))
    assert make(frame).item_code.tolist() == [0, 1, 2, 1, 3]


def test_a_polars_struct_may_be_an_id() -> None:
    frame = pl.DataFrame(small_log()).with_columns(movie=pl.struct("movie", pl.lit(1)))
    assert make(frame).item_code.tolist() == [0, 1, 2, 1, 3]


def test_dictionaries_of_pyarrow_chunks_are_united() -> None:
    chunks = [pa.array(part).dictionary_encode() for part in (["b", "a"], ["c", "a", "d"])]
    table = pa.table(small_log()).set_column(1, "movie", pa.chunked_array(chunks))
    assert make(table).item_labels(make(table).item_code).tolist() == ["b", "a", "c", "a", "d"]


def test_a_dict_may_hold_columns_of_any_library() -> None:
    log = small_log(
        user=pl.Series([7, 7, 7, 3, 3]),
        movie=pa.array(["b", "a", "c", "a", "d"]),
        score=pd.Series([0.5, 0.25, 0.5, -1.0, 2.0], index=[9, 8, 7, 6, 5]),
        rating=range(5),
    )
    assert_same(make(log), make(small_log(rating=[0, 1, 2, 3, 4])))


def test_columns_may_be_named_by_numbers() -> None:
    frame = pd.DataFrame(small_log())
    frame.columns = pd.RangeIndex(5)
    ranking = Ranking(frame, query=0, item=1, score=2, outcome=3, group=4, group_sep="|")
    assert_same(ranking, make())


def test_one_column_may_play_two_parts() -> None:
    ranking = make(group="movie", group_sep=None, unit="user", outcome="score")
    assert ranking.groups == ("a", "b", "c", "d")
    assert ranking.member("a").tolist() == [False, True, False, True, False]


def test_the_table_is_not_modified() -> None:
    log = small_log(score=[0.5, None, 0.5, -1.0, 2.0])
    frame, before = pd.DataFrame(log), pd.DataFrame(log)
    ranking = make(frame, missing="drop")
    ranking.score[:] = 0
    ranking.masks[:] = 0
    ranking.column("rating")[:] = 0
    given_back = ranking.to_frame()
    given_back.loc[0, "rating"] = 99
    pd.testing.assert_frame_equal(frame, before)


def test_arrays_of_a_dict_are_not_shared() -> None:
    log = {name: np.array(values) for name, values in small_log().items()}
    ranking = make(log)
    log["score"][:] = 9.0
    assert ranking.score.max() == ranking.column("score").max() == 2.0
