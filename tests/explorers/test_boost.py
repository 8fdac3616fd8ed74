"""The boost slider and what it recomputes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import traitlets

import mpc_lab as mpc
from helpers.explorer_audits import example_audit, hostile_audit, small_audit, without_rows
from helpers.hostile import COLUMNS, HOSTILE, log
from mpc_lab.comparators.base import Case
from mpc_lab.comparators.calibration import calibration_gap
from mpc_lab.explorers import BoostExplorer
from mpc_lab.explorers.boost import BoostedGroup, _nice

audit = pytest.fixture(scope="module")(example_audit)


def shown(audit, **start):
    explorer = BoostExplorer(audit, **start)
    _ = explorer.widget
    return explorer


def test_a_boost_is_measured_as_the_audit_measures_it(audit):
    explorer = BoostExplorer(audit, group="1", alpha=0.05)
    wanted = audit.boost_curve("1", [0.05], explorer.epsilon)
    found = explorer.selection
    for name in wanted.data_vars:
        np.testing.assert_array_equal(found[name].values, wanted[name].values)


def test_calibration_and_places_are_those_of_the_boosted_scores(audit):
    found = BoostExplorer(audit, group="1", alpha=0.05).selection.isel(alpha=0)
    ranking = audit.ranking
    scores = ranking.score + 0.05 * ranking.member("1")
    case = Case(ranking, "1", scores=scores)
    assert float(found["calibration_gap"]) == calibration_gap(case)[0].estimate
    orders = [np.lexsort((-one, ranking.query_code)) for one in (ranking.score, scores)]
    another = orders[0] != orders[1]
    queries = ranking.query_code[orders[0]]
    moved = np.bincount(queries, another, minlength=ranking.n_queries)
    assert float(found["places_changed"]) == pytest.approx(moved.mean())
    assert float(found["share_lists_changed"]) == pytest.approx((moved > 0).mean())


def test_no_boost_moves_nothing(audit):
    found = BoostExplorer(audit, group="1").selection.isel(alpha=0)
    assert float(found["places_changed"]) == float(found["share_lists_changed"]) == 0
    assert float(found["ndcg_change"]) == 0


def test_the_selection_holds_every_boost_that_was_tried(audit):
    explorer = shown(audit, group="1")
    for alpha in (0.1, -0.05):
        explorer.alpha = alpha
    assert explorer.selection["alpha"].values.tolist() == [-0.05, 0.0, 0.1]


def test_a_move_sends_the_mark_alone(audit):
    explorer = shown(audit, group="1")
    chart = explorer.controls["chart"]
    spec, data = chart.spec, dict(chart.data)
    explorer.controls["alpha"].value = 0.02
    assert explorer.alpha == 0.02
    assert chart.spec == spec
    changed = [name for name in chart.data if chart.data[name] != data[name]]
    assert changed == ["now"]
    assert json.loads(chart.data["now"])[0]["alpha"] == 0.02


def test_a_group_is_prepared_once_for_all_its_boosts(audit, monkeypatch):
    explorer = shown(audit, group="1")
    monkeypatch.setattr(BoostedGroup, "__init__", lambda *_: pytest.fail("prepared again"))
    explorer.alpha = 0.03
    assert explorer.error == ""


def test_another_threshold_sorts_no_rows_again(audit, monkeypatch):
    explorer = shown(audit, group="1")
    monkeypatch.setattr("mpc_lab.explorers.boost.Boosts", lambda *_: pytest.fail("sorted again"))
    explorer.epsilon = 0.02
    assert explorer.error == ""
    assert explorer.selection.attrs["epsilon"] == 0.02


def test_the_buttons_go_to_the_crossing_and_back(audit):
    explorer = shown(audit, group="1")
    assert explorer.controls["no_boost"].disabled
    explorer.controls["to_star"].click()
    assert explorer.alpha == audit.fair_boost("1", explorer.epsilon).alpha != 0
    assert explorer.controls["to_star"].disabled
    explorer.controls["no_boost"].click()
    assert explorer.alpha == 0


def test_a_page_that_rounds_the_slider_does_not_move_the_boost(audit):
    explorer = shown(audit, group="1")
    explorer.controls["to_star"].click()
    star, step = explorer.alpha, explorer.controls["alpha"].step
    explorer.controls["alpha"].value = round(star / step) * step
    assert explorer.alpha == star
    explorer.controls["alpha"].value = (round(star / step) + 1) * step
    assert explorer.alpha == (round(star / step) + 1) * step


def test_the_slider_reaches_over_the_spread_of_the_scores(audit):
    explorer = shown(audit, group="1")
    spread = float(np.std(audit.ranking.score))
    assert explorer.controls["alpha"].max >= spread
    assert explorer.controls["alpha"].min == -explorer.controls["alpha"].max


def test_without_rows_the_panel_says_how_to_give_them(audit):
    explorer = shown(without_rows(audit))
    assert "mpc.load" in explorer.error
    assert "Traceback" not in explorer.controls["error"].value


@pytest.mark.parametrize("one", ["query", "unit"])
def test_a_log_of_one_query_or_unit_says_what_it_lacks(one):
    frame = {**log(["a", "b"], queries=1 if one == "query" else 5, items=40)}
    frame["unit"] = np.zeros(len(frame["score"]), dtype=int)
    explorer = shown(mpc.audit(frame, **COLUMNS, unit="unit", threshold=0.2, progress=False))
    assert explorer.error == (
        "The Boost tab must have at least two queries or units, some to choose a boost on and the "
        f"rest to try it on; got one {one}."
    )


@pytest.mark.parametrize("alpha", [math.nan, math.inf])
def test_a_boost_is_a_finite_number(audit, alpha):
    with pytest.raises(traitlets.TraitError, match="finite"):
        BoostExplorer(audit, alpha=alpha)


def test_every_group_of_strange_name_can_be_boosted():
    audit = hostile_audit()
    explorer = shown(audit, group=HOSTILE[0])
    assert explorer.error == ""
    assert "<script>" not in explorer.controls["sentence"].value
    assert all(BoostExplorer(audit, group=group).selection.sizes for group in audit.groups)


def test_the_last_eight_thresholds_are_kept_prepared_and_no_more(monkeypatch):
    made = []

    def make(audit, group, epsilon, ready):
        made.append(epsilon)
        return BoostedGroup(audit, group, epsilon, ready)

    monkeypatch.setattr("mpc_lab.explorers.boost.BoostedGroup", make)
    explorer = BoostExplorer(small_audit(), group="a")
    tried = np.linspace(0.01, 0.1, 12).tolist()
    for epsilon in tried + tried[4:]:
        explorer.epsilon = epsilon
        assert explorer.selection.attrs["epsilon"] == epsilon
    assert made[-12:] == tried  # the last eight were not made again
    explorer.epsilon = tried[0]
    assert explorer.selection.attrs["epsilon"] == made[-1] == tried[0]


@pytest.mark.parametrize(
    ("step", "nice"), [(0.0021, 0.005), (0.001, 0.001), (1.3, 2.0), (0.0, 0.01), (0.07, 0.1)]
)
def test_steps_are_round(step, nice):
    assert _nice(step) == nice
