import numpy as np
import pytest

from certificate import past_crossing
from helpers.pair_sums import random_pairs
from mpc_lab.errors import MpcError
from mpc_lab.inference.bands import sup_t_band
from mpc_lab.inference.certificate import FEWEST_BINS, certify, cut_bins


def falling_pairs(seed=0, n=20_000, start=0.5, in_a_query=4):
    """Return pairs whose mean difference falls from `start` and crosses 0 there."""
    rng = np.random.default_rng(seed)
    gap = rng.random(n)
    return gap, start - gap + rng.normal(size=n), np.arange(n) // in_a_query


def test_the_certificate_stops_where_the_mean_crosses_0():
    found = certify(*falling_pairs(start=0.45))
    assert found.alpha == pytest.approx(0.4, abs=0.01)
    assert found.bins.above.tolist() == [True] * 4 + [False] * 6


def test_the_cumulative_mean_would_go_too_far():
    found = certify(*falling_pairs(start=0.45))
    assert found.mpc_epsilon == pytest.approx(0.8, abs=0.01)


def test_a_first_bin_that_fails_certifies_nothing():
    gap, d, query = falling_pairs(start=-0.2)
    found = certify(gap, d, query)
    assert found.alpha == found.mpc_epsilon == 0


def test_a_later_bin_cannot_make_up_for_one_that_fails():
    gap, d, query = falling_pairs()
    found = certify(gap, d + 5 * (gap > 0.8) - 5 * (gap < 0.1), query)
    assert found.bins.band_low[-1] > 0
    assert found.alpha == 0


def test_bins_hold_equal_numbers_of_pairs():
    gap, d, query = falling_pairs(n=20_004)
    found = certify(gap, d, query)
    assert len(found.edges) == 11
    assert np.ptp(found.bins.n_pairs) <= 1
    assert found.edges[0] == 0
    assert found.edges[-1] == gap.max()
    inside = (gap > found.edges[2]) & (gap <= found.edges[3])
    assert found.bins.estimate[2] == pytest.approx(d[inside].mean())
    assert found.cumulative.estimate[2] == pytest.approx(d[gap <= found.edges[3]].mean())


def test_the_band_is_the_sup_t_band_of_the_bins():
    gap, d, query = falling_pairs(n=3000)
    found = certify(gap, d, query, level=0.9, seed=3)
    place = np.searchsorted(found.edges[1:], gap)
    u = np.zeros((query.max() + 1, 10))
    np.add.at(u, (query, place), (d - found.bins.estimate[place]) / found.bins.n_pairs[place])
    bins = found.bins
    band = sup_t_band(bins.estimate, bins.std_error, bins.dof, u.T @ u, level=0.9, seed=3)
    np.testing.assert_allclose(bins.band_low, band.low, rtol=1e-10)


def test_each_bin_has_at_least_30_effective_queries():
    gap, _, query = falling_pairs(n=400, in_a_query=2)
    ends = cut_bins(gap, query).ends
    assert len(ends) == 10
    few = cut_bins(gap, query % 70).ends
    assert 1 < len(few) < 10


def test_too_few_queries_give_no_bins_and_no_certificate():
    gap, d, query = falling_pairs(n=400, in_a_query=20)
    found = certify(gap, d + 100, query)
    assert found.alpha == 0
    assert found.edges.tolist() == [0.0]
    assert found.bins.estimate.size == 0


def test_fewer_than_four_bins_certify_nothing():
    gap, d, query = falling_pairs(n=400, in_a_query=10)
    found = certify(gap, d + 100, query)
    assert 1 <= len(found.bins.estimate) < FEWEST_BINS
    assert (found.bins.band_low > 0).all()
    assert found.alpha == 0
    assert not found.bins.above.any()
    assert found.mpc_epsilon == gap.max()


def test_three_distinct_distances_are_too_few_however_many_queries_there_are():
    gap, d, query = falling_pairs(n=2000, in_a_query=1)
    for values, certified in ((3, False), (4, True)):
        found = certify(np.floor(values * gap), d + 100, query)
        assert len(found.bins.estimate) == values
        assert (found.alpha > 0) == certified


def test_small_logs_certify_nothing_past_where_the_mean_is_0():
    found = np.array([past_crossing(35, 0.75, seed) for seed in range(50)])
    assert found[:, 0].max() < FEWEST_BINS
    assert found[:, 1].sum() == 0
    # with one bin, which is MPC itself, most of them would
    assert found[:, 2].mean() > 0.4


def test_no_pairs_give_no_certificate():
    assert certify(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64)).alpha == 0


def test_tied_gaps_stay_in_one_bin():
    gap, d, query = falling_pairs(n=1000, in_a_query=1)
    coarse = np.floor(4 * gap) / 4
    found = certify(coarse, d, query)
    assert found.edges.tolist() == [0, 0, 0.25, 0.5, 0.75]
    assert found.bins.n_pairs.tolist() == np.unique(coarse, return_counts=True)[1].tolist()


def test_item_shocks_widen_the_band():
    pairs = random_pairs(0, n=3000, queries=300, items=60)
    gap = np.random.default_rng(1).random(3000)
    items = {"item_i": pairs.inside, "item_j": pairs.outside}
    union = certify(gap, pairs.d, pairs.query, cluster="union", **items)
    query = certify(gap, pairs.d, pairs.query, **items)
    assert (union.bins.std_error > query.bins.std_error).all()


def test_items_of_one_side_alone_are_refused():
    gap, d, query = falling_pairs(n=100)
    with pytest.raises(MpcError, match="must be given together"):
        certify(gap, d, query, item_i=query)
