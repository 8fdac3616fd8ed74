from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import mpc_lab as mpc
from helpers import oracle
from helpers.list_oracle import ranked_rows
from helpers.strategies import STEP, boolean_ranking, calmly, logs, ranking_of
from mpc_lab.objective.antitonic import default_steps
from mpc_lab.objective.boosts import Boosts, boost_curve
from mpc_lab.objective.ndcg import query_objective
from mpc_lab.scoring import Boosted

ALPHAS = [k * STEP for k in (-9, -2, -1, 0, 1, 3, 12)]


def window(log, group, low, high):
    """Return the cross-group pairs with low ≤ s(j) − s(i) ≤ high, by a double loop."""
    rows = range(len(log.query))
    return [
        (i, j)
        for i in rows
        for j in rows
        if log.query[i] == log.query[j]
        and group in log.groups[i]
        and group not in log.groups[j]
        and low <= log.score[j] - log.score[i] <= high
    ]


@calmly(40)
@given(logs(groups=2))
def test_the_gap_along_boosts_equals_a_double_loop(log):
    ranking, group = ranking_of(log), log.names[0]
    found = Boosts(ranking, group).gap(ALPHAS, 3 * STEP)
    for k, alpha in enumerate(ALPHAS):
        sums = oracle.sums(log, window(log, group, alpha, alpha + 3 * STEP))
        cell = oracle.cell(sums, "query", correction="plain")
        assert found.pairs[k] == cell.n_pairs
        if cell.n_pairs:
            assert found.mean[k] == pytest.approx(float(sums.estimate), abs=1e-12)
        assert found.estimates.estimable[k] == cell.estimable
        assert found.estimates.ci_low[k] == pytest.approx(cell.ci_low, abs=1e-10, nan_ok=True)


@calmly(25)
@given(logs(groups=2))
def test_the_union_variance_along_boosts_equals_a_double_loop(log):
    found = Boosts(ranking_of(log), log.names[0]).gap(ALPHAS[2:5], 3 * STEP, cluster="union")
    for k, alpha in enumerate(ALPHAS[2:5]):
        sums = oracle.sums(log, window(log, log.names[0], alpha, alpha + 3 * STEP))
        cell = oracle.cell(sums, "union", correction="plain")
        assert found.estimates.estimable[k] == cell.estimable
        assert found.estimates.ci_high[k] == pytest.approx(cell.ci_high, abs=1e-10, nan_ok=True)


@calmly(40)
@given(logs(groups=2))
def test_the_boosted_objective_equals_that_of_the_boosted_scores(log):
    ranking, group = ranking_of(log), log.names[0]
    boosts = Boosts(ranking, group, weights=lambda k: 0.8**k)
    for alpha in ALPHAS:
        scores = Boosted(alpha).scores(ranking, group)
        expected = query_objective(ranking, scores, weights=lambda k: 0.8**k)
        after, _ = boosts.objective(alpha)
        assert after.dcg == pytest.approx(expected.dcg, abs=1e-12)
        assert after.ideal == pytest.approx(expected.ideal, abs=1e-12)


@calmly(40)
@given(logs(groups=2))
def test_moved_places_are_those_with_another_row(log):
    ranking, group = ranking_of(log), log.names[0]
    turn = log.position or list(range(len(log.query)))
    boosts = Boosts(ranking, group)
    for alpha in ALPHAS:
        boosted = [s + alpha * (group in m) for s, m in zip(log.score, log.groups, strict=True)]
        _, moved = boosts.objective(alpha)
        for k, label in enumerate(dict.fromkeys(log.query)):
            old = ranked_rows(log.rows_of(label), log.score, turn)
            new = ranked_rows(log.rows_of(label), boosted, turn)
            assert moved[k] == sum(a != b for a, b in zip(old, new, strict=True))


@calmly(25)
@given(logs(groups=2))
def test_halves_add_up_to_the_whole(log):
    boosts = Boosts(ranking_of(log), log.names[0])
    kept = np.random.default_rng(0).random(boosts.ranking.n_units) < 0.5
    whole, one, other = (boosts.gap(ALPHAS, 2 * STEP, kept=part) for part in (None, kept, ~kept))
    assert (one.pairs + other.pairs).tolist() == whole.pairs.tolist()
    total = np.nan_to_num(one.mean) * one.pairs + np.nan_to_num(other.mean) * other.pairs
    assert total == pytest.approx(np.nan_to_num(whole.mean) * whole.pairs, abs=1e-10)


