import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from helpers.near_pairs import near_pairs
from helpers.pair_sums import random_pairs
from mpc_lab.errors import MpcError
from mpc_lab.inference.clustered import estimate_listed, pair_codes
from mpc_lab.inference.limit import limit


def weighted_fit(gap, d, query, h):
    near = gap < h
    x = gap[near]
    model = sm.WLS(d[near], np.column_stack([np.ones_like(x), x, x**2]), weights=1 - x / h)
    return model.fit(cov_type="cluster", cov_kwds={"groups": query[near]})


@pytest.mark.parametrize("h", [0.05, 0.3, 1.5])
@pytest.mark.parametrize("ties", [0, 15])
def test_estimate_and_error_equal_a_weighted_fit_of_statsmodels(h, ties):
    gap, d, query = near_pairs(seed=1, n=2000, ties=ties)
    found, expected = limit(gap, d, query, bandwidth=h), weighted_fit(gap, d, query, h)
    assert found.method == "local quadratic"
    assert found.estimate == pytest.approx(expected.params[0], rel=1e-8)
    assert found.std_error == pytest.approx(expected.bse[0], rel=1e-8)


@pytest.mark.parametrize(("family", "cluster"), [("item", "item"), ("union", "union")])
def test_item_variances_are_those_of_weighted_residuals(family, cluster):
    pairs = random_pairs(2, n=120, items=30)
    gap = np.random.default_rng(3).random(120)
    items = {"item_i": pairs.inside, "item_j": pairs.outside}
    found = limit(gap, pairs.d, pairs.query, bandwidth=2.0, cluster=cluster, **items)
    x = np.column_stack([np.ones(120), gap, gap**2])
    weighted = (1 - gap / 2)[:, None] * x
    solved = np.linalg.solve(x.T @ weighted, weighted.T)
    z = solved[0] * (pairs.d - x @ (solved @ pairs.d)) * 120
    codes = pair_codes(pairs.query, pairs.inside, pairs.outside)
    raw = estimate_listed(z, 0.0, codes, cluster="query").variance_by
    used = raw["item"] if family == "item" else max(raw["item"], raw["query"], raw["union"])
    correction = found.n_effective / (found.n_effective - 1)
    assert found.std_error**2 == pytest.approx(used * correction, rel=1e-10)


def test_neither_order_nor_pairs_beyond_the_bandwidth_matter():
    gap, d, query = near_pairs(seed=4)
    whole = limit(gap, d, query, bandwidth=0.4)
    near = np.flatnonzero(gap < 0.4)[::-1]
    part = limit(gap[near], d[near], query[near], bandwidth=0.4)
    assert part.estimate == pytest.approx(whole.estimate, rel=1e-12)
    assert part.std_error == pytest.approx(whole.std_error, rel=1e-12)
    assert part.n_pairs == whole.n_pairs == len(near)


def test_interval_is_t_with_effective_queries():
    gap, d, query = near_pairs(seed=5)
    found = limit(gap, d, query, bandwidth=0.5, level=0.9)
    count = np.bincount(query[gap < 0.5])
    assert found.n_effective == pytest.approx(count.sum() ** 2 / (count**2).sum())
    half = stats.t.ppf(0.95, found.n_effective - 1) * found.std_error
    assert found.ci_high - found.estimate == pytest.approx(half, rel=1e-9)


def test_share_and_mean_of_ties_are_reported():
    gap, d, query = near_pairs(seed=6, ties=40)
    found = limit(gap, d, query, bandwidth=0.8)
    near = gap < 0.8
    assert found.n_ties == 40
    assert found.tie_share == pytest.approx(40 / near.sum())
    assert found.tie_weight == pytest.approx(40 / (1 - gap[near] / 0.8).sum())
    assert found.tie_mean == pytest.approx(d[:40].mean())


def test_much_weight_on_ties_gives_their_mean():
    gap, d, query = near_pairs(seed=7, ties=300)
    found = limit(gap, d, query, bandwidth=0.8)
    assert found.method == "mean over ties"
    assert "more than half the weight" in found.reason
    assert found.estimate == pytest.approx(d[:300].mean())
    clustered = sm.OLS(d[:300], np.ones(300)).fit(
        cov_type="cluster", cov_kwds={"groups": query[:300]}
    )
    assert found.std_error == pytest.approx(clustered.bse[0], rel=1e-10)
    assert found.n_pairs == 300


def test_few_distinct_gaps_give_the_mean_over_ties():
    gap, d, query = near_pairs(seed=8)
    coarse = np.floor(3 * gap)
    found = limit(coarse, d, query, bandwidth=10.0)
    assert found.method == "mean over ties"
    assert "only 3 distinct distances" in found.reason
    assert found.estimate == pytest.approx(d[coarse == 0].mean())


def test_a_bandwidth_of_0_leaves_the_ties():
    gap, d, query = near_pairs(seed=9, ties=30)
    found = limit(gap, d, query, bandwidth=0.0)
    assert found.estimate == pytest.approx(d[:30].mean())
    assert found.tie_share == 1


def test_without_ties_few_gaps_are_not_estimable():
    gap, d, query = near_pairs(seed=10)
    found = limit(1 + np.floor(3 * gap), d, query, bandwidth=10.0)
    assert found.method == "not estimable"
    assert found.reason.endswith("no pairs")
    assert np.isnan([found.estimate, found.ci_low, found.tie_mean]).all()


@pytest.mark.parametrize("bandwidth", [-0.1, np.nan, np.inf])
def test_a_bandwidth_must_be_a_gap(bandwidth):
    with pytest.raises(MpcError, match="bandwidth must be a finite number of at least 0"):
        limit(*near_pairs(), bandwidth=bandwidth)
