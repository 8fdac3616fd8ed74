"""Take a picture of every tab of the explorer, wide and narrow, light and dark.

    python tests/browser/screenshots.py FOLDER [--logs eighteen two sixty] [--only groups …]
    python tests/browser/screenshots.py --gallery

To be looked at: a test cannot see that something is ugly. With ``--gallery`` the pictures of the
gallery page are made instead, one for each tab in ``docs/_static/explorers``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import sync_playwright

from helpers.lab_server import CHROMIUM, own_jupyter, running_lab
from helpers.notebook_page import NotebookPage, write_notebook
from helpers.picture_logs import LOGS, picture_log

WIDTHS = (700, 1280, 1600)
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
GALLERY = Path(__file__).parents[2] / "docs" / "_static" / "explorers"
CELL = """
import pandas as pd
import mpc_lab as mpc
audit = mpc.audit(
    pd.read_parquet("{log}.parquet"), query="query", item="item", score="score", outcome="clicks",
    group="group", label="title", scoring_rules=["baseline", mpc.Boosted(0.05)], progress=False,
)
explorer = audit.explore()
explorer
"""
# Its outcomes depend on the place, for the tab that is there for such logs alone.
CLICKS = """
import mpc_lab as mpc
audit = mpc.audit(mpc.datasets.clicks(queries=20_000, seed=0), progress=False)
explorer = audit.explore()
explorer
"""
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


def turn(opened: NotebookPage, tab: str, used: str) -> None:
    """Show one tab of the explorer that is on the page, and do there what its picture is of."""
    opened.ask(f"setattr(explorer, 'tab', {tab!r})")
    opened.until(f"explorer.tabs[{tab!r}].drawn > 0", True, seconds=120)
    said = opened.ask(used.replace("shown", f"explorer.tabs[{tab!r}]"))
    if "Error" in said:
        sys.exit(f"{tab}: {said}")


def picture(opened: NotebookPage, file: Path, width: int, theme: str) -> None:
    """Take the picture of the explorer at one width in one theme."""
    page = opened.page
    page.evaluate(
        "(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })", THEMES[theme]
    )
    page.set_viewport_size({"width": width, "height": 2600})
    page.wait_for_timeout(1500)
    page.locator(".mpc-explorer").first.screenshot(path=file)
    print(file, flush=True)


def take_all(opened: NotebookPage, log: str, options: argparse.Namespace) -> None:
    """Take the pictures of every tab of one log, or those of the gallery."""
    for name, tab, used in (PLACE,) if log == "clicks" else PICTURES:
        if options.only and name not in options.only:
            continue
        turn(opened, tab, used)
        if options.gallery:
            picture(opened, GALLERY / f"{name}.png", 1100, "light")
            continue
        for theme in THEMES:
            for width in options.widths:
                picture(opened, options.folder / f"{log}-{name}-{width}-{theme}.png", width, theme)


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
                cell = CLICKS if log == "clicks" else CELL.format(log=log)
                if log in LOGS:
                    picture_log(*LOGS[log]).to_parquet(root / f"{log}.parquet")
                path = write_notebook(root / f"{log}.ipynb", cell)
                page = browser.new_page(viewport={"width": 1280, "height": 2600})
                take_all(NotebookPage(page, server, path).run().live(), log, options)
                page.close()
            browser.close()


if __name__ == "__main__":
    main()
