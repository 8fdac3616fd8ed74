"""A gap at the margin is seldom called no worse; the full study is a benchmark."""

from __future__ import annotations

import pytest

import difference_coverage


@pytest.mark.parametrize("in_errors", [0.0, 0.5, 1.0, 4.0])
def test_no_worse_keeps_its_size(in_errors):
    assert difference_coverage.no_worse_size(in_errors) <= 0.05


@pytest.mark.long
@pytest.mark.parametrize("kind", difference_coverage.KINDS)
def test_differences_cover_in_fifty_logs(kind):
    found = [difference_coverage.one_log(kind, 10, seed) for seed in range(5_000, 5_050)]
    # At a rate of 93 %, fewer than 43 of 50 have a probability below 5 %.
    assert sum(abs(value) <= half for value, half, *_ in found) >= 43


def test_the_standard_error_of_two_rankers_is_smaller_than_if_they_were_independent():
    _, _, error, _, apart = difference_coverage.one_log("two rankers", difference_coverage.MANY, 0)
    assert error < 0.6 * apart
