"""The gap of every group under old and new, joined, beside their difference with its interval."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, cast

import altair as alt
import numpy as np
import pandas as pd

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, intervals
from mpc_lab.errors import MpcError, check_count, check_flag
from mpc_lab.inference.difference import HIGHER, LOWER, NO_DIFFERENCE
from mpc_lab.results.base import check_label
from mpc_lab.results.difference import Difference
from mpc_lab.results.questions.difference import Compared
from mpc_lab.text import entry, listing, middle_cut, p_value, percent, plural, quote
from mpc_lab.vocabulary import INCONCLUSIVE, NOT_ESTIMABLE

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_FOUND = theme.OTHER
# The colour and shape of each verdict. Orange and blue mean undervalued and overvalued elsewhere.
_LOOKS = {
    HIGHER: (_FOUND, "triangle-right"),
    LOWER: (_FOUND, "triangle-left"),
    INCONCLUSIVE: (theme.GREY, "circle"),
    NO_DIFFERENCE: (theme.GREY, "square"),
    NOT_ESTIMABLE: (theme.GREY, "cross"),
}
_NAMED = 4
_LABEL = 40
_GAPS_WIDE, _DIFFERENCE_WIDE = 250, 210
_BETWEEN = 30  # two labels of ticks fit there, half of each


@chart
def difference(
    found: Difference,
    pairing_mode: str | None = None,
    limit: int = 60,
    *,
    narrow: bool = False,
    live: bool = False,
) -> alt.HConcatChart | alt.VConcatChart:
    """Draw both gaps of each group, joined, and beside them their difference with its interval.

    Groups whose difference is found come first, then the largest differences. An interval that
    leaves the drawing ends in an arrow; those of findings never do.

    Parameters
    ----------
    found : Difference
        What :meth:`mpc_lab.Audit.difference` or :func:`mpc_lab.difference` returned.
    pairing_mode : str, optional
        By default the first.
    limit : int
        At most this many groups.
    narrow : bool
        The differences below the gaps, for a page of 700 pixels or less.
    live : bool
        With the parameters of a chart on a page: a click on a row selects its ``place`` as
        ``pick``, and the row whose place is ``chosen`` is shaded.

    Returns
    -------
    altair.HConcatChart or altair.VConcatChart
    """
    if not isinstance(found, Difference):
        raise MpcError(
            f"found must be what audit.difference() returned; got {type(found).__name__}. Call "
            'mpc.charts.difference(audit.difference("new", "baseline")).'
        )
    limit, narrow = check_count("limit", limit), check_flag("narrow", narrow)
    mode = found.pairing_modes[0] if pairing_mode is None else pairing_mode
    check_label("pairing_mode", mode, found.pairing_modes)
    frame = difference_rows(found, mode)
    attrs, total = found.attrs, len(frame)
    adjusted = "" if attrs.get("adjust", "none") == "none" else ", adjusted over groups"
    gaps, beside = ("Above", "Below") if narrow else ("Left", "Right")
    lines = [
        f"{gaps}, ring: {attrs['old']}; dot: {attrs['new']}. {_pairs(mode)}",
        f"{beside}: new less old with the {percent(float(attrs['level']))} interval of the "
        f"difference{adjusted}",
    ]
    lines += [f"The first {limit:,} of {total:,} groups"] if total > limit else []
    outcome = theme.cut_outcome(str(attrs["outcome"]))
    panels = _panels(frame[:limit], outcome, narrow, check_flag("live", live))
    width = _GAPS_WIDE + 120 + (0 if narrow else _DIFFERENCE_WIDE)
    return theme.finish(panels, _title(frame, attrs), lines, width)


def _pairs(mode: str) -> str:
    return f"{mode[:1].upper()}{mode[1:]}" if " − " in mode else f"{mode.capitalize()} pairs"


def difference_rows(found: Difference, mode: str) -> pd.DataFrame:
    """Return a row for each group in the order that they are drawn in."""
    data = found.data.sel(pairing_mode=mode)
    names = {"old": "old", "new": "new", "difference": "difference", "p": "p_adjusted"}
    names |= {"low": "ci_low_adjusted", "high": "ci_high_adjusted", "verdict": "verdict"}
    frame = pd.DataFrame({shown: data[own].values for shown, own in names.items()})
    frame.insert(0, "group", list(found.groups))
    frame["reason"] = data["verdict_reason"].values
    is_found = frame["verdict"].isin([HIGHER, LOWER])
    rank = np.where(is_found, 0, np.where(frame["verdict"] == NOT_ESTIMABLE, 2, 1))
    size = -frame["difference"].abs().fillna(-1.0).to_numpy()
    return frame.iloc[np.lexsort((size, rank))].reset_index(drop=True)


def _title(frame: pd.DataFrame, attrs: Mapping[str, Any]) -> str:
    new, old = str(attrs["new"]), str(attrs["old"])
    if len(frame) == 1 and frame["verdict"][0] in (HIGHER, LOWER):
        return (
            f"The gap of {new} is {frame['verdict'][0]} than that of {old}{_of_group(frame, new)}"
        )
    parts = []
    for verdict in (HIGHER, LOWER):
        names = [quote(name) for name in frame.loc[frame["verdict"] == verdict, "group"]]
        if len(names) > _NAMED + 1:
            parts.append(f"{verdict} for {plural(len(names), 'group')} ({listing(names, _NAMED)})")
        elif names:
            parts.append(f"{verdict} for {listing(names, _NAMED + 1)}")
    if parts:
        return f"The gap of {new} is {'; '.join(parts)}"
    if (frame["verdict"] == NO_DIFFERENCE).all():
        return f"No difference: {new} and {old} have the same pairs"
    if (frame["verdict"] == NOT_ESTIMABLE).all():
        return f"No difference between {new} and {old} could be estimated"
    return f"No difference is found between {new} and {old}"


def _of_group(frame: pd.DataFrame, new: str) -> str:
    """Return which group it is, unless groups are compared."""
    return "" if new.startswith("group ") else f" for {quote(frame['group'][0])}"


def _bounds(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the ends of the scale of differences: 0 and all findings are inside."""
    ends = frame[["low", "high"]].dropna()
    if ends.empty:
        return -1.0, 1.0
    sizes = np.sort(ends.abs().max(axis=1).to_numpy())
    bound = 2 * sizes[(4 * len(sizes)) // 5] or 1.0
    flagged = ends[frame.loc[ends.index, "verdict"].isin([HIGHER, LOWER])]
    low = min(0.0, max(ends["low"].min(), -bound), flagged["low"].min() if len(flagged) else 0.0)
    high = max(0.0, min(ends["high"].max(), bound), flagged["high"].max() if len(flagged) else 0.0)
    return (float(low), float(high)) if high > low else (-1.0, 1.0)


def _panels(
    frame: pd.DataFrame, outcome: str, narrow: bool, live: bool
) -> alt.HConcatChart | alt.VConcatChart:
    start, end = _bounds(frame)
    known = frame["verdict"] != NOT_ESTIMABLE
    shown = frame.assign(
        name=middle_cut(frame["group"], _LABEL),
        place=range(len(frame)),
        interval=intervals(frame, "difference", "low", "high"),
        said=[_said(row) for row in frame.to_dict("records")],
        gaps=[
            f"{entry(float(old), 3)} → {entry(float(new), 3)}"
            for old, new in zip(frame["old"], frame["new"], strict=True)
        ],
        from_=frame["low"].clip(start, end),
        to=frame["high"].clip(start, end),
        dot=frame["difference"].where(known & frame["difference"].between(start, end)),
        cut_left=np.where(frame["low"] < start, start, np.nan),
        cut_right=np.where(frame["high"] > end, end, np.nan),
        missing_at=np.where(known, np.nan, 0.0),
        missing=np.where(known, "", NOT_ESTIMABLE),
    ).drop(columns=["group", "reason", "p"])
    height = theme.rows_high(len(frame))
    gaps = _dumbbells(shown, outcome).properties(width=_GAPS_WIDE, height=height)
    beside = _intervals(shown, (start, end), labelled=narrow).properties(
        width=_GAPS_WIDE if narrow else _DIFFERENCE_WIDE, height=height
    )
    join = alt.vconcat if narrow else alt.hconcat
    if not live:
        return join(gaps, beside, spacing=_BETWEEN)
    pick = alt.selection_point(name="pick", fields=["place"], toggle=False, clear=False)
    gaps = _clickable(shown, gaps, pick, labelled=True)
    beside = _clickable(shown, beside, pick, labelled=narrow)
    with warnings.catch_warnings():
        # One selection for both panels is intended.
        warnings.filterwarnings("ignore", message="Automatically deduplicated selection")
        both = join(gaps, beside, spacing=_BETWEEN)
    made: alt.HConcatChart | alt.VConcatChart = both.add_params(alt.param(name="chosen", value=-1))
    return made


def _said(row: Mapping[Hashable, Any]) -> str:
    """Return a verdict with its reason or its p-value, in one line."""
    p = float(row["p"])
    behind = str(row["reason"]) or (f"adjusted p {p_value(p)}" if np.isfinite(p) else "")
    return f"{row['verdict']} ({behind})" if behind else str(row["verdict"])


def _base(shown: pd.DataFrame, *, labelled: bool) -> alt.Chart:
    y = theme.name_rows("name", **({} if labelled else {"labels": False, "ticks": False}))
    tooltip = [
        alt.Tooltip("name:N", title="group"),
        alt.Tooltip("said:N", title="verdict"),
        alt.Tooltip("interval:N", title="difference"),
        alt.Tooltip("gaps:N", title="gap, old and new"),
    ]
    return alt.Chart(shown).encode(y=y, tooltip=tooltip)


def _axis(low: float, high: float, title: str, field: str) -> alt.X:
    margin = 0.05 * (high - low)
    low, high = low - margin, high + margin
    ticks = theme.gap_ticks(low, high, 5)
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    # Flush labels are moved inwards, onto the next one.
    axis = alt.Axis(values=ticks, grid=True, labelOverlap=False, labelFlush=False)
    return alt.X(field, title=title, scale=scale, axis=axis)


def _colour() -> alt.Color:
    scale = alt.Scale(domain=list(_LOOKS), range=[colour for colour, _ in _LOOKS.values()])
    return alt.Color("verdict:N", scale=scale, legend=None)


def _dumbbells(shown: pd.DataFrame, outcome: str) -> alt.LayerChart:
    known = shown[["old", "new"]].to_numpy()
    known = known[np.isfinite(known)]
    low, high = min(0.0, *known), max(0.0, *known)
    low, high = (low, high) if high > low else (-1.0, 1.0)
    base = _base(shown, labelled=True)
    title = f"gap in {outcome}"
    bars = base.mark_rule(strokeWidth=2).encode(
        x=_axis(low, high, title, "old:Q"), x2="new:Q", color=_colour()
    )
    rings = base.mark_point(filled=False, size=55, strokeWidth=1.6, opacity=1, color=theme.GREY)
    dots = base.mark_point(filled=True, size=70, opacity=1)
    return theme.layered(
        theme.zero_line("x"), bars, rings.encode(x="old:Q"), dots.encode(x="new:Q", color=_colour())
    )


def _intervals(shown: pd.DataFrame, ends: tuple[float, float], *, labelled: bool) -> alt.LayerChart:
    base = _base(shown, labelled=labelled)
    bars = base.mark_rule(strokeWidth=2).encode(
        x=_axis(*ends, "difference, new less old", "from_:Q"), x2="to:Q", color=_colour()
    )
    shape = alt.Shape(
        "verdict:N",
        scale=alt.Scale(domain=list(_LOOKS), range=[shape for _, shape in _LOOKS.values()]),
        legend=None,
    )
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x="dot:Q", color=_colour(), shape=shape
    )
    arrows = [
        base.mark_point(shape=f"triangle-{way}", filled=True, size=45, opacity=1).encode(
            x=f"cut_{way}:Q", color=_colour()
        )
        for way in ("left", "right")
    ]
    words = base.mark_text(color=theme.GREY, fontStyle="italic", align="left", dx=6).encode(
        x="missing_at:Q", text="missing:N"
    )
    return theme.layered(theme.zero_line("x"), bars, *arrows, dots, words)


