"""The tab of rival measures: numbers, words, and the table of all groups."""

from __future__ import annotations

import pytest
import xarray as xr

from helpers.explorer_audits import example_audit, hostile_audit, small_audit, without_rows
from helpers.hostile import HOSTILE
from mpc_lab.explorers.rivals import RivalsExplorer, measures_html, said, says_html


@pytest.fixture
def explorer():
    made = RivalsExplorer(example_audit(), group="1")
    _ = made.widget
    return made


def test_the_measures_of_the_group_are_handed_back(explorer):
    wanted = example_audit().compare(["1"], 10).sel(group="1")
    xr.testing.assert_identical(explorer.selection, wanted)


def test_the_reading_says_why_they_disagree(explorer):
    assert explorer.controls["sentence"].text == explorer.selection["explanation"].item()
    explorer.group = "2"
    assert "'2'" in explorer.controls["sentence"].text
    assert "'2'" in explorer.controls["chart"].title


def test_another_k_is_measured_again(explorer):
    explorer.k = 3
    assert "skew@3" in explorer.selection["measure"].values.tolist()
    assert explorer.controls["k"].value == 3


def test_the_threshold_does_not_measure_again(explorer):
    before = explorer.drawn
    explorer.epsilon = explorer.state.epsilons[0]
    assert explorer.drawn == before


def test_a_group_is_measured_once(explorer, monkeypatch):
    explorer.group = "2"
    monkeypatch.setattr(type(explorer.audit), "compare", None)
    explorer.group = "1"
    assert explorer.error == ""


def test_the_button_compares_all_groups(explorer):
    assert explorer.controls["all_groups"].value == ""
    explorer.controls["compare_all"].click()
    assert explorer.error == ""
    assert explorer.controls["all_groups"].value == says_html(example_audit().compare())
    assert not explorer.controls["compare_all"].disabled


def test_progress_is_reported_for_every_group():
    told = []
    explorer = RivalsExplorer(small_audit())
    found = explorer.compare_all(told.append)
    assert told == [0, 1, 2, 3]
    xr.testing.assert_allclose(found, small_audit().compare())


def test_what_goes_wrong_behind_the_button_is_shown(explorer, monkeypatch):
    def fails(*_):
        raise RuntimeError("no luck")

    monkeypatch.setattr(explorer, "compare_all", fails)
    explorer.controls["compare_all"].click()
    assert explorer.error == "no luck"
    assert not explorer.controls["compare_all"].disabled


def test_a_verdict_is_said_with_sign_and_word():
    found = example_audit().compare(["1"]).sel(group="1")
    words = {m: said(found.sel(measure=m)) for m in found["measure"].values.tolist()}
    flagged = found["flagged"].values
    assert [w[0] in "▲▼◆" for w in words.values()] == flagged.tolist()
    assert words["ndkl"] == "– cannot tell"


def test_names_are_text_in_both_tables():
    audit = hostile_audit()
    explorer = RivalsExplorer(audit, group=HOSTILE[0])
    _ = explorer.widget
    assert explorer.error == ""
    html = says_html(audit.compare()) + measures_html(explorer.selection)
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_an_audit_without_rows_says_how_to_give_them():
    explorer = RivalsExplorer(without_rows(example_audit()))
    _ = explorer.widget
    assert "mpc.load" in explorer.error
