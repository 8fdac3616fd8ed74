"""Gaps over periods, a small panel for each group."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, intervals
from mpc_lab.errors import MpcError
from mpc_lab.results.trend import Trend
from mpc_lab.text import labels, listing, percent, plural, quote

_MOST = 12
_PANEL = theme.WIDTH // 2 - 30
# Pixels of a letter of a label, about.
_CHARACTER = 7


@chart
def trend(found: Trend) -> alt.FacetChart:
    """Draw the gap of each group over periods, with intervals; filled where its alarm has rung.

    Groups with an alarm come first, then those with the most evidence for a change; of more than
    12 groups the first 12 are drawn.

    Parameters
    ----------
    found : Trend
        What :func:`mpc_lab.trend` returned.

    Returns
    -------
    altair.FacetChart
    """
    if not isinstance(found, Trend):
        raise MpcError(
            f"found must be what mpc.trend() returned; got {type(found).__name__}. Call "
            "mpc.charts.trend(mpc.trend(audits))."
        )
    most = found.data["evidence"].max("period").values
    order = (-most).argsort(kind="stable")[:_MOST]
    data = found.data.isel(group=order)
    frame = data[["estimate", "ci_low", "ci_high", "alarm", "evidence"]].to_dataframe()
    frame = frame.reset_index()
    names = labels(data["group"].values.tolist())
    frame["name"] = frame["group"].map(dict(zip(data["group"].values.tolist(), names, strict=True)))
    frame["interval"] = intervals(frame, "estimate", "ci_low", "ci_high")
    frame["state"] = frame["alarm"].map({True: "alarm", False: "no alarm"})
    level, left = found.data.attrs["level"], found.data.sizes["group"] - len(order)
    lines = [f"{percent(level)} intervals of each period on its own; an alarm stays once it rang"]
    if left:
        lines.append(f"And {plural(left, 'group')} with less evidence for a change")
    return theme.finish(_panels(frame, names, found), _title(found), lines)


def _title(found: Trend) -> str:
    if not found.alarms and found.untold:
        named = listing([quote(group) for group in found.untold], 3)
        return f"The last period cannot tell of a change: {named}"
    if not found.alarms:
        return f"No alarm for a change in {plural(found.data.sizes['period'], 'period')}"
    return f"The gap has changed: {listing([quote(group) for group in found.alarms], 3)}"


def _panels(frame: pd.DataFrame, names: list[str], found: Trend) -> alt.FacetChart:
    periods = found.data["period"].values.tolist()
    gap = f"gap in {theme.cut_outcome(str(found.data.attrs['outcome']))}"
    axis = alt.Axis(labelOverlap=True, labelLimit=90)
    if sum(len(str(period)) + 2 for period in periods) * _CHARACTER <= _PANEL:
        axis.labelAngle = 0  # names that fit are not turned
    x = alt.X("period:O", sort=periods, title="period", axis=axis)
    base = alt.Chart(frame).encode(
        x=x,
        tooltip=[
            alt.Tooltip("name:N", title="group"),
            alt.Tooltip("period:O"),
            alt.Tooltip("interval:N", title="gap"),
            alt.Tooltip("evidence:Q", format=".3g"),
        ],
    )
    colour = alt.Color(
        "state:N",
        scale=alt.Scale(domain=["no alarm", "alarm"], range=[theme.GREY, theme.SERIES[3]]),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    shape = alt.Shape(
        "state:N",
        scale=alt.Scale(domain=["no alarm", "alarm"], range=["circle", "diamond"]),
        legend=None,
    )
    y = alt.Y("estimate:Q", title=gap, scale=alt.Scale(zero=True))
    zero = alt.Chart(frame).mark_rule(color=theme.GREY).encode(y=alt.datum(0))
    rules = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        y=alt.Y("ci_low:Q", title=gap), y2=alt.Y2("ci_high:Q"), color=colour
    )
    dots = base.mark_point(filled=True, size=45, opacity=1).encode(y=y, color=colour, shape=shape)
    layers = alt.layer(zero, rules, dots).properties(width=_PANEL, height=110)
    facet = alt.Facet(
        "name:N", title=None, sort=names, header=alt.Header(labelLimit=theme.WIDTH // 2 - 40)
    )
    return layers.facet(facet=facet, columns=2)
