"""What groups without any meaning show, beside the group itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, find_cell
from mpc_lab.errors import check_count
from mpc_lab.text import entry, percent, plural, quote

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_BINS = 30


@chart
def placebo(
    audit: Audit,
    group: str,
    scoring_rule: str = "baseline",
    pairing_mode: str = "matched",
    epsilon: float | None = None,
    permutations: int = 200,
    *,
    found: xr.Dataset | None = None,
) -> alt.LayerChart:
    """Draw the gaps of placebo groups, their members drawn at random, and of the group.

    Pairs are taken in both orders together, because in one order alone a group without meaning
    does not centre on 0; the group's own number here is therefore not the headline's.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group, scoring_rule, pairing_mode : str
        The cell.
    epsilon : float, optional
        Largest score distance; by default the headline's own threshold.
    permutations : int
        How many placebo groups, at least 1.
    found : xarray.Dataset, optional
        What :meth:`mpc_lab.Audit.balance` returned for the same arguments, to save its work.

    Returns
    -------
    altair.LayerChart
    """
    find_cell(audit, group, scoring_rule, pairing_mode)  # says which names there are
    if found is None:
        check_count("permutations", permutations, remedy="Try 200.")
        found = audit.balance(
            (), group, scoring_rule, pairing_mode, epsilon, permutations=permutations
        )
    found = found.sel(group=group)
    drawn = found["placebo_estimate"].values
    known = drawn[np.isfinite(drawn)]
    level = float(found.attrs["level"])
    lines = [
        f"{plural(len(known), 'group')} of the same size, {_drawn(found)}; "
        f"pairs in both orders{_under(scoring_rule)}; ε = {float(found['epsilon']):.3g}",
        _say_rejected(found, level),
    ]
    return theme.finish(
        _layers(
            known,
            float(found["placebo_observed"]),
            theme.gap_title(audit, "gap, both orders,"),
            theme.verdict_of(audit, group, scoring_rule).colour,
        ),
        _title(found),
        lines,
    )


def _under(rule: str) -> str:
    return "" if rule == "baseline" else f", scores of rule {quote(rule)}"


def _drawn(found: xr.Dataset) -> str:
    if found["placebo_by"].item() == "item":
        return "drawn at random among items shown about as often"
    return "drawn at random among the rows of each query"


def _say_rejected(found: xr.Dataset, level: float) -> str:
    share, low, high = (float(found[f"placebo_rejected{end}"]) for end in ("", "_low", "_high"))
    if not math.isfinite(share):
        return ""
    return (
        f"At {percent(1 - level)} the audit's own standard errors reject "
        f"{percent(round(share, 3))} of them (between {percent(round(low, 3))} and "
        f"{percent(round(high, 3))} of such groups)"
    )


def _title(found: xr.Dataset) -> str:
    observed = float(found["placebo_observed"])
    p_value = float(found["placebo_observed_p_value"])
    who = f"Group {quote(found['group'].item())}"
    if not math.isfinite(p_value):
        return f"{who} has too few pairs to be set beside placebo groups"
    gap = entry(observed, 3)
    if p_value <= 1 - float(found.attrs["level"]):
        said = "is outside the range of groups drawn at random"
    else:
        said = "is no larger than those of groups drawn at random"
    return f"{who}: the gap in both orders, {gap}, {said} (p = {p_value:.2g})"


def _layers(
    known: np.ndarray[tuple[int], np.dtype[np.float64]],
    observed: float,
    x_title: str,
    colour: str,
) -> alt.LayerChart:
    ends = known if len(known) else np.zeros(1)
    reach = [0.0, *ends, *([observed] if math.isfinite(observed) else [])]
    ticks = theme.gap_ticks(min(reach), max(reach), 8) if any(reach) else [0.0]
    count, edges = np.histogram(ends, bins=_BINS)
    frame = pd.DataFrame({"from": edges[:-1], "to": edges[1:], "groups": count, "floor": 0})
    frame = frame if len(known) else frame.iloc[:0]
    bars = (
        alt.Chart(frame)
        .mark_rect(color=theme.GREY, opacity=0.55)
        .encode(
            x=alt.X(
                "from:Q",
                title=x_title,
                scale=alt.Scale(zero=False, nice=False, padding=12),
                axis=alt.Axis(values=ticks, labelOverlap=False),
            ),
            x2=alt.X2("to:Q"),
            y=alt.Y("floor:Q", title="placebo groups"),
            y2=alt.Y2("groups:Q"),
            tooltip=[
                alt.Tooltip("from:Q", format=".3g"),
                alt.Tooltip("to:Q", format=".3g"),
                alt.Tooltip("groups:Q", title="placebo groups"),
            ],
        )
    )
    at = [{"from": observed, "label": "the group"}] if math.isfinite(observed) else []
    own = alt.Chart(pd.DataFrame(at, columns=["from", "label"])).encode(
        x=alt.X("from:Q", title=x_title)
    )
    line = own.mark_rule(color=colour, strokeWidth=2.5).encode(
        tooltip=[alt.Tooltip("from:Q", title="gap of the group", format=".3g")]
    )
    # Into the drawing, where the axis has no number.
    side: Any = "left" if observed <= (min(reach) + max(reach)) / 2 else "right"
    words = own.mark_text(color=colour, dy=-8, align=side, fontWeight="bold").encode(
        y=alt.value(0), text=alt.Text("label:N")
    )
    layers = [bars, theme.zero_line("x"), line, words]
    return theme.layered(*layers).properties(width=theme.WIDTH, height=220)
