"""Every chart has its picture and its code in the gallery."""

from __future__ import annotations

import re
from pathlib import Path

import mpc_lab as mpc
from mpc_lab import charts
from mpc_lab.charts import alive
from mpc_lab.explorers.tabs import TABS

DOCS = Path(__file__).parents[2] / "docs"
GALLERY = DOCS / "reference" / "gallery.md"
OLD_NAMES = {"gap_density"}


def sections():
    found = re.split(r"^## (\w+)\n", GALLERY.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


def test_every_chart_is_in_the_gallery_with_its_own_code():
    found = sections()
    assert set(found) == set(charts.CHARTS) - OLD_NAMES
    for name, text in found.items():
        assert f"mpc.charts.{name}(" in text


def test_every_picture_is_there_and_all_are_small():
    pictures = {name: DOCS / "_static" / "charts" / f"{name}.svg" for name in sections()}
    for name, text in sections().items():
        assert f"(../_static/charts/{name}.svg)" in text
        assert "prefers-color-scheme: dark" in pictures[name].read_text("utf-8")
        kept = (DOCS / "_static" / "live" / f"{name}.html").read_text("utf-8")
        assert kept.count(alive.PICTURE) == 1
        assert "<script src" not in kept
    stored = sum(path.stat().st_size for path in (DOCS / "_static").rglob("*") if path.is_file())
    assert stored < 6_000_000


def test_every_tab_is_in_the_gallery_with_its_picture():
    text = GALLERY.read_text("utf-8")
    for kind in TABS:
        section = text[text.index(f"### {kind.title}\n") :]
        (picture,) = re.findall(r"\((\.\./_static/explorers/\S+)\)", section.split("###")[1])
        assert (GALLERY.parent / picture).resolve().is_file()
        assert f'tab="{kind.title}"' in section.split("###")[1]


def test_a_figure_of_a_page_without_a_kernel_says_the_pairs_of_every_step():
    audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    rail = alive.rail_of(audit, "one")
    curve = audit.curve.sel(scoring_rule="baseline", pairing_mode="matched")
    assert rail["steps"] == audit.curve["epsilon"].values.tolist()
    for row, group in enumerate(rail["names"]):
        assert rail["pairs"][row] == curve["n_pairs"].sel(group=group).values.tolist()
    drawn = alive.figure(mpc.charts.overview(audit, live=True), alive.PICTURE, rail)
    assert drawn.index(alive.PICTURE) < drawn.index('class="live"') < drawn.index('class="told"')


def test_a_drawing_has_the_ink_of_the_page_it_is_on():
    style = (DOCS / "_static" / "mpc_lab.css").read_text("utf-8")
    for theme in ("light", "dark"):
        rule = rf'\[data-theme="{theme}"\] \.bd-content img\[src\$="\.svg"\][^{{]*{{[^}}]*'
        assert re.search(rf"{rule}color-scheme: {theme};", style)
    assert re.search(rf"{rule}background: none;", style)
