"""One grammar for all charts: what colours mean, how short tooltips are, what hollow marks say."""

from __future__ import annotations

import json

import pytest

import mpc_lab as mpc
from helpers.drawn import CHARTS, rows, spec, subtitle, walk
from helpers.handmade import build, cell
from mpc_lab.charts import theme

OF_ONE_GROUP = ["epsilon_curve", "bracket", "boost", "calibration", "placebo", "power"]
OF_ONE_GROUP += ["distance_density", "tie"]


@pytest.fixture(scope="module")
def drawn(audit):
    """Return a function that gives the specification of a chart as text."""
    return lambda name, group: json.dumps(spec(CHARTS[name](audit, group)))


@pytest.mark.parametrize("name", OF_ONE_GROUP)
def test_a_group_has_the_colour_of_its_verdict_on_every_chart(audit, drawn, name):
    found = audit.to_frame().query("scoring_rule == 'baseline' and pairing_mode == 'matched'")
    verdicts = found.set_index("group")["verdict"]
    assert set(verdicts) == {"undervalued", "overvalued"}
    colours = {"undervalued": theme.UNDERVALUED, "overvalued": theme.OVERVALUED}
    for group, verdict in verdicts.items():
        other = next(colour for key, colour in colours.items() if key != verdict)
        whole = drawn(name, group)
        assert colours[verdict] in whole
        assert other not in whole


def test_matched_and_mirrored_differ_by_dash_and_not_by_colour(audit):
    whole = spec(CHARTS["bracket"](audit, "1"))
    dashes = [node["strokeDash"] for node in walk(whole) if "field" in node.get("strokeDash", {})]
    assert dashes[0]["scale"]["range"] == [[1, 0], [5, 3]]
    assert not any("field" in node.get("color", {}) for node in walk(whole) if "y" in node)


def test_ndcg_is_drawn_in_ink(audit):
    below = spec(CHARTS["boost"](audit, "1"))["vconcat"][1]
    marks = [layer["mark"] for layer in below["layer"] if layer["mark"]["type"] in ("area", "line")]
    assert {mark["color"] for mark in marks} == {theme.INK}


@pytest.mark.parametrize("name", CHARTS)
def test_tooltips_say_at_most_four_lines(audit, name):
    tips = [node["tooltip"] for node in walk(spec(CHARTS[name](audit, "1"))) if "tooltip" in node]
    lines = [len(tip) for tip in tips if isinstance(tip, list)]
    assert max(lines, default=0) <= 4


@pytest.mark.parametrize("chart", [mpc.charts.forest, mpc.charts.overview])
def test_a_grey_interval_clear_of_0_is_hollow_and_says_why(chart):
    clear = cell(0.3, 0.1, 0.5, "inconclusive", "bracket")
    audit = build(cells={"1": clear, "2": cell(0.3, -0.1, 0.7, "inconclusive")})
    made = chart(audit)
    shown = {row["group"]: row for row in rows(made, "hollow")}
    assert (shown["1"]["hollow"], shown["1"]["dot"]) == (0.3, None)
    assert (shown["2"]["hollow"], shown["2"]["dot"]) == (None, 0.3)
    assert "Hollow mark: the interval excludes 0" in subtitle(made)
    assert "(bracket)" in subtitle(made)


def test_without_such_an_interval_no_hollow_mark_is_explained():
    open_ = cell(0.3, -0.1, 0.7, "inconclusive")
    audit = build(cells={"1": open_, "2": open_})
    assert "Hollow" not in subtitle(mpc.charts.overview(audit))


@pytest.mark.parametrize(
    ("count", "step"), [(1, 140), (2, 70), (5, 28), (6, 24), (60, 24), (61, 16)]
)
def test_rows_of_names_are_24_pixels_and_a_few_are_140_together(count, step):
    assert theme.rows_high(count).to_dict() == {"step": step, "for": "position"}


@pytest.mark.parametrize("name", ["love", "placebo"])
def test_zero_is_among_the_ticks(audit, name):
    axes = [node["axis"] for node in walk(spec(CHARTS[name](audit, "1"))) if "axis" in node]
    ticks = next(axis["values"] for axis in axes if axis and "values" in axis)
    assert 0 in ticks
    assert len(ticks) > 2
