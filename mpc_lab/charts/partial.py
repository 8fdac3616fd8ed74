"""The gap of every group alone and net of the other groups, joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import numpy as np
import pandas as pd

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, intervals
from mpc_lab.errors import MpcError, check_count
from mpc_lab.results.questions.partial import COLLINEAR, PartialGaps, close_scores
from mpc_lab.text import listing, minus, number, percent, quote

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_KINDS = {"alone": (theme.GREY, "circle"), "net": (theme.OTHER, "diamond")}


@chart
def partial(found: PartialGaps | Audit, limit: int = 60) -> alt.LayerChart:
    """Draw the gap of each group alone and net of the others, joined, with intervals.

    Parameters
    ----------
    found : PartialGaps or Audit
        What :meth:`mpc_lab.Audit.partial` returned, or an audit with its rows.
    limit : int
        At most this many groups, those that change most.

    Returns
    -------
    altair.LayerChart
    """
    limit = check_count("limit", limit)
    if hasattr(found, "partial"):
        found = found.partial()
    if not isinstance(found, PartialGaps):
        raise MpcError(
            f"found must be what audit.partial() returned, or an audit; got "
            f"{type(found).__name__}. Call mpc.charts.partial(audit.partial())."
        )
    data = found.data
    change = np.abs((data["estimate"].sel(kind="net") - data["estimate"].sel(kind="alone")).values)
    order = np.argsort(-np.nan_to_num(change, nan=-1.0), kind="stable")[:limit]
    known = theme.short_names(data["group"].values.tolist())
    shown = [known[name] for name in data["group"].values[order]]
    rows = [
        {
            "group": shown[place],
            "place": place,
            "kind": kind,
            **{
                name: float(data[name].sel(kind=kind).values[k])
                for name in ("estimate", "ci_low_adjusted", "ci_high_adjusted")
            },
        }
        for place, k in enumerate(order)
        for kind in _KINDS
    ]
    frame = pd.DataFrame(rows)
    frame["interval"] = intervals(frame, "estimate", "ci_low_adjusted", "ci_high_adjusted")
    level, total = percent(float(data.attrs["level"])), data.sizes["group"]
    lines = [
        f"Pairs of a query with {close_scores(data.attrs['width'])}; {level} "
        "intervals, adjusted over groups",
        f"Alone: the group by itself. Net: {found.held or 'nothing else'} held fixed",
    ]
    lines += [f"The {limit:,} of {total:,} groups that change most"] if total > limit else []
    same = data["left_out"].values[data["left_out_reason"].values == COLLINEAR]
    left = [quote(name) for name in same]
    lines += [f"Not net, because others say the same: {listing(left, 4)}"] if left else []
    lines += found.references
    title = f"gap in {theme.cut_outcome(data.attrs['outcome'])}"
    return theme.finish(_layers(frame, title), _title(found, order), lines)


def _title(found: PartialGaps, order: np.ndarray) -> str:
    data = found.data
    alone, net = (data["estimate"].sel(kind=kind).values for kind in _KINDS)
    known = [k for k in order if np.isfinite(net[k]) and np.isfinite(alone[k])]
    if not known:
        return "No group has a gap net of the others"
    k = known[0]
    name = quote(data["group"].values[k])
    before, after = (minus(number(float(kind[k]), 3)) for kind in (alone, net))
    if not found.held:
        return f"The gap of {name} is {before}"
    held = found.held.replace("the ", "")
    return f"The gap of {name} is {before} alone and {after} with {held} held fixed"


def _close_together(names: list[str], step: float) -> alt.Scale:
    """Return where in its row each mark is: where rows are high, as close as in others."""
    if step <= theme.ROW:
        return alt.Scale(domain=names)
    return alt.Scale(domain=names, range=[(step - theme.ROW) / 2, (step + theme.ROW) / 2])


def _layers(frame: pd.DataFrame, title: str) -> alt.LayerChart:
    names = list(_KINDS)
    y = theme.name_rows("group")
    base = alt.Chart(frame).encode(y=y)
    legend = alt.Legend(orient="bottom", direction="horizontal", symbolOpacity=1)
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=names, range=[look[0] for look in _KINDS.values()]),
        legend=legend,
    )
    shape = alt.Shape(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=names, range=[look[1] for look in _KINDS.values()]),
        legend=legend,
    )
    ends = frame[["ci_low_adjusted", "ci_high_adjusted", "estimate"]].to_numpy()
    low, high = (float(f(ends, initial=0.0)) for f in (np.nanmin, np.nanmax))
    ticks = theme.gap_ticks(low, high, 6) if high > low else [0.0]
    axis = alt.Axis(values=ticks, grid=True, labelOverlap=False)
    step = theme.rows_high(frame["group"].nunique())
    offset = alt.YOffset("kind:N", scale=_close_together(names, step.step), sort=names)
    joined = base.mark_rule(strokeWidth=1, opacity=0.6, color=theme.GREY).encode(
        x=alt.X("min(estimate):Q", title=title, axis=axis), x2=alt.X2("max(estimate):Q")
    )
    whiskers = base.mark_rule(strokeWidth=2, opacity=0.5).encode(
        x=alt.X("ci_low_adjusted:Q", title=title, axis=axis),
        x2=alt.X2("ci_high_adjusted:Q"),
        color=colour,
        yOffset=offset,
    )
    dots = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=alt.X("estimate:Q", title=title, axis=axis),
        color=colour,
        shape=shape,
        yOffset=offset,
        tooltip=[
            alt.Tooltip("group:N"),
            alt.Tooltip("kind:N"),
            alt.Tooltip("interval:N", title="gap"),
        ],
    )
    layers = [theme.zero_line("x"), joined, whiskers, dots]
    return theme.layered(*layers).properties(width=440, height=step)
