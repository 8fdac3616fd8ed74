"""Charts as files that need no network: PNG, SVG, and a page with everything inside."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

from altair import SCHEMA_VERSION, TopLevelMixin
from altair.utils.schemapi import SchemaValidationError

from mpc_lab.arguments import as_number
from mpc_lab.charts.theme import AnyChart
from mpc_lab.errors import MpcError
from mpc_lab.writing import replacing, target_path

_LARGEST_SCALE = 20
_KINDS = (".png", ".svg", ".html")
# No entry of the menu leads to a page on the network.
_ACTIONS = {"export": True, "source": False, "compiled": False, "editor": False}
_EMBED = {"renderer": "svg", "actions": _ACTIONS}


class _Inside(json.JSONEncoder):
    """JSON that may stand in a page: no name from data can end the script it is in."""

    def encode(self, o: Any) -> str:
        return super().encode(o).replace("<", "\\u003c").replace(">", "\\u003e")


def save(
    chart: AnyChart,
    path: str | os.PathLike[str],
    *,
    scale: float = 2.0,
    background: str | None = None,
) -> Path:
    """Write a chart to a file that needs nothing else when it is opened.

    Parameters
    ----------
    chart : altair chart
    path : path
        Ends in ``.png``, ``.svg`` or ``.html``.
    scale : float
        Pixels of a PNG for each unit of the drawing.
    background : str, optional
        A colour. By default white for PNG, and none, which shows the page behind, for the others.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> path = mpc.charts.save(mpc.charts.forest(audit), "forest.svg")  # doctest: +SKIP
    """
    if not isinstance(chart, TopLevelMixin):
        raise MpcError(
            f"A chart of mpc.charts, or another one of Altair's, can be saved, but "
            f"{type(chart).__name__} came."
        )
    file = target_path(path, "A chart")
    kind = file.suffix.lower()
    if kind not in _KINDS:
        raise MpcError(
            f"A chart is saved to a path that ends in {', '.join(_KINDS)}, but {file.name!r} came: "
            "name the file after one of these."
        )
    if not 0 < as_number(scale) <= _LARGEST_SCALE:
        raise MpcError(
            f"scale must be a number above 0 and at most {_LARGEST_SCALE}, not {scale!r}."
        )
    if background is not None:
        if not isinstance(background, str) or not background.isprintable():
            raise MpcError(
                f"background must be a colour, such as 'white' or '#fff', not {background!r}."
            )
        chart = chart.properties(background=background)
    try:
        if kind == ".png":
            drawn = png(chart, scale, background or "white")
        else:
            drawn = (svg_of(chart.to_dict()) if kind == ".svg" else page(chart)).encode()
    except (SchemaValidationError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise MpcError(f"The chart cannot be drawn: {reason}.") from error
    with replacing(path, "A chart") as part:
        part.write_bytes(drawn)
    return file


def png(chart: AnyChart, scale: float = 2.0, background: str = "white") -> bytes:
    """Return a chart drawn as a PNG."""
    # Half transparent areas lose their colour on a PNG without background.
    drawn = io.BytesIO()
    chart.properties(background=background).save(drawn, format="png", scale_factor=scale)
    return drawn.getvalue()


def svg(chart: AnyChart) -> str:
    """Return a chart drawn as SVG."""
    return svg_of(specification(chart))


def specification(chart: AnyChart) -> dict[str, Any]:
    """Return what a chart consists of, as Vega-Lite has it."""
    # Altair checks each part against its schema, which takes longer than drawing it; these charts
    # are our own.
    plain: dict[str, Any] = chart.to_dict(validate=False)
    return plain


def svg_of(spec: dict[str, Any]) -> str:
    """Return a specification drawn as SVG."""
    import vl_convert

    version = ".".join(SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return str(vl_convert.vegalite_to_svg(spec, vl_version=version))


def page(chart: AnyChart) -> str:
    """Return a page that draws a chart, with all scripts inside."""
    return str(chart.to_html(inline=True, embed_options=_EMBED, json_kwds={"cls": _Inside}))
