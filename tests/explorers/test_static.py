"""The static form stands on its own: no script, nothing fetched, every name shown as text."""

from __future__ import annotations

import base64
import re
import subprocess
import sys

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.explorers.static import pictures_html, static_html, strongest, words_html

COLUMNS = {name: name for name in ("query", "item", "score", "outcome", "group")}
FETCHES = re.compile(r"""(?:src|href)\s*=\s*(?!["']data:)|url\(|@import|<script""", re.IGNORECASE)


@pytest.fixture(scope="module")
def audit():
    return mpc.audit(mpc.datasets.synthetic(queries=20_000), threshold=0.02, progress=False)


@pytest.fixture(scope="module")
def hostile():
    """Return an audit whose groups have names that a page could obey."""
    names = ["</script><script>alert(1)</script>", "a'b\"c&d", "😀 עברית"]
    draw = np.random.default_rng(0)
    score = draw.uniform(size=1800)
    rows = {
        "query": np.repeat(np.arange(150), 12),
        "item": np.arange(1800),
        "score": score,
        "outcome": (draw.uniform(size=1800) < score).astype(float),
        "group": np.array(names, dtype=object)[draw.integers(0, 3, 1800)],
    }
    return mpc.audit(rows, **COLUMNS, threshold=0.2, progress=False)


def images(html):
    found = re.findall(r'<img alt="([^"]*)"[^>]*src="data:image/svg\+xml;base64,([^"]*)">', html)
    return [(words, base64.b64decode(inside).decode()) for words, inside in found]


def test_words_and_table_come_before_the_pictures(audit):
    html = static_html(audit)
    assert html == words_html(audit) + pictures_html(audit)
    assert html.index("mpc-finding") < html.index("<table") < html.index("<img")


def test_the_pictures_are_the_forest_and_the_curve_of_the_strongest_group(audit):
    (forest_words, _), (curve_words, curve) = images(static_html(audit))
    assert "is undervalued" in forest_words
    assert f"Group &#x27;{strongest(audit)}&#x27;" in curve_words
    assert "largest gap in scores" in curve


def test_nothing_is_fetched_and_nothing_runs(audit):
    html = static_html(audit)
    assert not FETCHES.search(html)
    assert not any(FETCHES.search(drawn) for _, drawn in images(html))


def test_a_name_that_is_markup_stays_text(hostile):
    html = static_html(hostile)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert not any("<script" in drawn for _, drawn in images(html))


def test_an_audit_without_a_pair_has_no_curve():
    rows = {"query": [1, 1, 2, 2], "item": [1, 2, 3, 4], "score": [0.0, 9.0, 0.0, 9.0]}
    rows |= {"outcome": [1.0, 0.0, 0.0, 1.0], "group": ["a", "b", "a", "b"]}
    nothing = mpc.audit(rows, **COLUMNS, threshold=0.1, progress=False)
    assert strongest(nothing) is None
    assert len(images(pictures_html(nothing))) == 1


@pytest.mark.parametrize(
    ("made", "absent"), [("static_html", "statsmodels"), ("words_html", "vl_convert")]
)
def test_the_static_form_does_not_wait_for_what_it_does_not_need(audit, tmp_path, made, absent):
    audit.save(tmp_path / "a.nc")
    code = (
        "import sys, mpc_lab as mpc; from mpc_lab.explorers import static; "
        "getattr(static, sys.argv[1])(mpc.load(sys.argv[2])); assert sys.argv[3] not in sys.modules"
    )
    command = [sys.executable, "-c", code, made, str(tmp_path / "a.nc"), absent]
    subprocess.run(command, check=True)


def test_the_pictures_make_the_one_curve_they_show():
    rules = ["baseline", "boosted"]
    ranking = mpc.datasets.synthetic(queries=300)
    audit = mpc.audit(ranking, scoring_rules=rules, threshold=0.05, progress=False)
    assert len(images(pictures_html(audit))) == 2
    assert "curve" not in vars(audit)