def _clickable(
    shown: pd.DataFrame, panel: alt.LayerChart, pick: alt.Parameter, *, labelled: bool
) -> alt.LayerChart:
    """Return a panel with a bar across each row, shaded where the row is chosen."""
    shade = alt.condition("datum.place == chosen", alt.value(0.2), alt.value(0))
    rows = _base(shown, labelled=labelled).mark_rect(color=theme.GREY, cursor="pointer")
    made: alt.LayerChart = panel.copy()
    made.layer = [rows.encode(opacity=shade).add_params(pick), *panel.layer]
    return made


# ---- both gaps of one group over the threshold

_SIDES = ("new", "old")


def both_curves(found: Difference, new: Compared, old: Compared) -> alt.LayerChart:
    """Draw the gap of one group over ε under old and new, each with its interval at each ε.

    Parameters
    ----------
    found : Difference
        The difference that names new and old.
    new, old : Compared
        The same group and mode of two rules or audits.
    """
    parts, own = [], []
    for side, cell in zip(_SIDES, (new, old), strict=True):
        frame = theme.curve_frame(cast("Audit", cell.audit), cell.group, cell.rule, cell.mode)
        parts.append(
            frame[["epsilon", "gap", "low", "high", "pairs", "interval"]].assign(side=side)
        )
        own.append({"side": side, "epsilon": cell.value("epsilon"), "gap": cell.value("estimate")})
    frame = pd.concat(parts, ignore_index=True)
    edge = _edge(frame)
    frame[["low", "high"]] = frame[["low", "high"]].clip(-edge, edge)
    marks = pd.DataFrame(own)
    span = theme.threshold_axis(*theme.threshold_range(frame, float(marks["epsilon"].max())))
    layers = _curve_layers(frame, marks, span, theme.gap_title(cast("Audit", new.audit)))
    level = percent(float(found.attrs["level"]))
    lines = [
        f"Solid: {found.attrs['new']}; dashed: {found.attrs['old']}. {_pairs(new.mode)}",
        f"Areas: {level} interval of each at each ε alone; marked: their own thresholds",
    ]
    return theme.finish(layers, f"Both gaps of group {quote(new.group)} over ε", lines)


