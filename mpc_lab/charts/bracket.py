"""Both orders of the pairs closing on one value as the scores come together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, curve_frame, find_cell, level_of, threshold_range
from mpc_lab.errors import MpcError
from mpc_lab.text import quote, with_interval
from mpc_lab.vocabulary import MATCHED, MODES, VERDICTS

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_MODES = {mode.name: mode.label for mode in (MATCHED, MODES[MATCHED.bracket])}


@chart
def bracket(audit: Audit, group: str, scoring_rule: str = "baseline") -> alt.LayerChart:
    """Draw the gap over ε for ``matched`` and ``mirrored`` pairs, and their limits at ε = 0.

    The item that is scored lower should have a slightly lower outcome whatever its group, so that
    without bias one curve is below 0 and the other above; as ε goes to 0 both approach the group's
    own gap.
    On an audit without its rows the limits are left out.

    Parameters
    ----------
    audit : Audit
        An audit with both pairing modes.
    group, scoring_rule : str
        The cell.

    Returns
    -------
    altair.LayerChart
    """
    have = audit.headline["pairing_mode"].values.tolist()
    if not set(_MODES) <= set(have):
        raise MpcError(
            "The bracket must be drawn from matched and mirrored pairs; got an audit of "
            f'{", ".join(have)} pairs only. Audit with pairing_modes=("matched", "mirrored").'
        )
    cell = find_cell(audit, group, scoring_rule, "matched")
    frames = [
        curve_frame(audit, group, scoring_rule, mode).assign(pairs_are=words, first=first)
        for first, (mode, words) in zip((True, False), _MODES.items(), strict=True)
    ]
    frame = pd.concat(frames, ignore_index=True)
    limit = None if audit.ranking is None else _limit(audit, group, scoring_rule)
    span = theme.threshold_axis(*threshold_range(frame, cell.epsilon), room=0.6)
    colour = VERDICTS[cell.verdict].colour
    chart = _layers(frame, limit, span, theme.gap_title(audit), colour).properties(
        width=theme.WIDTH, height=theme.HEIGHT + 40
    )
    words = _title(group, cell.verdict, limit)
    lines = [
        f"{level_of(audit)} intervals: lines and areas at thresholds up to ε; at ε = 0 the limits"
    ]
    if limit is None:
        lines = [f"{level_of(audit)} intervals; the limits at ε = 0 need the rows of the log"]
    if scoring_rule != "baseline":
        lines.append(f"Scores of rule {quote(scoring_rule)}")
    return theme.finish(chart, words, lines)


def _limit(audit: Audit, group: str, rule: str) -> pd.DataFrame:
    found = audit.limit(group, rule, list(_MODES))
    rows = []
    for mode, words in _MODES.items():
        at = found.sel(pairing_mode=mode)
        gap, low, high = (float(at[name]) for name in ("estimate", "ci_low", "ci_high"))
        row: dict[str, Any] = {"pairs_are": words, "epsilon": 0.0, "gap": gap}
        row["first"] = mode == MATCHED.name
        row |= {"low": low, "high": high, "interval": with_interval(gap, low, high)}
        row |= {"bandwidth": float(at["bandwidth"]), "method": str(at["method"].item())}
        rows.append(row)
    return pd.DataFrame(rows)


def _title(group: str, verdict: str, limit: pd.DataFrame | None) -> str:
    who = f"Group {quote(group)} is {verdict}"
    if limit is None:
        return who
    low, high = float(limit["low"].iloc[0]), float(limit["high"].iloc[0])
    if not math.isfinite(low):
        return f"{who}; its limit at ε = 0 is not estimable"
    said = (
        "is above 0" if low > 0 else "is below 0" if high < 0 else "cannot be distinguished from 0"
    )
    return f"{who}; as ε goes to 0 its gap {said}: {limit['interval'].iloc[0]}"


def _layers(
    frame: pd.DataFrame,
    limit: pd.DataFrame | None,
    span: dict[str, Any],
    gap: str,
    colour: str,
) -> alt.LayerChart:
    names = list(_MODES.values())
    # One group has one colour; the dash and the mark say which pairs are meant.
    legend = alt.Legend(
        orient="bottom",
        title=None,
        direction="horizontal",
        labelLimit=300,
        symbolType="stroke",
        symbolStrokeWidth=2,
        symbolSize=700,
        symbolStrokeColor=colour,
    )
    dashes = alt.Scale(domain=names, range=[[1, 0], [5, 3]])
    dash = alt.StrokeDash("pairs_are:N", scale=dashes, legend=legend)
    # Not a scale, which would take the place of the stroke in the legend.
    shape = alt.condition("datum.first", alt.value("circle"), alt.value("square"))
    base = alt.Chart(frame).encode(
        x=alt.X("epsilon:Q", title=theme.EPSILON_TITLE, **span),
        detail="pairs_are:N",
        tooltip=[
            alt.Tooltip("pairs_are:N", title="pairs"),
            alt.Tooltip("epsilon:Q", title="ε", format=".3g"),
            alt.Tooltip("interval:N", title="gap and interval"),
            alt.Tooltip("pairs:Q", title="number of pairs", format=","),
        ],
    )
    layers = [
        base.mark_area(opacity=0.18, color=colour).encode(
            y=alt.Y("low:Q", title=gap), y2=alt.Y2("high:Q")
        ),
        theme.zero_line(),
        base.mark_line(strokeWidth=2, color=colour).encode(
            y=alt.Y("gap:Q", title=gap), strokeDash=dash
        ),
        base.mark_point(filled=True, size=32, opacity=1, color=colour).encode(
            y=alt.Y("gap:Q"), shape=shape
        ),
    ]
    for k, words in enumerate(names if limit is not None else ()):
        layers += _limit_marks(limit, words, 7 * (2 * k - 1), colour, shape)
    return theme.layered(*layers)


def _limit_marks(
    limit: pd.DataFrame | None, words: str, offset: int, colour: str, shape: Any
) -> list[alt.Chart]:
    """Draw one limit beside the axis, so that the two do not cover each other."""
    assert limit is not None
    base = alt.Chart(limit[limit["pairs_are"] == words]).encode(
        x=alt.X("epsilon:Q"),
        tooltip=[
            alt.Tooltip("pairs_are:N", title="limit at ε = 0 of"),
            alt.Tooltip("interval:N", title="gap and interval"),
            alt.Tooltip("bandwidth:Q", format=".3g"),
            alt.Tooltip("method:N"),
        ],
    )
    return [
        base.mark_rule(strokeWidth=2.5, color=colour, xOffset=offset).encode(
            y=alt.Y("low:Q"), y2=alt.Y2("high:Q")
        ),
        base.mark_point(filled=True, size=120, opacity=1, color=colour, xOffset=offset).encode(
            y=alt.Y("gap:Q"), shape=shape
        ),
    ]
