"""The tab of pairs: which rows it shows, what its filters leave, and the list of a chosen pair."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import traitlets

import mpc_lab as mpc
from helpers.explorer_audits import bare_audit, example_audit, hostile_audit, without_rows
from helpers.hostile import COLUMNS, HOSTILE, log
from mpc_lab.explorers import pairs as tab
from mpc_lab.explorers.controls import real_minus
from mpc_lab.explorers.duel import digits_apart, duel_html
from mpc_lab.explorers.pairs import (
    GROUP_ITEM,
    OTHER_ITEM,
    PairBook,
    PairsExplorer,
    around_pair,
    count_words,
)


@pytest.fixture
def explorer():
    return PairsExplorer(example_audit(), group="1", epsilon=0.05)


@pytest.mark.parametrize("mode", ["matched", "mirrored", "adjacent"])
def test_the_book_holds_the_pairs_of_the_audit(mode):
    audit = example_audit()
    book = PairBook(audit, "1", "baseline", mode, 0.03)
    pairs = audit.pairs("1", pairing_mode=mode, epsilon=0.03)
    pd.testing.assert_frame_equal(book.frame(book.find()), pairs)
    assert book.total == book.searched == len(pairs)


def test_pairs_under_another_rule_have_its_scores():
    audit = example_audit()
    rule = audit.headline["scoring_rule"].values[1]
    book = PairBook(audit, "1", rule, "matched", 0.02)
    pd.testing.assert_frame_equal(book.frame(book.find()), audit.pairs("1", rule, epsilon=0.02))


@pytest.mark.parametrize("mode", ["matched", "mirrored"])
def test_with_too_many_pairs_the_closest_are_listed(monkeypatch, mode):
    monkeypatch.setattr(tab, "MOST_SEARCHED", 50)
    book = PairBook(example_audit(), "1", "baseline", mode, 0.05)
    every = example_audit().pairs("1", pairing_mode=mode, epsilon=0.05)
    assert (book.searched, book.total) == (50, len(every))
    np.testing.assert_array_equal(book.distance, every["distance"][:50])


def test_a_range_of_gaps_keeps_the_pairs_inside_it(explorer):
    explorer.distance_low, explorer.distance_high = 0.01, 0.02
    every = example_audit().pairs("1", epsilon=0.05)
    wanted = every[every["distance"].between(0.01, 0.02)].reset_index(drop=True)
    pd.testing.assert_frame_equal(explorer.shown, wanted[: tab.MOST_SHOWN])
    assert explorer.found == len(wanted)


def test_a_query_is_found_by_a_part_of_its_name():
    frame = {
        **log(["a", "b"], queries=150),
        "query": np.repeat([f"Query {k}" for k in range(150)], 12),
    }
    explorer = PairsExplorer(mpc.audit(frame, **COLUMNS, threshold=0.1, progress=False))
    explorer.query_text = "  qUERY 149 "
    assert set(explorer.shown["query"]) == {"Query 149"}
    explorer.query_text = "nowhere"
    assert explorer.shown.empty
    assert explorer.found == 0


def test_queries_of_several_columns_are_found_by_any_of_them():
    frame = {**log(["a", "b"], queries=150), "day": ["monday"] * 1800}
    columns = {**COLUMNS, "query": ["query", "day"]}
    explorer = PairsExplorer(mpc.audit(frame, **columns, threshold=0.1, progress=False))
    explorer.query_text = "12, monday"
    assert {query[0] % 100 for query in explorer.shown["query"]} == {12}


def test_no_more_than_a_thousand_pairs_are_shown(explorer, monkeypatch):
    monkeypatch.setattr(tab, "MOST_SHOWN", 7)
    assert len(explorer.shown) == 7
    assert explorer.found > 7


def test_the_words_say_how_many_pairs_there_are():
    class Book:
        total = searched = 23_412

    words = "Showing 1,000 of 23,412 pairs, those with the closest scores."
    assert count_words(23_412, 1_000, Book) == words
    assert count_words(12, 12, Book) == "Showing 12 of 23,412 pairs."
    assert count_words(0, 0, Book) == "None of 23,412 pairs passes the filters."
    Book.searched = 20_000
    assert "only the closest 20,000 of 23,412 pairs" in count_words(20_000, 1_000, Book)


def test_a_chosen_pair_is_handed_back_as_a_frame(explorer):
    assert explorer.selection.empty
    explorer.pair = 3
    wanted = example_audit().pairs("1", epsilon=0.05).iloc[[3]]
    pd.testing.assert_frame_equal(explorer.selection, wanted)


def test_the_list_of_a_pair_has_its_two_items_marked(explorer):
    explorer.pair = 5
    ranked, pair = explorer.ranked_list, explorer.selection.iloc[0]
    marked = ranked.set_index("pair")
    assert marked.loc[GROUP_ITEM, "item"] == pair["item"]
    assert marked.loc[OTHER_ITEM, "item"] == pair["other_item"]
    assert marked.loc[GROUP_ITEM, "position"] == pair["position"]
    assert bool(marked.loc[GROUP_ITEM, "in_group"])
    assert not bool(marked.loc[OTHER_ITEM, "in_group"])
    frame = example_audit().ranking.to_frame()
    rows = frame[frame["query"] == pair["query"]].sort_values("score", ascending=False)
    assert ranked["item"].tolist() == rows["item"].tolist()


def test_a_logged_position_orders_the_list():
    frame = log(["a", "b"], queries=20)
    frame["position"] = np.tile(np.arange(12, 0, -1), 20)
    audit = mpc.audit(frame, **COLUMNS, position="position", threshold=0.5, progress=False)
    explorer = PairsExplorer(audit)
    explorer.pair = 0
    assert explorer.ranked_list["position"].tolist() == list(range(1, 13))


def test_a_long_list_shows_the_places_around_both_items():
    marks = [""] * 1000
    marks[99], marks[700] = GROUP_ITEM, OTHER_ITEM
    parts = around_pair(pd.DataFrame({"position": range(1, 1001), "pair": marks}), around=3)
    assert [part["position"].tolist() for part in parts] == [
        list(range(97, 104)),
        list(range(698, 705)),
    ]


def test_another_cell_forgets_the_chosen_pair(explorer):
    explorer.pair = 2
    explorer.group = "2"
    assert explorer.shown["distance"].is_monotonic_increasing
    assert explorer.pair == -1


def test_a_pair_that_is_not_shown_cannot_be_chosen(explorer):
    with pytest.raises(traitlets.TraitError, match=r"one of the [\d,]+ rows shown, or -1"):
        explorer.pair = 10**6


def test_a_row_of_the_table_chooses_its_pair_and_the_buttons_step(explorer):
    _ = explorer.widget
    explorer.controls["table"].selected_rows = [4]
    assert explorer.pair == 4
    explorer.controls["next"].click()
    assert (explorer.pair, explorer.controls["table"].selected_rows) == (5, [5])
    explorer.controls["previous"].click()
    assert explorer.pair == 4
    assert explorer.error == ""


def test_a_pair_is_a_duel_that_the_arrow_keys_walk_through(explorer):
    _ = explorer.widget
    duel = explorer.controls["duel"]
    first = explorer.shown.iloc[0]
    assert f"<bdi>{first['item']}</bdi>" in duel.value
    assert explorer.pair == -1  # shown, but not chosen
    duel.pressed = ["next", 1]
    assert explorer.pair == 1
    assert f"<bdi>{explorer.selection['other_item'].iloc[0]}</bdi>" in duel.value
    duel.pressed = ["previous", 2]
    assert explorer.pair == 0


def test_the_strip_has_the_mean_that_is_the_gap(explorer):
    _ = explorer.widget
    cell = (explorer.group, explorer.scoring_rule, explorer.pairing_mode)
    pairs = example_audit().pairs(*cell, epsilon=explorer.epsilon)
    assert explorer.book.differences.mean() == pytest.approx(pairs["difference"].mean())
    said = explorer.controls["strip"].value
    higher = int((pairs["difference"] > 0).sum())
    assert f"higher for the item of the group in {higher:,}" in said


def test_the_items_of_a_duel_are_called_by_the_column_that_says_so():
    frame = log(["a", "b"], queries=30)
    frame["title"] = np.array([f"Title {k}" for k in range(len(frame["query"]))])
    audit = mpc.audit(frame, **COLUMNS, threshold=0.5, progress=False)
    explorer = PairsExplorer(audit, label="title")
    _ = explorer.widget
    assert explorer.controls["duel"].value.count("<bdi>Title ") == 2
    with pytest.raises(mpc.MpcError, match="tite"):
        PairsExplorer(audit, label="tite")


def test_titles_that_the_audit_knows_name_items_in_duel_list_and_table():
    frame = log(["a", "b"], queries=30)
    frame["title"] = np.array([f"Title {item}" for item in frame["item"]])
    audit = mpc.audit(frame, **COLUMNS, label="title", threshold=0.5, progress=False)
    explorer = PairsExplorer(audit)
    _ = explorer.widget
    assert explorer.controls["duel"].value.count("<bdi>Title ") == 2
    assert explorer.controls["ranked_list"].value.count("<bdi>Title ") > 1
    assert tab._for_table(explorer.shown)["item"].str.startswith("Title ").all()
    group = explorer.group
    wanted = audit.pairs(group, epsilon=explorer.epsilon, limit=20)
    pd.testing.assert_frame_equal(explorer.shown[:20], wanted)


def test_a_range_that_was_picked_on_the_curve_is_kept_to():
    explorer = PairsExplorer(example_audit(), group="1", epsilon=0.05)
    explorer.state.brush = (0.01, 0.02)
    assert explorer.shown["distance"].between(0.01, 0.02).all()
    explorer.state.brush = ()
    assert explorer.distance_low == 0


def test_negative_numbers_of_a_table_have_a_real_minus_and_one_number_of_decimals():
    shown = pd.DataFrame(
        {"place": [1, 2], "whole": [-1, 0], "part": [-0.25, 0.5], "name": ["-", ""]}
    )
    written = {one["targets"]: one["render"] for one in real_minus(shown)}
    assert sorted(written) == [1, 2]
    assert ".toFixed(0)" in written[1]
    assert ".toFixed(2)" in written[2]
    assert all("\u2212" in render for render in written.values())


def test_scores_show_the_digit_in_which_they_differ():
    assert digits_apart(0.12341, 0.12342) == 5
    assert digits_apart(3.0, 4.0) == 1
    # Not 0.0745 and 0.0747, which are twice as far apart.
    assert digits_apart(0.07455, 0.07466) == 5
    assert digits_apart(0.5, 0.5) == 4


def test_the_distance_of_two_close_scores_has_plain_digits():
    pair = pd.Series({"score": 0.93371, "other_score": 0.9337606, "outcome": 1, "other_outcome": 0})
    pair["position"], pair["other_position"] = 3, 2
    assert "0.000051 apart" in duel_html(pair, "g", ("a", "b"), "clicks")


def test_a_long_name_of_a_group_leaves_the_ranked_list_its_room():
    name = "a long name of a group " * 3
    explorer = PairsExplorer(mpc.audit(log([name, "b"], queries=30), **COLUMNS, threshold=0.5))
    _ = explorer.widget
    explorer.group = next(group for group in explorer.groups if group != "b")
    caption, _, rows = explorer.controls["ranked_list"].value.partition("</caption>")
    assert "around a pair of group &#x27;a long name" in caption
    assert "◀ item of the group<" in rows
    assert "a long name" not in rows


def test_a_chosen_pair_survives_another_drawing(explorer):
    explorer.pair = 3
    explorer.redraw()
    explorer.redraw()
    assert (explorer.pair, explorer.controls["table"].selected_rows) == (3, [3])


def test_the_slider_follows_the_threshold_and_bounds_nothing_at_its_end(explorer):
    _ = explorer.widget
    assert explorer.controls["distance"].value == (0.0, 0.05)
    explorer.controls["distance"].value = (0.01, 0.05)
    assert (explorer.distance_low, explorer.distance_high) == (0.01, math.inf)
    explorer.epsilon = explorer.state.epsilons[-1]
    assert explorer.controls["distance"].value == (0.01, pytest.approx(explorer.epsilon))


def test_names_from_data_are_text_in_the_list_and_the_table():
    frame = log(HOSTILE, queries=150)
    frame["item"] = np.array([f"<img src=x onerror=alert({k})>" for k in frame["item"]])
    frame["query"] = np.repeat([f"<b>q{k}</b>" for k in range(150)], 12)
    audit = mpc.audit(frame, **COLUMNS, threshold=0.2, progress=False)
    explorer = PairsExplorer(audit, group=HOSTILE[0])
    _ = explorer.widget
    explorer.pair = 0
    html = explorer.controls["ranked_list"].value
    assert "<img" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    assert "<img" not in str(explorer.controls["table"]._dt_args)


def test_a_table_names_its_options_with_every_change(explorer):
    _ = explorer.widget
    before = {**explorer.controls["table"]._dt_args, "data_json": "", "columnDefs": ""}
    explorer.distance_high = 0.02
    after = {**explorer.controls["table"]._dt_args, "data_json": "", "columnDefs": ""}
    assert {**before, "filtered_row_count": 0} == {**after, "filtered_row_count": 0}


def test_an_audit_without_rows_says_how_to_give_them():
    explorer = PairsExplorer(without_rows(example_audit()))
    _ = explorer.widget
    assert "mpc.load" in explorer.error


def test_a_group_without_pairs_says_so():
    explorer = PairsExplorer(bare_audit(), group="rare")
    _ = explorer.widget
    assert explorer.error == ""
    assert explorer.controls["count"].text.startswith("There is no pair")
    assert explorer.controls["distance"].disabled
    assert explorer.selection.empty


def test_without_pairs_no_numbers_are_shown_on_a_slider():
    explorer = PairsExplorer(bare_audit(), group="rare")
    _ = explorer.widget
    assert explorer.controls["distance"].layout.display == "none"
    assert explorer.controls["query_text"].disabled
    assert explorer.controls["note"].text == "There are no pairs to filter."
    explorer.group = "common"
    assert not explorer.controls["distance"].layout.display
    assert not explorer.controls["query_text"].disabled
    assert explorer.controls["distance"].value == (0.0, pytest.approx(explorer.epsilon))
    assert explorer.controls["note"].text == ""


def test_with_ties_alone_the_note_says_that_every_pair_is_a_tie():
    frame = log(["a", "b"])
    frame["score"] = np.round(frame["score"], 1)
    explorer = PairsExplorer(mpc.audit(frame, **COLUMNS, threshold=0.0, progress=False))
    _ = explorer.widget
    assert explorer.epsilon == 0
    assert explorer.controls["note"].text == "Score distance: every pair is a tie."


def test_hostile_groups_can_be_looked_at():
    explorer = PairsExplorer(hostile_audit(), group=HOSTILE[0])
    _ = explorer.widget
    explorer.pair = 0
    assert explorer.error == ""


def test_the_heaviest_query_and_item_are_named_once_a_cell(explorer, monkeypatch):
    _ = explorer.widget
    said = explorer.controls["heaviest"].text.splitlines()
    audit = example_audit()
    for line, by in zip(said, ("query", "item"), strict=True):
        first = audit.drivers("1", by, limit=1)
        assert f"changes most without {by} {first['driver'].item()}" in line.replace("'", "")
    monkeypatch.setattr(tab, "heaviest", None)
    explorer.distance_high = 0.01
    assert (explorer.error, explorer.controls["heaviest"].text.splitlines()) == ("", said)


def test_a_cell_without_pairs_has_no_heaviest_query():
    explorer = PairsExplorer(bare_audit(), group="rare")
    _ = explorer.widget
    assert explorer.error == ""
