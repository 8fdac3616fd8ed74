"""Names that a page, a drawing, an expression, a terminal or a spreadsheet could obey.

All tests of such names share them, and the log whose groups have them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

BROKEN = "line\nbreak"
LONG = "x" * 200
# Each sets window.obeyed, or asks for something outside, if anything takes it for code. One of each
# kind; the first six can be shown as they are.
HOSTILE = (
    "</script><script>window.obeyed=1</script>",
    "<img src=x onerror='window.obeyed=1'>",
    "a'b\"c&d\\",
    "datum.group ? 1 : 2",
    "${window.obeyed=1} {{ 1 + 1 }} $x^2$",
    "😀 עברית",
    "a\x01control",
    BROKEN,
    LONG,
    f"{LONG}y",
)
CORPUS = (
    *HOSTILE,
    "<script>window.obeyed=1</script>",
    "</style><script>window.obeyed=1</script>",
    "</title><script>window.obeyed=1</script>",
    "</svg><script>window.obeyed=1</script>",
    "</text><script>window.obeyed=1</script>",
    "</math><script>window.obeyed=1</script>",
    "<img src=http://outside.example/x.png>",
    "<svg onload=window.obeyed=1>",
    "<svg><script>window.obeyed=1</script></svg>",
    "<svg><a xlink:href='javascript:window.obeyed=1'><text>x</text></a></svg>",
    "<iframe srcdoc='<script>parent.obeyed=1</script>'></iframe>",
    "<iframe src=javascript:window.obeyed=1>",
    "<body onload=window.obeyed=1>",
    "<details open ontoggle=window.obeyed=1>",
    "<input autofocus onfocus=window.obeyed=1>",
    "<link rel=stylesheet href=http://outside.example/x.css>",
    "<meta http-equiv=refresh content='0;url=http://outside.example/'>",
    "<base href=http://outside.example/>",
    "<form action=http://outside.example/><button>go</button></form>",
    "<object data=http://outside.example/x.swf></object>",
    "<style>@import 'http://outside.example/x.css';</style>",
    "<math><mtext><script>window.obeyed=1</script></mtext></math>",
    "<!--<script>window.obeyed=1</script>-->",
    "--><script>window.obeyed=1</script>",
    "]]><script>window.obeyed=1</script>",
    '"><script>window.obeyed=1</script>',
    "'><script>window.obeyed=1</script>",
    '" onmouseover="window.obeyed=1" x="',
    "' onmouseover='window.obeyed=1' x='",
    "javascript:window.obeyed=1",
    "data:text/html,<script>window.obeyed=1</script>",
    "&lt;script&gt;window.obeyed=1&lt;/script&gt;",
    "&#60;script&#62;window.obeyed=1&#60;/script&#62;",
    "\\u003cscript\\u003ewindow.obeyed=1\\u003c/script\\u003e",
    "${window.obeyed=1}",
    "{{constructor.constructor('window.obeyed=1')()}}",
    "datum['x']); window.obeyed=1; (",
    "'+(window.obeyed=1)+'",
    "signal: event.view.eval('window.obeyed=1')",
    "url(http://outside.example/x.png)",
    "url(#f1-clip0)",
    'id="f1-clip0"',
    "[x](javascript:window.obeyed=1)",
    "![x](http://outside.example/x.png)",
    "`window.obeyed=1`",
    "| a | b |",
    "http://outside.example/",
    '=HYPERLINK("http://outside.example")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\x1b]0;title\x07\x1b[2J",
    "[red]markup[/red]",
    "\u202egnirts\u202c",
    "line\nbreak\r\ttab",
    "עברית",
    "x" * 300,
)


COLUMNS = {name: name for name in ("query", "item", "score", "outcome", "group")}
# Columns with such names, for :func:`with_hostile_columns`.
HOSTILE_COLUMNS = {
    "query": "<b>query",
    "item": "item|x",
    "score": "score",
    "outcome": "outcome",
    "group": "</script>group",
}


def log(
    groups: Sequence[str] = HOSTILE,
    queries: int = 200,
    items: int = 12,
    *,
    better: Collection[int] = (-1,),
    lift: float = 0.4,
    seed: int = 0,
) -> dict[str, Any]:
    """Return a log whose rows carry the groups in turn; those ``better`` are undervalued."""
    draw = np.random.default_rng(seed)
    n = queries * items
    score, at = draw.uniform(size=n), draw.integers(0, len(groups), n)
    raised = np.isin(at, [place % len(groups) for place in better])
    return {
        "query": np.repeat(np.arange(queries), items),
        "item": draw.integers(0, 400, n) * items + np.tile(np.arange(items), queries),
        "score": score,
        "outcome": (draw.uniform(size=n) < score + lift * raised).astype(float),
        "group": np.array(groups, dtype=object)[at],
    }


def with_hostile_columns(rows: dict[str, Any]) -> dict[str, Any]:
    """Return the rows with columns, queries and items of such names too."""
    rows = {
        **rows,
        "query": np.array([f"<i>q{k}" for k in rows["query"]], dtype=object),
        "item": np.array([f"<u>{k}" for k in rows["item"]], dtype=object),
    }
    return {HOSTILE_COLUMNS[name]: values for name, values in rows.items()}
