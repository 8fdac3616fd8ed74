from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mpc_lab as mpc
from mpc_lab import rankers
from mpc_lab.rankers import best_factors, fill_matrix


def draw_ratings(users, items, seed=0, share=0.5):
    """Draw ratings of a random share of all cells, one a second."""
    rng = np.random.default_rng(seed)
    cells = rng.permutation(users * items)[: int(share * users * items)]
    return pd.DataFrame(
        {
            "user": cells // items,
            "item": cells % items,
            "rating": rng.integers(1, 6, size=len(cells)).astype(float),
            "timestamp": np.arange(len(cells)),
        }
    )


def dense_scores(ratings, rank, n_train):
    """Score the rows after training by a full SVD of the filled matrix; NaN where unknown."""
    train = ratings[:n_train]
    wide = train.pivot_table(index="user", columns="item", values="rating")
    filled = wide.fillna(train["rating"].mean())
    u, s, vt = np.linalg.svd(filled, full_matrices=False)
    low = pd.DataFrame((u[:, :rank] * s[:rank]) @ vt[:rank], filled.index, filled.columns)
    cells = low.melt(ignore_index=False, value_name="score").reset_index()
    return ratings[n_train:].merge(cells, on=["user", "item"], how="left")


@pytest.mark.parametrize(
    ("users", "items", "rank"), [(60, 40, 5), (40, 60, 5), (50, 50, 1), (30, 20, 19)]
)
def test_it_equals_a_full_svd_of_the_filled_matrix(users, items, rank):
    ratings = draw_ratings(users, items)
    found = mpc.rankers.svd(ratings, rank=rank)
    wanted = dense_scores(ratings, rank, n_train=int(0.8 * len(ratings)))
    assert len(found) > 50
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False, rtol=0, atol=1e-10)


def test_the_score_is_what_a_low_rank_matrix_holds():
    rng = np.random.default_rng(0)
    user, item = np.divmod(np.arange(100 * 80), 80)
    low = 3 + rng.standard_normal((100, 3)) @ rng.standard_normal((3, 80))
    factors = best_factors(fill_matrix(user, item, low[user, item]), rank=4)
    np.testing.assert_allclose(factors.cells(user, item), low[user, item], atol=1e-10)


def test_it_gives_the_same_bits_again():
    ratings = draw_ratings(200, 150)
    first, again = (mpc.rankers.svd(ratings, rank=20)["score"] for _ in range(2))
    assert first.to_numpy().tobytes() == again.to_numpy().tobytes()


@pytest.mark.skipif(not rankers._SEED, reason="this scipy has no seed for the vectors it draws")
def test_it_gives_the_same_bits_again_where_the_rank_is_too_large():
    ratings = draw_ratings(40, 30).assign(rating=4.0)
    first, again = (mpc.rankers.svd(ratings, rank=10)["score"] for _ in range(2))
    assert first.to_numpy().tobytes() == again.to_numpy().tobytes()


@pytest.mark.parametrize("rank", [1, 10])
def test_equal_ratings_give_that_rating(rank):
    ratings = draw_ratings(40, 30).assign(rating=4.0)
    scores = mpc.rankers.svd(ratings, rank=rank)["score"]
    np.testing.assert_allclose(scores, 4.0, rtol=1e-12)


def test_the_earliest_ratings_train_whatever_their_order():
    ratings = draw_ratings(40, 30)
    shuffled = ratings.sample(frac=1, random_state=1)
    first, again = (mpc.rankers.svd(frame, rank=5) for frame in (ratings, shuffled))
    pd.testing.assert_frame_equal(first, again)
    assert first["timestamp"].min() >= int(0.8 * len(ratings))
    assert first["timestamp"].is_monotonic_increasing


def test_ties_in_time_keep_their_order():
    ratings = draw_ratings(40, 30)
    tied = ratings.assign(timestamp=7)
    first, again = (mpc.rankers.svd(frame, rank=5) for frame in (ratings, tied))
    pd.testing.assert_frame_equal(first.drop(columns="timestamp"), again.drop(columns="timestamp"))


def test_users_and_items_without_training_are_left_out():
    ratings = draw_ratings(40, 30)
    late = pd.DataFrame(
        {"user": [999, 0], "item": [0, 999], "rating": [5.0, 5.0], "timestamp": [10**6, 10**6]}
    )
    found = mpc.rankers.svd(pd.concat([ratings, late]), rank=5, train_fraction=0.7)
    assert len(found) == len(ratings) + 2 - int(0.7 * (len(ratings) + 2)) - 2
    assert not (found["user"].eq(999) | found["item"].eq(999)).any()


