"""The standard error of every group by what is taken as independent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import numpy as np
import pandas as pd

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, of_rule
from mpc_lab.errors import check_count
from mpc_lab.results.base import check_label, settings
from mpc_lab.text import between
from mpc_lab.vocabulary import ITEM, QUERY_CR3, VARIANCES, listed_variances, of_owner

if TYPE_CHECKING:
    from mpc_lab.results import Audit


@chart
def ladder(
    audit: Audit,
    scoring_rule: str = "baseline",
    pairing_mode: str = "matched",
    limit: int = 60,
) -> alt.LayerChart:
    """Draw the standard error of every group under each variance family.

    Parameters
    ----------
    audit : Audit
    scoring_rule, pairing_mode : str
    limit : int
        At most this many groups, those with the largest standard error used.

    Returns
    -------
    altair.LayerChart
    """
    limit = check_count("limit", limit)
    for dim, name in (("scoring_rule", scoring_rule), ("pairing_mode", pairing_mode)):
        check_label(dim, name, audit.headline[dim].values.tolist())
    options = settings(audit)
    owner, used = str(options.get("owner", ITEM)), str(options.get("cluster", ""))
    frame = _frame(audit, scoring_rule, pairing_mode, limit, owner)
    drawn = of_rule(scoring_rule, pairing_mode).capitalize()
    lines = [f"{drawn}; the upright tick is cluster '{used}', which the audit uses"]
    total = len(audit.groups)
    lines += [f"The {limit:,} of {total:,} groups with the largest"] if total > limit else []
    return theme.finish(
        _layers(frame, owner, theme.gap_title(audit, "standard error of the gap")),
        _title(frame, used),
        lines,
    )


def _label(family: str, owner: str) -> str:
    """Return the name of a family in the legend; a union is one of queries and producers too."""
    if family == QUERY_CR3:
        return "by query with CR3"
    variance = VARIANCES[family]
    return variance.label if variance.owner else of_owner(variance.label, owner)


def _look(family: str) -> tuple[str, str]:
    """Return colour and shape of a rung; that of heavy queries has the colour of queries."""
    if family == QUERY_CR3:
        return VARIANCES["query"].colour, "triangle-right"
    return VARIANCES[family].colour, VARIANCES[family].shape


def _frame(audit: Audit, rule: str, mode: str, limit: int, owner: str) -> pd.DataFrame:
    cells = audit.headline.sel(scoring_rule=rule, pairing_mode=mode)
    errors = cells["std_error_by"].transpose("group", "variance")
    families = [one for one in errors["variance"].values.tolist() if one in listed_variances()]
    own = cells["std_error"].values
    order = np.argsort(-np.nan_to_num(own, nan=-1.0), kind="stable")[:limit]
    names = theme.short_names(audit.groups)
    shown = [names[audit.groups[k]] for k in order]
    values = errors.sel(variance=families).values
    rows = [
        {
            "group": shown[place],
            "place": place,
            "family": _label(family, owner),
            "std_error": float(values[k, f]),
            "used": float(own[k]),
            "times": float(own[k] / values[k, f]) if values[k, f] > 0 else float("nan"),
            "pairs": int(cells["n_pairs"].values[k]),
        }
        for place, k in enumerate(order)
        for f, family in enumerate(families)
    ]
    return pd.DataFrame(rows)


def _title(frame: pd.DataFrame, used: str) -> str:
    naive = frame.loc[frame["family"] == VARIANCES["naive"].label, "times"].dropna()
    naive = naive[np.isfinite(naive)]
    if naive.empty:
        return "No standard error could be estimated"
    times = between([round(float(value), 2) for value in naive], ".3g")
    if used == "naive":
        return "The standard errors take pairs as independent, which they are not"
    return f"The standard errors are {times} times those of pairs taken as independent"


def _layers(frame: pd.DataFrame, owner: str, title: str) -> alt.LayerChart:
    y = theme.name_rows("group")
    base = alt.Chart(frame).encode(y=y)
    # A family that was not summed over has no rung, and no place in the legend.
    drawn = set(frame.loc[frame["std_error"].notna(), "family"])
    known = {_label(name, owner): _look(name) for name in listed_variances()}
    known = {label: look for label, look in known.items() if label in drawn} or known
    names = list(known)
    colours = alt.Scale(domain=names, range=[look[0] for look in known.values()])
    shapes = alt.Scale(domain=names, range=[look[1] for look in known.values()])
    legend = alt.Legend(orient="bottom", direction="horizontal", columns=2)
    axis = alt.Axis(tickCount=5, labelOverlap=True)
    spans = base.mark_rule(strokeWidth=1, opacity=0.6).encode(
        x=alt.X("min(std_error):Q", title=title, scale=alt.Scale(zero=True), axis=axis),
        x2=alt.X2("max(std_error):Q"),
    )
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("std_error:Q", title=title, axis=axis),
        color=alt.Color("family:N", title="clustered", scale=colours, legend=legend),
        shape=alt.Shape("family:N", title="clustered", scale=shapes, legend=legend),
        tooltip=[
            alt.Tooltip("group:N"),
            alt.Tooltip("family:N", title="clustered"),
            alt.Tooltip("std_error:Q", title="standard error", format=".3g"),
            alt.Tooltip("used:Q", title="the one used", format=".3g"),
        ],
    )
    used = base.mark_tick(thickness=2.5, size=15, color=theme.GREY).encode(x=alt.X("used:Q"))
    high = theme.rows_high(frame["group"].nunique())
    return theme.layered(spans, used, dots).properties(width=460, height=high)
