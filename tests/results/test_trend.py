"""Gaps over periods: changes by the stacked difference, and an alarm that keeps its level."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers.drawn import title
from mpc_lab.cli import main
from mpc_lab.inference.sequence import change_evidence

COLUMNS = {name: name for name in ("query", "item", "score", "outcome", "group")}


def week(k, step=0.0, queries=50, items=40):
    rng, shock = np.random.default_rng(k), np.random.default_rng(99).normal(size=items) * 0.5
    query = np.repeat(np.arange(queries), 10)
    item = np.concatenate([rng.permutation(items)[:10] for _ in range(queries)])
    n = len(query)
    return pd.DataFrame(
        {
            "query": query + 1000 * k,
            "item": item,
            "score": rng.integers(0, 60, n) / 256,
            "outcome": shock[item] + rng.normal(size=n) + step * (item % 2),
            "group": np.where(item % 2 == 1, "a", "b"),
        }
    )


def run(frame, **options):
    options = {"threshold": 0.05, "epsilon": [0.02, 0.05], "progress": False} | options
    return mpc.audit(frame, **COLUMNS, **options)


@pytest.fixture(scope="module")
def weeks():
    return [run(week(k)) for k in range(4)]


def by_hand(z):
    """Return E after each period, one bet at a time, as a mixture over when the change began."""
    found = []
    for t in range(1, len(z) + 1):
        bets = [sign * bet for bet in (0.5, 1.0, 2.0) for sign in (1, -1)]
        total = 0.0
        for bet in bets:
            for start in range(1, t + 1):
                since = np.prod([np.exp(bet * x - bet**2 / 2) for x in z[start - 1 : t]])
                total += since / (start * (start + 1))
        found.append(total / len(bets))
    return found


def test_the_evidence_is_a_mixture_over_when_the_change_began():
    z = np.random.default_rng(0).normal(size=8)
    assert change_evidence(z) == pytest.approx(by_hand(z), rel=1e-12)
    with_gap = np.insert(z, 3, np.nan)
    assert np.delete(change_evidence(with_gap), 3) == pytest.approx(by_hand(z), rel=1e-12)


@pytest.mark.parametrize(("correction", "close"), [("plain", 1e-9), ("cr3", 2e-4)])
def test_changes_are_those_of_the_rows_of_all_periods_before(correction, close):
    # What single queries weigh in a pool is a series, good to 0.02 %.
    weeks = [run(week(k), correction=correction) for k in range(4)]
    found = mpc.trend(weeks, ["1", "2", "3", "4"]).data
    for t in (2, 3):
        earlier = run(pd.concat([week(k) for k in range(t)]), correction=correction)
        expected = mpc.difference(weeks[t], earlier).data.squeeze("pairing_mode")
        one = found.isel(period=t)
        assert one.total.values == pytest.approx(expected.difference.values, abs=1e-10)
        assert one.total_std_error.values == pytest.approx(expected.std_error.values, rel=close)
        last = mpc.difference(weeks[t], weeks[t - 1]).data.squeeze("pairing_mode")
        assert one.change_std_error.values == pytest.approx(last.std_error.values, rel=1e-9)


def test_saved_audits_give_the_same(weeks, tmp_path):
    for k, audit in enumerate(weeks):
        audit.save(tmp_path / f"{k}.nc", items=True)
    loaded = [mpc.load(tmp_path / f"{k}.nc") for k in range(4)]
    one, other = mpc.trend(weeks).data, mpc.trend(loaded).data
    for name in ("estimate", "total", "total_std_error", "evidence"):
        assert one[name].values == pytest.approx(other[name].values, rel=1e-9, nan_ok=True)


def test_a_large_step_rings_and_no_step_does_not(weeks):
    assert mpc.trend(weeks).alarms == ()
    found = mpc.trend([*weeks, run(week(4, step=3.0)), run(week(5, step=3.0))])
    assert set(found.alarms) == {"a", "b"}
    assert found.answer == 1
    assert "Alarm: the gap of 'a' has changed" in found.summary()
    assert found.to_dict()["alarms"]["a"] in ("5", "6")
    assert len(found.to_frame()) == 12
    assert "Alarm" in found._repr_html_()


def test_a_trend_refuses_bad_audits_and_labels(weeks):
    with pytest.raises(mpc.MpcError, match="at least two audits"):
        mpc.trend(weeks[:1])
    with pytest.raises(mpc.MpcError, match="labels must be 4 different names"):
        mpc.trend(weeks, ["1", "2", "3", "3"])
    with pytest.raises(mpc.MpcError, match=r"labels must be a list of names.*got the text 'ab'"):
        mpc.trend(weeks[:2], "ab")
    with pytest.raises(mpc.MpcError, match="got the same rows in '1' and '3'"):
        mpc.trend([*weeks[:2], weeks[0]])
    with pytest.raises(mpc.MpcError, match="one threshold for all periods"):
        mpc.trend([weeks[0], run(week(1), threshold=0.02)])


def test_a_trend_knows_an_audit_by_its_file(weeks, tmp_path):
    weeks[0].save(tmp_path / "1.nc")
    with pytest.raises(mpc.MpcError, match="got the same rows in '1' and '3'"):
        mpc.trend([*weeks[:2], mpc.load(tmp_path / "1.nc")])


def test_the_command_reads_a_folder_in_the_order_of_its_names(weeks, tmp_path, capsys):
    for k, audit in enumerate([*weeks, run(week(4, step=3.0)), run(week(5, step=3.0))]):
        audit.save(tmp_path / f"2026-w{k:02}.nc", items=True)
    assert main(["trend", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "Alarm: the gap of 'a' has changed" in shown
    assert max(map(len, shown.split("\n\n")[1].splitlines())) <= 80
    chart = tmp_path / "weeks.svg"
    assert main(["trend", str(tmp_path), "--json", "--chart", str(chart)]) == 1
    assert "2026-w05" in chart.read_text("utf-8")
    line = json.loads(capsys.readouterr().out)
    assert line["answer"] == 1
    assert line["last"] == "2026-w05"
    (tmp_path / "none").mkdir()
    assert main(["trend", str(tmp_path / "none")]) == 3


@pytest.mark.parametrize(("name", "what"), [("absent", "nothing there"), ("log.csv", "a file")])
def test_the_command_says_what_is_not_a_folder(tmp_path, capsys, name, what):
    (tmp_path / "log.csv").write_text("q,s")
    assert main(["trend", str(tmp_path / name)]) == 3
    assert f"which is {what}. Name the folder." in capsys.readouterr().err


def test_the_chart_says_whether_an_alarm_rang(weeks, tmp_path):
    found = mpc.trend(weeks)
    drawn = mpc.charts.trend(found)
    assert title(drawn) == "No alarm for a change in 4 periods"
    assert "gap in outcome" in str(drawn.to_dict())
    file = mpc.charts.save(drawn, tmp_path / "trend.png")
    assert file.stat().st_size > 10_000
    with pytest.raises(mpc.MpcError, match=r"what mpc\.trend\(\) returned; got Dataset"):
        mpc.charts.trend(found.data)
