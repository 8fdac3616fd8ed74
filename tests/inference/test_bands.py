import numpy as np
import pytest
from scipy import stats

from mpc_lab.errors import MpcError
from mpc_lab.inference.bands import sup_t_band

POINTWISE = stats.norm.ppf(0.975)


def curve(points=8):
    """A running mean: nearby points share most of their pairs."""
    size = np.arange(1, points + 1)
    covariance = np.minimum.outer(size, size) / np.multiply.outer(size, size)
    return np.linspace(1, 2, points), np.sqrt(np.diag(covariance)), covariance


def test_band_is_between_pointwise_and_bonferroni():
    estimate, std_error, covariance = curve()
    dof = np.full(8, 12.0)
    half = (sup_t_band(estimate, std_error, dof, covariance).high - estimate) / std_error
    assert (half > stats.t.ppf(0.975, 12)).all()
    assert (half < stats.t.ppf(1 - 0.025 / 8, 12)).all()


def test_one_point_has_the_pointwise_interval():
    band = sup_t_band(np.array([1.0]), np.array([0.5]), np.array([7.0]), np.array([[1.0]]))
    assert band.z == pytest.approx(POINTWISE)
    assert band.high[0] == pytest.approx(1 + 0.5 * stats.t.ppf(0.975, 7), rel=1e-9)


def test_points_that_move_as_one_have_the_pointwise_quantile():
    ones = np.ones(5)
    band = sup_t_band(ones, ones, 50 * ones, np.ones((5, 5)))
    assert band.z == pytest.approx(POINTWISE, abs=0.03)
    assert band.z >= POINTWISE


def test_independent_points_have_the_sidak_quantile():
    ones = np.ones(5)
    band = sup_t_band(ones, ones, 50 * ones, np.eye(5))
    assert band.z == pytest.approx(stats.norm.ppf((1 + 0.95**0.2) / 2), abs=0.03)


def test_each_point_has_its_own_degrees_of_freedom():
    band = sup_t_band(np.zeros(2), np.ones(2), np.array([3.0, 300.0]), np.eye(2))
    expected = stats.t.ppf(stats.norm.cdf(band.z), [3.0, 300.0])
    np.testing.assert_allclose(band.high, expected, rtol=1e-8)
    np.testing.assert_allclose(band.low, -band.high)


def test_points_that_are_not_estimable_are_left_out():
    estimate, std_error, covariance = curve(4)
    dof = np.full(4, 9.0)
    alone = sup_t_band(estimate[1:], std_error[1:], dof[1:], covariance[1:, 1:])
    estimate[0] = std_error[0] = dof[0] = covariance[0] = covariance[:, 0] = np.nan
    band = sup_t_band(estimate, std_error, dof, covariance)
    assert band.covered.tolist() == [False, True, True, True]
    np.testing.assert_array_equal(band.low, [np.nan, *alone.low])


def test_a_curve_without_any_estimate_has_no_band():
    nan = np.full(3, np.nan)
    band = sup_t_band(nan, nan, nan, np.full((3, 3), np.nan))
    assert not band.covered.any()
    assert np.isnan([*band.low, *band.high, band.z]).all()


def test_the_seed_decides_the_draws():
    estimate, std_error, covariance = curve()
    first, again, other = (
        sup_t_band(estimate, std_error, np.full(8, 9.0), covariance, seed=seed).z
        for seed in (0, 0, 1)
    )
    assert first == again != other


def test_band_covers_a_whole_curve_at_its_level():
    rng = np.random.default_rng(0)
    _, std_error, covariance = curve()
    band = sup_t_band(np.zeros(8), std_error, np.full(8, 1e9), covariance)
    draws = rng.multivariate_normal(np.zeros(8), covariance, size=20_000)
    covered = (np.abs(draws) <= band.high).all(axis=1).mean()
    assert covered == pytest.approx(0.95, abs=0.008)


def test_covariance_of_other_points_is_refused():
    with pytest.raises(MpcError, match=r"must have shape \(2, 2\); got \(3, 3\)"):
        sup_t_band(np.zeros(2), np.ones(2), np.ones(2), np.eye(3))
