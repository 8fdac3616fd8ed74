"""The tab of calibration: what it draws by group and by segment, and what it hands back."""

from __future__ import annotations

import pytest
import traitlets
import xarray as xr

from helpers.explorer_audits import example_audit, hostile_audit, small_audit, without_rows
from helpers.hostile import HOSTILE
from mpc_lab.explorers.calibration import CalibrationExplorer


@pytest.fixture
def explorer():
    made = CalibrationExplorer(example_audit(), group="1", bins=10)
    _ = made.widget
    return made


def test_the_curves_of_the_group_are_handed_back(explorer):
    wanted = example_audit().calibration("1", bins=10)
    xr.testing.assert_identical(explorer.selection, wanted)


def test_the_title_states_the_finding_of_the_group(explorer):
    first = explorer.controls["chart"].title
    assert "'1'" in first
    explorer.group = "2"
    assert "'2'" in explorer.controls["chart"].title


def test_by_segment_gives_a_panel_and_curves_for_each(explorer):
    explorer.controls["by_segment"].value = True
    assert explorer.by_segment
    assert explorer.selection["segment"].values.tolist() == ["u", "v"]
    assert any("Gap by segment" in line for line in explorer.controls["chart"].subtitle)
    assert explorer.error == ""


def test_the_number_of_bins_is_a_control(explorer):
    explorer.controls["bins"].value = 5
    assert explorer.selection.sizes["bin"] == 5


def test_the_threshold_changes_nothing_and_draws_nothing(explorer):
    before = explorer.drawn
    explorer.epsilon = explorer.state.epsilons[0]
    assert explorer.drawn == before
    assert set(explorer.unused) == {"pairing_mode", "epsilon"}


def test_a_range_picked_on_the_curve_shades_the_scores_of_its_pairs(explorer):
    plain = explorer.controls["chart"].spec
    explorer.state.brush = (0.01, 0.02)
    assert explorer.error == ""
    pairs = example_audit().pairs("1", epsilon=0.02)
    inside = pairs[pairs["distance"] >= 0.01]
    scores = {*inside["score"], *inside["other_score"]}
    assert set(explorer.picked_scores()) == scores
    assert explorer.controls["chart"].spec.count('"rect"') == plain.count('"rect"') + 2
    assert "differ by 0.01 to 0.02" in explorer.controls["picked"].text
    explorer.state.brush = ()
    assert explorer.controls["chart"].spec == plain


def test_a_range_without_pairs_shades_nothing_and_says_so(explorer):
    explorer.state.brush = (1e-12, 2e-12)
    assert explorer.controls["picked"].text.startswith("No matched pairs")
    assert '"rect"' not in explorer.controls["chart"].spec


def test_without_segments_the_box_is_disabled_and_says_why():
    explorer = CalibrationExplorer(small_audit())
    _ = explorer.widget
    assert explorer.controls["by_segment"].disabled
    with pytest.raises(traitlets.TraitError, match="must have segments of queries"):
        explorer.by_segment = True
    assert explorer.by_segment is False


def test_an_audit_without_rows_says_how_to_give_them():
    explorer = CalibrationExplorer(without_rows(example_audit()))
    _ = explorer.widget
    assert "mpc.load" in explorer.error


def test_strange_names_are_drawn():
    explorer = CalibrationExplorer(hostile_audit(), group=HOSTILE[0])
    _ = explorer.widget
    assert explorer.error == ""
    assert "<script>" in explorer.controls["chart"].title
