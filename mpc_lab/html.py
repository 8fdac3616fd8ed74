"""Parts of a page, in which text from data is shown but never interpreted.

A text enters a page through :func:`escape` alone; what is called HTML here has been through it.
May import from ``errors`` to ``writing``.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mpc_lab.errors import MpcError
from mpc_lab.text import minus, name, plain
from mpc_lab.writing import replacing

# Classes that a page's own MathJax skips: a name may hold a dollar sign.
NO_MATH = "mathjax_ignore tex2jax_ignore"
# The name of a column in a sentence; it is in the text as it is in a terminal.
_CODE = re.compile("`([^`<>]+)`")
_LIBRARY_END = "\n// end of the chart library\n"


def escape(text: object, *, lines: bool = False) -> str:
    """Return any text as HTML that shows it and nothing else.

    Parameters
    ----------
    text : object
    lines : bool
        Keep line feeds, inside ``<pre>``.

    Examples
    --------
    >>> escape("<script>")
    '&lt;script&gt;'
    """
    # No line break inside "95 %".
    return html.escape(plain(text, lines=lines)).replace(" %", "\u00a0%")


def label(text: object) -> str:
    """Return a name from data: cut if it is long, and isolated from the text around it."""
    return f"<bdi>{escape(name(text))}</bdi>"


def paragraphs(lines: Iterable[object], kind: str = "") -> str:
    """Return a paragraph for each text that is not empty; real minus signs, `names` as code."""
    texts = (_CODE.sub(r"<code>\1</code>", minus(escape(line))) for line in lines if line)
    return "".join(f'<p{_class(kind)} dir="auto">{text}</p>' for text in texts)


def definitions(pairs: Iterable[tuple[object, object]]) -> str:
    """Return a list of names and what they mean."""
    items = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in pairs)
    return f"<dl>{items}</dl>"


def folded(title: str, body: str) -> str:
    """Return HTML that opens on a click."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


@dataclass(frozen=True)
class Head:
    """The head of a column.

    Attributes
    ----------
    title : str
        HTML.
    is_text : bool
        Whether its cells are aligned left, not right as numbers are.
    kind : str
        A further class of its cells.
    """

    title: str
    is_text: bool = False
    kind: str = ""

    @property
    def classes(self) -> str:
        """Return the attribute of the head and of its cells."""
        return _class(" ".join(["mpc-text"] * self.is_text + [self.kind] * bool(self.kind)))


def table(
    heads: Sequence[Head],
    rows: Iterable[Sequence[str]],
    *,
    kind: str = "",
    caption: str = "",
    row_kinds: Sequence[str] = (),
) -> str:
    """Return a table that scrolls sideways where it is too wide.

    Parameters
    ----------
    heads : list of Head
    rows : list of lists
        Cells that are HTML already.
    kind : str
        Class of the table.
    caption : str
        What the table holds; shown above it.
    row_kinds : list of str
        For each row its class, "" for none.
    """
    top = "".join(f'<th scope="col"{head.classes}>{head.title}</th>' for head in heads)
    body = []
    for place, row in enumerate(rows):
        pairs = zip(heads, row, strict=True)
        cells = "".join(f"<td{head.classes}>{cell}</td>" for head, cell in pairs)
        body.append(f"<tr{_class(row_kinds[place] if row_kinds else '')}>{cells}</tr>")
    above = f'<caption dir="auto">{escape(caption)}</caption>' if caption else ""
    return (
        f'<div class="mpc-wide"><table{_class(kind)}>{above}<thead><tr>{top}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


class PageJSON(json.JSONEncoder):
    """JSON that can be put inside a script element: no text in it can end the element."""

    def encode(self, o: Any) -> str:
        """Return the value as JSON."""
        text = super().encode(o)
        for mark in "<>&":
            text = text.replace(mark, f"\\u{ord(mark):04x}")
        return text


def json_in_page(value: object) -> str:
    """Return JSON that can be put inside a script element."""
    return json.dumps(value, allow_nan=False, cls=PageJSON)


def can_draw() -> bool:
    """Whether vl-convert is here, which draws pictures and has the chart library."""
    return find_spec("vl_convert") is not None


def need_drawer() -> Any:
    """Return the package that draws pictures; the error says what to do without it."""
    if not can_draw():
        raise MpcError(
            "vl-convert-python must be installed to draw pictures. Run "
            'pip install vl-convert-python, or save the chart as ".html".'
        )
    import vl_convert

    return vl_convert


# Where the chart library comes from if it is not here: Altair's own place for it.
CHART_SERVER = "https://cdn.jsdelivr.net"


def fetched_library() -> tuple[str, ...]:
    """Return the addresses of Vega, Vega-Lite and Vega-Embed, in the versions of Altair."""
    import altair as alt

    versions = (
        ("vega", alt.VEGA_VERSION),
        ("vega-lite", alt.VEGALITE_VERSION),
        ("vega-embed", alt.VEGAEMBED_VERSION),
    )
    return tuple(f"{CHART_SERVER}/npm/{name}@{number}" for name, number in versions)


def chart_library(then: str, folder: Path | None = None) -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that fetches nothing.

    Parameters
    ----------
    then : str
        JavaScript to run once ``vegaEmbed`` is there.
    folder : pathlib.Path, optional
        Where the script is kept, since it takes two seconds to make; by default the user's cache.
        If that cannot be written, nothing is kept.
    """
    vl_convert = need_drawer()
    if folder is None:
        import pooch

        folder = Path(pooch.os_cache("mpc_lab"))
    made_of = f"{version('vl-convert-python')}{then}".encode()
    file = folder / f"vega-{hashlib.sha256(made_of).hexdigest()[:16]}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        kept = file.read_text("utf-8")
        # A file that was cut short does not end as the script does.
        if kept.endswith(_LIBRARY_END):
            return kept.removesuffix(_LIBRARY_END)
    code = str(vl_convert.javascript_bundle(then))
    with contextlib.suppress(OSError, MpcError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as part:
            part.write_text(code + _LIBRARY_END, "utf-8")
    return code
