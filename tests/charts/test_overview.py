"""The overview: every gap sorted, every curve, a scale that cuts no finding, names told apart."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers.drawn import spec, walk
from mpc_lab.charts.overview import _off_scale, _panel_range
from mpc_lab.charts.theme import gap_ticks, svg
from mpc_lab.errors import MpcError


def log(groups, queries, long=False):
    """Return a log with gaps from -0.9 to 0.9 on the logit scale, spread over its groups."""
    random, size = np.random.default_rng(1), 12
    rows = queries * size
    member, score = random.integers(0, groups, rows), random.normal(size=rows)
    shift = np.linspace(-0.9, 0.9, groups)
    chance = 1 / (1 + np.exp(-(score + shift[member])))
    start = "Handmade and vintage jewellery from the region with number " if long else "g"
    names = np.array([f"{start}{k:02d}{' and around' if long else ''}" for k in range(groups)])
    return pd.DataFrame(
        {
            "query": np.repeat(np.arange(queries), size),
            "score": score,
            "clicks": (random.random(rows) < chance).astype(float),
            "genre": names[member],
        }
    )


def audited(*given, **options):
    columns = {"query": "query", "score": "score", "outcome": "clicks", "group": "genre"}
    return mpc.audit(log(*given, **options), **columns, progress=False)


@pytest.fixture(scope="module")
def audits():
    return {n: audited(n, 100 * n + 500, long=n == 60) for n in (2, 18, 60)}


@pytest.fixture(scope="module")
def specs(audits):
    """Return a function that draws the overview of so many groups, once."""
    return functools.cache(lambda n: spec(mpc.charts.overview(audits[n])))


def rows_of(whole, *needed):
    return next(rows for rows in whole["datasets"].values() if set(needed) <= set(rows[0]))


@pytest.mark.parametrize("groups", [2, 18, pytest.param(60, marks=pytest.mark.long)])
def test_rows_are_sorted_by_gap_and_every_group_has_its_curve(audits, specs, groups):
    whole = specs(groups)
    rows, curves = rows_of(whole, "ends"), rows_of(whole, "own")
    gaps = [row["gap"] for row in sorted(rows, key=lambda row: row["place"])]
    assert gaps == sorted(gaps, reverse=True)
    assert len(rows) == len({row["title"] for row in curves}) == groups
    thresholds = audits[groups].curve.sizes["epsilon"]
    assert len(curves) == groups * thresholds


@pytest.mark.parametrize("groups", [2, 18, 60])
def test_long_names_keep_their_ends_and_stay_distinct(specs, groups):
    names = [row["name"] for row in rows_of(specs(groups), "ends")]
    assert len(set(names)) == groups
    assert max(map(len, names)) <= 30
    if groups == 60:
        assert all(name.split(" (")[0].endswith("around") and "…" in name for name in names)


def test_many_long_names_leave_room_for_three_panels_beside_each_other(specs):
    panels = next(node for node in walk(specs(60)) if "facet" in node)
    titles = {row["title"] for row in rows_of(specs(60), "own")}
    assert panels["columns"] == 3
    assert len(titles) == 60
    # Letters of about 6.8 pixels: a title ends before the next one begins.
    room = panels["spec"]["width"] + panels["spacing"]["column"]
    assert max(map(len, titles)) * 6.8 <= room
    assert not any("(2)" in title for title in titles)


@pytest.mark.parametrize("groups", [2, 18, 60])
def test_zero_is_a_tick_and_no_flagged_interval_is_cut(audits, specs, groups):
    audit, whole = audits[groups], specs(groups)
    rows = rows_of(whole, "ends")
    table = audit.to_frame().set_index("group")
    found = [row for row in rows if row["verdict"] in ("undervalued", "overvalued")]
    assert found or groups == 60  # where chance is shared among 60 groups, none may be found
    for row in found:
        assert row["low"] == table["bracket_low"][row["group"]]
        assert row["high"] == table["bracket_high"][row["group"]]
        assert row["cut_left"] is None
        assert row["cut_right"] is None
    signed = [node["values"] for node in walk(whole) if "labelExpr" in node]
    assert len(signed) >= 2
    assert all(0.0 in values and len(values) > 1 for values in signed)


def test_marks_say_what_colours_say(audits):
    chart = mpc.charts.overview(audits[18])
    marks = {"undervalued": "▲", "overvalued": "▼", "inconclusive": "●"}
    for row in rows_of(spec(chart), "own"):
        assert row["title"].startswith(marks[row["verdict"]])
    counts = audits[18].to_frame()["verdict"].value_counts()
    assert chart.usermeta["mpc"]["subtitle"][0] == "\u2003".join(
        f"{mark} {counts[name]} {name}" for name, mark in marks.items() if name in counts
    )


def test_live_adds_the_threshold_pointed_at_and_draws_the_same_picture(audits):
    still, live = (mpc.charts.overview(audits[2], live=one) for one in (False, True))
    assert "params" not in spec(still)
    names = {one["name"] for one in spec(live)["params"]}
    assert names == {"at", "pointed", "pick", "chosen"}
    assert svg(still).count("+0.") == svg(live).count("+0.")


def test_narrow_stacks_and_a_limit_keeps_findings(audits):
    assert "vconcat" in spec(mpc.charts.overview(audits[18], narrow=True))
    few = mpc.charts.overview(audits[18], limit=1)
    assert rows_of(spec(few), "ends")[0]["verdict"] in ("undervalued", "overvalued")
    assert "1 of 18 groups" in few.usermeta["mpc"]["subtitle"][-1]
    with pytest.raises(MpcError, match="scoring_rule"):
        mpc.charts.overview(audits[2], scoring_rule="none")


@pytest.mark.parametrize("ends", [(-0.1, 0.45), (-3e-4, 1e-5), (0.0, 7.0), (-1.0, 0.001)])
def test_ticks_of_gaps_are_few_and_hold_zero(ends):
    ticks = gap_ticks(*ends, 4)
    assert 0.0 in ticks
    assert 2 <= len(ticks) <= 9
    assert all(ends[0] <= tick <= ends[1] for tick in ticks)


@pytest.mark.parametrize(
    ("verdict", "groups", "expected"),
    [
        # The intervals of few groups are held, but no end moves by more than the width.
        ("undervalued", 1, (-0.9, 1.5)),
        ("undervalued", 9, (-0.5, 0.74)),
        ("inconclusive", 1, (-0.5, 0.5)),
    ],
)
def test_the_curve_of_a_finding_is_inside_its_panel(verdict, groups, expected):
    curve = pd.DataFrame({"gap": [0.7, 0.2], "low": [-0.86, 0.1], "high": [2.0, 0.3]})
    curves = pd.concat([curve.assign(place=k, verdict=verdict) for k in range(groups)])
    assert _panel_range(curves, (-0.5, 0.5)) == pytest.approx(expected)


def test_a_curve_that_leaves_the_scale_is_marked_there():
    gaps = pd.Series([-0.9, -0.7, 0.1, 0.2, 0.6, np.nan])
    found = _off_scale(gaps, (-0.5, 0.5))
    assert np.array_equal(found["cut_below"], [-0.5, *[np.nan] * 5], equal_nan=True)
    assert np.array_equal(found["cut_above"], [*[np.nan] * 4, 0.5, np.nan], equal_nan=True)
    inside = _off_scale(gaps[2:4], (-0.5, 0.5))
    assert not any(np.isfinite(values).any() for values in inside.values())


def test_a_scale_without_width_has_a_tick_at_zero():
    assert gap_ticks(0.0, 0.0, 8) == [0.0]
