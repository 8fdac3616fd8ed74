"""What a boost of a group's scores does to its gap and to the lists."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, intervals, level_of
from mpc_lab.results.questions.boosts import describe_set
from mpc_lab.text import entry, minus, quote, with_interval

if TYPE_CHECKING:
    from mpc_lab.results import Audit
    from mpc_lab.results.questions.boosts import FairBoost

_X = "boost α, added to the scores of the group (units of the score)"


@chart
def boost(
    audit: Audit, group: str, alphas: ArrayLike | None = None, epsilon: float | None = None
) -> alt.VConcatChart:
    """Draw a group's gap and the change of NDCG along boosts α, with α* and its confidence set.

    The thin line is the gap of pairs whose distance is from α to α + ε, the thick one the antitonic
    fit of the outcome difference at the distance α; α* is where the fit crosses 0.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group : str
    alphas : array, optional
        The boosts; by default 201 steps over ± the standard deviation of all scores.
    epsilon : float, optional
        By default the baseline's own threshold.

    Returns
    -------
    altair.VConcatChart
    """
    curve = audit.boost_curve(group, alphas, epsilon)
    return draw(audit, curve, audit.fair_boost(group, epsilon))


def draw(
    audit: Audit, curve: xr.Dataset, found: FairBoost, *, live: bool = False
) -> alt.VConcatChart:
    """Draw what was found along boosts.

    Parameters
    ----------
    audit : Audit
    curve : xarray.Dataset
        What :meth:`mpc_lab.Audit.boost_curve` returned.
    found : FairBoost
        What :meth:`mpc_lab.Audit.fair_boost` returned.
    live : bool
        With the dataset of a chart on a page: ``now`` is one row like those of the curve, marked
        in both panels.
    """
    measure = _measure(curve)
    frame = _frame(curve, measure)
    colour = theme.verdict_of(audit, found.group, "baseline").colour
    gap = _gap(frame, found, theme.gap_title(audit), colour)
    objective = _objective(frame, found, measure.upper())
    if live:
        gap = gap + _now("gap", "low", "high", colour)
        objective = objective + _now("change", "change_low", "change_high", theme.INK)
    panels = theme.stacked(gap, objective, spacing=14)
    lines = [minus(line) for line in _subtitle(audit, found, curve, measure)]
    return theme.finish(panels, minus(_title(found)), lines)


def _now(middle: str, low: str, high: str, colour: str) -> alt.LayerChart:
    """Mark the boost that is tried now: a line across, its interval and its point."""
    base = alt.Chart(alt.NamedData(name="now")).encode(x=alt.X("alpha:Q"))
    return theme.layered(
        base.mark_rule(color=theme.GREY, strokeWidth=1, opacity=0.8),
        base.mark_rule(color=colour, strokeWidth=4, opacity=0.9).encode(
            y=alt.Y(f"{low}:Q"), y2=alt.Y2(f"{high}:Q")
        ),
        base.mark_point(color=colour, filled=True, size=110, opacity=1).encode(
            y=alt.Y(f"{middle}:Q")
        ),
    )


def mark(point: xr.Dataset) -> list[dict[str, float]]:
    """Return the row of ``now`` for a curve of one boost."""
    measure = _measure(point)
    own = {"alpha": "alpha", "gap": "estimate", "low": "ci_low", "high": "ci_high"}
    own |= {f"change{end}": f"{measure}_change{end}" for end in ("", "_low", "_high")}
    return [{shown: float(point[name].values[0]) for shown, name in own.items()}]


def _measure(curve: xr.Dataset) -> str:
    """Return which objective is drawn: DCG where no list has an ideal."""
    return "dcg" if np.isnan(curve["ndcg"].values).all() else "ndcg"


def _frame(curve: xr.Dataset, measure: str) -> pd.DataFrame:
    own = {"gap": "estimate", "low": "ci_low", "high": "ci_high", "pairs": "n_pairs"}
    own |= {"objective": measure, "change": f"{measure}_change", "moved": "share_changed"}
    own |= {"change_low": f"{measure}_change_low", "change_high": f"{measure}_change_high"}
    frame = pd.DataFrame({shown: curve[name].values for shown, name in own.items()})
    frame["alpha"] = curve["alpha"].values
    frame["interval"] = intervals(frame, "gap", "low", "high")
    frame["change_words"] = intervals(frame, "change", "change_low", "change_high")
    return frame


def _title(found: FairBoost) -> str:
    who = quote(found.group)
    if math.isnan(found.alpha):
        return f"No boost of group {who} is found: {found.note}"
    said = (
        f"The fitted outcome difference of group {who} is 0 at a boost of "
        f"α* = {entry(found.alpha, 4)}"
    )
    if not found.held_out:
        return said
    before, after = found.held_out["gap_before"], found.held_out["gap_after"]
    if not (math.isfinite(before) and math.isfinite(after)):
        return f"{said}; held-out queries have too few pairs to measure the gap"
    ends = " to ".join(entry(value, 3) for value in (before, after))
    return f"{said}; on held-out queries the gap goes from {ends}"


def _subtitle(audit: Audit, found: FairBoost, curve: xr.Dataset, measure: str) -> list[str]:
    level = level_of(audit)
    width = f"{curve.attrs['epsilon']:.3g}"
    lines = [
        f"Thin: pairs with a distance from α to α + ε, ε = {width}, with {level} intervals; thick: "
        "antitonic fit of the difference at the distance α"
    ]
    if found.confidence_set:
        lines.append(f"Bracket: the {level} set of α*, {describe_set(found)}")
    else:
        lines.append(f"The {level} set of α* is empty: every boost of the range is rejected")
    if found.held_out:
        held = found.held_out
        ends = (held[f"gap_after{end}"] for end in ("", "_low", "_high"))
        change = (held[f"{measure}_change{end}"] for end in ("", "_low", "_high"))
        alphas = sorted(held[f"alpha_{name}"] for name in ("first", "second"))
        lines.append(
            f"Each half of the queries chooses for the other "
            f"({' and '.join(entry(alpha, 4) for alpha in alphas)}): "
            f"gap after {with_interval(*ends)}, "
            f"change of {measure.upper()} {with_interval(*change)}"
        )
    if found.note and found.n_crossings:
        lines.append(f"{found.note[:1].upper()}{found.note[1:]}")
    lines += [found.caution] if found.caution else []
    return lines


def _tooltip(measure: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("alpha:Q", title="boost α", format=".4f"),
        alt.Tooltip("interval:N", title="gap and interval"),
        alt.Tooltip("change_words:N", title=f"change of {measure}"),
        alt.Tooltip("moved:Q", title="positions changed", format=".1%"),
    ]


def _ticks(frame: pd.DataFrame) -> list[float]:
    """Return the boosts that are named below both curves, with none at all among them."""
    low, high = float(frame["alpha"].min()), float(frame["alpha"].max())
    return theme.gap_ticks(min(low, 0.0), max(high, 0.0), 8)


def _gap(frame: pd.DataFrame, found: FairBoost, title: str, colour: str) -> alt.LayerChart:
    axis = alt.Axis(labels=False, ticks=False, grid=True, values=_ticks(frame))
    x = alt.X("alpha:Q", title=None, axis=axis, scale=alt.Scale(nice=False))
    base = alt.Chart(frame).encode(x=x, tooltip=_tooltip("objective"))
    layers: list[alt.Chart] = [
        base.mark_area(color=colour, opacity=0.16, clip=True).encode(
            y=alt.Y("low:Q", title=title), y2=alt.Y2("high:Q")
        ),
        theme.zero_line(),
        base.mark_line(color=colour, strokeWidth=1, opacity=0.7, clip=True).encode(
            y=alt.Y("gap:Q", title=title)
        ),
        *_fit(found, frame, colour),
        *_set(found),
        *_star(found, colour, found.alpha > frame["alpha"].mean()),
    ]
    return theme.layered(*layers).properties(width=theme.WIDTH, height=220)


def _objective(frame: pd.DataFrame, found: FairBoost, measure: str) -> alt.LayerChart:
    axis = alt.Axis(grid=True, values=_ticks(frame), labelOverlap=False)
    x = alt.X("alpha:Q", title=_X, axis=axis, scale=alt.Scale(nice=False))
    base = alt.Chart(frame).encode(x=x, tooltip=_tooltip(measure))
    title = f"change of {measure}"
    layers: list[alt.Chart] = [
        base.mark_area(color=theme.INK, opacity=0.2).encode(
            y=alt.Y("change_low:Q", title=title), y2=alt.Y2("change_high:Q")
        ),
        theme.zero_line(),
        base.mark_line(color=theme.INK, strokeWidth=2).encode(y=alt.Y("change:Q", title=title)),
    ]
    if not math.isnan(found.alpha):
        layers.append(theme.reference_line(found.alpha, "x", dashed=True))
    return theme.layered(*layers).properties(width=theme.WIDTH, height=130)


def _fit(found: FairBoost, frame: pd.DataFrame, colour: str) -> list[alt.Chart]:
    """Draw the fit as steps that fall, inside the range of the curve."""
    low, high = (found.fit[f"distance_{end}"].values for end in ("low", "high"))
    first, last = frame["alpha"].min(), frame["alpha"].max()
    inside = (high >= first) & (low <= last)
    if not inside.any() or first == last:
        return []
    ends = np.column_stack([np.maximum(low, first), np.minimum(high, last)])[inside]
    value = np.repeat(found.fit["estimate"].values[inside], 2)
    steps = pd.DataFrame({"alpha": ends.ravel(), "fit": value, "order": np.arange(len(value))})
    tooltip = [
        alt.Tooltip("alpha:Q", title="distance", format=".4f"),
        alt.Tooltip("fit:Q", title="fitted difference", format=".4f"),
    ]
    line = alt.Chart(steps).mark_line(color=colour, strokeWidth=2.5)
    return [
        line.encode(
            x=alt.X("alpha:Q"), y=alt.Y("fit:Q"), order=alt.Order("order:O"), tooltip=tooltip
        )
    ]


def _set(found: FairBoost) -> list[alt.Chart]:
    """Draw the confidence set as one bracket on the line of no difference."""
    if not found.confidence_set:
        return []
    ends = pd.DataFrame(found.confidence_set, columns=["from", "to"]).assign(gap=0.0)
    tooltip = [
        alt.Tooltip(f"{end}:Q", title=f"confidence set {end}", format=".4f")
        for end in ("from", "to")
    ]
    base = alt.Chart(ends).encode(y=alt.Y("gap:Q"), tooltip=tooltip)
    marks = [
        base.mark_rule(color=theme.GREY, strokeWidth=3.5).encode(
            x=alt.X("from:Q"), x2=alt.X2("to:Q")
        )
    ]
    sides = (("from", found.unbounded_low, 270), ("to", found.unbounded_high, 90))
    for end, unbounded, angle in sides:
        if unbounded:
            mark = base.mark_point(
                color=theme.GREY, filled=True, shape="triangle", size=90, angle=angle, opacity=1
            )
        else:
            mark = base.mark_tick(
                color=theme.GREY, thickness=3, size=16, orient="vertical", opacity=1
            )
        marks.append(mark.encode(x=alt.X(f"{end}:Q")))
    return marks


def _star(found: FairBoost, colour: str, right: bool) -> list[alt.Chart]:
    """Mark α* where the fit crosses 0, its name away from the nearer end."""
    if math.isnan(found.alpha):
        return []
    name = f"α* = {entry(found.alpha, 4)}"
    at = pd.DataFrame({"alpha": [found.alpha], "gap": [0.0], "name": [name]})
    base = alt.Chart(at).encode(
        x=alt.X("alpha:Q"), y=alt.Y("gap:Q"), tooltip=alt.Tooltip("name:N", title="root")
    )
    return [
        base.mark_point(color=colour, filled=True, shape="diamond", size=150, opacity=1),
        base.mark_text(
            align="right" if right else "left",
            dx=-10 if right else 10,
            dy=20 if right else -19,
            color=theme.GREY,
            fontWeight="bold",
            fontSize=12,
        ).encode(text=alt.Text("name:N")),
    ]
