"""Take a picture of every tab of the explorer, wide and narrow, light and dark.

    python tests/browser/screenshots.py FOLDER

For the docs, and to be looked at: a test cannot see that something is ugly.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab_server import CHROMIUM, own_jupyter, running_lab
from notebook_page import NotebookPage, write_notebook
from playwright.sync_api import sync_playwright

WIDTHS = (1280, 800)
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
# The paper's example, where the answer is known, with a group that is not in doubt.
CELL = """
import mpc_lab as mpc
audit = mpc.audit(
    mpc.datasets.synthetic(queries=20_000),
    scoring_rules=["baseline", mpc.Boosted(0.05)],
    pairing_modes=["matched", "mirrored"],
    progress=False,
)
explorer = audit.explore()
explorer
"""
# What is done on a tab before its picture is taken, as one expression.
USED = {
    "Epsilon": "setattr(explorer, 'epsilon', explorer.state.epsilons[-4])",
    "Boost": "setattr(explorer.tabs['Boost'], 'alpha', 0.05)",
    "Pairs": "setattr(explorer.tabs['Pairs'], 'pair', 2)",
}


def take(folder: Path, page, opened: NotebookPage, tabs: Sequence[str]) -> None:
    """Take the pictures of an explorer that is on the page."""
    for tab in tabs:
        opened.ask(f"setattr(explorer, 'tab', {tab!r})")
        opened.ask(USED.get(tab, "None"))
        finish(tab, page)
        for theme, name in THEMES.items():
            page.evaluate(
                "(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })", name
            )
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 1600})
                page.wait_for_timeout(1500)
                file = folder / f"{tab.lower()}-{width}-{theme}.png"
                page.locator(".mpc-explorer").first.screenshot(path=file)
                print(file)


def finish(tab: str, page) -> None:
    """Press the buttons that start long work, and wait for it."""
    if tab == "Checks":
        button = page.locator(".mpc-explorer button.jupyter-button:visible").first
        button.click()
        page.wait_for_timeout(20_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where to put the pictures")
    parser.add_argument("--tabs", nargs="*", help="only these tabs")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("There is no chromium on the path.")
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        root = Path(scratch) / "notebooks"
        root.mkdir()
        path = write_notebook(root / "explorer.ipynb", CELL)
        with running_lab(root, own_jupyter(Path(scratch) / "jupyter")) as server:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
            page = browser.new_page(viewport={"width": 1280, "height": 1600})
            opened = NotebookPage(page, server, path).run().live()
            names = opened.ask("'|'.join(explorer.tabs)").strip("'").split("|")
            take(options.folder, page, opened, options.tabs or names)
            browser.close()


if __name__ == "__main__":
    main()
