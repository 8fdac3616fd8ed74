"""Mean outcome against score, inside and outside a group, for all queries or by segment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, intervals, level_of
from mpc_lab.errors import MpcError, check_flag
from mpc_lab.results.base import check_label, need_rows, rule_scores, settings
from mpc_lab.results.questions.compare import calibration as curves
from mpc_lab.results.questions.pairs import shown_scores
from mpc_lab.text import column, entry, labels, name, quote, with_interval
from mpc_lab.vocabulary import Floats, Verdict

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_SIDES = {"inside": "in the group", "outside": "not in the group"}
# Beyond these shares of all scores an isotonic fit rests on a few rows, and goes to the ends.
_FIRST, _LAST = 0.01, 0.99
_SEGMENTS = 12


@chart
def calibration(
    audit: Audit,
    group: str,
    scoring_rule: str = "baseline",
    by_segment: bool = False,
    bins: int = 20,
) -> alt.VConcatChart | alt.FacetChart:
    """Draw the mean outcome against the score, for the items of a group and for the others.

    Dots are bins of equal numbers of rows with their intervals, lines the isotonic fits; below is
    the difference of the two. The range drawn is from the 1st to the 99th percentile of all
    scores, whatever their outcomes. Items of
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
    ends = _ends(audit, group, scoring_rule)
    look = theme.verdict_of(audit, group, scoring_rule)
    lines = [
        f"Dots: bins of rows with {level_of(audit)} interval; lines: isotonic fit; "
        "scores from the 1st to the 99th percentile"
    ]
    lines += [] if scoring_rule == "baseline" else [f"Scores of rule {quote(scoring_rule)}"]
    words = _title(audit, group, scoring_rule)
    if not check_flag("by_segment", by_segment):
        found = curves(audit, group, scoring_rule, None, bins, draws=0)
        chart = _layers(theme.outcome_title(audit), look, ends, with_x=False)
        chart = chart.properties(data=_frame(found, ends), width=theme.WIDTH, height=250)
        below = _difference(found, ends, look.colour).properties(width=theme.WIDTH, height=90)
        return theme.finish(theme.stacked(chart, below), words, lines)
    segments = list(ranking.segments)
    if not segments:
        raise MpcError(
            "Calibration by segment must have segments; got a ranking without them. Give "
            "segment= to the ranking."
        )
    shown = segments[:_SEGMENTS]
    parts = [curves(audit, group, scoring_rule, segment, bins, draws=0) for segment in shown]
    lines.append(f"Gap by segment: {_gaps(shown, parts)}")
    more = len(segments) - len(shown)
    lines += [f"The first {len(shown)} of {len(segments)} segments"] if more else []
    panels = _facet(shown, parts, theme.outcome_title(audit), look, ends)
    return theme.finish(panels, words, lines, 2 * 270)


def _ends(audit: Audit, group: str, rule: str) -> tuple[float, float]:
    """Return the percentiles of all scores that are drawn between, as the log shows scores."""
    ranking = need_rows(audit, "calibration")
    scores = rule_scores(audit, group, rule, "matched")
    scores = ranking.score if scores is None else scores
    two = shown_scores(ranking, rule, np.quantile(scores, [_FIRST, _LAST]))
    low, high = sorted(map(float, two))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


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
        return f"{who} not shown to differ from those of others: {numbers}"
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


def _frame(found: xr.Dataset, ends: tuple[float, float]) -> pd.DataFrame:
    frames = []
    for side in found["side"].values.tolist():
        at = found.sel(side=side)
        own = {"score": "score", "outcome": "outcome", "low": "ci_low", "high": "ci_high"}
        dots = pd.DataFrame({shown: at[variable].values for shown, variable in own.items()})
        dots["rows"] = at["n_rows"].values
        dots["interval"] = intervals(dots, "outcome", "low", "high")
        score = _inside(np.asarray(at["isotonic_score"].values), ends)
        line = pd.DataFrame({"score": score, "fit": _fit_at(at, score)})
        dots = dots.dropna(subset=["score", "outcome"])
        dots = dots[dots["score"].between(*ends)]
        frames += [one.assign(side=_SIDES.get(side, side)) for one in (dots, line.dropna())]
    return pd.concat(frames, ignore_index=True)


