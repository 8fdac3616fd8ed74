import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import betting_oracle as oracle
from mpc_lab.errors import MpcError
from mpc_lab.inference.sequence import betting_sequence, predictable_bets, sequence_from_sums
from mpc_lab.results.plan import find_bounds
from repeated_looks import log_capital

HOW = {"level": 0.9, "planned": 40}


def drawn(rng, queries=60, cap=3, width=2.0, gap=0.8):
    """Return c and D of queries; some have no pair, and d is anything within ± the width."""
    c = rng.integers(0, cap + 1, queries)
    d = [float(np.sum(np.clip(rng.normal(gap, 0.7, k), -width, width))) for k in c]
    return c.astype(float), np.array(d)


def summed(c, d):
    return np.array([c.sum(), d.sum(), c @ c, c @ d, d @ d])


@pytest.mark.parametrize("theta", [-1.9, -0.3, 0.0, 0.8, 1.7])
def test_capital_equals_a_plain_loop(theta):
    c, d = drawn(np.random.default_rng(1))
    bets = predictable_bets(c, d, width=2.0, **HOW)
    up, down = log_capital(c, d, bets, theta, width=2.0, cap=3)
    for seen in (1, 7, 60):
        expected = oracle.capital(
            list(zip(c[:seen], d[:seen], strict=True)), theta, width=2.0, cap=3, **HOW
        )
        assert np.exp([up[seen - 1], down[seen - 1]]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.long) for k in (1, 2, 3))])
@pytest.mark.parametrize("tests", [1, 5])
def test_ends_are_those_of_a_fine_grid_in_a_plain_loop(seed, tests):
    c, d = drawn(np.random.default_rng(seed), queries=120)
    clusters = list(zip(c.tolist(), d.tolist(), strict=True))
    found = {
        "rows": betting_sequence(c, d, width=2.0, cap=3, tests=tests, **HOW),
        "sums": sequence_from_sums(summed(c, d), width=2.0, cap=3, level=0.9, tests=tests),
    }
    against = {
        "rows": lambda theta: oracle.capital(clusters, theta, width=2.0, cap=3, **HOW),
        "sums": lambda theta: oracle.capital_of_sums(clusters, theta, width=2.0, cap=3),
    }
    for name, (low, high) in found.items():
        least, most = oracle.hull(against[name], 2.0, tests / 0.1, points=401)
        assert low <= least <= low + 0.01
        assert high - 0.01 <= most <= high


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.floats(-1.5, 1.5))
def test_every_gap_left_is_inside(seed, gap):
    c, d = drawn(np.random.default_rng(seed), gap=gap)
    bets = predictable_bets(c, d, width=2.0, **HOW)
    low, high = betting_sequence(c, d, width=2.0, cap=3, **HOW)
    for theta in np.linspace(-2, 2, 83):
        up, down = (path[-1] for path in log_capital(c, d, bets, theta, width=2.0, cap=3))
        if (np.exp(up) + np.exp(down)) / 2 < 10:
            assert low <= theta <= high


def test_a_bet_knows_only_the_queries_before_it():
    c, d = drawn(np.random.default_rng(2))
    bets = predictable_bets(c, d, width=2.0, **HOW)
    c[30:], d[30:] = 3.0, 6.0
    changed = predictable_bets(c, d, width=2.0, **HOW)
    assert np.array_equal(changed[:31], bets[:31])
    assert not np.array_equal(changed[31:], bets[31:])


def test_no_query_can_take_more_than_nine_tenths_of_the_stake():
    c, d = np.full(20, 3.0), np.full(20, -6.0)
    up, _ = log_capital(c, d, np.full(20, 1e9), 2.0, width=2.0, cap=3)
    assert up[0] == pytest.approx(np.log(0.1))
    assert np.isfinite(up).all()


def test_sums_of_two_logs_are_those_of_both():
    rng = np.random.default_rng(3)
    (c, d), (e, f) = drawn(rng), drawn(rng)
    whole = summed(np.concatenate([c, e]), np.concatenate([d, f]))
    assert summed(c, d) + summed(e, f) == pytest.approx(whole, rel=1e-12)


def test_more_queries_make_it_narrower_and_keep_the_truth():
    rng = np.random.default_rng(4)
    c = rng.integers(0, 3, 20_000).astype(float)
    d = (rng.binomial(c.astype(int), 0.5) - rng.binomial(c.astype(int), 0.3)).astype(float)
    widths = []
    for seen in (500, 2_000, 20_000):
        for low, high in (
            betting_sequence(c[:seen], d[:seen], width=1.0, cap=2),
            sequence_from_sums(summed(c[:seen], d[:seen]), width=1.0, cap=2),
        ):
            assert low < 0.2 < high
            widths.append(high - low)
    assert (np.diff(widths[::2]) < 0).all()
    assert (np.diff(widths[1::2]) < 0).all()
    assert widths[4] < 0.06


def test_without_a_pair_there_is_no_interval():
    nothing = np.zeros(50)
    assert np.isnan(betting_sequence(nothing, nothing, width=1.0, cap=3)).all()
    assert np.isnan(sequence_from_sums(np.zeros(5), width=1.0, cap=3)).all()


def test_one_pair_leaves_every_gap_open():
    c, d = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    assert betting_sequence(c, d, width=1.0, cap=10) == (-1.0, 1.0)
    assert sequence_from_sums(summed(c, d), width=1.0, cap=10) == (-1.0, 1.0)


def test_bounds_are_known_of_zeros_and_ones_alone():
    assert find_bounds(None, np.array([1.0, 0.0])) == (0.0, 1.0)
    assert find_bounds(None, np.array([0.0, 2.0])) is None
    assert find_bounds((0.0, 5.0), np.array([0.0, 2.0])) == (0.0, 5.0)
    with pytest.raises(MpcError, match=r"within bounds=\(0, 1\); got 2 rows outside"):
        find_bounds((0.0, 1.0), np.array([0.0, 2.0, -1.0]))


@pytest.mark.parametrize("options", [{"planned": 0}, {"tests": 0}])
def test_counts_must_be_counts(options):
    with pytest.raises(MpcError, match=f"{next(iter(options))} must be a whole number"):
        betting_sequence(np.ones(3), np.ones(3), width=1.0, cap=1, **options)
