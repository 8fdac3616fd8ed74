"""Both sides of a tie, and the examination: what they draw and say."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.drawn import marks, rows, subtitle, title
from mpc_lab import charts
from mpc_lab.results.questions.limit import tie


@pytest.fixture(scope="module")
def clicks():
    log = mpc.datasets.clicks(8000, seed=1, eta=1.0)
    return mpc.audit(log, epsilon=[0.01], threshold=0.02, progress=False)


def test_the_jump_is_the_effect_of_place_of_the_headline(clicks):
    found = tie(clicks, "a")
    cell = clicks.headline.sel(group="a", scoring_rule="baseline", pairing_mode="symmetric")
    wanted = [float(cell[f"place_effect{end}"]) for end in ("", "_low", "_high")]
    np.testing.assert_allclose(found.place, wanted, rtol=1e-8)
    below, above = found.ends[:, 0]
    assert (above - below) / 2 == pytest.approx(found.place[0], rel=1e-10)
    assert (above + below) / 2 == pytest.approx(found.middle[0], rel=1e-10)
    wanted = [float(cell[name]) for name in ("estimate", "ci_low", "ci_high")]
    np.testing.assert_allclose(found.overall, wanted, rtol=1e-8)


def test_the_marker_is_the_middle_of_the_jump_with_the_interval_of_the_middle(clicks):
    """By least squares on both sides at once, clustered by query, apart from the code."""
    options = {"epsilon": [0.01], "threshold": 0.02, "progress": False}
    clicks = mpc.audit(clicks.ranking, cluster="query", **options)
    found = tie(clicks, "a")
    pairs = clicks.pairs("a", pairing_mode="symmetric")
    weight = _weights_of_places(pairs)
    above = (pairs.position < pairs.other_position).to_numpy()
    distance = pairs.distance.to_numpy()
    x = np.column_stack([~above, above, ~above * distance, above * distance]).astype(float)
    root = np.sqrt(weight)
    fit = np.linalg.lstsq(x * root[:, None], pairs.difference * root, rcond=None)[0]
    assert found.middle[0] == pytest.approx((fit[0] + fit[1]) / 2, rel=1e-8)
    bread = np.linalg.inv(x.T @ (x * weight[:, None]))
    each = (x @ bread[:, :2]).mean(axis=1) * weight * (pairs.difference - x @ fit)
    sums = each.groupby(pairs["query"].to_numpy()).sum()
    queries = (sums != 0).sum()
    error = np.sqrt((sums**2).sum() * queries / (queries - 1))
    estimate, low, high = found.middle
    assert (low + high) / 2 == pytest.approx(estimate, rel=1e-8)
    # By t with thousands of degrees of freedom.
    assert high - estimate == pytest.approx(1.9603 * error, rel=2e-4)
    (marked,) = rows(charts.tie(clicks, "a"), "interval_of_middle")
    assert (marked["difference"], marked["low"], marked["high"]) == found.middle


def _weights_of_places(pairs):
    """Return what a pair weighs where both sides have the same cells of places."""
    upper = pairs[["position", "other_position"]].min(axis=1)
    apart = (pairs.position - pairs.other_position).abs()
    firsts, steps = [1, 2, 3, 4, 6, 10, 20], [1, 2, 3, 5, 9]
    cell = np.searchsorted(firsts, upper, "right") * 10 + np.searchsorted(steps, apart, "right")
    above = (pairs.position < pairs.other_position).to_numpy()
    weight = np.zeros(len(pairs))
    for one in np.unique(cell):
        counts = [((cell == one) & (above == side)).sum() for side in (False, True)]
        if min(counts) < 2:
            continue
        omega = counts[0] * counts[1] / sum(counts)
        for side in (False, True):
            here = (cell == one) & (above == side)
            weight[here] = omega / counts[side]
    return weight


def test_dots_hold_all_pairs_and_are_on_their_side(clicks):
    found = tie(clicks, "a", bins=7)
    assert found.bins.groupby("side").size().to_dict() == {"below": 7, "above": 7}
    assert (np.sign(found.bins.distance) == np.where(found.bins.side == "above", 1, -1)).all()
    pairs = clicks.pairs("a", pairing_mode="symmetric")
    assert sum(found.pairs) == len(pairs)
    is_above = pairs.position < pairs.other_position
    assert found.pairs == ((~is_above).sum(), is_above.sum())
    # Every place has its share of both sides here, but for cells with hardly a pair.
    assert found.bins.pairs.sum() == pytest.approx(len(pairs), abs=10)


def test_the_chart_says_both_findings_and_marks_them(clicks):
    chart = charts.tie(clicks, "a")
    assert "Group 'a': clicks 0.007 higher over all these pairs" in title(chart)
    assert "being shown above is worth 0.0" in title(chart)
    assert "Effect of place, half the jump: 0.0" in subtitle(chart)
    assert "Gap at a tie, the middle of the jump: 0.0" in subtitle(chart)
    labels = {row["label"] for row in _all(chart, "label")}
    assert any(text.startswith("gap at a tie: ") for text in labels)
    assert any(text.startswith("effect of place: ") for text in labels)
    assert "shown above ▶" in labels
    assert marks(chart).count("line") == 2
    assert len(rows(chart, "side")) == 20


def _all(chart, column):
    tables = chart.to_dict(validate=False)["datasets"].values()
    return [row for table in tables for row in table if column in row]


def test_no_place_effect_is_said_to_be_unseen():
    log = mpc.datasets.clicks(4000, seed=3, eta=0.0, bias=0.0)
    audit = mpc.audit(log, epsilon=[0.01], threshold=0.02, progress=False)
    assert "no effect of place is seen" in title(charts.tie(audit, "a"))


def test_without_positions_nothing_is_called_place():
    audit = mpc.audit(mpc.datasets.synthetic(2000), threshold=0.05, progress=False)
    chart = charts.tie(audit, "1")
    assert "place" not in title(chart)
    assert "◀ ranked below" in str([row["label"] for row in _all(chart, "label")])


def test_coarse_scores_have_means_and_no_lines(clicks):
    frame = clicks.ranking.to_frame().iloc[:20_000]
    frame["score"] = frame["score"].round(1)
    columns = {"query": "query", "score": "score", "outcome": "clicks", "group": "group"}
    audit = mpc.audit(frame, **columns, position="place", threshold=0.0, progress=False)
    found = tie(audit, "a")
    assert not found.lines
    assert found.bins.distance.tolist() == [-0.5, 0.5]
    assert "too few different distances" in title(charts.tie(audit, "a"))
    cell = audit.headline.sel(group="a", scoring_rule="baseline", pairing_mode="symmetric")
    wanted = [float(cell[name]) for name in ("estimate", "ci_low", "ci_high")]
    np.testing.assert_allclose(found.middle, wanted, rtol=1e-8)
    assert found.ends[:, 0].mean() == pytest.approx(found.middle[0], rel=1e-8)


def test_no_direction_is_said_that_the_audit_does_not_give():
    """A log whose middle happens to exclude 0, without a gap and without a finding."""
    log = mpc.datasets.clicks(8000, seed=3, eta=0.0, bias=0.0)
    audit = mpc.audit(log, epsilon=[0.01], progress=False)
    found = tie(audit, "a")
    assert found.middle[2] < 0
    assert "no clear difference in clicks" in title(charts.tie(audit, "a"))


def test_a_finding_over_all_pairs_is_said_where_the_tie_itself_is_unclear():
    log = mpc.datasets.clicks(120, seed=1, eta=1.0)
    audit = mpc.audit(log, epsilon=[0.01], progress=False)
    assert audit.to_frame().verdict.iloc[0] == "undervalued"
    assert "higher over all these pairs, not clear at a tie" in title(charts.tie(audit, "a"))


def test_labels_keep_apart():
    from mpc_lab.charts.tie import _spread

    moved = _spread([0.02, 0.0199, 0.0198], 0.01, (-1.0, 1.0))
    assert np.diff(moved).max() <= -0.0099


def test_a_place_above_the_scale_of_the_examination_is_an_arrow_with_its_number(clicks):
    found = clicks.examination(places=6)
    far = found.assign(examined=found["examined"].where(found["place"] != 6, 2.34))
    shown = {row["place"]: row for row in rows(charts.examination(far), "above")}
    assert (shown[6]["inside"], shown[6]["above"], shown[6]["number"]) == (None, 1.6, "2.3")
    assert shown[1]["above"] is None
    assert "Triangles: above 1.6" in subtitle(charts.examination(far))


def test_the_examination_is_drawn_from_what_was_found_or_from_an_audit(clicks):
    found = clicks.examination(places=6)
    chart = charts.examination(found)
    assert "Place 2 is looked at 50 % as often as place 1; place 4: 35 %" in title(chart)
    assert [row["place"] for row in rows(chart, "examined")] == [1, 2, 3, 4, 5, 6]
    assert "Place 2 is looked at" in title(charts.examination(clicks))
    with pytest.raises(mpc.MpcError, match=r"what audit\.examination"):
        charts.examination(clicks.headline)


def test_places_that_are_hardly_known_are_not_put_in_the_title():
    audit = mpc.audit(mpc.datasets.clicks(3000, seed=1, eta=1.0), epsilon=[0.01], progress=False)
    found = audit.examination()
    narrow = (found.high <= 3 * found.low).values
    known = int((~narrow).argmax())
    assert 2 < known < found.sizes["place"]
    chart = charts.examination(found)
    assert f"; place {known}: " in title(chart)
    assert f"From place {known + 1} on" in subtitle(chart)
