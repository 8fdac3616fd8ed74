"""Where outcomes follow scores, boosting a group lowers its gap and demoting raises it."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.strategies import boolean_ranking
from mpc_lab.pairing.pairs import list_pairs
from mpc_lab.scoring import as_rules


@pytest.fixture(scope="module")
def ranking():
    rng = np.random.default_rng(4)
    n_queries, n = 300, 15
    score = rng.random(n_queries * n)
    outcome = score + 0.1 * rng.normal(size=score.size)
    groups = {name: rng.random(score.size) < p for name, p in (("a", 0.2), ("b", 0.5), ("c", 0.7))}
    return boolean_ranking(score, outcome, np.repeat(np.arange(n_queries), n), **groups)


@pytest.mark.parametrize("mode", ["matched", "adjacent"])
@pytest.mark.parametrize("group", ["a", "b", "c"])
def test_boosted_below_baseline_below_demoted(ranking, group, mode):
    gaps = [
        list_pairs(ranking, group, rule.scores(ranking, group), mode, 0.05)["d"].mean()
        for rule in as_rules(["boosted", "baseline", "demoted"])
    ]
    assert gaps[0] < gaps[1] < gaps[2]
