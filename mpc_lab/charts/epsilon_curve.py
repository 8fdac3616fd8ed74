"""The gap of one group at every threshold, with interval, band and the number of pairs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, curve_frame, find_cell, level_of, of_rule, threshold_range
from mpc_lab.errors import check_flag
from mpc_lab.results.base import settings
from mpc_lab.results.summary import Cell, interval_word
from mpc_lab.text import quote, with_interval
from mpc_lab.vocabulary import VERDICTS

if TYPE_CHECKING:
    from mpc_lab.results import Audit


# Joining panels ends the name of each view with its panel's number.
_POINTS = "points_0"
# Areas are drawn out to this many times what most thresholds need.
_ROOM = 4.0


@chart
def epsilon_curve(
    audit: Audit,
    group: str,
    scoring_rule: str = "baseline",
    pairing_mode: str = "matched",
    *,
    live: bool = False,
) -> alt.VConcatChart:
    """Draw the gap of a group against the threshold ε, and below it the number of pairs.

    Inner area: the pointwise interval. Outer area: the band that holds for all ε at once. The
    headline's own threshold is marked with its adjusted bracket, which the verdict rests on.

    Parameters
    ----------
    audit : Audit
    group, scoring_rule, pairing_mode : str
        The cell.
    live : bool
        With the parameters of a chart on a page: the threshold ``at`` is marked, a click selects
        the nearest threshold as ``pointed``, a drag selects ``brush``, two ends of ``epsilon``,
        and ``low`` to ``high`` is shaded.

    Returns
    -------
    altair.VConcatChart
    """
    cell = find_cell(audit, group, scoring_rule, pairing_mode)
    frame = curve_frame(audit, group, scoring_rule, pairing_mode)
    span = theme.threshold_axis(*threshold_range(frame, cell.epsilon))
    colour = VERDICTS[cell.verdict].colour
    # A handful of pairs without an interval can give any gap.
    frame["gap"] = frame["gap"].where(np.isfinite(frame["low"]))
    frame, edge = _cut(frame, cell)
    gap = _gap(frame, cell, span, colour, theme.gap_title(audit))
    pairs = _pairs(frame, cell, span)
    if check_flag("live", live):
        gap, pairs = _brush(_mark(gap, frame, "gap"), frame), _mark(pairs, frame, "pairs")
    panels = theme.stacked(gap, pairs, spacing=8)
    subtitle = _subtitle(audit, cell, frame, pairing_mode)
    subtitle += [f"Areas are cut at ±{edge:.3g}; tooltips have their ends"] if edge else []
    made = theme.finish(panels, _title(cell), subtitle)
    if live:
        made.params = _params()
    return made


def _cut(frame: pd.DataFrame, cell: Cell) -> tuple[pd.DataFrame, float]:
    """Cut areas that would make the curve look flat; also return where, 0 where nothing is cut.

    At a threshold with a handful of pairs the band may be a hundred times the gap.
    """
    sizes = frame[["low", "high"]].abs().max(axis=1)
    own = [abs(end) for end in (cell.low, cell.high) if math.isfinite(end)]
    edge = _ROOM * max([float(sizes.median()), *own])
    areas = ["low", "high", "band_low", "band_high"]
    widest = float(frame[areas].abs().max().max())
    if not edge > 0 or not widest > 1.5 * edge:
        return frame, 0.0
    edge = float(f"{edge:.2g}")
    made = frame.copy()
    made[areas] = frame[areas].clip(-edge, edge)
    made.attrs = dict(frame.attrs)
    return made, edge


def _title(cell: Cell) -> str:
    who = f"Group {quote(cell.group)} is {cell.verdict}"
    if not math.isfinite(cell.estimate):
        return who
    gap = with_interval(cell.estimate, cell.low, cell.high)
    return f"{who} at ε\u00a0=\u00a0{cell.epsilon:.3g}: gap {gap}"


def _subtitle(audit: Audit, cell: Cell, frame: pd.DataFrame, mode: str) -> list[str]:
    rule = str(frame.attrs["rule"])
    lines = [f"{of_rule(rule, mode).capitalize()}; inner: {level_of(audit)} interval at each ε"]
    known = frame.dropna(subset=["band_low", "band_high"])
    if len(known):
        clear = ((known["band_low"] > 0) | (known["band_high"] < 0)).sum()
        lines[0] += "; outer: band over all ε at once"
        lines.append(f"The band excludes 0 at {clear} of {len(known)} thresholds")
    if math.isfinite(cell.estimate):
        word = interval_word(mode, settings(audit))
        lines.append(f"Marked: the headline with the adjusted {word} of its verdict")
    return lines


def _gap(
    frame: pd.DataFrame, cell: Cell, span: dict[str, Any], colour: str, y_title: str
) -> alt.LayerChart:
    tooltip = [
        alt.Tooltip("epsilon:Q", title="ε", format=".3g"),
        alt.Tooltip("interval:N", title="gap and interval"),
        alt.Tooltip("band:N", title="band over all ε"),
        alt.Tooltip("pairs:Q", format=","),
    ]
    hidden = alt.X("epsilon:Q", title=None, **{**span, "axis": _bare(span["axis"])})
    base = alt.Chart(frame).encode(x=hidden, tooltip=tooltip)
    band = base.mark_area(color=colour, opacity=0.14).encode(
        y=alt.Y("band_low:Q", title=y_title), y2=alt.Y2("band_high:Q")
    )
    interval = base.mark_area(color=colour, opacity=0.24).encode(
        y=alt.Y("low:Q", title=y_title), y2=alt.Y2("high:Q")
    )
    line = base.mark_line(color=colour, strokeWidth=2).encode(y=alt.Y("gap:Q", title=y_title))
    dots = base.mark_point(color=colour, filled=True, size=30, opacity=1).encode(y=alt.Y("gap:Q"))
    layers = [band, interval, theme.zero_line(), line, dots, *_headline(cell, colour)]
    return theme.layered(*layers).properties(width=theme.WIDTH, height=theme.HEIGHT)


def _mark(panel: alt.LayerChart, frame: pd.DataFrame, field: str) -> alt.LayerChart:
    """Return a panel with a line at the threshold ``at``, and a ring around its point."""
    one = alt.Chart(pd.DataFrame({"one": [1]})).transform_calculate(epsilon="at")
    line = one.mark_rule(color=theme.ACCENT, strokeWidth=1.5).encode(x=alt.X("epsilon:Q"))
    there = f"datum.epsilon == at && isValid(datum.{field}) && datum.{field} != 0"
    ring = alt.Chart(frame).transform_filter(there)
    ring = ring.mark_point(color=theme.ACCENT, size=130, strokeWidth=2, filled=False)
    ring = ring.encode(x=alt.X("epsilon:Q"), y=alt.Y(f"{field}:Q"))
    made: alt.LayerChart = panel.copy(deep=False)
    # The line is drawn below the curve, the ring above it.
    made.layer = [line, *panel.layer, ring]
    return made


def _params() -> list[Any]:
    """Return what a page sets and picks, each selection on one layer: two would name it twice."""
    click = alt.PointSelectionConfig(
        type="point", fields=["epsilon"], nearest=True, on="click", toggle=False, clear=False
    )
    drag = alt.IntervalSelectionConfig(type="interval", encodings=["x"])
    make: Any = alt.TopLevelParameter  # which has no types
    picks = [
        make(name=name, select=config, views=[_POINTS])
        for name, config in (("pointed", click), ("brush", drag))
    ]
    return [*(alt.VariableParameter(name=name, value=-1) for name in ("at", "low", "high")), *picks]


def _brush(panel: alt.LayerChart, frame: pd.DataFrame) -> alt.LayerChart:
    """Return a panel with a brush, the range from ``low`` to ``high`` shaded, points to click."""
    one = alt.Chart(pd.DataFrame({"one": [1]})).transform_filter("high > low")
    one = one.transform_calculate(epsilon="low", end="high")
    shade = one.mark_rect(color=theme.GREY, opacity=0.25).encode(
        x=alt.X("epsilon:Q"), x2=alt.X2("end:Q")
    )
    shaded: alt.LayerChart = panel.copy(deep=False)
    points = alt.Chart(frame).mark_point(opacity=0, size=130)
    points = points.encode(x=alt.X("epsilon:Q"), y=alt.Y("gap:Q"))
    points.name = _POINTS
    shaded.layer = [shade, *panel.layer, points]
    return shaded


def _headline(cell: Cell, colour: str) -> list[alt.Chart]:
    if not math.isfinite(cell.estimate):
        return []
    row: dict[str, Any] = {"epsilon": [cell.epsilon], "gap": [cell.estimate], "low": [cell.low]}
    row |= {"high": [cell.high], "verdict": [cell.verdict]}
    own = with_interval(cell.estimate, cell.low, cell.high)
    base = alt.Chart(pd.DataFrame({**row, "interval": [own], "pairs": [cell.pairs]})).encode(
        x=alt.X("epsilon:Q"),
        tooltip=[
            alt.Tooltip("verdict:N", title="headline"),
            alt.Tooltip("epsilon:Q", title="ε", format=".3g"),
            alt.Tooltip("interval:N", title="gap, and interval of the verdict"),
            alt.Tooltip("pairs:Q", format=","),
        ],
    )
    return [
        base.mark_rule(color=colour, strokeWidth=2.5).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        base.mark_point(
            color=colour, filled=True, size=110, opacity=1, shape=VERDICTS[cell.verdict].shape
        ).encode(y=alt.Y("gap:Q")),
    ]


def _bare(axis: object) -> alt.Axis:
    values = axis.to_dict()["values"] if isinstance(axis, alt.Axis) else []
    return alt.Axis(values=values, labels=False, ticks=False, grid=True)


def _pairs(frame: pd.DataFrame, cell: Cell, span: dict[str, Any]) -> alt.LayerChart:
    # A logarithm has no place for 0 pairs.
    shown = frame[frame["pairs"] > 0]
    base = alt.Chart(shown).encode(
        x=alt.X("epsilon:Q", title=theme.EPSILON_TITLE, **span),
        y=alt.Y(
            "pairs:Q",
            title="pairs",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(values=_decades(shown["pairs"].max()), format="~s"),
        ),
        tooltip=[
            alt.Tooltip("epsilon:Q", title="ε", format=".3g"),
            alt.Tooltip("pairs:Q", format=","),
            alt.Tooltip("queries:N"),
        ],
    )
    layers: list[alt.Chart] = [
        base.mark_line(color=theme.GREY),
        base.mark_point(color=theme.GREY, filled=True, size=25, opacity=1),
    ]
    if math.isfinite(cell.epsilon):
        layers.append(theme.reference_line(cell.epsilon, "x", dashed=True))
    return theme.layered(*layers).properties(width=theme.WIDTH, height=80)


def _decades(largest: float) -> list[float]:
    top = int(math.log10(largest)) + 1 if largest >= 1 else 1
    return [10.0**power for power in range(top + 1)]
