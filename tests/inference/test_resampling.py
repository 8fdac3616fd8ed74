import numpy as np
import pytest

from mpc_lab.errors import MpcError
from mpc_lab.inference.bootstrap import bootstrap
from mpc_lab.inference.resampling import bootstrap_statistic


def table(seed=0, queries=120):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(3.0, queries).astype(float)
    return np.column_stack([counts, counts * rng.normal(0.4, 1, queries)])


def ratio(totals):
    return totals[..., 1] / totals[..., 0]


def test_a_ratio_of_sums_has_the_intervals_of_the_mean_gap():
    sums = table()
    one = bootstrap_statistic(sums, ratio, draws=301, seed=5)
    other = bootstrap(sums[:, :1], sums[:, 1:], draws=301, seed=5)
    assert one.percentile_low == pytest.approx(other.percentile_low[0], rel=1e-10)
    assert one.studentised_high == pytest.approx(other.studentised_high[0], rel=1e-6)
    assert one.draws_used == other.draws_used[0] == 301


def test_the_error_is_that_of_the_delta_method():
    sums = table(1)
    found = bootstrap_statistic(sums, lambda t: np.log(t[..., 0]), draws=20)
    spread = ((sums[:, 0] - sums[:, 0].mean()) ** 2).sum()
    assert found.std_error == pytest.approx(np.sqrt(spread) / sums[:, 0].sum(), rel=1e-7)
    assert found.estimate == pytest.approx(np.log(sums[:, 0].sum()))


def test_a_difference_of_two_ratios_has_an_interval():
    sums = np.hstack([table(2), table(3)])
    found = bootstrap_statistic(sums, lambda t: ratio(t[..., :2]) - ratio(t[..., 2:]), draws=999)
    assert found.percentile_low < found.estimate < found.percentile_high
    normal = found.estimate + 1.96 * found.std_error
    assert found.studentised_high == pytest.approx(normal, abs=0.3 * found.std_error)


def test_a_statistic_without_variance_has_no_studentised_interval():
    sums = np.ones((30, 2))
    found = bootstrap_statistic(sums, ratio, draws=50)
    assert found.percentile_low == found.percentile_high == 1
    assert np.isnan([found.std_error, found.studentised_low]).all()
    assert found.draws_used == 0


@pytest.mark.parametrize(("sums", "draws"), [(np.ones(3), 9), (np.ones((0, 2)), 9), (table(), 0)])
def test_a_bootstrap_needs_clusters_and_draws(sums, draws):
    with pytest.raises(MpcError, match="A bootstrap needs a table"):
        bootstrap_statistic(sums, ratio, draws=draws)
