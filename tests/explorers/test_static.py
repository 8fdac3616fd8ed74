"""The static form needs nothing else: no script, nothing fetched, every name shown as text."""

from __future__ import annotations

import base64
import json
import re

import pytest

import mpc_lab as mpc
from helpers.explorer_audits import hostile_audit
from mpc_lab.explorers.explorer import pictures_html, words_html

COLUMNS = {name: name for name in ("query", "item", "score", "outcome", "group")}
FETCHES = re.compile(
    r"""(?:src|href)\s*=\s*(?!["']data:)|url\((?!#)|@import|<script""", re.IGNORECASE
)


@pytest.fixture(scope="module")
def audit():
    return mpc.audit(mpc.datasets.synthetic(queries=4000), threshold=0.05, progress=False)


@pytest.fixture(scope="module")
def html(audit):
    """Return the static form as it is shown: words and table, then the pictures."""
    return words_html(audit) + pictures_html(audit)


def images(html):
    found = re.findall(r'<img alt="([^"]*)"[^>]*src="data:image/svg\+xml;base64,([^"]*)">', html)
    return [(words, base64.b64decode(inside).decode()) for words, inside in found]


def test_words_and_table_come_before_the_pictures(html):
    assert html.index("mpc-finding") < html.index("<table") < html.index("<img")


def test_the_picture_is_the_overview(html):
    ((words, drawn),) = images(html)
    assert "is undervalued" in words
    assert "the same gap at every ε" in drawn


def test_nothing_is_fetched_and_nothing_runs(html):
    assert not FETCHES.search(html)
    assert not any(FETCHES.search(drawn) for _, drawn in images(html))


def test_a_name_that_is_markup_stays_text():
    hostile = hostile_audit()
    html = words_html(hostile) + pictures_html(hostile)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert not any("<script" in drawn for _, drawn in images(html))


def test_an_audit_without_a_pair_has_its_picture_too():
    rows = {"query": [1, 1, 2, 2], "item": [1, 2, 3, 4], "score": [0.0, 9.0, 0.0, 9.0]}
    rows |= {"outcome": [1.0, 0.0, 0.0, 1.0], "group": ["a", "b", "a", "b"]}
    nothing = mpc.audit(rows, **COLUMNS, threshold=0.1, progress=False)
    assert len(images(pictures_html(nothing))) == 1


def test_a_picture_whose_threshold_moves_holds_names_as_data_and_fetches_nothing():
    html = pictures_html(hostile_audit(), live=True)
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", html, re.DOTALL)
    assert len(scripts) == 4  # what is drawn, what the rail says, the library, and its start
    outside = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not FETCHES.search(outside)
    told = json.loads(scripts[1])
    assert set(told["names"]) == set(hostile_audit().groups)
    assert "<script>" not in scripts[0] + scripts[1]


def test_the_library_comes_only_where_it_was_asked_for(audit):
    assert "<script" not in pictures_html(audit)
    assert audit.explore()._exports_live is False
    with pytest.raises(mpc.MpcError, match="live must be True or False"):
        audit.explore(live="yes")
