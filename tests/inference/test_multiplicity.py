import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from helpers.strategies import calmly
from mpc_lab.errors import MpcError
from mpc_lab.inference.estimates import critical, two_sided_p
from mpc_lab.inference.verdicts import METHODS, adjust, benjamini_hochberg, holm

MANY = 200


def cells(seed, m=6, dof=15.0, scale=2.0):
    rng = np.random.default_rng(seed)
    estimate, std_error = rng.normal(scale=scale, size=m), np.full(m, 0.8)
    return estimate, std_error, np.full(m, dof)


def run(method, estimate, std_error, dof, **options):
    p = two_sided_p(estimate / std_error, dof)
    options.setdefault("correlation", np.full((p.size, p.size), 0.5) + 0.5 * np.eye(p.size))
    return p, adjust(p, estimate, std_error, dof, method=method, **options)


@pytest.mark.parametrize("seed", range(5))
def test_holm_and_bh_equal_statsmodels(seed):
    p = np.random.default_rng(seed).beta(0.4, 2, size=9)
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=1e-12)
    np.testing.assert_allclose(
        benjamini_hochberg(p), multipletests(p, method="fdr_bh")[1], rtol=1e-12
    )


@st.composite
def families(draw):
    m = draw(st.integers(1, 7))
    level = draw(st.sampled_from([0.8, 0.9, 0.95, 0.99]))
    dof = np.array(
        draw(st.lists(st.sampled_from([1.0, 1.5, 4.0, 60.0, 1e6]), min_size=m, max_size=m))
    )
    std_error = np.array(draw(st.lists(st.floats(1e-6, 1e3), min_size=m, max_size=m)))
    # Estimates that put p exactly, or but for rounding, at a step of one of the methods.
    step = st.sampled_from([k / j for j in range(1, m + 1) for k in range(1, j + 1)])
    tail = np.array(draw(st.lists(step, min_size=m, max_size=m))) * (1 - level) / 2
    free = np.array(draw(st.lists(st.floats(-6, 6), min_size=m, max_size=m)))
    on_edge = np.array(draw(st.lists(st.booleans(), min_size=m, max_size=m)))
    statistic = np.where(on_edge, critical(tail, dof) * np.where(free < 0, -1, 1), free)
    return level, statistic * std_error, std_error, dof


@pytest.mark.parametrize("method", METHODS)
@calmly(150)
@given(family=families())
def test_p_value_and_interval_never_contradict(method, family):
    level, *cell = family
    p, result = run(method, *cell, level=level, draws=MANY)
    rejected = result.p_adjusted <= round(1 - level, 15)
    apart = (result.ci_low_adjusted > 0) | (result.ci_high_adjusted < 0)
    np.testing.assert_array_equal(apart | result.ci_cut, rejected)
    assert (result.ci_low_adjusted <= cell[0]).all()
    assert (result.ci_high_adjusted >= cell[0]).all()
    assert (result.p_adjusted >= p).all()


@calmly(100)
@given(family=families())
def test_a_cut_interval_ends_at_zero_on_the_side_away_from_the_estimate(family):
    level, estimate, *rest = family
    result = run("holm", estimate, *rest, level=level)[1]
    near = np.where(estimate > 0, result.ci_low_adjusted, result.ci_high_adjusted)
    assert (near[result.ci_cut] == 0).all()


@pytest.mark.parametrize("seed", range(8))
def test_romano_wolf_is_between_the_raw_and_the_holm_p_values(seed):
    p, result = run("romano_wolf", *cells(seed))
    assert (result.p_adjusted >= p).all()
    assert (result.p_adjusted <= holm(p)).all()


def test_romano_wolf_is_much_sharper_where_cells_move_as_one():
    p, result = run("romano_wolf", *cells(3), correlation=np.ones((6, 6)))
    np.testing.assert_allclose(
        result.p_adjusted, np.maximum.accumulate(np.sort(p))[p.argsort().argsort()], atol=0.01
    )
    assert (result.p_adjusted < holm(p))[p < 0.5].any()


