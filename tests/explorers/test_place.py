"""The tab of places: where it is, what it draws, what it says of a later rule."""

from __future__ import annotations

import re

import pytest
import xarray as xr

import mpc_lab as mpc
from helpers.explorer_audits import small_audit, without_rows
from mpc_lab.explorers.place import PlaceExplorer, later_rule


@pytest.fixture(scope="module")
def audit():
    log = mpc.datasets.clicks(3000, lifted=0.5)
    return mpc.audit(log, epsilon=[0.01], threshold=0.02, progress=False)


def test_the_tab_is_there_where_positions_are_known(audit):
    panel = audit.explore(tab="Place")
    assert list(panel.tabs)[:4] == ["Groups", "Walk me through", "Epsilon", "Place"]
    assert "Place" not in small_audit().explore().tabs


def test_it_shows_both_sides_the_examination_and_a_table(audit):
    explorer = PlaceExplorer(audit)
    _ = explorer.widget
    assert explorer.error == ""
    assert "at a tie" in explorer.controls["chart"].title
    assert "looked at" in explorer.controls["examination"].title
    effect = float(audit.headline.place_effect.sel(group="a", pairing_mode="symmetric").item())
    assert f"{effect:.3f}"[:5] in explorer.controls["table"].value
    xr.testing.assert_identical(explorer.selection, audit.examination())


def test_table_and_sentence_say_the_same_shares(audit):
    explorer = PlaceExplorer(audit, group="a")
    _ = explorer.widget
    shares = re.findall(r"[\d.]+ %", explorer.controls["sentence"].text)
    table = explorer.controls["table"].value.replace("\u00a0", " ")
    assert len(shares) == 2
    assert all(f">{share}<" in table for share in shares)


def test_a_later_rule_is_said(audit):
    assert "A later rule seems to have moved items" in later_rule(audit, "a", "baseline")
    plain = mpc.audit(mpc.datasets.clicks(500), epsilon=[0.01], progress=False)
    assert "about in the order of the scores" in later_rule(plain, "a", "baseline")


def test_an_audit_without_rows_says_how_to_give_them(audit):
    explorer = PlaceExplorer(without_rows(audit))
    _ = explorer.widget
    assert "mpc.load" in explorer.error


def test_the_epsilon_tab_begins_with_the_tie(audit):
    explorer = mpc.explorers.EpsilonExplorer(audit, group="a")
    _ = explorer.widget
    assert explorer.error == ""
    assert "at a tie" in explorer.controls["tie"].title
