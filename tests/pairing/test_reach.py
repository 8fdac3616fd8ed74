import numpy as np
import pytest

from mpc_lab.datasets import synthetic
from mpc_lab.errors import MpcError
from mpc_lab.pairing import pairs
from mpc_lab.pairing.log import select_groups, sort_rows
from mpc_lab.pairing.pairs import list_pairs


@pytest.fixture(scope="module")
def log_and_distances():
    ranking = synthetic(queries=300)
    log = sort_rows(ranking, None, select_groups(ranking.masks, np.array([1])))
    return log, list_pairs(ranking, "2", None, "matched", np.inf)["distance"]


def test_the_nearest_distance_leaves_the_number_asked_for(log_and_distances):
    log, distances = log_and_distances
    assert pairs.nearest_distance(log, 100) == distances[99]
    assert pairs.nearest_distance(log, 10**9) == distances[-1]


def test_pairs_are_counted_up_to_a_distance_or_all(log_and_distances):
    log, distances = log_and_distances
    assert pairs.count_matched(log) == len(distances)
    assert (
        pairs.count_matched(log, 0.1) == pairs.check_listable(log, 0.1) == (distances <= 0.1).sum()
    )


def test_more_pairs_than_can_be_listed_are_refused(log_and_distances, monkeypatch):
    log, distances = log_and_distances
    monkeypatch.setattr(pairs, "MOST_LISTED", 100)
    with pytest.raises(
        MpcError,
        match=f"at most 100 pairs to list; got {len(distances):,} with a distance of at most 1",
    ):
        pairs.check_listable(log, 1.0)


def test_a_group_without_pairs_has_no_distance():
    ranking = synthetic(queries=1)
    log = sort_rows(ranking, None, np.zeros((1, 10), dtype=np.uint64))
    assert np.isnan(pairs.nearest_distance(log, 5))
