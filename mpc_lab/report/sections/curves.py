"""Curves over ε of the groups looked at closely, with their limit and certificate."""

from __future__ import annotations

from mpc_lab import charts
from mpc_lab.report.context import Context
from mpc_lab.report.html import label, paragraphs, with_ends, words
from mpc_lab.results.reading import Cell
from mpc_lab.results.wording import percent


def curves(context: Context) -> str:
    """Return a curve for each of them."""
    how = (
        "A gap that is there only at one ε deserves distrust. The inner area is the interval at "
        "each ε on its own, the outer one a band that covers the whole curve at once. At ε above 0 "
        "the item scored lower should do a little worse whatever its group, so that curves tend "
        "to fall."
    )
    pieces = [paragraphs([how], "soft"), paragraphs([context.focus_note], "note")]
    if not context.focus_note:
        pieces.pop()
    for cell in context.focus:
        pieces.append(f"<h3>Group {label(cell.group)}</h3>")
        pieces.append(context.attempt(_curve, context, cell))
    if not context.has_rows:
        pieces.append(
            paragraphs(["The limit ε → 0 and the certificate need the rows of the log."], "note")
        )
    return "".join(pieces)


def _curve(context: Context, cell: Cell) -> str:
    part = context.part
    chart = charts.epsilon_curve(context.audit, cell.group, part.rule, part.mode)
    drawn = context.figure(chart)
    if not context.has_rows:
        return drawn
    return (
        drawn
        + context.attempt(_limit, context, cell)
        + context.attempt(_certificate, context, cell)
    )


def _limit(context: Context, cell: Cell) -> str:
    part = context.part
    found = context.audit.limit(cell.group, part.rule, part.mode)
    value, ends = with_ends(float(found.estimate), float(found.ci_low), float(found.ci_high))
    level = percent(float(context.options.get("level", 0.95)))
    method = str(found.method.item())
    if method == "not estimable":
        return f"<p><b>Limit ε → 0:</b> not estimable ({words(found.reason.item())}).</p>"
    return (
        f"<p><b>Limit ε → 0:</b> {value} ({words(level)} interval {ends}, not adjusted for "
        f"the number of groups), by {words(method)} "
        f"over {int(found.n_pairs):,} pairs with gaps up to {float(found.bandwidth):.3g}; "
        f"{words(percent(round(float(found.tie_share), 4)))} of them are ties.</p>"
    )


def _certificate(context: Context, cell: Cell) -> str:
    found = context.audit.certificate(cell.group, context.part.rule)
    return f"<p><b>Certificate:</b> {words(found.sentence)}</p>"
