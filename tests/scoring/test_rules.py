from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import rankdata

import mpc_lab as mpc
from helpers.strategies import boolean_ranking, calmly, logs, ranking_of
from mpc_lab.scoring import (
    Baseline,
    Boosted,
    Calibrated,
    Column,
    Custom,
    Demoted,
    as_rule,
    as_rules,
)


@pytest.fixture
def ranking():
    log = {
        "q": ["a", "a", "a", "b"],
        "score": [1.0, 2.0, 3.0, 6.0],
        "y": [0, 1, 0, 1],
        "kind": ["x", "y", "x", ""],
        "other": np.array([4, 3, 2, 1], dtype=np.float32),
        "text": ["1", "2", "3", "4"],
        "holes": [1.0, np.nan, 2.0, 3.0],
    }
    return mpc.Ranking(log, query="q", score="score", outcome="y", group="kind")


def test_baseline_is_the_logged_score(ranking):
    assert Baseline().scores(ranking, "x").tolist() == [1, 2, 3, 6]


def test_boosted_and_demoted_move_the_group_alone(ranking):
    assert Boosted(0.5).scores(ranking, "x").tolist() == [1.5, 2, 3.5, 6]
    assert Demoted(0.5).scores(ranking, "y").tolist() == [1, 1.5, 3, 6]


def test_the_default_boost_is_a_third_of_the_population_deviation(ranking):
    third = np.sqrt(np.mean((ranking.score - 3) ** 2)) / 3
    assert Boosted().alpha_in(ranking) == pytest.approx(third, rel=1e-15)
    assert Demoted().alpha_in(ranking) == pytest.approx(-third, rel=1e-15)
    assert Baseline().alpha_in(ranking) is None


def test_a_boost_of_0_changes_no_bit(ranking):
    assert Boosted(0).scores(ranking, "x").tobytes() == ranking.score.tobytes()


def test_a_column_gives_its_numbers_as_float64(ranking):
    scores = Column("other").scores(ranking, "x")
    assert scores.dtype == np.float64
    assert scores.tolist() == [4, 3, 2, 1]


def test_a_function_gets_ranking_and_group_and_gives_its_name(ranking):
    def reversed_in(log, group):
        return (-log.score * log.member(group)).tolist()

    rule = as_rule(reversed_in)
    assert rule.label == "reversed_in"
    assert rule.scores(ranking, "x").tolist() == [-1, 0, -3, 0]


@pytest.mark.parametrize(
    ("given", "label", "shared"),
    [
        ("baseline", "baseline", True),
        ("boosted", "boosted", False),
        ("demoted", "demoted", False),
        ("calibrated", "calibrated", False),
        (Boosted(0.1), "boosted(0.1)", False),
        (Demoted(2), "demoted(2.0)", False),
        (Column("other"), "other", True),
    ],
)
def test_rules_have_labels_and_say_whether_groups_share_them(given, label, shared):
    rule = as_rule(given)
    assert rule.label == label
    assert rule.same_for_all_groups is shared
    assert rule.in_sample is (label == "calibrated")


def minimax_fit(score, outcome):
    """Isotonic regression by its minimax formula, over all runs of distinct scores."""
    levels = sorted(set(score))
    value = {}
    for level in levels:
        value[level] = max(
            min(
                np.mean([y for s, y in zip(score, outcome, strict=True) if low <= s <= high])
                for high in levels
                if high >= level
            )
            for low in levels
            if low <= level
        )
    return np.array([value[s] for s in score])


@calmly(30)
@given(logs(groups=2))
def test_calibrated_is_isotonic_regression_on_each_side(log):
    ranking = ranking_of(log)
    group = ranking.groups[0]
    fitted = Calibrated().scores(ranking, group)
    for side in (ranking.member(group), ~ranking.member(group)):
        expected = minimax_fit(ranking.score[side].tolist(), ranking.outcome[side].tolist())
        assert fitted[side] == pytest.approx(expected, abs=1e-11)


def test_calibrated_blocks_with_equal_means_tie():
    outcome = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1]
    ranking = boolean_ranking([1, 2, 3, 1, 2, 3], outcome, g=[False] * 3 + [True] * 3)
    fitted = Calibrated().scores(ranking, "g")
    assert len(set(fitted[3:])) == 1
    assert fitted[3] == fitted[1] == 0.2


