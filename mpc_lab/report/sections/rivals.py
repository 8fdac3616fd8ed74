"""Beyond the gap: what other measures say, and the boost at which it is 0 with its cost."""

from __future__ import annotations

import xarray as xr

from mpc_lab.html import label, paragraphs
from mpc_lab.report.context import DRAWN, Context
from mpc_lab.results.questions.boosts import FairBoost
from mpc_lab.results.summary import Cell
from mpc_lab.text import guard_count, minus


def rivals(context: Context) -> str:
    """Return what other measures say of the groups looked at closely."""
    if not context.focus:
        return paragraphs(["No group has pairs to compare."], "note")
    return context.attempt(_rivals, context)


def _rivals(context: Context) -> str:
    names = [cell.group for cell in context.focus]
    found = context.rivals
    how = (
        "Measures disagree because they compare different things: items of any query or of one, "
        "with any scores or close ones. None of them is wrong; only close scores in one query ask "
        "whether the ranker undervalues the group at the margin. Each measure is adjusted over "
        "all groups; some measure may still flag some group by chance, and the sentences below "
        "explain only flags that are unlikely to be chance among so many tests."
    )
    pieces = [paragraphs([how], "soft")]
    for k, name in enumerate(names):
        one = found.sel(group=name)
        pieces.append(f"<h3>Group {label(name)}</h3>{paragraphs([one['explanation'].item()])}")
        pieces.append(_flags(one))
        if k < DRAWN:
            pieces.append(context.attempt(context.draw, "rivals", name, found=found))
    return "".join(pieces)


def _flags(one: xr.Dataset) -> str:
    """Return which measures flag a group."""
    rivals = one.sel(measure=[name for name in one["measure"].values.tolist() if name != "mpc"])
    flagging = rivals["measure"].values[rivals["flagged"].values].tolist()
    named = ", ".join(str(name).replace("_", " ") for name in flagging) or "none"
    return paragraphs([f"Other measures that flag it: {named}."], "soft")


def boosts(context: Context) -> str:
    """Return the boost of each group looked at closely."""
    how = (
        "A boost adds α to the scores of the group. The outcome difference is fitted as a falling "
        "function of the distance in score, and α* is where that fit is 0. What boosts do is "
        "measured on queries they were not chosen on: each half of the queries chooses for the "
        "other. α* says how large the gap is in units of the score, and is not advice: a ranker "
        "that knows more about the group may be a better remedy."
    )
    pieces = [paragraphs([how], "soft")]
    shown = context.focus[:DRAWN]
    for cell in shown:
        pieces.append(f"<h3>Group {label(cell.group)}</h3>")
        pieces.append(context.attempt(_boost, context, cell))
    note = context.focus_note(DRAWN) if shown else "No group has pairs to boost."
    pieces += [paragraphs([note], "note")] if note else []
    return "".join(pieces)


def _boost(context: Context, cell: Cell) -> str:
    found = context.boost(cell.group)
    caution = paragraphs([found.caution], "note") if found.caution else ""
    return _sentence(found) + caution + context.figure(context.boost_chart(cell.group))


def _sentence(found: FairBoost) -> str:
    held = found.held_out
    few = f" Held out: {guard_count(held['n_queries'])} queries." if held else ""
    return paragraphs([minus(found.sentence + few)])
