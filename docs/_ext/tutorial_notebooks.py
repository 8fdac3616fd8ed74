"""Bring the notebooks into the tutorials: executed copies where there are some, else bare ones."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import nbformat
from sphinx.application import Sphinx
from sphinx.errors import ConfigError

from mpc_lab.charts.theme import adapting

_WIDGET = "application/vnd.jupyter.widget-view+json"
_SVG = "image/svg+xml"
# What an explorer leaves for pages without a kernel.
_STILL = re.compile(r'(src="data:image/svg\+xml;base64,)([^"]+)')


def _bring(app: Sphinx) -> None:
    given = app.config.notebooks_folder
    # Not the package's own: they are beside this file, wherever the package is installed.
    source = Path(given) if given else Path(app.srcdir).parent / "notebooks"
    found = sorted(source.glob("[0-9][0-9]_*.ipynb"))
    if not found:
        raise ConfigError(f"{source} should hold the notebooks, but there are none.")
    for path in found:
        notebook = nbformat.read(path, as_version=4)
        _leave_out_widgets(notebook)
        _give_ink(notebook)
        target = Path(app.srcdir, "tutorials", path.name)
        text = nbformat.writes(notebook)
        if not target.exists() or target.read_text("utf-8") != text:
            target.write_text(text, "utf-8")


def _leave_out_widgets(notebook: nbformat.NotebookNode) -> None:
    """Take away what needs a kernel; what a widget leaves as static HTML beside it stays."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [out for out in cell.outputs if _WIDGET not in out.get("data", {})]


def _give_ink(notebook: nbformat.NotebookNode) -> None:
    """Let drawings have the ink of a light or a dark page, as saved ones do."""
    for cell in notebook.cells:
        for out in cell.get("outputs", ()):
            data = out.get("data", {})
            if _SVG in data:
                data[_SVG] = adapting(data[_SVG])
            if "text/html" in data:
                data["text/html"] = _STILL.sub(_with_ink, data["text/html"])


def _with_ink(found: re.Match[str]) -> str:
    picture = adapting(base64.b64decode(found[2]).decode())
    return found[1] + base64.b64encode(picture.encode()).decode()


def setup(app: Sphinx) -> dict[str, Any]:
    """Copy the notebooks before Sphinx looks for pages."""
    app.add_config_value("notebooks_folder", "", "env", str)
    app.connect("builder-inited", _bring, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
