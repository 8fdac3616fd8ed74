"""Numbers in tables and sentences as a reader wants them.

A column of numbers is aligned to the right and its cells are not broken, a minus is a minus sign, a
missing number is a dash, a power is raised, and no percentage is parted from its sign. What is code
stays as it is.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

# A number with its sign, bound, unit, and interval or error behind it.
_PART = r"[≤≥±+−-]?\s?\d[\d,.]*(?:\s?(?:%|×|s|ms|GB|MB|GiB))?"
_NUMBER = re.compile(
    rf"(?:{_PART}|[+−-]?nan)"
    rf"(?:\s(?:to|±)\s{_PART})?(?:\s\((?:{_PART})(?:\sto\s{_PART})?\))?"
)
_NOTHING = ("", "–")
_MISSING = re.compile(r"[+−-]?nan")
_BELOW_ZERO = re.compile(r"(?<![\w.)-])-(?=\d)")
_POWER = re.compile(r"\^([+−-]?[\d.]+)")
_MANY = 7  # columns, from which on a table needs its cells closer together


class ReadableTables(SphinxTransform):
    """Say which cells hold numbers, and write them as they are printed elsewhere."""

    default_priority = 700

    def apply(self, **_kwargs: Any) -> None:
        """Change the tables and words of one page."""
        for table in self.document.findall(nodes.table):
            rows = [_cells(row) for body in table.findall(nodes.tbody) for row in body]
            heads = [_cells(row) for head in table.findall(nodes.thead) for row in head]
            if rows and len(rows[0]) >= _MANY:
                table["classes"].append("many-columns")
            for place, column in enumerate(zip(*rows, strict=True)):
                if _holds_numbers(column):
                    for cell in (*column, *(head[place] for head in heads)):
                        cell["classes"] = ["number"]
            for text in list(table.findall(nodes.Text)):
                if _is_words(text):
                    text.parent.replace(text, _printed(text))
        for text in list(self.document.findall(nodes.Text)):
            if " %" in text and _is_words(text):
                text.parent.replace(text, nodes.Text(text.replace(" %", "\u00a0%")))


def _cells(row: nodes.Node) -> list[nodes.entry]:
    return list(row.findall(nodes.entry))


def _holds_numbers(column: tuple[nodes.entry, ...]) -> bool:
    words = [cell.astext().strip() for cell in column]
    known = [one for one in words if one not in _NOTHING]
    return bool(known) and all(_NUMBER.fullmatch(one) for one in known)


def _is_words(text: nodes.Text) -> bool:
    literal = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)
    node = text.parent
    while node is not None:
        if isinstance(node, literal):
            return False
        node = node.parent
    return True


def _printed(words: str) -> list[nodes.Node]:
    if _MISSING.fullmatch(words):
        return [nodes.Text("–")]
    # Words and powers by turns.
    parts = _POWER.split(words)
    made: list[nodes.Node] = []
    for place, part in enumerate(parts):
        text = _BELOW_ZERO.sub("−", part)
        made.append(nodes.superscript("", text) if place % 2 else nodes.Text(text))
    return made


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the change to every page."""
    app.add_transform(ReadableTables)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
