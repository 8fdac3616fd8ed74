"""The pages that show notebooks as they ran are those of the notebooks as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("nbformat")
from helpers.notebook_pages import PAGES, as_block, as_table, shortened, written

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.ipynb"))


def page_of(name):
    return (PAGES / f"{name}.md").read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_every_cell_of_its_notebook_in_order(name):
    page, at = page_of(name), 0
    for cell in json.loads((NOTEBOOKS / f"{name}.ipynb").read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        source = written(source) if cell["cell_type"] == "markdown" else source
        found = page.find(source, at)
        assert found >= 0, f"write it again, see tests/helpers/notebook_pages.py: {source[:200]}"
        at = found + len(source)


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_and_link_of_a_page_is_there(name):
    targets = re.findall(r"\]\(([^)#]+)\)", page_of(name))
    assert [one for one in targets if "://" not in one and not (PAGES / one).is_file()] == []
    assert any(one.endswith(".svg") for one in targets)


def test_no_picture_is_left_from_an_older_run():
    shown = {one for name in NAMES for one in re.findall(r"\]\((\S+\.svg)\)", page_of(name))}
    assert {path.name for path in PAGES.glob("*.svg")} == shown


def test_prose_wraps_and_what_was_printed_keeps_its_columns():
    assert as_block("a  1\nb  2\n") == "```text\na  1\nb  2\n```"
    assert as_block("word " * 30 + "\n\nend") == "> " + "word " * 30 + "\n>\n> end"


def test_a_picture_says_its_numbers_in_full():
    drawn = b'<path d="M0.123456,1" transform="translate(1.23456)"/><text>from 0.00002</text>'
    short = b'<path d="M0.123,1" transform="translate(1.234)"/><text>from 0.00002</text>'
    assert shortened(drawn) == short


def test_a_table_has_no_blank_line_where_markdown_would_end_it():
    given = (
        '<table border="1" class="dataframe">\n\n  <tr style="x">\n    <td>1</td>\n</tr></table>'
    )
    assert as_table(given) == "<table>\n<tr>\n<td>1</td>\n</tr></table>"
