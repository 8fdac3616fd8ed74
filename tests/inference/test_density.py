import numpy as np
import pytest

from mpc_lab.errors import MpcError
from mpc_lab.inference.limit import distance_density


def test_counts_are_those_of_bins_closed_on_the_right():
    distance = np.array([0.0, 0.0, 0.25, 0.5, 0.5, 0.75, 1.5])
    found = distance_density(distance, 1.0, bins=4)
    assert found.counts.tolist() == [1, 2, 1, 0]
    assert found.n_ties == 2
    np.testing.assert_allclose(found.density, found.counts / 0.25 / 7)


def test_the_density_at_0_follows_a_slope():
    rng = np.random.default_rng(0)
    falling = 1 - np.sqrt(1 - rng.random(200_000))
    found = distance_density(falling, 0.3)
    assert found.at_zero == pytest.approx(2.0, abs=0.06)
    assert found.density[0] < 2.0


def test_a_total_puts_the_near_distances_in_proportion():
    distance = np.linspace(0.001, 0.1, 100)
    part, whole = distance_density(distance, 0.1), distance_density(distance, 0.1, total=1000)
    assert whole.at_zero == pytest.approx(part.at_zero / 10)


def test_without_pairs_there_is_no_density():
    found = distance_density(np.empty(0), 0.1)
    assert np.isnan(found.at_zero)
    assert found.counts.sum() == 0


@pytest.mark.parametrize(("width", "bins"), [(0.0, 20), (np.nan, 20), (1.0, 1)])
def test_a_density_needs_a_width_and_bins(width, bins):
    with pytest.raises(MpcError, match="A density must have a width above 0 and at least 2 bins"):
        distance_density(np.ones(3), width, bins=bins)
