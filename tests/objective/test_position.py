from __future__ import annotations

import math
from collections import defaultdict

import pytest
from hypothesis import given

import mpc_lab as mpc
from helpers import oracle
from helpers.strategies import STEP, calmly, logs, ranking_of
from mpc_lab.inference.slices import by_position, pair_table, position_weighted

EPSILON = 4 * STEP


def places(log, scores=None):
    """Return the place of each row in its ranked list, logged positions where there are any."""
    if log.position is not None and scores is None:
        return log.position
    turn = log.position or list(range(len(log.query)))
    s = log.score if scores is None else scores
    place = {}
    for label in dict.fromkeys(log.query):
        ranked = sorted(log.rows_of(label), key=lambda row: (-s[row], turn[row]))
        place |= {row: k + 1 for k, row in enumerate(ranked)}
    return place


def pairs_by_place(log, mode):
    place, found = places(log), defaultdict(list)
    for i, j in oracle.pairs(log, log.names[0], mode, EPSILON):
        found[place[i]].append((i, j))
    return dict(sorted(found.items()))


@pytest.mark.parametrize("cluster", ["query", "item", "union"])
@pytest.mark.parametrize("mode", oracle.MODES)
@calmly(20)
@given(log=logs(groups=2))
def test_the_gap_at_each_position_equals_a_double_loop(log, mode, cluster):
    table = pair_table(ranking_of(log), log.names[0], EPSILON, mode=mode)
    found = by_position(table, cluster=cluster)
    expected = pairs_by_place(log, mode)
    assert found.position.tolist() == list(expected)
    for k, kept in enumerate(expected.values()):
        cell = oracle.cell(oracle.sums_of_part(log, kept), cluster, correction="plain")
        assert (found.n_pairs[k], found.n_queries[k]) == (cell.n_pairs, cell.n_queries)
        assert found.estimates.estimable[k] == cell.estimable
        assert found.estimates.ci_low[k] == pytest.approx(cell.ci_low, abs=1e-10, nan_ok=True)


def weighted_by_loops(log, mode, related):
    """Return the weighted mean and its raw variance, adding z over related pairs of pairs."""
    kept = {
        k: pairs
        for k, pairs in pairs_by_place(log, mode).items()
        if len({log.query[i] for i, _ in pairs}) >= 2
    }
    total = math.fsum(1 / math.log2(k + 1) for k in kept)
    mean, z, listed = 0.0, [], []
    for k, pairs in kept.items():
        d = [log.outcome[i] - log.outcome[j] for i, j in pairs]
        share = 1 / math.log2(k + 1) / total
        mean += share * sum(d) / len(d)
        z += [share * (value - sum(d) / len(d)) / len(d) for value in d]
        listed += pairs
    n = range(len(z))
    variance = math.fsum(z[a] * z[b] for a in n for b in n if related(listed[a], listed[b]))
    return mean, variance, kept


@pytest.mark.parametrize("mode", oracle.MODES)
@calmly(20)
@given(log=logs(groups=2))
def test_the_position_weighted_gap_equals_a_double_loop(log, mode):
    found = position_weighted(pair_table(ranking_of(log), log.names[0], EPSILON, mode=mode))
    cluster = log.cluster
    mean, variance, kept = weighted_by_loops(log, mode, lambda a, b: cluster[a[0]] == cluster[b[0]])
    assert found.n_positions == len(kept)
    assert found.n_left_out == len(pairs_by_place(log, mode)) - len(kept)
    if found.estimates.estimable:
        clusters = len({cluster[i] for pairs in kept.values() for i, _ in pairs})
        expected = math.sqrt(variance * clusters / (clusters - 1))
        assert found.estimates.estimate == pytest.approx(mean, abs=1e-12)
        assert found.estimates.std_error == pytest.approx(expected, rel=1e-8)


@calmly(20)
@given(logs(groups=2, units=False))
def test_the_item_variance_of_the_weighted_gap_equals_a_double_loop(log):
    table = pair_table(ranking_of(log), log.names[0], EPSILON)
    found = position_weighted(table, cluster="union").estimates
    item = log.item

    def share_item(a, b):
        return bool({item[row] for row in a} & {item[row] for row in b})

    if found.estimable:
        _, variance, _ = weighted_by_loops(log, "matched", share_item)
        assert found.variance_by["item"] == pytest.approx(variance, abs=1e-12)


def test_one_position_alone_is_the_gap_itself():
    ranking = mpc.datasets.synthetic(queries=400)
    table = pair_table(ranking, "1", 0.05)
    lone = table.take(table.position == 4)
    found = position_weighted(lone).estimates
    assert found.estimate == pytest.approx(lone.d.mean(), rel=1e-12)
    assert found.std_error == pytest.approx(by_position(lone).estimates.std_error[0], rel=1e-10)


def test_logged_positions_need_not_follow_the_scores():
    columns = {"q": [1] * 4, "s": [4.0, 3.0, 2.0, 1.0], "y": [1, 0, 1, 0], "p": [3, 1, 2, 5]}
    columns["g"] = [True, False, True, False]
    ranking = mpc.Ranking(columns, query="q", score="s", outcome="y", group=["g"], position="p")
    table = pair_table(ranking, "g", 9.0, mode="adjacent")
    assert sorted(zip(table.position, table.other_position, strict=True)) == [(2, 1)]


def test_an_unknown_mode_names_the_near_match():
    with pytest.raises(mpc.MpcError, match="Did you mean 'matched'"):
        pair_table(mpc.datasets.synthetic(queries=3), "1", 0.05, mode="match")
