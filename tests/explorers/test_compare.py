"""The tab that compares two rules or two audits: choices, numbers, curves, and pairs."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
import traitlets

import mpc_lab as mpc
from helpers.explorer_audits import without_rows
from helpers.hostile import COLUMNS, HOSTILE, log
from mpc_lab.explorers.compare import OTHER, CompareExplorer, changed_words

BOOSTED = "boosted(0.05)"


@functools.cache
def two_rules(seed=0, **options):
    return mpc.audit(
        mpc.datasets.synthetic(queries=300, seed=seed),
        scoring_rules=["baseline", mpc.Boosted(0.05)],
        pairing_modes=["matched", "mirrored"],
        threshold=0.05,
        epsilon=[0.01, 0.02, 0.05, 0.1],
        progress=False,
        **options,
    )


@pytest.fixture
def explorer():
    made = CompareExplorer(two_rules(), group="1")
    _ = made.widget
    assert made.error == ""
    return made


def test_it_starts_with_the_second_rule_against_the_baseline(explorer):
    assert (explorer.rule, explorer.base) == (BOOSTED, "baseline")
    cell = two_rules().difference(BOOSTED, "baseline").data.sel(group="1", pairing_mode="matched")
    assert explorer.selection.identical(cell)
    assert "Group '1': the gap in" in explorer.controls["sentence"].text
    assert "ring: rule 'baseline'" in explorer.controls["chart"].subtitle[0]
    assert explorer.controls["curves"].title == "Both gaps of group '1' over ε"


def test_old_and_new_are_chosen_in_both_directions(explorer):
    before = float(explorer.selection["difference"])
    explorer.controls["rule"].value = "baseline"
    assert explorer.selection["verdict"].item() == "no difference"
    explorer.base = BOOSTED
    assert explorer.controls["base"].value == BOOSTED
    assert float(explorer.selection["difference"]) == pytest.approx(-before)
    with pytest.raises(traitlets.TraitError, match="must be a scoring rule of the audit"):
        explorer.rule = "boosted"


def test_a_click_on_a_row_chooses_its_group(explorer):
    place = explorer.controls["chart"].params["chosen"]
    explorer.controls["chart"].picked = {"pick": {"place": [1 - place]}}
    assert explorer.group == "2"
    assert explorer.controls["chart"].params["chosen"] == 1 - place
    assert "'2'" in explorer.controls["curves"].title
    explorer.controls["chart"].picked = {"pick": {"place": [None]}}
    assert explorer.group == "2"


def test_the_mode_is_that_of_all_tabs(explorer):
    explorer.pairing_mode = "mirrored"
    assert explorer.selection["pairing_mode"].item() == "mirrored"
    assert explorer.controls["chart"].subtitle[0].endswith("Mirrored pairs")


def brute_force(audit, group, boost, epsilon):
    """Go through all pairs of rows of a query."""
    frame = audit.ranking.to_frame()
    frame["new"] = frame["score"] + boost * (frame["type"].astype(str) == group)
    found, close = [], 0
    for query, rows in frame.groupby("query"):
        inside = rows[rows["type"].astype(str) == group]
        outside = rows[rows["type"].astype(str) != group]
        for _, one in inside.iterrows():
            for _, other in outside.iterrows():
                was, now = other["score"] - one["score"], other["new"] - one["new"]
                if min(abs(was), abs(now)) > epsilon:
                    continue
                close += 1
                if was * now < 0:
                    found.append((query, one["item"], other["item"], abs(was)))
    return found, close


def test_pairs_that_changed_sides_are_those_of_brute_force(explorer):
    wanted, close = brute_force(two_rules(), "1", 0.05, 0.05)
    changed = explorer.changed
    assert changed.attrs["n_close"] == close
    got = set(zip(changed["query"], changed["item"], changed["other_item"], strict=True))
    assert got == {key[:3] for key in wanted}
    assert set(changed["was"]) == {"below"}
    apart = (changed["other_score"] - changed["score"]).abs()
    assert apart.is_monotonic_increasing
    assert (changed["new_score"] - changed["score"]).round(12).eq(0.05).all()
    assert f"{len(wanted):,} of {close:,} pairs" in explorer.controls["count"].text
    assert "Pairs that changed sides" in explorer.controls["pairs"].value


def test_items_that_changed_sides_have_their_titles():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"query": np.repeat(np.arange(60), 6), "item": np.tile(np.arange(6), 60)})
    frame["title"] = "<b>film " + frame["item"].astype(str)
    frame["group"] = np.where(frame["item"] < 3, "a", "b")
    frame["score"], frame["outcome"] = rng.random(360), rng.random(360)
    frame["new"] = frame["score"] + 0.1 * rng.normal(size=360)
    columns = {name: name for name in ("query", "item", "score", "outcome", "group")}
    rules = ["baseline", mpc.Column("new")]
    audit = mpc.audit(
        frame, **columns, label="title", scoring_rules=rules, threshold=0.1, progress=False
    )
    made = CompareExplorer(audit, group="a")
    _ = made.widget
    changed = made.changed
    assert (changed["label"] == "<b>film " + changed["item"].astype(str)).all()
    assert (changed["other_label"] == "<b>film " + changed["other_item"].astype(str)).all()
    shown = made.controls["pairs"].value
    assert "&lt;b&gt;film 0" in shown
    assert "<b>film" not in shown


def test_without_a_change_of_sides_that_is_said():
    nothing = pd.DataFrame({"is": [], "difference": []})
    nothing.attrs["n_close"] = 4
    said = changed_words(nothing, "a")
    assert said == "None of the 4 pairs of group 'a' that are close changed sides."


def test_another_audit_is_compared_with_the_first_rule():
    panel = two_rules().explore(old=two_rules(1), tab="Compare")
    tab = panel.tabs["Compare"]
    _ = panel.widget
    assert (tab.error, tab.rule, tab.base) == ("", "baseline", OTHER)
    wanted = mpc.difference(two_rules(), two_rules(1)).data
    assert tab.found.data.identical(wanted)
    assert tab.controls["rule"].disabled
    assert "must come from one log; got two" in tab.controls["count"].text
    tab.base = "baseline"
    tab.rule = BOOSTED
    assert not tab.controls["rule"].disabled


def test_with_one_rule_the_tab_is_there_for_another_audit_alone():
    one = mpc.audit(mpc.datasets.synthetic(queries=200), threshold=0.05, progress=False)
    assert "Compare" not in one.explore().tabs
    assert "Compare" in one.explore(old=one).tabs
    with pytest.raises(mpc.MpcError, match="old must be an audit; got str"):
        one.explore(old="last week")


def test_an_audit_without_rows_says_what_to_do():
    made = CompareExplorer(without_rows(two_rules()), group="1")
    _ = made.widget
    assert "mpc.load" in made.error


def test_names_are_shown_as_text():
    frame = {**log(), "other": log()["score"]}
    rules = ["baseline", mpc.Column("other")]
    audit = mpc.audit(frame, **COLUMNS, scoring_rules=rules, threshold=0.2, progress=False)
    made = CompareExplorer(audit, group=HOSTILE[0])
    _ = made.widget
    assert made.error == ""
    assert "<script>" not in made.controls["pairs"].value + made.controls["sentence"].value


def test_pairs_that_changed_sides_are_called_by_their_titles():
    from mpc_lab.explorers.compare import _pairs_html

    pairs = pd.DataFrame(
        {
            "query": [1, 2],
            "item": [7, 8],
            "other_item": [9, 10],
            "label": ["Heat", "Alien"],
            "other_label": ["Jaws", "Speed"],
            "was": ["below", "below"],
            "score": [0.5, 0.25],
            "other_score": [0.50003, 0.26],
            "new_score": [0.6, 0.35],
            "other_new_score": [0.5, 0.26],
            "outcome": [0.0, 1.0],
            "other_outcome": [1.0, 0.0],
            "difference": [-1.0, 1.0],
        }
    )
    made = _pairs_html(pairs)
    assert all(title in made for title in ("Heat", "Jaws", "Alien", "Speed"))
    # One number of decimals in a column, and a real minus sign.
    assert "<bdi>0.00003</bdi>" in made
    assert "<bdi>0.01000</bdi>" in made
    assert "<bdi>−1</bdi>" in made
