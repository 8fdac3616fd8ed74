import numpy as np
import pytest

from mpc_lab.errors import MpcError
from mpc_lab.inference.sequence import confidence_sequence


def width(queries, **options):
    seen = np.array(queries)
    low, high = confidence_sequence(np.array(0.0), np.array(0.0004), seen, seen, **options)
    assert low == -high
    return float(high)


def test_interval_equals_a_value_worked_out_by_hand():
    # a = 0.05: −2 ln a = 5.991465, ln 6.991465 = 1.944690, ρ² = 0.007936155.
    # Qρ² + 1 = 8.936155; 2 · 8.936155/7936.155 = 0.002252011; ln(2.989340/0.05) = 4.090784.
    # √(1000 · 0.0004) · √(0.002252011 · 4.090784) = 0.632456 · 0.095982.
    assert width(1000) == pytest.approx(0.0607040, abs=2e-7)


def test_family_divides_a():
    assert width(1000, tests=5) == pytest.approx(width(1000, level=0.99), rel=1e-12)


def test_there_is_no_interval_before_100_queries_with_a_pair():
    seen, with_pair = np.array([99, 5_000, 5_000]), np.array([99, 99, 100])
    low, _ = confidence_sequence(np.array(0.1), np.array(0.01), seen, with_pair)
    assert np.isfinite(low).tolist() == [False, False, True]


def test_it_is_tightest_against_the_fixed_interval_at_the_planned_number():
    seen = np.array([200, 500, 1000, 2000, 5000])
    fixed = 1.96 * 0.02
    ratio = [width(queries, planned=1000) / fixed for queries in seen]
    assert int(np.argmin(ratio)) == 2
    assert min(ratio) > 1.5


def test_it_hardly_ever_misses_over_many_looks():
    rng = np.random.default_rng(0)
    looks = np.arange(100, 2001, 50)
    path = rng.normal(size=(500, 2000))
    total, square = path.cumsum(axis=1)[:, looks - 1], (path**2).cumsum(axis=1)[:, looks - 1]
    mean = total / looks
    low, high = confidence_sequence(mean, (square / looks - mean**2) / looks, looks, looks)
    assert ((low > 0) | (high < 0)).any(axis=1).mean() <= 0.05


@pytest.mark.parametrize("options", [{"planned": 0}, {"tests": 0}])
def test_counts_must_be_counts(options):
    with pytest.raises(MpcError, match=f"{next(iter(options))} must be a whole number"):
        width(1000, **options)
