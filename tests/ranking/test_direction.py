"""Scores of which smaller is better, logs without scores, and what the outcome is called."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.agreeing import BOOLEANS, assert_agree, random_log

LOG = {"query": "query", "item": "item", "outcome": "outcome", "group": BOOLEANS}
MODES = ["matched", "mirrored", "adjacent"]


@pytest.fixture(scope="module")
def frame():
    return random_log(2)


@pytest.mark.parametrize("rules", [["baseline", "boosted", "calibrated"], [mpc.Column("new")]])
def test_ascending_is_the_negated_score(frame, rules):
    turned = frame.assign(score=0 - frame["score"], new=0 - frame["new"])
    how = {**LOG, "scoring_rules": rules, "pairing_modes": MODES, "score": "score"}
    down = mpc.audit(frame, ascending=True, progress=False, **how)
    up = mpc.audit(turned, progress=False, **how)
    assert_agree(down, up)
    assert "A smaller score is better (ascending)." in down.summary()
    assert down.attrs["columns"] != up.attrs["columns"]


@pytest.mark.parametrize("rule", ["baseline", "boosted(0.003)", "calibrated", "new"])
def test_scores_are_shown_as_given(frame, rule):
    rules = ["baseline", mpc.Boosted(0.003), "calibrated", mpc.Column("new")]
    how = {**LOG, "score": "score", "scoring_rules": rules, "threshold": 0.01}
    audit = mpc.audit(frame, ascending=True, progress=False, **how)
    listed = audit.pairs("g0", rule)
    keys = ["query", "item"]
    given = listed.merge(frame, on=keys, suffixes=("", "_log"))
    expected = {
        "baseline": given["score_log"],
        "boosted(0.003)": given["score_log"] - 0.003,
        "new": given.get("new"),
    }
    if rule in expected:
        np.testing.assert_allclose(given["score"], expected[rule], rtol=0, atol=1e-15)
    # In a matched pair the other item is ranked higher: its score is not larger.
    sign = 1 if rule == "calibrated" else -1
    assert (sign * (listed["other_score"] - listed["score"]) >= 0).all()


def test_calibration_is_drawn_over_scores_as_given(frame):
    audit = mpc.audit(frame, ascending=True, score="score", progress=False, **LOG)
    found = audit.calibration("g0", bins=4)
    low, high = frame["score"].min(), frame["score"].max()
    assert float(found.score.min()) >= low
    assert float(found.score.max()) <= high


def test_a_rank_only_audit_compares_neighbours(frame):
    audit = mpc.audit(frame, position="position", progress=False, **LOG)
    assert audit.headline.pairing_mode.values.tolist() == ["adjacent"]
    assert (audit.headline.epsilon == 1).all()
    by_place = frame.assign(score=-frame["position"].astype(float))
    how = {"score": "score", "position": "position", "pairing_modes": "adjacent"}
    scored = mpc.audit(by_place, threshold=1.0, epsilon=[1.0], progress=False, **how, **LOG)
    assert_agree(audit, scored)
    assert (audit.pairs("g0", pairing_mode="adjacent")["distance"] == 1).all()
    assert "places and no scores" in audit.summary()
    assert json.loads(audit.attrs["columns"])["score"] is None
    assert audit.compare(["g0"]).sizes["group"] == 1


OTHERS = {
    "scoring_rules": ["boosted"],
    "pairing_modes": ["matched"],
    "threshold": 2.0,
    "epsilon": [1.0, 2.0],
    "closeness": "percentile",
}


@pytest.mark.parametrize(("option", "value"), OTHERS.items(), ids=OTHERS)
def test_a_rank_only_audit_refuses_what_needs_scores(frame, option, value):
    with pytest.raises(mpc.MpcError, match=f"{option} must be left out for a log without scores"):
        mpc.audit(frame, position="position", progress=False, **LOG, **{option: value})


def test_a_rank_only_audit_refuses_questions_that_need_scores(frame):
    audit = mpc.audit(frame, position="position", progress=False, **LOG)
    for method in ("limit", "certificate", "boost_curve", "fair_boost", "closeness"):
        with pytest.raises(mpc.MpcError, match="must have a log with scores"):
            getattr(audit, method)("g0")
    with pytest.raises(mpc.MpcError, match="pairing_mode must be 'adjacent'") as error:
        audit.pairs("g0")
    assert str(error.value).endswith("Pass pairing_mode='adjacent'.")
    assert len(audit.balance(group="g0", pairing_mode="adjacent", permutations=0).n_pairs) == 1


def test_a_report_of_places_alone_is_written(frame, tmp_path, no_charts):
    audit = mpc.audit(frame, position="position", progress=False, **LOG)
    page = audit.report(tmp_path / "r.html", progress=False).read_text("utf-8")
    assert "places and no scores" in page


def test_neither_score_nor_position_is_an_error(frame):
    with pytest.raises(mpc.MpcError, match="score"):
        mpc.audit(frame, progress=False, **LOG)
    with pytest.raises(mpc.MpcError, match="score must be the name of one column"):
        mpc.Ranking(frame, **LOG)
    with pytest.raises(mpc.MpcError, match="ascending must go with a score"):
        mpc.Ranking(frame, position="position", ascending=True, **LOG)


def test_audits_of_two_directions_are_not_pooled(frame):
    how = {**LOG, "threshold": 0.01, "epsilon": [0.01], "score": "score", "progress": False}
    one, other = mpc.audit(frame, **how), mpc.audit(random_log(4), ascending=True, **how)
    with pytest.raises(mpc.MpcError, match="one direction of scores"):
        mpc.pool([one, other])


@pytest.mark.parametrize("bad", ["", 3])
def test_the_name_of_an_outcome_is_a_word(frame, bad):
    with pytest.raises(mpc.MpcError, match="outcome_name must be a word"):
        mpc.Ranking(frame, score="score", outcome_name=bad, **LOG)


def test_the_command_line_takes_them(frame, tmp_path):
    from mpc_lab.cli import main

    frame.to_csv(tmp_path / "log.csv", index=False)
    line = "--query query --score score --outcome outcome --group g0,g1,g2 --quiet --no-progress "
    line += "--ascending --outcome-name clicks --against g1 --closeness query_sd --contrast sign "
    line += "--outcome-cap 1"
    found = [str(tmp_path / "log.csv"), *line.split(), "--save", str(tmp_path / "a.nc")]
    assert main(["audit", *found]) == 0
    audit = mpc.load(tmp_path / "a.nc")
    options = json.loads(audit.attrs["options"])
    names = ("against", "closeness", "contrast", "outcome_cap")
    assert [options[name] for name in names] == ["g1", "query_sd", "sign", 1.0]
    columns = json.loads(audit.attrs["columns"])
    assert columns["ascending"] is True
    assert columns["outcome_name"] == "clicks"
