"""The notebook view: a finding in words, a table with intervals drawn, the settings folded away.

Plain HTML and inline SVG: no script, nothing fetched, every name escaped. Colours are those of
the page around it (``currentColor``) or have contrast on light and on dark.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpc_lab.html import Head, definitions, escape, folded, label, paragraphs, table
from mpc_lab.results.base import settings
from mpc_lab.results.preflight.look import MARKS, OK, STOP, Finding
from mpc_lab.results.summary import (
    Cell,
    Slice,
    decimals_of,
    interval_range,
    interval_word,
    largest_first,
    reading,
    slices,
    why_not,
)
from mpc_lab.text import decimals, entry, minus, name, percent, plain, with_ends
from mpc_lab.vocabulary import DIRECTIONS, NOT_ESTIMABLE, OVERVALUED, UNDERVALUED, VERDICTS

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit

_ROWS = 50
_ROWS_FOLDED = 20
_TABLES_FOLDED = 12
_SENTENCES = 3
_SETTING_AT_MOST = 400
# Percent of the width between the middles of two numbers that do not touch.
_APART = 20

_STYLE = """
.mpc-audit { color: var(--jp-ui-font-color1, currentColor); background: transparent;
  font: 14px/1.45 var(--jp-ui-font-family, system-ui, sans-serif); max-width: 70em; }
.mpc-audit p { margin: 0 0 .5em; overflow-wrap: anywhere; }
.mpc-audit p.mpc-finding { font-size: 1.12em; font-weight: 600; }
.mpc-audit .mpc-note { opacity: .8; font-size: .93em; }
.mpc-audit .mpc-wide { overflow-x: auto; width: 0; min-width: 100%; margin: .4em 0 .8em; }
.mpc-audit table.mpc-cells { border-collapse: collapse; background: transparent; margin: 0;
  table-layout: auto; border: 0; font-size: 13px; font-variant-numeric: tabular-nums; }
.mpc-audit table.mpc-cells th, .mpc-audit table.mpc-cells td { padding: .3em .7em;
  text-align: right; vertical-align: middle; white-space: nowrap; background: transparent;
  color: inherit; border: 0; border-bottom: 1px solid rgba(128, 128, 128, .3); }
.mpc-audit table.mpc-cells th { font-weight: 600; vertical-align: bottom; }
.mpc-audit table.mpc-cells .mpc-text { text-align: left; }
.mpc-audit table.mpc-cells .mpc-name { white-space: normal; overflow-wrap: anywhere;
  width: max-content; max-width: 16em; font-weight: 600; }
.mpc-audit .mpc-reason { display: block; opacity: .75; font-size: .9em; white-space: normal;
  max-width: 18em; }
