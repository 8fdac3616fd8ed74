"""Take a picture of every tab of the explorer, and of each place where it shows.

    python tests/browser/screenshots.py FOLDER [--logs eighteen two sixty] [--only groups …]
    python tests/browser/screenshots.py --gallery

Wide and narrow, light and dark: the tabs, what a cell says of an audit, the panel that starts one,
a panel whose kernel is gone, an exported notebook, and the app, with and without its columns.

To be looked at: a test cannot see that something is ugly. With ``--gallery`` the pictures of the
gallery page are made instead, one for each tab in ``docs/_static/explorers``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import Browser, Locator, Page, sync_playwright

from helpers.app_server import running_app
from helpers.exporting import export
from helpers.lab_server import CHROMIUM, Server, own_jupyter, running_lab
from helpers.notebook_page import SLOW, NotebookPage, write_notebook
from helpers.picture_logs import LOGS, picture_log

WIDTHS = (700, 1280, 1600)
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
GALLERY = Path(__file__).parents[2] / "docs" / "_static" / "explorers"
COLUMNS = {
    **{name: name for name in ("query", "item", "score", "group")},
    "outcome": "clicks",
    "label": "title",
}
CELL = f"""
import pandas as pd
import mpc_lab as mpc
columns = {COLUMNS!r}
ranking = mpc.Ranking(pd.read_parquet("LOG.parquet"), **columns)
audit = mpc.audit(ranking, scoring_rules=["baseline", mpc.Boosted(0.05)], progress=False)
"""
# Its outcomes depend on the place, for the tab that is there for such logs alone.
CLICKS = """
import mpc_lab as mpc
audit = mpc.audit(mpc.datasets.clicks(queries=20_000, seed=0), progress=False)
"""
PANEL = "explorer = audit.explore()\nexplorer"
PLACE = ("place", "Place", "None")
# What is on the pictures: a name, its tab, and what is done there first, as one expression.
CHECK = "[setattr(shown, 'check', {0!r}), shown.run(), shown.redraw()]"
PICTURES = (
    ("groups", "Groups", "None"),
    ("story", "Walk me through", "None"),
    ("epsilon", "Epsilon", "setattr(explorer, 'epsilon', explorer.state.epsilons[-4])"),
    ("why", "Why", "None"),
    ("boost", "Boost", "setattr(shown, 'alpha', 0.05)"),
    ("pairs", "Pairs", "setattr(shown, 'pair', 2)"),
    ("compare", "Compare", "None"),
    ("calibration", "Calibration", "None"),
    ("rivals", "Rivals", "None"),
    *(
        (f"checks-{name}", "Checks", CHECK.format(name))
        for name in ("ladder", "power", "balance", "placebo", "density")
    ),
)


# The cells below the explorer: what a cell says of an audit, and the panel that starts one.
BELOW = {"view": "audit", "start": "mpc.explorers.start(ranking)"}
# Pixels of JupyterLab around a notebook, and of the window that most pictures fit into.
BARS, HIGH = 400, 2600
# How high a page is; that of the app scrolls inside an element.
WHOLE = """() => Math.ceil(Math.max(...[...document.querySelectorAll('*')].map(
  (one) => one.scrollHeight + one.getBoundingClientRect().top)))"""
RESTART = "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"


def turn(opened: NotebookPage, tab: str, used: str) -> None:
    """Show one tab of the explorer that is on the page, and do there what its picture is of."""
    opened.ask(f"setattr(explorer, 'tab', {tab!r})")
    opened.until(f"explorer.tabs[{tab!r}].drawn > 0", True, seconds=120)
    said = opened.ask(used.replace("shown", f"explorer.tabs[{tab!r}]"))
    if "Error" in said:
        sys.exit(f"{tab}: {said}")


def lab_picture(shown: Locator, file: Path, width: int, theme: str) -> None:
    """Take the picture of a part of JupyterLab at one width in one theme."""
    shown.page.evaluate(
        "(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })", THEMES[theme]
    )
    shown.page.set_viewport_size({"width": width, "height": HIGH})
    shown.page.wait_for_timeout(1500)
    shown.page.wait_for_selector("#jupyterlab-splash", state="detached", timeout=SLOW)
    # What is below the fold of JupyterLab is not in a picture.
    if shown.bounding_box()["height"] > HIGH - BARS:
        high = round(shown.bounding_box()["height"]) + BARS
        shown.page.set_viewport_size({"width": width, "height": high})
        shown.page.wait_for_timeout(500)
    shown.screenshot(path=file)
    print(file, flush=True)


def page_picture(page: Page, file: Path, width: int) -> None:
    """Take the picture of a whole page at one width."""
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_timeout(1500)
    page.set_viewport_size({"width": width, "height": max(page.evaluate(WHOLE), 900)})
    page.wait_for_timeout(500)
    page.screenshot(path=file)
    print(file, flush=True)


class Taker:
    """Takes the pictures of one log that are asked for.

    Parameters
    ----------
    browser : Browser
    server : Server
        A Jupyter server whose folder has the log.
    log : str
        One of the logs of `picture_logs`, or ``clicks``.
    options : argparse.Namespace
        Those of the command line.
    """

    def __init__(
        self, browser: Browser, server: Server, log: str, options: argparse.Namespace
    ) -> None:
        self.browser, self.server, self.log, self.options = browser, server, log, options

    def take(self) -> None:
        """Take all pictures."""
        tabs = [one for one in self._tabs() if self._is_wanted(one[0])]
        if self.options.gallery:
            self._take_notebook(tabs, [])
            return
        below = [name for name in self._places("view", "start", "dead") if self._is_wanted(name)]
        if tabs or below:
            self._take_notebook(tabs, below)
        for name in self._places("app", "app-start"):
            if self._is_wanted(name):
                self._take_app(name)
        for name in self._places("export", "export-live"):
            if self._is_wanted(name):
                self._take_export(name)

    def _tabs(self) -> tuple[tuple[str, str, str], ...]:
        return (PLACE,) if self.log == "clicks" else PICTURES

    def _places(self, *names: str) -> tuple[str, ...]:
        """Return the names of places; of the log of clicks there is a picture of one tab alone."""
        return () if self.log == "clicks" else names

    def _is_wanted(self, name: str) -> bool:
        return not self.options.only or name in self.options.only

    def _file(self, name: str, width: int, theme: str) -> Path:
        return self.options.folder / f"{self.log}-{name}-{width}-{theme}.png"

    def _take_notebook(self, tabs: Sequence[tuple[str, str, str]], below: Sequence[str]) -> None:
        cell = CLICKS if self.log == "clicks" else CELL.replace("LOG", self.log)
        cells = [cell, PANEL, *(BELOW[name] for name in below if name in BELOW)]
        path = write_notebook(self.server.root / f"{self.log}.ipynb", *cells)
        page = self.browser.new_page(viewport={"width": 1280, "height": 2600})
        opened = NotebookPage(page, self.server, path).run().live()
        panel = page.locator(".mpc-explorer").first
        for name, tab, used in tabs:
            turn(opened, tab, used)
            self._take_in_lab(name, panel)
        for place, name in enumerate(below, 2):
            if name == "dead":
                page.evaluate(RESTART)
                page.wait_for_selector(".jupyter-widgets-disconnected", timeout=SLOW)
                self._take_in_lab(name, panel)
            else:
                self._take_in_lab(name, page.locator(".jp-Cell-outputArea").nth(place))
        page.close()

    def _take_in_lab(self, name: str, shown: Locator) -> None:
        if self.options.gallery:
            lab_picture(shown, GALLERY / f"{name}.png", 1100, "light")
            return
        for theme in THEMES:
            for width in self.options.widths:
                lab_picture(shown, self._file(name, width, theme), width, theme)

    def _take_app(self, name: str) -> None:
        """Take the app of a log, or of one whose columns were not given."""
        columns = COLUMNS if name == "app" else {}
        file = self.server.root / f"{self.log}.parquet"
        with running_app(file, columns, self.server.root) as (address, _):
            for theme in THEMES:
                page = self.browser.new_page()
                page.goto(f"{address}&theme={theme}", timeout=SLOW)
                page.wait_for_selector(".mpc-beacon[data-live]", state="attached", timeout=SLOW)
                self._take_page(name, page, theme)

    def _take_export(self, name: str) -> None:
        """Take an exported notebook: with pictures alone, or with a rail that moves them."""
        shown = "audit.explore(live=True)" if name == "export-live" else "audit.explore()"
        path = self.server.root / f"{self.log}-{name}.ipynb"
        notebook = write_notebook(path, CELL.replace("LOG", self.log), shown)
        for theme in THEMES:
            made = export(notebook, notebook.parent, execute=True, theme=theme)
            page = self.browser.new_page(color_scheme=theme)
            page.goto(made.as_uri())
            self._take_page(name, page, theme)

    def _take_page(self, name: str, page: Page, theme: str) -> None:
        for width in self.options.widths:
            page_picture(page, self._file(name, width, theme), width)
        page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="where to put the pictures")
    parser.add_argument("--gallery", action="store_true", help="make those of the gallery page")
    known = [*LOGS, "clicks"]
    parser.add_argument("--logs", nargs="*", default=known, choices=known)
    parser.add_argument("--only", nargs="*", help="only pictures with these names")
    parser.add_argument("--widths", nargs="*", type=int, default=WIDTHS)
    options = parser.parse_args()
    if options.folder is None and not options.gallery:
        parser.error("FOLDER or --gallery must be given")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("There is no chromium on the path.")
    (GALLERY if options.gallery else options.folder).mkdir(parents=True, exist_ok=True)
    logs = ["eighteen", "clicks"] if options.gallery else options.logs
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        root = Path(scratch) / "notebooks"
        root.mkdir()
        with running_lab(root, own_jupyter(Path(scratch) / "jupyter")) as server:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
            for log in logs:
                if log in LOGS:
                    picture_log(*LOGS[log]).to_parquet(root / f"{log}.parquet")
                Taker(browser, server, log, options).take()
            browser.close()


if __name__ == "__main__":
    main()
