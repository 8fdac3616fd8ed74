from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.datasets import synthetic_truth


@pytest.fixture(scope="module")
def frame():
    return mpc.datasets.synthetic(queries=20_000, seed=7).to_frame()


def assert_share(hits, p):
    """Hold a share within four binomial standard errors of p."""
    assert abs(np.mean(hits) - p) < 4 * np.sqrt(p * (1 - p) / len(hits))


def gaps_by_query(frame, epsilon):
    """Sum and count of the differences over group 1's matched pairs, query by query."""
    score, outcome = (frame[name].to_numpy().reshape(-1, 10) for name in ("score", "outcome"))
    first = (frame["type"].to_numpy() == "1").reshape(-1, 10)
    gap = score[:, None, :] - score[:, :, None]
    pair = first[:, :, None] & ~first[:, None, :] & (gap >= 0) & (gap <= epsilon)
    difference = np.where(pair, outcome[:, :, None] - outcome[:, None, :], 0.0)
    return difference.sum(axis=(1, 2)), pair.sum(axis=(1, 2))


def test_it_has_the_promised_groups_segments_and_size():
    ranking = mpc.datasets.synthetic(queries=50)
    assert ranking.groups == ("1", "2")
    assert ranking.segments == ("u", "v")
    assert (ranking.n_queries, ranking.n_rows, ranking.n_items) == (50, 500, 500)
    assert list(ranking.to_frame().columns) == [
        "query",
        "item",
        "score",
        "outcome",
        "type",
        "query_type",
    ]


def test_query_types_are_even(frame):
    assert_share(frame["query_type"].to_numpy()[::10] == "u", 1 / 2)


@pytest.mark.parametrize(("query_type", "share"), [("u", 1 / 7), ("v", 5 / 7)])
def test_item_types_have_their_share_in_each_query_type(frame, query_type, share):
    rows = frame[frame["query_type"] == query_type]
    assert_share(rows["type"] == "1", share)


def test_scores_fill_the_unit_interval_evenly(frame):
    for tenth in np.linspace(0.1, 0.9, 9):
        assert_share(frame["score"] < tenth, tenth)


@pytest.mark.parametrize(
    ("query_type", "item_type", "slope"),
    [("u", "1", 1.5), ("u", "2", 1.1), ("v", "1", 0.9), ("v", "2", 0.7)],
)
def test_outcomes_follow_the_written_mean(frame, query_type, item_type, slope):
    rows = frame[(frame["query_type"] == query_type) & (frame["type"] == item_type)]
    score = rows["score"]
    mean = np.where(score < 0.5, slope * score, 1 - (2 - slope) * (1 - score))
    error = np.sqrt((mean * (1 - mean)).sum())
    for low, high in [(0, 0.5), (0.5, 1)]:
        inside = ((score >= low) & (score < high)).to_numpy()
        assert abs((rows["outcome"] - mean)[inside].sum()) < 4 * error


@pytest.mark.parametrize("item_type", ["1", "2"])
def test_each_type_is_calibrated_over_all_queries(frame, item_type):
    rows = frame[frame["type"] == item_type]
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = rows[(rows["score"] >= low) & (rows["score"] < low + 0.25)]
        residual = inside["outcome"] - inside["score"]
        assert abs(residual.mean()) < 4 * residual.std() / np.sqrt(len(residual))


@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_the_drawn_gap_is_the_known_gap(frame, epsilon):
    total, pairs = gaps_by_query(frame, epsilon)
    estimate = total.sum() / pairs.sum()
    error = np.sqrt(((total - estimate * pairs) ** 2).sum()) / pairs.sum()
    assert abs(estimate - synthetic_truth(epsilon)) < 4 * error


def test_a_seed_gives_the_same_log_again():
    first, again, other = (mpc.datasets.synthetic(queries=30, seed=s) for s in (3, 3, 4))
    assert first.to_frame().equals(again.to_frame())
    assert not first.to_frame().equals(other.to_frame())


@pytest.mark.parametrize("queries", [0, -5, 2.5, True, "many", None])
def test_a_bad_number_of_queries_is_one_sentence(queries):
    with pytest.raises(mpc.MpcError, match="queries must be a whole number from 1 to 100,000,000"):
        mpc.datasets.synthetic(queries=queries)


@pytest.mark.parametrize("seed", [-1, 0.5, "x"])
def test_a_bad_seed_is_one_sentence(seed):
    with pytest.raises(mpc.MpcError, match="seed must be a whole number of at least 0; got"):
        mpc.datasets.synthetic(queries=5, seed=seed)


def test_whole_numbers_of_numpy_are_taken():
    assert mpc.datasets.synthetic(queries=np.int32(7), seed=np.uint8(2)).n_queries == 7
