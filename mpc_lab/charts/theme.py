"""What all charts share: their look, the words above them, what they take from an audit, and files.

A new chart is a file of this folder, its function marked ``@chart``, and a line in ``__init__``.

The background is transparent, and every colour has contrast on white and on near black, so that
one picture serves light and dark pages. Colours are those of the notebook view and of Okabe and
Ito's palette; a shape, a dash or a word always says the same again.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import altair as alt
import numpy as np
import pandas as pd
from altair import SCHEMA_VERSION, TopLevelMixin
from altair.utils.schemapi import SchemaValidationError

from mpc_lab.errors import MpcError, check_number, near_match
from mpc_lab.html import PageJSON, can_draw, need_drawer
from mpc_lab.pairing.terms import SIGN, terms_of
from mpc_lab.results.base import check_label, settings
from mpc_lab.results.summary import Cell, slices
from mpc_lab.results.wording import check_title, outcome_word
from mpc_lab.text import guard_count, middle_cut, percent, plain, quote, with_interval, wrap_evenly
from mpc_lab.vocabulary import DIRECTIONS, INCONCLUSIVE, VERDICTS, Verdict
from mpc_lab.writing import replacing, target_path

if TYPE_CHECKING:
    from mpc_lab.results import Audit


AnyChart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart
Kind = TypeVar("Kind", bound=AnyChart)

GREY = "#7a7a7a"
# Titles, names of rows and NDCG: the ink of the page where that is known, else a grey.
INK = "#757575"
# The threshold that is looked at, and nothing else.
ACCENT = "#7d5fc7"
# What is set beside a grey one: the new of two, a gap with others held fixed.
OTHER = "#00808c"
# Where the page behind a chart is known, its colours have full contrast: by the theme, what each
# colour of a drawing becomes. Pages of the report have the same in their style sheet.
ON_LIGHT = {GREY: "#5c636d", INK: "#1c1e21", OTHER: "#007782", "#009e73": "#007a58"}
ON_DARK = {
    GREY: "#a9b0ba",
    INK: "#e6e8eb",
    ACCENT: "#b9a4f4",
    "#b4500f": "#ee8c4d",
    "#1f6bb8": "#6fb0f2",
    OTHER: "#4cbfcb",
    "#009e73": "#3fc79a",
}
PAGES = {"light": "#ffffff", "dark": "#15171a"}
UNDERVALUED, OVERVALUED = (VERDICTS[name].colour for name in DIRECTIONS)
# Series that are not a verdict: neither orange nor blue, nor the green of what is within tolerance.
SERIES = (GREY, OTHER, "#6b7d2a", "#c0699b", "#a08a00")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
WIDTH, HEIGHT = 540, 260
# Characters in the name of a row.
NAME_AT_MOST = 24
# Pixels of a row of names, of one where there are very many, and of all rows together at least.
ROW, LOW_ROW, ROWS_AT_LEAST = 24, 16, 140
_MANY_ROWS = 60
# Pixels of all words but titles.
TYPE = 12.5
EPSILON_TITLE = "ε, the largest distance in score of a pair (units of the score)"
_FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif"
_AXIS_NAME = 36
_HELD = re.compile(r"\b(ε|α\*?|p) = ")
_TITLE_CHARACTER, _SUBTITLE_CHARACTER = 8.2, 6.7


def outcome_title(audit: Audit) -> str:
    """Return what the outcome is called on an axis; a long name loses its middle."""
    return cut_outcome(outcome_word(settings(audit)))


def cut_outcome(name: str) -> str:
    """Return the name of an outcome short enough for an axis."""
    shown, half = plain(name), _AXIS_NAME // 2
    return shown if len(shown) <= _AXIS_NAME else f"{shown[: half - 1]}…{shown[-half:]}"


def gap_title(audit: Audit, of: str = "gap") -> str:
    """Return the title of an axis of gaps: what they are gaps in.

    Parameters
    ----------
    audit : Audit
    of : str
        What is drawn, such as the standard error of the gap.
    """
    outcome = outcome_title(audit)
    signed = terms_of(settings(audit)).contrast == SIGN
    return f"{of} in the sign of {outcome}" if signed else f"{of} in {outcome}"


def finish(chart: Kind, title: str, subtitle: Sequence[str], width: int = WIDTH) -> Kind:
    """Return a chart with its finding above it and the theme on it.

    Parameters
    ----------
    chart : altair chart
    title : str
        The finding, in one sentence; plain text.
    subtitle : list of str
        What is drawn: interval, level, threshold; a new line each.
    width : int
        Width of the drawing in pixels, which the words are broken to.
    """
    heading = alt.TitleParams(
        text=_broken([title], width / _TITLE_CHARACTER),
        subtitle=_broken(subtitle, width / _SUBTITLE_CHARACTER),
        anchor="start",
        frame="bounds",
        offset=12,
    )
    made = chart.properties(
        title=heading,
        description=" ".join([title, *subtitle]),
        background="transparent",
        autosize=alt.AutoSizeParams(type="pad", resize=True),
        # The words as they are, for a page that breaks lines itself.
        usermeta={"mpc": {"title": title, "subtitle": [line for line in subtitle if line]}},
    )
    themed: Kind = made.configure(**_config())
    return themed


def add_title(chart: Kind, about: str) -> Kind:
    """Return a chart of :func:`finish` that says first what it is about."""
    made: Any = chart.copy()
    made.title.text = [about, *made.title.text]
    words = dict(made.usermeta["mpc"])
    made.usermeta = {"mpc": {**words, "title": f"{about}. {words['title']}"}}
    made.description = f"{about}. {made.description}"
    titled: Kind = made
    return titled


def drop_line(chart: AnyChart, width: int) -> AnyChart:
    """Return a chart of :func:`finish` without its second line, which the page says itself."""
    made: Any = chart.copy()
    words = dict(made.usermeta["mpc"])
    words["subtitle"] = words["subtitle"][1:]
    made.title.subtitle = _broken(words["subtitle"], width / _SUBTITLE_CHARACTER)
    made.usermeta = {"mpc": words}
    dropped: AnyChart = made
    return dropped


def _broken(lines: Sequence[str], width: float) -> list[str]:
    wide = max(int(width), 40)
    # "ε = 0.01" and "95 %" stay in one line.
    whole = [_HELD.sub(r"\1\0=\0", line).replace(" %", "\0%") for line in lines if line]
    return [part.replace("\0", " ") for line in whole for part in wrap_evenly(line, wide)]


def config() -> dict[str, Any]:
    """Return the look as the plain ``config`` of a specification."""
    plain: dict[str, Any] = alt.Config(**_config()).to_dict()
    return plain


def _config() -> dict[str, Any]:
    words: dict[str, Any] = {
        "labelColor": GREY,
        "titleColor": GREY,
        "labelFont": _FONT,
        "titleFont": _FONT,
    }
    return {
        "font": _FONT,
        "padding": 10,
        "view": alt.ViewConfig(stroke=None),
        "title": alt.TitleConfig(
            color=INK,
            subtitleColor=GREY,
            fontSize=14.5,
            fontWeight="bold",
            subtitleFontSize=TYPE,
            subtitlePadding=5,
            subtitleLineHeight=17,
        ),
        "axis": alt.AxisConfig(
            **words,
            domainColor=GREY,
            tickColor=GREY,
            gridColor=GREY,
            gridOpacity=0.18,
            labelFontSize=TYPE,
            titleFontSize=TYPE,
            titleFontWeight="normal",
            labelLimit=280,
            # The label of an end is below its tick, as others are.
            labelFlush=False,
        ),
        # Labels that touch are one long number.
        "axisX": alt.AxisConfig(labelSeparation=8),
        "legend": alt.LegendConfig(
            **words,
            labelFontSize=TYPE,
            titleFontSize=TYPE,
            titleFontWeight="normal",
            labelLimit=200,
            symbolOpacity=1,
        ),
        "header": alt.HeaderConfig(**words, labelFontSize=TYPE, titleFontSize=TYPE, labelLimit=200),
        "text": alt.MarkConfig(color=GREY, fontSize=TYPE),
        "rule": alt.MarkConfig(color=GREY),
    }


def layered(*marks: Any) -> alt.LayerChart:
    """Return marks on top of each other, the last one uppermost."""
    return alt.LayerChart(layer=list(marks))


def stacked(*panels: alt.LayerChart, spacing: int = 10) -> alt.VConcatChart:
    """Return panels below each other on one horizontal scale."""
    made: alt.VConcatChart = alt.vconcat(*panels, spacing=spacing).resolve_scale(x="shared")
    return made


def short_names(groups: Sequence[str], at_most: int = NAME_AT_MOST) -> dict[str, str]:
    """Return all groups of an audit with their names on rows, the same on each of its charts."""
    return dict(zip(groups, middle_cut(groups, at_most), strict=True))


def zero_line(axis: str = "y") -> alt.Chart:
    """Return the line at 0, which means no gap."""
    return reference_line(0.0, axis)


def reference_line(value: float, axis: str, dashed: bool = False) -> alt.Chart:
    """Return a grey line across the drawing at a value of the axis ``x`` or ``y``."""
    channel = {axis: alt.datum(value)}
    mark = alt.Chart(pd.DataFrame({"one": [1]})).mark_rule(
        color=GREY, strokeDash=[4, 3] if dashed else [1, 0], strokeWidth=1.2
    )
    line: alt.Chart = mark.encode(**channel)
    return line


def name_rows(field: str, **axis: Any) -> alt.Y:
    """Return an axis with a row for each name, in the order of the column ``place``."""
    order = alt.EncodingSortField("place", op="min")
    look = {"grid": False, "labelColor": INK, "labelOverlap": False, **axis}
    return alt.Y(f"{field}:N", title=None, sort=order, axis=alt.Axis(**look))


def rows_high(count: int, row: int = ROW) -> alt.Step:
    """Return the height of this many rows of names: a few are not drawn in a sliver."""
    row = row if count <= _MANY_ROWS else min(row, LOW_ROW)
    # Rows of names, not the marks beside each other in one row.
    return alt.Step(max(row, math.ceil(ROWS_AT_LEAST / max(count, 1))), **{"for": "position"})


def verdict_colour(**options: Any) -> alt.Color:
    """Return the colour of verdicts, from a column ``verdict``."""
    colours = [verdict.colour for verdict in VERDICTS.values()]
    scale = alt.Scale(domain=list(VERDICTS), range=colours)
    return alt.Color("verdict:N", scale=scale, **options)


def verdict_shape(**options: Any) -> alt.Shape:
    """Return the shape of verdicts, from a column ``verdict``."""
    shapes = [verdict.shape for verdict in VERDICTS.values()]
    scale = alt.Scale(domain=list(VERDICTS), range=shapes)
    return alt.Shape("verdict:N", scale=scale, **options)


def threshold_axis(largest: float, smallest: float, room: float = 0.0) -> dict[str, Any]:
    """Return scale and axis for thresholds, which are spread over decades and may be 0.

    ``room`` is the space left of 0, as a multiple of the smallest threshold.
    """
    at = 10.0**-12
    values = [0.0]
    while at <= largest * 1.001:
        if at >= smallest * 0.999:
            values.append(float(f"{at:.3g}"))
        at *= 10
    if largest > 1.5 * values[-1]:
        values.append(float(f"{largest:.2g}"))
    scale = alt.Scale(
        type="symlog", constant=smallest, domain=[-room * smallest, largest], nice=False
    )
    axis = alt.Axis(values=values, format="~g", grid=True, labelOverlap=True)
    return {"scale": scale, "axis": axis}


def threshold_ends(largest: float, smallest: float) -> list[float]:
    """Return two ticks for a small panel of thresholds: powers of 10 near its ends."""
    top = 10.0 ** math.floor(math.log10(largest))
    bottom = 10.0 ** math.ceil(math.log10(smallest))
    return sorted({float(f"{value:.3g}") for value in (bottom, top) if value <= largest})


def gap_ticks(low: float, high: float, at_most: int) -> list[float]:
    """Return round ticks of a scale that holds 0, with 0 among them.

    Examples
    --------
    >>> gap_ticks(-0.1, 0.45, 4)
    [0.0, 0.2, 0.4]
    """
    if low == high == 0:
        return [0.0]
    width = (high - low) / max(at_most, 1)
    power = 10.0 ** math.floor(math.log10(width)) if width > 0 else 1.0
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= width * 0.999)
    # 0 alone would not say how wide the scale is.
    while step > max(high, -low):
        step /= 2
    first, last = math.ceil(low / step), math.floor(high / step)
    return [float(f"{k * step:.6g}") for k in range(first, last + 1)]


_COLUMNS = {
    "gap": "estimate",
    "low": "ci_low",
    "high": "ci_high",
    "std_error": "std_error",
    "dof": "dof",
    "pairs": "n_pairs",
}


def find_cell(audit: Audit, group: str, rule: str, mode: str) -> Cell:
    """Return one cell of the headline, or say which names there are."""
    check_label("group", group, audit.groups)
    check_label("scoring_rule", rule, audit.headline["scoring_rule"].values.tolist())
    check_label("pairing_mode", mode, audit.headline["pairing_mode"].values.tolist())
    part = next(one for one in slices(audit) if (one.rule, one.mode) == (rule, mode))
    return next(cell for cell in part.cells if cell.group == group)


def verdict_of(audit: Audit, group: str, rule: str) -> Verdict:
    """Return the verdict that leads under a rule, whose colour and mark a group is drawn in."""
    cells = [cell for part in slices(audit) if part.rule == rule for cell in part.cells]
    own = next((cell.verdict for cell in cells if cell.group == group), INCONCLUSIVE)
    return VERDICTS[own]


def curve_frame(audit: Audit, group: str, rule: str, mode: str) -> pd.DataFrame:
    """Return the curve of a cell, a row for each threshold."""
    curve = audit.curve_of(group, rule, mode)
    columns = {shown: curve[own].values for shown, own in _COLUMNS.items()}
    frame = pd.DataFrame({"epsilon": curve["epsilon"].values, **columns})
    # A picture leaves the screen, and what its tooltips say goes with it.
    frame["queries"] = [guard_count(count) for count in curve["n_queries"].values.tolist()]
    for end in ("band_low", "band_high"):
        frame[end] = curve[end].values if end in curve else np.nan
    frame["interval"] = intervals(frame, "gap", "low", "high")
    frame["band"] = intervals(frame, "gap", "band_low", "band_high")
    frame.attrs["rule"] = rule
    return frame


def intervals(frame: pd.DataFrame, *columns: str) -> list[str]:
    """Return, for each row, a number with its interval: the columns of its value and ends."""
    rows = frame[list(columns)].itertuples(index=False)
    return [with_interval(*map(float, row)) for row in rows]


def threshold_range(frame: pd.DataFrame, headline: float) -> tuple[float, float]:
    """Return the largest threshold and the smallest above 0 that has pairs."""
    used = frame.loc[(frame["pairs"] > 0) & (frame["epsilon"] > 0), "epsilon"].tolist()
    used += [headline] if math.isfinite(headline) and headline > 0 else []
    return (max(used), min(used)) if used else (1.0, 0.001)


def is_clear_but_open(cell: Cell) -> bool:
    """Whether an interval leaves out 0 and the verdict is inconclusive for another reason."""
    return cell.verdict == INCONCLUSIVE and (cell.low > 0 or cell.high < 0)


def explain_hollow(cells: Sequence[Cell]) -> list[str]:
    """Return the subtitle line that explains hollow marks; an empty list if there are none."""
    reasons = {cell.reason for cell in cells if is_clear_but_open(cell)}
    if not reasons:
        return []
    why = ", ".join(sorted(reasons))
    return [f"Hollow mark: the interval excludes 0, yet there is no direction ({why})"]


def level_of(audit: Audit) -> str:
    """Return the level of an audit's intervals, as a percentage."""
    return percent(float(settings(audit).get("level", 0.95)))


