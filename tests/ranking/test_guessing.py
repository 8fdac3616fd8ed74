"""Which column plays which part is guessed from names and a few values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mpc_lab as mpc
from mpc_lab.ranking.names import GUESSED, guess_columns

LOG = {
    "userId": [1, 1, 2, 2],
    "movieId": [7, 8, 7, 9],
    "prediction": [3.5, 3.4, 4.1, 2.0],
    "rating": [4, 3, 5, 1],
    "genres": ["Action|Crime", "Drama", "Action|Crime", ""],
}
FOUND = {
    "query": "userId",
    "item": "movieId",
    "score": "prediction",
    "outcome": "rating",
    "group": "genres",
    "group_sep": "|",
}


def given(frame):
    return {role: name for role, name in guess_columns(frame).items() if name is not None}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_the_columns_of_a_usual_log_are_found_in_any_table(make):
    assert given(make(LOG)) == FOUND


def test_every_role_has_an_entry_and_what_nothing_suggests_is_none():
    assert guess_columns({"a": [1, 2], "b": ["x", "y"]}) == dict.fromkeys(GUESSED)


def test_a_guess_can_be_given_to_a_ranking():
    assert mpc.Ranking(LOG, **given(LOG)).groups == ("Action", "Crime", "Drama")


def test_the_synthetic_example_is_guessed():
    assert given(mpc.datasets.synthetic(queries=50).to_frame()) == {
        "query": "query",
        "item": "item",
        "score": "score",
        "outcome": "outcome",
        "group": "type",
        "segment": "query_type",
    }


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("srch_id", "query"),
        ("User ID", "query"),
        ("docid", "item"),
        ("relevance_score", "score"),
        ("predicted_relevance", "score"),
        ("y_pred", "score"),
        ("y_true", "outcome"),
        ("click_bool", "outcome"),
        ("user_rating", "outcome"),
        ("item_category", "group"),
        ("logged_position", "position"),
    ],
)
def test_one_name_is_read_as(name, role):
    assert given({name: [1, 2]}) == {role: name}


def test_a_request_is_the_query_and_its_user_the_unit():
    log = {"user": [1, 1, 1], "request_id": [1, 2, 2], "country": ["x", "x", "y"]}
    assert given(log) == {"query": "request_id", "unit": "user"}


def test_a_country_that_changes_inside_a_query_is_not_a_segment():
    log = {"query": [1, 1, 2], "country": ["x", "y", "y"]}
    assert guess_columns(log)["segment"] is None
    log["country"] = ["x", "x", "y"]
    assert guess_columns(log)["segment"] == "country"


def test_boolean_columns_that_are_left_are_the_groups():
    log = {"clicked": [True, False], "is_new": [True, False], "is_local": [False, True]}
    assert given(log) == {"outcome": "clicked", "group": ["is_new", "is_local"]}


def test_a_score_written_as_text_is_still_the_score():
    assert guess_columns({"score": ["0.5", "n/a"], "other": ["a", "b"]})["score"] == "score"


def test_the_only_number_left_is_the_score_or_the_outcome():
    assert given({"qid": [1, 1], "s": [0.1, 0.2], "label": [1, 0]})["score"] == "s"
    assert given({"qid": [1, 1], "score": [0.1, 0.2], "amount": [1.5, 0.0]})["outcome"] == "amount"


@pytest.mark.parametrize(
    ("labels", "separator"),
    [
        (["a;b", "b", "c"], ";"),
        (["a, b", "b", "c"], ","),
        (["Smith, J", "Lee, K", "Wu, L"], None),
        (["N/A", "x", "y"], None),
        (["a", "b", "c"], None),
        ([["a"], ["b"], ["a", "b"]], None),
    ],
)
def test_a_separator_is_guessed_where_labels_recur(labels, separator):
    assert guess_columns({"group": labels})["group_sep"] == separator


def test_no_column_plays_two_parts():
    names = ["score", "model_score", "predicted_score", "rating", "label", "query", "user"]
    found = list(given(dict.fromkeys(names, np.arange(3.0))).values())
    assert len(found) == len(set(found))


def test_columns_may_have_any_name():
    frame = pd.DataFrame({0: [1, 2], ("score", 1): [0.5, 0.7], "<script>": ["a", "b"]})
    assert given(frame) == {"score": ("score", 1)}


def test_a_label_that_all_rows_of_a_query_share_is_a_segment_and_no_group():
    log = {"query": [1, 1, 2, 2], "query_type": ["x", "x", "y", "y"], "new": [True, False] * 2}
    assert given(log) == {"query": "query", "segment": "query_type", "outcome": "new"}
    log["clicked"] = [1, 0, 0, 1]
    assert guess_columns(log)["group"] == ["new"]


def test_labels_are_the_group_and_sellers_the_producers():
    found = guess_columns(mpc.datasets.messy())
    named = {"group": "labels", "group_sep": "|", "producer": "seller", "item": "product"}
    assert {role: found[role] for role in named} == named


USERS, ITEMS = [1, 1, 2, 2], [7, 8, 7, 9]
SCORES, RATINGS = [0.5, 0.4, 0.9, 0.1], [4.0, 3.0, 5.0, 1.0]


@pytest.mark.parametrize(
    ("log", "found"),
    [
        (
            {
                "user_id:token": USERS,
                "item_id:token": ITEMS,
                "rating:float": RATINGS,
                "score:float": SCORES,
                "class:token_seq": ["Action Crime", "Drama", "Action Crime", "Drama"],
                "timestamp:float": [1e9, 2e9, 3e9, 4e9],
            },
            {
                "query": "user_id:token",
                "item": "item_id:token",
                "score": "score:float",
                "outcome": "rating:float",
                "group": "class:token_seq",
                "group_sep": " ",
            },
        ),
        (
            {
                "user_id": USERS,
                "item_id": ITEMS,
                "score": SCORES,
                "rank": [1, 2, 1, 2],
                "rating": RATINGS,
                "genre": ["a", "b", "a", "b"],
            },
            {
                "query": "user_id",
                "item": "item_id",
                "score": "score",
                "position": "rank",
                "outcome": "rating",
                "group": "genre",
            },
        ),
        (
            {
                "qid": ["1", "1", "2", "2"],
                "query": ["best phones", "best phones", "used cars", "used cars"],
                "docid": ITEMS,
                "docno": ["d7", "d8", "d7", "d9"],
                "rank": [0, 1, 0, 1],
                "score": SCORES,
                "label": [0, 1, 2, 0],
                "group": ["web", "press", "web", "press"],
            },
            {
                "query": "qid",
                "item": "docno",
                "score": "score",
                "outcome": "label",
                "group": "group",
            },
        ),
        (
            {
                "q_id": ["1", "1", "2", "2"],
                "doc_id": ITEMS,
                "score": SCORES,
                "rel": [0, 1, 2, 0],
                "group": ["web", "press", "web", "press"],
            },
            {
                "query": "q_id",
                "item": "doc_id",
                "score": "score",
                "outcome": "rel",
                "group": "group",
            },
        ),
    ],
    ids=["RecBole", "LensKit", "PyTerrier", "ranx"],
)
def test_frames_of_the_field_are_guessed_and_make_a_ranking(log, found):
    assert given(log) == found
    assert mpc.Ranking(log, **found).n_queries == 2
