"""What is left of each gap once the other groups are held fixed."""

from __future__ import annotations

from mpc_lab.charts import partial
from mpc_lab.html import Head, escape, label, paragraphs, table
from mpc_lab.report.context import Context
from mpc_lab.results.questions.partial import close_scores
from mpc_lab.text import minus, p_value, shared_decimals, with_interval

_ROWS = 50
_ENDS = ("estimate", "ci_low_adjusted", "ci_high_adjusted")


def why(context: Context) -> str:
    """Return the gaps alone and net of each other."""
    if len(context.audit.groups) < 2:
        return paragraphs(["There is one group, and no other to hold fixed."], "note")
    return context.attempt(_why, context)


def _why(context: Context) -> str:
    found = context.partial
    data = found.data
    how = (
        "Groups that overlap can explain each other's gaps. Over all pairs of a query with "
        f"{close_scores(data.attrs['width'])} ({data.attrs['n_pairs']:,} pairs), differences "
        "of outcomes are regressed on differences of membership in all groups at once. Alone is "
        "the same with one group; it is not the gap of the verdict. Intervals and p-values are "
        "adjusted by Holm over groups."
    )
    heads = [Head("Group", True), Head("Alone"), Head("Net of others"), Head("<i>p</i>, net")]
    rows = []
    ends = [data[name].values.ravel() for name in _ENDS[1:]]
    places = shared_decimals(zip(*(one.tolist() for one in ends), strict=True))
    for group in data["group"].values[:_ROWS]:
        one = data.sel(group=group)
        row = [label(group)]
        for kind in ("alone", "net"):
            numbers = (float(one[name].sel(kind=kind)) for name in _ENDS)
            row.append(escape(with_interval(*numbers, places=places)))
        rows.append([*row, escape(p_value(float(one["p_adjusted"].sel(kind="net"))))])
    more = data.sizes["group"] - len(rows)
    pieces = [paragraphs([how], "soft"), paragraphs([minus(found.sentence)])]
    pieces += [context.figure(partial(found)), table(heads, rows)]
    pieces += [paragraphs([f"And {more:,} more groups."], "note")] if more else []
    return "".join(pieces)