.mpc-audit .mpc-preflight { font-size: .93em; opacity: .9; }
.mpc-audit .mpc-mark { font-weight: 700; cursor: help; padding: 0 .12em; }
.mpc-audit .mpc-mark.mpc-ok { opacity: .55; }
.mpc-audit .mpc-caution { color: #b45309; }
.mpc-audit .mpc-stop { color: #b91c1c; }
.mpc-audit.mpc-audit ul.mpc-poor { margin: 0 0 .8em; padding: 0; list-style: none;
  font-size: .93em; }
.mpc-audit .mpc-poor li { margin: .15em 0; overflow-wrap: anywhere; }
.mpc-audit .mpc-poor code { font-size: .92em; background: rgba(128, 128, 128, .14);
  color: inherit; padding: .1em .35em; border-radius: 3px; user-select: all; }
@media (prefers-color-scheme: dark) {
  .mpc-audit .mpc-caution { color: #fbbf24; } .mpc-audit .mpc-stop { color: #f87171; } }
[data-jp-theme-light="true"] .mpc-audit .mpc-caution { color: #b45309; }
[data-jp-theme-light="true"] .mpc-audit .mpc-stop { color: #b91c1c; }
[data-jp-theme-light="false"] .mpc-audit .mpc-caution { color: #fbbf24; }
[data-jp-theme-light="false"] .mpc-audit .mpc-stop { color: #f87171; }
.mpc-audit svg { display: block; overflow: visible; max-width: none; }
.mpc-audit svg.mpc-scale { width: 170px; height: 18px; }
.mpc-audit th svg.mpc-scale { height: 14px; }
/* In a narrow column all numbers are in sight: heads are broken, the intervals drawn shorter. */
@media (max-width: 900px) { .mpc-audit table.mpc-cells { font-size: 12px; }
  .mpc-audit table.mpc-cells th { white-space: normal; }
  .mpc-audit table.mpc-cells th, .mpc-audit table.mpc-cells td { padding: .3em .25em; }
  .mpc-audit table.mpc-cells tr > :nth-child(3) { padding-right: 1.3em; }
  .mpc-audit table.mpc-cells tr > :nth-child(5) { padding-left: .8em; }
  .mpc-audit table.mpc-cells th:last-child { max-width: 5em; }
  .mpc-audit table.mpc-cells .mpc-name { max-width: 8em; }
  .mpc-audit svg.mpc-scale { width: 90px; } }
.mpc-audit details { margin: .3em 0; }
.mpc-audit summary { cursor: pointer; }
.mpc-audit dl { display: grid; grid-template-columns: max-content 1fr; gap: .15em 1em;
  margin: .5em 0 .5em 1em; font-size: .93em; }
.mpc-audit dl dt { font-weight: 600; float: none; width: auto; }
.mpc-audit dl dd { margin: 0; overflow-wrap: anywhere; }
"""
# The colours of the verdicts, and their lighter twins for a dark page.
_COLOURS = {name: VERDICTS[name].colour for name in DIRECTIONS}
_ON_DARK = {UNDERVALUED: "#ee8c4d", OVERVALUED: "#6fb0f2"}


def _colour(page: str, colours: dict[str, str]) -> str:
    """Return the style rules that colour verdicts on one kind of page."""
    return "".join(
        f"{page}.mpc-audit table.mpc-cells .mpc-{name} {{ color: {colour}; }}\n"
        for name, colour in colours.items()
    )


_STYLE += (
    _colour("", _COLOURS)
    + f"@media (prefers-color-scheme: dark) {{\n{_colour('', _ON_DARK)}}}\n"
    + _colour('[data-jp-theme-light="true"] ', _COLOURS)
    + _colour('[data-jp-theme-light="false"] ', _ON_DARK)
)


def html_view(audit: Audit) -> str:
    """Return the view of an audit as a piece of HTML."""
    words, parts, options = reading(audit), slices(audit), settings(audit)
    found = largest_first(words.findings, parts[0])[:_SENTENCES]
    if len(words.findings) > _SENTENCES:
        found.append("More findings are in the table.")
    pieces = [
        f"<style>{_STYLE}</style>",
        _strip(audit._checked),
        paragraphs(found[:1], "mpc-finding"),
        paragraphs(found[1:]),
        _table(parts[0], options, _ROWS),
        paragraphs([*words.others, *words.cautions], "mpc-note"),
        *[_fold(part, options) for part in parts[1 : 1 + _TABLES_FOLDED]],
        "<details><summary>How it was compared, and the settings</summary>",
        paragraphs([*words.compared, *words.more], "mpc-note"),
        _definitions(options),
        "</details>",
    ]
    return f'<div class="mpc-audit">{"".join(pieces)}</div>'


def preflight_view(audit: Audit) -> str:
    """Return the line of marks of the preflight alone, as a piece of HTML.

    What is not ok unfolds below the line; a check that says stop is unfolded from the start.
    """
    strip = _strip(audit._checked, can_fold=True)
    return f'<div class="mpc-audit"><style>{_STYLE}</style>{strip}</div>'


def _strip(checked: Iterable[Finding], *, can_fold: bool = False) -> str:
    """Return a mark for each check in one line, and below it what is not ok, with its remedy."""
    checked = list(checked)
    if not checked:
        return ""
    marks = " ".join(
        f'<span class="mpc-mark mpc-{one.state}" title="{escape(one.line)}" '
        f'aria-label="{escape(f"{one.check}: {one.state}")}" role="img">{MARKS[one.state]}</span>'
        for one in checked
    )
    poor = [one for one in checked if one.state != OK]
    said = f"{len(poor)} of {len(checked)} checks to note" if poor else "all checks are ok"
    lines = "".join(
        f'<li><b class="mpc-{one.state}">{MARKS[one.state]} {escape(one.check)}</b> '
        f"{minus(escape(one.sentence))}{_remedy(one)}</li>"
        for one in poor
    )
    listed = f'<ul class="mpc-poor">{lines}</ul>' if poor else ""
    line = f"Preflight {marks} <span>{said}</span>"
    if can_fold and poor:
        is_open = " open" if any(one.state == STOP for one in poor) else ""
        head = f'<summary class="mpc-preflight">{line}</summary>'
        return f"<details{is_open}>{head}{listed}</details>"
    return f'<p class="mpc-preflight">{line}</p>{listed}'


def _remedy(finding: Finding) -> str:
    if not finding.remedy:
        return ""
    kind = "code" if finding.is_call else "span"
    return f"<br><{kind}>{escape(finding.remedy)}</{kind}>"


def _fold(part: Slice, options: dict[str, Any]) -> str:
    return folded(part.name, _table(part, options, _ROWS_FOLDED))


def _definitions(options: dict[str, Any]) -> str:
    known = ((key, value) for key, value in options.items() if value is not None)
    return definitions((name(key), _cut(_shown(value))) for key, value in known)


def _shown(value: object) -> str:
    if isinstance(value, str) and value.startswith("{"):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {inner}" for key, inner in value.items() if inner is not None)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _cut(words: str) -> str:
    shown = plain(words)
    return shown if len(shown) <= _SETTING_AT_MOST else shown[:_SETTING_AT_MOST] + " …"


def _table(part: Slice, options: dict[str, Any], at_most: int) -> str:
    shown = part.cells[:at_most]
    scale = Scale.around(shown)
    clusters = "Effective queries" if options.get("cluster") == "query" else "Effective clusters"
    adjusted = "" if options.get("adjust", "none") == "none" else "Adjusted "
    word = interval_word(part.mode, options)
    interval = f"{adjusted}{percent(options.get('level', 0.95))} {word}"
    heads = [Head("Group", True), Head("Verdict", True), Head("Gap"), Head(scale.axis())]
    heads += [Head(interval), Head("Pairs"), Head(clusters)]
    more = len(part.cells) - len(shown)
    rest = f"and {more:,} more groups, with smaller or no findings; see audit.to_frame()."
    places = decimals_of(shown)
    made = table(heads, [_row(cell, scale, places) for cell in shown], kind="mpc-cells")
    return made + paragraphs([rest] if more else [], "mpc-note")


def _row(cell: Cell, scale: Scale, places: int) -> list[str]:
    reason = why_not(cell) if cell.verdict == NOT_ESTIMABLE else cell.reason
    reason = "" if reason == "interval covers 0" else reason  # the drawing shows it
    gap, ends = with_ends(cell.estimate, cell.low, cell.high, places)
    bar = scale.bar(cell) if math.isfinite(cell.estimate) else ""
    verdict = f"{VERDICTS[cell.verdict].mark} {cell.verdict}"
    colour = f' class="mpc-{cell.verdict}"' if cell.verdict in DIRECTIONS else ""
    small = f'<span class="mpc-reason">{escape(name(reason))}</span>' if reason else ""
    return [
        f'<div class="mpc-name">{label(cell.group)}</div>',
        f"<span{colour}>{escape(verdict)}</span>{small}",
        gap,
        f"<span{colour}>{bar}</span>",
        ends,
        f"{cell.pairs:,}",
        entry(cell.effective, ",.1f"),
    ]


@dataclass(frozen=True)
class Scale:
    """The one horizontal scale of the intervals in a table; it always holds 0.

    Places are shares of the width, which the style sheet sets by the room there is.
    """

    low: float
    high: float

    @classmethod
    def around(cls, cells: Iterable[Cell]) -> Scale:
        """Return a scale for these intervals."""
        return cls(*interval_range(cells))

    def at(self, value: float) -> float:
        """Return the place of a value, inside the drawing, in percent of its width."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return 5 + 90 * share

    def axis(self) -> str:
        """Return the head of the column: the ends of the scale and where 0 is."""
        places = decimals(self.low, self.high)
        zero = self.at(0.0)
        ends = {self.at(self.low): self.low, self.at(self.high): self.high}
        words = [(zero, "0")]
        words += [(x, entry(v, places)) for x, v in ends.items() if abs(x - zero) > _APART]
        # In this order and as separate texts: an untrusted notebook shows only the bare texts.
        texts = " ".join(
            f'<text x="{x:.1f}%" y="11" text-anchor="middle" font-size="11" '
            f'font-weight="400" fill="currentColor">{label}</text>'
            for x, label in sorted(words)
        )
        return f'<svg class="mpc-scale" width="170" height="14" aria-hidden="true">{texts}</svg>'

    def bar(self, cell: Cell) -> str:
        """Return the interval as a line with a dot, and 0 as an upright line."""
        left, right, dot = self.at(cell.low), self.at(cell.high), self.at(cell.estimate)
        gap, ends = with_ends(cell.estimate, cell.low, cell.high)
        zero = self.at(0.0)
        arrows = [_arrow(left, -1)] if cell.low < self.low else []
        arrows += [_arrow(right, 1)] if cell.high > self.high else []
        return (
            f'<svg class="mpc-scale" width="170" height="18" role="img" '
            f'aria-label="gap {gap}, interval {ends}">'
            f'<line x1="{zero:.1f}%" x2="{zero:.1f}%" y1="-4" y2="22" stroke="gray" '
            'stroke-opacity=".6"/>'
            f'<line x1="{left:.1f}%" x2="{right:.1f}%" y1="9" y2="9" stroke="currentColor" '
            'stroke-width="2"/>'
            f'<circle cx="{dot:.1f}%" cy="9" r="3.5" fill="currentColor"/>{"".join(arrows)}</svg>'
        )


def _arrow(place: float, way: int) -> str:
    """Return the head of an interval that goes on beyond the scale."""
    path = f'<path d="M{6 * way} 9L{-way} 4.5V13.5Z" fill="currentColor"/>'
    return f'<svg x="{place:.1f}%" overflow="visible">{path}</svg>'
