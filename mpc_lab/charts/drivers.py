"""The gap without each of the queries, items or producers that move it most."""

from __future__ import annotations

import altair as alt
import pandas as pd
import xarray as xr

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, intervals
from mpc_lab.errors import MpcError
from mpc_lab.results.questions.drivers import driver_names
from mpc_lab.text import percent, plural, quote
from mpc_lab.vocabulary import VERDICTS


@chart
def drivers(found: xr.Dataset, *, show_ids: bool = False) -> alt.LayerChart:
    """Draw what the gap of a group would be without each of its drivers.

    Parameters
    ----------
    found : xarray.Dataset
        What :meth:`mpc_lab.Audit.drivers` returned.
    show_ids : bool
        Whether queries and units have their ids; by default they are numbered, because a picture
        is passed on.

    Returns
    -------
    altair.LayerChart
    """
    if not isinstance(found, xr.Dataset) or "driver" not in found.dims or "without" not in found:
        raise MpcError(
            "found must be what audit.drivers() returned; got something else. Call "
            'mpc.charts.drivers(audit.drivers("a")).'
        )
    frame = _frame(found, show_ids)
    attrs = found.attrs
    lines = [
        f"Marks: without one {attrs['by']}, with a {percent(attrs['level'])} interval and the "
        "verdict without it; dashed: with all pairs",
        f"The {len(frame)} of {plural(attrs['n_drivers'], attrs['by'])} with a pair that change "
        "the gap most",
    ]
    layers = _layers(frame, float(attrs["estimate"]), theme.cut_outcome(attrs["outcome"]))
    return theme.finish(layers, _title(found, frame), lines)


def _frame(found: xr.Dataset, show_ids: bool) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "name": driver_names(found, show_ids=show_ids),
            "without": found["without"].values,
            "low": found["without_ci_low"].values,
            "high": found["without_ci_high"].values,
            "verdict": found["without_verdict"].values.astype(str),
            "share": [f"{percent(float(f'{s:.2g}'))} of pairs" for s in found["share"].values],
            "mean": found["mean_difference"].values,
            "place": range(len(found["driver"])),
        }
    )
    frame["interval"] = intervals(frame, "without", "low", "high")
    return frame


def _title(found: xr.Dataset, frame: pd.DataFrame) -> str:
    group, by = quote(found["group"].item()), found.attrs["by"]
    if frame.empty:
        return f"Group {group} has no pair"
    turned = int(found["verdict_changes"].values.sum())
    if not turned:
        verdict = found.attrs["verdict"]
        return f"Group {group} would still be {verdict} without any one of {_these(len(frame), by)}"
    first = int(found["verdict_changes"].values.argmax())
    verdict = str(found["without_verdict"].values[first])
    return f"Without {frame['name'][first]}, group {group} would be {verdict}"


def _these(count: int, by: str) -> str:
    return f"this {by}" if count == 1 else f"these {plural(count, by)}"


def _layers(frame: pd.DataFrame, estimate: float, outcome: str) -> alt.LayerChart:
    order = alt.Y(
        "name:N",
        sort=alt.EncodingSortField("place"),
        title=None,
        axis=alt.Axis(
            labelLimit=260,
            labelColor=theme.INK,
            labelPadding=8,
            ticks=False,
            domain=False,
            minExtent=60,
        ),
    )
    base = alt.Chart(frame).encode(
        y=order,
        tooltip=[
            alt.Tooltip("name:N"),
            alt.Tooltip("interval:N", title="gap without it"),
            alt.Tooltip("verdict:N", title="verdict without it"),
            alt.Tooltip("mean:Q", title="mean difference of its pairs", format=".3g"),
        ],
    )
    title = f"gap in {outcome} without it"
    axis = alt.Axis(tickCount=5, labelOverlap=True)
    x = alt.X("without:Q", title=title, scale=alt.Scale(zero=True), axis=axis)
    there = set(frame["verdict"])
    values = [name for name in VERDICTS if name in there]
    colour = theme.verdict_colour(legend=alt.Legend(title=None, orient="bottom", values=values))
    marks = [
        theme.zero_line("x"),
        theme.reference_line(estimate, "x", dashed=True),
        base.mark_rule(strokeWidth=2.5, opacity=0.6).encode(
            x=alt.X("low:Q", title=title, axis=axis), x2=alt.X2("high:Q"), color=colour
        ),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            x=x, color=colour, shape=theme.verdict_shape(legend=None)
        ),
        base.mark_text(align="left", dx=6).encode(
            x=alt.value(theme.WIDTH), text=alt.Text("share:N")
        ),
    ]
    high = theme.rows_high(len(frame))
    return theme.layered(*marks).properties(width=theme.WIDTH, height=high)
