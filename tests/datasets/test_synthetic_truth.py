from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.datasets import synthetic_truth

PUBLISHED = [(0.02, 0.0595), (0.05, 0.0456), (0.1, 0.0228), (0.2, -0.0219)]


@pytest.mark.parametrize(("epsilon", "gap"), PUBLISHED)
def test_it_reproduces_the_known_gaps(epsilon, gap):
    assert round(synthetic_truth(epsilon), 4) == gap


def test_its_limit_is_the_mean_difference_at_equal_scores():
    assert synthetic_truth(0) == pytest.approx((0.4 * 6 + 0.2 * 10) / 16 / 4, abs=1e-14)
    assert synthetic_truth(1e-9) == pytest.approx(synthetic_truth(0), abs=1e-8)


@pytest.mark.parametrize("epsilon", [0.3, 0.5, 0.75, 1.0])
def test_it_equals_a_sum_over_a_fine_grid_of_scores(epsilon):
    s = (np.arange(1500) + 0.5) / 1500
    gap = s[None, :] - s[:, None]
    pair = (gap >= 0) & (gap <= epsilon)
    total = 0.0
    for weight, slope_1, slope_2 in [(6, 1.5, 1.1), (10, 0.9, 0.7)]:
        mean_1, mean_2 = (
            np.where(s < 0.5, b * s, 1 - (2 - b) * (1 - s)) for b in (slope_1, slope_2)
        )
        total += weight / 16 * (mean_1[:, None] - mean_2[None, :])[pair].sum()
    assert synthetic_truth(epsilon) == pytest.approx(total / pair.sum(), abs=1e-3)


@pytest.mark.parametrize("epsilon", [-0.1, 1.5, float("nan"), "wide", None])
def test_a_threshold_outside_the_scores_is_one_sentence(epsilon):
    with pytest.raises(mpc.MpcError, match="epsilon must be a finite number of at least 0 and"):
        synthetic_truth(epsilon)
