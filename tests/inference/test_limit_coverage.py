"""Do intervals of the limit hold the truth? A small seeded simulation; a benchmark has the rest."""

import numpy as np
import pytest

from helpers.near_pairs import near_pairs
from mpc_lab.inference.bandwidth import choose_bandwidth
from mpc_lab.inference.limit import limit

TRUTH = 0.4
REPETITIONS = 150


@pytest.mark.long
def test_the_limit_covers_where_a_plain_mean_does_not():
    covered, plain_error = [], []
    for seed in range(REPETITIONS):
        pairs = near_pairs(seed=seed, n=1500, queries=400)
        gap, d, _ = pairs
        found = limit(*pairs, bandwidth=choose_bandwidth(*pairs).value)
        covered.append(found.ci_low <= TRUTH <= found.ci_high)
        plain_error.append(d[gap < 0.5].mean() - TRUTH)
    # four Monte-Carlo standard errors on either side of 95 %
    assert abs(np.mean(covered) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / REPETITIONS)
    assert np.mean(plain_error) < -10 * np.std(plain_error) / np.sqrt(REPETITIONS)
