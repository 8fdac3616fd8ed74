"""What all sections of a report share: the audit, the groups looked at closely, the figures."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mpc_lab.errors import MpcError
from mpc_lab.report.figures import figure
from mpc_lab.report.html import paragraphs
from mpc_lab.results.reading import FLAGGED, Cell, Slice, settings, slices
from mpc_lab.results.wording import listing, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mpc_lab.charts.theme import AnyChart
    from mpc_lab.results import Audit

# So many groups are looked at one by one, whatever the number of groups: it bounds the page.
CLOSELY = 6
UNFLAGGED = 2


@dataclass
class Context:
    """An audit on its way into a page.

    Attributes
    ----------
    audit : Audit
    pairs : int
        Pairs to show of each group looked at closely.
    covariates
        As of :meth:`mpc_lab.Audit.balance`.
    gate : str
        What a gate says that was decided by other intervals than the verdicts; else empty.
    """

    audit: Audit
    pairs: int = 0
    covariates: Any = ()
    gate: str = ""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @cached_property
    def parts(self) -> list[Slice]:
        """All slices, ``baseline`` and ``matched`` first."""
        return slices(self.audit)

    @property
    def part(self) -> Slice:
        """The slice that the report is about."""
        return self.parts[0]

    @cached_property
    def options(self) -> dict[str, Any]:
        """Options and attributes of the audit."""
        return settings(self.audit)

    @property
    def has_rows(self) -> bool:
        """Whether the rows of the log are at hand."""
        return self.audit.ranking is not None

    @cached_property
    def flagged(self) -> list[Cell]:
        """The cells with a finding, the largest first."""
        return self.part.having(*FLAGGED)

    @cached_property
    def focus(self) -> list[Cell]:
        """The cells looked at one by one: those flagged, else the largest for their error."""
        if self.flagged:
            return self.flagged[:CLOSELY]
        known = [cell for cell in self.part.cells if cell.low == cell.low]
        return sorted(known, key=_distance)[:UNFLAGGED]

    @property
    def focus_note(self) -> str:
        """Say which groups are looked at one by one, and which are left out."""
        if not self.flagged:
            named = listing([quoted(cell.group) for cell in self.focus])
            return f"No group is flagged. Shown all the same: {named}, the nearest to a finding."
        left = self.flagged[CLOSELY:]
        if not left:
            return ""
        named = listing([quoted(cell.group) for cell in left])
        return (
            f"Shown for the {CLOSELY} largest gaps of {len(self.flagged):,} flagged groups; left "
            f"out to bound the size of this page: {named}."
        )

    def figure(self, chart: AnyChart) -> str:
        """Return a chart as HTML with a number of its own."""
        return figure(chart, next(self._numbers))

    def attempt(self, make: Callable[..., str], *given: object) -> str:
        """Return what a function makes of its arguments, or the sentence that says why not."""
        try:
            return make(*given)
        except MpcError as error:
            return paragraphs([str(error)], "note")


def _distance(cell: Cell) -> float:
    width = cell.high - cell.low
    return -abs(cell.estimate) / width if width > 0 else 0.0
