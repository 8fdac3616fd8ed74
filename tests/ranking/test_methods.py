"""What a ranking can be asked."""

from __future__ import annotations

import copy
import doctest
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpc_lab.ranking.ranking as module
from helpers.ranking_logs import KINDS, arrays, assert_same, make, small_log
from helpers.strategies import calmly
from mpc_lab.ranking import ColumnNames, Ranking, as_ranking


def test_the_examples_run() -> None:
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_columns_say_which_column_plays_which_part() -> None:
    columns = make(small_log(day=[1] * 5), query=["user", "day"]).columns
    assert columns == ColumnNames(
        query=("user", "day"),
        item="movie",
        score="score",
        outcome="rating",
        group="genres",
        group_sep="|",
    )
    assert set(columns.given()) == {"query", "item", "score", "outcome", "group", "group_sep"}


def test_repr_tells_sizes_and_columns() -> None:
    ranking = make(small_log(score=[None, 1.0, 2.0, 3.0, 4.0]), missing="drop")
    assert repr(ranking) == (
        "<Ranking: 4 rows, 2 queries, 3 items, 2 groups, 1 dropped for missing values; "
        "query='user', score='score', outcome='rating', group='genres', item='movie', "
        "group_sep='|'>"
    )


def test_group_index_counts_sorted_groups() -> None:
    ranking = make()
    assert [ranking.group_index(name) for name in ranking.groups] == [0, 1]
    assert ranking.groups == ("Action", "Drama")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_any_other_column_can_be_had_after_drops(kind: str) -> None:
    log = small_log(new=[1.0, 2.0, 3.0, 4.0, 5.0], score=[None, 1.0, 1.0, 2.0, 3.0])
    ranking = make(KINDS[kind](log), missing="drop")
    assert ranking.column("new").tolist() == [2.0, 3.0, 4.0, 5.0]
    assert ranking.column("movie").tolist() == ["a", "c", "a", "d"]
    assert ranking.column("new").flags.writeable


def test_labels_are_returned_unchanged() -> None:
    ranking = make(small_log(day=list("mmmtt")), query=["user", "day"])
    assert ranking.query_labels([1, 0, 1]).tolist() == [(3, "t"), (7, "m"), (3, "t")]
    assert ranking.item_labels(np.array([3, 0])).tolist() == ["d", "b"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "genres", [["a|b", "", None, "b", "c"], [["a"], [], None, ["b"], ["a", "b"]]]
)
def test_to_frame_and_back(kind: str, genres: list[Any]) -> None:
    log = small_log(genres=genres, score=[1.5, 2.0, None, 3.0, 4.0], extra=[1, None, 2, 3, 4])
    columns = {"group_sep": "|" if isinstance(genres[0], str) else None}
    ranking = make(KINDS[kind](log), missing="drop", **columns)
    frame = ranking.to_frame()
    assert list(frame.columns) == list(log)
    assert list(frame.index) == list(range(4))
    assert_same(Ranking(frame, **ranking.columns.given()), ranking)


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_to_frame_keeps_whole_numbers_beside_nulls(kind: str) -> None:
    log = KINDS[kind](small_log(genres=[1, None, 2, 1, 1]))
    ranking = make(log, group_sep=None)
    assert make(ranking.to_frame(), group_sep=None).groups == ranking.groups == ("1", "2")


def test_to_frame_of_polars_does_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: pl.Series) -> None:
        raise ModuleNotFoundError("pyarrow")

    monkeypatch.setattr(pl.Series, "to_pandas", absent)
    ranking = make(pl.DataFrame(small_log()))
    assert_same(make(ranking.to_frame()), ranking)


def test_fingerprint_is_of_the_rows_in_their_order() -> None:
    frame = pd.DataFrame(small_log())
    same = make(pl.DataFrame(small_log(user=list("xxxyy"))))
    assert make(frame).fingerprint() == same.fingerprint()
    assert make(frame).fingerprint() != make(frame[::-1]).fingerprint()


@pytest.mark.parametrize(
    "changes",
    [
        {"score": [0.5, 0.25, 0.5, -1.0, np.nextafter(2.0, 3.0)]},
        {"rating": [5, 3, 4, 1, 3]},
        {"user": [7, 7, 3, 3, 3], "movie": ["b", "a", "c", "e", "d"]},
        {"genres": ["Action|Drama", "Drama", "", "Drama", "Action"]},
        {"genres": ["Action|Comedy", "Comedy", "", None, "Action"]},
    ],
)
def test_fingerprint_sees_every_change(changes: dict[str, Any]) -> None:
    first = make().fingerprint()
    assert first == make().fingerprint()
    assert first != make(small_log(**changes)).fingerprint()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_subset_is_the_ranking_of_its_rows(kind: str) -> None:
    log = small_log(country=list("nnndd"), p=[1, 2, 3, 1, 2], genres=["b", "a", "a", "b", "b"])
    columns = {"unit": "country", "segment": "country", "position": "p", "group_sep": None}
    rows = [1, 3, 4]
    part = make(KINDS[kind](log), **columns).subset(np.isin(np.arange(5), rows))
    fresh = make({name: [values[row] for row in rows] for name, values in log.items()}, **columns)
    assert_same(part, fresh)
    assert part.fingerprint() == fresh.fingerprint()
    assert part.column("movie").tolist() == ["a", "a", "d"]


def test_a_subset_keeps_groups_and_segments_it_has_no_row_of() -> None:
    whole = make(small_log(country=list("nnndd")), segment="country")
    part = whole.subset([True, False, False, False, False])
    assert (part.groups, part.segments) == (("Action", "Drama"), ("d", "n"))
    assert (part.n_queries, part.n_items, whole.n_rows) == (1, 1, 5)


def test_a_ranking_can_be_pickled_and_copied() -> None:
    ranking = make(pd.DataFrame(small_log()))
    assert_same(pickle.loads(pickle.dumps(ranking)), ranking)
    assert_same(copy.deepcopy(ranking), ranking)


def test_as_ranking_passes_a_ranking_through() -> None:
    ranking = make()
    assert as_ranking(ranking) is ranking
    assert as_ranking(ranking, query=None) is ranking


def test_as_ranking_reads_a_table() -> None:
    given_columns = make().columns.given()
    assert_same(as_ranking(small_log(), **given_columns), make())


@calmly(30)
@given(st.permutations(range(5)))
def test_the_order_of_rows_orders_the_arrays_and_nothing_else(order: list[int]) -> None:
    whole = make()
    shuffled = make({name: [values[row] for row in order] for name, values in small_log().items()})
    assert shuffled.groups == whole.groups
    for name in ("score", "outcome", "masks"):
        np.testing.assert_array_equal(arrays(shuffled)[name], arrays(whole)[name][..., order])
    labels = whole.query_labels(whole.query_code)[order]
    np.testing.assert_array_equal(shuffled.query_labels(shuffled.query_code), labels)
    assert shuffled.query_code[0] == shuffled.item_code[0] == 0
