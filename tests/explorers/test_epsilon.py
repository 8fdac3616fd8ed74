"""The threshold slider, the brush, and what they say."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
import traitlets

import mpc_lab as mpc
from helpers.explorer_audits import bare_audit, example_audit, small_audit
from mpc_lab.explorers import EpsilonExplorer
from mpc_lab.inference.verdicts import mde

audit = pytest.fixture(scope="module")(example_audit)


def shown(audit, **start):
    explorer = EpsilonExplorer(audit, **start)
    _ = explorer.widget
    assert explorer.error == ""
    return explorer


def test_a_move_of_the_threshold_sets_a_mark_and_leaves_the_drawing(audit):
    explorer = shown(audit, group="1")
    before = explorer.controls["chart"].spec, explorer.controls["chart"].data
    explorer.epsilon = explorer.state.epsilons[3]
    assert (explorer.controls["chart"].spec, explorer.controls["chart"].data) == before
    assert explorer.controls["chart"].params["at"] == explorer.state.epsilons[3]
    assert f"At ε = {explorer.epsilon:.3g}" in explorer.controls["sentence"].text


def test_the_numbers_are_those_of_the_curve_at_the_threshold(audit):
    explorer = shown(audit, group="1")
    at = explorer.epsilon = float(audit.curve["epsilon"].values[-1])
    point = audit.curve.sel(group="1", epsilon=at, scoring_rule="baseline", pairing_mode="matched")
    numbers = dict(re.findall(r'label">(.*?)<.*?value">(.*?)<', explorer.controls["numbers"].value))
    assert numbers["Pairs"] == f"{int(point['n_pairs']):,}"
    found = mde(point["std_error"].values, point["dof"].values, sides=2)
    assert numbers["Detectable gap (80\N{NO-BREAK SPACE}% power)"] == f"±{float(found):.4f}"
    assert explorer.selection.identical(point)


def test_without_a_brush_the_selection_at_the_headlines_threshold_is_the_headline():
    audit = small_audit()
    explorer = EpsilonExplorer(audit, group="b")
    assert explorer.epsilon not in audit.curve["epsilon"].values
    assert float(explorer.selection["estimate"]) == float(
        audit.headline["estimate"].sel(group="b").item()
    )


def test_a_brush_on_the_chart_selects_the_curve_inside_it(audit):
    explorer = shown(audit, group="1")
    grid = audit.curve["epsilon"].values
    explorer.controls["chart"].picked = {"brush": {"epsilon": [float(grid[2]), float(grid[5])]}}
    assert explorer.selection["epsilon"].values.tolist() == grid[2:6].tolist()
    assert "4 thresholds" in explorer.controls["range_note"].text
    explorer.controls["chart"].picked = {"brush": {}}
    assert explorer.brush == ()
    assert explorer.selection.sizes == {}


def test_a_range_set_by_code_is_shaded_and_one_dragged_on_the_page_is_not_shaded_twice(audit):
    explorer = shown(audit, group="1", brush=(0.01, 0.1))
    assert (
        explorer.controls["chart"].params["low"],
        explorer.controls["chart"].params["high"],
    ) == (0.01, 0.1)
    explorer.controls["chart"].picked = {"brush": {"epsilon": [0.02, 0.2]}}
    assert explorer.brush == (0.02, 0.2)
    assert (
        explorer.controls["chart"].params["low"] == explorer.controls["chart"].params["high"] == -1
    )


def test_a_brush_between_two_thresholds_holds_none(audit):
    explorer = shown(audit, group="1")
    low, high = audit.curve["epsilon"].values[4:6]
    explorer.brush = (low + (high - low) / 3, low + (high - low) / 2)
    assert explorer.selection.sizes["epsilon"] == 0
    assert "no threshold" in explorer.controls["range_note"].text


@pytest.mark.parametrize("ends", [(0.1,), (0.1, np.nan), (0, 1, 2)])
def test_a_brush_has_two_finite_ends(audit, ends):
    with pytest.raises(traitlets.TraitError, match="two finite thresholds"):
        EpsilonExplorer(audit, brush=ends)


def test_the_button_goes_to_the_headlines_threshold_and_is_off_there(audit):
    explorer = shown(audit, group="1")
    assert explorer.controls["to_headline"].disabled
    explorer.epsilon = explorer.state.epsilons[0]
    assert not explorer.controls["to_headline"].disabled
    explorer.controls["to_headline"].click()
    assert explorer.epsilon == explorer.state.own_epsilon


def test_a_group_without_pairs_says_so():
    explorer = shown(bare_audit(), group="rare")
    assert "has no matched pairs" in explorer.controls["sentence"].text
    assert explorer.controls["to_headline"].disabled


def test_a_threshold_beside_the_grid_reads_the_one_below(audit):
    explorer = shown(audit, group="1")
    low, high = audit.curve["epsilon"].values[4:6]
    explorer.epsilon = (low + high) / 2
    assert float(explorer.selection["epsilon"]) == low


def fresh_audit():
    """Return an audit of which no curve is made yet."""
    options = {"scoring_rules": ("baseline", "boosted"), "threshold": 0.05, "progress": False}
    return mpc.audit(mpc.datasets.synthetic(queries=300), **options)


def test_a_tab_makes_the_curve_of_its_cell_and_no_other():
    audit, asked = fresh_audit(), []
    make = audit._curve_part
    audit._curve_part = lambda *cell: asked.append(cell) or make(*cell)
    explorer = shown(audit, group="1")
    explorer.epsilon = explorer.state.epsilons[0]
    explorer.group = "2"
    assert set(asked) == {("1", "baseline"), ("2", "baseline")}
    assert "curve" not in vars(audit)


def test_the_tab_says_that_a_curve_is_being_made_while_it_is():
    audit, said = fresh_audit(), []
    make = audit._curve_part
    explorer = shown(audit, group="1")

    def listened(*cell):
        said.append(
            (
                explorer.controls["sentence"].text,
                "mpc-stale" in explorer.controls["numbers"]._dom_classes,
            )
        )
        return make(*cell)

    audit._curve_part = listened
    explorer.group = "2"
    assert said[0] == ("Computing the curve of group '2' …", True)
    assert "Computing" not in explorer.controls["sentence"].text
    assert "mpc-stale" not in explorer.controls["numbers"]._dom_classes


def parts_of(widget):
    """Yield a widget and all in it, in the order of the page."""
    yield widget
    for one in getattr(widget, "children", ()):
        yield from parts_of(one)


def test_both_sides_of_a_tie_follow_the_curve_where_matched_pairs_alone_were_asked(audit):
    explorer = shown(audit, group="1")
    assert explorer.controls["tie"].title.startswith("Group '1' at a tie: ")
    assert "place" not in explorer.controls["tie"].title
    assert explorer.controls["tie_note"].text == ""
    order = list(parts_of(explorer.widget))
    assert order.index(explorer.controls["chart"]) < order.index(explorer.controls["tie"])


def test_a_tie_that_cannot_be_drawn_is_said_and_the_curve_stays(audit, monkeypatch):
    def refuse(*_given):
        raise mpc.MpcError("There are too many pairs to list.")

    # By its module: the package has the function under the same name.
    monkeypatch.setattr(sys.modules["mpc_lab.charts.tie"], "tie", refuse)
    explorer = shown(audit, group="1")
    assert "too many pairs to list" in explorer.controls["tie_note"].text
    assert explorer.controls["tie"].layout.display == "none"
    assert explorer.controls["chart"].title


def test_without_scores_there_is_no_tie_to_draw():
    frame = mpc.datasets.clicks(300, seed=1).to_frame()
    roles = {"query": "query", "outcome": "clicks", "group": "group", "position": "place"}
    explorer = shown(mpc.audit(frame, **roles, progress=False), group="a")
    assert explorer.controls["tie"].title == ""
