"""The tab of rival measures: numbers, words, and the tiles of all groups."""

from __future__ import annotations

import re

import numpy as np
import pytest
import traitlets
import xarray as xr

from helpers.explorer_audits import example_audit, hostile_audit, small_audit, without_rows
from helpers.hostile import HOSTILE
from mpc_lab.explorers.rivals import RivalsExplorer, measures_html, said
from mpc_lab.explorers.tiles import Matrix, column_order, row_order


@pytest.fixture
def explorer():
    made = RivalsExplorer(example_audit(), group="1")
    _ = made.widget
    return made


def test_the_measures_of_the_group_are_handed_back(explorer):
    wanted = example_audit().compare(["1"], 10).sel(group="1")
    xr.testing.assert_identical(explorer.selection, wanted)


def test_the_reading_says_why_they_disagree(explorer):
    assert explorer.controls["sentence"].text == explorer.selection["explanation"].item()
    explorer.group = "2"
    assert "'2'" in explorer.controls["sentence"].text
    assert "'2'" in explorer.controls["chart"].title


def test_another_k_is_measured_again(explorer):
    explorer.k = 3
    assert "skew@3" in explorer.selection["measure"].values.tolist()
    assert explorer.controls["k"].value == 3


def test_the_threshold_does_not_measure_again(explorer):
    before = explorer.drawn
    explorer.epsilon = explorer.state.epsilons[0]
    assert explorer.drawn == before


def test_a_group_is_measured_once(explorer, monkeypatch):
    explorer.group = "2"
    monkeypatch.setattr(type(explorer.audit), "compare", None)
    explorer.group = "1"
    assert explorer.error == ""


def test_there_is_a_tile_for_every_group_and_measure_with_its_words():
    found = small_audit().compare()
    tiles = re.findall(r'class="mpc-tile [^>]*aria-label="([^"]+)"', Matrix(found).html("a"))
    assert len(tiles) == found.sizes["group"] * found.sizes["measure"]
    word = said(found.sel(group="b", measure="calibration_gap"))[2:]
    assert f"calibration gap of group &#x27;b&#x27;: {word}" in tiles


def test_long_names_of_tiles_keep_what_they_differ_in_and_many_are_said_to_be_there():
    found = small_audit().compare()
    names = [f"A long name of a seller of goods, branch {k} of all" for k in range(20)]
    parts = [
        found.isel(group=[k % found.sizes["group"]]).assign_coords(group=[name])
        for k, name in enumerate(names)
    ]
    page = Matrix(xr.concat(parts, "group")).html(names[0])
    shown = re.findall(r'class="mpc-tile-group".*?<bdi>(.*?)</bdi>', page)
    assert len(set(shown)) == 20
    assert max(map(len, shown)) <= 24
    assert "Scroll to all 20 groups." in page


def test_one_tile_is_reached_by_tab_and_the_others_by_arrow_keys():
    html = Matrix(small_audit().compare()).html("a")
    assert html.count('tabindex="0"') == 1
    assert 'data-grid="true"' in html


def test_groups_with_the_same_flags_are_neighbours_and_undervalued_ones_come_first():
    told = np.array([[-1, -1, 0], [1, 1, 0], [-1, -1, 0], [1, 1, 0], [0, 0, 0]], dtype=float)
    order = row_order(told).tolist()
    assert [told[k, 0] for k in order] == [1, 1, 0, -1, -1]


def test_mpc_is_the_first_measure_and_those_that_agree_with_it_follow():
    told = np.array([[0, 1, 0, 1, 1], [0, -1, 0, 1, -1], [0, 1, 0, -1, 1]], dtype=float)
    assert column_order(told, 4).tolist()[0] == 4
    assert column_order(told, 4).tolist()[1] == 1
    assert {*column_order(told, 4).tolist()[-2:]} in ({0, 2}, {2, 3}, {0, 3})


def test_a_tile_opens_its_sentence_and_closes_it(explorer):
    place = explorer.matrix.press("2", "calibration_gap")
    tiles = explorer.controls["tiles"]
    tiles.pressed = [place, 1]
    assert explorer.tile == ("2", "calibration_gap")
    words = explorer.controls["tile"].text
    assert "calibration gap" in words
    assert "group '2'" in words
    assert tiles.value.count('aria-pressed="true"') == 1
    tiles.pressed = [place, 2]
    assert explorer.tile == ()


def test_the_name_of_a_row_chooses_its_group_for_all_tabs(explorer):
    explorer.controls["tiles"].pressed = [explorer.matrix.press("2"), 1]
    assert explorer.state.group == "2"
    assert explorer.controls["tiles"].value.count('aria-current="true"') == 1


def test_a_tile_of_another_k_is_closed(explorer):
    explorer.tile = ("1", "skew@10")
    explorer.k = 3
    assert explorer.tile == ()


def test_a_tile_that_is_not_there_is_refused(explorer):
    with pytest.raises(traitlets.TraitError, match="must be a group and a measure"):
        explorer.tile = ("1", "calibration gab")


def test_a_verdict_is_said_with_sign_and_word():
    found = example_audit().compare(["1"]).sel(group="1")
    words = {m: said(found.sel(measure=m)) for m in found["measure"].values.tolist()}
    flagged = found["flagged"].values
    assert [w[0] in "▲▼◆" for w in words.values()] == flagged.tolist()
    assert {w for w in words.values() if w[0] == "●"} <= {"● not flagged"}
    assert words["ndkl"] == "– cannot tell"


def test_names_are_text_in_both_tables():
    audit = hostile_audit()
    explorer = RivalsExplorer(audit, group=HOSTILE[0])
    _ = explorer.widget
    assert explorer.error == ""
    html = explorer.controls["tiles"].value + measures_html(explorer.selection)
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_an_audit_without_rows_says_how_to_give_them():
    explorer = RivalsExplorer(without_rows(example_audit()))
    _ = explorer.widget
    assert "mpc.load" in explorer.error
