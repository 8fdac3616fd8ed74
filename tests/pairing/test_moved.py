"""Rows that stay in the logged order have the pairs of rows that are sorted by their new scores."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.pairing_logs import small_ranking
from helpers.params import combined
from mpc_lab.engines import memory
from mpc_lab.engines.memory import MemorySource
from mpc_lab.pairing import measure as measuring
from mpc_lab.pairing.measure import choose_thresholds, has_ties, measure
from mpc_lab.pairing.moved import MovedLog
from mpc_lab.scoring import as_rule
from mpc_lab.vocabulary import swept_modes

STEP = 1 / 1024
EDGES = [-1.0, 0.0, 2 * STEP, 9 * STEP, 30 * STEP, 0.4]
RULES = [
    mpc.Boosted(5 * STEP),
    mpc.Demoted(3 * STEP),
    mpc.Boosted(0.3),
    mpc.Boosted(0.0),
    as_rule("boosted"),
    as_rule("calibrated"),
]
MODES = swept_modes(["matched", "mirrored"])

by_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.label)


def pairs_of(ranking, rule, group):
    """Return the query, the distance and the difference of every pair, by a double loop."""
    scores, member = rule.scores(ranking, group), ranking.member(group)
    found = []
    for i in np.flatnonzero(member):
        for j in np.flatnonzero(~member & (ranking.query_code == ranking.query_code[i])):
            distance = scores[j] - scores[i]
            found.append((ranking.query_code[i], distance, ranking.outcome[i] - ranking.outcome[j]))
    return np.array(found).T


def measured(ranking, rule, edges=EDGES, modes=MODES):
    source = MemorySource(ranking, ranking.groups)
    grid = np.tile(edges, (len(ranking.groups), 1))
    return measure(source, rule, grid, modes=modes, items=False)


@pytest.mark.parametrize(("rule", "levels"), combined(RULES, [8, 64, 4000]))
def test_sums_are_those_of_a_double_loop(rule, levels):
    ranking = small_ranking(queries=25, levels=levels)
    found = measured(ranking, rule)
    for g, group in enumerate(ranking.groups):
        query, signed, difference = pairs_of(ranking, rule, group)
        for m, distance in enumerate((signed, -signed)):
            for e, epsilon in enumerate(EDGES):
                here = (distance >= 0) & (distance <= epsilon)
                sums = np.bincount(query[here].astype(int), weights=difference[here])
                assert found.pairs[m, g, e] == here.sum()
                assert found.queries[m, g, e] == len(np.unique(query[here]))
                assert found.center[g] == 0
                assert found.by["naive"].cu[m, g, e] == pytest.approx(difference[here].sum())
                assert found.by["naive"].uu[m, g, e] == pytest.approx((difference[here] ** 2).sum())
                assert found.by["query"].uu[m, g, e] == pytest.approx((sums**2).sum())


@pytest.mark.parametrize(("rule", "share"), combined(RULES, [0.01, 0.3, 1.0]))
def test_thresholds_are_those_of_sorted_distances(rule, share):
    ranking = small_ranking(levels=500)
    source = MemorySource(ranking, ranking.groups)
    (found,) = choose_thresholds(source, rule, (mpc.Quantile(share),))
    tied = False
    for g, group in enumerate(ranking.groups):
        _, signed, _ = pairs_of(ranking, rule, group)
        distance = np.sort(signed[signed >= 0])
        tied |= bool((distance == 0).any())
        assert found.all_pairs[g] == len(distance)
        assert found.epsilon[g] == distance[mpc.Quantile(share).rank(len(distance)) - 1]
    assert has_ties(source, rule) == tied


@by_rule
def test_rows_sorted_again_have_the_same_sums(rule, monkeypatch):
    ranking = small_ranking(queries=60, size=25)
    stayed = measured(ranking, rule)
    monkeypatch.setattr(measuring, "can_visit", lambda log, layout: False)
    again = measured(ranking, rule)
    for name in ("pairs", "queries", "clusters", "items"):
        np.testing.assert_array_equal(getattr(stayed, name), getattr(again, name))
    for family in ("naive", "query"):
        for square in ("cc", "cu", "uu"):
            ours, theirs = (getattr(one.by[family], square) for one in (stayed, again))
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def walked_logs(monkeypatch, ranking, rule, modes, edges=EDGES):
    """Return the kinds of logs that a sweep walks."""
    kinds = []
    walk = memory.MemoryWalk.total

    def noted(self, task, label, start):
        kinds.append(type(self.log) if label == "sweeping" else None)
        return walk(self, task, label, start)

    monkeypatch.setattr(memory.MemoryWalk, "total", noted)
    measured(ranking, rule, edges, swept_modes(modes))
    return [kind for kind in kinds if kind is not None]


def test_one_walk_serves_all_groups_of_a_boost(monkeypatch):
    walked = walked_logs(monkeypatch, small_ranking(), RULES[0], ["matched"])
    assert walked == [MovedLog]


@pytest.mark.parametrize("modes", [["adjacent"], ["symmetric"]])
def test_neighbours_and_two_sides_walk_the_ranked_list(modes, monkeypatch):
    walked = walked_logs(monkeypatch, small_ranking(), RULES[0], ["matched", *modes])
    assert len(walked) == 3
    assert MovedLog not in walked


def test_long_lists_with_many_close_pairs_go_by_windows(monkeypatch):
    long = small_ranking(queries=2, size=600, items=700, levels=4000)
    assert MovedLog not in walked_logs(monkeypatch, long, RULES[0], ["matched"], [4.0])
    monkeypatch.undo()
    assert walked_logs(monkeypatch, long, RULES[0], ["matched"], [STEP / 2]) == [MovedLog]


def test_the_number_of_threads_does_not_change_a_bit(monkeypatch):
    ranking = small_ranking(queries=900, size=25)
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("MPC_LAB_THREADS", threads)
        monkeypatch.setattr("mpc_lab.pairing.log.ROWS_IN_A_BLOCK", 1 << 11)
        every = mpc.audit(
            ranking, scoring_rules=["boosted", "calibrated"], cluster="query", progress=False
        )
        found.append(every.headline)
    assert found[0].identical(found[1])
    assert found[0].identical(found[2])


@pytest.mark.parametrize(("rule", "levels"), combined(RULES, [8, 4000]))
def test_sums_over_items_are_those_of_merged_logs(rule, levels, monkeypatch):
    ranking = small_ranking(queries=25, levels=levels)
    source = MemorySource(ranking, ranking.groups)
    swept = measured(ranking, rule)
    walked = []
    can_visit_items = measuring.can_visit_items

    def noted(log, moments):
        walked.append(can_visit_items(log, moments))
        return walked[-1]

    monkeypatch.setattr(measuring, "can_visit_items", noted)
    found = measuring.measure_items(source, rule, swept)
    assert walked
    assert all(walked)
    monkeypatch.setattr(measuring, "can_visit_items", lambda log, moments: False)
    merged = measuring.measure_items(source, rule, swept)
    np.testing.assert_array_equal(found.items, merged.items)
    for name, sums in merged.by.items():
        for part in ("cc", "cu", "uu"):
            one, other = getattr(found.by[name], part), getattr(sums, part)
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.cr3["item"], merged.cr3["item"], rtol=1e-11, atol=1e-11)
    for side, squares in merged.squares.items():
        np.testing.assert_array_equal(found.squares[side], squares)
