from __future__ import annotations

import numpy as np
import pytest

import fair_boost as simulation
import mpc_lab as mpc
from helpers.strategies import boolean_ranking
from mpc_lab.objective.boosts import Boosts
from mpc_lab.objective.ndcg import paired_change
from mpc_lab.objective.offsets import fair_boost, halves


@pytest.fixture(scope="module")
def synthetic():
    return mpc.datasets.synthetic(queries=100_000)


@pytest.fixture(scope="module")
def found(synthetic):
    return fair_boost(synthetic, "1", 0.005)


def test_the_fair_boost_of_the_synthetic_example_is_near_its_root(found):
    assert found.alpha == pytest.approx(0.0734, abs=0.01)
    ((low, high),) = found.confidence_set
    assert low < 0.0734 < high
    assert high - low < 0.05
    assert not found.unbounded_low
    assert not found.unbounded_high
    assert found.resolution == 0
    assert found.note == ""


def test_no_threshold_enters_the_root_or_its_set(synthetic, found):
    wide = fair_boost(synthetic, "1", 0.1)
    assert (wide.alpha, wide.confidence_set) == (found.alpha, found.confidence_set)
    assert wide.held_out.before.mean != found.held_out.before.mean


def test_the_gap_is_smaller_on_queries_the_boost_was_not_chosen_on(found):
    held = found.held_out
    assert held.before.estimates.ci_low[0] > 0
    assert abs(held.after.mean[0]) < 0.5 * held.before.mean[0]
    assert held.change.dcg.ci_low > 0
    assert 0.05 < held.share_changed < 0.3
    assert held.n_queries == 100_000


def test_each_half_chooses_for_the_other():
    ranking = mpc.datasets.synthetic(queries=3000, seed=2)
    chosen = halves(ranking, 0)
    frame = ranking.to_frame()
    roots = []
    for half in (chosen, ~chosen):
        part = frame[half[ranking.query_code]]
        names = {"query": "query", "score": "score", "outcome": "outcome", "group": "type"}
        own = mpc.Ranking(part, **names)
        # The range is that of the whole log, beyond which the root does not look.
        roots.append(Boosts(own, "1").fit.root)
    held = fair_boost(ranking, "1", 0.05).held_out
    assert held.alphas == pytest.approx(roots, abs=1e-9)
    alpha = np.where(chosen, held.alphas[1], held.alphas[0])[ranking.query_code]
    raised = frame.assign(score=frame["score"] + alpha * (frame["type"] == "1"))
    after = mpc.audit(raised, **names, groups=["1"], threshold=0.05, correction="plain")
    assert held.after.mean[0] == pytest.approx(float(after.headline.estimate.values.ravel()[0]))
    change = paired_change(ranking, raised["score"].to_numpy())
    assert held.change.ndcg.estimate == pytest.approx(change.ndcg.estimate)
    assert held.change.ndcg.ci_low == pytest.approx(change.ndcg.ci_low)


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
    ready = Boosts(mpc.Ranking(log, **names), "g")
    shifted = ready.shift(np.arange(5.0))
    moved = shifted.runs.inside.score - ready.runs.inside.score
    unit = ready.ranking.unit_code[ready.log.row[ready.runs.inside.place]]
    np.testing.assert_allclose(moved, unit)


@pytest.mark.parametrize(("sign", "word"), [(1, "above"), (-1, "below")])
def test_without_a_root_the_sign_is_given(sign, word):
    query = np.repeat(np.arange(30), 2)
    score = np.tile([0.5, 0.5], 30) + query
    ranking = boolean_ranking(score, [1, 1 - sign] * 30, query, g=[True, False] * 30)
    found = fair_boost(ranking, "g", 0.1)
    assert np.isnan(found.alpha)
    assert (found.sign, found.held_out) == (sign, None)
    assert found.note == f"no root in the range: the fitted difference is {word} 0 throughout"
    assert found.unbounded_low
    assert found.unbounded_high


def test_scores_that_run_against_outcomes_leave_the_set_unbounded():
    ranking = simulation.harder(1)[0]
    frame = ranking.to_frame()
    names = {"query": "query", "score": "s", "outcome": "outcome", "group": ["g"]}
    upside_down = mpc.Ranking(frame.assign(s=-frame["score"]), **names)
    found = fair_boost(upside_down, "g", 0.02)
    assert found.unbounded_low
    assert found.unbounded_high


def test_the_step_is_known_where_scores_are_coarse():
    """Pairs at −1, 0 and 1 with means 1, 1 and −1: the root is halfway from 0 to 1."""
    query = np.repeat(np.arange(40), 2)
    distance = np.tile([-1.0, 0.0, 1.0, 1.0], 10)
    score = np.stack([np.zeros(40), distance], axis=1).ravel()
    outcome = np.stack([(distance < 1) * 1.0, (distance == 1) * 1.0], axis=1).ravel()
    ranking = boolean_ranking(score * 0.1, outcome, query, g=[True, False] * 40)
    wide = boolean_ranking(
        np.concatenate([score * 0.1, [-1.0, 1.0]]),
        np.concatenate([outcome, [0.0, 0.0]]),
        np.concatenate([query, [40, 41]]),
        g=[True, False] * 41,
    )
    assert ranking.score_std < 0.1 < wide.score_std
    assert fair_boost(wide, "g", 0.01).alpha == pytest.approx(0.05)


def test_one_query_cannot_be_halved():
    ranking = boolean_ranking([1.0, 2.0], [1, 0], g=[True, False])
    with pytest.raises(mpc.MpcError, match=r"at least two queries or units, .*; got one"):
        fair_boost(ranking, "g", 1.0)


@pytest.mark.parametrize("name", simulation.DESIGNS)
@pytest.mark.long
def test_the_root_is_found_and_its_set_covers_it(name):
    """The full study is benchmarks/fair_boost.py."""
    draw, truth = simulation.DESIGNS[name]
    seen = simulation.summarise([simulation.seen(draw, truth, s) for s in range(50)], truth)
    assert seen["without a root"] == seen["wrong sign"] == 0
    assert seen["covers"] >= 0.93 - 4 * np.sqrt(0.93 * 0.07 / 50)
    assert seen["rmse"] <= 0.025
    assert seen["width"] <= 0.13
    assert 2 * seen["rmse"] < seen["exact width"] < seen["width"]
    assert abs(seen["mean"] - truth) <= 4 * seen["rmse"] / np.sqrt(50)
