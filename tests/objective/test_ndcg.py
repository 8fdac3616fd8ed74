from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from sklearn.metrics import dcg_score, ndcg_score

import mpc_lab as mpc
from helpers.list_oracle import dcg, ideal
from helpers.strategies import boolean_ranking, calmly, logs, ranking_of
from mpc_lab.objective.ndcg import mean_objective, paired_change, position_weights, query_objective


def queries(log):
    """Yield scores and outcomes of each query in the order in which queries first appear."""
    for label in dict.fromkeys(log.query):
        rows = log.rows_of(label)
        yield [log.score[r] for r in rows], [log.outcome[r] for r in rows]


@calmly(40)
@given(logs())
def test_dcg_equals_a_plain_loop_with_ties_sharing_their_weights(log):
    found = query_objective(ranking_of(log))
    expected = [dcg(scores, outcomes) for scores, outcomes in queries(log)]
    best = [ideal(outcomes) for _, outcomes in queries(log)]
    assert found.dcg == pytest.approx(expected, abs=1e-12)
    assert found.ideal == pytest.approx(best, abs=1e-12)


@calmly(30)
@given(logs(outcomes="integers"))
def test_other_weights_and_exponential_gain_equal_a_plain_loop(log):
    found = query_objective(ranking_of(log), weights=lambda k: 1 / k, gain="exponential")
    expected = [dcg(s, [2**y - 1 for y in ys], lambda k: 1 / k) for s, ys in queries(log)]
    assert found.dcg == pytest.approx(expected, rel=1e-12)


@calmly(30)
@given(logs(outcomes="integers"))
def test_ndcg_equals_scikit_learn(log):
    found = query_objective(ranking_of(log))
    for k, (scores, outcomes) in enumerate(queries(log)):
        if len(scores) > 1 and any(outcomes):
            assert found.ndcg[k] == pytest.approx(ndcg_score([outcomes], [scores]), abs=1e-12)
            assert found.dcg[k] == pytest.approx(dcg_score([outcomes], [scores]), abs=1e-12)


@pytest.mark.parametrize(("gain", "jarvelin"), [("linear", True), ("exponential", False)])
def test_ndcg_equals_ranx_without_ties(gain, jarvelin):
    pytest.importorskip("ranx")
    # The kernel for one query: the public door compiles a minute's worth of metrics.
    from ranx.metrics.ndcg import _ndcg

    rng = np.random.default_rng(3)
    query, item = np.repeat(np.arange(20), 9), np.tile(np.arange(9.0), 20)
    # Every query has a relevant item: ranx counts the others as 0, we leave them out.
    score, grade = rng.permutation(180) / 7, rng.integers(0, 5, 180) + (item == 0)
    found = query_objective(boolean_ranking(score, grade, query, g=item < 3), gain=gain)
    for q in range(20):
        qrels, run = (
            np.column_stack([item, by])[query == q][np.argsort(-by[query == q])]
            for by in (grade.astype(float), score)
        )
        assert found.ndcg[q] == pytest.approx(_ndcg(qrels, run, 0, 1, jarvelin), abs=1e-12)


@calmly(30)
@given(logs())
def test_the_order_of_rows_does_not_matter(log):
    ranking = ranking_of(log)
    frame = ranking.to_frame().iloc[::-1]
    names = {"query": "query", "score": "score", "outcome": "outcome", "group": "groups"}
    turned = mpc.Ranking(frame, **names)
    one, other = query_objective(ranking), query_objective(turned)
    labels = ranking.query_labels(np.arange(ranking.n_queries)).tolist()
    place = [turned.query_labels(np.arange(turned.n_queries)).tolist().index(k) for k in labels]
    assert other.dcg[place] == pytest.approx(one.dcg, abs=1e-12)


def test_logged_positions_do_not_change_the_objective():
    columns = {"q": [1, 1, 1], "s": [3.0, 2.0, 1.0], "y": [1, 0, 1], "g": ["a", "b", "a"]}
    names = {"query": "q", "score": "s", "outcome": "y", "group": "g"}
    plain = mpc.Ranking(columns, **names)
    logged = mpc.Ranking({**columns, "p": [3, 1, 2]}, **names, position="p")
    assert query_objective(logged).dcg.tolist() == query_objective(plain).dcg.tolist()


def test_queries_without_gain_and_of_one_item_are_counted():
    query = ["a", "a", "b", "b", "c"]
    ranking = boolean_ranking([1, 2, 1, 2, 1], [0, 0, 1, 0, 1], query, g=[True] * 5)
    found = query_objective(ranking)
    assert (found.n_without_ideal, found.n_single) == (1, 1)
    assert np.isnan(found.ndcg[0])
    mean = mean_objective(found, ranking)
    assert mean["ndcg"].estimate == pytest.approx((1 / math.log2(3) + 1) / 2)
    assert mean["dcg"].estimate == pytest.approx((0 + 1 / math.log2(3) + 1) / 3)