def _edge(frame: pd.DataFrame) -> float:
    """Return where areas are cut that would make the curves look flat."""
    sizes = frame[["low", "high"]].abs().max(axis=1)
    middle = float(sizes.median())
    return 4 * middle if middle > 0 else np.inf


def _curve_layers(
    frame: pd.DataFrame, marks: pd.DataFrame, span: dict[str, Any], title: str
) -> alt.LayerChart:
    colour = alt.Color(
        "side:N",
        scale=alt.Scale(domain=list(_SIDES), range=[_FOUND, theme.GREY]),
        legend=alt.Legend(
            title=None, orient="bottom", symbolOpacity=1, symbolType="circle", symbolStrokeWidth=0
        ),
    )
    dash = alt.StrokeDash(
        "side:N", scale=alt.Scale(domain=list(_SIDES), range=[[1, 0], [5, 3]]), legend=None
    )
    x = alt.X("epsilon:Q", title=theme.EPSILON_TITLE, **span)
    tooltip = [
        alt.Tooltip("side:N", title="side"),
        alt.Tooltip("epsilon:Q", title="ε", format=".3g"),
        alt.Tooltip("interval:N", title="gap and interval"),
        alt.Tooltip("pairs:Q", format=","),
    ]
    base = alt.Chart(frame).encode(x=x, color=colour, tooltip=tooltip)
    areas = base.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    lines = base.mark_line(strokeWidth=2).encode(y=alt.Y("gap:Q", title=title), strokeDash=dash)
    dots = alt.Chart(marks).mark_point(filled=True, size=80, opacity=1)
    dots = dots.encode(x=x, y="gap:Q", color=colour)
    layers = [areas, theme.zero_line(), lines, dots]
    return theme.layered(*layers).properties(width=theme.WIDTH, height=200)
