"""ε moves in pages that have no kernel: a report, and a notebook that was exported."""

from __future__ import annotations

import pytest

from helpers.exporting import export
from helpers.notebook_page import SLOW, write_notebook

pytestmark = pytest.mark.needs_browser

RAIL = ".rail input:visible"
SAID = ".rail output:visible"
MOVED = "() => [...document.querySelectorAll('figure[data-moved]')].length > 0"
# The ring that a step of ε draws in the row of a group, and how strong the verdict's own mark is.
RINGS = """() => document.querySelectorAll(
  'figure.drawn .live svg .mark-symbol path[stroke="#7d5fc7"]').length"""


@pytest.fixture(scope="module")
def report(small, tmp_path_factory):
    path = tmp_path_factory.mktemp("reports") / "report.html"
    small.report(path, progress=False)
    return path.as_uri()


@pytest.fixture
def opened(report, pages):
    """Return a function that opens the report at a fragment."""

    def at(fragment=""):
        page = pages.open(width=1280)
        page.goto(report + fragment)
        page.wait_for_selector("figure.drawn .rail", timeout=SLOW)
        return page

    return at


def test_keys_on_the_rail_of_a_report_move_every_gap_and_say_the_pairs(opened, small):
    page = opened()
    assert page.evaluate(RINGS) == 0
    assert page.locator(SAID).inner_text().startswith("every verdict at its own ε")
    page.locator(RAIL).press("Home")
    page.wait_for_function(f"() => ({RINGS})() >= {len(small.groups)}")
    first = small.curve.isel(epsilon=0).sel(scoring_rule="baseline", pairing_mode="matched")
    least, most = int(first["n_pairs"].min()), int(first["n_pairs"].max())
    wanted = f"{least:,} to {most:,} pairs a group"
    assert page.locator(SAID).inner_text().endswith(wanted)
    assert page.locator(RAIL).get_attribute("aria-valuetext").endswith(wanted)
    page.locator(RAIL).press("Escape")
    page.wait_for_function(f"() => ({RINGS})() === 0")


def test_a_drag_along_a_curve_moves_the_rail(opened):
    page = opened()
    curve = page.locator(".live:visible svg .curves path, .live:visible svg .mark-area path").first
    curve.scroll_into_view_if_needed()
    box = curve.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    page.wait_for_function("() => location.hash.startsWith('#epsilon=')")
    assert page.locator(SAID).inner_text().startswith("ε ")


def test_the_address_of_a_report_keeps_group_and_threshold(opened, small):
    page = opened()
    page.locator(RAIL).press("Home")
    page.locator(".live:visible svg .mark-rect path").first.click(force=True)
    page.wait_for_function("() => /^#group=.*&epsilon=/.test(location.hash)")
    fragment, said = page.evaluate("() => location.hash"), page.locator(SAID).inner_text()
    other = opened(fragment)
    other.wait_for_function(MOVED)
    assert other.locator(SAID).inner_text() == said
    assert any(name in said for name in small.groups)


@pytest.mark.parametrize("fragment", ["#curves", "#group=nobody&epsilon=2", "#epsilon=x", "#=&=%"])
def test_an_address_of_a_report_that_names_no_state_shows_the_verdicts(opened, fragment):
    page = opened(fragment)
    assert page.locator(SAID).inner_text().startswith("every verdict at its own ε")
    assert page.evaluate(RINGS) == 0


# An audit that is long, for a bar that shows at once.
LONG = """
import mpc_lab as mpc
import mpc_lab.engines.running as running
running._SECONDS_BEFORE_IT_SHOWS = 0
audit = mpc.audit("log.parquet", query="query", item="item", score="score", outcome="outcome",
                  group="group", progress=True)
"""


@pytest.fixture(scope="module")
def exported(server):
    """Return a notebook that was run and exported: an audit with a bar, and two explorers."""
    cells = (LONG, "audit.explore(live=True)", "audit.explore(live=True)")
    path = write_notebook(server.root / "exported.ipynb", *cells)
    return export(path, path.parent, execute=True)


def test_an_exported_notebook_moves_each_picture_alone(exported, pages):
    page = pages.open()
    page.goto(exported.as_uri())
    page.wait_for_function("() => document.querySelectorAll('figure.drawn .rail').length === 2")
    page.locator(RAIL).first.press("Home")
    page.wait_for_function(MOVED)
    first, second = page.locator(SAID).all_inner_texts()
    assert first.startswith("ε ")
    assert second.startswith("every verdict at its own ε")
    assert page.evaluate("() => location.hash") == ""
    assert page.locator(".mpc-static img:visible").count() == 0
    # Narrow, it is not shrunk to words that cannot be read.
    page.set_viewport_size({"width": 700, "height": 900})
    drawing = page.locator(".mpc-static figure.drawn .live svg").first
    assert drawing.bounding_box()["width"] == 760


def test_a_bar_of_progress_leaves_nothing_in_an_export(exported):
    text = exported.read_text("utf-8")
    assert "<progress" not in text
    assert "counting pairs" not in text
    assert "block/s" not in text
