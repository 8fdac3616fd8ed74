"""Whether the two sides of the pairs are alike in other things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, find_cell, intervals, level_of, of_rule
from mpc_lab.text import entry, labels, listing, plural, quote

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_BEFORE, _WITHIN = "all rows", "inside the pairs"
_SIDES = {_BEFORE: "before", _WITHIN: "within"}
_LARGE = 0.1
_UNITS = " standard deviations"


@chart
def love(
    audit: Audit,
    group: str,
    covariates: str | Sequence[str] | Mapping[str, ArrayLike] = (),
    scoring_rule: str = "baseline",
    pairing_mode: str = "matched",
    epsilon: float | None = None,
    *,
    found: xr.Dataset | None = None,
) -> alt.LayerChart:
    """Draw the standardised differences of covariates between the group and the others.

    Before pairing, over all rows, and inside the pairs with their intervals. Beyond ±0.1 standard
    deviations a difference is commonly called large. Position in the list is always among them: in
    ``matched`` pairs the group's item is ranked lower by construction.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group : str
    covariates
        As in :meth:`mpc_lab.Audit.balance`.
    scoring_rule, pairing_mode : str
    epsilon : float, optional
        Largest score distance; by default the headline's own threshold.
    found : xarray.Dataset, optional
        What :meth:`mpc_lab.Audit.balance` returned for the same arguments, to save its work.

    Returns
    -------
    altair.LayerChart
    """
    find_cell(audit, group, scoring_rule, pairing_mode)
    if found is None:
        found = audit.balance(
            covariates, group, scoring_rule, pairing_mode, epsilon, permutations=0
        )
    found = found.sel(group=group)
    frame = pd.DataFrame({"covariate": labels(found["covariate"].values.tolist())})
    own = {
        "within": "difference",
        "low": "ci_low",
        "high": "ci_high",
        "before": "difference_before",
    }
    for shown, name in own.items():
        frame[shown] = found[name].values
    frame["place"] = frame["within"].abs().rank(ascending=False, method="first")
    frame["interval"] = intervals(frame, "within", "low", "high")
    lines = [
        f"Standardised differences with {level_of(audit)} interval; "
        f"{of_rule(scoring_rule, pairing_mode)}; ε = {float(found['epsilon']):.3g}",
        "Dashed: ±0.1. In matched pairs the group's item is ranked lower by construction.",
    ]
    lines[1] = lines[1] if pairing_mode == "matched" else "Dashed: ±0.1."
    return theme.finish(_layers(frame), _title(frame, group), lines)


def _title(frame: pd.DataFrame, group: str) -> str:
    who = f"pairs of group {quote(group)}"
    # Position is always the first row and not chosen by anyone: it gets a sentence of its own.
    position, covariates = frame["within"].iloc[0], frame.iloc[1:]
    parts = []
    if np.isfinite(covariates["within"]).any():
        parts.append(_about(covariates[np.isfinite(covariates["within"])]))
    if np.isfinite(position):
        parts.append(f"position differs by {_size(position)}" + ("" if parts else _UNITS))
    if not parts:
        return f"Nothing can be compared inside the {who}"
    return f"Inside the {who} {'; '.join(parts)}"


def _about(known: pd.DataFrame) -> str:
    large = known[known["within"].abs() > _LARGE].sort_values("place")
    count = plural(len(known), "covariate")
    if large.empty:
        whole = "the covariate is" if len(known) == 1 else f"all {count} are"
        return f"{whole} within 0.1{_UNITS}"
    verb = "differs" if len(large) == 1 else "differ"
    rows = zip(large["covariate"], large["within"], strict=True)
    named = [f"{quote(name)} {_size(within)}" for name, within in rows]
    which = f"{len(large)} of {count}" if len(known) > 1 else "the covariate"
    return f"{which} {verb} by more than 0.1{_UNITS}: {listing(named, 3)}"


def _size(difference: float) -> str:
    return entry(float(difference), 2)


def _layers(frame: pd.DataFrame) -> alt.LayerChart:
    title = "difference, group less others (standard deviations)"
    tooltip = [
        alt.Tooltip("covariate:N"),
        alt.Tooltip("interval:N", title=_WITHIN),
        alt.Tooltip("before:Q", title=_BEFORE, format=".3f"),
    ]
    y = theme.name_rows("covariate")
    sizes = frame[["within", "before", "low", "high"]].to_numpy(dtype=float)
    reach = [*sizes[np.isfinite(sizes)], -_LARGE, _LARGE]
    axis = alt.Axis(values=theme.gap_ticks(min(reach), max(reach), 7), grid=True)
    base = alt.Chart(frame).encode(y=y, tooltip=tooltip)
    names = list(_SIDES)
    legend = alt.Legend(title=None, orient="bottom", direction="horizontal")
    colours = alt.Scale(domain=names, range=[theme.GREY, theme.OTHER])
    shapes = alt.Scale(domain=names, range=["diamond", "circle"])

    sides = [frame.assign(over=words, value=frame[of]) for words, of in _SIDES.items()]
    dots = base.properties(data=pd.concat(sides, ignore_index=True)).mark_point(
        filled=True, size=70, opacity=1
    )
    dots = dots.encode(
        x=alt.X("value:Q", title=title, axis=axis, scale=alt.Scale(nice=False, padding=12)),
        color=alt.Color("over:N", scale=colours, legend=legend),
        shape=alt.Shape("over:N", scale=shapes, legend=legend),
    )
    bars = base.mark_rule(strokeWidth=2, color=theme.OTHER).encode(
        x=alt.X("low:Q", title=title), x2=alt.X2("high:Q")
    )
    marks = [theme.reference_line(at, "x", dashed=True) for at in (-_LARGE, _LARGE)]
    layers = [theme.zero_line("x"), *marks, bars, dots]
    return theme.layered(*layers).properties(width=440, height=theme.rows_high(len(frame)))
