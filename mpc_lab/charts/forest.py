"""The gap of every group with its interval and verdict, a column for each scoring rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from mpc_lab.charts import theme
from mpc_lab.charts.overview import by_gap, gap_range
from mpc_lab.charts.theme import chart, level_of
from mpc_lab.errors import check_count, check_flag
from mpc_lab.results.base import check_label, settings
from mpc_lab.results.summary import (
    Cell,
    Slice,
    decimals_of,
    finding_title,
    interval_word,
    slices,
    why_not,
)
from mpc_lab.text import (
    beside,
    between,
    guard_count,
    labels,
    p_value,
    plain,
    with_interval,
)
from mpc_lab.vocabulary import NOT_ESTIMABLE, VERDICTS

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_COLUMNS_WIDE = {1: 460, 2: 300, 3: 220}
_TICK_WIDE = 62
_BETWEEN = 34  # the labels of two ends fit there, half of each


@chart
def forest(
    audit: Audit,
    pairing_mode: str | None = None,
    limit: int = 150,
    *,
    scoring_rule: str | None = None,
    live: bool = False,
) -> alt.LayerChart | alt.FacetChart:
    """Draw the gap of every group with its verdict and the adjusted bracket that this rests on.

    Groups are sorted by gap, as in the overview. With several scoring rules each has its column.
    The scale holds the interval of every undervalued and overvalued group; another that leaves the
    drawing ends in an arrow.

    Parameters
    ----------
    audit : Audit
    pairing_mode : str, optional
        By default the one declared before the run, else the first that was asked for.
    limit : int
        At most this many groups, those with a finding first.
    scoring_rule : str, optional
        Only this rule; by default all, each in its column.
    live : bool
        With the parameters of a chart on a page: a click on a row selects its ``place`` as
        ``pick``, and the row whose place is ``chosen`` is shaded.

    Returns
    -------
    altair chart
    """
    limit = check_count("limit", limit)
    parts = slices(audit)
    mode = parts[0].mode if pairing_mode is None else pairing_mode
    check_label("pairing_mode", mode, sorted({part.mode for part in parts}))
    parts = [part for part in parts if part.mode == mode]
    if scoring_rule is not None:
        check_label("scoring_rule", scoring_rule, [part.rule for part in parts])
        parts = [part for part in parts if part.rule == scoring_rule]
    frame, scale = _frame(audit.groups, parts, limit)
    width = _COLUMNS_WIDE.get(len(parts), 180)
    high = theme.rows_high(frame["place"].nunique())
    layers = _layers(
        scale, _tolerance(audit), theme.gap_title(audit), check_flag("live", live), width, frame
    ).properties(width=width, height=high)
    subtitle = _subtitle(audit, parts, limit)
    if len(parts) == 1:
        layers = layers.properties(data=frame)
        return theme.finish(layers, finding_title(parts[0]), subtitle, width + 200)
    header = alt.Header(title=None, labelFontWeight="bold")
    column = alt.Column("rule:N", header=header, sort=_by_place("rule_place"))
    faceted = layers.facet(column=column, data=frame, spacing=_BETWEEN)
    words = finding_title(parts[0], always=True)
    return theme.finish(faceted, words, subtitle, width * min(len(parts), 4) + 160)


def _subtitle(audit: Audit, parts: list[Slice], limit: int) -> list[str]:
    options = settings(audit)
    used = [cell for part in parts for cell in part.cells if cell.pairs]
    adjusted = "" if options.get("adjust", "none") == "none" else "adjusted "
    threshold = f", ε = {between([cell.epsilon for cell in used], '.3g')}" if used else ""
    word = interval_word(parts[0].mode, options)
    lines = [f"Gap with {adjusted}{level_of(audit)} {word}, {parts[0].mode} pairs{threshold}"]
    total = len(parts[0].cells)
    # Before all else: a card of the report has room for two lines, and a part has to be called so.
    lines += [f"The first {limit:,} of {total:,} groups, findings first"] if total > limit else []
    lines += theme.explain_hollow([cell for part in parts for cell in part.cells[:limit]])
    margin = options.get("tolerance")
    lines += [f"Shaded: tolerance of ±{margin:g}"] if margin else []
    return lines


def _tolerance(audit: Audit) -> float:
    return float(settings(audit).get("tolerance") or 0.0)


def _frame(
    groups: Sequence[str], parts: list[Slice], limit: int
) -> tuple[pd.DataFrame, tuple[float, float]]:
    order = [cell.group for cell in by_gap(parts[0].cells[:limit])]
    shown = theme.short_names(groups)
    places = decimals_of(parts[0].cells)
    drawn = set(order)
    cells = [[cell for cell in part.cells if cell.group in drawn] for part in parts]
    scale = gap_range([cell for column in cells for cell in column])
    rules = labels(
        f"{part.rule} (exploratory)" if part.exploratory else part.rule for part in parts
    )
    rows = [
        {
            "group": plain(cell.group),
            "name": shown[cell.group],
            "place": order.index(cell.group),
            "rule": rules[k],
            "rule_place": k,
            **_row(cell, scale, places),
        }
        for k, column in enumerate(cells)
        for cell in column
    ]
    return pd.DataFrame(rows), scale


def _row(cell: Cell, scale: tuple[float, float], places: int = 3) -> dict[str, Any]:
    nan = math.nan
    start, end = scale
    known = math.isfinite(cell.estimate)
    inside = known and start <= cell.estimate <= end
    is_open = theme.is_clear_but_open(cell)
    left, right = cell.low < start, cell.high > end
    reason = why_not(cell) if cell.verdict == NOT_ESTIMABLE else cell.reason
    return {
        "verdict": cell.verdict,
        "said": f"{cell.verdict} ({reason})" if reason else cell.verdict,
        "gap": cell.estimate,
        "dot": cell.estimate if inside and not is_open else nan,
        "hollow": cell.estimate if inside and is_open else nan,
        "low": max(cell.low, start) if known else nan,
        "high": min(cell.high, end) if known else nan,
        "cut_left": start if left else nan,
        "cut_right": end if right else nan,
        "number_left": beside(cell.low, places) if left else "",
        "number_right": beside(cell.high, places) if right else "",
        "missing_at": nan if known else 0.0,
        "missing": "" if known else NOT_ESTIMABLE,
        "interval": with_interval(cell.estimate, cell.low, cell.high),
        "pairs": _pairs(cell),
    }


def _pairs(cell: Cell) -> str:
    """Return how many pairs there are and what follows from them, in one line."""
    if not cell.pairs:
        return "0"
    p = f"; adjusted p {p_value(cell.p)}" if math.isfinite(cell.p) else ""
    return f"{cell.pairs:,} of {guard_count(cell.queries)} queries, ε = {cell.epsilon:.3g}{p}"


def _by_place(field: str) -> alt.EncodingSortField:
    return alt.EncodingSortField(field, op="min")


def _layers(
    scale: tuple[float, float],
    tolerance: float,
    gap: str,
    live: bool,
    width: int,
    frame: pd.DataFrame,
) -> alt.LayerChart:
    start, end = scale
    margin = 0.04 * (end - start)
    domain = alt.Scale(domain=[start - margin, end + margin], nice=False)
    ticks = theme.gap_ticks(start - margin, end + margin, round(width / _TICK_WIDE))
    axis = alt.X(
        "low:Q", title=gap, scale=domain, axis=alt.Axis(values=ticks, grid=True, labelOverlap=False)
    )
    there = set(frame["verdict"])
    shown = [name for name in VERDICTS if name in there]
    # Below, as in other charts: beside the panels it makes them, and all words, smaller on a page.
    # A live chart is as wide as the page, unless its columns are beside each other.
    beside = live and width >= _COLUMNS_WIDE[1]
    below: Any = {} if beside else {"orient": "bottom", "direction": "horizontal"}
    legend = alt.Legend(title=None, values=shown, symbolOpacity=1, **below)
    colour = theme.verdict_colour(legend=legend)
    # No data of their own: a facet does not split a layer that has its own.
    base = alt.Chart().encode(
        y=theme.name_rows("name"),
        tooltip=_tooltip(),
    )
    bars = base.mark_bar(height=6, cornerRadius=3, opacity=0.38).encode(
        x=axis, x2=alt.X2("high:Q"), color=colour
    )
    dots, hollow = (
        base.mark_point(filled=field == "dot", size=80, strokeWidth=1.8, opacity=1).encode(
            x=alt.X(f"{field}:Q"), color=colour, shape=theme.verdict_shape(legend=legend)
        )
        for field in ("dot", "hollow")
    )
    arrows = [mark for way in ("left", "right") for mark in _arrow(base, way, colour)]
    words = base.mark_text(color=theme.GREY, fontStyle="italic", align="left", dx=6).encode(
        x=alt.X("missing_at:Q"), text=alt.Text("missing:N")
    )
    pieces = [theme.zero_line("x"), bars, *arrows, dots, hollow, words]
    if tolerance:
        ends = [max(-tolerance, start - margin), min(tolerance, end + margin)]
        shade = alt.Chart(pd.DataFrame({"from": ends[:1], "to": ends[1:]}))
        shade = shade.mark_rect(color=theme.GREY, opacity=0.22).encode(
            x=alt.X("from:Q"), x2=alt.X2("to:Q")
        )
        pieces.insert(0, shade)
    if live:
        pieces.insert(0, _rows_to_click(base))
    return theme.layered(*pieces)


def _arrow(base: alt.Chart, way: str, colour: alt.Color) -> list[alt.Chart]:
    """Return an arrow where an interval is cut, and above it the end that is not seen."""
    arrow = base.mark_point(shape=f"triangle-{way}", filled=True, size=50, opacity=1)
    side: Any = way
    words = base.mark_text(align=side, dy=-9, fontSize=10.5)
    at = alt.X(f"cut_{way}:Q")
    return [arrow.encode(x=at, color=colour), words.encode(x=at, text=f"number_{way}:N")]


def _rows_to_click(base: alt.Chart) -> alt.Chart:
    """Return a bar across each row, shaded where the row is chosen."""
    pick = alt.selection_point(name="pick", fields=["place"], toggle=False, clear=False)
    chosen = alt.param(name="chosen", value=-1)
    shade = alt.condition("datum.place == chosen", alt.value(0.2), alt.value(0))
    rows: alt.Chart = base.mark_rect(color=theme.GREY, cursor="pointer").encode(opacity=shade)
    return rows.add_params(pick, chosen)


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("group:N"),
        alt.Tooltip("said:N", title="verdict"),
        alt.Tooltip("interval:N", title="gap and interval"),
        alt.Tooltip("pairs:N"),
    ]
