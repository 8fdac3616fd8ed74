"""MPC beside the rival measures, and why they disagree."""

from __future__ import annotations

import xarray as xr

from mpc_lab import charts
from mpc_lab.report.context import Context
from mpc_lab.report.html import Head, label, paragraphs, table, words

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
    heads = [Head("Group", True), Head("Why the measures agree or disagree", True)]
    rows = [[label(name), words(found.sel(group=name)["explanation"].item())] for name in names]
    pieces = [paragraphs([how], "soft"), table(heads, rows), _table(found)]
    for name in names[:_DRAWN]:
        pieces.append(
            context.attempt(
                lambda name=name: context.figure(charts.rivals(context.audit, name, found=found))
            )
        )
    return "".join(pieces)


def _table(found: xr.Dataset) -> str:
    """Return which measure flags which group."""
    measures = found["measure"].values.tolist()
    heads = [Head("Measure", True)] + [Head(label(name), True) for name in found["group"].values]
    rows = []
    for measure in measures:
        one = found.sel(measure=measure)
        title = "MPC" if measure == "mpc" else measure.replace("_", " ")
        rows.append([words(title), *(_says(one.sel(group=name)) for name in one["group"].values)])
    return table(heads, rows)


def _says(one: xr.Dataset) -> str:
    if not bool(one["flagged"]):
        return "–"
    return words(str(one["says"].item()) or "flagged")
