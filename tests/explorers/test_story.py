"""The tab of five cards: which chart each shows, and in which forms."""

from __future__ import annotations

import pytest

from helpers.explorer_audits import example_audit
from mpc_lab.explorers.story import StoryExplorer


@pytest.fixture
def explorer():
    made = StoryExplorer(example_audit(), group="1")
    _ = made.widget
    return made


def test_the_overview_has_a_second_form_for_narrow_columns(explorer):
    chart = explorer.controls["chart"]
    assert explorer.selection.chart.startswith("mpc.charts.overview")
    assert chart.narrow not in ("", chart.spec)


def test_a_card_of_one_form_leaves_none_of_another_behind(explorer):
    explorer.card = 1
    assert explorer.error == ""
    assert explorer.controls["chart"].narrow == ""
