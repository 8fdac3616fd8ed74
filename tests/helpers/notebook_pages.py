"""Keep the notebooks as they ran: Markdown with pictures, for readers who run nothing.

    python tests/helpers/execute.py FOLDER
    python tests/helpers/notebook_pages.py FOLDER

The first runs them, the second writes a page for each and its pictures into
``docs/tutorials/seen``. The documentation shows the notebooks themselves.
"""

from __future__ import annotations

import argparse
import base64
import html
import re
from pathlib import Path
from typing import Any

import nbformat

from mpc_lab.charts.theme import adapting

PAGES = Path(__file__).parents[2] / "docs" / "tutorials" / "seen"
# The explorers leave a picture for places where no kernel runs.
STILL = re.compile(r'<img alt="([^"]*)"[^>]*src="data:image/svg\+xml;base64,([^"]+)"')
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
TABLE = re.compile(r'<table[^>]* class="dataframe">.*?</table>', re.DOTALL)
DRAWN = re.compile(rb' (?:d|transform)="[^"]*"')
LONG_NUMBER = re.compile(rb"(\d\.\d{3})\d+")
NOTEBOOK_LINK = re.compile(r"\((\d\d_\w+)\.ipynb\)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WIDEST = 100  # characters of a line of output; a longer one is prose


def written(source: str) -> str:
    """Return the words of a cell, whose links lead from page to page."""
    return NOTEBOOK_LINK.sub(r"(\1.md)", source)


def shortened(drawn: bytes) -> bytes:
    """Return an SVG whose shapes have three decimals; its words keep all of theirs."""
    return DRAWN.sub(lambda shape: LONG_NUMBER.sub(rb"\1", shape[0]), drawn)


def as_table(found: str) -> str:
    """Return a table of pandas as viewers of Markdown take it: no blank line, no style."""
    lines = (line.strip() for line in found.splitlines())
    return re.sub(r' (border|class|style)="[^"]*"', "", "\n".join(filter(None, lines)))


def as_block(text: str) -> str:
    """Return text output: prose as a quotation, all else as it was printed."""
    lines = COLOUR.sub("", text).rstrip().splitlines()
    if any(len(line) > WIDEST for line in lines):
        return "\n>\n".join(f"> {line}" for line in lines if line.strip())
    return "\n".join(["```text", *lines, "```"])


class Page:
    """One notebook as it ran, and the pictures that it drew."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pictures: dict[str, bytes] = {}
        self._heading = name

    def text(self, cells: list[Any]) -> str:
        """Return the page."""
        opening = (
            f"<!-- Written by tests/helpers/{Path(__file__).name} from notebooks/{self.name}.ipynb "
            "-->"
        )
        parts = [opening, *(part for cell in cells for part in self._parts(cell) if part)]
        return "\n\n".join(parts) + "\n"

    def _parts(self, cell: Any) -> list[str]:
        if cell.cell_type == "markdown":
            self._heading = (HEADING.findall(cell.source) or [self._heading])[-1]
            return [written(cell.source)]
        if not cell.source.strip():
            return []
        return [f"```python\n{cell.source}\n```", *map(self._shown, cell.outputs)]

    def _shown(self, output: Any) -> str:
        if output.output_type == "stream":
            return as_block(output.text) if output.name == "stdout" else ""
        data = output.data
        if "application/vnd.jupyter.widget-view+json" in data:
            return ""
        if "image/svg+xml" in data:
            return self._picture(data["image/svg+xml"].encode(), self._heading)
        page = data.get("text/html", "")
        if still := STILL.search(page):
            return self._picture(base64.b64decode(still[2]), html.unescape(still[1]))
        if table := TABLE.search(page):
            return as_table(table[0])
        if "text/markdown" in data:
            return str(data["text/markdown"])
        is_wire = data["text/plain"].startswith("<IPython.core.display.")
        return "" if is_wire else as_block(data["text/plain"])

    def _picture(self, drawn: bytes, about: str) -> str:
        file = f"{self.name}-{len(self.pictures) + 1}.svg"
        self.pictures[file] = adapting(shortened(drawn).decode()).encode()
        about = about.replace("[", "(").replace("]", ")")
        return f"![{about}]({file})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the notebooks as they ran")
    PAGES.mkdir(parents=True, exist_ok=True)
    for path in sorted(parser.parse_args().folder.glob("[0-9]*.ipynb")):
        page = Page(path.stem)
        text = page.text(nbformat.read(path, as_version=4).cells)
        for old in PAGES.glob(f"{path.stem}-*.svg"):
            old.unlink()
        for name, drawn in page.pictures.items():
            (PAGES / name).write_bytes(drawn)
        (PAGES / f"{path.stem}.md").write_text(text, "utf-8")
        print(f"{path.stem}: {len(page.pictures)} pictures", flush=True)


if __name__ == "__main__":
    main()
