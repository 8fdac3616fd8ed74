"""Two gaps of each group joined, beside the interval of their difference."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.drawn import fields, rows, spec, subtitle, title
from mpc_lab import charts


@pytest.fixture(scope="module")
def found(audit):
    return audit.difference("boosted(0.1)", "baseline")


def test_the_interval_is_that_of_the_difference(found):
    drawn = {row["name"]: row for row in rows(charts.difference(found), "from_")}
    cells = found.data.sel(pairing_mode="matched")
    for group in found.groups:
        cell, row = cells.sel(group=group), drawn[group]
        assert (row["old"], row["new"]) == (float(cell["old"]), float(cell["new"]))
        ends = (float(cell["ci_low_adjusted"]), float(cell["ci_high_adjusted"]))
        assert (row["from_"], row["to"]) == pytest.approx(ends)
    ends = {d["field"] for channel, d in fields(charts.difference(found)) if channel == "x2"}
    assert ends == {"new", "to"}


def test_the_title_names_what_differs_and_the_subtitle_what_is_compared(found):
    chart = charts.difference(found)
    assert title(chart).startswith("The gap of rule 'boosted(0.1)' is lower for '2' and '1'")
    assert "ring: rule 'baseline'; dot: rule 'boosted(0.1)'" in subtitle(chart)
    assert "95 % interval of the difference, adjusted over groups" in subtitle(chart)


def test_zero_is_among_the_ticks_of_both_panels(found):
    panels = spec(charts.difference(found))["hconcat"]
    axes = [
        layer["encoding"]["x"]["axis"]["values"]
        for panel in panels
        for layer in panel["layer"]
        if "axis" in layer["encoding"].get("x", {})
    ]
    assert len(axes) == 2
    assert all(0.0 in ticks for ticks in axes)


def test_two_groups_are_one_row(audit):
    chart = charts.difference(audit.difference(groups=("1", "2")), "mirrored")
    assert [row["name"] for row in rows(chart, "from_")] == ["1 − 2"]
    assert "Mirrored pairs" in subtitle(chart)


def test_an_audit_less_itself_says_so(audit):
    same = mpc.difference(audit, audit)
    assert title(charts.difference(same)).startswith("No difference: the new audit and the old")


def test_findings_come_first_and_are_never_cut(found):
    data = found.data.isel(pairing_mode=[0]).copy(deep=True)
    data["verdict"] = (("group", "pairing_mode"), np.array([["inconclusive"], ["higher"]]))
    data["difference"][:] = [[0.1], [0.5]]
    data["ci_low_adjusted"][:], data["ci_high_adjusted"][:] = [[-9.0], [0.1]], [[9.0], [40.0]]
    drawn = rows(charts.difference(mpc.Difference(data)), "from_")
    assert [row["verdict"] for row in drawn] == ["higher", "inconclusive"]
    assert drawn[0]["to"] == 40.0
    assert drawn[0]["cut_right"] is None


def test_a_difference_without_an_interval_is_named(empty):
    chart = charts.difference(empty.difference(modes=("matched", "mirrored")))
    row = next(row for row in rows(chart, "missing") if row["name"] == "rare")
    assert row["missing"] == "not estimable"
    assert row["dot"] is None


def test_at_most_so_many_groups_are_drawn(make_audit):
    many = make_audit([f"g{k}" for k in range(8)], threshold=0.3)
    chart = charts.difference(mpc.difference(many, many), limit=3)
    assert len(rows(chart, "from_")) == 3
    assert "first 3 of 8 groups" in subtitle(chart)


def test_a_live_chart_is_clicked_by_its_rows(found):
    whole = spec(charts.difference(found, live=True))
    names = {param["name"]: param for param in whole["params"]}
    rows_of = [panel["layer"][0]["name"] for panel in whole["hconcat"]]
    assert set(rows_of) <= set(names["pick"]["views"])
    assert names["chosen"]["value"] == -1


@pytest.mark.parametrize("live", [False, True])
def test_a_narrow_page_has_the_panels_below_each_other_and_names_beside_both(found, live):
    chart = charts.difference(found, narrow=True, live=live)
    panels = spec(chart)["vconcat"]
    assert len(panels) == 2
    for panel in panels:
        assert all(row["encoding"]["y"]["axis"].get("labels", True) for row in named(panel))
    assert subtitle(chart).startswith("Above, ring")


def named(panel):
    return [layer for layer in panel["layer"] if "y" in layer.get("encoding", {})]


def test_wrong_arguments_are_refused(audit, found):
    with pytest.raises(mpc.MpcError, match=r"what audit\.difference\(\) returned; got Audit"):
        charts.difference(audit)
    with pytest.raises(mpc.MpcError, match="pairing_mode"):
        charts.difference(found, "matchd")
