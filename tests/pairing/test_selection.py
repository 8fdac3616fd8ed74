import numpy as np
import pytest

import mpc_lab as mpc
from helpers.pairing_logs import small_ranking
from mpc_lab.engines.memory import MemoryWalk
from mpc_lab.pairing import selection
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.pairs import list_pairs
from mpc_lab.pairing.terms import default_grid, parse_threshold


def sorted_gaps(ranking, group):
    return np.sort(list_pairs(ranking, group, None, "matched", np.inf)["distance"])


@pytest.mark.parametrize("share", [0.001, 0.01, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("levels", [1, 3, 5000])
def test_the_kth_smallest_distance_is_that_of_the_sorted_list(share, levels):
    ranking = small_ranking(levels=levels)
    walk = MemoryWalk(sort_rows(ranking))
    pairs = selection.count_pairs(walk, 0, 3)
    k = np.maximum(1, np.ceil(share * pairs)).astype(np.int64)
    found = selection.kth_smallest_distances(walk, 0, pairs, k)
    for g, group in enumerate(ranking.groups):
        distances = sorted_gaps(ranking, group)
        assert len(distances) == pairs[g]
        assert found[g] == distances[k[g] - 1]


def test_bisection_finds_what_a_bracket_too_wide_to_collect_holds(monkeypatch):
    monkeypatch.setattr(selection, "_COLLECTED_AT_MOST", 9)
    ranking = small_ranking(levels=5000)
    walk = MemoryWalk(sort_rows(ranking))
    pairs = selection.count_pairs(walk, 0, 3)
    found = selection.kth_smallest_distances(walk, 0, pairs, pairs // 2)
    expected = [
        sorted_gaps(ranking, g)[n // 2 - 1] for g, n in zip(ranking.groups, pairs, strict=True)
    ]
    assert found.tolist() == expected


def test_bisection_ends_at_a_number_that_more_pairs_share_than_can_be_collected(monkeypatch):
    monkeypatch.setattr(selection, "_COLLECTED_AT_MOST", 3)
    ranking = small_ranking(levels=2)
    walk = MemoryWalk(sort_rows(ranking))
    pairs = selection.count_pairs(walk, 0, 3)
    found = selection.kth_smallest_distances(walk, 0, pairs, pairs)
    assert found.tolist() == [1 / 1024] * 3


def test_a_bad_guess_is_mended(monkeypatch):
    def nothing_near(walk, word, pairs, k):
        return np.full(len(k), 1e9), np.full(len(k), 1e10), np.ones(len(k))

    monkeypatch.setattr(selection, "_guess", nothing_near)
    ranking = small_ranking(levels=5000)
    walk = MemoryWalk(sort_rows(ranking))
    pairs = selection.count_pairs(walk, 0, 3)
    found = selection.kth_smallest_distances(walk, 0, pairs, np.array([1, 2, 3]))
    expected = [sorted_gaps(ranking, g)[k] for k, g in enumerate(ranking.groups)]
    assert found.tolist() == expected


def test_the_default_grid_is_of_round_numbers_a_decade_around_the_thresholds():
    grid = default_grid(np.array([0.02, np.nan, 0.4]), tied_pairs=True)
    assert grid[:3].tolist() == [0.0, 0.002, 0.003]
    assert grid[-1] == 5.0
    assert default_grid(np.array([0.02]), tied_pairs=False)[0] == 0.002


def test_a_wide_default_grid_is_thinned_and_keeps_its_ends():
    grid = default_grid(np.array([1e-12, 1e6]), tied_pairs=False)
    assert len(grid) <= 60
    assert (grid[0], grid[-1]) == (1e-13, 1e7)


@pytest.mark.parametrize(
    "threshold",
    [mpc.Quantile(0.07), mpc.Smallest(5), mpc.Powered(0.1, 0.9), mpc.Enough(9, 2.5), 0.25],
)
def test_a_threshold_can_be_read_from_how_it_is_written(threshold):
    assert parse_threshold(repr(threshold)) == threshold
