"""The boost that would close a gap, and what it would cost."""

from __future__ import annotations

import math

import numpy as np

from mpc_lab.charts.boost import draw
from mpc_lab.report.context import Context
from mpc_lab.report.html import label, paragraphs, signed, with_ends, words
from mpc_lab.results.boosts import FairBoost
from mpc_lab.results.reading import Cell
from mpc_lab.results.rows import need_rows
from mpc_lab.results.wording import percent

_DRAWN = 3
# Each step sorts the log anew.
_STEPS = 41


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
    return _sentence(found) + context.figure(draw(audit, curve, found))


def _sentence(found: FairBoost) -> str:
    level = percent(found.level)
    reach = _reach(found)
    if math.isnan(found.alpha) or not found.held_out:
        return f"<p>No boost closes the gap: {words(found.note)}. {words(level)} set: {reach}.</p>"
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
    start = f"<b>At a boost of {signed(found.alpha, 4)}</b>"
    if not found.settled:
        start = (
            "<b>This log does not settle which boost closes the gap.</b> "
            f"Nearest to 0, at {signed(found.alpha, 4)},"
        )
    return (
        f"<p>{start} the gap crosses 0 on the half it is "
        f"chosen on ({words(level)} set {reach}; known to within {signed(found.resolution, 4)}). "
        f"On {held['n_queries']:,.0f} held-out queries the gap goes from {before} to {after} "
        f"({ends}), {', '.join(parts)}, and {words(moved)} of the positions change. "
        f"{words(_stopped(found.note))}</p>"
    )


def _stopped(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}." if note and not note.endswith(".") else note


def _reach(found: FairBoost) -> str:
    """Return the confidence set; of many intervals only where they begin and end."""
    several = found.confidence_set
    if not several:
        return "empty"
    low, high = several[0][0], several[-1][1]
    span = f"{signed(low, 4)} to {signed(high, 4)}"
    if len(several) > 1:
        span = f"of {len(several)} intervals between {signed(low, 4)} and {signed(high, 4)}"
    ends = [word for word, open_ in _ends(found) if open_]
    return f"{span}, unbounded {' and '.join(ends)}" if ends else span


def _ends(found: FairBoost) -> tuple[tuple[str, bool], tuple[str, bool]]:
    return ("below", found.unbounded_low), ("above", found.unbounded_high)
