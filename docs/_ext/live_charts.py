"""Charts of the gallery that answer to the pointer, drawn by a library that the page holds itself.

A directive around a picture:

    ```{live-chart} ../_static/live/overview.html
    ![the chart overview](../_static/charts/overview.svg)
    ```

The picture stays where no script runs. The file is a figure without its picture, as
``tests/browser/pictures.py`` writes it. The library is made when the pages are built, and nothing
is fetched from elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mpc_lab.charts import alive
from mpc_lab.html import chart_library

_CODE, _STYLE = "mpc_lab_live.js", "mpc_lab_live.css"


class LiveChart(SphinxDirective):
    """A picture, and the chart that takes its place."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the picture between the two halves of a figure."""
        _, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        before, after = Path(path).read_text("utf-8").split(alive.PICTURE)
        inside = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, inside)
        self.env.metadata[self.env.docname]["live_charts"] = True
        first, last = (nodes.raw("", half, format="html") for half in (before, after))
        return [first, *inside.children, last]


def _write(app: Sphinx) -> None:
    """Write library and style beside the pages."""
    if app.builder.format == "html":
        folder = Path(app.outdir) / "_static"
        folder.mkdir(parents=True, exist_ok=True)
        # In a scope of its own: it and Sphinx's scripts both have a constant of the name `_`.
        (folder / _CODE).write_text(f"(() => {{\n{chart_library(alive.code())}\n}})();\n", "utf-8")
        (folder / _STYLE).write_text(alive.style() + alive.colours(), "utf-8")


def _add(app: Sphinx, page: str, _template: str, _context: Any, _doctree: Any) -> None:
    """Let the pages that have a live chart load the two."""
    if app.env.metadata.get(page, {}).get("live_charts"):
        app.add_css_file(_STYLE)
        app.add_js_file(_CODE, loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive ``live-chart``."""
    app.add_directive("live-chart", LiveChart)
    app.connect("html-page-context", _add)
    app.connect("builder-inited", _write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
