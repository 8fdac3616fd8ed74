"""The alarm of a trend in a few simulated runs; `trend_alarm.py` makes many."""

from __future__ import annotations

import numpy as np
import pytest

from trend_alarm import changes, rang


def test_the_alarm_rarely_rings_without_a_change():
    # At a rate of 5 %, more than 7 of 50 have a probability below 1 %.
    assert sum(rang(0.0, seed)[0] for seed in range(50)) <= 7


def test_changes_without_a_step_are_standard_normal():
    z = np.concatenate([changes(seed, 0.0, 20) for seed in range(40)])
    assert z.std() == pytest.approx(1, abs=0.1)
    assert z.mean() == pytest.approx(0, abs=0.15)


def test_a_step_of_two_standard_errors_is_found():
    assert np.mean([rang(2.0, seed)[0] for seed in range(10)]) >= 0.8
