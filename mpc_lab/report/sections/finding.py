"""The finding in words, the forest, and the table of verdicts."""

from __future__ import annotations

import math

from mpc_lab import charts
from mpc_lab.report.context import Context
from mpc_lab.report.html import (
    NOTHING,
    Head,
    count,
    folded,
    label,
    paragraphs,
    probability,
    signed,
    table,
    with_ends,
    words,
)
from mpc_lab.results.reading import Cell, Slice
from mpc_lab.results.summary import reading, why_not
from mpc_lab.results.wording import percent, quoted

_ROWS, _ROWS_FOLDED, _SLICES = 200, 50, 8
_FOREST = 100
_LEAD = 3
_MARKS = {
    "undervalued": ("▲", "undervalued"),
    "overvalued": ("▼", "overvalued"),
    "within tolerance": ("=", "within"),
    "inconclusive": ("○", ""),
    "not estimable": (NOTHING, ""),
}
READ = (
    "The gap is the mean outcome of items of the group less the mean outcome of the items they are "
    "paired with: items of the same query, outside the group, scored the same or at most ε above. "
    "Above 0, items of the group do better than the items ranked just above them."
)


def finding(context: Context) -> str:
    """Return what was found, in words."""
    found = reading(context.audit)
    elsewhere = ("audit.to_frame() has them all", "the table of verdicts has them")
    findings = [line.replace(*elsewhere) for line in found.findings]
    pieces = [
        paragraphs(findings[:_LEAD], "lead"),
        paragraphs(findings[_LEAD:]),
        paragraphs([context.gate] if context.gate else [], "lead"),
        _facts(context),
        paragraphs(found.others),
        paragraphs(found.cautions, "warn"),
        paragraphs([READ, *found.compared, *found.more], "soft"),
    ]
    return "".join(pieces)


def _facts(context: Context) -> str:
    options = context.options
    sizes = [("rows", "n_rows"), ("queries", "n_queries"), ("items", "n_items")]
    numbers = [(noun, f"{int(options[key]):,}") for noun, key in sizes if options.get(key)]
    numbers.append(("groups", f"{len(context.part.cells):,}"))
    used = [cell.pairs for cell in context.part.cells if cell.pairs]
    if used:
        low, high = f"{min(used):,}", f"{max(used):,}"
        numbers.append(("pairs a group", low if low == high else f"{low} to {high}"))
    items = "".join(f"<li><b>{words(number)}</b>{words(noun)}</li>" for noun, number in numbers)
    return f'<ul class="facts">{items}</ul>'


def forest(context: Context) -> str:
    """Return the forest of all groups."""
    note = "Hover over a mark for its numbers. Triangles are findings; the line at 0 is no gap."
    chart = charts.forest(context.audit, limit=_FOREST)
    return context.figure(chart) + paragraphs([note], "soft")


def verdicts(context: Context) -> str:
    """Return the table of verdicts, and those of other rules and modes folded away."""
    first, *others = context.parts
    shown, left = others[:_SLICES], others[_SLICES:]
    pieces = [_table(context, first, _ROWS)]
    pieces += [
        folded(f"Rule {quoted(part.rule)}, {part.mode} pairs", _table(context, part, _ROWS_FOLDED))
        for part in shown
    ]
    if left:
        pieces += paragraphs([f"Left out: {len(left)} more combinations of rule and mode."], "note")
    how = (
        "A verdict rests on the adjusted interval: undervalued where it lies above 0; overvalued "
        "where it and that of the mirrored pairs lie below 0; within tolerance where it lies "
        "inside the tolerance; otherwise inconclusive, which is not the same as no gap."
    )
    return paragraphs([how], "soft") + "".join(pieces)


def _table(context: Context, part: Slice, at_most: int) -> str:
    options = context.options
    level = percent(float(options.get("level", 0.95)))
    adjusted = options.get("adjust", "none") != "none"
    heads = [Head("Group", True), Head("Verdict", True), Head("Gap")]
    heads += [Head(f"{'Adjusted ' if adjusted else ''}{words(level)} interval")]
    heads += [Head(f"{'Adjusted ' if adjusted else ''}<i>p</i>"), Head("ε"), Head("Pairs")]
    heads += [Head("Queries"), Head("Effective clusters"), Head("Least gap findable")]
    cells = context.audit.headline.sel(scoring_rule=part.rule, pairing_mode=part.mode)
    p_values = dict(zip(context.audit.groups, cells["p_adjusted"].values.tolist(), strict=True))
    least = cells["mde_adjusted"].values.tolist() if "mde_adjusted" in cells else []
    findable = dict(zip(context.audit.groups, least, strict=False))
    rows = [
        _row(cell, p_values[cell.group], findable.get(cell.group, math.nan))
        for cell in part.cells[:at_most]
    ]
    more = len(part.cells) - len(rows)
    rest = [f"And {more:,} more groups, after these in the order of findings."] if more else []
    return table(heads, rows) + paragraphs(rest, "note")


def _row(cell: Cell, p_value: float, findable: float) -> list[str]:
    gap, ends = with_ends(cell.estimate, cell.low, cell.high)
    return [
        label(cell.group),
        verdict(cell),
        gap,
        ends,
        probability(p_value),
        f"{cell.epsilon:.3g}" if math.isfinite(cell.epsilon) else NOTHING,
        count(cell.pairs),
        count(cell.queries),
        f"{cell.effective:,.1f}" if math.isfinite(cell.effective) else NOTHING,
        signed(findable, 3),
    ]


def verdict(cell: Cell) -> str:
    """Return a verdict with its mark and its reason."""
    mark, kind = _MARKS[cell.verdict]
    reason = why_not(cell) if cell.verdict == "not estimable" else cell.reason
    reason = "" if reason == "interval covers 0" else reason  # the interval shows it
    small = f'<span class="reason">{words(reason)}</span>' if reason else ""
    return f'<span class="verdict {kind}">{mark} {words(cell.verdict)}</span>{small}'
