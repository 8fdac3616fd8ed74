"""The few slices that explain the others, with intervals, and the others beside them."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, intervals
from mpc_lab.errors import MpcError, check_count
from mpc_lab.results.discovery import Discovery
from mpc_lab.text import labels, listing, percent, plural, quote

_EXPLAINS, _EXPLAINED, _NOT_FOUND = "explains the others", "explained by these", "not found"
_KINDS = {
    _EXPLAINS: (theme.OTHER, "diamond", 1.0),
    _EXPLAINED: (theme.GREY, "circle", 0.55),
    _NOT_FOUND: (theme.GREY, "circle", 0.55),
}


@chart
def discover(found: Discovery, limit: int = 20) -> alt.LayerChart:
    """Draw the gaps of the few slices that explain the others; the others are pale.

    Parameters
    ----------
    found : Discovery
        What :func:`mpc_lab.discover` returned.
    limit : int
        At most this many slices: those that explain the others, then the most significant ones;
        where none was found, those nearest to it.

    Returns
    -------
    altair.LayerChart
    """
    limit = check_count("limit", limit)
    if not isinstance(found, Discovery):
        raise MpcError(
            f"found must be what mpc.discover() returned; got {type(found).__name__}. Call "
            "mpc.charts.discover(mpc.discover(ranking, attributes))."
        )
    few = found.minimal()
    data, attrs = found.data, found.data.attrs
    others = [name for name in found.found if name not in set(few.index)]
    shown = [*few.index, *others] if found.found else data["slice"].values.tolist()
    shown, total = shown[:limit], len(shown)
    frame = data.sel(slice=shown).to_dataframe().reset_index()
    frame["name"], frame["place"] = labels(shown), range(len(shown))
    frame["kind"] = [
        _NOT_FOUND if not found.found else _EXPLAINS if name in few.index else _EXPLAINED
        for name in shown
    ]
    frame["interval"] = intervals(frame, "estimate", "ci_low_adjusted", "ci_high_adjusted")
    lines = [
        f"{plural(int(attrs['n_slices']), 'slice')}, each compared with all other items; "
        f"{percent(attrs['level'])} intervals, adjusted over all",
    ]
    if attrs["honest"]:
        lines[0] = (
            f"Found on {attrs['n_queries_first']:,} queries; gaps and {percent(attrs['level'])} "
            f"intervals are those of the other {attrs['n_queries_second']:,}"
        )
    if total > limit:
        what = "found" if found.found else "looked at"
        lines.append(f"The {limit:,} most significant of {total:,} {what}")
    title = f"gap in {theme.cut_outcome(attrs['outcome'])}"
    return theme.finish(_layers(frame, title), _title(found, few), lines)


def _title(found: Discovery, few: pd.DataFrame) -> str:
    n = len(found.found)
    if not n:
        return f"No adjusted interval of {int(found.data.attrs['n_slices']):,} slices excludes 0"
    if n == 1:
        return f"One slice has a gap: {quote(found.found[0])}"
    names = listing([quote(name) for name in few.index], 3)
    many = "One slice explains" if len(few) == 1 else f"{len(few)} slices explain"
    return f"{many} the {n:,} that have a gap: {names}"


def _layers(frame: pd.DataFrame, title: str) -> alt.LayerChart:
    kinds = [kind for kind in _KINDS if (frame["kind"] == kind).any()]
    looks = [_KINDS[kind] for kind in kinds]
    y = theme.name_rows("name", labelLimit=260)
    legend = alt.Legend(orient="bottom", direction="horizontal") if len(kinds) > 1 else None
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=[look[0] for look in looks]),
        legend=legend,
    )
    shape = alt.Shape(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=[look[1] for look in looks]),
        legend=legend,
    )
    # All kinds: Vega does not take a range of one number.
    strength = alt.Scale(domain=list(_KINDS), range=[look[2] for look in _KINDS.values()])
    opacity = alt.Opacity("kind:N", scale=strength, legend=None)
    ends = frame[["ci_low_adjusted", "ci_high_adjusted", "estimate"]].to_numpy(dtype=float)
    low, high = (float(f(ends, initial=0.0)) for f in (np.nanmin, np.nanmax))
    ticks = theme.gap_ticks(low, high, 6) if high > low else [0.0]
    axis = alt.Axis(values=ticks, grid=True, labelOverlap=False)
    base = alt.Chart(frame).encode(
        y=y,
        color=colour,
        opacity=opacity,
        tooltip=[
            alt.Tooltip("slice:N"),
            alt.Tooltip("interval:N", title="gap, adjusted interval"),
            alt.Tooltip("p_adjusted:Q", title="p, adjusted", format=".3g"),
            alt.Tooltip("n_pairs:Q", title="pairs", format=","),
        ],
    )
    whiskers = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("ci_low_adjusted:Q", title=title, axis=axis), x2="ci_high_adjusted:Q"
    )
    dots = base.mark_point(filled=True, size=60).encode(
        x=alt.X("estimate:Q", title=title, axis=axis), shape=shape
    )
    layers = [theme.zero_line("x"), whiskers, dots]
    return theme.layered(*layers).properties(width=440, height=theme.rows_high(len(frame)))
