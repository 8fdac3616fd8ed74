"""The smallest gap that could be found, by how many pairs are compared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, curve_frame, find_cell, of_rule
from mpc_lab.errors import check_number
from mpc_lab.results.base import has_sums, settings
from mpc_lab.results.summary import Cell, decimals_of
from mpc_lab.text import entry, percent, quote
from mpc_lab.vocabulary import VERDICTS, verdict_modes

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_GAP, _MDE = "gap found, without its sign", "smallest gap that could be found"


@chart
def power(
    audit: Audit,
    group: str,
    scoring_rule: str = "baseline",
    pairing_mode: str = "matched",
    power: float = 0.8,
) -> alt.LayerChart:
    r"""Draw the smallest detectable gap over the number K of closest pairs.

    :math:`(t_{1-a/2} + t_p) \, SE` at each threshold of the curve, beside the size of the gap that
    was found there; p is the power, and its square root where a verdict rests on a bracket, whose
    other side is taken to have the same standard error. Where the gap found is the larger of the
    two, the audit had the power to find it.

    Parameters
    ----------
    audit : Audit
    group, scoring_rule, pairing_mode : str
        The cell.
    power : float
        Probability of finding the gap.

    Returns
    -------
    altair.LayerChart
    """
    from mpc_lab.inference.verdicts import mde

    power = check_number("power", power, at_least=0.5, below=1, remedy="Try power=0.8.")
    cell = find_cell(audit, group, scoring_rule, pairing_mode)
    level = float(settings(audit).get("level", 0.95))
    curve = curve_frame(audit, group, scoring_rule, pairing_mode)
    sides = len(verdict_modes(pairing_mode))
    how: dict[str, Any] = {"level": level, "power": power, "sides": sides}
    curve["mde"] = mde(curve["std_error"].to_numpy(), curve["dof"].to_numpy(), **how)
    here = {"group": group, "scoring_rule": scoring_rule, "pairing_mode": pairing_mode}
    own = audit.headline.sel(here)
    least = on_curve = float(mde(own["std_error"].to_numpy(), own["dof"].to_numpy(), **how))
    if has_sums(audit):
        # With the standard error of the weaker side of a bracket.
        least = float(audit.power(power=power)["mde"].sel(here))
    known = curve[(curve["pairs"] > 0) & np.isfinite(curve["mde"])]
    known = known.drop_duplicates("pairs")
    lines = [
        f"{percent(power)} power, two-sided test at {percent(1 - level)}, not adjusted for other "
        f"groups; {of_rule(scoring_rule, pairing_mode)}",
        "Dashed: the number of pairs of the headline",
    ]
    # As in the table of verdicts: the decimals that the interval deserves.
    places = decimals_of([cell])
    if entry(least, places) != entry(on_curve, places):
        lines.append(
            "The title takes the larger standard error of the two sides of the bracket; the curve "
            f"is of {pairing_mode} pairs"
        )
    return theme.finish(
        _layers(_long(known), cell, theme.gap_title(audit)),
        _title(cell, least, power, places),
        lines,
    )


def _title(cell: Cell, least: float, power: float, places: int) -> str:
    who = f"Group {quote(cell.group)}"
    if not math.isfinite(least):
        return f"{who} is {cell.verdict}: what could be found is not known"
    return (
        f"{who} is {cell.verdict} with a gap of {entry(cell.estimate, places)}; with "
        f"{cell.pairs:,} pairs, gaps from {entry(least, places)} on are found with "
        f"{percent(power)} power"
    )


def _long(curve: pd.DataFrame) -> pd.DataFrame:
    frame = curve[["epsilon", "pairs", "queries"]].copy()
    sized = [(_MDE, curve["mde"]), (_GAP, curve["gap"].abs())]
    return pd.concat([frame.assign(line=name, value=v) for name, v in sized], ignore_index=True)


def _layers(frame: pd.DataFrame, cell: Cell, gap: str) -> alt.LayerChart:
    names = [_MDE, _GAP]
    legend = alt.Legend(
        title=None, orient="bottom", direction="horizontal", labelLimit=300, symbolStrokeWidth=0
    )
    colours = alt.Scale(domain=names, range=[theme.GREY, VERDICTS[cell.verdict].colour])
    dashes = alt.Scale(domain=names, range=[[5, 3], [1, 0]])
    shapes = alt.Scale(domain=names, range=["circle", "square"])
    base = alt.Chart(frame).encode(
        x=alt.X(
            "pairs:Q",
            title="K, the number of closest pairs",
            scale=alt.Scale(type="log", nice=False, padding=8),
            axis=alt.Axis(values=_ticks(frame["pairs"]), format="~s", labelOverlap=True),
        ),
        y=alt.Y("value:Q", title=gap, scale=alt.Scale(zero=True)),
        color=alt.Color("line:N", scale=colours, legend=legend),
        tooltip=[
            alt.Tooltip("line:N", title="line"),
            alt.Tooltip("value:Q", title="gap", format=".3g"),
            alt.Tooltip("pairs:Q", format=","),
            alt.Tooltip("epsilon:Q", title="ε", format=".3g"),
        ],
    )
    layers = [
        base.mark_line(strokeWidth=2).encode(
            strokeDash=alt.StrokeDash("line:N", scale=dashes, legend=None)
        ),
        base.mark_point(filled=True, size=32, opacity=1).encode(
            shape=alt.Shape("line:N", scale=shapes, legend=legend)
        ),
    ]
    if cell.pairs:
        layers.append(theme.reference_line(float(cell.pairs), "x", dashed=True))
    return theme.layered(*layers).properties(width=theme.WIDTH, height=theme.HEIGHT)


def _ticks(pairs: pd.Series[int]) -> list[float]:
    if pairs.empty:
        return []
    low, high = math.floor(math.log10(pairs.min())), math.ceil(math.log10(pairs.max()))
    fine = (1, 2, 5) if high - low <= 4 else (1,)
    return [step * 10.0**p for p in range(low, high + 1) for step in fine]
