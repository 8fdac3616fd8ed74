"""A report in a browser: it draws, runs nothing of the data, and asks nothing of the network."""

from __future__ import annotations

import base64
import contextlib

import numpy as np
import pytest

from helpers.lab_server import CHROMIUM

pytestmark = pytest.mark.needs_browser

# What vega-lite says about legends of its own, which is no fault of the page.
HARMLESS = ("Conflicting legend property",)


@pytest.fixture(scope="module")
def browser(chromium_path):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        started = tools.chromium.launch(executable_path=chromium_path, args=CHROMIUM)
        yield started
        started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Return a function that opens a page, and what happened there."""
    with contextlib.ExitStack() as pages:

        def open_(text, **options):
            file = tmp_path / "report.html"
            file.write_text(text, "utf-8")
            view = browser.new_context(**options)
            pages.callback(view.close)
            page = view.new_page()
            seen = {"requests": [], "messages": [], "dialogs": []}
            page.on("request", lambda request: seen["requests"].append(request.url))
            page.on("console", lambda message: seen["messages"].append(message.text))
            page.on("pageerror", lambda error: seen["messages"].append(str(error)))
            page.on("dialog", lambda dialog: (seen["dialogs"].append(1), dialog.dismiss()))
            page.goto(file.as_uri())
            return page, seen

        yield open_


# The overview has a second form, for narrow screens alone.
WIDE = "figure.chart:not(.only-narrow *):not(.only-narrow)"


def drawn(page):
    figures = page.locator("figure.chart").count()
    page.wait_for_function(f"document.querySelectorAll('figure.drawn').length === {figures}")
    return figures


def outside(seen):
    return [url for url in seen["requests"] if not url.startswith(("file:", "data:"))]


def complaints(seen):
    return [text for text in seen["messages"] if not any(word in text for word in HARMLESS)]


def test_hostile_names_run_nothing_and_ask_for_nothing(opened, hostile_text):
    page, seen = opened(hostile_text)
    assert drawn(page) >= 8
    for figure in page.locator(f"{WIDE} .live svg").all()[:3]:
        figure.hover(force=True)
    for folded in page.locator("summary").all():
        folded.click()
    page.wait_for_timeout(300)
    assert page.evaluate("window.obeyed") is None
    assert seen["dialogs"] == []
    assert outside(seen) == []
    # A refusal of the page's own policy would say that a name became code.
    assert complaints(seen) == []
    assert len(hostile_text.encode()) < 5_000_000


def test_a_tooltip_shows_a_hostile_name_as_text(opened, hostile_text):
    page, seen = opened(hostile_text)
    drawn(page)
    page.locator("#forest .live svg .mark-symbol path").first.hover(force=True)
    tip = page.locator("#vg-tooltip-element")
    tip.wait_for(state="visible")
    assert tip.locator("script, img, svg, iframe").count() == 0
    assert page.evaluate("window.obeyed") is None
    assert outside(seen) == []


@pytest.mark.parametrize("width", [1280, 800])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window_in_light_and_dark(opened, text, width, scheme):
    page, seen = opened(text, viewport={"width": width, "height": 900}, color_scheme=scheme)
    drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    lightness = page.evaluate(
        "getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)[0]"
    )
    assert (lightness < 60) == (scheme == "dark")
    assert complaints(seen) == []


REDS = """async (picture) => {
  const bytes = Uint8Array.from(atob(picture), letter => letter.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const { data } = canvas.getImageData(image.width - 4, 0, 1, image.height);
  return Array.from(data).filter((_, place) => place % 4 === 0);
}"""


def right_edge(page, box):
    """Return how dark the right edge of a box is, from 0 for the white of the page."""
    picture = base64.b64encode(box.screenshot()).decode()
    return 255 - float(np.median(page.evaluate(REDS, picture)))


def test_a_table_that_can_be_scrolled_has_a_shade_where_it_goes_on(opened, text):
    page, _ = opened(text, viewport={"width": 500, "height": 900}, color_scheme="light")
    drawn(page)
    wide = page.locator("#verdicts .mpc-wide").first
    assert wide.evaluate("box => box.scrollWidth > box.clientWidth + 20")
    assert right_edge(page, wide) > 20
    wide.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    page.wait_for_timeout(200)
    assert right_edge(page, wide) == 0


def test_no_table_is_cut_on_paper(opened, text):
    # A4 within the margins of the page.
    page, _ = opened(text, viewport={"width": 687, "height": 970}, color_scheme="light")
    drawn(page)
    page.emulate_media(media="print")
    ends = page.evaluate(
        "[...document.querySelectorAll('table')].map(one => one.getBoundingClientRect().right)"
    )
    assert max(ends) <= 687
    assert page.locator(".mpc-wide").first.evaluate(
        "box => getComputedStyle(box).backgroundImage"
    ) == ("none")


def test_without_scripts_and_on_paper_every_chart_is_drawn(opened, text):
    page, _ = opened(text, java_script_enabled=False)
    shown = page.locator(f"{WIDE} .static svg")
    assert shown.count() >= 8
    assert all(one.is_visible() for one in shown.all())
    scripted, _ = opened(text)
    drawn(scripted)
    scripted.emulate_media(media="print")
    assert all(one.is_visible() for one in scripted.locator(f"{WIDE} .static svg").all())
    assert not any(one.is_visible() for one in scripted.locator("figure.chart .live").all())


@pytest.mark.parametrize("media", ["screen", "print"])
def test_no_equation_is_cut(opened, text, media):
    page, _ = opened(text, viewport={"width": 687, "height": 970})
    page.emulate_media(media=media)
    boxes = page.locator(".equation")
    assert boxes.count() >= 8
    assert all(boxes.evaluate_all("all => all.map(one => one.scrollWidth <= one.clientWidth)"))


def test_small_print_is_no_larger_than_the_text_around_it_on_paper(opened, text):
    page, _ = opened(text)
    page.emulate_media(media="print")
    size = "one => parseFloat(getComputedStyle(one).fontSize)"
    assert page.locator("p.soft").first.evaluate(size) < page.locator("body").evaluate(size)


def test_equations_are_drawn_by_the_browser(opened, text):
    page, _ = opened(text)
    heights = page.evaluate(
        "[...document.querySelectorAll('math')].map(m => m.getBoundingClientRect().height)"
    )
    assert len(heights) >= 6
    assert min(heights) > 12
