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
from mpc_lab.text import entry, number, quoted, with_interval

if TYPE_CHECKING:
    from mpc_lab.results import Audit
    from mpc_lab.results.questions.boosts import FairBoost

_X = "boost α, added to the scores of the group (units of the score)"


@chart
def boost(
    audit: Audit, group: str, alphas: ArrayLike | None = None, epsilon: float | None = None
) -> alt.VConcatChart:
    """Draw a group's gap and the change of NDCG along boosts α, with α* and its confidence set.

    α* is chosen on one half of the queries; the curves are of all queries.

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
        Of :meth:`mpc_lab.Audit.boost_curve`.
    found : FairBoost
        Of :meth:`mpc_lab.Audit.fair_boost`.
    live : bool
        With the dataset of a chart on a page: ``now`` is one row like those of the curve, marked
        in both panels.
    """
    measure = _measure(curve)
    frame = _frame(curve, measure)
    gap, objective = _gap(frame, found), _objective(frame, found, measure.upper())
    if live:
        gap = gap + _now("gap", "low", "high", theme.UNDERVALUED)
        objective = objective + _now("change", "change_low", "change_high", theme.OVERVALUED)
    panels = theme.stacked(gap, objective, spacing=14)
    return theme.finish(panels, _title(found), _subtitle(audit, found, curve, measure))


def _now(middle: str, low: str, high: str, colour: str) -> alt.LayerChart:
    """Mark the boost that is tried now: a line across, its interval and its point."""
    base = alt.Chart(alt.NamedData(name="now")).encode(x="alpha:Q")
    return theme.layered(
        base.mark_rule(color=theme.GREY, strokeWidth=1, opacity=0.8),
        base.mark_rule(color=colour, strokeWidth=4, opacity=0.9).encode(
            y=f"{low}:Q", y2=f"{high}:Q"
        ),
        base.mark_point(color=colour, filled=True, size=110, opacity=1).encode(y=f"{middle}:Q"),
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
    who = quoted(found.group)
    if math.isnan(found.alpha):
        return f"No boost of group {who} closes its gap: {found.note}"
    size = entry(found.alpha, 4)
    held = found.held_out
    before, after = held["gap_before"], held["gap_after"]
    if not (math.isfinite(before) and math.isfinite(after)):
        moved = "held-out queries are too few to measure it"
    else:
        ends = (entry(value, 3) for value in (before, after))
        moved = f"on held-out queries the gap goes from {' to '.join(ends)}"
    if not found.settled:
        return (
            f"The log does not settle which boost closes the gap of group {who}; the crossing "
            f"nearest 0 is at α* = {size}; {moved}"
        )
    return f"The gap of group {who} crosses 0 at a boost of α* = {size}; {moved}"


def _subtitle(audit: Audit, found: FairBoost, curve: xr.Dataset, measure: str) -> list[str]:
    level = level_of(audit)
    lines = [f"{level} intervals at each boost; ε = {curve.attrs['epsilon']:.3g}"]
    if found.held_out:
        change = (found.held_out[f"{measure}_change{end}"] for end in ("", "_low", "_high"))
        lines.append(f"Held-out change of {measure.upper()} at α*: {with_interval(*change)}")
        lines[0] += f"; α* is known to within {number(found.resolution, 4)}"
    if found.confidence_set:
        lines.append(
            f"Shaded: the {level} set of α*, the boosts at which a gap of 0 is not rejected"
        )
    lines += [found.note.capitalize()] if found.note and found.held_out else []
    lines += [found.caution] if found.caution else []
    return lines


def _tooltip(measure: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("alpha:Q", title="boost α", format=".4f"),
        alt.Tooltip("interval:N", title="gap and interval"),
        alt.Tooltip("change_words:N", title=f"change of {measure}"),
        alt.Tooltip("objective:Q", title=measure, format=".4f"),
        alt.Tooltip("moved:Q", title="positions changed", format=".1%"),
        alt.Tooltip("pairs:Q", format=","),
    ]


def _gap(frame: pd.DataFrame, found: FairBoost) -> alt.LayerChart:
    axis = alt.Axis(labels=False, ticks=False, grid=True)
    x = alt.X("alpha:Q", title=None, axis=axis, scale=alt.Scale(nice=False))
    base = alt.Chart(frame).encode(x=x, tooltip=_tooltip("objective"))
    title = theme.GAP_TITLE
    layers: list[alt.Chart] = [
        *_set(found),
        base.mark_area(color=theme.UNDERVALUED, opacity=0.25).encode(
            y=alt.Y("low:Q", title=title), y2="high:Q"
        ),
        theme.zero_line(),
        base.mark_line(color=theme.UNDERVALUED, strokeWidth=2).encode(
            y=alt.Y("gap:Q", title=title)
        ),
        *_star(found, named=True),
    ]
    return theme.layered(*layers).properties(width=theme.WIDTH, height=200)


def _objective(frame: pd.DataFrame, found: FairBoost, measure: str) -> alt.LayerChart:
    x = alt.X("alpha:Q", title=_X, axis=alt.Axis(grid=True), scale=alt.Scale(nice=False))
    base = alt.Chart(frame).encode(x=x, tooltip=_tooltip(measure))
    title = f"change of {measure}"
    layers: list[alt.Chart] = [
        base.mark_area(color=theme.OVERVALUED, opacity=0.25).encode(
            y=alt.Y("change_low:Q", title=title), y2="change_high:Q"
        ),
        theme.zero_line(),
        base.mark_line(color=theme.OVERVALUED, strokeWidth=2).encode(
            y=alt.Y("change:Q", title=title)
        ),
        *_star(found, named=False),
    ]
    return theme.layered(*layers).properties(width=theme.WIDTH, height=130)


def _set(found: FairBoost) -> list[alt.Chart]:
    """Shade the boosts at which a gap of 0 is not rejected."""
    if not found.confidence_set:
        return []
    ends = pd.DataFrame(found.confidence_set, columns=["from", "to"])
    tooltip = [alt.Tooltip(f"{end}:Q", title=f"confidence set {end}", format=".4f") for end in ends]
    shade = alt.Chart(ends).mark_rect(color=theme.GREY, opacity=0.2)
    return [shade.encode(x="from:Q", x2="to:Q", tooltip=tooltip)]


def _star(found: FairBoost, named: bool) -> list[alt.Chart]:
    if math.isnan(found.alpha):
        return []
    marks = [theme.reference_line(found.alpha, "x", dashed=True)]
    if named:
        at = pd.DataFrame({"alpha": [found.alpha], "name": [f"α* = {entry(found.alpha, 4)}"]})
        marks.append(
            alt.Chart(at)
            .mark_text(
                align="left", dx=6, dy=4, baseline="top", color=theme.GREY, fontWeight="bold"
            )
            .encode(x="alpha:Q", y=alt.value(0), text="name:N")
        )
    return marks
