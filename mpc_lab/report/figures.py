"""A chart in the page: drawn as SVG for print and for pages without scripts, and live.

The specification stands beside the drawing as data. Names from data occur in its data and titles
alone; it is read by an interpreter that has no way to run code.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING

from mpc_lab.charts.export import specification, svg_of
from mpc_lab.report.html import words

if TYPE_CHECKING:
    from mpc_lab.charts.theme import AnyChart

# Ids of clipping paths, which every drawing counts from 0.
_IDS = re.compile(r'(\bid="|="url\(#)(?=[A-Za-z_])')

_DRAW = """
const options = {ast: true, renderer: "svg", actions: false, defaultStyle: false};
for (const figure of document.querySelectorAll("figure.chart")) {
  const live = figure.querySelector(".live");
  const spec = JSON.parse(figure.querySelector("script").textContent);
  vegaEmbed(live, spec, options).then(
    () => figure.classList.add("drawn"),
    (error) => { live.remove(); console.error(error); },
  );
}
"""


def figure(chart: AnyChart, number: int) -> str:
    """Return a chart as HTML.

    Parameters
    ----------
    chart : altair chart
    number : int
        Counts the figures of a page, so that ids differ.
    """
    spec = specification(chart)
    static = _IDS.sub(rf"\1f{number}-", svg_of(spec))
    description = str(getattr(chart, "description", "") or "")
    return (
        f'<figure class="chart" role="img" aria-label="{words(description)}">'
        f'<div class="static">{static}</div><div class="live"></div>'
        f'<script type="application/json">{json_in_page(spec)}</script></figure>'
    )


def json_in_page(value: object) -> str:
    """Return JSON that may stand inside a script element: no text in it can end the element."""
    text = json.dumps(value, allow_nan=False)
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


@cache
def script() -> str:
    """Return the one script of a page: everything that draws charts, and a loop over them."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(_DRAW)
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
