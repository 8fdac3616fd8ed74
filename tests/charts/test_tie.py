"""Both sides of a tie, and the examination: what they draw and say."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.drawn import marks, rows, subtitle, title
from mpc_lab import charts
from mpc_lab.results.questions.tie import tie


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
    wanted = [float(cell[name]) for name in ("estimate", "ci_low", "ci_high")]
    np.testing.assert_allclose(found.gap, wanted, rtol=1e-8)
    # The slopes of both sides cancel in it.
    assert (above + below) / 2 == pytest.approx(found.gap[0], abs=2 * float(cell.std_error))


def test_dots_hold_all_pairs_and_lie_on_their_side(clicks):
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
    assert "Group 'a' at a tie: clicks" in title(chart)
    assert "being shown above an equal is worth 0.0" in title(chart)
    assert "Half the jump is the effect of place: 0.0" in subtitle(chart)
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
    assert "too coarse" in title(charts.tie(audit, "a"))


def test_labels_keep_apart():
    from mpc_lab.charts.tie import _spread

    moved = _spread([0.02, 0.0199, 0.0198], 0.01, (-1.0, 1.0))
    assert np.diff(moved).max() <= -0.0099


def test_the_examination_is_drawn_from_what_was_found_or_from_an_audit(clicks):
    found = clicks.examination(places=6)
    chart = charts.examination(found)
    assert "Place 2 is looked at 0." in title(chart)
    assert [row["place"] for row in rows(chart, "examined")] == [1, 2, 3, 4, 5, 6]
    assert "Place 2 is looked at" in title(charts.examination(clicks))
    with pytest.raises(mpc.MpcError, match=r"what audit\.examination"):
        charts.examination(clicks.headline)
