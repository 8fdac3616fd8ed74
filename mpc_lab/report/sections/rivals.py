"""Beyond the gap: what other measures say, and the boost that would close it with its cost."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from mpc_lab.charts.boost import draw
from mpc_lab.html import escape, label, paragraphs
from mpc_lab.report.context import Context
from mpc_lab.results.base import need_rows
from mpc_lab.results.questions.boosts import FairBoost
from mpc_lab.results.summary import Cell
from mpc_lab.text import entry, guarded, percent, with_ends

_DRAWN = 3
_STEPS = 41


def rivals(context: Context) -> str:
    """Return what other measures say of the groups looked at closely."""
    if not context.focus:
        return paragraphs(["No group has pairs to compare."], "note")
    return context.attempt(_rivals, context)


def _rivals(context: Context) -> str:
    names = [cell.group for cell in context.focus]
    found = context.audit.compare(names)
    how = (
        "Measures disagree because they compare different things: items of any query or of one, "
        "with any scores or close ones. None of them is wrong; only close scores in one query ask "
        "whether the ranker undervalues the group at the margin. Each measure is adjusted over "
        "all groups; some measure may still flag some group by chance, and the sentences below "
        "explain only what chance would hardly do among all measures."
    )
    pieces = [paragraphs([how], "soft")]
    for k, name in enumerate(names):
        one = found.sel(group=name)
        pieces.append(f"<h3>Group {label(name)}</h3>{paragraphs([one['explanation'].item()])}")
        pieces.append(_flags(one))
        if k < _DRAWN:
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
        "A boost adds α to the scores of the group. The boost at which the gap crosses 0 is chosen "
        "on one half of the queries; the gap and the objective are then measured on the other. It "
        "says how large the gap is in units of the score, and is no advice: a gap may be better "
        "closed by a ranker that knows more about the group."
    )
    pieces = [paragraphs([how], "soft")]
    shown = context.focus[:_DRAWN]
    for cell in shown:
        pieces.append(f"<h3>Group {label(cell.group)}</h3>")
        pieces.append(context.attempt(_boost, context, cell))
    left = len(context.focus) - len(shown)
    pieces += [paragraphs([f"Left out: {left} more groups."], "note")] if left > 0 else []
    if not shown:
        pieces.append(paragraphs(["No group has pairs to boost."], "note"))
    return "".join(pieces)


def _boost(context: Context, cell: Cell) -> str:
    audit = context.audit
    found = audit.fair_boost(cell.group)
    spread = need_rows(audit, "report").score_std
    curve = audit.boost_curve(cell.group, np.linspace(-spread, spread, _STEPS))
    caution = paragraphs([found.caution], "note") if found.caution else ""
    return _sentence(found) + caution + context.figure(draw(audit, curve, found))


def _sentence(found: FairBoost) -> str:
    level = percent(found.level)
    reach = _reach(found)
    if math.isnan(found.alpha) or not found.held_out:
        return (
            f"<p>No boost closes the gap: {escape(found.note)}. {escape(level)} set: {reach}.</p>"
        )
    held = found.held_out
    parts = []
    for name in ("ndcg", "dcg"):
        change = [held.get(f"{name}_change{end}", math.nan) for end in ("", "_low", "_high")]
        value, ends = with_ends(*change)
        if math.isfinite(change[0]):
            parts.append(f"{name.upper()} changes by {value} ({ends})")
    before, _ = with_ends(*(held[f"gap_before{end}"] for end in ("", "_low", "_high")))
    after, ends = with_ends(*(held[f"gap_after{end}"] for end in ("", "_low", "_high")))
    moved = percent(round(held["share_changed"], 4))
    start = f"<b>At a boost of {entry(found.alpha, 4)}</b>"
    if not found.settled:
        start = (
            "<b>This log does not settle which boost closes the gap.</b> "
            f"Nearest to 0, at {entry(found.alpha, 4)},"
        )
    return (
        f"<p>{start} the gap crosses 0 on the half it is "
        f"chosen on ({escape(level)} set {reach}; known to within {entry(found.resolution, 4)}). "
        f"On {escape(guarded(held['n_queries']))} held-out queries the gap goes from {before} to "
        f"{after} ({ends}), {', '.join(parts)}, and {escape(moved)} of the positions change. "
        f"{escape(_stopped(found.note))}</p>"
    )


def _stopped(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}." if note and not note.endswith(".") else note


def _reach(found: FairBoost) -> str:
    """Return the confidence set; of many intervals only where they begin and end."""
    several = found.confidence_set
    if not several:
        return "empty"
    low, high = several[0][0], several[-1][1]
    span = f"{entry(low, 4)} to {entry(high, 4)}"
    if len(several) > 1:
        span = f"of {len(several)} intervals between {entry(low, 4)} and {entry(high, 4)}"
    ends = [word for word, open_ in _ends(found) if open_]
    return f"{span}, unbounded {' and '.join(ends)}" if ends else span


def _ends(found: FairBoost) -> tuple[tuple[str, bool], tuple[str, bool]]:
    return ("below", found.unbounded_low), ("above", found.unbounded_high)
