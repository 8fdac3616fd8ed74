"""The forest that chooses a group."""

from __future__ import annotations

import pytest

from helpers.explorer_audits import example_audit, hostile_audit
from helpers.hostile import HOSTILE
from mpc_lab.explorers import GroupsExplorer
from mpc_lab.results.summary import slices

audit = pytest.fixture(scope="module")(example_audit)


def test_a_click_on_a_row_chooses_its_group(audit):
    explorer = GroupsExplorer(audit, group="1")
    _ = explorer.widget
    order = [cell.group for cell in slices(audit)[0].cells]
    explorer.controls["chart"].picked = {"pick": {"place": [order.index("2")]}}
    assert explorer.group == explorer.state.group == "2"
    assert explorer.controls["chart"]._params["chosen"] == order.index("2")


def test_a_click_beside_the_rows_chooses_nothing(audit):
    explorer = GroupsExplorer(audit, group="1")
    _ = explorer.widget
    explorer.controls["chart"].picked = {"pick": {"place": [None]}}
    explorer.controls["chart"].picked = {}
    assert explorer.group == "1"


def test_another_group_moves_the_mark_and_keeps_the_drawing(audit):
    explorer = GroupsExplorer(audit, group="1")
    _ = explorer.widget
    before = explorer.controls["chart"]._spec, explorer.controls["chart"]._data
    explorer.group = "2"
    assert (explorer.controls["chart"]._spec, explorer.controls["chart"]._data) == before
    assert "Group '2'" in explorer.controls["sentence"].text


def test_the_rule_chooses_which_forest_is_drawn(audit):
    explorer = GroupsExplorer(audit)
    _ = explorer.widget
    explorer.scoring_rule = "boosted(0.1)"
    assert explorer.controls["chart"].title.startswith("Under rule 'boosted(0.1)'")


def test_the_selection_is_the_headline_of_the_group(audit):
    explorer = GroupsExplorer(audit, group="2", pairing_mode="mirrored")
    wanted = audit.headline.sel(group="2", scoring_rule="baseline", pairing_mode="mirrored")
    assert explorer.selection.identical(wanted)


def test_a_group_called_script_is_shown_as_text():
    explorer = GroupsExplorer(hostile_audit(), group=HOSTILE[0])
    _ = explorer.widget
    assert "<script>" not in explorer.controls["sentence"].value
    assert "&lt;script&gt;window.obeyed=1" in explorer.controls["sentence"].value
