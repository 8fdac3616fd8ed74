"""What each chart shows, and what its title says."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.drawn import fields, marks, rows, spec, subtitle, title
from mpc_lab import charts
from mpc_lab.charts.theme import _broken, svg
from mpc_lab.text import labels


def test_forest_names_the_finding_and_draws_every_cell(audit):
    chart = charts.forest(audit)
    assert "'1' is undervalued" in title(chart)
    assert len(rows(chart, "group", "verdict")) == 4
    assert {"point", "rule", "rect"} <= set(marks(chart))
    assert "tolerance of ±0.01" in subtitle(chart)


def test_forest_facets_rules_without_data_inside(audit):
    whole = spec(charts.forest(audit))
    assert whole["facet"]["column"]["field"] == "rule"
    bars = next(layer for layer in whole["spec"]["layer"] if "y" in layer["encoding"])
    assert "data" not in bars


def test_forest_says_what_is_not_estimable(empty):
    row = next(r for r in rows(charts.forest(empty), "missing") if r["group"] == "rare")
    assert row["missing"] == "not estimable"
    assert row["gap"] is None
    assert "no pairs" in row["said"]


def test_forest_draws_130_groups_and_obeys_its_limit(make_audit):
    many = make_audit([f"g{k}" for k in range(130)], threshold=0.3)
    assert len(rows(charts.forest(many), "verdict")) == 130
    few = charts.forest(many, limit=10)
    assert len(rows(few, "verdict")) == 10
    assert "first 10 of 130 groups" in subtitle(few)


def test_forest_says_before_all_else_that_groups_are_left_out(make_audit):
    # A card of a report shows two lines, and a tolerance has one of its own.
    many = make_audit([f"g{k}" for k in range(8)], threshold=0.3, tolerance=0.05)
    lines = charts.forest(many, limit=3).usermeta["mpc"]["subtitle"]
    assert lines[1] == "The first 3 of 8 groups, findings first"
    assert any("tolerance" in line for line in lines[2:])


def test_forest_keeps_a_cut_interval_inside_with_an_arrow(audit):
    from mpc_lab.charts.forest import _row
    from mpc_lab.results.summary import slices

    cell = slices(audit)[0].cells[0]
    row = _row(cell, (cell.low, (cell.estimate + cell.high) / 2))
    assert row["cut_right"] == row["high"] < cell.high
    assert np.isnan(row["cut_left"])
    assert (row["number_left"], row["number_right"]) == (
        "",
        f"{cell.high:.3f}".replace("-", "\N{MINUS SIGN}"),
    )


def test_epsilon_curve_draws_band_interval_and_headline(audit):
    chart = charts.epsilon_curve(audit, "1")
    assert "Group '1' is undervalued at ε" in title(chart).replace("\u00a0", " ")
    assert marks(chart).count("area") == 2
    drawn = {d["field"] for channel, d in fields(chart) if channel in ("y", "y2")}
    assert {"band_low", "band_high", "low", "high", "gap", "pairs"} <= drawn
    assert len(rows(chart, "band_low")) == audit.curve.sizes["epsilon"]


def test_bracket_has_a_limit_for_each_order(audit):
    chart = charts.bracket(audit, "1")
    limits = [t for t in spec(chart)["datasets"].values() if "bandwidth" in t[0]]
    assert sorted(len(t) for t in limits) == [1, 1]
    assert "as ε goes to 0 its gap" in title(chart)


def test_bracket_without_rows_leaves_the_limits_out(audit):
    bare = mpc.Audit(audit.headline, audit.curve, audit.moments, audit.attrs)
    chart = charts.bracket(bare, "1")
    assert "need the rows" in subtitle(chart)
    assert title(chart) == "Group '1' is undervalued"


def test_bracket_asks_for_both_orders(make_audit):
    with pytest.raises(mpc.MpcError, match="got an audit of matched pairs only"):
        charts.bracket(make_audit(["a", "b"], threshold=0.1), "a")


def test_ladder_shows_each_family_and_how_much_larger(audit):
    chart = charts.ladder(audit)
    own = audit.headline.sel(scoring_rule="baseline", pairing_mode="matched")
    first = rows(chart, "family")[0]
    assert first["std_error"] == pytest.approx(
        float(own["std_error_by"].sel(group=first["group"], variance="naive"))
    )
    assert "times those of pairs taken as independent" in title(chart)


def test_boost_marks_the_root_and_both_curves(audit):
    chart = charts.boost(audit, "1", alphas=np.linspace(-0.2, 0.2, 21))
    assert "α* =" in title(chart)
    assert len(rows(chart, "change", "gap")) == 21
    assert rows(chart, "name")[0]["name"].startswith("α* =")


def test_no_boost_is_among_the_boosts_named_below_the_curves(audit):
    drawn = spec(charts.boost(audit, "1"))["vconcat"][1]
    axes = [layer["encoding"].get("x", {}).get("axis") or {} for layer in drawn["layer"]]
    named = [axis["values"] for axis in axes if axis.get("values")]
    assert named
    assert all(0.0 in values and len(values) > 2 for values in named)


def test_calibration_by_segment_has_a_panel_each(audit):
    chart = charts.calibration(audit, "1", by_segment=True)
    assert {r["segment"] for r in rows(chart, "segment")} == {"u", "v"}
    assert "Gap by segment: u 0." in subtitle(chart)
    assert "are not shown to differ from those of others" in title(chart)


def test_calibration_by_segment_needs_segments(make_audit):
    with pytest.raises(mpc.MpcError, match="must have segments; got a ranking without them"):
        charts.calibration(make_audit(["a", "b"], threshold=0.1), "a", by_segment=True)


def test_mpc_ndcg_sets_each_rule_against_the_baseline(audit):
    chart = charts.mpc_ndcg(audit, "1")
    points = rows(chart, "change", "gap")
    assert [p["rule_place"] for p in points] == [0, 1]
    assert points[0]["change"] == 0
    assert points[1]["start_gap"] == points[0]["gap"]
    assert "changes NDCG by" in title(chart)


def test_mpc_ndcg_names_flagged_groups_away_from_where_their_lines_lead(audit):
    whole = spec(charts.mpc_ndcg(audit))
    texts = [layer for layer in whole["layer"] if layer["mark"]["type"] == "text"]
    sides = {
        row["group"]: layer["mark"]["align"]
        for layer in texts
        for row in whole["datasets"][layer["data"]["name"]]
    }
    points = [row for row in rows(charts.mpc_ndcg(audit), "change", "gap") if row["rule_place"]]
    leads = {row["group"]: "right" if row["change"] >= 0 else "left" for row in points}
    assert sides
    assert sides.items() <= leads.items()


def test_power_falls_with_more_pairs_and_agrees_with_the_audit(audit):
    chart = charts.power(audit, "1")
    least = [r["value"] for r in rows(chart, "value") if r["line"].startswith("smallest")]
    assert least[-1] < least[0]
    cell = audit.power()["mde"].sel(group="1", scoring_rule="baseline", pairing_mode="matched")
    assert f"gaps from {float(cell):.3f} on" in title(chart)


def test_power_says_why_its_title_is_not_on_the_curve(audit):
    chart = charts.power(audit, "1")
    cells = audit.headline["std_error"].sel(group="1", scoring_rule="baseline")
    errors = [float(cells.sel(pairing_mode=mode)) for mode in ("matched", "mirrored")]
    assert errors[1] > errors[0]
    assert "larger standard error of the two sides" in subtitle(chart)


def test_power_must_be_a_probability(audit):
    with pytest.raises(mpc.MpcError, match="power must be a finite number of at least"):
        charts.power(audit, "1", power=1.0)


def test_love_names_what_differs(audit):
    chart = charts.love(audit, "1", "query_type")
    assert title(chart).startswith("Inside the pairs of group '1' all 2 covariates are within 0.1")
    assert {r["over"] for r in rows(chart, "over")} == {"all rows", "inside the pairs"}
    assert len(rows(chart, "over")) == 6


@pytest.mark.parametrize(
    ("within", "said"),
    [
        ([0.3], "position differs by 0.30 standard deviations"),
        (
            [0.3, 0.05],
            "the covariate is within 0.1 standard deviations; position differs by 0.30",
        ),
        (
            [0.3, -0.2, 0.05],
            "1 of 2 covariates differs by more than 0.1 standard deviations: 'age' \u22120.20; "
            "position differs by 0.30",
        ),
        ([np.nan, np.nan], ""),
    ],
)
def test_love_tells_position_apart_from_the_covariates(audit, within, said):
    names = ["position", "age", "size"][: len(within)]
    given = {name: np.resize([0.0, 1.0, 3.0], audit.ranking.n_rows) for name in names[1:]}
    found = audit.balance(given, "1", permutations=0)
    found = found.assign(difference=found["difference"].copy(data=[within]))
    whole = f"Inside the pairs of group '1' {said}"
    nothing = "Nothing can be compared inside the pairs of group '1'"
    assert title(charts.love(audit, "1", found=found)) == (whole if said else nothing)


def test_distance_density_counts_the_pairs(audit):
    chart = charts.distance_density(audit, "1")
    assert sum(r["pairs"] for r in rows(chart, "pairs")) == int(audit.limit("1")["n_pairs"])
    assert "no pair is tied" in title(chart)


def test_numbers_below_a_wide_chart_do_not_run_into_each_other(audit):
    drawn = svg(charts.distance_density(audit, "1").properties(width=900))
    below = re.findall(r"translate\(([\d.]+),17\)[^>]*opacity=\"1\">([\d.]+)<", drawn)
    ends = [(float(x) - 3 * len(text), float(x) + 3 * len(text)) for x, text in below]
    assert len(below) > 3
    assert all(right < left for (_, right), (left, _) in itertools.pairwise(ends))


def test_rivals_draws_every_measure(audit):
    chart = charts.rivals(audit, "1")
    table = rows(chart, "measure", "says")
    assert len(table) == audit.compare(["1"]).sizes["measure"]
    assert table[0]["measure"] == "MPC"
    assert "MPC calls group '1' undervalued" in title(chart)


@pytest.mark.parametrize("draw", [charts.epsilon_curve, charts.power, charts.rivals, charts.love])
def test_a_misspelt_group_is_named(make_audit, draw):
    audit = make_audit(["drama", "war"], threshold=0.1)
    with pytest.raises(mpc.MpcError, match="Did you mean 'drama'"):
        draw(audit, "drame")


def test_names_that_look_alike_stay_apart():
    assert labels(["x" * 200, "x" * 200 + "y", "\x01", "a\nb"])[1:] == [
        "x" * 16 + "…" + "x" * 16 + "y",
        "(no name)",
        "a b",
    ]


def test_an_audit_without_rows_draws_the_same_forest(audit):
    bare = mpc.Audit(audit.headline, audit.curve, audit.moments, audit.attrs)
    assert spec(charts.forest(bare)) == spec(charts.forest(audit))


@pytest.mark.parametrize("before", range(30, 42))
def test_a_threshold_is_not_parted_from_its_number(before):
    lines = _broken([f"{'x' * before} at ε = 0.00111 and more"], 40)
    assert any("ε = 0.00111" in line for line in lines)
    assert all(len(line) <= 41 for line in lines)


def test_a_percentage_is_not_parted_from_its_sign():
    line = "At 5 % the audit's own standard errors reject 4 % of them (1.6 % to 9.8 %)"
    for width in range(40, 80):
        assert not any(part.startswith("%") for part in _broken([line], width))


def test_no_word_is_left_alone_on_the_last_line():
    line = "Intervals on hover; matched pairs; change against the logged scores, query by query"
    first, second = _broken([line], 78)
    assert " ".join((first, second)) == line
    assert abs(len(first) - len(second)) < 12


@pytest.mark.parametrize(
    ("word", "angle"), [("w", 0), ("a week whose name is long, number ", None)]
)
def test_periods_whose_names_fit_are_not_turned(word, angle):
    logs = [mpc.datasets.synthetic(queries=100, seed=week) for week in range(3)]
    audits = [mpc.audit(log, threshold=0.1, progress=False) for log in logs]
    made = spec(charts.trend(mpc.trend(audits, [f"{word}{week}" for week in range(3)])))
    assert made["spec"]["layer"][1]["encoding"]["x"]["axis"].get("labelAngle") == angle
