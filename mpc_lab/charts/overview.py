"""The whole audit at a glance: every gap with its interval, beside every group's curve over ε."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, level_of, threshold_range
from mpc_lab.errors import check_count, check_flag
from mpc_lab.results.base import check_label, settings
from mpc_lab.results.summary import (
    Cell,
    Slice,
    decimals_of,
    finding_title,
    interval_range,
    interval_word,
    slices,
    why_not,
)
from mpc_lab.results.wording import outcome_word
from mpc_lab.text import (
    beside,
    between,
    middle_cut,
    plain,
    with_interval,
)
from mpc_lab.vocabulary import DIRECTIONS, NOT_ESTIMABLE, VERDICTS

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_ROW, _LEAST_HEIGHT = 24, 140
_FOREST_WIDE, _PANEL_WIDE, _PANEL_HIGH = 380, 128, 54
_NARROW_PANEL, _BETWEEN, _NAMES_APART = 150, 34, 4
# Up to this many groups have wider panels and longer names.
_FEW, _FEW_PANEL, _FEW_NARROW_PANEL = 4, 250, 245
# The width at which the words above it are broken.
WIDE, NARROW = 1100, 620
_NUMBERS_WIDE, _INTERVAL_WIDE = 56, 132
# The narrow forest takes what names and numbers leave, between these.
_NARROW_LEAST, _NARROW_MOST, _NAME_CHARACTER = 180, 400, 7.0
_FEW_NAME_AT_MOST, _PANEL_CHARACTER, _TICK_WIDE = 40, 6.8, 55
# While a threshold is looked at, the verdict's own marks are paler: looking is not testing.
_PALE = 0.3
# The rows of the threshold that is looked at: what the page sets, else what was pointed at.
_AT: Any = (
    "datum.epsilon == "
    "(at >= 0 ? at : length(data('pointed_store')) ? data('pointed_store')[0].values[0] : -1)"
)


@chart
def overview(
    audit: Audit,
    pairing_mode: str | None = None,
    limit: int = 60,
    *,
    scoring_rule: str | None = None,
    verdicts: Sequence[str] = (),
    narrow: bool = False,
    live: bool = False,
) -> alt.HConcatChart | alt.VConcatChart:
    """Draw every gap with its verdict, beside the curve of every group over ε.

    Groups are sorted by gap. The scale holds the interval of every undervalued and overvalued
    group; another that is cut ends in an arrow, and so does a curve that leaves it.

    Parameters
    ----------
    audit : Audit
    pairing_mode : str, optional
        By default the one declared before the run, else the first that was asked for.
    limit : int
        At most this many groups, those with a finding first.
    scoring_rule : str, optional
        By default that of the headline.
    verdicts : list of str
        Only the groups with one of these verdicts; by default all.
    narrow : bool
        The curves below the intervals, for a page of 700 pixels or less.
    live : bool
        For a page with scripts: a drag along a curve, or the parameter ``at``, draws in all rows
        the gap and the pointwise interval at that ε, and the verdicts' own marks turn pale, since
        a verdict is about its own ε alone; a double click ends it. A click on a row selects its
        ``place`` as ``pick``, and the row whose place is ``chosen`` is shaded. Drawn as a picture
        it looks the same as without.

    Returns
    -------
    altair.HConcatChart or altair.VConcatChart

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> mpc.charts.overview(audit).to_dict()["usermeta"]["mpc"]["subtitle"][0]
    '● 2 inconclusive'
    """
    limit, narrow = check_count("limit", limit), check_flag("narrow", narrow)
    live = check_flag("live", live)
    part = _part(audit, pairing_mode, scoring_rule)
    for verdict in verdicts:
        check_label("verdict", verdict, list(VERDICTS))
    wanted = [cell for cell in part.cells if not verdicts or cell.verdict in verdicts]
    cells = by_gap(wanted[:limit])
    names = _names(audit, cells)
    scale = gap_range(cells)
    curves = _curves(audit, part, cells, names, narrow)
    panel_scale = _panel_range(curves, scale)
    curves = _with_cuts(curves, panel_scale)
    rows = _rows(cells, names, scale)
    span = threshold_range(curves, _largest_epsilon(cells))
    # A curve of one threshold would say again what the forest says.
    has_curves = len(set(curves.loc[curves["gap"].notna(), "epsilon"])) > 1
    looked = curves if live and has_curves else None
    forest = _forest(rows, looked, scale, narrow, outcome_word(settings(audit)), live)
    panels = [_panels(curves, panel_scale, span, narrow, live)] if has_curves else []
    subtitle = [chips(part), *_subtitle(audit, part, cells, narrow, has_curves)]
    if narrow:
        stack = alt.VConcatChart(vconcat=[forest, *panels], spacing=28)
        _add_params(stack, live, has_curves)
        return theme.finish(stack, finding_title(part), subtitle, NARROW)
    beside = alt.HConcatChart(hconcat=[forest, *panels], spacing=36)
    _add_params(beside, live, has_curves)
    return theme.finish(beside, finding_title(part), subtitle, WIDE if panels else NARROW)


def _add_params(whole: Any, live: bool, has_curves: bool) -> None:
    """Add what a page sets and selects, beside ``pick``: ``at``, ``pointed`` and ``chosen``."""
    if not live:
        return
    config = alt.PointSelectionConfig(
        type="point",
        fields=["epsilon"],
        nearest=True,
        toggle=False,
        on="pointerdown, [pointerdown, window:pointerup] > pointermove",
        clear="dblclick",
    )
    make: Any = alt.TopLevelParameter  # which has no types
    whole.params = [
        *([] if whole.params is alt.Undefined else whole.params),
        *([make(name="pointed", select=config, views=["curves"])] if has_curves else []),
        alt.VariableParameter(name="at", value=-1),
        alt.VariableParameter(name="chosen", value=-1),
    ]


def chips(part: Slice) -> str:
    """Return how many groups have each verdict, with the marks that the chart draws them by."""
    counts = [(verdict, len(part.having(name))) for name, verdict in VERDICTS.items()]
    return "\u2003".join(
        f"{mark_of(one.name)} {count:,} {one.name}" for one, count in counts if count
    )


def mark_of(verdict: str) -> str:
    """Return the mark of a verdict, to be put before a word or a number."""
    # The dash of a table, before a number, would be read as a minus.
    return "✚" if verdict == NOT_ESTIMABLE else VERDICTS[verdict].mark


def _part(audit: Audit, mode: str | None, rule: str | None) -> Slice:
    parts = slices(audit)
    mode = parts[0].mode if mode is None else mode
    rule = parts[0].rule if rule is None else rule
    check_label("pairing_mode", mode, sorted({part.mode for part in parts}))
    check_label("scoring_rule", rule, sorted({part.rule for part in parts}))
    return next(part for part in parts if (part.mode, part.rule) == (mode, rule))


def by_gap(cells: Sequence[Cell]) -> list[Cell]:
    """Return cells in the order of the rows: the largest gap first, unknown ones last."""
    return sorted(cells, key=lambda cell: _last_if_unknown(cell.estimate))


def _last_if_unknown(estimate: float) -> float:
    return -estimate if math.isfinite(estimate) else math.inf


def _largest_epsilon(cells: list[Cell]) -> float:
    return max([cell.epsilon for cell in cells if math.isfinite(cell.epsilon)], default=math.nan)


def _subtitle(
    audit: Audit, part: Slice, cells: list[Cell], narrow: bool, has_curves: bool
) -> list[str]:
    options = settings(audit)
    adjusted = "" if options.get("adjust", "none") == "none" else "adjusted "
    word = interval_word(part.mode, options)
    used = [cell.epsilon for cell in part.cells if cell.pairs and math.isfinite(cell.epsilon)]
    at = f" at ε = {between(used, '.3g')}" if used else ""
    rule = "" if part.rule == "baseline" else f", scores of rule '{plain(part.rule)}'"
    beside = f" beside {part.against}" if part.against else ""
    sides = ("Above: gap", "Below") if narrow else ("Left: gap", "Right")
    lines = [
        f"{sides[0] if has_curves else 'Gap'} in {outcome_word(options)}{beside}, with "
        f"{adjusted}{level_of(audit)} {word}{at}{rule}",
        f"{sides[1]}: the same gap at every ε with pointwise {level_of(audit)} interval; "
        "dashed: the ε of the verdict",
    ]
    lines = lines if has_curves else lines[:1]
    lines += theme.explain_hollow(cells)
    left = len(part.cells) - len(cells)
    lines += [f"{len(cells):,} of {len(part.cells):,} groups, findings first"] if left else []
    return lines


def gap_range(cells: Sequence[Cell]) -> tuple[float, float]:
    """Return the ends of a scale that holds 0 and every interval with a finding."""
    low, high = interval_range(cells)
    found = [cell for cell in cells if cell.verdict in DIRECTIONS]
    ends = [end for cell in found for end in (cell.low, cell.high) if math.isfinite(end)]
    low, high = min([low, *ends]), max([high, *ends])
    margin = 0.04 * (high - low)
    return low - margin, high + margin


def _rows(cells: list[Cell], names: list[str], scale: tuple[float, float]) -> pd.DataFrame:
    start, end = scale
    places = decimals_of(cells)
    rows = []
    for place, (cell, name) in enumerate(zip(cells, names, strict=True)):
        known = math.isfinite(cell.estimate)
        inside = known and start <= cell.estimate <= end
        is_open = theme.is_clear_but_open(cell)
        reason = why_not(cell) if cell.verdict == NOT_ESTIMABLE else cell.reason
        rows.append(
            {
                "group": plain(cell.group),
                "name": name,
                "place": place,
                "verdict": cell.verdict,
                "said": f"{cell.verdict} ({reason})" if reason else cell.verdict,
                "gap": cell.estimate,
                "dot": cell.estimate if inside and not is_open else math.nan,
                "hollow": cell.estimate if inside and is_open else math.nan,
                "low": max(cell.low, start) if known else math.nan,
                "high": min(cell.high, end) if known else math.nan,
                "cut_left": start if known and cell.low < start else math.nan,
                "cut_right": end if known and cell.high > end else math.nan,
                "number": _write_signed(cell.estimate, places) if known else "",
                "ends": _ends(cell, places) if math.isfinite(cell.low) else cell.verdict,
                "interval": with_interval(cell.estimate, cell.low, cell.high),
                "pairs": f"{cell.pairs:,} at ε = {cell.epsilon:.3g}" if cell.pairs else "0",
            }
        )
    return pd.DataFrame(rows)


def _names(audit: Audit, cells: Sequence[Cell]) -> list[str]:
    """Return the names of rows: long where there are few."""
    at_most = _FEW_NAME_AT_MOST if len(cells) <= _FEW else theme.NAME_AT_MOST
    known = theme.short_names(audit.groups, at_most)
    return [known[cell.group] for cell in cells]


def _write_signed(value: float, places: int) -> str:
    shown = beside(value, places)
    return f"+{shown}" if float(f"{value:.{places}f}") > 0 else shown


def _ends(cell: Cell, places: int) -> str:
    return f"{_write_signed(cell.low, places)} to {_write_signed(cell.high, places)}"


def _curves(
    audit: Audit,
    part: Slice,
    cells: list[Cell],
    names: list[str],
    narrow: bool,
) -> pd.DataFrame:
    """Return all curves, a row for each group and threshold."""
    panel = _panel_wide(len(cells), narrow)
    # With its mark a name ends before the next one, else few panels would fit beside each other.
    room = panel + _BETWEEN - _NAMES_APART
    shorter = middle_cut([cell.group for cell in cells], int(room / _PANEL_CHARACTER) - 2)
    frames = []
    audit._make_curves([cell.group for cell in cells], part.rule)
    for place, (cell, short) in enumerate(zip(cells, shorter, strict=True)):
        frame = theme.curve_frame(audit, cell.group, part.rule, part.mode)
        frame = frame[["epsilon", "gap", "low", "high", "pairs", "interval"]]
        # A handful of pairs without an interval can give any gap.
        frame["gap"] = frame["gap"].where(np.isfinite(frame["low"]))
        frame = frame.assign(own=math.nan, zero=math.nan, name=names[place], verdict=cell.verdict)
        # One row of each panel has its threshold and its line at 0.
        frame.loc[frame.index[:1], ["own", "zero"]] = [cell.epsilon, 0.0]
        frames.append(frame.assign(title=f"{mark_of(cell.verdict)} {short}", place=place))
    return pd.concat(frames, ignore_index=True)


def _panel_range(curves: pd.DataFrame, scale: tuple[float, float]) -> tuple[float, float]:
    """Return a scale that also holds the curves with a finding, of few groups with their intervals.

    A handful of pairs can give any gap: each end moves at most by the width of the scale.
    """
    found = curves[curves["verdict"].isin(DIRECTIONS)]
    fields = ["gap", "low", "high"] if curves["place"].nunique() <= _FEW else ["gap"]
    known = found[fields].to_numpy(dtype=float)
    known = known[np.isfinite(known)]
    if not known.size:
        return scale
    low, high = scale
    width = high - low
    margin = 0.04 * width
    return (
        min(low, max(float(known.min()) - margin, low - width)),
        max(high, min(float(known.max()) + margin, high + width)),
    )


def _with_cuts(curves: pd.DataFrame, scale: tuple[float, float]) -> pd.DataFrame:
    """Return all curves with the ends of the scale where each of them leaves it."""
    frames = [
        frame.assign(**_off_scale(frame["gap"], scale))
        for _, frame in curves.groupby("place", sort=False)
    ]
    return pd.concat(frames, ignore_index=True)


def _off_scale(gaps: pd.Series, scale: tuple[float, float]) -> dict[str, np.ndarray]:
    """Return the end of the scale at the gap farthest beyond it; elsewhere nothing."""
    beyond = {"cut_below": scale[0] - gaps, "cut_above": gaps - scale[1]}
    found = {}
    for (name, by), end in zip(beyond.items(), scale, strict=True):
        farthest = (by > 0) & (by == by.max())
        found[name] = np.where(farthest & ~farthest.duplicated(), end, math.nan)
    return found


def _forest(
    rows: pd.DataFrame,
    curves: pd.DataFrame | None,
    scale: tuple[float, float],
    narrow: bool,
    outcome: str,
    live: bool,
) -> alt.LayerChart:
    width = _narrow_forest(rows["name"].tolist()) if narrow else _FOREST_WIDE
    ticks = theme.gap_ticks(*scale, round(width / _TICK_WIDE))
    x = alt.Scale(domain=list(scale), nice=False)
    axis = alt.Axis(values=ticks, labelExpr=_signed_ticks(ticks), grid=True, labelOverlap=False)
    name = plain(outcome)
    title = f"gap in {middle_cut([name], theme.NAME_AT_MOST)[0]}"
    y = theme.name_rows("name", ticks=False, domain=False, labelPadding=10)
    colour = theme.verdict_colour(legend=None)
    shape = theme.verdict_shape(legend=None)
    faint, full = (_paler(value, curves is not None) for value in (0.38, 1.0))
    base = alt.Chart(rows).encode(y=y, tooltip=_tooltip())
    bar = base.mark_bar(height=6, cornerRadius=3).encode(
        x=alt.X("low:Q", title=title, scale=x, axis=axis),
        x2=alt.X2("high:Q"),
        color=colour,
        opacity=faint,
    )
    dot, hollow = (
        base.mark_point(filled=field == "dot", size=80, strokeWidth=1.8).encode(
            x=alt.X(f"{field}:Q"), color=colour, shape=shape, opacity=full
        )
        for field in ("dot", "hollow")
    )
    arrows = [
        base.mark_point(shape=f"triangle-{way}", filled=True, size=50, opacity=1).encode(
            x=alt.X(f"cut_{way}:Q"), color=colour
        )
        for way in ("left", "right")
    ]
    number = base.mark_text(align="right", fontWeight="bold", fontSize=12.5).encode(
        x=alt.value(width + _NUMBERS_WIDE), text=alt.Text("number:N"), color=colour
    )
    ends = base.mark_text(align="left", fontSize=12).encode(
        x=alt.value(width + _NUMBERS_WIDE + 10), text=alt.Text("ends:N")
    )
    zero = theme.zero_line("x")
    looked = [] if curves is None else _looking(curves, y)
    clicked = [_rows_to_click(base)] if live else []
    hollows = [hollow] if rows["hollow"].notna().any() else []
    layers = [*clicked, zero, bar, *arrows, dot, *hollows, *looked, number, ends]
    height = max(_ROW * len(rows), _LEAST_HEIGHT)
    return theme.layered(*layers).properties(width=width, height=height)


def _signed_ticks(ticks: Sequence[float]) -> str:
    """Return how an axis writes its ticks: with a sign, and with the same decimals."""
    places = max((len(f"{tick:.6f}".rstrip("0").split(".")[1]) for tick in ticks), default=0)
    return f"datum.value == 0 ? '0' : format(datum.value, '+.{places}f')"


def _narrow_forest(names: list[str]) -> int:
    """Return how wide the intervals are drawn on a narrow page: what names and numbers leave."""
    longest = _NAME_CHARACTER * max(map(len, names), default=0)
    left = NARROW - longest - _NUMBERS_WIDE - _INTERVAL_WIDE
    return round(min(max(left, _NARROW_LEAST), _NARROW_MOST))


def _rows_to_click(base: alt.Chart) -> alt.Chart:
    """Return a bar across each row, shaded where the row is chosen."""
    shade = alt.condition("datum.place == chosen", alt.value(0.2), alt.value(0))
    rows: alt.Chart = base.mark_rect(color=theme.GREY, cursor="pointer").encode(opacity=shade)
    pick = alt.selection_point(name="pick", fields=["place"], toggle=False, clear=False)
    return rows.add_params(pick)


def _paler(opacity: float, live: bool) -> Any:
    """Return an opacity that is less while a threshold is pointed at."""
    if not live:
        return alt.value(opacity)
    looking = "at >= 0 || length(data('pointed_store')) > 0"
    return alt.condition(looking, alt.value(_PALE * opacity), alt.value(opacity))


def _looking(curves: pd.DataFrame, y: alt.Y) -> list[alt.Chart]:
    """Return the gaps at the threshold that is pointed at; nothing where none is."""
    base = alt.Chart(curves).transform_filter(_AT)
    base = base.encode(y=y)
    line = base.mark_rule(strokeWidth=2, clip=True, color=theme.ACCENT).encode(
        x=alt.X("low:Q"), x2=alt.X2("high:Q")
    )
    ring = base.mark_point(
        filled=False, size=70, strokeWidth=2, opacity=1, clip=True, color=theme.ACCENT
    )
    return [line, ring.encode(x=alt.X("gap:Q"))]


def _panels(
    curves: pd.DataFrame,
    scale: tuple[float, float],
    span: tuple[float, float],
    narrow: bool,
    live: bool,
) -> alt.FacetChart:
    count = curves["place"].nunique()
    columns = _columns(curves, narrow)
    threshold = theme.threshold_axis(*span)
    ticks = theme.threshold_ends(*span)
    x_axis = alt.Axis(values=ticks, format="~g", grid=False, labelFlush=True)
    y_ticks = theme.gap_ticks(*scale, 3)
    y_axis = alt.Axis(
        values=y_ticks, labelExpr=_signed_ticks(y_ticks), grid=True, labelOverlap=False
    )
    x = alt.X("epsilon:Q", scale=threshold["scale"], axis=x_axis, title="ε")
    domain = alt.Scale(domain=list(scale), nice=False)
    # No data of their own: a facet does not split a layer that has its own.
    base = alt.Chart().encode(x=x, color=theme.verdict_colour(legend=None))
    y = alt.Y("low:Q", scale=domain, axis=y_axis, title=None)
    band = base.mark_area(opacity=0.3, clip=True).encode(y=y, y2=alt.Y2("high:Q"))
    # The same axis in each layer: with that of another layer, the label of 0 was left out.
    gap_y, zero_y = (alt.Y(f"{field}:Q", axis=y_axis, title=None) for field in ("gap", "zero"))
    line = base.mark_line(strokeWidth=2, clip=True).encode(y=gap_y)
    zero = alt.Chart().mark_rule(strokeWidth=1.2).encode(y=zero_y)
    own = alt.Chart().mark_rule(strokeDash=[4, 3], strokeWidth=1.2).encode(x=alt.X("own:Q"))
    points = base.mark_point(filled=True, size=30, opacity=0, clip=True).encode(
        y=gap_y,
        tooltip=[
            alt.Tooltip("name:N", title="group"),
            alt.Tooltip("epsilon:Q", title="ε", format=".3g"),
            alt.Tooltip("interval:N", title="gap and interval"),
            alt.Tooltip("pairs:Q", format=","),
        ],
    )
    points.name = "curves"
    ways = {"below": "triangle-down", "above": "triangle-up"}
    cuts = [
        base.mark_point(shape=shape, filled=True, size=45, opacity=1).encode(
            y=alt.Y(f"cut_{way}:Q", axis=y_axis, title=None)
        )
        for way, shape in ways.items()
        if curves[f"cut_{way}"].notna().any()
    ]
    pointed = base.transform_filter(_AT)
    pointed = pointed.mark_rule(strokeWidth=1.5).encode(color=alt.value(theme.ACCENT))
    layers = theme.layered(band, zero, own, *([pointed] if live else []), line, *cuts, points)
    high = _PANEL_HIGH if count > 2 else 2 * _PANEL_HIGH
    layers = layers.properties(width=_panel_wide(count, narrow), height=high)
    header = alt.Header(title=None, labelAnchor="start", labelFontWeight="normal", labelPadding=3)
    return layers.facet(
        facet=alt.Facet(
            "title:N", header=header, sort=alt.EncodingSortField("place", op="min"), title=None
        ),
        columns=columns,
        data=curves,
        spacing={"row": 8, "column": _BETWEEN},
    )


def _panel_wide(count: int, narrow: bool) -> int:
    if count <= _FEW:
        return _FEW_NARROW_PANEL if narrow else _FEW_PANEL
    return _NARROW_PANEL if narrow else _PANEL_WIDE


def _columns(curves: pd.DataFrame, narrow: bool) -> int:
    """Return how many panels are side by side: on a narrow page what their names leave room for."""
    count = curves["place"].nunique()
    if count <= _FEW:
        return min(count, 2)
    # The panels begin below the intervals, right of the names of their rows.
    left = _NAME_CHARACTER * curves["name"].str.len().max()
    panel = _PANEL_CHARACTER * curves["title"].str.len().max() + _BETWEEN
    return 2 if narrow and left + 3 * panel > NARROW else 3


def _tooltip() -> list[Any]:
    return [
        alt.Tooltip("group:N"),
        alt.Tooltip("said:N", title="verdict"),
        alt.Tooltip("interval:N", title="gap and interval"),
        alt.Tooltip("pairs:N"),
    ]
