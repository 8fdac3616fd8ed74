"""Take a picture of every tab of the explorer, wide and narrow, light and dark.

    python tests/browser/screenshots.py FOLDER

For the docs, and to be looked at: a test cannot see that something is ugly.
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
# What is on the pictures: a name, its tab, and what is done there first, as one expression.
CHECK = "[setattr(shown, 'check', {0!r}), shown.run(), shown.redraw()]"
PICTURES = (
    ("groups", "Groups", "None"),
    ("epsilon", "Epsilon", "setattr(explorer, 'epsilon', explorer.state.epsilons[-4])"),
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


def take(folder: Path, opened: NotebookPage, name: str, tab: str, used: str) -> None:
    """Take the four pictures of one tab of the explorer that is on the page."""
    page = opened.page
    opened.ask(f"setattr(explorer, 'tab', {tab!r})")
    opened.until(f"explorer.tabs[{tab!r}].drawn > 0", True, seconds=120)
    said = opened.ask(used.replace("shown", f"explorer.tabs[{tab!r}]"))
    if "Error" in said:
        sys.exit(f"{name}: {said}")
    for theme, called in THEMES.items():
        page.evaluate(
            "(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })", called
        )
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 2600})
            page.wait_for_timeout(1500)
            file = folder / f"{name}-{width}-{theme}.png"
            page.locator(".mpc-explorer").first.screenshot(path=file)
            print(file, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where to put the pictures")
    parser.add_argument("--only", nargs="*", help="only pictures with these names")
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
            page = browser.new_page(viewport={"width": 1280, "height": 2600})
            opened = NotebookPage(page, server, path).run().live()
            for picture in PICTURES:
                if not options.only or picture[0] in options.only:
                    take(options.folder, opened, *picture)
            browser.close()


if __name__ == "__main__":
    main()
