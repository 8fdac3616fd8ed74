"""MPC beside the rival measures of a group, on one scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, level_of
from mpc_lab.results.base import check_label
from mpc_lab.text import NOTHING, entry, number, plain, quote, with_interval

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_CLAMP = 6.0
_TICKS = [-6, -4, -2, 0, 2, 4, 6]
_SAYS = ("undervalued", "overvalued", "flagged", "not flagged", "cannot tell")
_COLOURS = (theme.UNDERVALUED, theme.OVERVALUED, "#c0699b", theme.GREY, theme.GREY)
_SHAPES = ("triangle-up", "triangle-down", "diamond", "circle", "cross")


@chart
def rivals(
    audit: Audit, group: str, k: int = 10, *, found: xr.Dataset | None = None
) -> alt.LayerChart:
    """Draw MPC and the rival measures of a group, each from its own neutral value.

    The measures have different units, so each interval is drawn in half-widths of itself around the
    measure's neutral value: an interval that leaves out 0 leaves out the neutral value. One-sided
    tests flag by their p-value. The numbers in their own units are at the right; the chart's
    description, which screen readers speak, says why the measures disagree.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group : str
    k : int
        Places at the top, for Skew@k.
    found : xarray.Dataset, optional
        What :meth:`mpc_lab.Audit.compare` returned, to save its work.

    Returns
    -------
    altair.LayerChart
    """
    check_label("group", group, audit.groups)
    found = (audit.compare([group], k) if found is None else found).sel(group=group)
    frame = _frame(found)
    lines = [
        f"{level_of(audit)} intervals over all groups, in half-widths, around each measure's "
        "neutral value; numbers in their own units",
        f"Cut at ±{_CLAMP:g}, with the number at the arrow; audit.compare() says why the measures "
        "disagree",
    ]
    chart = theme.finish(_layers(frame), _title(frame, group), lines, 640)
    return chart.properties(description=plain(found["explanation"].item()))


def _frame(found: xr.Dataset) -> pd.DataFrame:
    rows = []
    for place, measure in enumerate(found["measure"].values.tolist()):
        one = found.sel(measure=measure)
        estimate, low, high, null = (
            float(one[name]) for name in ("estimate", "ci_low_adjusted", "ci_high_adjusted", "null")
        )
        half = (high - low) / 2
        can_scale = math.isfinite(half) and half > 0 and math.isfinite(null)
        scaled = [(v - null) / half if can_scale else math.nan for v in (estimate, low, high)]
        numbers = with_interval(estimate, low, high) if math.isfinite(estimate) else NOTHING
        if math.isfinite(estimate) and not math.isfinite(half):
            numbers = entry(estimate, ".3g")
        if math.isfinite(null) and null:
            numbers += f", neutral {number(null, 2).rstrip('0').rstrip('.')}"
        row = {"measure": _name(measure), "place": place, "numbers": numbers}
        row |= _drawn(*scaled)
        row |= {"says": _says(one, null), "p_adjusted": entry(float(one["p_adjusted"]), ".3g")}
        row["compares"] = (
            f"{one['compares_scores'].item()} scores, {one['compares_queries'].item()} queries, "
            f"{one['compares_looks_at'].item()}"
        )
        rows.append(row)
    return pd.DataFrame(rows)


def _drawn(at: float, low: float, high: float) -> dict[str, float | str]:
    """Return where an interval is drawn; where it is cut, an arrow and the number that is cut."""
    row: dict[str, float | str] = {
        "at": at if abs(at) <= _CLAMP else math.nan,
        "low": _clamp(low),
        "high": _clamp(high),
    }
    for way, end, is_cut in (("left", low, low < -_CLAMP), ("right", high, high > _CLAMP)):
        farthest = at if abs(at) > _CLAMP else end
        row[f"cut_{way}"] = math.copysign(_CLAMP, end) if is_cut else math.nan
        row[f"number_{way}"] = entry(farthest, ".1f") if is_cut else ""
    return row


def _clamp(value: float) -> float:
    return float(np.clip(value, -_CLAMP, _CLAMP)) if not math.isnan(value) else math.nan


def _says(one: xr.Dataset, null: float) -> str:
    p_value = float(one["p_adjusted"])
    known = math.isfinite(p_value) or (
        math.isfinite(null) and math.isfinite(float(one["ci_low_adjusted"]))
    )
    if not known:
        return "cannot tell"
    if not bool(one["flagged"]):
        return "not flagged"
    return str(one["says"].item()) or "flagged"


def _name(measure: str) -> str:
    return "MPC" if measure == "mpc" else measure.replace("_", " ")


def _title(frame: pd.DataFrame, group: str) -> str:
    own, others = frame["says"].iloc[0], frame["says"].iloc[1:]
    others = others[others != "cannot tell"]
    who = f"group {quote(group)}"
    if own == "cannot tell":
        start = f"MPC cannot be estimated for {who}"
    elif own == "not flagged":
        start = f"MPC does not flag {who}"
    else:
        start = f"MPC calls {who} {own}"
    counts = [
        (int((others == said).sum()), words)
        for said, words in (
            ("undervalued", "call it undervalued"),
            ("overvalued", "call it overvalued"),
            ("flagged", "flag it without a direction"),
            ("not flagged", "do not flag it"),
        )
    ]
    if len(others) and (others == "not flagged").all():
        return f"{start}; none of {len(others)} other measures flags it"
    said = ", ".join(f"{count} {words}" for count, words in counts if count)
    return f"{start}; of {len(others)} other measures {said}" if said else start


def _layers(frame: pd.DataFrame) -> alt.LayerChart:
    # A measure without a mark needs no name of its mark.
    there = set(frame.loc[frame["at"].notna() | frame["low"].notna(), "says"])
    legend = alt.Legend(
        orient="bottom",
        direction="horizontal",
        columns=3,
        values=[said for said in _SAYS if said in there],
    )
    colour = alt.Color(
        "says:N",
        title=None,
        scale=alt.Scale(domain=list(_SAYS), range=list(_COLOURS)),
        legend=legend,
    )
    shape = alt.Shape(
        "says:N",
        title=None,
        scale=alt.Scale(domain=list(_SAYS), range=list(_SHAPES)),
        legend=legend,
    )
    tooltip = [
        alt.Tooltip("measure:N"),
        alt.Tooltip("says:N", title="says"),
        alt.Tooltip("numbers:N", title="estimate"),
        alt.Tooltip("compares:N"),
    ]
    base = alt.Chart(frame).encode(
        y=theme.name_rows("measure"),
        tooltip=tooltip,
    )
    title = ["distance from the neutral value", "(half-widths of the interval)"]
    scale = alt.Scale(domain=[-_CLAMP, _CLAMP], nice=False)
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=title, scale=scale, axis=alt.Axis(values=_TICKS, grid=True)),
        x2=alt.X2("high:Q"),
        color=colour,
    )
    dots = base.mark_point(filled=True, size=65, opacity=1).encode(
        x=alt.X("at:Q", title=title), color=colour, shape=shape
    )
    numbers = base.mark_text(align="left", dx=8).encode(
        x=alt.value("width"), text=alt.Text("numbers:N")
    )
    arrows = [mark for way in ("left", "right") for mark in _arrow(base, way, colour)]
    return theme.layered(theme.zero_line("x"), bars, *arrows, dots, numbers).properties(
        width=400, height=theme.rows_high(len(frame), 20)
    )


def _arrow(base: alt.Chart, way: str, colour: alt.Color) -> list[alt.Chart]:
    """Return an arrow where an interval is cut, and the number that is beyond the cut."""
    arrow = base.mark_point(shape=f"triangle-{way}", filled=True, size=60, opacity=1)
    # Beside what is left of the interval, on its inner side.
    inner, align, dx = ("high", "left", 9) if way == "left" else ("low", "right", -9)
    side: Any = align
    words = base.mark_text(align=side, dx=dx)  # empty where nothing is cut
    return [
        arrow.encode(x=alt.X(f"cut_{way}:Q"), color=colour),
        words.encode(x=alt.X(f"{inner}:Q"), text=alt.Text(f"number_{way}:N")),
    ]
