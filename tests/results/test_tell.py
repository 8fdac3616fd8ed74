"""The story of a finding: five cards that say what the numbers say."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.cli import main

QUESTIONS = [
    "What was found?",
    "Does it hold at every ε?",
    "Or is it chance?",
    "Or something else?",
    "What would closing it cost?",
]


@pytest.fixture(scope="module")
def audit():
    return mpc.audit(mpc.datasets.synthetic(queries=20_000), progress=False)


@pytest.fixture(scope="module")
def story(audit):
    return audit.tell("1")


@pytest.fixture(scope="module")
def saved(audit, tmp_path_factory):
    path = tmp_path_factory.mktemp("tell") / "audit.nc"
    audit.save(path)
    return path


def test_the_five_questions_are_answered_for_a_finding_that_holds(story):
    assert [card.question for card in story.cards] == QUESTIONS
    assert [card.mark for card in story.cards] == ["▲", "✓", "✓", "✓", "✓"]
    assert all(card.answer for card in story.cards)


def test_the_answers_have_the_numbers_of_the_audit(audit, story):
    curve = audit.curve_of("1")
    above = int((curve["band_low"] > 0).sum())
    assert f"is above 0 at {above}, and below 0 at none" in story.cards[1].answer[0]
    row = audit.to_frame().set_index("group").loc["1"]
    assert f"p = {row['bracket_p_adjusted']:.4f}" in story.cards[2].answer[0]
    assert f"{row['n_pairs']:,} pairs" in story.cards[2].answer[0]
    assert story.cards[2].answer[1].startswith(f"A gap of {row['mde_adjusted']:.3f} would be found")
    net = float(audit.partial().data["estimate"].sel(kind="net", group="1"))
    assert f"the gap is {net:.4f}" in story.cards[3].answer[-1]
    assert audit.fair_boost("1").sentence in story.cards[4].answer


def test_the_largest_finding_is_the_default(audit):
    table = audit.to_frame().set_index("group")
    assert audit.tell().group == table["estimate"].abs().idxmax()


def draw(audit, story):
    return [
        eval(card.chart, {"mpc": mpc, "audit": audit}).to_dict()
        for card in story.cards
        if card.chart
    ]


def test_every_chart_that_is_named_can_be_drawn(audit, story):
    assert len(draw(audit, story)) == 5


def test_charts_are_of_the_pairs_that_lead():
    audit = mpc.audit(mpc.datasets.clicks(queries=1_000), progress=False)
    story = audit.tell()
    assert "pairing_mode='symmetric'" in story.cards[1].chart
    assert len(draw(audit, story)) >= 3


def test_a_saved_audit_says_which_answers_need_the_rows(saved):
    cards = mpc.load(saved).tell("1").cards
    assert [card.mark for card in cards] == ["▲", "✓", "✓", "?", "?"]
    assert "must have the rows of the log" in cards[4].answer[0]


def test_the_command_prints_the_story(saved, capsys):
    assert main(["tell", str(saved), "--group", "1"]) == 0
    said = capsys.readouterr().out
    assert all(question in said for question in QUESTIONS)
    assert said.startswith("1. What was found?  ▲ undervalued")


def test_an_audit_without_a_finding_closes_nothing():
    rng = np.random.default_rng(0)
    log = {
        "q": np.repeat(np.arange(60), 8),
        "s": rng.random(480),
        "y": rng.random(480),
        "g": rng.choice(["a", "<script>"], 480),
    }
    audit = mpc.audit(log, query="q", score="s", outcome="y", group="g", progress=False)
    story = audit.tell("<script>")
    assert [card.mark for card in story.cards[1:]] == ["?", "?", "!", "?"]
    assert story.cards[1].meaning in ("no finding to check", "cannot tell")
    assert story.cards[4].answer == ("There is no finding to close.",)
    shown = story._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_an_unknown_group_is_refused(audit):
    with pytest.raises(mpc.MpcError, match="has no group '3'"):
        audit.tell("3")


def test_a_sign_that_changes_with_the_threshold_is_said(audit):
    curve = audit.curve.copy(deep=True)
    last = {"epsilon": -1}
    curve["band_low"][last], curve["band_high"][last] = -0.2, -0.1
    turned = mpc.Audit(audit.headline, curve, audit.moments, audit.attrs)
    card = turned.tell("1").cards[1]
    assert (card.mark, card.meaning) == ("!", "its sign changes with ε")


def test_a_group_within_tolerance_needs_no_explanation(audit):
    wide = mpc.audit(audit.ranking, tolerance=0.5, progress=False)
    card = wide.tell("1").cards[2]
    assert (card.mark, card.meaning) == ("✓", "the bracket is inside the tolerance")


def test_an_interval_cut_at_0_is_explained(audit):
    headline = audit.headline.copy(deep=True)
    headline["bracket_low"].loc[{"group": "1"}] = 0.0
    cut = mpc.Audit(headline, audit.curve, audit.moments, audit.attrs)
    assert "was cut there by the test" in cut.tell("1").cards[0].answer[1]
    assert not any("was cut there" in line for line in audit.tell("1").cards[0].answer)