@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1.0, 1e15, 1e90])
def test_calibrated_keeps_twelve_digits_at_every_size(unit):
    outcome = np.array([1.0, 2.0, 2.0 + 1e-13, -3.0, 0.0]) * unit
    ranking = boolean_ranking([2, 3, 4, 0, 1], outcome, g=[False] * 5)
    fitted = Calibrated().scores(ranking, "g")
    assert fitted / unit == pytest.approx(outcome / unit, rel=1e-11)
    assert fitted[1] == fitted[2]


def test_rules_refuse_an_unknown_group(ranking):
    for rule in as_rules(["baseline", "boosted", "calibrated", Column("other")]):
        with pytest.raises(mpc.MpcError, match="There is no group 'z'"):
            rule.scores(ranking, "z")


def test_a_misspelt_rule_names_the_near_match():
    with pytest.raises(mpc.MpcError, match="Did you mean 'boosted'"):
        as_rule("bosted")


@pytest.mark.parametrize("given", [3, None, Boosted, ["boosted"]])
def test_anything_but_a_scoring_rule_is_refused(given):
    with pytest.raises(mpc.MpcError, match="A scoring rule must be"):
        as_rule(given)


@pytest.mark.parametrize("alpha", [float("nan"), float("inf"), "1", True])
def test_a_boost_takes_a_finite_number(alpha):
    with pytest.raises(mpc.MpcError, match="must be a finite number"):
        Demoted(alpha)


def test_labels_must_differ():
    with pytest.raises(
        mpc.MpcError, match=r"Scoring rules must have different labels; got 'boosted\(0.1\)'"
    ):
        as_rules(["baseline", Boosted(0.1), Boosted(0.1)])


def test_no_rule_at_all_is_refused():
    with pytest.raises(mpc.MpcError, match="must name at least one rule"):
        as_rules([])


def test_one_rule_alone_is_a_list_of_one():
    assert as_rules("boosted") == (Boosted(),)
    assert as_rules(Boosted(1)) == (Boosted(1.0),)


def test_a_user_rule_may_not_take_a_built_in_label():
    with pytest.raises(mpc.MpcError, match="label of a built-in scoring rule; got 'baseline'"):
        as_rule(Column("baseline"))


def test_a_function_without_a_name_is_refused():
    with pytest.raises(mpc.MpcError, match="must have a name that can be printed"):
        as_rule(functools.partial(max))


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ([1.0, 2.0], r"one score for each of the 4 rows; got an array of shape \(2,\)"),
        (np.ones((4, 1)), r"shape \(4, 1\)"),
        (1.0, r"shape \(\)"),
        ([1, 2, 3, np.inf], "1 of 4 missing or infinite, the first in row 3"),
        ([1, None, None, 1], "2 of 4 missing or infinite, the first in row 1"),
        (["1", "2", "3", "4"], "must give numbers"),
        (np.array([1, 2, 3, "4"], dtype=object), "must give numbers; got str"),
        ([1j, 2, 3, 4], "must give numbers; got complex128"),
    ],
)
def test_scores_that_are_not_a_finite_number_a_row_are_refused(ranking, result, problem):
    def rule(log, group):
        return result

    with pytest.raises(mpc.MpcError, match=problem):
        Custom(rule).scores(ranking, "x")


@pytest.mark.parametrize(("name", "problem"), [("text", "numbers"), ("holes", "1 of 4 missing")])
def test_a_column_that_holds_no_scores_is_refused(ranking, name, problem):
    with pytest.raises(mpc.MpcError, match=f"The score column '{name}' must .*{problem}"):
        Column(name).scores(ranking, "x")


def test_an_unknown_column_names_the_near_match(ranking):
    with pytest.raises(mpc.MpcError, match="Did you mean 'other'"):
        Column("othr").scores(ranking, "x")


@calmly(30)
@given(logs(groups=2))
def test_every_rule_but_calibrated_keeps_the_order_inside_the_group(log):
    ranking = ranking_of(log)
    group = ranking.groups[-1]
    inside = ranking.member(group)
    before = rankdata(ranking.score[inside])
    for rule in as_rules(["boosted", "demoted", Boosted(0.25)]):
        assert rankdata(rule.scores(ranking, group)[inside]).tolist() == before.tolist()
