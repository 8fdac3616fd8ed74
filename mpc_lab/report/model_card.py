"""A section for a model card, in Markdown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mpc_lab.report.facts import data_facts, options_of, versions
from mpc_lab.report.markdown import table, words
from mpc_lab.results.gate import state
from mpc_lab.results.reading import Cell, slices
from mpc_lab.results.summary import reading
from mpc_lab.results.wording import decimals, name, number, percent

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_ROWS = 40


def model_card(audit: Audit, planned: int | None = None) -> str:
    """Return the section; see :meth:`mpc_lab.Audit.model_card`."""
    found, part, options = reading(audit), slices(audit)[0], options_of(audit)
    gate = state(audit, planned)
    level = percent(float(options.get("level", 0.95)))
    adjusted = "" if options.get("adjust") == "none" else "adjusted "
    shown = part.cells[:_ROWS]
    more = len(part.cells) - len(shown)
    heads = ["Group", "Verdict", "Gap", f"{adjusted}{level} interval".capitalize(), "Pairs"]
    lines = [
        "## Matched pair calibration",
        "",
        "Inside each query, items of a group were paired with items outside it that were scored "
        "the same or just above. The gap is the mean difference of their outcomes: above 0, items "
        "of the group did better than the items ranked just above them.",
        "",
        *_bullets([*found.findings, *([gate] if gate else [])]),
        "",
        table(heads, [_row(cell) for cell in shown]),
        "",
        *([f"and {more:,} more groups.", ""] if more else []),
        "### How it was measured",
        "",
        *_bullets([*found.compared, *found.more]),
        "",
        *_bullets(_data(audit)),
        "",
        "### Limits",
        "",
        *_bullets([*found.cautions, *LIMITS]),
    ]
    return "\n".join(lines) + "\n"


LIMITS = (
    "The audit compares items at the margin, where the ranker is nearly indifferent; a gap far "
    "from the margin is not seen.",
    "It takes the outcome as it is: where the outcome is itself biased, or depends on the position "
    "at which the item was shown, the gap carries that along.",
    "Inconclusive is not the same as no gap: few pairs give wide intervals.",
    "A gap says that the scores leave something out about the group; it does not say what or why.",
    "An audit without a finding is no certificate: it speaks of one log, one outcome and the "
    "groups that were given.",
)


def _bullets(lines: list[str]) -> list[str]:
    return [f"- {words(line)}" for line in lines]


def _row(cell: Cell) -> list[str]:
    places = decimals(cell.low, cell.high)
    estimable = math.isfinite(cell.estimate)
    gap = number(cell.estimate, places) if estimable else "–"
    ends = f"{number(cell.low, places)} to {number(cell.high, places)}" if estimable else "–"
    return [words(name(cell.group)), cell.verdict, gap, ends, f"{cell.pairs:,}"]


def _data(audit: Audit) -> list[str]:
    facts = data_facts(audit)
    sizes = [
        f"{facts[size]:,} {noun}"
        for size, noun in (("n_rows", "rows"), ("n_queries", "queries"), ("n_items", "items"))
        if facts.get(size)
    ]
    lines = [f"Data: {', '.join(sizes)}."] if sizes else []
    if facts["fingerprint"]:
        lines.append(f"Fingerprint of the rows (SHA-256): {facts['fingerprint']}.")
    made = versions(audit).get("mpc_lab")
    return [*lines, f"Made with mpc_lab {made}."] if made else lines
