"""What charts on a page have beside those on paper: parameters that a page sets and selects."""

from __future__ import annotations

import json

import pytest

from helpers.drawn import rows, spec
from mpc_lab import charts
from mpc_lab.charts.boost import draw, mark
from mpc_lab.errors import MpcError
from mpc_lab.explorers.live_chart import structure


def live_charts(audit):
    curve, found = audit.boost_curve("1", [-0.1, 0.0, 0.1]), audit.fair_boost("1")
    return {
        "forest": charts.forest(audit, live=True),
        "forest of one rule": charts.forest(audit, scoring_rule="baseline", live=True),
        "epsilon_curve": charts.epsilon_curve(audit, "1", live=True),
        "boost": draw(audit, curve, found, live=True),
    }


def test_live_charts_are_valid_and_name_their_parameters(audit):
    made = {name: chart.to_dict() for name, chart in live_charts(audit).items()}
    params = {name: {p["name"] for p in one.get("params", [])} for name, one in made.items()}
    assert params["forest"] == params["forest of one rule"] == {"pick", "chosen"}
    assert params["epsilon_curve"] == {"at", "pointed", "low", "high", "brush"}
    assert '"name": "now"' in json.dumps(made["boost"])


def test_live_charts_draw_as_a_page_draws_them(audit):
    import vl_convert

    made = {**live_charts(audit), "overview": charts.overview(audit, live=True)}
    for name, chart in made.items():
        taken = structure(chart)
        data = {key: json.loads(rows) for key, rows in taken.data.items()}
        vega = vl_convert.vegalite_to_vega({**json.loads(taken.spec), "datasets": data})
        selected = {p["name"] for p in json.loads(taken.spec).get("params", []) if "select" in p}
        stores = {one["name"].removesuffix("_store") for one in vega["data"]}
        assert selected <= stores, name
        assert vl_convert.vega_to_svg(vega).startswith("<svg"), name


def test_charts_on_paper_have_no_parameters(audit):
    for chart in (charts.forest(audit), charts.epsilon_curve(audit, "1")):
        assert "params" not in spec(chart)


def test_a_forest_of_one_rule_draws_that_rule_alone(audit):
    chart = charts.forest(audit, scoring_rule="boosted(0.1)")
    assert {row["rule"] for row in rows(chart, "verdict")} == {"boosted(0.1)"}
    assert " ".join(chart.title.text).startswith("Under rule 'boosted(0.1)'")


def test_a_forest_of_an_unknown_rule_names_the_near_match(audit):
    with pytest.raises(MpcError, match="Did you mean 'baseline'"):
        charts.forest(audit, scoring_rule="basline")


def test_the_mark_of_a_boost_is_a_row_of_its_curve(audit):
    curve = audit.boost_curve("1", [0.05])
    (row,) = mark(curve)
    assert row["alpha"] == 0.05
    assert row["gap"] == float(curve["estimate"][0])
    assert row["change_high"] == float(curve["ndcg_change_high"][0])


def test_a_chart_carries_its_words_unbroken(audit):
    chart = charts.epsilon_curve(audit, "1")
    words = chart.usermeta["mpc"]
    assert words["title"] == " ".join(chart.title.text)
    assert " ".join(words["subtitle"]) == " ".join(chart.title.subtitle)
