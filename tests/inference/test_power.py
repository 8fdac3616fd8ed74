import numpy as np
import pytest
from scipy import stats

from mpc_lab.errors import MpcError
from mpc_lab.inference.verdicts import (
    floor_variance,
    mde,
    queries_needed,
)

SE, DOF = np.array([0.1, 0.2]), np.array([11.0, 1e9])
CELL = {"variance_query": np.array(0.02), "queries": np.array(50.0), "dof": np.array(30.0)}


def test_mde_is_the_sum_of_two_quantiles_times_the_standard_error():
    expected = (stats.t.ppf(0.975, DOF) + stats.t.ppf(0.8, DOF)) * SE
    np.testing.assert_allclose(mde(SE, DOF), expected, rtol=1e-8)


def test_adjusted_mde_divides_a_by_the_family():
    expected = (stats.t.ppf(1 - 0.05 / 20, DOF) + stats.t.ppf(0.9, DOF)) * SE
    np.testing.assert_allclose(mde(SE, DOF, tests=10, power=0.9), expected, rtol=1e-8)


def test_a_cell_that_is_not_estimable_has_no_mde():
    assert np.isnan(mde(np.array(np.nan), np.array(np.nan)))


def test_an_effect_of_the_size_of_the_mde_is_found_at_its_power():
    rng = np.random.default_rng(0)
    effect = float(mde(np.array(1.0), np.array(1e9)))
    found = (effect + rng.normal(size=40_000) > stats.norm.ppf(0.975)).mean()
    assert found == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("effect", [0.2, 0.35, 1.0])
def test_queries_needed_are_enough_and_one_fewer_is_not(effect):
    needed = queries_needed(effect, floor=0.001, **CELL)

    def detectable(queries):
        variance = CELL["variance_query"] * CELL["queries"] / queries + 0.001
        return mde(np.sqrt(variance), CELL["dof"])

    assert needed == np.floor(needed)
    assert detectable(needed) <= effect < detectable(needed - 1)


def test_the_floor_hides_small_effects_for_good():
    hidden = mde(np.sqrt(np.array(0.001)), CELL["dof"])
    assert queries_needed(0.99 * hidden, floor=0.001, **CELL) == np.inf
    assert np.isfinite(queries_needed(1.01 * hidden, floor=0.001, **CELL))


def test_floor_is_never_negative():
    floor = floor_variance(np.array([0.3, 0.1]), np.array([0.1, 0.3]))
    np.testing.assert_allclose(floor, [0.2, 0.0])


def test_queries_needed_is_nan_where_the_cell_is_not_estimable():
    nan = np.array(np.nan)
    assert np.isnan(queries_needed(0.1, variance_query=nan, queries=np.array(1), dof=nan))


@pytest.mark.parametrize("effect", [0.0, -0.1, float("nan")])
def test_effect_must_be_a_size(effect):
    with pytest.raises(MpcError, match="effect must be a gap above 0"):
        queries_needed(effect, **CELL)


@pytest.mark.parametrize("power", [0.0, 1.0, 80])
def test_power_must_be_a_probability(power):
    with pytest.raises(MpcError, match="power must be a finite number above"):
        mde(SE, DOF, power=power)


def test_a_family_has_a_cell():
    with pytest.raises(MpcError, match="tests must be a whole number of at least 1"):
        mde(SE, DOF, tests=0)