@pytest.mark.parametrize(
    ("fraction", "n_train"), [(0.29, 290), (0.5, 500), (0.8, 800), (0.999, 999)]
)
def test_the_fraction_is_the_decimal_that_was_written(fraction, n_train):
    ratings = draw_ratings(50, 40)
    found = mpc.rankers.svd(ratings, rank=2, train_fraction=fraction)
    assert found["timestamp"].min() >= n_train
    assert len(found) == 1000 - n_train


def test_how_ids_are_spelt_does_not_matter():
    ratings = draw_ratings(40, 30)
    spelt = ratings.assign(user="u" + ratings["user"].astype(str), item=ratings["item"] * -3 + 7)
    first, again = (mpc.rankers.svd(frame, rank=5)["score"] for frame in (ratings, spelt))
    np.testing.assert_array_equal(first, again)


def test_other_tables_and_times_are_taken():
    ratings = draw_ratings(40, 30)
    wanted = mpc.rankers.svd(ratings, rank=5)["score"]
    dated = ratings.assign(timestamp=pd.to_datetime(ratings["timestamp"], unit="s"))
    for table in (pl.from_pandas(ratings), ratings.to_dict("list"), dated):
        np.testing.assert_array_equal(mpc.rankers.svd(table, rank=5)["score"], wanted)


def test_the_ratings_are_left_as_they_were():
    ratings = draw_ratings(40, 30).sample(frac=1, random_state=0)
    before = ratings.copy()
    mpc.rankers.svd(ratings, rank=5)
    pd.testing.assert_frame_equal(ratings, before)


@pytest.mark.parametrize("rank", [0, -1, 30, 64, 2.5, True, "64", None])
def test_a_bad_rank_is_one_sentence(rank):
    wanted = "rank must be a whole number from 1 to 29; got .* below the 40 users and 30 items"
    with pytest.raises(mpc.MpcError, match=wanted):
        mpc.rankers.svd(draw_ratings(40, 30), rank=rank)


@pytest.mark.parametrize("fraction", [0, 1, -0.5, 1.5, float("nan"), True, "0.8", None])
def test_a_bad_fraction_is_one_sentence(fraction):
    with pytest.raises(mpc.MpcError, match="train_fraction must be a finite number above 0 and"):
        mpc.rankers.svd(draw_ratings(40, 30), rank=5, train_fraction=fraction)


def test_too_few_ratings_to_learn_from_are_one_sentence():
    with pytest.raises(
        mpc.MpcError, match=r"must leave ratings to learn from; got .* of 6 ratings"
    ):
        mpc.rankers.svd(draw_ratings(4, 3), rank=1, train_fraction=0.1)


@pytest.mark.parametrize("name", ["user", "item", "rating", "timestamp"])
def test_an_absent_column_is_named(name):
    ratings = draw_ratings(40, 30).rename(columns={name: f"{name}_id"})
    with pytest.raises(mpc.MpcError, match=f"no column '{name}'. Did you mean '{name}_id'"):
        mpc.rankers.svd(ratings, rank=5)


@pytest.mark.parametrize("name", ["user", "item", "rating", "timestamp"])
def test_a_missing_value_is_one_sentence(name):
    ratings = draw_ratings(40, 30).astype(float)
    ratings.loc[3, name] = np.nan
    wanted = f"'{name}' must be complete; got 1 missing values, the first in row 3"
    with pytest.raises(mpc.MpcError, match=wanted):
        mpc.rankers.svd(ratings, rank=5)


@pytest.mark.parametrize(
    ("bad", "wanted"), [(np.inf, "must hold finite"), ("good", "must hold numb")]
)
def test_a_rating_that_is_not_a_number_is_refused_in_one_sentence(bad, wanted):
    ratings = draw_ratings(40, 30).astype({"rating": object})
    ratings.loc[3, "rating"] = bad
    with pytest.raises(mpc.MpcError, match=f"'rating' {wanted}"):
        mpc.rankers.svd(ratings, rank=5)


def test_times_that_cannot_be_sorted_are_one_sentence():
    ratings = draw_ratings(40, 30).astype({"timestamp": object})
    ratings.loc[3, "timestamp"] = "yesterday"
    with pytest.raises(mpc.MpcError, match="'timestamp' must hold times or numbers that can be"):
        mpc.rankers.svd(ratings, rank=5)


def test_a_repeated_rating_is_refused_in_one_sentence():
    ratings = draw_ratings(40, 30)
    twice = pd.concat([ratings, ratings[5:6].assign(timestamp=10**6)])
    user, item = ratings.loc[5, ["user", "item"]].astype(int)
    with pytest.raises(mpc.MpcError, match=f"several ratings of item {item} by user {user}"):
        mpc.rankers.svd(twice, rank=5)
