"""Do 95 % intervals hold the truth? A small seeded simulation; the full one is a benchmark."""

from __future__ import annotations

import numpy as np
import pytest

from interval_coverage import EPSILONS, covered, truth

pytestmark = pytest.mark.xdist_group("coverage")  # one simulation for all tests
REPETITIONS = 120


@pytest.fixture(scope="module")
def hits():
    return covered(range(1000, 1000 + REPETITIONS), queries=500)


def test_the_truth_is_that_of_the_paper():
    known = {0.02: 0.0595, 0.05: 0.0456, 0.1: 0.0228, 0.2: -0.0219}
    for epsilon, value in known.items():
        assert truth(epsilon) == pytest.approx(value, abs=5e-5)


@pytest.mark.long
def test_clustering_by_query_covers(hits):
    # four Monte-Carlo standard errors below and above 95 %
    slack = 4 * np.sqrt(0.95 * 0.05 / REPETITIONS)
    assert np.abs(hits["query"].mean(axis=0) - 0.95).max() <= slack


@pytest.mark.long
def test_ignoring_clusters_covers_less_where_pairs_are_many(hits):
    wide = EPSILONS.index(0.2)
    query, naive = (hits[family].mean(axis=0)[wide] for family in ("query", "naive"))
    assert naive < query
    assert naive < 0.92
