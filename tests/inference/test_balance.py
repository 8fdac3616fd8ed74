import numpy as np
import pytest
import statsmodels.api as sm

from helpers.pair_sums import random_pairs
from mpc_lab.errors import MpcError
from mpc_lab.inference.balance import item_reuse, standardised_difference
from mpc_lab.inference.clustered import pair_codes


def pairs_of_rows(seed=0, rows=200, n=150):
    rng = np.random.default_rng(seed)
    member = rng.random(rows) < 0.4
    row_i = rng.choice(np.flatnonzero(member), n)
    row_j = rng.choice(np.flatnonzero(~member), n)
    return rng.normal(size=rows) + member, member, row_i, row_j, pair_codes(row_i % 25)


def test_differences_are_in_standard_deviations_of_all_rows():
    x, member, row_i, row_j, codes = pairs_of_rows()
    found = standardised_difference(x, member, row_i, row_j, codes)
    scale = np.sqrt((x[member].var() + x[~member].var()) / 2)
    assert found.scale == pytest.approx(scale)
    assert found.before == pytest.approx((x[member].mean() - x[~member].mean()) / scale)
    assert found.within == pytest.approx((x[row_i] - x[row_j]).mean() / scale)


def test_the_error_of_a_difference_is_clustered():
    x, member, row_i, row_j, codes = pairs_of_rows(1)
    found = standardised_difference(x, member, row_i, row_j, codes)
    model = sm.OLS((x[row_i] - x[row_j]) / found.scale, np.ones(len(row_i)))
    fitted = model.fit(cov_type="cluster", cov_kwds={"groups": codes.query})
    assert found.std_error == pytest.approx(fitted.bse[0], rel=1e-10)
    assert found.ci_low < found.within < found.ci_high


def test_a_constant_has_no_difference():
    x, member, row_i, row_j, codes = pairs_of_rows()
    found = standardised_difference(0 * x + 3, member, row_i, row_j, codes)
    assert np.isnan([found.before, found.within, found.std_error, found.scale]).all()


def test_a_covariate_with_holes_is_refused():
    x, member, row_i, row_j, codes = pairs_of_rows()
    x[:2] = np.nan
    with pytest.raises(MpcError, match="finite in every row; got 2 of 200"):
        standardised_difference(x, member, row_i, row_j, codes)


def test_reuse_counts_pairs_of_items():
    query, inside, outside = np.array([0, 0, 1, 1]), np.array([5, 5, 5, 7]), np.array([1, 2, 1, 1])
    found = item_reuse(pair_codes(query, inside, outside))
    assert (found.items_inside, found.most_inside, found.mean_inside) == (2, 3, 2.0)
    assert (found.items_outside, found.most_outside) == (2, 3)
    assert found.effective_queries == 2
    assert found.effective_inside == pytest.approx(16 / 10)


def test_without_items_there_is_no_reuse():
    found = item_reuse(pair_codes(random_pairs(0).query))
    assert found.items_inside == found.most_outside == 0
    assert np.isnan([found.mean_inside, found.effective_outside]).all()
    assert found.effective_queries > 1