def _inside(scores: Floats, ends: tuple[float, float]) -> Floats:
    """Return the scores between the ends, and the ends where there are scores beyond them."""
    known = scores[np.isfinite(scores)]
    return np.unique(np.clip(known, *ends)) if len(known) else known


def _fit_at(side: xr.Dataset, scores: Floats) -> Floats:
    """Return a fit of steps at these scores; NaN where it has none."""
    at, fit = (np.asarray(side[name].values) for name in ("isotonic_score", "isotonic"))
    at, fit = at[np.isfinite(at)], fit[np.isfinite(at)]
    order = np.argsort(at)
    place = np.searchsorted(at[order], scores, side="right") - 1
    known = (place >= 0) & (scores <= at.max(initial=-np.inf))
    return np.where(known, fit[order][np.maximum(place, 0)] if len(fit) else np.nan, np.nan)


def _difference(found: xr.Dataset, ends: tuple[float, float], colour: str) -> alt.LayerChart:
    """Draw the outcome in the group less that of the others, by bin and of the two fits."""
    inside, outside = (found.sel(side=side) for side in _SIDES)
    dots = pd.DataFrame(
        {
            "score": (inside["score"].values + outside["score"].values) / 2,
            "gap": inside["outcome"].values - outside["outcome"].values,
        }
    ).dropna()
    dots = dots[dots["score"].between(*ends)]
    dots["shown"] = column(dots["gap"].tolist())
    scores = _inside(np.asarray(found["isotonic_score"].values).ravel(), ends)
    line = pd.DataFrame({"score": scores})
    line["gap"] = _fit_at(inside, scores) - _fit_at(outside, scores)
    x = alt.X("score:Q", title="score", scale=_scale(ends))
    y = alt.Y("gap:Q", title="difference")
    steps = alt.Chart(line.dropna()).mark_line(
        strokeWidth=1.5, interpolate="step-after", opacity=0.7, color=colour
    )
    marks = alt.Chart(dots).mark_point(filled=True, size=42, opacity=1, color=colour)
    tooltip = [
        alt.Tooltip("score:Q", title="mean score", format=".4g"),
        alt.Tooltip("shown:N", title="group less others"),
    ]
    return theme.layered(
        theme.zero_line(), steps.encode(x=x, y=y), marks.encode(x=x, y=y, tooltip=tooltip)
    )


def _scale(ends: tuple[float, float]) -> alt.Scale:
    return alt.Scale(domain=list(ends), zero=False, nice=False, padding=6)


def _layers(
    outcome: str, look: Verdict, ends: tuple[float, float], with_x: bool = True
) -> alt.LayerChart:
    names = list(_SIDES.values())
    where: Any = "bottom" if with_x else "top"
    legend = alt.Legend(
        title=None, orient=where, direction="horizontal", symbolOpacity=1, symbolStrokeWidth=0
    )
    colours = alt.Scale(domain=names, range=[look.colour, theme.GREY])
    colour = alt.Color("side:N", scale=colours, legend=legend)
    shapes = alt.Scale(domain=names, range=[look.shape, "diamond"])
    title = f"mean {outcome}"
    axis = alt.Undefined if with_x else alt.Axis(labels=False, ticks=False)
    x_title = "score" if with_x else None
    base = alt.Chart().encode(
        x=alt.X("score:Q", title=x_title, scale=_scale(ends), axis=axis),
        color=colour,
    )
    dashes = alt.Scale(domain=names, range=[[1, 0], [5, 3]])
    fitted = base.mark_line(
        strokeWidth=1.5, interpolate="step-after", opacity=0.7, invalid="filter"
    ).encode(strokeDash=alt.StrokeDash("side:N", scale=dashes, legend=None))
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


def _facet(
    segments: list[str],
    found: list[xr.Dataset],
    outcome: str,
    look: Verdict,
    ends: tuple[float, float],
) -> alt.FacetChart:
    frames = [
        _frame(one, ends).assign(segment=label, place=k)
        for k, (label, one) in enumerate(zip(labels(segments), found, strict=True))
    ]
    return (
        _layers(outcome, look, ends)
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
