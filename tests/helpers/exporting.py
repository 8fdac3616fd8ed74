"""An exported notebook: HTML that fetches nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# What a page of nbconvert asks the network for, whatever its notebook holds.
_FETCHED = ("require_js_url", "mathjax_url", "jquery_url", "mermaid_js_url", "widget_renderer_url")
# With the state of widgets a page of nbconvert asks the network for their manager.
_RUN = ("--execute", "--ExecutePreprocessor.store_widget_state=False")


def export(notebook: Path, folder: Path, *, execute: bool = False, theme: str = "light") -> Path:
    """Export a notebook to HTML in a folder, as it was saved or run first."""
    command = [sys.executable, "-m", "nbconvert", "--to", "html", *(_RUN if execute else ())]
    command += [f"--HTMLExporter.{name}=" for name in _FETCHED]
    command += [f"--HTMLExporter.theme={theme}", f"--output-dir={folder}", str(notebook)]
    subprocess.run(command, check=True, capture_output=True)
    return folder / notebook.with_suffix(".html").name
