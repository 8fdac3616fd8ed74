"""Findings as sentences and as short facts, for the tabs that show them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from mpc_lab.charts.words import level_of, with_interval
from mpc_lab.results.reading import Cell, settings
from mpc_lab.results.summary import AGAINST, sentence, why_not
from mpc_lab.results.wording import decimals, noun, number, quoted

if TYPE_CHECKING:
    import xarray as xr

    from mpc_lab.results import Audit

POWER = 0.8


def cell_sentence(audit: Audit, cell: Cell, mode: str) -> str:
    """Return the verdict of a cell in words."""
    if cell.verdict == "not estimable":
        return f"Group {quoted(cell.group)} is not estimable: {why_not(cell)}."
    return signed_numbers(sentence(cell, mode, settings(audit)))


def cell_facts(audit: Audit, cell: Cell) -> list[tuple[str, str]]:
    """Return the numbers of a cell with their names."""
    adjusted = "" if settings(audit).get("adjust", "none") == "none" else "adjusted "
    return [
        ("Verdict", cell.verdict),
        (f"Gap ({adjusted}{level_of(audit)} interval)", gap(cell.estimate, cell.low, cell.high)),
        ("Pairs", f"{cell.pairs:,}"),
        ("Queries", f"{cell.queries:,}"),
        ("Effective clusters", _or_dash(cell.effective, ",.1f")),
        ("Threshold ε", _or_dash(cell.epsilon, ".3g")),
    ]


def point_sentence(audit: Audit, point: xr.Dataset, mode: str, is_headline: bool) -> str:
    """Return what the curve says at one threshold, in words.

    A point of the curve has no verdict: its interval is not adjusted for the other groups.
    """
    who = quoted(str(point["group"].item()))
    at = f"At ε = {float(point['epsilon']):.3g}"
    pairs, queries = int(point["n_pairs"]), int(point["n_queries"])
    if not pairs:
        return f"{at} group {who} has no {mode} pairs: choose a larger threshold."
    counted = f"{pairs:,} {mode} {noun(pairs, 'pair')} in {queries:,} {noun(queries, 'query')}"
    if not math.isfinite(float(point["estimate"])):
        return f"{at} the gap of group {who} is not estimable: {counted} are too few."
    low, high = float(point["ci_low"]), float(point["ci_high"])
    estimate, places = float(point["estimate"]), decimals(low, high)
    size = number(abs(estimate), places)
    how = f"{size} {'better' if estimate > 0 else 'worse'} than {AGAINST[mode]}"
    mark = " This is the threshold of the headline." if is_headline else ""
    if math.isfinite(low) and math.isfinite(high):
        tail = "covers 0" if low <= 0 <= high else "leaves out 0"
        known = f"the {level_of(audit)} interval for this threshold alone {tail}"
    else:
        known = "too few clusters carry them to give an interval"
    return f"{at} the items of group {who} do {how}, over {counted}; {known}.{mark}"


def gap(estimate: float, low: float, high: float) -> str:
    """Return a gap with its interval, or a dash."""
    return with_interval(estimate, low, high) if math.isfinite(estimate) else "–"


def signed_numbers(words: str) -> str:
    """Return a sentence whose negative numbers have a real minus sign; names keep theirs."""
    return re.sub(r"(?<=[ (])-(?=\d)", "\u2212", words)


def _or_dash(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "–"
