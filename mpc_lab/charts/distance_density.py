"""How the score distances of a group's pairs are spread near 0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import altair as alt
import pandas as pd
import xarray as xr

from mpc_lab.charts import theme
from mpc_lab.charts.theme import CHARTS, chart, find_cell, of_rule
from mpc_lab.results.summary import Cell
from mpc_lab.text import percent, quote, two_digits
from mpc_lab.vocabulary import VERDICTS

if TYPE_CHECKING:
    from mpc_lab.results import Audit


@chart
def distance_density(
    audit: Audit,
    group: str,
    scoring_rule: str = "baseline",
    pairing_mode: str = "matched",
    bandwidth: float | None = None,
    *,
    found: xr.Dataset | None = None,
) -> alt.LayerChart:
    """Draw the density of score distances up to the bandwidth of the limit ε → 0, with ε marked.

    Ties, at a distance of exactly 0, are not part of the density; the title gives their share.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group, scoring_rule, pairing_mode : str
        The cell.
    bandwidth : float, optional
        As in :meth:`mpc_lab.Audit.limit`.
    found : xarray.Dataset, optional
        What :meth:`mpc_lab.Audit.limit` returned for the same arguments, to save its work.

    Returns
    -------
    altair.LayerChart
    """
    cell = find_cell(audit, group, scoring_rule, pairing_mode)
    if found is None:
        found = audit.limit(group, scoring_rule, pairing_mode, bandwidth)
    width = float(found["bandwidth"])
    frame = _frame(found, width)
    lines = [
        f"{of_rule(scoring_rule, pairing_mode).capitalize()}; {int(found['n_pairs']):,} pairs "
        f"up to the bandwidth of {width:.3g}"
    ]
    if math.isfinite(float(found["density_at_zero"])):
        lines.append(f"Dot: density at 0, {float(found['density_at_zero']):.3g} per unit of score")
    if math.isfinite(cell.epsilon) and cell.epsilon <= width:
        lines[-1] += f"; dashed: ε = {cell.epsilon:.3g}"
    return theme.finish(_layers(frame, found, cell, width), _title(found, frame, group), lines)


# Its name in version 0.1; a gap is the difference of outcomes.
CHARTS["gap_density"] = gap_density = distance_density


def _frame(found: xr.Dataset, width: float) -> pd.DataFrame:
    middle = found["distance"].values
    half = width / (2 * max(len(middle), 1))
    frame = pd.DataFrame({"from": middle - half, "to": middle + half})
    frame["density"] = found["distance_density"].values
    frame["pairs"] = found["distance_count"].values
    frame["floor"] = 0.0
    return frame.dropna()


def _title(found: xr.Dataset, frame: pd.DataFrame, group: str) -> str:
    who = f"Score distances of group {quote(group)}"
    ties = float(found["tie_share"])
    if frame.empty or frame["pairs"].sum() == 0:
        return f"{who}: there is no untied pair near 0"
    first = float(found["density_at_zero"]) / float(frame["density"].mean())
    many = (
        f"; {percent(float(f'{ties:.2g}'))} of the pairs are ties"
        if ties > 0
        else "; no pair is tied"
    )
    if not math.isfinite(first):
        return f"{who}: the density at 0 is not known{many}"
    if 0.8 <= first <= 1.25:
        return f"{who} are about as dense at 0 as up to the bandwidth{many}"
    return f"{who} are {two_digits(first)} times as dense at 0 as up to the bandwidth{many}"


def _layers(frame: pd.DataFrame, found: xr.Dataset, cell: Cell, width: float) -> alt.LayerChart:
    colour = VERDICTS[cell.verdict].colour
    x_title = "distance in score of a pair (units of the score)"
    y_title = "density (1 / unit of score)"
    bars = (
        alt.Chart(frame)
        .mark_rect(color=theme.GREY, opacity=0.55)
        .encode(
            x=alt.X(
                "from:Q",
                title=x_title,
                scale=alt.Scale(nice=False, domainMin=0),
                axis=alt.Axis(tickCount=6),
            ),
            x2=alt.X2("to:Q"),
            y=alt.Y("floor:Q", title=y_title),
            y2=alt.Y2("density:Q"),
            tooltip=[
                alt.Tooltip("from:Q", title="distance from", format=".3g"),
                alt.Tooltip("to:Q", title="distance to", format=".3g"),
                alt.Tooltip("density:Q", format=".3g"),
                alt.Tooltip("pairs:Q", format=","),
            ],
        )
    )
    layers = [bars]
    at_zero = float(found["density_at_zero"])
    if math.isfinite(at_zero):
        dot = alt.Chart(pd.DataFrame({"from": [0.0], "density": [at_zero]}))
        layers.append(
            dot.mark_point(filled=True, size=90, color=colour, opacity=1).encode(
                x=alt.X("from:Q", title=x_title),
                y=alt.Y("density:Q", title=y_title),
                tooltip=[alt.Tooltip("density:Q", title="density at 0", format=".3g")],
            )
        )
    if math.isfinite(cell.epsilon) and cell.epsilon <= width:
        layers.append(theme.reference_line(cell.epsilon, "x", dashed=True))
    return theme.layered(*layers).properties(width=theme.WIDTH, height=220)
