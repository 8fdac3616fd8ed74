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
from html import escape
from typing import TYPE_CHECKING, Any

from mpc_lab.results.reading import FLAGGED, Cell, Slice, settings, slices
from mpc_lab.results.summary import reading, why_not
from mpc_lab.results.wording import decimals, name, number, percent, quoted
from mpc_lab.terminal import plain

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit

_ROWS = 50
_ROWS_FOLDED = 20
_TABLES_FOLDED = 12
_SENTENCES = 3
_SETTING_AT_MOST = 400

_MARKS = {
    "undervalued": "▲",
    "overvalued": "▼",
    "within tolerance": "=",
    "inconclusive": "○",
    "not estimable": "–",
}
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
.mpc-audit svg { display: block; overflow: visible; max-width: none; }
.mpc-audit table.mpc-cells .mpc-undervalued { color: #c8601a; }
.mpc-audit table.mpc-cells .mpc-overvalued { color: #2f7fd1; }
.mpc-audit details { margin: .3em 0; }
.mpc-audit summary { cursor: pointer; }
.mpc-audit dl { display: grid; grid-template-columns: max-content 1fr; gap: .15em 1em;
  margin: .5em 0 .5em 1em; font-size: .93em; }
.mpc-audit dl dt { font-weight: 600; float: none; width: auto; }
.mpc-audit dl dd { margin: 0; overflow-wrap: anywhere; }
"""


def html_view(audit: Audit) -> str:
    """Return the view of an audit as a piece of HTML."""
    words, parts, options = reading(audit), slices(audit), settings(audit)
    found = words.findings[:_SENTENCES]
    if len(words.findings) > _SENTENCES:
        found.append("More findings are in the table.")
    pieces = [
        f"<style>{_STYLE}</style>",
        _paragraphs(found, "mpc-finding"),
        _table(parts[0], options, _ROWS),
        _paragraphs([*words.others, *words.cautions], "mpc-note"),
        *[_folded(part, options) for part in parts[1 : 1 + _TABLES_FOLDED]],
        "<details><summary>How it was compared, and the settings</summary>",
        _paragraphs([*words.compared, *words.more], "mpc-note"),
        _definitions(options),
        "</details>",
    ]
    return f'<div class="mpc-audit">{"".join(pieces)}</div>'


def _paragraphs(lines: Iterable[str], kind: str) -> str:
    # No line break inside "95 %".
    texts = (escape(line).replace(" % ", "\u00a0%\u00a0") for line in lines)
    return "".join(f'<p class="{kind}">{text}</p>' for text in texts)


def _folded(part: Slice, options: dict[str, Any]) -> str:
    title = f"Rule {quoted(part.rule)}, {part.mode} pairs"
    table = _table(part, options, _ROWS_FOLDED)
    return f"<details><summary>{escape(title)}</summary>{table}</details>"


def _definitions(options: dict[str, Any]) -> str:
    items = (
        f"<dt>{escape(name(key))}</dt><dd>{escape(_cut(_shown(value)))}</dd>"
        for key, value in options.items()
        if value is not None
    )
    return f"<dl>{''.join(items)}</dl>"


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
    interval = f"{adjusted}{percent(options.get('level', 0.95))} interval"
    heads = [("Group", True), ("Verdict", True), ("Gap", False), (scale.axis(), False)]
    heads += [(interval, False), ("Pairs", False), (clusters, False)]
    head = "".join(f'<th scope="col"{_left(is_text)}>{title}</th>' for title, is_text in heads)
    body = "".join(_row(cell, scale) for cell in shown)
    more = len(part.cells) - len(shown)
    rest = [f"and {more:,} more groups, with smaller or no findings; see audit.to_frame()."]
    return (
        f'<div class="mpc-wide"><table class="mpc-cells"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{_paragraphs(rest, 'mpc-note') if more else ''}"
    )


def _left(is_text: bool) -> str:
    return ' class="mpc-text"' if is_text else ""


def _row(cell: Cell, scale: Scale) -> str:
    reason = why_not(cell) if cell.verdict == "not estimable" else cell.reason
    reason = "" if reason == "interval covers 0" else reason  # the drawing shows it
    places = decimals(cell.low, cell.high)
    estimable = math.isfinite(cell.estimate)
    gap = _number(cell.estimate, places) if estimable else "–"
    ends = f"{_number(cell.low, places)} to {_number(cell.high, places)}" if estimable else "–"
    effective = f"{cell.effective:,.1f}" if math.isfinite(cell.effective) else "–"
    verdict = f"{_MARKS[cell.verdict]} {cell.verdict}"
    colour = f' class="mpc-{cell.verdict}"' if cell.verdict in FLAGGED else ""
    small = f'<span class="mpc-reason">{escape(name(reason))}</span>' if reason else ""
    group = f'<div class="mpc-name"><bdi>{escape(name(cell.group))}</bdi></div>'
    return (
        f'<tr><td class="mpc-text">{group}</td>'
        f'<td class="mpc-text"><span{colour}>{escape(verdict)}</span>{small}</td>'
        f"<td>{gap}</td><td{colour}>{scale.bar(cell) if estimable else ''}</td><td>{ends}</td>"
        f"<td>{cell.pairs:,}</td><td>{effective}</td></tr>"
    )


def _number(value: float, places: int) -> str:
    return number(value, places).replace("-", "−")


@dataclass(frozen=True)
class Scale:
    """The one horizontal scale of the intervals in a table; it always holds 0."""

    low: float
    high: float
    width: int = 170

    @classmethod
    def around(cls, cells: Iterable[Cell]) -> Scale:
        """Return a scale for these intervals that one very wide interval does not spoil."""
        ends = [(c.low, c.high) for c in cells if math.isfinite(c.low) and math.isfinite(c.high)]
        if not ends:
            return cls(-1.0, 1.0)
        sizes = sorted(max(abs(low), abs(high)) for low, high in ends)
        bound = 2 * sizes[(4 * len(sizes)) // 5] or 1.0
        low = max(min(0.0, *(low for low, _ in ends)), -bound)
        high = min(max(0.0, *(high for _, high in ends)), bound)
        return cls(low, high) if high > low else cls(-1.0, 1.0)

    def at(self, value: float) -> float:
        """Return the place of a value, inside the drawing."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return 8 + share * (self.width - 16)

    def axis(self) -> str:
        """Return the head of the column: the ends of the scale and where 0 is."""
        places = decimals(self.low, self.high)
        zero = self.at(0.0)
        ends = {self.at(self.low): self.low, self.at(self.high): self.high}
        words = [(zero, "0")]
        words += [(x, _number(v, places)) for x, v in ends.items() if abs(x - zero) > 30]
        # In this order and apart: a notebook that is not trusted shows the bare texts.
        texts = " ".join(
            f'<text x="{x:.1f}" y="11" text-anchor="middle" font-size="11" '
            f'font-weight="400" fill="currentColor">{label}</text>'
            for x, label in sorted(words)
        )
        return f'<svg width="{self.width}" height="14" aria-hidden="true">{texts}</svg>'

    def bar(self, cell: Cell) -> str:
        """Return the interval as a line with a dot, and 0 as an upright line."""
        left, right, dot = self.at(cell.low), self.at(cell.high), self.at(cell.estimate)
        places = decimals(cell.low, cell.high)
        label = (
            f"gap {_number(cell.estimate, places)}, interval {_number(cell.low, places)} "
            f"to {_number(cell.high, places)}"
        )
        zero = self.at(0.0)
        arrows = [_arrow(left, -1)] if cell.low < self.low else []
        arrows += [_arrow(right, 1)] if cell.high > self.high else []
        return (
            f'<svg width="{self.width}" height="18" role="img" aria-label="{escape(label)}">'
            f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="-4" y2="22" stroke="gray" '
            'stroke-opacity=".6"/>'
            f'<line x1="{left:.1f}" x2="{right:.1f}" y1="9" y2="9" stroke="currentColor" '
            'stroke-width="2"/>'
            f'<circle cx="{dot:.1f}" cy="9" r="3.5" fill="currentColor"/>{"".join(arrows)}</svg>'
        )


def _arrow(x: float, way: int) -> str:
    tip, back = x + 6 * way, x - 1 * way
    return f'<path d="M{tip:.1f} 9L{back:.1f} 4.5V13.5Z" fill="currentColor"/>'
