"""Words that come from data, made safe to stand in Markdown."""

from __future__ import annotations

import re
from html import escape

from mpc_lab.terminal import plain

# Marks of Markdown and of its common extensions; the last three begin links and mentions.
_OBEYED = re.compile(r"([\\`*_{}\[\]#|~$^@]|:(?=//)|(?<=www)\.)")


def words(text: object) -> str:
    r"""Return a text that Markdown shows as it is, inside a line or a cell of a table.

    Examples
    --------
    >>> words("a|b <i>")
    'a\\|b &lt;i&gt;'
    """
    # First Markdown's own marks, so that the entities of HTML stay whole.
    return escape(_OBEYED.sub(r"\\\1", plain(text)), quote=False)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table of cells that are safe already."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
