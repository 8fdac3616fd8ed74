import itertools

import numpy as np
import pytest

from mpc_lab.inference.placebo import FLIPS, sign_flip_p


def test_it_agrees_with_all_signs_there_are():
    sums = np.random.default_rng(1).normal(size=10) + 0.4
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=10)))
    beyond = (np.abs(signs @ sums) > abs(sums.sum()) + 1e-12).mean()
    found = np.mean([sign_flip_p(sums, 0.05, np.random.default_rng(seed)) for seed in range(100)])
    # Two signs of 1,024 are as far from 0 as what was seen, and count by half on average.
    exact = beyond + 1 / 1024
    assert found == pytest.approx(exact, abs=4 * np.sqrt(exact / FLIPS / 100) + 1 / FLIPS)


@pytest.mark.parametrize("size", [8, 40, 3_000])
def test_it_is_exact_for_heavy_tails_and_few_sums(size):
    rng = np.random.default_rng(size)
    p = np.array([sign_flip_p(rng.standard_cauchy(size), 0.1, rng) for _ in range(1_000)])
    assert (p <= 0.1).mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 1_000))


@pytest.mark.parametrize("size", [7, 12, 50])
def test_it_is_exact_for_sums_of_few_values(size):
    rng = np.random.default_rng(size)
    p = [sign_flip_p(rng.choice([-1.0, 1.0], size), 0.05, rng) for _ in range(4_000)]
    assert (np.array(p) <= 0.05).mean() == pytest.approx(0.05, abs=4 * np.sqrt(0.0475 / 4_000))


def test_skewed_sums_are_rejected_nearly_as_often_as_they_should():
    rng = np.random.default_rng(3)
    p = np.array([sign_flip_p(rng.exponential(size=40) - 1, 0.05, rng) for _ in range(2_000)])
    assert 0.04 < (p <= 0.05).mean() < 0.08


def test_sums_that_share_their_sign_are_rejected():
    assert sign_flip_p(np.full(30, 0.1), 0.05, np.random.default_rng(0)) <= 1 / (1 + FLIPS)


def test_sums_of_0_count_for_nothing():
    sums = np.array([1.0, 2.0, 4.0, 8.0, 0.0, 0.0, 0.0])
    assert np.isnan(sign_flip_p(sums, 0.05, np.random.default_rng(0)))
    p = [sign_flip_p(sums, 0.125, np.random.default_rng(seed)) for seed in range(200)]
    assert np.mean(p) == pytest.approx(0.125 / 2, abs=0.02)


def test_the_same_sum_in_another_order_is_not_beyond():
    sums = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, -2.1])
    p = [sign_flip_p(sums, 0.05, np.random.default_rng(seed)) for seed in range(200)]
    # All but two of 128 signs are further from 0; by rounding alone none of them is.
    assert min(p) > 0.9
