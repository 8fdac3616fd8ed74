"""Where else an explorer shows: Notebook 7, Voila, alone, and where there is no kernel at all."""

from __future__ import annotations

import json
import re
import signal
import time
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest

from helpers.app_server import running_app
from helpers.browser_log import GROUPS, LOAD
from helpers.exporting import export
from helpers.hostile import HOSTILE
from helpers.notebook_page import SLOW, NotebookPage, write_notebook

pytestmark = pytest.mark.needs_browser

PANEL = "explorer = audit.explore()\nexplorer"
# An image that was not loaded has no size of its own.
IMAGES = """() => [...document.querySelectorAll(".mpc-static img")]
  .map((image) => [image.naturalWidth > 0, image.alt])"""
# What Notebook 7 itself does not catch, also on an empty notebook.
NOTEBOOK_7 = (
    "TypeError: Cannot read properties of undefined (reading 'schema')",
    "Error: Command 'filebrowser:open-path' not registered.",
)
SAYS = "Run the cell again"
# What the style sheet writes above a panel.
BEFORE = "(one) => getComputedStyle(one, '::before').content"
_SESSION = "() => window.jupyterapp.shell.currentWidget.sessionContext"
KERNEL = {
    "restart": f"{_SESSION}.session.kernel.restart()",
    "shutdown": f"{_SESSION}.shutdown()",
}
TABS = ("Groups", "Epsilon", "Boost", "Pairs", "Calibration", "Rivals", "Checks")


def test_notebook_7_shows_the_panel(notebook, pages):
    pages.known = NOTEBOOK_7
    opened = notebook(PANEL, app="notebook").live()
    assert opened.drawn() >= 1
    opened.page.get_by_role("tab", name="Epsilon", exact=True).click()
    opened.until("explorer.tabs['Epsilon'].drawn > 0", True)
    assert opened.drawn() >= 1
    assert opened.clipped() == []


def test_every_tab_works_alone(notebook):
    classes = [f"{tab}Explorer" for tab in TABS]
    cells = [
        f"e{k} = mpc.explorers.{name}(audit, group='beta')\ne{k}" for k, name in enumerate(classes)
    ]
    opened = notebook(*cells)
    for k, name in enumerate(classes):
        opened.until(f"e{k}.drawn > 0 and e{k}.error", "", seconds=60)
        own = opened.page.locator(".jp-Cell").nth(k + 1)
        own.scroll_into_view_if_needed()
        own.locator(".mpc-beacon[data-live]").wait_for(state="attached", timeout=SLOW)
        assert own.get_by_label("Group", exact=True).input_value() == "beta", name
        assert own.locator(".mpc-static:visible").count() == 0, name


def test_start_leads_from_a_frame_to_its_explorer(notebook):
    opened = notebook("begun = mpc.explorers.start(ranking.to_frame())\nbegun")
    page = opened.page
    page.get_by_role("button", name="Run the audit").click(timeout=SLOW)
    opened.until(
        "begun.audit is not None and begun.audit.groups", tuple(sorted(GROUPS)), seconds=60
    )
    page.get_by_role("tab", name="Groups", exact=True).wait_for(timeout=SLOW)
    assert opened.drawn() >= 1


def is_named(text, name):
    """Whether a text is a name as it is shown: a long one without its middle or its end."""
    shown = text.replace("\u00a0", " ")
    start, _, end = shown.partition("…")
    is_cut = len(start) > 3 and name.startswith(start) and name.endswith(end)
    return shown == name or ("…" in shown and is_cut)


