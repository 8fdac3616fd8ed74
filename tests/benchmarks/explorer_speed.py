"""How fast the explorer answers in a real browser, beside a bare Altair chart in the same page.

    python tests/benchmarks/explorer_speed.py [--rows 100000] [--groups 20] [--moves 20]

Prints a Markdown table: in a fresh kernel with the audit loaded, the time until the finding and its
table show, and until the live panel does; from a key press on a slider to the redrawn chart, with
the median and the slowest; and what 50 moves leave in the memory of the page. Needs Chromium and
the extra ``dev``; takes about two minutes.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import mpc_lab as mpc
from logs import overlapping_groups

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import sync_playwright

from helpers.lab_server import CHROMIUM, own_jupyter, running_lab
from helpers.notebook_page import SLOW, NotebookPage, write_notebook

COLUMNS = {name: name for name in ("query", "item", "score", "outcome")} | {"group": "groups"}
MOVES_OF_MEMORY = 50
LOAD = f"""
import pandas as pd, ipywidgets
import mpc_lab as mpc
ranking = mpc.Ranking(pd.read_parquet("log.parquet"), **{COLUMNS!r}, group_sep="|")
audit = mpc.load("audit.nc", ranking=ranking)
"""
PANEL = "explorer = audit.explore()\nexplorer"
# What a slider costs without us: one parameter of one small chart.
BARE = """
import altair as alt
alt.JupyterChart.enable_offline()
rows = pd.DataFrame({"x": range(100), "y": range(100)})
at = alt.param(name="at", value=50)
line = alt.Chart(rows).mark_line().encode(x="x:Q", y="y:Q")
dot = alt.Chart(rows).mark_point().encode(x="x:Q", y="y:Q").transform_filter("datum.x == at")
bare = alt.JupyterChart((line + dot).add_params(at), embed_options={"renderer": "svg"})
mover = ipywidgets.IntSlider(50, 0, 99, description="Bare")
mover.observe(lambda change: setattr(bare.params, "at", change["new"]), "value")
box = ipywidgets.VBox([mover, bare])
box.add_class("bare")
box
"""
# Runs one cell and says how long it takes until something of its output is in sight.
RUN_CELL = """async ([place, selectors]) => {
  const notebook = window.jupyterapp.shell.currentWidget;
  notebook.content.activeCellIndex = place;
  const start = performance.now();
  const seen = selectors.map(() => null);
  window.jupyterapp.commands.execute("notebook:run-cell");
  while (seen.includes(null) && performance.now() - start < 120000) {
    await new Promise(requestAnimationFrame);
    selectors.forEach((selector, k) => {
      if (seen[k] === null && document.querySelector(selector)) seen[k] = performance.now() - start;
    });
  }
  return seen;
}"""
# Notes when a key goes down, and when what it moved has been drawn and is about to be painted.
WATCH = """([selector, attribute]) => {
  window.moved?.disconnect();
  const drawn = [...document.querySelectorAll(selector)].find((one) => one.getClientRects().length);
  window.pressed = null;
  window.times = [];
  document.onkeydown ??= () => { window.pressed = performance.now(); };
  window.moved = new MutationObserver(() => {
    if (window.pressed === null) return;
    const since = window.pressed;
    window.pressed = null;
    requestAnimationFrame(() => window.times.push(performance.now() - since));
  });
  const all = { subtree: true, childList: true, attributes: true };
  window.moved.observe(drawn, attribute ? { attributeFilter: [attribute] } : all);
}"""


def handle(page, label: str):
    """Return the handle of the slider with this label."""
    rail = page.get_by_label(label, exact=True)
    if rail.count():
        return rail
    boxes = page.locator(".widget-inline-hbox:visible", has_text=label)
    return boxes.first.locator(".noUi-handle").first


def press(page, slider, moves: int) -> list[float]:
    """Press arrow keys on a slider, back and forth, and return the milliseconds of each."""
    slider.focus()
    for k in range(moves):
        slider.press("ArrowLeft" if k % 4 in (1, 2) else "ArrowRight")
        page.wait_for_function(f"() => window.times.length > {k}", timeout=SLOW)
        page.wait_for_timeout(150)
    return page.evaluate("() => window.times")


def heap(page, session) -> float:
    """Return the megabytes that the page holds once what it dropped is gone."""
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
        page.wait_for_timeout(200)
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(m["value"] for m in metrics if m["name"] == "JSHeapUsedSize") / 1e6


def timed(page, label: str, moves: int, selector: str, attribute: str | None) -> str:
    slider = handle(page, label)
    page.evaluate(WATCH, [selector, attribute])
    press(page, slider, 2)  # the first ones compile
    page.evaluate(WATCH, [selector, attribute])
    times = press(page, slider, moves)
    return f"{statistics.median(times):.0f} ms (slowest {max(times):.0f}, {len(times)} moves)"


def turn_to(opened: NotebookPage, tab: str) -> None:
    opened.page.get_by_role("tab", name=tab, exact=True).click()
    opened.until(f"explorer.tabs[{tab!r}].drawn > 0", True, seconds=60)
    opened.drawn()
    opened.page.wait_for_timeout(1000)


def measure(opened: NotebookPage, moves: int) -> Iterator[tuple[str, str, str]]:
    """Yield what was asked, what was found, and what is wanted."""
    page = opened.page
    shown = [".mpc-static table", ".mpc-beacon[data-live]"]
    words, live = page.evaluate(RUN_CELL, [1, shown])
    yield "finding and table, fresh kernel", f"{words / 1000:.2f} s", "1 s"
    yield "live panel, fresh kernel", f"{live / 1000:.2f} s", "6 s"
    (bare,) = page.evaluate(RUN_CELL, [2, [".bare svg.marks"]])
    yield "bare JupyterChart in the same page, first shown", f"{bare / 1000:.2f} s", ""
    page.wait_for_timeout(1500)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    drawn = (".mpc-chart", "data-drawn")
    for tab, label, wanted in (("Epsilon", "Threshold ε", 100), ("Boost", "Boost α", 250)):
        turn_to(opened, tab)
        yield f"{label}, key to chart", timed(page, label, moves, *drawn), f"{wanted} ms"
        before = heap(page, session)
        page.evaluate(WATCH, list(drawn))
        press(page, handle(page, label), MOVES_OF_MEMORY)
        grown = heap(page, session) - before
        yield f"{label}, memory after {MOVES_OF_MEMORY} moves", f"{grown:+.1f} MB", "±10 MB"
    found = timed(page, "Bare", moves, ".bare .vega-embed", None)
    yield "bare JupyterChart, key to chart", found, ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--moves", type=int, default=20)
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("There is no chromium on the path.")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        root = Path(scratch) / "notebooks"
        root.mkdir()
        log = overlapping_groups(options.rows, queries=2000, items=4000, groups=options.groups)
        log.to_parquet(root / "log.parquet")
        mpc.audit(log, **COLUMNS, group_sep="|", progress=False).save(root / "audit.nc")
        path = write_notebook(root / "speed.ipynb", LOAD, PANEL, BARE)
        with running_lab(root, own_jupyter(Path(scratch) / "jupyter")) as server:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
            page = browser.new_page(viewport={"width": 1280, "height": 1600})
            opened = NotebookPage(page, server, path).connected()
            page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
            print(f"{len(log):,} rows, {options.groups} groups\n")
            print("| what | measured | wanted |\n|---|---:|---:|")
            for row in measure(opened, options.moves):
                print(f"| {' | '.join(row)} |", flush=True)
            browser.close()


if __name__ == "__main__":
    main()