def test_romano_wolf_equals_sidak_step_down_where_cells_are_independent():
    p, result = run("romano_wolf", *cells(4), correlation=np.eye(6))
    order = p.argsort()
    sidak = np.maximum.accumulate(1 - (1 - p[order]) ** np.arange(6, 0, -1))
    np.testing.assert_allclose(result.p_adjusted[order], sidak, atol=0.012)


def test_romano_wolf_of_one_cell_changes_nothing():
    p, result = run("romano_wolf", *cells(0, m=1))
    plain = run("none", *cells(0, m=1))[1]
    np.testing.assert_array_equal(result.p_adjusted, p)
    np.testing.assert_allclose(result.ci_low_adjusted, plain.ci_low_adjusted, rtol=0.05)


def test_holm_interval_is_bonferroni_where_it_is_not_cut():
    estimate, std_error, dof = cells(1)
    result = run("holm", estimate, std_error, dof)[1]
    half = stats.t.ppf(1 - 0.05 / 12, dof) * std_error
    kept = ~result.ci_cut
    assert kept.any()
    np.testing.assert_allclose(result.ci_low_adjusted[kept], (estimate - half)[kept], rtol=1e-8)


def test_fdr_interval_widens_with_fewer_rejections():
    estimate = np.array([9.0, 8.0, 0.1, 0.2])
    result = run("fdr_bh", estimate, np.ones(4), np.full(4, 1e9))[1]
    half = stats.norm.ppf(1 - 2 * 0.05 / 4 / 2)
    np.testing.assert_allclose(result.ci_high_adjusted, estimate + half, rtol=1e-6)


def test_none_leaves_p_values_and_intervals():
    estimate, std_error, dof = cells(2)
    p, result = run("none", estimate, std_error, dof)
    half = stats.t.ppf(0.975, dof) * std_error
    np.testing.assert_array_equal(result.p_adjusted, p)
    np.testing.assert_allclose(result.ci_high_adjusted, estimate + half, rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_cells_that_are_not_estimable_are_not_in_the_family(method):
    estimate, std_error, dof = cells(5, m=4)
    alone = run(method, estimate[1:], std_error[1:], dof[1:])[1]
    estimate[0] = std_error[0] = dof[0] = np.nan
    together = run(method, estimate, std_error, dof)[1]
    np.testing.assert_array_equal(together.p_adjusted, [np.nan, *alone.p_adjusted])
    np.testing.assert_array_equal(together.ci_low_adjusted, [np.nan, *alone.ci_low_adjusted])
    assert not together.ci_cut[0]


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_family_stays_empty(method):
    nan = np.full(2, np.nan)
    result = adjust(nan, nan, nan, nan, method=method, correlation=np.eye(2))
    assert np.isnan(result.p_adjusted).all()


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_cells_does_not_matter(method):
    estimate, std_error, dof = cells(6)
    turned = run(method, estimate[::-1], std_error, dof)[1]
    straight = run(method, estimate, std_error, dof)[1]
    np.testing.assert_array_equal(turned.p_adjusted[::-1], straight.p_adjusted)


@pytest.mark.parametrize("method", ["holm", "romano_wolf"])
def test_family_wise_error_is_kept(method):
    rng = np.random.default_rng(0)
    together = 0.6 + 0.4 * np.eye(8)
    truth = np.array([0, 0, 0, 0, 0, 0, 3.0, 5.0])
    runs, wrong = 600, 0
    for estimate in rng.multivariate_normal(truth, together, size=runs):
        cell = (estimate, np.ones(8), np.full(8, 1e9))
        result = run(method, *cell, correlation=together, draws=2_000)[1]
        wrong += bool((result.p_adjusted[:6] <= 0.05).any())
    assert wrong / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)


def test_unknown_method_names_the_near_match():
    with pytest.raises(MpcError, match="Did you mean 'holm'"):
        run("holms", *cells(0))


def test_romano_wolf_needs_a_correlation():
    with pytest.raises(MpcError, match="must have the correlation of the cells"):
        run("romano_wolf", *cells(0), correlation=None)


def test_correlation_of_other_cells_is_refused():
    with pytest.raises(MpcError, match=r"must have shape \(6, 6\)"):
        run("romano_wolf", *cells(0), correlation=np.eye(5))
