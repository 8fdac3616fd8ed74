import numpy as np
import pytest

from mpc_lab.inference.bands import (
    absolute_normals,
    correlation,
    covariance,
    covariance_of_clusters,
    upper_quantile,
)


def clusters(seed=0, queries=40, cells=4):
    rng = np.random.default_rng(seed)
    counts = np.cumsum(rng.poisson(1.0, (queries, cells)), axis=1).astype(float)
    return counts, counts * rng.normal(size=(queries, 1)) + rng.normal(size=counts.shape)


def test_products_and_clusters_give_one_covariance():
    counts, sums = clusters()
    pairs = counts.sum(axis=0)
    products = covariance(
        pairs, sums.sum(axis=0) / pairs, counts.T @ counts, counts.T @ sums, sums.T @ sums
    )
    np.testing.assert_allclose(products, covariance_of_clusters(counts, sums), rtol=1e-9)


def test_covariance_is_the_double_sum_over_cells():
    counts, sums = clusters(seed=1)
    pairs = counts.sum(axis=0)
    theta = sums.sum(axis=0) / pairs
    by_hand = sum(
        (sums[q, 0] - theta[0] * counts[q, 0]) * (sums[q, 3] - theta[3] * counts[q, 3])
        for q in range(len(counts))
    )
    result = covariance_of_clusters(counts, sums)
    assert result[0, 3] == pytest.approx(by_hand / (pairs[0] * pairs[3]), rel=1e-10)


def test_a_shift_of_the_center_leaves_the_covariance():
    counts, sums = clusters(seed=2)
    moved = covariance_of_clusters(counts, sums - 0.7 * counts)
    np.testing.assert_allclose(moved, covariance_of_clusters(counts, sums), rtol=1e-9)


def test_cells_without_variance_go_with_no_other():
    result = correlation(np.array([[4.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(result, [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])


def test_cells_without_pairs_go_with_no_other():
    counts, sums = clusters()
    counts[:, 1] = sums[:, 1] = 0
    result = correlation(covariance_of_clusters(counts, sums))
    np.testing.assert_array_equal(result[1], [0, 1, 0, 0])


def test_singular_correlation_is_drawn_as_one():
    draws = np.concatenate(list(absolute_normals(np.array([[1.0, -1], [-1, 1]]), seed=0)))
    np.testing.assert_allclose(draws[:, 0], draws[:, 1], atol=1e-6)
    assert draws.shape == (20_000, 2)
    assert (draws[:, 0] ** 2).mean() == pytest.approx(1, abs=0.05)


def test_draws_have_the_correlation_that_was_asked_for():
    wanted = np.array([[1, 0.6], [0.6, 1]])
    squares = np.concatenate(list(absolute_normals(wanted, seed=1))) ** 2
    assert np.corrcoef(squares.T)[0, 1] == pytest.approx(0.36, abs=0.03)


def test_upper_quantile_counts_the_observed_value_among_the_draws():
    maxima = np.arange(1.0, 20.0)
    assert upper_quantile(maxima, 0.1) == 18.0
    assert upper_quantile(maxima, 0.05) == 19.0
    assert upper_quantile(maxima, 0.01) == float("inf")
