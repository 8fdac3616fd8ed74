"""The notebook view reads like the finding, escapes every name and fetches nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from helpers.handmade import EMPTY, cell
from helpers.hostile import HOSTILE

UNDER = cell(0.0687, 0.0487, 0.0887, "undervalued")
OVER = cell(-0.228, -0.31, -0.146, "overvalued")
VOID = {"br", "circle", "line", "path"}


class Page(HTMLParser):
    """Collect tags and words of a piece of HTML, and hold that its tags are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.words, self.attributes = [], [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data.replace("\u00a0", " "))


def page(audit):
    return Page(audit._repr_html_())


def rows(found):
    return found.tags.count("tr") - found.tags.count("table")


def test_it_starts_with_the_finding(make_audit):
    words = "".join(page(make_audit(cells={"1": UNDER})).words)
    # In the page the name of a column is code.
    first = make_audit(cells={"1": UNDER}).summary().split("\n")[0].replace("`", "")
    # Only the marks of the preflight are above it.
    assert words.index(first) < words.index("▲ undervalued")


def test_the_table_has_a_row_and_a_drawing_for_each_group(make_audit):
    found = page(make_audit(("1", "2", "3"), cells={"1": UNDER, "3": EMPTY}))
    assert rows(found) == 3
    assert found.tags.count("circle") == 2
    for words in ("1", "▲ undervalued", "0.069", "0.049 to 0.089", "– not estimable"):
        assert words in found.words


def test_the_drawing_says_in_words_what_it_shows(make_audit):
    found = page(make_audit(("1",), cells={"1": OVER}))
    assert ("aria-label", "gap −0.228, interval −0.310 to −0.146") in found.attributes


def test_hostile_names_are_text_and_nothing_else(make_audit):
    audit = make_audit(HOSTILE, rules=("baseline", "<img src=x>"), cells={HOSTILE[0]: UNDER})
    audit.attrs["note"] = "<script>alert(2)</script>"
    found = page(audit)
    assert not {"script", "img"} & set(found.tags)
    assert HOSTILE[0] in found.words
    assert "<script>alert(2)</script>" in found.words


def test_nothing_is_fetched_and_nothing_runs(audit):
    html = audit._repr_html_()
    assert not re.search(r"https?:|url\(|@import|<script|javascript:| on\w+=", html)
    assert not {"src", "href"} & {key for key, _ in page(audit).attributes}


def test_many_groups_end_in_a_count(make_audit):
    found = page(make_audit(tuple(map(str, range(2000)))))
    assert rows(found) == 50
    assert any("and 1,950 more groups" in words for words in found.words)


def test_other_rules_are_folded_away(make_audit):
    audit = make_audit(tuple(map(str, range(30))), rules=("baseline", "boosted"))
    found = page(audit)
    assert "Rule 'boosted', matched pairs" in found.words
    assert found.tags.count("details") == 2
    assert rows(found) == 30 + 20


def test_the_settings_are_shown(make_audit):
    found = page(make_audit(attrs={"versions": '{"numpy": "2.4"}', "n_rows": 600}))
    for words in ("cluster", "union", "Quantile(p=0.01)", "numpy: 2.4", "600"):
        assert words in found.words


@pytest.mark.parametrize("cluster", ["query", "union"])
def test_the_last_column_says_what_was_counted(make_audit, cluster):
    found = page(make_audit(settings={"cluster": cluster}))
    wanted = "Effective queries" if cluster == "query" else "Effective clusters"
    assert wanted in found.words


def test_one_very_wide_interval_does_not_flatten_the_others(make_audit):
    wide = cell(-0.2, -300.0, 200.0, "inconclusive", "interval covers 0")
    usual = dict.fromkeys("abcdefgh", UNDER)
    html = make_audit(tuple("abcdefghi"), cells={**usual, "i": wide})._repr_html_()
    lengths = re.findall(r'<line x1="([\d.]+)%" x2="([\d.]+)%" y1="9"', html)
    assert float(lengths[0][1]) - float(lengths[0][0]) > 9
    assert html.count("<path") == 2


@pytest.mark.parametrize("value", [0.0, np.inf])
def test_odd_intervals_are_drawn(make_audit, value):
    found = page(make_audit(("1",), cells={"1": cell(0.0, -value, value, "inconclusive")}))
    assert found.tags.count("circle") == 1
    assert not any("nan" in str(text) for _, text in found.attributes)


def test_gaps_of_a_column_have_the_same_decimals(make_audit):
    wide, narrow = cell(0.3, 0.1, 0.5, "undervalued"), cell(0.02, 0.011, 0.029, "undervalued")
    found = page(make_audit(("1", "2"), cells={"1": wide, "2": narrow}))
    assert {"0.3000", "0.0200"} < set(found.words)
    assert {"0.1000 to 0.5000", "0.0110 to 0.0290"} < set(found.words)


def test_the_largest_finding_leads_alone(make_audit):
    html = make_audit(("1", "2"), cells={"1": UNDER, "2": OVER})._repr_html_()
    (lead,) = re.findall(r'<p class="mpc-finding"[^>]*>(.*?)</p>', html)
    assert lead.startswith("Group &#x27;2&#x27; is overvalued")
