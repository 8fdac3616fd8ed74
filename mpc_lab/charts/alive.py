"""Pictures whose ε can be moved in a page without a kernel, such as a report."""

from __future__ import annotations

import math
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from mpc_lab.charts.overview import by_gap
from mpc_lab.charts.theme import ON_DARK, ON_LIGHT, specification
from mpc_lab.html import chart_library, escape, json_in_page
from mpc_lab.results.summary import slices
from mpc_lab.text import name

if TYPE_CHECKING:
    from mpc_lab.charts.theme import AnyChart
    from mpc_lab.results import Audit

# Where a figure that is kept in a file has its picture.
PICTURE = "<!-- picture -->"
_LIMIT = 60
# How pages of nbconvert, and pages of the docs, mark themselves as dark.
_DARK = ('[data-jp-theme-light="false"]', '[data-theme="dark"]')


def code() -> str:
    """Return the script that draws all figures of a page once the chart library is there."""
    return files("mpc_lab.charts").joinpath("alive.js").read_text("utf-8")


def style() -> str:
    """Return the style of a rail."""
    return files("mpc_lab.charts").joinpath("alive.css").read_text("utf-8")


def script() -> str:
    """Return the chart library and :func:`code` as text that can be inside a script element."""
    return chart_library(code()).replace("</script", "<\\/script").replace("<!--", "<\\!--")


def colours() -> str:
    """Return the style that gives drawings the ink of a light or a dark page."""
    light = _rules("figure.chart", ON_LIGHT)
    return light + "".join(_rules(f"{dark} figure.chart", ON_DARK) for dark in _DARK)


def _rules(scope: str, inks: dict[str, str]) -> str:
    return "".join(
        f'{scope} svg [{way}="{old}"]{{{way}:{new}}}'
        for old, new in inks.items()
        for way in ("fill", "stroke")
    )


def rail_of(audit: Audit, link: str) -> dict[str, Any]:
    """Return what a rail for ε shows: the steps, and the pairs of each row at each of them.

    Parameters
    ----------
    audit : Audit
    link : str
        Figures with the same link move together.

    Returns
    -------
    dict
        ``steps``; ``names`` of the rows of :func:`overview` in their order; ``called``, the names
        as they are shown; ``own``, the threshold of each verdict, None without a pair;
        ``own_pairs``; ``pairs``, a list for each row.
    """
    part = slices(audit)[0]
    cells = by_gap(part.cells[:_LIMIT])
    make_curves(audit)
    curves = [audit.curve_of(cell.group, part.rule, part.mode) for cell in cells]
    return {
        "link": link,
        "steps": audit.grid.tolist(),
        "names": [cell.group for cell in cells],
        "called": [name(cell.group) for cell in cells],
        "own": [cell.epsilon if math.isfinite(cell.epsilon) else None for cell in cells],
        "own_pairs": [cell.pairs for cell in cells],
        "pairs": [curve["n_pairs"].values.tolist() for curve in curves],
    }


def make_curves(audit: Audit) -> None:
    """Make all curves that a rail and its overview need, in one walk of the log."""
    part = slices(audit)[0]
    audit._make_curves([cell.group for cell in part.cells[:_LIMIT]], part.rule)


def figure(
    chart: AnyChart,
    drawn: str,
    rail: dict[str, Any] | None = None,
    caption: str = "",
    spec: dict[str, Any] | None = None,
) -> str:
    """Return a figure of a page: a picture that stays where no script runs, and the live one.

    Parameters
    ----------
    chart : altair chart
    drawn : str
        HTML of the picture; empty where nothing is installed that can draw it.
    rail : dict, optional
        What :func:`rail_of` returns, for a chart that is drawn with ``live=True``.
    caption : str
        The words below the figure.
    spec : dict, optional
        The specification of the chart, where it is known already.
    """
    said = escape(getattr(chart, "description", "") or "")
    told = (
        f'<script type="application/json" class="told">{json_in_page(rail)}</script>'
        if rail
        else ""
    )
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    # For a screen reader, a picture that can be moved is more than an image.
    role = "group" if rail else "img"
    return (
        f'<figure class="chart" role="{role}" aria-label="{said}">'
        f'<div class="static">{drawn}</div><div class="live"></div>'
        f'<script type="application/json">{json_in_page(spec or specification(chart))}</script>'
        f"{told}{below}</figure>"
    )
