"""MPC beside the rival measures, and why they disagree."""

from __future__ import annotations

import xarray as xr

from mpc_lab import charts
from mpc_lab.report.context import Context
from mpc_lab.report.html import label, paragraphs

_DRAWN = 3


def rivals(context: Context) -> str:
    """Return what other measures say of the groups looked at closely."""
    if not context.focus:
        return paragraphs(["No group has pairs to compare."], "note")
    return context.attempt(lambda: _rivals(context))


def _rivals(context: Context) -> str:
    names = [cell.group for cell in context.focus]
    found = context.audit.compare(names)
    how = (
        "Measures disagree because they compare different things: items of any query or of one, "
        "with any scores or close ones. None of them is wrong; only close scores in one query ask "
        "whether the ranker undervalues the group at the margin."
    )
    pieces = [paragraphs([how], "soft")]
    for k, name in enumerate(names):
        one = found.sel(group=name)
        pieces.append(f"<h3>Group {label(name)}</h3>{paragraphs([one['explanation'].item()])}")
        pieces.append(_flags(one))
        if k < _DRAWN:
            pieces.append(context.attempt(_chart, context, name, found))
    return "".join(pieces)


def _chart(context: Context, name: str, found: xr.Dataset) -> str:
    return context.figure(charts.rivals(context.audit, name, found=found))


def _flags(one: xr.Dataset) -> str:
    """Return which measures flag a group."""
    rivals = one.sel(measure=[name for name in one["measure"].values.tolist() if name != "mpc"])
    flagging = rivals["measure"].values[rivals["flagged"].values].tolist()
    named = ", ".join(str(name).replace("_", " ") for name in flagging) or "none"
    return paragraphs([f"Other measures that flag it: {named}."], "soft")
