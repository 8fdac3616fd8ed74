"""The synthetic example: what each measure sees, and why they disagree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.strategies import boolean_ranking
from mpc_lab.comparators.base import Case, Comparison, Conditions, flag_by_interval
from mpc_lab.comparators.registry import compare, compare_mpc, explain
from mpc_lab.objective.boosts import Boosts


@pytest.fixture(scope="module")
def synthetic():
    return mpc.datasets.synthetic(queries=100_000)


@pytest.fixture(scope="module")
def mpc_of_1(synthetic):
    cell = Boosts(synthetic, "1").gap([0.0], 0.005).estimates
    numbers = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "n_effective")
    return compare_mpc(*(float(getattr(cell, name)[0]) for name in numbers), "undervalued")


@pytest.fixture(scope="module")
def rivals(synthetic):
    return compare(Case(synthetic, "1"))


def test_the_calibration_gap_covers_0_where_matched_pairs_flag(rivals, mpc_of_1):
    gap = rivals[0]
    assert gap.name == "calibration_gap"
    assert gap.ci_low < 0 < gap.ci_high
    assert abs(gap.estimate) < 0.005
    assert mpc_of_1.ci_low > 0.05


def test_the_reason_is_what_the_measures_condition_on(rivals, mpc_of_1):
    found = explain("1", mpc_of_1, rivals)
    assert not found.agree
    assert "mpc" in found.undervalued
    assert "calibration_gap" in found.silent
    assert found.sentence.startswith(
        "MPC calls group '1' undervalued, comparing outcomes at close scores in the same query; "
        "the calibration gap compares items of all queries at about the same score and does not "
        "flag it;"
    )
    assert "the exposure ratio looks at who is where, never at outcomes," in found.sentence
    assert found.sentence.count(".") == 1


@pytest.mark.parametrize("verdict", ["undervalued", "inconclusive", "not estimable"])
def test_a_name_appears_in_the_sentence_as_it_does_elsewhere(verdict, rivals, mpc_of_1):
    own = replace(mpc_of_1, flagged=verdict == "undervalued", says="")
    if verdict == "not estimable":
        own = replace(own, ci_low=np.nan, p_value=np.nan)
    for others in (rivals, []):
        sentence = explain("a\x1b[2J\nb", own, others).sentence
        assert "group 'a[2J b'" in sentence


def test_measures_that_cannot_tell_are_named_apart(rivals, mpc_of_1):
    found = explain("1", mpc_of_1, rivals)
    assert "ndkl" in found.unknown
    assert "skew@10" in found.unknown  # every list has ten items
    assert set(found.flagged) | set(found.silent) | set(found.unknown) == {
        "mpc",
        *(rival.name for rival in rivals),
    }


def rival(says="", conditions=("all", "same", "outcomes"), name="pairwise_accuracy_inter"):
    low = {"undervalued": -2.0, "overvalued": 1.0, "": -1.0}[says]
    made = Comparison(name, low + 0.5, Conditions(*conditions), ci_low=low, ci_high=low + 1.5)
    return flag_by_interval(replace(made, high_is="overvalued"))


FLAG = compare_mpc(0.2, 0.05, 0.1, 0.3, 0.001, 50.0, "undervalued")
NO_FLAG = compare_mpc(0.0, 0.05, -0.1, 0.1, 0.9, 50.0, "inconclusive")
NOTHING = compare_mpc(*[float("nan")] * 5, 1.0, "not estimable")


@pytest.mark.parametrize(
    ("mpc_cell", "others", "sentence"),
    [
        (FLAG, [rival("undervalued")], "MPC calls it undervalued, and no measure contradicts"),
        (NO_FLAG, [rival()], "MPC does not flag it, and no measure contradicts it for group 'g'."),
        (NO_FLAG, [rival("overvalued")], "(inter-group) counts pairs with any scores and calls it"),
        (
            FLAG,
            [rival(), rival(name="pairwise_accuracy_intra")],
            "(inter-group) and pairwise accuracy (intra-group) count pairs with any scores and do",
        ),
        (
            FLAG,
            [rival("overvalued", ("all", "all", "both"), "impact_ratio")],
            "the impact ratio sets exposure against outcomes, whatever the scores, and calls it",
        ),
        (
            FLAG,
            [rival("", ("neighbours", "same", "outcomes"), "inequality_group_below")],
            "compares neighbours of the list, however far apart their scores are, and does not",
        ),
        (
            NOTHING,
            [rival("overvalued")],
            "cannot be estimated for group 'g'; it is flagged by pair",
        ),
        (NOTHING, [rival()], "MPC cannot be estimated for group 'g'; no other measure flags it."),
    ],
)
def test_sentences_name_the_difference(mpc_cell, others, sentence):
    assert sentence in explain("g", mpc_cell, others).sentence


def test_a_verdict_is_what_mpc_says():
    cell = compare_mpc(-0.2, 0.05, -0.3, -0.1, 0.001, 50.0, "overvalued")
    assert (cell.flagged, cell.says) == (True, "overvalued")


@pytest.mark.parametrize(
    ("low", "high", "flagged", "says"),
    [(0.1, 0.2, True, "undervalued"), (-0.2, -0.1, True, "overvalued"), (-0.1, 0.1, False, "")],
)
def test_a_flag_is_an_interval_without_the_null(low, high, flagged, says):
    made = Comparison("x", 0.0, Conditions("all", "same", "outcomes"), ci_low=low, ci_high=high)
    made = flag_by_interval(replace(made, high_is="undervalued"))
    assert (made.flagged, made.says) == (flagged, says)


def ranked_too_low(n=400, seed=0):
    """Return lists of four whose group items do better at every score."""
    rng = np.random.default_rng(seed)
    score = rng.random(4 * n)
    member = np.tile([True, False, True, False], n)
    outcome = score + 0.4 * member + 0.1 * rng.normal(size=4 * n)
    return boolean_ranking(score, outcome, np.repeat(np.arange(n), 4), g=member)


def test_measures_of_outcomes_agree_on_a_plain_bias():
    found = {m.name: m for m in compare(Case(ranked_too_low(), "g"))}
    names = ["calibration_gap", "pairwise_accuracy_inter", "inequality_group_below"]
    for name in [*names, "inequalities_joint", "treatment_ratio"]:
        assert found[name].says == "undervalued", name
    assert not found["inequality_group_above"].flagged
    assert not found["exposure_ratio"].flagged


def test_swapping_the_group_with_the_rest_turns_the_measures_around():
    ranking = ranked_too_low()
    member = ranking.member("g")
    turned = boolean_ranking(ranking.score, ranking.outcome, ranking.query_code, g=~member)
    one = {m.name: m for m in compare(Case(ranking, "g"))}
    other = {m.name: m for m in compare(Case(turned, "g"))}
    for name in ("pairwise_accuracy_overall", "pairwise_accuracy_inter"):
        assert other[name].estimate == pytest.approx(-one[name].estimate, abs=1e-12)
    assert other["impact_ratio"].estimate == pytest.approx(1 / one["impact_ratio"].estimate)
    assert other["inequality_group_above"].estimate == one["inequality_group_below"].estimate
    assert other["ndkl"].estimate == pytest.approx(one["ndkl"].estimate, abs=1e-12)
