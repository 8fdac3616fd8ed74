"""Where no thread can be started, and where the package that draws pictures is missing."""

from __future__ import annotations

import importlib.util
import re
import sys
import threading

import numpy as np
import pytest
import xarray as xr

import mpc_lab as mpc
from helpers.pairing_logs import small_ranking
from mpc_lab import html
from mpc_lab.explorers import explorer, live_chart
from mpc_lab.pairing import kernels

RULES = ("baseline", "boosted", "calibrated")


@pytest.fixture
def no_threads(monkeypatch):
    """Refuse every thread, as a browser's Python does."""

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    kernels.can_start_threads.cache_clear()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    yield
    monkeypatch.undo()
    kernels.can_start_threads.cache_clear()


@pytest.fixture
def no_drawer(monkeypatch):
    """Take away vl-convert, as where no wheel of it exists."""
    find = importlib.util.find_spec
    without = lambda name, *rest: None if name == "vl_convert" else find(name, *rest)  # noqa: E731
    monkeypatch.setattr(html, "find_spec", without)
    monkeypatch.setitem(sys.modules, "vl_convert", None)


def everything(ranking):
    audit = mpc.audit(ranking, scoring_rules=RULES, progress=False)
    group = ranking.groups[0]
    return {
        "headline": audit.headline,
        "curve": audit.curve,
        "objective": audit.objective,
        "limit": audit.limit(group),
        "rivals": audit.compare(),
    }


def test_where_no_thread_can_be_started_the_numbers_are_the_same(request, monkeypatch):
    # So many rows that other threads would work on them.
    ranking = small_ranking(queries=900, size=12)
    assert ranking.n_rows > kernels.FEW_ROWS
    monkeypatch.setenv("MPC_LAB_THREADS", "2")
    threaded = everything(ranking)
    request.getfixturevalue("no_threads")
    assert kernels.n_threads() == 1
    for name, found in everything(ranking).items():
        xr.testing.assert_identical(found, threaded[name])


def test_where_no_thread_can_be_started_files_are_walked(no_threads, tmp_path):
    ranking = small_ranking(queries=40)
    frame = ranking.to_frame().assign(**{g: ranking.member(g) for g in ranking.groups})
    frame.to_parquet(tmp_path / "log.parquet")
    roles = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
    walked = mpc.audit(
        tmp_path / "log.parquet", **roles, group=list(ranking.groups), progress=False
    )
    there = mpc.audit(ranking, progress=False)
    np.testing.assert_allclose(walked.headline["estimate"], there.headline["estimate"], rtol=1e-10)


def test_an_error_in_a_job_is_raised_where_no_thread_can_be_started(no_threads):
    def fail(rows):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        kernels.interruptible(kernels.FEW_ROWS, fail, 1)


@pytest.mark.long
def test_a_report_without_a_drawer_has_every_chart_and_says_who_draws_it(no_drawer, tmp_path):
    audit = mpc.audit(mpc.datasets.synthetic(400), threshold=0.05, progress=False)
    text = audit.report(tmp_path / "report.html", progress=False).read_text("utf-8")
    charts = re.findall(r'<figure class="chart".*?</figure>', text, re.DOTALL)
    assert len(charts) > 5
    assert all('<div class="static"></div>' in one for one in charts)
    assert all('application/json">{"' in one for one in charts)
    assert "vl-convert-python is not installed" in text
    fetched = re.findall(r'<script src="([^"]+)"', text)
    assert [one.split("/")[-1].split("@")[0] for one in fetched] == [
        "vega",
        "vega-lite",
        "vega-embed",
    ]
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert f" {html.CHART_SERVER};" in policy
    assert len(text) < 1_000_000


def test_a_chart_without_a_drawer_is_saved_as_a_page(no_drawer, tmp_path):
    audit = mpc.audit(mpc.datasets.synthetic(200), threshold=0.05, progress=False)
    chart = mpc.charts.forest(audit)
    for kind in ("svg", "png", "pdf"):
        with pytest.raises(mpc.MpcError, match=r"vl-convert-python must be installed.*\.html"):
            mpc.charts.save(chart, tmp_path / f"a.{kind}")
    page = mpc.charts.save(chart, tmp_path / "a.html").read_text("utf-8")
    assert "vegaEmbed" in page


def test_a_notebook_without_a_drawer_shows_words_and_live_charts(no_drawer):
    audit = mpc.audit(mpc.datasets.synthetic(200), threshold=0.05, progress=False)
    assert "undervalued" in explorer.words_html(audit) or "inconclusive" in explorer.words_html(
        audit
    )
    assert "<img" not in explorer.pictures_html(audit)
    assert live_chart._fetching().startswith("import vegaEmbed from")
    assert "export default" in live_chart._fetching()


@pytest.mark.needs_browser
def test_a_report_without_a_drawer_draws_in_the_page(monkeypatch, chromium_path, tmp_path):
    from playwright.sync_api import sync_playwright

    from helpers.lab_server import CHROMIUM

    library = html.chart_library("globalThis.vegaEmbed = vegaEmbed;")
    audit = mpc.audit(mpc.datasets.synthetic(400), threshold=0.05, progress=False)
    monkeypatch.setattr(html, "find_spec", lambda name: None)
    file = audit.report(tmp_path / "report.html", progress=False)
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=chromium_path, args=CHROMIUM)
        page = browser.new_page()
        # The server's part: the first script brings all three.
        script = {"content_type": "text/javascript"}
        page.route(
            f"{html.CHART_SERVER}/**",
            lambda route: route.fulfill(
                body=library if "/vega@" in route.request.url else "", **script
            ),
        )
        page.goto(file.as_uri())
        figures = page.locator("figure.chart").count()
        page.wait_for_function(f"document.querySelectorAll('figure.drawn').length === {figures}")
        assert page.locator("figure.drawn .live svg").count() >= figures
        browser.close()
