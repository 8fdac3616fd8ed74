"""Charts by their names, and as files that need no network: PNG, SVG, or a page.

A new chart is a file of this folder, its function marked ``@chart``, and a line in ``__init__``.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from altair import SCHEMA_VERSION, TopLevelMixin
from altair.utils.schemapi import SchemaValidationError

from mpc_lab.charts.theme import AnyChart
from mpc_lab.errors import MpcError, check_number, near_match
from mpc_lab.html import PageJSON
from mpc_lab.writing import replacing, target_path

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_LARGEST_SCALE = 20
_KINDS = (".png", ".svg", ".html")
# No entry of the menu leads to a page on the network.
_ACTIONS = {"export": True, "source": False, "compiled": False, "editor": False}
_EMBED = {"renderer": "svg", "actions": _ACTIONS}


Given = ParamSpec("Given")
Drawn = TypeVar("Drawn", bound=AnyChart)

CHARTS: dict[str, Callable[..., AnyChart]] = {}


def chart(make: Callable[Given, Drawn]) -> Callable[Given, Drawn]:
    """Register a function of an audit as the chart of its own name."""
    CHARTS[make.__name__] = make
    return make


def draw(name: str, audit: Audit, *given: object, **options: object) -> AnyChart:
    """Draw the chart of that name.

    Parameters
    ----------
    name : str
        One of ``mpc.charts.CHARTS``.
    audit : Audit
    *given, **options
        The chart's further arguments.

    Returns
    -------
    altair chart

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> mpc.charts.draw("power", audit, "1").to_dict() == mpc.charts.power(audit, "1").to_dict()
    True
    """
    if name not in CHARTS:
        raise MpcError(f"name must be a chart; got {name!r}.{near_match(name, CHARTS)}")
    return CHARTS[name](audit, *given, **options)


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
            f"chart must be a chart of mpc.charts or of Altair; got {type(chart).__name__}."
        )
    file = target_path(path)
    kind = file.suffix.lower()
    if kind not in _KINDS:
        raise MpcError(f"path must end in {', '.join(_KINDS)}; got {file.name!r}.")
    check_number("scale", scale, above=0, at_most=_LARGEST_SCALE)
    if background is not None:
        if not isinstance(background, str) or not background.isprintable():
            raise MpcError(
                f"background must be a colour, such as 'white' or '#fff'; got {background!r}."
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
    with replacing(path) as part:
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
    return str(chart.to_html(inline=True, embed_options=_EMBED, json_kwds={"cls": PageJSON}))
