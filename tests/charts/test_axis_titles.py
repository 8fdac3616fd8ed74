"""Axes of gaps say which outcome they are gaps in."""

from __future__ import annotations

import functools
import json

import pytest

import mpc_lab as mpc


@functools.cache
def audit_of(name, **options):
    frame = mpc.datasets.synthetic(queries=400, seed=3).to_frame()
    columns = {"query": "query", "score": "score", "outcome": "outcome", "group": "type"}
    return mpc.audit(frame, **columns, outcome_name=name, progress=False, **options)


CHARTS = {
    "forest": lambda audit: mpc.charts.forest(audit),
    "epsilon_curve": lambda audit: mpc.charts.epsilon_curve(audit, "1"),
    "bracket": lambda audit: mpc.charts.bracket(audit, "1"),
    "power": lambda audit: mpc.charts.power(audit, "1"),
    "ladder": lambda audit: mpc.charts.ladder(audit),
    "mpc_ndcg": lambda audit: mpc.charts.mpc_ndcg(audit),
    "placebo": lambda audit: mpc.charts.placebo(audit, "1", permutations=19),
}


@pytest.mark.parametrize("chart", CHARTS)
def test_an_axis_of_gaps_names_the_outcome(chart):
    rules, modes = ("baseline", "boosted"), ("matched", "mirrored")
    audit = audit_of("clicks", scoring_rules=rules, pairing_modes=modes)
    drawn = json.dumps(CHARTS[chart](audit).to_dict())
    assert "in clicks" in drawn
    assert "units of the outcome" not in drawn


def test_calibration_names_the_outcome():
    drawn = mpc.charts.calibration(audit_of("clicks"), "1").to_dict()
    assert '"mean clicks"' in json.dumps(drawn)


def test_a_long_name_loses_its_middle_and_a_sign_is_no_click():
    long = mpc.charts.forest(audit_of("a" * 40 + "z" * 40)).to_dict()
    assert f"gap in {'a' * 17}…{'z' * 18}" in json.dumps(long, ensure_ascii=False)
    signed = mpc.charts.forest(audit_of("clicks", contrast="sign")).to_dict()
    assert "gap in the sign of clicks" in json.dumps(signed)
