"""Mean outcome against score, inside and outside a group, for all queries or by segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, intervals, level_of
from mpc_lab.errors import MpcError, check_flag
from mpc_lab.results.base import check_label, need_rows, rule_scores, settings
from mpc_lab.results.questions.compare import calibration as curves
from mpc_lab.text import entry, labels, name, quote, with_interval

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_SIDES = {"inside": "in the group", "outside": "not in the group"}
_SEGMENTS = 12


@chart
def calibration(
    audit: Audit,
    group: str,
    scoring_rule: str = "baseline",
    by_segment: bool = False,
    bins: int = 20,
) -> alt.LayerChart | alt.FacetChart:
    """Draw the mean outcome against the score, for the items of a group and for the others.

    Dots are bins of equal numbers of rows with their intervals, lines the isotonic fits. Items of
    all queries are compared at about the same score: a gap inside queries may be hidden here, which
    the drawing by segment can show.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group, scoring_rule : str
    by_segment : bool
        A panel for each segment of queries, at most 12.
    bins : int

    Returns
    -------
    altair chart
    """
    ranking = need_rows(audit, "calibration")
    check_label("group", group, audit.groups)
    check_label("scoring_rule", scoring_rule, audit.headline["scoring_rule"].values.tolist())
    lines = [f"Dots: bins of rows with {level_of(audit)} interval; lines: isotonic fit"]
    lines += [] if scoring_rule == "baseline" else [f"Scores of rule {quote(scoring_rule)}"]
    words = _title(audit, group, scoring_rule)
    if not check_flag("by_segment", by_segment):
        frame = _frame(curves(audit, group, scoring_rule, None, bins, draws=0))
        chart = _layers(theme.outcome_title(audit)).properties(data=frame, width=440, height=330)
        return theme.finish(chart, words, lines)
    segments = list(ranking.segments)
    if not segments:
        raise MpcError(
            "Calibration by segment must have segments; got a ranking without them. Give "
            "segment= to the ranking."
        )
    shown = segments[:_SEGMENTS]
    found = [curves(audit, group, scoring_rule, segment, bins, draws=0) for segment in shown]
    lines.append(f"Gap by segment: {_gaps(shown, found)}")
    more = len(segments) - len(shown)
    lines += [f"The first {len(shown)} of {len(segments)} segments"] if more else []
    return theme.finish(_faceted(shown, found, theme.outcome_title(audit)), words, lines, 2 * 270)


def _title(audit: Audit, group: str, rule: str) -> str:
    from mpc_lab.comparators.base import Case
    from mpc_lab.comparators.calibration import calibration_gap

    scores = rule_scores(audit, group, rule, "matched")
    level = float(settings(audit).get("level", 0.95))
    case = Case(need_rows(audit, "calibration"), group, scores=scores, level=level)
    (found,) = calibration_gap(case)
    numbers = with_interval(found.estimate, found.ci_low, found.ci_high)
    if not np.isfinite(found.estimate):
        return f"At equal scores over all queries group {quote(group)} cannot be compared"
    who = f"At equal scores over all queries outcomes of group {quote(group)} are"
    if not found.flagged:
        return f"{who} about as high as those of others: {numbers}"
    return f"{who} {'higher' if found.estimate > 0 else 'lower'} than those of others: {numbers}"


def _gaps(segments: list[str], found: list[xr.Dataset]) -> str:
    return "; ".join(
        f"{name(segment)} {entry(_gap(one), 3)}"
        for segment, one in zip(segments, found, strict=True)
    )


def _gap(found: xr.Dataset) -> float:
    """Return the mean difference over bins that have rows of both sides, by rows of the group."""
    y, rows = found["outcome"].values, found["n_rows"].values.astype(float)
    both = (rows > 0).all(axis=0)
    total = rows[0, both].sum()
    return float((rows[0, both] * (y[0] - y[1])[both]).sum() / total) if total else float("nan")


def _frame(found: xr.Dataset) -> pd.DataFrame:
    frames = []
    for side in found["side"].values.tolist():
        at = found.sel(side=side)
        own = {"score": "score", "outcome": "outcome", "low": "ci_low", "high": "ci_high"}
        dots = pd.DataFrame({shown: at[variable].values for shown, variable in own.items()})
        dots["rows"] = at["n_rows"].values
        dots["interval"] = intervals(dots, "outcome", "low", "high")
        line = pd.DataFrame({"score": at["isotonic_score"].values, "fit": at["isotonic"].values})
        dots, line = dots.dropna(subset=["score", "outcome"]), line.dropna()
        frames += [one.assign(side=_SIDES.get(side, side)) for one in (dots, line)]
    return pd.concat(frames, ignore_index=True)


def _layers(outcome: str) -> alt.LayerChart:
    names = list(_SIDES.values())
    legend = alt.Legend(title=None, orient="bottom", direction="horizontal", symbolOpacity=1)
    colours = alt.Scale(domain=names, range=[theme.UNDERVALUED, theme.OVERVALUED])
    colour = alt.Color("side:N", scale=colours, legend=legend)
    shapes = alt.Scale(domain=names, range=["triangle-up", "circle"])
    title = f"mean {outcome}"
    base = alt.Chart().encode(
        x=alt.X("score:Q", title="score", scale=alt.Scale(zero=False, nice=False, padding=6)),
        color=colour,
    )
    fitted = base.mark_line(
        strokeWidth=1.5, interpolate="step-after", opacity=0.7, invalid="filter"
    )
    bars = base.mark_rule(strokeWidth=1.5).encode(
        y=alt.Y("low:Q", title=title, scale=alt.Scale(zero=False)), y2=alt.Y2("high:Q")
    )
    dots = base.mark_point(filled=True, size=42, opacity=1).encode(
        y=alt.Y("outcome:Q", title=title),
        shape=alt.Shape("side:N", scale=shapes, legend=legend),
        tooltip=[
            alt.Tooltip("side:N", title="items"),
            alt.Tooltip("score:Q", title="mean score", format=".4g"),
            alt.Tooltip("interval:N", title=title),
            alt.Tooltip("rows:Q", format=","),
        ],
    )
    return theme.layered(fitted.encode(y=alt.Y("fit:Q", title=title)), bars, dots)


def _faceted(segments: list[str], found: list[xr.Dataset], outcome: str) -> alt.FacetChart:
    frames = [
        _frame(one).assign(segment=label, place=k)
        for k, (label, one) in enumerate(zip(labels(segments), found, strict=True))
    ]
    return (
        _layers(outcome)
        .properties(width=260, height=220)
        .facet(
            facet=alt.Facet(
                "segment:N",
                header=alt.Header(title=None, labelFontWeight="bold"),
                sort=alt.EncodingSortField("place", op="min"),
            ),
            columns=2,
            data=pd.concat(frames, ignore_index=True),
        )
    )
