"""Draw the moving picture at the top of the README: one threshold sweeps over all gaps.

    MPC_LAB_DATA=FOLDER python tests/browser/hero.py

Each frame is the overview of MovieLens 1M at one ε, as a reader sees it who drags along a curve,
drawn by the browser on a light and on a dark page. The folder that MPC_LAB_DATA names holds the
MovieLens files. Both pictures are animated WebP in docs/_static.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import altair as alt
import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import mpc_lab as mpc
from helpers.lab_server import CHROMIUM

STATIC = Path(__file__).parents[2] / "docs" / "_static"
# As the pages of the README's readers are.
PAGES = {"light": "#ffffff", "dark": "#0d1117"}
REST, STEP = 2200, 110  # milliseconds
MARGIN = 14


def overview() -> tuple[alt.HConcatChart, np.ndarray]:
    """Return the chart and the thresholds at which every group has a gap."""
    folder = os.environ.get("MPC_LAB_DATA")
    if not folder:
        raise SystemExit("MPC_LAB_DATA must name the folder with the MovieLens files.")
    audit = mpc.audit(mpc.datasets.movielens_ranking("1m", folder=folder, rank=64), progress=False)
    curve = audit.curve.sel(scoring_rule="baseline", pairing_mode="matched")
    known = np.isfinite(curve["ci_low"]).all("group").to_numpy()
    chart = mpc.charts.overview(audit, title="MovieLens 1M, rank-64 SVD", live=True)
    return chart, curve["epsilon"].to_numpy()[known]


def stops(thresholds: np.ndarray) -> Iterator[tuple[float, int]]:
    """Yield each threshold of the sweep with its duration; -1 is the verdicts' own."""
    yield -1.0, REST
    for epsilon in [*thresholds, *thresholds[-2:0:-1]]:
        yield float(epsilon), STEP


def write_drawings(folder: Path) -> list[tuple[Path, int]]:
    """Draw each frame as SVG, whose colours follow the page."""
    chart, thresholds = overview()
    at = next(param for param in chart.params if param.name == "at")
    drawn: dict[float, Path] = {}
    frames = []
    for epsilon, duration in stops(thresholds):
        if epsilon not in drawn:
            at.value = epsilon
            drawn[epsilon] = mpc.charts.save(chart, folder / f"{len(drawn)}.svg")
        frames.append((drawn[epsilon], duration))
    return frames


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("There is no chromium on the path.")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        frames = write_drawings(Path(scratch))
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        for theme, ground in PAGES.items():
            page = browser.new_page(color_scheme=theme)
            seen = {file: photograph(page, file, ground) for file, _ in frames}
            first, *others = [seen[file] for file, _ in frames]
            target = STATIC / f"hero-{theme}.webp"
            first.save(
                target,
                save_all=True,
                append_images=others,
                duration=[duration for _, duration in frames],
                loop=0,
                quality=80,
                method=6,
            )
            print(f"{target.name}  {target.stat().st_size:,} bytes", flush=True)
        browser.close()


def photograph(page, file: Path, ground: str) -> Image.Image:
    svg = file.read_text("utf-8")
    style = f"body{{margin:0;padding:{MARGIN}px;background:{ground};display:inline-block}}"
    page.set_content(f"<style>{style}</style>{svg}")
    return Image.open(io.BytesIO(page.locator("body").screenshot())).convert("RGB")


if __name__ == "__main__":
    main()
