"""The finding in words, the forest, the table of verdicts, and a sample of pairs if asked for."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from mpc_lab.html import Head, escape, folded, label, paragraphs, table
from mpc_lab.report.context import Context
from mpc_lab.results.preflight import every_line
from mpc_lab.results.preflight.look import OK
from mpc_lab.results.questions.pairs import pairs as list_pairs
from mpc_lab.results.summary import (
    Cell,
    Slice,
    decimals_of,
    interval_word,
    largest_first,
    reading,
    why_not,
)
from mpc_lab.text import between, column, entry, guard_count, minus, noun, p_value, with_ends
from mpc_lab.vocabulary import NOT_ESTIMABLE, VERDICTS

_ROWS, _ROWS_FOLDED, _SLICES = 200, 50, 8
_FOREST = 100
_NAMES = ("query", "item", "other_item", "label", "other_label")
_SCORES = ("score", "other_score")
# What a pair says comes before its scores, which a narrow window may hide.
_FIRST = (*_NAMES, "outcome", "other_outcome", "difference")
# Decimals of a score.
_FEWEST, _MOST = 4, 12


def finding(context: Context) -> str:
    """Return what was found, in words."""
    found = reading(context.audit, leaves=True)
    elsewhere = ("audit.to_frame() has them all", "the table of verdicts has them")
    # As in the story above, the largest leads.
    findings = largest_first(found.findings, context.part)
    findings = [line.replace(*elsewhere) for line in findings]
    pieces = [
        _preflight(context),
        # The title above has named them all: one line of them in bold says enough.
        paragraphs(findings[:1], "lead"),
        paragraphs(findings[1:]),
        paragraphs([context.gate], "lead"),
        _sizes(context),
        paragraphs(found.others),
        paragraphs(found.cautions, "warn"),
        paragraphs([_explain(context), *found.compared, *found.more], "soft"),
    ]
    return "".join(pieces)


def _preflight(context: Context) -> str:
    """Return one line where every check is ok; else the head of the page has said it."""
    checked = context.audit._checked
    if not checked or any(one.state != OK for one in checked):
        return ""
    return paragraphs(every_line(checked), "soft")


def poor_checks(context: Context) -> str:
    """Return a line for each check that is not ok, and the remedies folded away."""
    poor = [one.to_leave() for one in context.audit._checked if one.state != OK]
    if not poor:
        return ""
    said = [f"{one.state.capitalize()}, {one.check}: {one.sentence}" for one in poor]
    remedies = [f"{one.check}: {one.remedy}" for one in poor if one.remedy]
    return paragraphs(said, "warn") + folded("What to do about it", paragraphs(remedies, "note"))


def _explain(context: Context) -> str:
    """Say what a gap is, for the pairing mode that leads."""
    others = context.part.against or "the items they are paired with"
    return (
        "The gap is the mean outcome of items of the group less the mean outcome of the items they "
        "are paired with: items of the same query, outside the group, with scores at most ε apart. "
        f"Above 0, the outcome is higher for items of the group than for {others}."
    )


def _sizes(context: Context) -> str:
    options = context.options
    sizes = [("rows", "n_rows"), ("queries", "n_queries"), ("items", "n_items")]
    numbers = [(noun, f"{int(options[key]):,}") for noun, key in sizes if options.get(key)]
    groups = len(context.part.cells)
    numbers.append((noun(groups, "group"), f"{groups:,}"))
    used = [cell.pairs for cell in context.part.cells if cell.pairs]
    if used:
        numbers.append(("pairs a group", between(used, ",")))
    items = "".join(f"<li><b>{escape(number)}</b>{escape(noun)}</li>" for noun, number in numbers)
    return f'<ul class="facts">{items}</ul>'


def forest(context: Context) -> str:
    """Return the forest of all groups."""
    note = "Hover over a mark for its numbers. Triangles are findings; the line at 0 means no gap."
    return context.draw("forest", limit=_FOREST) + paragraphs([note], "soft")


def verdicts(context: Context) -> str:
    """Return the table of verdicts, and those of other rules and modes folded away."""
    first, *others = context.parts
    shown, left = others[:_SLICES], others[_SLICES:]
    pieces = [_table(context, first, _ROWS)]
    pieces += [folded(part.name, _table(context, part, _ROWS_FOLDED)) for part in shown]
    if left:
        pieces += paragraphs([f"Left out: {len(left)} more combinations of rule and mode."], "note")
    clauses = "; ".join(known.rests_on for known in VERDICTS.values() if known.rests_on)
    how = [
        "A verdict of matched pairs rests on their adjusted interval together with that of the "
        "mirrored pairs, from the lowest to the highest end of the two (the bracket); a verdict of "
        f"other pairs on their own adjusted interval: {clauses}."
    ]
    return paragraphs(how, "soft") + "".join(pieces)


def _table(context: Context, part: Slice, at_most: int) -> str:
    options = context.options
    adjusted = options.get("adjust", "none") != "none"
    heads = [Head("Group", True), Head("Verdict", True), Head("Gap")]
    word = interval_word(part.mode, options)
    heads += [Head(f"{'Adjusted ' if adjusted else ''}{escape(context.level)} {word}")]
    heads += [Head(f"{'Adjusted ' if adjusted else ''}<i>p</i>"), Head("ε"), Head("Pairs")]
    heads += [Head("Queries"), Head("Effective clusters"), Head("Smallest detectable gap")]
    cells = context.audit.headline.sel(scoring_rule=part.rule, pairing_mode=part.mode)
    least = cells["mde_adjusted"].values.tolist() if "mde_adjusted" in cells else []
    findable = dict(zip(context.audit.groups, least, strict=False))
    shown = part.cells[:at_most]
    places, thresholds = decimals_of(shown), column([cell.epsilon for cell in shown])
    rows = [
        _row(cell, findable.get(cell.group, math.nan), places, threshold)
        for cell, threshold in zip(shown, thresholds, strict=True)
    ]
    more = len(part.cells) - len(rows)
    rest = [f"And {more:,} more groups, after these in the order of findings."] if more else []
    return table(heads, rows) + paragraphs(rest, "note")


def _row(cell: Cell, findable: float, places: int, threshold: str) -> list[str]:
    gap, ends = with_ends(cell.estimate, cell.low, cell.high, places)
    return [
        label(cell.group),
        verdict(cell),
        gap,
        ends,
        escape(p_value(cell.p)),
        threshold,
        entry(cell.pairs, ",d"),
        escape(guard_count(cell.queries)),
        entry(cell.effective, ",.1f"),
        entry(findable, places),
    ]


def verdict(cell: Cell) -> str:
    """Return a verdict with its mark and its reason."""
    # The class that style.css colours: the first word of the verdict.
    mark, kind = VERDICTS[cell.verdict].mark, cell.verdict.split()[0]
    reason = why_not(cell) if cell.verdict == NOT_ESTIMABLE else cell.reason
    reason = "" if reason == "interval covers 0" else reason  # the interval shows it
    small = f'<span class="reason">{escape(reason)}</span>' if reason else ""
    return f'<span class="verdict {kind}">{mark} {escape(cell.verdict)}</span>{small}'


def pairs(context: Context) -> str:
    """Return the closest pairs of the groups looked at closely."""
    if not context.pairs:
        how = "None was asked for: this page holds aggregates only. See audit.report(…, pairs=20)."
        return paragraphs([how], "note")
    how = (
        "The pairs with the smallest score distances. The item is in the group, the other item is "
        "not. They illustrate; the estimate is over all pairs. "
    )
    how += (
        "Queries and items have their ids of the log."
        if context.show_ids
        else "Items have their ids of the log; queries are numbered."
    )
    pieces = [paragraphs([how], "soft")]
    for cell in context.focus:
        pieces.append(f"<h3>Group {label(cell.group)}</h3>")
        pieces.append(context.attempt(_pairs, context, cell))
    return "".join(pieces)


def _pairs(context: Context, cell: Cell) -> str:
    part = context.part
    found = list_pairs(
        context.audit,
        cell.group,
        part.rule,
        part.mode,
        limit=context.pairs,
        show_ids=context.show_ids,
    )
    if found.empty:
        return paragraphs(["There is no pair."], "note")
    names = [one for one in _FIRST if one in found]
    names += [str(one) for one in found if one not in _FIRST]
    heads = [Head(escape(one.replace("_", " ").capitalize()), one in _NAMES) for one in names]
    places = _apart(found)
    columns = [_column(one, found[one], places) for one in names]
    return table(heads, [list(row) for row in zip(*columns, strict=True)])


def _apart(found: pd.DataFrame) -> int:
    """Return the decimals at which the two scores of every pair differ, unless they are tied."""
    scores = found[list(_SCORES)].to_numpy(dtype=float)
    one, other = scores[scores[:, 0] != scores[:, 1]].T
    known = range(_FEWEST, _MOST)
    differ = (k for k in known if (np.round(one, k) != np.round(other, k)).all())
    return next(differ, _MOST)


def _column(name: str, values: pd.Series, places: int) -> list[str]:
    """Return the entries of a column, its numbers with the same decimals."""
    if name in _NAMES:
        return [label(value) for value in values]
    if name in _SCORES:
        return [minus(f"{value:,.{places}f}") for value in values]
    if name == "distance":
        # Two digits of the smallest.
        sizes = values[values > 0]
        digits = 1 - math.floor(math.log10(sizes.min())) if len(sizes) else 0
        return [f"{value:,.{max(min(digits, _MOST), 0)}f}" for value in values]
    if pd.api.types.is_float_dtype(values):
        return column(values.tolist(), 4)
    return [escape(minus(str(value))) for value in values]
