"""The overview that chooses a group, its chips, and the look at another ε."""

from __future__ import annotations

import json

import pytest
import traitlets

from helpers.explorer_audits import example_audit, hostile_audit
from helpers.hostile import HOSTILE
from mpc_lab.charts.overview import by_gap
from mpc_lab.explorers import GroupsExplorer
from mpc_lab.results.summary import slices

audit = pytest.fixture(scope="module")(example_audit)


def test_a_click_on_a_row_chooses_its_group(audit):
    explorer = GroupsExplorer(audit, group="1")
    _ = explorer.widget
    order = [cell.group for cell in by_gap(slices(audit)[0].cells)]
    explorer.controls["chart"].picked = {"pick": {"place": [order.index("2")]}}
    assert explorer.group == explorer.state.group == "2"
    assert explorer.controls["chart"].params["chosen"] == order.index("2")


def test_a_click_beside_the_rows_chooses_nothing(audit):
    explorer = GroupsExplorer(audit, group="1")
    _ = explorer.widget
    explorer.controls["chart"].picked = {"pick": {"place": [None]}}
    explorer.controls["chart"].picked = {}
    assert explorer.group == "1"


def test_another_group_moves_the_mark_and_keeps_the_drawing(audit):
    explorer = GroupsExplorer(audit, group="1")
    _ = explorer.widget
    before = explorer.controls["chart"].spec, explorer.controls["chart"].data
    explorer.group = "2"
    assert (explorer.controls["chart"].spec, explorer.controls["chart"].data) == before
    assert "Group '2'" in explorer.controls["sentence"].text


def test_another_threshold_is_a_parameter_of_the_same_drawing_and_a_look(audit):
    explorer = GroupsExplorer(audit, group="1")
    _ = explorer.widget
    chart = explorer.controls["chart"]
    before = chart.spec, chart.data
    assert chart.params["at"] == -1  # at home the verdicts alone are drawn
    explorer.epsilon = at = float(audit.grid[2])
    assert (chart.spec, chart.data) == before
    assert chart.params["at"] == at
    assert "This changes no verdict" in explorer.controls["sentence"].text
    explorer.epsilon = explorer.state.own_epsilon
    assert chart.params["at"] == -1


def test_a_chip_keeps_to_the_groups_with_its_verdict_and_a_second_press_shows_all(audit):
    explorer = GroupsExplorer(audit)
    _ = explorer.widget
    chips, chart = explorer.controls["chips"], explorer.controls["chart"]
    verdict = slices(audit)[0].cells[0].verdict
    counted = len(slices(audit)[0].having(verdict))
    assert f"{counted} {verdict}</button>" in chips.value
    chips.pressed = [verdict, 1]
    assert explorer.verdicts == (verdict,)
    assert f'data-press="{verdict}" aria-pressed="true"' in chips.value
    rows = next(json.loads(rows) for rows in chart.data.values() if '"ends"' in rows)
    assert {row["verdict"] for row in rows} == {verdict}
    chips.pressed = [verdict, 2]
    assert explorer.verdicts == ()


def test_an_unknown_verdict_names_the_near_match(audit):
    with pytest.raises(traitlets.TraitError, match="Did you mean 'undervalued'"):
        GroupsExplorer(audit, verdicts=("undervalue",))


def test_a_narrow_column_has_a_drawing_of_its_own_from_the_same_data(audit):
    explorer = GroupsExplorer(audit)
    _ = explorer.widget
    chart = explorer.controls["chart"]
    assert "vconcat" in chart.narrow
    assert "hconcat" in chart.spec
    assert all(f'"{name}"' in chart.narrow for name in chart.data)


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
