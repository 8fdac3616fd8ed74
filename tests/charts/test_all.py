"""What holds for every chart: it draws, it says its finding, and obeys no name."""

from __future__ import annotations

import functools
import json

import pytest

from helpers.drawn import CHARTS, fields, spec, title, walk
from helpers.hostile import HOSTILE
from mpc_lab import charts
from mpc_lab.charts.theme import GREY, svg

ALL = pytest.mark.parametrize("name", CHARTS)
# What holds by how charts are made is asked of a third of them; CI asks all.
SOME = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if number % 3 else ())
        for number, name in enumerate(CHARTS)
    ],
)


@pytest.fixture(scope="module")
def drawn(audit):
    """Return the charts of the paper's example, each made once."""
    return functools.cache(lambda name: CHARTS[name](audit, "1"))


@pytest.fixture(scope="module")
def one_group(make_audit):
    return make_audit(["only", ""], pairing_modes=("matched", "mirrored"), threshold=0.2)


def test_every_public_chart_is_tested():
    tested = {charts.CHARTS[name.split()[0]] for name in CHARTS}
    assert tested == set(charts.CHARTS.values())
    assert charts.gap_density is charts.distance_density  # its name in version 0.1


@ALL
def test_a_chart_renders_to_svg_with_its_title(drawn, name):
    picture = svg(drawn(name))
    assert picture.startswith("<svg")
    assert title(drawn(name)).split("'")[0] in picture


@SOME
def test_a_chart_has_theme_units_tooltips_and_aggregates_only(drawn, name):
    whole = spec(drawn(name))
    assert whole["background"] == "transparent"
    assert whole["autosize"] == {"resize": True, "type": "pad"}
    assert whole["config"]["axis"]["labelColor"] == GREY
    assert any(d.get("title") for channel, d in fields(drawn(name)) if channel == "x")
    assert any("tooltip" in node.get("encoding", {}) for node in walk(whole))
    assert sum(map(len, whole["datasets"].values())) < 2000


@SOME
def test_names_are_obeyed_by_nothing(hostile, name):
    chart = CHARTS[name](hostile, HOSTILE[0])
    for node in walk({key: value for key, value in spec(chart).items() if key != "title"}):
        assert not {"expr", "signal", "calculate", "filter"} & set(node)
    assert all("obeyed" not in json.dumps(definition) for _, definition in fields(chart))
    assert "\\u0001" not in json.dumps(spec(chart))


def test_hostile_names_show_as_text(hostile):
    picture = svg(charts.forest(hostile))
    assert "<script>" not in picture
    assert "&lt;/script&gt;" in picture
    assert all(name in picture for name in ("😀", "עברית", "line break", "datum.group"))


# A boost starts from a threshold, which a group without pairs does not have.
@pytest.mark.parametrize("name", sorted(set(CHARTS) - {"boost"}))
def test_a_group_without_pairs_still_has_a_chart(empty, name):
    chart = CHARTS[name](empty, "rare")
    assert title(chart)
    assert spec(chart)


@pytest.mark.long
@ALL
def test_one_group_is_enough(one_group, name):
    assert title(CHARTS[name](one_group, "only"))
