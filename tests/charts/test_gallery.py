"""Every chart has its picture and its code in the gallery."""

from __future__ import annotations

import re
from pathlib import Path

from mpc_lab import charts

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
    stored = sum(path.stat().st_size for path in (DOCS / "_static").rglob("*") if path.is_file())
    assert stored < 6_000_000