def test_negative_outcomes_have_dcg_but_no_ndcg():
    log = ([1, 2] * 3, [-1, 2, 3, 4, 5, 4], [1, 1, 2, 2, 3, 3])
    ranking = boolean_ranking(*log, g=[True] * 6)
    mean = mean_objective(query_objective(ranking), ranking)
    assert mean["dcg"].estimable
    assert not mean["ndcg"].estimable
    assert np.isnan(mean["ndcg"].estimate)


def test_the_standard_error_of_the_mean_is_that_of_queries():
    ranking = mpc.datasets.synthetic(queries=300)
    found = query_objective(ranking)
    mean = mean_objective(found, ranking)["ndcg"]
    values = found.ndcg[found.kept]
    assert mean.estimate == pytest.approx(values.mean(), rel=1e-12)
    assert mean.std_error == pytest.approx(values.std(ddof=1) / np.sqrt(len(values)), rel=1e-10)
    assert mean.dof == len(values) - 1


def test_with_units_the_standard_error_equals_statsmodels():
    rng = np.random.default_rng(0)
    log = {"q": np.repeat(np.arange(60), 5), "s": rng.normal(size=300)}
    log |= {"u": log["q"] // 7 % 6, "y": rng.integers(0, 4, 300), "g": rng.integers(0, 2, 300)}
    ranking = mpc.Ranking(log, query="q", score="s", outcome="y", group="g", unit="u")
    found = query_objective(ranking)
    mean = mean_objective(found, ranking)["dcg"]
    unit = (np.arange(60) // 7 % 6).astype(int)
    fit = sm.OLS(found.dcg, np.ones(60)).fit(
        cov_type="cluster", cov_kwds={"groups": unit}, use_t=True
    )
    # statsmodels multiplies by (n − 1)/(n − k) as well, which is 1 for a lone constant.
    assert mean.std_error == pytest.approx(fit.bse[0], rel=1e-10)
    counts = np.bincount(unit)
    assert mean.n_effective == pytest.approx(counts.sum() ** 2 / (counts**2).sum())


def test_a_paired_change_is_the_mean_of_query_differences():
    ranking = mpc.datasets.synthetic(queries=200)
    scores = ranking.score + 0.1 * ranking.member("1")
    change = paired_change(ranking, scores)
    before, after = query_objective(ranking), query_objective(ranking, scores)
    difference = (after.ndcg - before.ndcg)[before.kept]
    assert change.ndcg.estimate == pytest.approx(difference.mean(), rel=1e-10)
    standard = difference.std(ddof=1) / np.sqrt(len(difference))
    assert change.ndcg.std_error == pytest.approx(standard, rel=1e-10)
    assert change.n_without_ideal == (before.ideal == 0).sum()


def test_a_change_that_changes_nothing_is_0_for_sure():
    ranking = mpc.datasets.synthetic(queries=50)
    change = paired_change(ranking, ranking.score * 2)
    for part in (change.dcg, change.ndcg):
        assert (part.estimate, part.std_error, part.ci_low, part.ci_high) == (0, 0, 0, 0)


def test_one_query_alone_has_a_mean_but_no_interval():
    ranking = boolean_ranking([1.0, 2.0], [1, 0], g=[True, False])
    mean = mean_objective(query_objective(ranking), ranking)["ndcg"]
    assert mean.estimate == pytest.approx(1 / math.log2(3))
    assert np.isnan(mean.ci_low)
    assert mean.reason == "effective clusters below 3"


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ([3, 2], "at least 3 numbers"),
        ([[3, 2, 1]], "at least 3 numbers"),
        ([3, 2, 2], "strictly decreasing"),
        ([1, 0, -1], "strictly decreasing"),
        ([np.nan, 1, 0], "strictly decreasing"),
        (["a", "b", "c"], "must be numbers"),
        (lambda k: k, "strictly decreasing"),
    ],
)
def test_weights_that_do_not_fall_are_refused(weights, problem):
    with pytest.raises(mpc.MpcError, match=problem):
        position_weights(weights, 3)


def test_an_unknown_gain_names_the_near_match():
    ranking = boolean_ranking([1.0], [1], g=[True])
    with pytest.raises(mpc.MpcError, match="Did you mean 'linear'"):
        query_objective(ranking, gain="lineer")


def test_exponential_gain_that_overflows_is_refused():
    ranking = boolean_ranking([1.0], [2000], g=[True])
    with pytest.raises(mpc.MpcError, match="at most 1023 for exponential gain; got 2000"):
        query_objective(ranking, gain="exponential")
