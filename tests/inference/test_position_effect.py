"""Outcomes of lower items multiplied by 1 + γ: the gap, and where the verdict flips."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from scipy import stats
from statsmodels.stats.multitest import multipletests

import mpc_lab as mpc
from helpers import oracle
from helpers.strategies import STEP, boolean_ranking, calmly, logs, ranking_of
from mpc_lab.inference.slices import gamma_flip, pair_table, position_sensitivity

EPSILON = 4 * STEP


def multiplied(log, kept, place, gamma):
    """Return the differences of pairs whose lower item's outcome is multiplied."""
    d = []
    for i, j in kept:
        one, other = (
            log.outcome[row] * (1 + gamma * (place[row] > place[mate]))
            for row, mate in ((i, j), (j, i))
        )
        d.append(one - other)
    return np.array(d)


def places(log):
    if log.position is not None:
        return log.position
    place = {}
    for label in dict.fromkeys(log.query):
        ranked = sorted(log.rows_of(label), key=lambda row: (-log.score[row], row))
        place |= {row: k + 1 for k, row in enumerate(ranked)}
    return place


def variances(log, kept, d):
    u = (d - d.mean()) / len(d)
    query, item = oracle.same([log.cluster[i] for i, _ in kept]), oracle.share_item(log, kept)
    return {"query": u @ query @ u, "item": u @ item @ u, "union": u @ (query | item) @ u}


@pytest.mark.parametrize("mode", oracle.MODES)
@calmly(25)
@given(log=logs(groups=2))
def test_the_gap_at_a_position_effect_equals_multiplied_outcomes(log, mode):
    gamma = 0.75
    table = pair_table(ranking_of(log), log.names[0], EPSILON, mode=mode)
    found = position_sensitivity(table, cluster="union")
    kept = oracle.pairs(log, log.names[0], mode, EPSILON)
    if math.isnan(found.estimate):
        return
    d = multiplied(log, kept, places(log), gamma)
    theta, error = found.at(gamma)
    assert theta == pytest.approx(d.mean(), abs=1e-10)
    g = found.dof + 1
    variance = max(variances(log, kept, d).values()) * g / (g - 1)
    if variance > 1e-12:
        assert error**2 == pytest.approx(variance, rel=1e-7, abs=1e-10)