def test_names_that_a_page_could_obey_show_as_text(notebook):
    load = LOAD.replace("log.parquet", "hostile.parquet").replace(
        'mpc.load("audit.nc", ranking=ranking)', "mpc.audit(ranking, threshold=0.02)"
    )
    opened = notebook(PANEL, load=load).live()
    page = opened.page
    listed = page.get_by_label("Group", exact=True).locator("option").all_text_contents()
    drawn = opened.charts.first.locator("svg text").all_text_contents()
    for name in HOSTILE[:6]:
        assert any(is_named(text, name) for text in listed), name
        assert any(is_named(text, name) for text in drawn), name
    for tab in TABS:
        page.get_by_role("tab", name=tab, exact=True).click()
        opened.until(f"explorer.tabs[{tab!r}].drawn > 0", True, seconds=60)
        opened.until(f"explorer.tabs[{tab!r}].error", "")
        for name in HOSTILE[:2]:
            opened.ask(f"setattr(explorer, 'group', {name!r})")
        opened.until("explorer.group", HOSTILE[1])
        page.wait_for_timeout(300)
        assert page.evaluate("() => window.obeyed") is None, tab
    assert page.locator(".mpc-explorer script, .mpc-explorer img").count() == 0


@pytest.fixture(scope="module")
def saved_panel(shared_pages, server):
    """Run the panel in JupyterLab, save its notebook, leave it, and return the file."""
    path = write_notebook(server.root / "saved.ipynb", LOAD, PANEL)
    page = shared_pages.open()
    NotebookPage(page, server, path).run().live()
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.goto("about:blank")
    return path


def test_in_a_narrow_column_all_numbers_of_the_notebook_view_are_in_sight(notebook):
    page = notebook("audit").page
    box = page.locator(".jp-Cell").nth(1).locator(".mpc-audit .mpc-wide").first
    box.wait_for(timeout=SLOW)
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_timeout(500)
    assert box.evaluate("(one) => one.scrollWidth - one.clientWidth") == 0
    row = box.locator("tbody tr").first
    middles = [
        found.evaluate(
            "(one) => { const b = one.getBoundingClientRect(); return b.y + b.height / 2 }"
        )
        for found in (row.locator("circle"), row)
    ]
    assert abs(middles[0] - middles[1]) < 2


def test_a_saved_notebook_that_is_not_trusted_shows_the_finding(saved_panel, pages, server):
    content = json.loads(saved_panel.read_text("utf-8"))
    # A notebook of somebody else: its signature is not known here, and its kernel is gone.
    content["cells"][0]["source"] = "# another"
    other = saved_panel.with_name("another.ipynb")
    other.write_text(json.dumps(content), "utf-8")
    page = pages.open()
    NotebookPage(page, server, other)
    static = page.locator(".mpc-static").first
    static.wait_for(timeout=SLOW)
    assert "Group 'alpha' is undervalued" in static.inner_text()
    assert static.locator("table").first.is_visible()
    # The sanitiser, which does not know the SVG of a page, was at work.
    assert page.locator(".mpc-static svg").count() == 0
    ((loaded, said),) = page.evaluate(IMAGES)
    assert loaded
    assert "is undervalued" in said


def test_an_export_to_html_shows_the_finding_without_network(saved_panel, pages, tmp_path):
    page = pages.open()
    page.goto(export(saved_panel, tmp_path).as_uri())
    static = page.locator(".mpc-static").first
    assert "Group 'alpha' is undervalued" in static.inner_text()
    assert [loaded for loaded, _ in page.evaluate(IMAGES)] == [True]
    lightness = "() => getComputedStyle(document.querySelector('.mpc-static img')).filter"
    assert page.evaluate(lightness) == "none"
    page.goto(export(saved_panel, tmp_path, theme="dark").as_uri())
    assert "invert(1)" in page.evaluate(lightness)
    # Narrow, it is not shrunk to words that cannot be read.
    page.set_viewport_size({"width": 700, "height": 900})
    assert page.locator(".mpc-static img").evaluate("(one) => one.clientWidth") == 760


@pytest.mark.parametrize("how", ["restart", "shutdown"])
def test_a_panel_whose_kernel_is_gone_dims_and_says_what_to_do(notebook, how):
    opened = notebook(PANEL).live()
    panel = opened.page.locator(".mpc-explorer").first
    assert SAYS not in panel.evaluate(BEFORE)
    opened.page.evaluate(KERNEL[how])
    opened.page.wait_for_function(
        f"() => ({BEFORE})(document.querySelector('.mpc-explorer')).includes({SAYS!r})"
    )
    # Said once, and dimmed once: no part of it has a mark or a veil of its own.
    marks = panel.locator(".jupyter-widgets-disconnected").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one, '::before').content)"
    )
    assert set(marks) <= {"none"}
    tab = panel.locator(".mpc-explorer:visible > *").last
    assert tab.evaluate("(one) => getComputedStyle(one).opacity") == "1"
    inside = panel.locator("> *").last
    assert float(inside.evaluate("(one) => getComputedStyle(one).opacity")) < 0.6
    assert inside.evaluate("(one) => getComputedStyle(one).pointerEvents") == "none"


