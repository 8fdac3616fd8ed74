"""Names that a page, a drawing, an expression, a terminal or a spreadsheet could obey."""

from __future__ import annotations

import numpy as np

# Each sets window.obeyed, or asks for something outside, if anything takes it for code.
CORPUS = (
    "<script>window.obeyed=1</script>",
    "</script><script>window.obeyed=1</script>",
    "</style><script>window.obeyed=1</script>",
    "</title><script>window.obeyed=1</script>",
    "</svg><script>window.obeyed=1</script>",
    "</text><script>window.obeyed=1</script>",
    "</math><script>window.obeyed=1</script>",
    "<img src=x onerror=window.obeyed=1>",
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
    "datum.group ? 1 : 2",
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


def log(groups=CORPUS, queries=200, items=24, seed=0):
    """Return a log in which every second group does better than its scores say."""
    draw = np.random.default_rng(seed)
    n = queries * items
    score = np.round(draw.uniform(size=n), 3)
    group = draw.integers(0, len(groups), n)
    better = np.where(group % 2 == 0, 0.6, 0.0)
    names = np.array(groups, dtype=object)
    return {
        "<b>query": np.array([f"<i>q{k}" for k in range(queries)], dtype=object).repeat(items),
        "item|x": np.array([f"<u>{k}" for k in range(n)], dtype=object),
        "score": score,
        "outcome": (draw.uniform(size=n) < score * 0.4 + better).astype(float),
        "</script>group": names[group],
    }


COLUMNS = {
    "query": "<b>query",
    "item": "item|x",
    "score": "score",
    "outcome": "outcome",
    "group": "</script>group",
}
