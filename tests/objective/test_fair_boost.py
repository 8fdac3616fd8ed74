from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.strategies import boolean_ranking
from mpc_lab.inference.estimates import estimate
from mpc_lab.objective.fair_boost import confidence_set, fair_boost, falling_crossings, halves
from mpc_lab.pairing.moments import Quadratic


def estimates(means, half_widths):
    """Return Estimates with these means and, nearly, these half widths of a 95 % interval."""
    means, width = np.asarray(means, float), np.asarray(half_widths, float) / 1.96
    pairs = np.full(len(means), 10**6)
    n = pairs.astype(float)
    sums = Quadratic(n, 0 * n, (width * n) ** 2 * (1 - 1e-6))
    return estimate(pairs, means, {"naive": sums, "query": sums}, clusters=pairs, cluster="query")


STEPS = np.arange(-2.0, 3.0)


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ([2, 2, 1, -1, -2], [0.5]),
        ([2, -1, -1, 3, -1], [-2 + 2 / 3, 1.75]),
        ([-1, 1, 1, 2, 3], []),
        ([1, 1, 0, -1, -1], [0.0]),
        ([1, 0, 0, 1, 1], []),
        ([1, 0, 0, -1, -1], [-1.0]),
        ([1, np.nan, -1, -1, -1], [-1.0]),
        ([np.nan] * 5, []),
    ],
)
def test_crossings_from_plus_to_minus_are_linear_between_steps(means, expected):
    assert falling_crossings(STEPS, np.array(means, float)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("means", "widths", "expected"),
    [
        ([3, 2, 1, -1, -2], [0.5] * 5, [(0.25, 0.75)]),
        ([3, 2, 0, -2, -3], [1] * 5, [(-0.5, 0.5)]),
        ([3, 0, 3, 0, 3], [1] * 5, [(-4 / 3, -2 / 3), (2 / 3, 4 / 3)]),
        ([3, 3, 3, 3, 3], [1] * 5, []),
        ([0, 3, 3, 3, 0], [1] * 5, [(-2, -5 / 3), (5 / 3, 2)]),
        ([3, 3, 3, 3, 3], [1, 1, 0, 1, 1], [(-1, 1)]),
    ],
)
def test_the_confidence_set_may_be_empty_several_or_open(means, widths, expected):
    found = confidence_set(STEPS, estimates(means, widths), 0.95)
    assert np.array(found).ravel() == pytest.approx(np.array(expected, float).ravel(), abs=1e-4)


def test_the_confidence_set_touches_both_ends_where_nothing_is_known():
    missing = estimates([1] * 5, [0] * 5)
    assert confidence_set(STEPS, missing, 0.95) == ((-2.0, 2.0),)


@pytest.fixture(scope="module")
def synthetic():
    return mpc.datasets.synthetic(queries=100_000)


def test_the_fair_boost_of_the_synthetic_example_is_near_its_root(synthetic):
    found = fair_boost(synthetic, "1", 0.005)
    assert found.alpha == pytest.approx(0.0709, abs=0.02)
    assert any(low <= 0.0709 <= high for low, high in found.confidence_set)
    assert not found.unbounded_low
    assert not found.unbounded_high
    assert found.resolution == 0.0025


def test_the_fair_boost_closes_the_gap_on_queries_it_was_not_chosen_on(synthetic):
    held = fair_boost(synthetic, "1", 0.005).held_out
    before, after = held.gaps.estimates.ci_low
    assert before > 0 > after
    assert held.gaps.estimates.ci_high[1] > 0
    assert held.change.ndcg.ci_low > 0
    assert held.change.dcg.ci_low > 0
    assert 0.05 < held.share_changed < 0.3
    assert held.n_queries == 50_000


def test_a_wider_threshold_moves_the_root_down(synthetic):
    found = fair_boost(synthetic, "1", 0.1)
    assert found.alpha == pytest.approx(0.0242, abs=0.01)


def test_boosting_by_the_fair_boost_removes_the_flag(synthetic):
    alpha = fair_boost(synthetic, "1", 0.005).alpha
    scores = synthetic.score + alpha * synthetic.member("1")
    columns = {"q": synthetic.query_code, "s": scores, "y": synthetic.outcome}
    columns["g"] = synthetic.member("1")
    for key, verdict in (("s", "inconclusive"), ("t", "undervalued")):
        columns["t"] = synthetic.score
        ranking = mpc.Ranking(columns, query="q", score=key, outcome="y", group=["g"])
        audit = mpc.audit(ranking, threshold=0.005, progress=False)
        assert audit.headline.verdict.item() == verdict


def test_halves_divide_clusters_and_are_the_same_for_one_seed():
    ranking = mpc.datasets.synthetic(queries=11)
    chosen = halves(ranking, 3)
    assert chosen.sum() == 6
    assert chosen.tolist() == halves(ranking, 3).tolist()
    assert chosen.tolist() != halves(ranking, 4).tolist()


def test_queries_of_one_unit_stay_in_one_half():
    rng = np.random.default_rng(0)
    log = {"q": np.repeat(np.arange(40), 4), "s": rng.random(160), "y": rng.integers(0, 2, 160)}
    log |= {"u": log["q"] % 5, "g": rng.random(160) < 0.5}
    names = {"query": "q", "score": "s", "outcome": "y", "group": ["g"], "unit": "u"}
    found = fair_boost(mpc.Ranking(log, **names), "g", 0.5, seed=1)
    assert found.n_queries == 24


def test_without_a_root_the_sign_is_told():
    query = np.repeat(np.arange(30), 2)
    score = np.tile([0.5, 0.5], 30) + query
    ranking = boolean_ranking(score, [1, 0] * 30, query, g=[True, False] * 30)
    found = fair_boost(ranking, "g", 0.1)
    assert np.isnan(found.alpha)
    assert (found.sign, found.n_crossings, found.held_out) == (1, 0, None)
    assert found.note == "no root in the range: MPC is positive throughout"
    assert found.unbounded_low
    assert found.unbounded_high


def test_one_query_cannot_be_halved():
    ranking = boolean_ranking([1.0, 2.0], [1, 0], g=[True, False])
    with pytest.raises(mpc.MpcError, match="there is only one query or unit"):
        fair_boost(ranking, "g", 1.0)


def test_steps_must_be_odd():
    with pytest.raises(mpc.MpcError, match="odd number of at least 3, but 200"):
        fair_boost(mpc.datasets.synthetic(queries=10), "1", 0.1, steps=200)