def lists(seed=3, queries=40, shown=8):
    """Return a log without ties in which two groups have higher outcomes at the same score."""
    rng = np.random.default_rng(seed)
    n = queries * shown
    group = rng.choice(["a", "b", "c"], n)
    score = rng.permutation(n) * STEP
    lift = 1.2 * (group == "a") + 0.6 * (group == "b")
    outcome = np.round(2 + score / n / STEP + lift + rng.normal(size=n), 2)
    return oracle.Log(
        query=(np.arange(n) // shown).tolist(),
        score=score.tolist(),
        outcome=outcome.tolist(),
        groups=[frozenset([name]) for name in group],
        item=np.arange(n).tolist(),
    )


class ListedPairs:
    """What the pairs of one cell have at every γ: found by double loops, once."""

    def __init__(self, log, group, mode, epsilon):
        place, kept = places(log), oracle.pairs(log, group, mode, epsilon)
        self.outcomes = np.array([(log.outcome[i], log.outcome[j]) for i, j in kept])
        self.lower = np.array([(place[i] > place[j], place[j] > place[i]) for i, j in kept])
        self.counts = np.unique([log.query[i] for i, _ in kept], return_counts=True)[1]
        self.same_query = oracle.same([log.query[i] for i, _ in kept]).astype(float)
        self.t = stats.t(self.counts.sum() ** 2 / (self.counts**2).sum() - 1)

    def at(self, gamma):
        """Return the gap and its standard error with lower outcomes multiplied."""
        d = -np.diff(self.outcomes * (1 + gamma * self.lower), axis=1)[:, 0]
        u = (d - d.mean()) / len(d)
        queries = len(self.counts)
        return d.mean(), math.sqrt(u @ self.same_query @ u * queries / (queries - 1))


def list_sides(log, epsilon):
    """Return the listed pairs of each group, for pairs with the item above and the item below."""
    modes = ("matched", "mirrored")
    return [{name: ListedPairs(log, name, mode, epsilon) for name in log.names} for mode in modes]


def holm_by_loops(p):
    """Return Holm's adjusted p-values; statsmodels' takes a thousand times as long."""
    adjusted, largest = [0.0] * len(p), 0.0
    for k, at in enumerate(sorted(range(len(p)), key=lambda at: p[at])):
        largest = adjusted[at] = max(largest, min(1.0, (len(p) - k) * p[at]))
    return adjusted


@pytest.mark.parametrize("p", [[0.01, 0.04, 0.03], [0.5, 0.02, 0.02, 0.9], [0.001], [0.3, 0.3]])
def test_holm_by_loops_is_that_of_statsmodels(p):
    assert holm_by_loops(p) == pytest.approx(multipletests(p, method="holm")[1])


def verdict_by_loops(sides, group, gamma):
    """Return the verdict at γ from double loops and Holm's method over the groups of a side."""
    ends = []
    for side in sides:
        cells = {name: (*pairs.at(gamma), pairs.t) for name, pairs in side.items()}
        p = [2 * t.sf(abs(mean) / se) for mean, se, t in cells.values()]
        adjusted = dict(zip(cells, holm_by_loops(p), strict=True))
        ends.append((cells[group][0], adjusted[group] <= 0.05))
    if all(rejected for _, rejected in ends) and ends[0][0] * ends[1][0] > 0:
        return "undervalued" if ends[0][0] > 0 else "overvalued"
    return "inconclusive"


@pytest.mark.parametrize("group", ["a", "b", "c"])
def test_the_flip_is_where_the_verdict_by_loops_changes(group):
    log = lists()
    names = {"query": log.query, "score": log.score, "outcome": log.outcome}
    names["group"] = [min(one) for one in log.groups]
    ranking = mpc.Ranking(names, **{name: name for name in names})
    audit = mpc.audit(ranking, threshold=40 * STEP, epsilon=[0.01], progress=False)
    sides = list_sides(log, 40 * STEP)
    flip = float(audit.by_position(group).gamma_flip)
    cell = audit.headline.verdict.sel(group=group, pairing_mode="matched").item()
    start = verdict_by_loops(sides, group, 0.0)
    assert start == cell
    # What changes and changes back between two steps of the grid is not seen.
    grid = 0.008 * np.arange(-124, 501, 1 if flip == flip else 12)
    tried = [gamma for gamma in grid if flip != flip or abs(gamma) < abs(flip)]
    assert {verdict_by_loops(sides, group, gamma) for gamma in tried} == {start}
    if flip == flip:
        assert verdict_by_loops(sides, group, flip * (1 + 1e-6)) != start


def test_an_undervalued_group_that_is_ranked_lower_flips_where_lower_places_help():
    rng = np.random.default_rng(5)
    n = 400
    below, above = rng.random(n) < 0.8, rng.random(n) < 0.3
    score = np.tile([1.0, 1.01], n) + 2 * np.repeat(np.arange(n), 2)
    outcome = np.column_stack([below, above]).ravel().astype(float)
    ranking = boolean_ranking(score, outcome, np.repeat(np.arange(n), 2), g=[True, False] * n)
    side = [position_sensitivity(pair_table(ranking, "g", 0.05))]
    flip = gamma_flip([side], 0)
    assert -1 < flip < 0
    theta, error = side[0].at(flip)
    assert theta / error == pytest.approx(stats.t(side[0].dof).ppf(0.975), rel=1e-6)


def test_a_gap_that_no_position_effect_explains_never_flips():
    # The other item is below and always has 0: multiplying 0 changes nothing.
    score = np.tile([1.01, 1.0], 50)
    outcome = np.column_stack([[0, 1] * 25, np.zeros(50)]).ravel()
    ranking = boolean_ranking(score, outcome, np.repeat(np.arange(50), 2), g=[True, False] * 50)
    side = [position_sensitivity(pair_table(ranking, "g", 0.05, mode="mirrored"))]
    assert side[0].slope == 0
    assert math.isnan(gamma_flip([side], 0))


def test_a_tolerance_is_a_verdict_too():
    ranking = mpc.datasets.synthetic(queries=3_000)
    side = [position_sensitivity(pair_table(ranking, "1", 0.1))]
    within = gamma_flip([side], 0, tolerance=0.2)
    theta, error = side[0].at(within)
    half = stats.t(side[0].dof).ppf(0.975) * error
    assert max(abs(theta - half), abs(theta + half)) == pytest.approx(0.2, abs=1e-6)


def test_no_verdict_has_nothing_to_flip():
    ranking = boolean_ranking([1.0, 1.0], [1, 0], g=[True, False])
    assert math.isnan(gamma_flip([[position_sensitivity(pair_table(ranking, "g", 1.0))]], 0))
