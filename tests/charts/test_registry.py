"""A chart is one function: registered, it is there wherever a chart is asked for by name."""

from __future__ import annotations

import altair as alt
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers.drawn import title
from mpc_lab import charts
from mpc_lab.charts import theme
from mpc_lab.report.context import Context


@pytest.fixture
def tally(monkeypatch):
    """Register a chart that no other file knows of."""
    # Taken back out when the test ends.
    monkeypatch.setitem(charts.CHARTS, "tally", None)

    @charts.chart
    def tally(audit, word="groups"):
        frame = pd.DataFrame({"group": audit.groups})
        bars = alt.Chart(frame).mark_bar().encode(x="count():Q", y="group:N")
        return theme.finish(bars, f"{len(audit.groups)} {word}", [])

    return tally


def test_a_registered_chart_is_drawn_by_its_name(tally, audit):
    assert mpc.charts.tally is tally
    assert title(mpc.charts.draw("tally", audit, word="kinds")) == "2 kinds"


def test_a_report_draws_a_registered_chart(tally, audit):
    assert 'aria-label="2 groups"' in Context(audit).draw("tally")


def test_a_registered_chart_is_saved_like_any_other(tally, audit, tmp_path):
    file = charts.save(charts.draw("tally", audit), tmp_path / "tally.svg")
    assert "2 groups" in file.read_text("utf-8")


def test_every_chart_of_the_package_is_registered_under_its_own_name():
    assert all(getattr(charts, name) is draw for name, draw in charts.CHARTS.items())
    assert set(charts.CHARTS) < set(charts.__all__)


def test_a_misspelt_chart_is_named(audit):
    with pytest.raises(mpc.MpcError, match=r"must be a chart; got 'forrest'.*mean 'forest'"):
        charts.draw("forrest", audit)
    with pytest.raises(AttributeError, match="forrest"):
        _ = charts.forrest
