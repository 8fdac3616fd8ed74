"""Draw the pictures of the docs and the README from the code as it is.

    MPC_LAB_DATA=FOLDER python tests/browser/pictures.py [NAME ...]

The gallery page is the list: under each heading stand a picture and the code that draws it. The
code is run from the first block to the last, and what it calls ``chart`` is written where the
page shows it; the same chart as one that answers to the pointer goes to ``docs/_static/live``.
The overview is of MovieLens 1M, whose files are in the folder that MPC_LAB_DATA
names. Every picture is SVG whose colours follow the light or dark theme of its reader.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

import mpc_lab as mpc
from mpc_lab.charts import alive

DOCS = Path(__file__).parents[2] / "docs"
GALLERY = DOCS / "reference" / "gallery.md"
LIVE = DOCS / "_static" / "live"
OVERVIEW = "overview"
SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[.*?\]\((.+?)\)")


def keep(chart, path: Path, rail=None) -> None:
    """Keep a chart without its picture, for a page that draws it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(alive.figure(chart, alive.PICTURE, rail), "utf-8")


def draw_overview(path: Path) -> None:
    folder = os.environ.get("MPC_LAB_DATA")
    if not folder:
        raise SystemExit("MPC_LAB_DATA must name the folder with the MovieLens files.")
    audit = mpc.audit(mpc.datasets.movielens_ranking("1m", folder=folder, rank=64), progress=False)
    title = "MovieLens 1M, rank-64 SVD"
    # As wide as a page of the docs: the wide form would have letters of half their size there.
    mpc.charts.save(mpc.charts.overview(audit, title=title, narrow=True), path)
    live = mpc.charts.overview(audit, title=title, narrow=True, live=True)
    keep(live, LIVE / f"{OVERVIEW}.html", alive.rail_of(audit, OVERVIEW))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these; all code runs anyway")
    names = parser.parse_args().names
    text = GALLERY.read_text("utf-8")
    namespace: dict[str, object] = {"__name__": "gallery"}
    for block in CODE.findall(text[: text.index("## ")]):
        exec(block, namespace)
    for name, section in SECTION.findall(text):
        found = PICTURE.search(section)
        assert found, f"{name} has no picture"
        path = (GALLERY.parent / found[1]).resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        wanted = not names or name in names
        if name == OVERVIEW:
            if wanted:
                draw_overview(path)
        else:
            for block in CODE.findall(section):
                exec(block, namespace)
            if wanted:
                mpc.charts.save(namespace["chart"], path)
                keep(namespace["chart"], LIVE / f"{name}.html")
        if wanted:
            print(f"{path.relative_to(DOCS)}  {path.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
