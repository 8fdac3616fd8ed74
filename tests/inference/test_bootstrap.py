import numpy as np
import pytest
from scipy import stats

from mpc_lab.errors import MpcError
from mpc_lab.inference import bands as module
from mpc_lab.inference.bands import bootstrap


def clusters(seed=0, queries=150, cells=3):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(2.0, (queries, cells)).astype(float)
    return counts, counts * rng.normal(0.5, 1, (queries, 1)) + rng.normal(size=counts.shape)


def test_intervals_agree_with_the_normal_interval_in_large_samples():
    counts, sums = clusters(queries=2000)
    pairs = counts.sum(axis=0)
    theta = sums.sum(axis=0) / pairs
    half = 1.96 * np.sqrt(((sums - theta * counts) ** 2).sum(axis=0)) / pairs
    result = bootstrap(counts, sums, draws=1999)
    for low, high in (
        (result.percentile_low, result.percentile_high),
        (result.studentised_low, result.studentised_high),
    ):
        np.testing.assert_allclose(low, theta - half, atol=0.25 * half.max())
        np.testing.assert_allclose(high, theta + half, atol=0.25 * half.max())


def test_intervals_equal_a_loop_over_the_same_draws():
    counts, sums = clusters(queries=30, cells=1)
    result = bootstrap(counts, sums, draws=101, seed=4, level=0.9)
    rng = np.random.default_rng(4)
    theta, means, ratios = sums.sum() / counts.sum(), [], []
    for _ in range(101):
        drawn = rng.integers(30, size=30)
        c, d = counts[drawn, 0], sums[drawn, 0]
        means.append(d.sum() / c.sum())
        ratios.append((means[-1] - theta) * c.sum() / np.sqrt(((d - means[-1] * c) ** 2).sum()))
    std_error = np.sqrt(((sums - theta * counts) ** 2).sum()) / counts.sum()
    assert result.percentile_low[0] == pytest.approx(np.quantile(means, 0.05))
    expected = theta - np.quantile(ratios, 0.95) * std_error
    assert result.studentised_low[0] == pytest.approx(expected)


def test_a_cell_does_not_depend_on_the_cells_beside_it(monkeypatch):
    counts, sums = clusters()
    together = bootstrap(counts, sums, draws=99)
    monkeypatch.setattr(module, "_TABLE_AT_ONCE", 5 * len(counts))
    apart = bootstrap(counts, sums, draws=99)
    np.testing.assert_allclose(apart.studentised_high, together.studentised_high, rtol=1e-12)


def test_blocks_of_draws_do_not_change_the_result(monkeypatch):
    counts, sums = clusters()
    whole = bootstrap(counts, sums, draws=99)
    monkeypatch.setattr(module, "_WEIGHTS_AT_ONCE", 7 * len(counts))
    blocks = bootstrap(counts, sums, draws=99)
    np.testing.assert_allclose(blocks.percentile_low, whole.percentile_low, rtol=1e-12)


def test_a_cell_with_one_cluster_has_no_interval():
    counts, sums = clusters()
    counts[1:, 0] = sums[1:, 0] = 0
    counts[:, 1] = sums[:, 1] = 0
    result = bootstrap(counts, sums, draws=50)
    assert np.isnan(result.percentile_low[:2]).all()
    assert np.isnan(result.studentised_high[:2]).all()
    assert result.draws_used.tolist() == [0, 0, 50]


def test_equal_differences_have_no_studentised_interval():
    counts = clusters()[0]
    result = bootstrap(counts, 0.1 * counts, draws=50)
    assert np.isnan(result.studentised_low).all()


def test_draws_of_a_single_cluster_are_left_out():
    counts = np.array([[7.0], [7.0], [7.0]])
    sums = counts * np.array([[0.1], [0.7], [-0.3]])
    result = bootstrap(counts, sums, draws=900)
    rng = np.random.default_rng(0)
    several = sum(len(set(rng.integers(3, size=3))) > 1 for _ in range(900))
    assert result.draws_used[0] == several


def test_fewer_than_three_effective_clusters_have_no_interval():
    result = bootstrap(np.array([[3.0], [7.0], [11.0]]), np.array([[1.0], [2.0], [0.0]]), draws=99)
    assert np.isnan([result.percentile_low, result.studentised_high]).all()


def test_studentised_interval_covers_at_its_level():
    rng = np.random.default_rng(1)
    counts = np.ones((40, 400))
    sums = rng.exponential(size=(40, 400))
    result = bootstrap(counts, sums, draws=399)
    covers = (result.studentised_low <= 1) & (result.studentised_high >= 1)
    spread = stats.binom.std(400, 0.95) / 400
    assert covers.mean() == pytest.approx(0.945, abs=3 * spread)


def test_tables_of_two_shapes_are_refused():
    with pytest.raises(MpcError, match="of one shape"):
        bootstrap(np.ones((3, 2)), np.ones((3, 1)), draws=9)


def test_draws_must_be_a_count():
    with pytest.raises(MpcError, match="draws must be a whole number from 19"):
        bootstrap(np.ones((3, 2)), np.ones((3, 2)), draws=0)
