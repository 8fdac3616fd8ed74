import numpy as np
import pytest
import statsmodels.api as sm

from helpers.near_pairs import near_pairs
from mpc_lab.errors import MpcError
from mpc_lab.inference.bandwidth import choose_bandwidth


def curved_pairs(curvature, n=6000):
    rng = np.random.default_rng(0)
    gap, query = rng.random(n), rng.integers(n // 4, size=n)
    return gap, curvature * gap**2 + rng.normal(size=n), query


def clustered(y, x, query, weights=1.0):
    model = sm.WLS(y, x, weights=weights * np.ones(len(y)))
    return model.fit(cov_type="cluster", cov_kwds={"groups": query})


def test_the_curvature_is_that_of_a_cubic_over_the_nearer_half():
    gap, d, query = near_pairs(n=1000)
    near = gap <= np.quantile(gap, 0.5, method="inverted_cdf")
    fit = clustered(d[near], np.vander(gap[near], 4, increasing=True), query[near])
    found = choose_bandwidth(gap, d, query)
    assert found.curvature == pytest.approx(2 * fit.params[2], rel=1e-8)
    assert found.curvature_std_error == pytest.approx(2 * fit.bse[2], rel=1e-8)


@pytest.mark.parametrize("k", [0, 7, 19])
def test_the_criterion_is_squared_bias_and_variance_of_a_line(k):
    gap, d, query = near_pairs(n=1000)
    found = choose_bandwidth(gap, d, query)
    h = found.candidates[k]
    x, w = gap[gap < h], 1 - gap[gap < h] / h
    line = np.column_stack([np.ones_like(x), x])
    variance = clustered(d[gap < h], line, query[gap < h], w).bse[0] ** 2
    bias = sm.WLS(x**2, line, weights=w).fit().params[0] / 2
    size = found.curvature**2 + found.curvature_std_error**2
    assert found.criterion[k] == pytest.approx(size * bias**2 + variance, rel=1e-8)


def test_candidates_reach_from_near_to_most_of_the_gaps():
    gap, d, query = near_pairs(n=1000)
    found = choose_bandwidth(gap, d, query)
    assert found.candidates[[0, -1]] == pytest.approx(np.sort(gap)[[100, 899]])
    assert np.ptp(np.diff(np.log(found.candidates))) == pytest.approx(0, abs=1e-12)
    assert found.value == found.candidates[found.criterion.argmin()]


def test_curvature_calls_for_a_smaller_bandwidth():
    flat, curved = (choose_bandwidth(*curved_pairs(c)).value for c in (0.0, 200.0))
    assert curved < 0.5 * flat


def test_the_unit_of_the_gap_does_not_matter():
    gap, d, query = near_pairs(n=1000)
    one, other = (choose_bandwidth(scale * gap, d, query).value for scale in (1.0, 1024.0))
    assert other == pytest.approx(1024 * one, rel=1e-9)


@pytest.mark.parametrize("n", [1, 4, 60])
def test_a_few_pairs_get_a_bandwidth(n):
    gap, d, query = near_pairs(n=n)
    assert choose_bandwidth(gap, d, query).value == pytest.approx(gap.max())


def test_ties_in_the_lower_quantiles_are_passed_over():
    gap, d, query = near_pairs(n=1000, ties=300)
    found = choose_bandwidth(gap, d, query)
    assert found.candidates[0] == gap[gap > 0].min()
    assert found.criterion[0] == np.inf
    assert found.value > 0


def test_nothing_but_ties_has_the_bandwidth_0():
    gap, d, query = near_pairs(n=50)
    assert choose_bandwidth(0 * gap, d, query).value == 0


def test_no_pairs_have_no_bandwidth():
    none = np.empty(0)
    with pytest.raises(MpcError, match="A bandwidth must be chosen from at least one pair"):
        choose_bandwidth(none, none, none.astype(np.int64))


def test_the_order_of_the_pairs_does_not_matter():
    gap, d, query = near_pairs(n=1000)
    order = np.argsort(query, kind="stable")
    assert np.count_nonzero(np.diff(query)) > np.count_nonzero(np.diff(query[order]))
    one, other = (
        choose_bandwidth(gap, d, query),
        choose_bandwidth(gap[order], d[order], query[order]),
    )
    np.testing.assert_allclose(one.criterion, other.criterion, rtol=1e-9)


def test_distances_of_two_scales_are_compared_without_a_loss_of_digits():
    gap, d, query = near_pairs(n=1000)
    near = np.random.default_rng(1).random(len(gap)) < 0.4
    scales = np.where(near, 1e-60 * gap, gap)
    found = choose_bandwidth(scales, d, query)
    h = found.candidates[np.searchsorted(found.candidates, scales[near].max(), side="right")]
    x, w = gap[near], 1 - 1e-60 * gap[near] / h
    line = np.column_stack([np.ones_like(x), x])
    variance = clustered(d[near], line, query[near], w).bse[0] ** 2
    size = found.curvature**2 + found.curvature_std_error**2
    bias = sm.WLS((1e-60 * x) ** 2, line, weights=w).fit().params[0] / 2
    at = found.candidates.tolist().index(h)
    assert found.criterion[at] == pytest.approx(size * bias**2 + variance, rel=1e-7)
