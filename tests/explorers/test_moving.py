"""The list that a boost sorts again: which query it is of, and what the page is sent."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.explorer_audits import example_audit, hostile_audit
from helpers.hostile import HOSTILE
from mpc_lab.explorers.boost import BoostExplorer
from mpc_lab.explorers.moving import list_rows, list_title, most_moved
from mpc_lab.objective.boosts import Boosts


def made(frame):
    names = {name: name for name in ("query", "score", "outcome", "group")}
    more = {name: name for name in ("item", "label", "position") if name in frame}
    return mpc.Ranking(frame, **names, **more)


def two_queries(**more):
    """Return a log whose second query alone has an item that a boost of 0.15 moves."""
    return made(
        {
            "query": ["q", "q", "r", "r", "r"],
            "score": [0.9, 0.1, 0.6, 0.5, 0.5],
            "outcome": [1.0, 0.0, 0.0, 1.0, 0.0],
            "group": ["b", "a", "b", "a", "b"],
            **more,
        }
    )


def test_the_query_is_shown_in_which_the_boost_moves_most():
    ranking = two_queries()
    code = most_moved(Boosts(ranking, "a"), 0.15)
    assert ranking.query_labels(np.array([code])).tolist() == ["r"]
    assert list_title(ranking, code, 3) == "Ranking of query 'r', 3 items"


def test_a_boost_that_moves_nothing_shows_the_longest_list_with_both_sides():
    assert most_moved(Boosts(two_queries(), "a"), 0.0) == 1


def test_tied_rows_are_sent_in_the_order_of_their_places():
    ranking = two_queries(position=[1, 2, 1, 3, 2])
    rows = list_rows(Boosts(ranking, "a"), 1, None)
    assert [row["inside"] for row in rows] == [False, False, True]
    assert [row["score"] for row in rows] == [0.6, 0.5, 0.5]


def test_items_are_called_by_their_titles():
    items = {"item": list("vwxyz"), "label": [f"Title {k}" for k in range(5)]}
    rows = list_rows(Boosts(two_queries(**items), "a"), 1, None)
    assert [row["name"] for row in rows] == ["Title 2", "Title 3", "Title 4"]


def test_the_page_has_the_whole_list_and_the_curve_its_numbers_follow():
    explorer = BoostExplorer(example_audit(), group="1")
    _ = explorer.widget
    shown, boosted = explorer.controls["list"], explorer._boosted()
    assert explorer.error == ""
    assert len(shown.rows) == len(shown.weights) == boosted.ready.baseline.size[boosted.most_moved]
    assert shown.curve["gap"] == pytest.approx(boosted.curve["estimate"].values.tolist())
    worth = np.array([row["outcome"] for row in shown.rows])
    order = np.argsort([-row["score"] for row in shown.rows], kind="stable")
    dcg = boosted.ready.baseline.dcg[boosted.most_moved]
    assert worth[order] @ shown.weights == pytest.approx(dcg)


def test_a_move_sends_the_list_its_boost_and_measured_numbers_alone():
    explorer = BoostExplorer(example_audit(), group="1")
    _ = explorer.widget
    shown, sent = explorer.controls["list"], []
    shown.observe(lambda change: sent.append(change["name"]))
    explorer.alpha = 0.02
    assert set(sent) == {"alpha", "exact"}
    assert shown.exact[0] == shown.alpha == 0.02


def test_a_list_of_strange_names_is_sent_as_text():
    explorer = BoostExplorer(hostile_audit(), group=HOSTILE[0])
    _ = explorer.widget
    assert explorer.error == ""
    assert "<script>" in explorer.controls["list"].group
