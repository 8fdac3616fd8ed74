"""Equations as MathML, which browsers draw without any script, with a font that comes along.

Roots and fractions need a font that knows how to stretch. STIX Two Math does, and ziamath brings
it (SIL Open Font License).
"""

from __future__ import annotations

import re
import shutil
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

_LEFT = re.compile(r"\\[A-Za-z]+")


def _converted(latex: str, display: str = "inline") -> str:
    """Return a formula as MathML; a command that the converter does not know would show."""
    drawn = convert(latex.replace(r"\arg\min", r"\operatorname{arg}\,\min"), display=display)
    left = _LEFT.search(drawn)
    if left:
        raise ExtensionError(f"{left[0]} of this formula has no MathML: {latex}")
    return drawn


def _inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(f'<span class="math">{_converted(node.astext())}</span>')
    raise nodes.SkipNode


def _display(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    if node.get("number"):
        number = escape(get_node_equation_number(writer, node))
        writer.body.append(f'<span class="eqno">({number})</span>')
    writer.body.append(_converted(node.astext(), "block"))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def _bring_font(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        font = files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"
        with font.open("rb") as source, Path(app.outdir, "_static", font.name).open("wb") as target:
            shutil.copyfileobj(source, target)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer that ``html_math_renderer = "mathml"`` asks for."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.connect("build-finished", _bring_font)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
