"""The cells of a headline in the order a person reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpc_lab.results.variables import PAIRING_MODES

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit

FLAGGED = ("undervalued", "overvalued")
_READ_FIRST = (FLAGGED, ("within tolerance",), ("inconclusive",), ("not estimable",))

_FIELDS = {
    "verdict": "verdict",
    "reason": "verdict_reason",
    "estimate": "estimate",
    "low": "ci_low_adjusted",
    "high": "ci_high_adjusted",
    "cut": "ci_cut",
    "pairs": "n_pairs",
    "queries": "n_queries",
    "effective": "n_effective",
    "epsilon": "epsilon",
    "ties": "tie_inflation",
}


@dataclass(frozen=True)
class Cell:
    """One group under one rule and mode. The interval is the adjusted one, as the verdict is."""

    group: str
    verdict: str
    reason: str
    estimate: float
    low: float
    high: float
    cut: bool
    pairs: int
    queries: int
    effective: float
    epsilon: float
    ties: float
    underpowered: bool


@dataclass(frozen=True)
class Slice:
    """All groups under one scoring rule and pairing mode, those with a finding first."""

    rule: str
    mode: str
    cells: tuple[Cell, ...]

    def having(self, *verdicts: str) -> list[Cell]:
        """Return the cells with one of the verdicts."""
        return [cell for cell in self.cells if cell.verdict in verdicts]


def slices(audit: Audit) -> list[Slice]:
    """Return the slices of an audit, ``baseline`` and ``matched`` first."""
    rules = audit.headline["scoring_rule"].values.tolist()
    modes = audit.headline["pairing_mode"].values.tolist()
    rules = sorted(rules, key=lambda rule: rule != "baseline")
    modes = sorted(modes, key=PAIRING_MODES.index)
    return [Slice(rule, mode, _cells(audit, rule, mode)) for mode in modes for rule in rules]


def settings(audit: Audit) -> dict[str, Any]:
    """Return the options of an audit and its other attributes in one flat dict."""
    plain = {**audit.headline.attrs, **audit.attrs}
    try:
        options = json.loads(str(plain.pop("options", "{}")))
    except ValueError:
        options = {}
    return {**(options if isinstance(options, dict) else {}), **plain}


def family_size(part: Slice, all_slices: list[Slice]) -> int:
    """Return how many estimable cells share the pairing mode of a slice."""
    same = (other for other in all_slices if other.mode == part.mode)
    return sum(cell.verdict != "not estimable" for other in same for cell in other.cells)


def _cells(audit: Audit, rule: str, mode: str) -> tuple[Cell, ...]:
    at = audit.headline.sel(scoring_rule=rule, pairing_mode=mode)
    columns = [at[variable].values.tolist() for variable in _FIELDS.values()]
    weak = at["underpowered"].values.tolist() if "underpowered" in at else [False] * len(columns[0])
    rows = zip(audit.groups, *columns, weak, strict=True)
    names = ("group", *_FIELDS, "underpowered")
    found = [Cell(**dict(zip(names, row, strict=True))) for row in rows]
    return tuple(_in_reading_order(found))


def _in_reading_order(cells: list[Cell]) -> Iterator[Cell]:
    for verdicts in _READ_FIRST:
        kind = [cell for cell in cells if cell.verdict in verdicts]
        largest_first = verdicts == FLAGGED
        yield from sorted(kind, key=lambda cell: -abs(cell.estimate)) if largest_first else kind
