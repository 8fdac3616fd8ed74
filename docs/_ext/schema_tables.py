"""Tables of the variables of an audit, from the schema that the code itself checks."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mpc_lab.results import schema as written


class SchemaTable(SphinxDirective):
    """``{schema-table} HEADLINE``: name, kind, units and meaning of each variable.

    The dims that most of them have are said once, above the table.
    """

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Return a sentence and the table."""
        schema: dict[str, written.Variable] = getattr(written, self.arguments[0])
        usual = Counter(one.dims for one in schema.values()).most_common(1)[0][0]
        rows = [
            (
                name,
                written.KINDS[one.kind].partition(" ")[0],  # without numpy's own sign of it
                one.units or "–",
                _meaning(one, usual),
            )
            for name, one in schema.items()
        ]
        said = nodes.paragraph("", f"Dims ({', '.join(usual)}) where nothing else is said.")
        return [said, _table(("variable", "kind", "units", "meaning"), rows)]


def _meaning(one: written.Variable, usual: tuple[str, ...]) -> str:
    dims = "" if one.dims == usual else f"; dims ({', '.join(one.dims)})"
    return one.meaning + dims + ("; not always there" if one.optional else "")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> nodes.table:
    group = nodes.tgroup("", cols=len(head))
    group += [nodes.colspec("", colwidth=1) for _ in head]
    group += nodes.thead("", _row(head, literal=False))
    group += nodes.tbody("", *(_row(row, literal=True) for row in rows))
    return nodes.table("", group, classes=["schema"])


def _row(cells: tuple[str, ...], *, literal: bool) -> nodes.row:
    row = nodes.row()
    for place, cell in enumerate(cells):
        word = nodes.literal("", cell) if literal and place == 0 else nodes.Text(cell)
        row += nodes.entry("", nodes.paragraph("", "", word))
    return row


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("schema-table", SchemaTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