def test_at_0_the_gap_is_the_matched_cell_of_an_audit():
    ranking = mpc.datasets.synthetic(queries=500)
    audit = mpc.audit(ranking, groups=["1"], threshold=0.05, cluster="query", adjust="none")
    found = Boosts(ranking, "1").gap([0.0], 0.05).estimates
    plain = audit.headline.std_error_by.sel(variance="query")
    assert found.estimate[0] == pytest.approx(audit.headline.estimate.item(), rel=1e-12)
    assert found.std_error[0] == pytest.approx(plain.item(), rel=1e-12)


def test_large_outcomes_lose_no_digits():
    rng = np.random.default_rng(1)
    score, y, query = rng.random(400), rng.integers(0, 2, 400), np.repeat(np.arange(40), 10)
    member = rng.random(400) < 0.4
    plain = Boosts(boolean_ranking(score, y, query, g=member), "g").gap([0.0, 0.1], 0.2)
    shifted = boolean_ranking(score, y + 1e9 * (query + 1), query, g=member)
    found = Boosts(shifted, "g").gap([0.0, 0.1], 0.2)
    assert found.estimates.std_error == pytest.approx(plain.estimates.std_error, rel=1e-12)


def test_a_curve_holds_the_gap_and_the_objective():
    ranking = mpc.datasets.synthetic(queries=400)
    curve = boost_curve(ranking, "1", 0.05, [0.0, 0.1])
    assert curve.gaps.pairs[0] > 0
    assert curve.objective["ndcg_change"][0] == 0
    assert curve.objective["ndcg_change_high"][0] == 0
    assert curve.share_changed[0] == 0
    assert 0 < curve.share_changed[1] < 1
    assert curve.objective["ndcg"][1] - curve.objective["ndcg"][0] == pytest.approx(
        curve.objective["ndcg_change"][1], abs=1e-12
    )


def test_a_prepared_group_gives_the_same_curve():
    ranking = mpc.datasets.synthetic(queries=100)
    one = boost_curve(ranking, "1", 0.05, [0.02])
    other = boost_curve(Boosts(ranking, "1"), "1", 0.05, [0.02])
    assert one.gaps.mean.tolist() == other.gaps.mean.tolist()


def test_default_steps_span_a_standard_deviation_and_hold_0():
    ranking = boolean_ranking([0.1, 0.7, 0.3], [1, 0, 1], g=[True, False, True])
    alphas = default_steps(ranking.score_std)
    sigma = np.std(ranking.score)
    assert (len(alphas), alphas[0], alphas[100], alphas[200]) == (201, -sigma, 0.0, sigma)


def test_item_clustering_without_items_is_refused():
    ranking = boolean_ranking([1.0, 1.0], [1, 0], g=[True, False])
    with pytest.raises(mpc.MpcError, match="cluster='union' must have items"):
        Boosts(ranking, "g").gap([0.0], 1.0, cluster="union")


@pytest.mark.parametrize("alphas", [[], [np.nan], [[1.0]], "a"])
def test_alphas_that_are_no_numbers_are_refused(alphas):
    ranking = boolean_ranking([1.0, 1.0], [1, 0], g=[True, False])
    with pytest.raises(mpc.MpcError, match="alphas must be"):
        boost_curve(ranking, "g", 1.0, alphas)


@pytest.mark.parametrize("epsilon", [-1.0, np.nan, np.inf])
def test_a_bad_threshold_is_refused(epsilon):
    ranking = boolean_ranking([1.0, 1.0], [1, 0], g=[True, False])
    with pytest.raises(mpc.MpcError, match="epsilon must be a finite number"):
        boost_curve(ranking, "g", epsilon, [0.0])


def test_boosts_of_another_group_are_refused():
    ranking = boolean_ranking([1.0, 1.0], [1, 0], g=[True, False], h=[False, True])
    with pytest.raises(mpc.MpcError, match="prepared for, 'g'; got 'h'"):
        boost_curve(Boosts(ranking, "g"), "h", 1.0, [0.0])


@pytest.mark.parametrize("member", [[True, True], [False, False]])
def test_a_group_without_pairs_has_a_curve_without_numbers(member):
    ranking = boolean_ranking([1.0, 2.0], [1, 0], g=member)
    curve = boost_curve(ranking, "g", 1.0, [0.0, 0.5])
    assert curve.gaps.pairs.tolist() == [0, 0]
    assert np.isnan(curve.gaps.mean).all()
    assert np.isnan(curve.gaps.estimates.estimate).all()
    assert curve.objective["dcg_change"].tolist() == [0.0, 0.0]
