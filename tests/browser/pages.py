"""Take pictures of reports, charts and the pages of the docs, over their whole length.

    python tests/browser/pages.py FOLDER [--kinds reports charts site] [--only NAME ...]
    python tests/browser/pages.py FOLDER --site SITE [--widths 700] [--themes dark]

To be looked at: a test cannot see that something is ugly. Reports and charts are made of the logs
of ``tests/helpers/picture_logs.py`` and of clicks; SITE is the folder into which ``sphinx-build``
wrote the docs. Long pages are cut into tiles. A report is also printed, as PDF. What a machine
can see is said for each page: that it is wider than the window, or that a script failed.
"""

from __future__ import annotations

import argparse
import functools
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import Browser, Page, sync_playwright

import mpc_lab as mpc
from helpers.drawn import CHARTS
from helpers.lab_server import CHROMIUM
from helpers.notebook_page import watch
from helpers.picture_logs import LOGS, picture_log
from mpc_lab.charts import alive

WIDTHS, THEMES = (700, 1280, 1600), ("light", "dark")
KINDS = ("reports", "charts", "site")
KNOWN = (*LOGS, "clicks")
TILE = 2000
STILL = """.bd-header { position: static !important }
@media (min-width: 960px) { .bd-sidebar { position: static !important } }"""
# As the docs say which theme their live charts have.
THEMED = """<script>document.documentElement.dataset.theme =
matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"</script>"""
# One page of charts: the pictures as files, or drawn by the page itself.
SHEET = """<!doctype html><meta charset="utf-8"><style>
:root {{ color-scheme: light dark }} body {{ font: 16px system-ui, sans-serif; margin: 1.5rem }}
@media (prefers-color-scheme: dark) {{ html {{ background: #15171a; color: #e6e8eb }} }}
img {{ max-width: 100% }} .static {{ display: none }}
</style><body>{body}</body>"""


@functools.cache
def audit(log: str) -> mpc.Audit:
    """Return the audit of a log."""
    if log == "clicks":
        return mpc.audit(mpc.datasets.clicks(queries=20_000, seed=0), progress=False)
    return mpc.audit(
        picture_log(*LOGS[log]),
        query="query",
        item="item",
        score="score",
        outcome="clicks",
        group="group",
        label="title",
        scoring_rules=["baseline", mpc.Boosted(0.05)],
        pairing_modes=["matched", "mirrored"],
        progress=False,
    )


def reports(folder: Path, only: list[str] | None) -> Iterator[Path]:
    """Write the report of each log."""
    for log in KNOWN:
        if not only or log in only:
            path = folder / f"report-{log}.html"
            price = audit(log).ranking.score * 10 + 5
            yield audit(log).report(path, pairs=6, covariates={"price": price}, progress=False)


def charts(folder: Path, only: list[str] | None) -> Iterator[Path]:
    """Write every chart of each log as SVG and PNG, and pages that show them."""
    for log in KNOWN:
        if only and log not in only:
            continue
        drawn = {}
        for name, make in CHARTS.items():
            try:
                drawn[name.replace(" ", "-")] = make(audit(log), audit(log).groups[0])
            except mpc.MpcError as error:
                print(f"{log} has no {name}: {error}", flush=True)
        for kind in ("svg", "png"):
            files = [mpc.charts.save(c, folder / f"{log}-{n}.{kind}") for n, c in drawn.items()]
            body = "".join(f'<h2>{file.stem}</h2><img src="{file.name}">' for file in files)
            yield _sheet(folder / f"{kind}-{log}.html", body)
        figures = "".join(f"<h2>{n}</h2>{alive.figure(c, '')}" for n, c in drawn.items())
        live = f"{THEMED}<style>{alive.style()}{alive.colours()}</style>{figures}"
        yield _sheet(folder / f"live-{log}.html", f"{live}<script>{alive.script()}</script>")


def _sheet(path: Path, body: str) -> Path:
    path.write_text(SHEET.format(body=body), "utf-8")
    return path


def site(folder: Path, only: list[str] | None) -> Iterator[Path]:
    """Yield the pages of the docs."""
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder).as_posix()
        if "_static" not in name and (not only or any(wanted in name for wanted in only)):
            yield path


def take(browser: Browser, path: Path, target: Path, width: int, theme: str) -> None:
    """Take pictures of one page from top to end, and say what is wrong with it."""
    context = browser.new_context(viewport={"width": width, "height": TILE}, color_scheme=theme)
    page = context.new_page()
    left: list[str] = []
    errors: list[str] = []
    watch(page, left, errors)
    page.goto(path.as_uri())
    # What stays in sight while one scrolls would be on every tile.
    page.add_style_tag(content=STILL)
    _settle(page)
    height, wide = page.evaluate(
        "[document.documentElement.scrollHeight, document.documentElement.scrollWidth]"
    )
    for number, top in enumerate(range(0, height, TILE), start=1):
        # The last tile begins where the window can scroll no further.
        done = page.evaluate(f"window.scrollTo(0, {top}), window.scrollY")
        clip = {"x": 0, "y": top - done, "width": width, "height": min(TILE, height - top)}
        file = target.with_name(f"{target.name}-{width}-{theme}-{number}.png")
        page.screenshot(path=file, clip=clip)
    faults = [f"{wide} px wide"] * (wide > width) + left + errors
    print(f"{target.name} {width} {theme}: {height:,} px  {'; '.join(faults)}", flush=True)
    context.close()


def _settle(page: Page) -> None:
    """Wait until every chart that is in sight of a script is drawn."""
    page.wait_for_function(
        "[...document.querySelectorAll('figure.chart')].every("
        "one => one.classList.contains('drawn') || !one.checkVisibility())"
    )
    page.wait_for_timeout(300)


def print_out(browser: Browser, path: Path, target: Path) -> None:
    """Print one page as PDF on A4."""
    page = browser.new_page()
    page.goto(path.as_uri())
    _settle(page)
    page.pdf(path=target, format="A4", prefer_css_page_size=True)
    page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where to put the pictures")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--site", type=Path, help="the built docs")
    parser.add_argument("--only", nargs="*", help="only these logs, or pages with such a name")
    parser.add_argument("--widths", nargs="*", type=int, default=WIDTHS)
    parser.add_argument("--themes", nargs="*", default=THEMES, choices=THEMES)
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("There is no chromium on the path.")
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    sources: dict[str, tuple[Callable, Path | None]] = {
        "reports": (reports, folder),
        "charts": (charts, folder),
        "site": (site, options.site and options.site.resolve()),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        for kind in options.kinds:
            make, root = sources[kind]
            for path in make(root, options.only) if root else ():
                name = path.relative_to(root).with_suffix("").as_posix().replace("/", "-")
                for theme in options.themes:
                    for width in options.widths:
                        take(browser, path, folder / name, width, theme)
                if kind == "reports":
                    print_out(browser, path, folder / f"{name}.pdf")
        browser.close()


if __name__ == "__main__":
    main()