@pytest.fixture
def serve(server, tmp_path):
    """Return a function that serves a file and returns its address; all are stopped at the end."""
    with ExitStack() as started:

        def start(name, columns):
            return started.enter_context(running_app(server.root / name, columns, tmp_path))

        yield start


def status(address):
    try:
        with urllib.request.urlopen(address) as answer:
            return answer.status, answer.url
    except urllib.error.HTTPError as error:
        return error.code, address


def test_voila_serves_a_log_to_those_with_the_token(serve, pages):
    columns = {name: name for name in ("query", "item", "score", "outcome", "group")}
    address, process = serve("log.parquet", columns)
    without, _, _ = address.partition("?")
    assert "/login" in status(without)[1]
    page = pages.open()
    page.goto(address, timeout=SLOW)
    page.wait_for_selector(".mpc-beacon[data-live]", state="attached", timeout=SLOW)
    said = page.locator(".mpc-explorer :visible").get_by_text("'alpha' is undervalued")
    said.first.wait_for()
    page.get_by_role("tab", name="Pairs", exact=True).click()
    page.locator("table.dataTable tbody tr").first.wait_for(timeout=SLOW)
    page.get_by_role("tab", name="Epsilon", exact=True).click()
    chart = page.locator(".mpc-chart[data-drawn]:visible").first
    chart.wait_for(timeout=SLOW)
    page.close()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert "Stopped." in process.stdout.read()


def test_the_app_speaks_of_its_file_and_opens_where_its_address_says(serve, pages):
    columns = {name: name for name in ("query", "item", "score", "outcome", "group")}
    address, process = serve("log.parquet", columns)
    page = pages.open(height=700)
    page.goto(f"{address}#group=beta&tab=Epsilon", timeout=SLOW)
    page.wait_for_selector(".mpc-beacon[data-live]", state="attached", timeout=SLOW)
    assert page.title() == "log.parquet · mpc_lab"
    # The mark of the headline stands above its rail.
    rail = page.locator(".mpc-rail").first
    assert rail.evaluate("(one) => getComputedStyle(one).overflow") == "visible"
    assert page.locator("h1").inner_text() == "log.parquet"
    assert page.locator("h1").bounding_box()["y"] < 100
    chosen = page.get_by_label("Group", exact=True)
    page.wait_for_function("() => document.querySelector('select').value", timeout=SLOW)
    assert chosen.locator("option:checked").inner_text() == "beta"
    page.get_by_role("tab", name="Epsilon", exact=True, selected=True).wait_for(timeout=SLOW)
    chosen.select_option("gamma")
    page.wait_for_function("() => location.hash === '#group=gamma&tab=Epsilon'", timeout=SLOW)
    words = page.locator("body").inner_text()
    assert not re.search("notebook|cell again|this cell", words, re.IGNORECASE)
    process.kill()
    page.wait_for_selector(".mpc-explorer.mpc-gone", timeout=SLOW)
    said = page.locator(".mpc-explorer").first.evaluate(BEFORE)
    assert "Start mpc-lab explore again" in said
    assert "cell" not in said


def test_voila_serves_a_saved_audit(serve, pages):
    address, process = serve("audit.nc", {})
    page = pages.open()
    page.goto(address, timeout=SLOW)
    page.wait_for_selector(".mpc-beacon[data-live]", state="attached", timeout=SLOW)
    page.get_by_role("tab", name="Pairs", exact=True).click()
    page.get_by_role("alert").filter(has_text="rows of the log").wait_for(timeout=SLOW)
    process.terminate()
    started = time.monotonic()
    process.wait(30)
    assert time.monotonic() - started < 20