def of_rule(rule: str, mode: str) -> str:
    """Return which pairs a chart shows, unless they are the usual ones."""
    under = "" if rule == "baseline" else f", scores of rule {quote(rule)}"
    return f"{mode} pairs{under}"


# ---- charts by their names, and as files that need no network: PNG, SVG, or a page

_LARGEST_SCALE = 20
_KINDS = (".png", ".svg", ".pdf", ".html")
# No entry of the menu leads to a page on the network.
_ACTIONS = {"export": True, "source": False, "compiled": False, "editor": False}
_EMBED = {"renderer": "svg", "actions": _ACTIONS}


Given = ParamSpec("Given")

CHARTS: dict[str, Callable[..., AnyChart]] = {}


def chart(make: Callable[Given, Kind]) -> Callable[Given, Kind]:
    """Register a function of an audit as the chart of its own name.

    The chart then also takes ``title=``, which says above it what it is about.
    """

    @functools.wraps(make)
    def titled(*given: Any, title: str | None = None, **options: Any) -> Any:
        drawn: Any = make(*given, **options)
        about = check_title(title)
        return add_title(drawn, about) if about else drawn

    CHARTS[make.__name__] = titled
    return cast(Callable[Given, Kind], titled)


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
        Ends in ``.png``, ``.svg``, ``.pdf`` or ``.html``.
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
        elif kind == ".pdf":
            drawn = pdf(chart, background or "white")
        elif kind == ".svg":
            plain = svg_of(chart.to_dict())
            drawn = (plain if background else adapting(plain)).encode()
        else:
            drawn = page(chart).encode()
    except (SchemaValidationError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise MpcError(f"The chart cannot be drawn: {reason}.") from error
    with replacing(path) as part:
        part.write_bytes(drawn)
    return file


def png(chart: AnyChart, scale: float = 2.0, background: str = "white") -> bytes:
    """Return a chart drawn as a PNG."""
    # Half transparent areas lose their colour on a PNG without background.
    vl_convert = need_drawer()
    spec = chart.properties(background=background).to_dict()
    if background == "white":
        spec = recoloured(spec, ON_LIGHT)
    return bytes(vl_convert.vegalite_to_png(spec, vl_version=_vega_lite(), scale=scale))


def pdf(chart: AnyChart, background: str = "white") -> bytes:
    """Return a chart drawn as one page of PDF."""
    vl_convert = need_drawer()
    spec = chart.properties(background=background).to_dict()
    if background == "white":
        spec = recoloured(spec, ON_LIGHT)
    return bytes(vl_convert.vegalite_to_pdf(spec, vl_version=_vega_lite()))


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
    return str(need_drawer().vegalite_to_svg(spec, vl_version=_vega_lite()))


def recoloured(spec: dict[str, Any], colours: dict[str, str]) -> dict[str, Any]:
    """Return a specification with other colours; data and titles stay as they are."""

    def walk(part: Any) -> Any:
        if isinstance(part, dict):
            kept = ("datasets", "usermeta", "text", "subtitle")
            return {
                k: v if k in kept and not isinstance(v, dict) else walk(v) for k, v in part.items()
            }
        if isinstance(part, list):
            return [walk(one) for one in part]
        return colours.get(part, part) if isinstance(part, str) else part

    data = spec.get("datasets", {})
    return {**walk({k: v for k, v in spec.items() if k != "datasets"}), "datasets": data}


def adapting(picture: str) -> str:
    """Return an SVG whose colours follow the light or dark theme of whoever looks at it."""
    light, dark = (_rules(colours) for colours in (ON_LIGHT, ON_DARK))
    style = f"<style>{light}@media (prefers-color-scheme: dark){{{dark}}}</style>"
    head, mark, rest = picture.partition(">")
    return f"{head}{mark}{style}{rest}"


def _rules(colours: dict[str, str]) -> str:
    ways = ("fill", "stroke")
    return "".join(
        f'[{way}="{old}"]{{{way}:{new}}}' for old, new in colours.items() for way in ways
    )


def _vega_lite() -> str:
    return ".".join(SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def page(chart: AnyChart) -> str:
    """Return a page that draws a chart, with all scripts inside where they are here."""
    how: dict[str, Any] = {"embed_options": _EMBED, "json_kwds": {"cls": PageJSON}}
    return str(chart.to_html(inline=can_draw(), **how))
