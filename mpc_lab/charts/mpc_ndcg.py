"""What each scoring rule does to a group's gap and to the lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, intervals, level_of
from mpc_lab.results.base import check_label
from mpc_lab.text import labels, plural, quote
from mpc_lab.vocabulary import DIRECTIONS

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_WITH_INTERVALS = 3
# Names closer than this share of the height would overlap.
_ROOM = 0.05


@chart
def mpc_ndcg(
    audit: Audit, group: str | None = None, pairing_mode: str = "matched"
) -> alt.LayerChart:
    """Draw the gap of each group under each rule against the change of NDCG that the rule brings.

    Lines lead from the baseline to the other rules of a group. Intervals are drawn for up to three
    groups. Where outcomes below 0 rule NDCG out, DCG is drawn instead.

    Parameters
    ----------
    audit : Audit
    group : str, optional
        Only this group.
    pairing_mode : str

    Returns
    -------
    altair.LayerChart
    """
    check_label("pairing_mode", pairing_mode, audit.headline["pairing_mode"].values.tolist())
    if group is not None:
        check_label("group", group, audit.groups)
    names = audit.groups if group is None else (group,)
    changes = audit.objective["ndcg_change"].sel(group=list(names)).values
    measure = "dcg" if np.isnan(changes).all() else "ndcg"
    frame = _frame(audit, names, pairing_mode, measure)
    chart = _layers(frame, measure.upper(), len(names) <= _WITH_INTERVALS, theme.gap_title(audit))
    drawn = (
        f"{level_of(audit)} intervals" if len(names) <= _WITH_INTERVALS else "Intervals on hover"
    )
    lines = [f"{drawn}; {pairing_mode} pairs; change against the logged scores, query by query"]
    return theme.finish(chart, _title(frame, names, measure.upper()), lines)


def _frame(audit: Audit, names: tuple[str, ...], mode: str, measure: str) -> pd.DataFrame:
    rules = sorted(audit.headline["scoring_rule"].values.tolist(), key=lambda r: r != "baseline")
    known, rule_names = theme.short_names(audit.groups), labels(rules)
    shown = [known[name] for name in names]
    rows: list[dict[str, Any]] = []
    for g, group in enumerate(names):
        for r, rule in enumerate(rules):
            cell = audit.headline.sel(group=group, scoring_rule=rule, pairing_mode=mode)
            worth = audit.objective.sel(group=group, scoring_rule=rule)
            numbers = {
                "gap": cell["estimate"],
                "low": cell["bracket_low"],
                "high": cell["bracket_high"],
                "change": worth[f"{measure}_change"],
                "change_low": worth[f"{measure}_change_low"],
                "change_high": worth[f"{measure}_change_high"],
                "objective": worth[measure],
            }
            row = {key: float(value) for key, value in numbers.items()}
            verdict = str(cell["verdict"].item())
            start = rows[-r] if r else row
            row |= {"start_change": start["change"], "start_gap": start["gap"]}
            place = {"group": shown[g], "rule": rule_names[r], "rule_place": r}
            rows.append({**place, "verdict": verdict, **row})
    frame = pd.DataFrame(rows)
    frame["interval"] = intervals(frame, "gap", "low", "high")
    frame["change_words"] = intervals(frame, "change", "change_low", "change_high")
    return frame


def _title(frame: pd.DataFrame, names: tuple[str, ...], measure: str) -> str:
    others = frame[frame["rule_place"] > 0]
    if others.empty:
        return f"Only one rule was audited: there is no change of {measure} to set against the gap"
    best = others.groupby("rule_place")["change"].mean().idxmax()
    part = others[others["rule_place"] == best]
    rule = quote(part["rule"].iloc[0])
    if len(names) == 1:
        row, base = part.iloc[0], frame.iloc[0]
        return (
            f"Rule {rule} changes {measure} by {row['change_words']}; the gap of group "
            f"{quote(names[0])} goes from {base['interval']} to {row['interval']}"
        )
    up, down = int((part["change_low"] > 0).sum()), int((part["change_high"] < 0).sum())
    start = f"Rule {rule}"
    if others["rule_place"].max() > 1:
        start = f"The rule with the highest mean {measure}, {rule},"
    return (
        f"{start} raises {measure} for {up} of {plural(len(names), 'group')}, lowers it for {down}"
    )


def _layers(frame: pd.DataFrame, measure: str, intervals: bool, y_title: str) -> alt.LayerChart:
    x_title = f"change of {measure} against the logged scores"
    scale = alt.Scale(zero=False)
    axis = alt.Axis(tickCount=5, labelOverlap=True)
    base = alt.Chart(frame).encode(
        x=alt.X("change:Q", title=x_title, scale=scale, axis=axis), y=alt.Y("gap:Q", title=y_title)
    )
    rules = frame.sort_values("rule_place")["rule"].drop_duplicates().tolist()
    colour = alt.Color("rule:N", title="scoring rule", scale=_scale(rules, theme.SERIES))
    shape = alt.Shape("rule:N", title="scoring rule", scale=_scale(rules, theme.SHAPES))
    spokes = base.mark_rule(opacity=0.5, strokeWidth=1, strokeDash=[3, 2])
    layers = [
        theme.zero_line("y"),
        theme.zero_line("x"),
        spokes.encode(x2=alt.X2("start_change:Q"), y2=alt.Y2("start_gap:Q")),
    ]
    if intervals:
        bars = base.mark_rule(strokeWidth=2.5, opacity=0.8).encode(color=colour)
        layers.append(bars.encode(y=alt.Y("low:Q", title=y_title), y2=alt.Y2("high:Q")))
        layers.append(
            bars.encode(x=alt.X("change_low:Q", title=x_title), x2=alt.X2("change_high:Q"))
        )
    tooltip = [
        alt.Tooltip("group:N"),
        alt.Tooltip("rule:N", title="scoring rule"),
        alt.Tooltip("interval:N", title="gap and interval"),
        alt.Tooltip("change_words:N", title=f"change of {measure}"),
    ]
    layers.append(
        base.mark_point(filled=True, size=75, opacity=1).encode(
            color=colour, shape=shape, tooltip=tooltip
        )
    )
    if (frame["rule_place"] == 0).sum() > 1:
        layers += _names(frame, x_title, y_title)
    return theme.layered(*layers).properties(width=theme.WIDTH, height=theme.HEIGHT + 60)


def _scale(names: list[str], values: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=names, range=[values[k % len(values)] for k in range(len(names))])


def _names(frame: pd.DataFrame, x_title: str, y_title: str) -> list[alt.Chart]:
    """Write the names of flagged groups beside the baseline, away from where their lines lead.

    Where none is flagged, the two at the ends are named; those with no room are in the tooltips.
    """
    starts = frame[frame["rule_place"] == 0]
    told = starts[starts["verdict"].isin(DIRECTIONS)]
    if told.empty and starts["gap"].notna().any():
        told = starts[starts["gap"].isin([starts["gap"].max(), starts["gap"].min()])]
    kept: list[int] = []
    room = _ROOM * float(starts["gap"].max() - starts["gap"].min())
    for place in told["gap"].abs().sort_values(ascending=False).index:
        if all(abs(told["gap"][place] - told["gap"][other]) >= room for other in kept):
            kept.append(place)
    leads = frame[frame["rule_place"] > 0].groupby("group")["change"].mean()
    named = told.loc[kept]
    is_left = named["group"].map(leads).fillna(0.0) >= 0
    sides: tuple[tuple[Literal["left", "right"], int, pd.DataFrame], ...] = (
        ("right", -8, named[is_left]),
        ("left", 8, named[~is_left]),
    )
    return [
        alt.Chart(part)
        .mark_text(align=align, baseline="middle", dx=away, fontSize=11, limit=200)
        .encode(
            x=alt.X("change:Q", title=x_title),
            y=alt.Y("gap:Q", title=y_title),
            text=alt.Text("group:N"),
        )
        for align, away, part in sides
        if len(part)
    ]
