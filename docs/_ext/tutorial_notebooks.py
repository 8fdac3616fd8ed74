"""Bring the notebooks into the tutorials: executed copies where there are some, else bare ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from sphinx.application import Sphinx
from sphinx.errors import ConfigError

_WIDGET = "application/vnd.jupyter.widget-view+json"


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


def setup(app: Sphinx) -> dict[str, Any]:
    """Copy the notebooks before Sphinx looks for pages."""
    app.add_config_value("notebooks_folder", "", "env", str)
    app.connect("builder-inited", _bring, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
