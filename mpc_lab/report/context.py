"""What all sections of a report share: the audit, the groups looked at closely, the figures."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab import charts
from mpc_lab.charts import alive
from mpc_lab.charts.boost import draw as draw_boost
from mpc_lab.charts.theme import specification, svg_of
from mpc_lab.errors import MpcError
from mpc_lab.html import can_draw, paragraphs
from mpc_lab.report.ahead import Answers
from mpc_lab.results.base import is_rank_only, need_rows, settings
from mpc_lab.results.questions.boosts import boost_curve, fair_boost, prepare_boosts
from mpc_lab.results.questions.drivers import heaviest
from mpc_lab.results.questions.limit import tie as both_sides
from mpc_lab.results.summary import Cell, Slice, slices
from mpc_lab.text import listing, percent, quote
from mpc_lab.vocabulary import DIRECTIONS, MODES

if TYPE_CHECKING:
    import xarray as xr

    from mpc_lab.charts.theme import AnyChart
    from mpc_lab.objective.boosts import Boosts
    from mpc_lab.results import Audit
    from mpc_lab.results.questions.boosts import FairBoost
    from mpc_lab.results.questions.certificate import Certificate
    from mpc_lab.results.questions.limit import Tie
    from mpc_lab.results.questions.partial import PartialGaps

# At most this many groups are looked at one by one, which bounds the size of the page.
CLOSELY = 6
UNFLAGGED = 2
# Of how many of them rivals and boosts are drawn.
DRAWN = 3
PLACEBOS = 100
_BOOST_STEPS = 41
# Ids of clipping paths, which every drawing counts from 0.
_TAG = re.compile(r"<(?:g|path|line|text)\b[^<>]*>")
_LABELS = re.compile(r' (?:aria-label|aria-roledescription|aria-hidden|role)="[^"]*"')
_PATH = re.compile(r' d="[^"]*"')
# More than a hundredth of a pixel is not seen.
_DIGITS = re.compile(r"(\.\d\d)\d+")
_IDS = re.compile(r'(\bid="|="url\(#)(?=[A-Za-z_])')


@dataclass(frozen=True)
class Section:
    """A section of a report.

    Attributes
    ----------
    name : str
        Its id in the page.
    title : str
    make : function
        From a :class:`Context` to HTML.
    needs_rows : bool
        Whether it is left out of a report whose audit holds aggregates only.
    explores : bool
        Whether it goes beyond the cells that may have been declared before the run.
    is_for : function, optional
        From a :class:`Context` to whether the report has the section; by default it does.
    """

    name: str
    title: str
    make: Callable[[Context], str]
    needs_rows: bool = False
    explores: bool = False
    is_for: Callable[[Context], bool] | None = None


@dataclass
class Context:
    """An audit on its way into a page.

    Attributes
    ----------
    audit : Audit
    pairs : int
        Pairs to show of each group looked at closely.
    covariates
        As in :meth:`mpc_lab.Audit.balance`.
    show_ids : bool
        Whether pairs have the ids of their queries.
    gate : str
        What a gate says that was decided by other intervals than the verdicts; else empty.
    """

    audit: Audit
    pairs: int = 0
    covariates: Any = ()
    gate: str = ""
    show_ids: bool = False
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _answers: Answers = field(default_factory=Answers)
    _boost_charts: dict[str, AnyChart] = field(default_factory=dict)

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
    def level(self) -> str:
        """The level of the intervals, as a percentage."""
        return percent(float(self.options.get("level", 0.95)))

    @property
    def has_rows(self) -> bool:
        """Whether the audit has the rows of the log."""
        return self.audit.ranking is not None

    @cached_property
    def flagged(self) -> list[Cell]:
        """The cells with a finding, the largest first."""
        return self.part.having(*DIRECTIONS)

    @cached_property
    def focus(self) -> list[Cell]:
        """The cells looked at one by one: those flagged, else the largest for their error."""
        if self.flagged:
            return self.flagged[:CLOSELY]
        known = [cell for cell in self.part.cells if cell.low == cell.low]
        return sorted(known, key=_strength, reverse=True)[:UNFLAGGED]

    def focus_note(self, most: int | None = None) -> str:
        """Say which groups are looked at one by one, and which are left out.

        Parameters
        ----------
        most : int, optional
            How many of `focus` are shown; by default all.
        """
        most = CLOSELY if most is None else most
        if not self.flagged:
            named = listing([quote(cell.group) for cell in self.focus[:most]])
            return f"No group is flagged. Shown instead: {named}, the nearest to a finding."
        left = self.flagged[most:]
        if not left:
            return ""
        named = listing([quote(cell.group) for cell in left])
        return (
            f"Shown for the {most} largest gaps of {len(self.flagged):,} flagged groups; left "
            f"out to keep this page short: {named}."
        )

    @contextmanager
    def asking_ahead(self) -> Iterator[None]:
        """Answer the questions of all chapters in their order, while this thread draws."""
        try:
            if self.has_rows:
                self._ask_ahead()
            yield
        finally:
            self._answers.close()

    def _ask_ahead(self) -> None:
        """Ask for what each chapter asks, in the order of chapters."""
        ask, part = self._answers.ask_ahead, self.part
        ask("curves", self._make_curves)
        cells = [(cell.group, part.rule, part.mode) for cell in self.focus]
        for cell in cells:
            if not is_rank_only(self.audit):
                ask(("tie", *cell[:2]), self._tie(*cell[:2]))
                ask(("limit", *cell), self._limit(*cell))
                ask(("certificate", *cell[:2]), self._certificate(*cell[:2]))
        for cell in cells:
            ask(("heaviest", *cell), self._heaviest(*cell))
        if cells:
            ask("balance", self._balance)
        if len(self.audit.groups) > 1:
            ask("partial", self._partial)
        if cells:
            ask("rivals", self._rivals)
        for cell in cells[:DRAWN]:
            if not is_rank_only(self.audit):
                ask(("boost", cell[0]), self._boost(cell[0]))
                ask(("boost_curve", cell[0]), self._boost_curve(cell[0]))

    def make_curves(self) -> None:
        """Make the curves of all groups of the overview, in one walk together."""
        self._answers.get("curves", self._make_curves)

    def _make_curves(self) -> None:
        alive.make_curves(self.audit)

    def tie(self, group: str, rule: str) -> Tie:
        """Return both sides of a tie of a group."""
        return self._answers.get(("tie", group, rule), self._tie(group, rule))

    def _tie(self, group: str, rule: str) -> Callable[[], Tie]:
        return lambda: both_sides(self.audit, group, rule)

    @property
    def partial(self) -> PartialGaps:
        """The gaps net of other groups and covariates, which the story and a chapter show."""
        return self._answers.get("partial", self._partial)

    def _partial(self) -> PartialGaps:
        return self.audit.partial(self.covariates)

    def limit(self, group: str, rule: str, mode: str) -> xr.Dataset:
        """Return the limit ε → 0 of a cell, which the story and a chapter show."""
        cell = (group, rule, mode)
        return self._answers.get(("limit", *cell), self._limit(*cell))

    def _limit(self, group: str, rule: str, mode: str) -> Callable[[], xr.Dataset]:
        return lambda: self.audit.limit(group, rule, mode)

    def certificate(self, group: str, rule: str) -> Certificate:
        """Return the certificate of a group."""
        return self._answers.get(("certificate", group, rule), self._certificate(group, rule))

    def _certificate(self, group: str, rule: str) -> Callable[[], Certificate]:
        return lambda: self.audit.certificate(group, rule)

    def heaviest(self, group: str, rule: str, mode: str) -> list[xr.Dataset]:
        """Return the query and the item that move the gap of a cell most."""
        cell = (group, rule, mode)
        return self._answers.get(("heaviest", *cell), self._heaviest(*cell))

    def _heaviest(self, group: str, rule: str, mode: str) -> Callable[[], list[xr.Dataset]]:
        return lambda: heaviest(self.audit, group, rule, mode)

    @property
    def balance(self) -> xr.Dataset:
        """How alike the two sides of the pairs of each group of `focus` are, with placebos."""
        return self._answers.get("balance", self._balance)

    def _balance(self) -> xr.Dataset:
        names, rule = [cell.group for cell in self.focus], self.part.rule
        mode = self.mode_of_one_side
        return self.audit.balance(self.covariates, names, rule, mode, permutations=PLACEBOS)

    @property
    def mode_of_one_side(self) -> str:
        """The mode of the report, or where it is the mean of two sides the first other one."""
        modes: list[str] = [self.part.mode, *self.audit.headline["pairing_mode"].values.tolist()]
        return next((mode for mode in modes if not MODES[mode].two_sided), modes[0])

    @property
    def rivals(self) -> xr.Dataset:
        """What other measures say of each group of `focus`."""
        return self._answers.get("rivals", self._rivals)

    def _rivals(self) -> xr.Dataset:
        return self.audit.compare([cell.group for cell in self.focus])

    def boost(self, group: str) -> FairBoost:
        """Return the boost of a group, which the story and a chapter show."""
        return self._answers.get(("boost", group), self._boost(group))

    def _boost(self, group: str) -> Callable[[], FairBoost]:
        return lambda: fair_boost(self.audit, group, None, self._prepared(group))

    def _prepared(self, group: str) -> Boosts:
        """Return a group ready to be boosted, which its boost and the curve share."""
        return self._answers.get(("prepared", group), lambda: prepare_boosts(self.audit, group))

    def _boost_curve(self, group: str) -> Callable[[], xr.Dataset]:
        def follow() -> xr.Dataset:
            spread = need_rows(self.audit, "report").score_std
            steps = np.linspace(-spread, spread, _BOOST_STEPS)
            return boost_curve(self.audit, group, steps, None, self._prepared(group))

        return follow

    def boost_chart(self, group: str) -> AnyChart:
        """Return the chart of the boost of a group, which the story and a chapter show."""
        if group not in self._boost_charts:
            curve = self._answers.get(("boost_curve", group), self._boost_curve(group))
            self._boost_charts[group] = draw_boost(self.audit, curve, self.boost(group))
        return self._boost_charts[group]

    def draw(self, chart: str, *given: object, **options: object) -> str:
        """Return the chart of that name as HTML; the arguments are those behind the audit."""
        return self.figure(charts.draw(chart, self.audit, *given, **options))

    def figure(self, chart: AnyChart, caption: str = "", rail: dict[str, Any] | None = None) -> str:
        """Return a chart as HTML: drawn as SVG for print and for pages without scripts, and live.

        Only live where nothing is here that draws. A caption is below it, and above it a
        rail that moves ε, if one is given.

        The specification is included as data. Names from data are in its data and titles alone; it
        is read by an interpreter that cannot run code.
        """
        # Ids differ by the number of the figure in the page.
        spec = specification(chart)
        drawn = svg_of(spec) if can_draw() else ""
        static = _IDS.sub(rf"\1f{next(self._numbers)}-", slim(drawn))
        return alive.figure(chart, static, rail, caption, spec)

    def attempt(self, make: Callable[..., str], *given: object, **options: object) -> str:
        """Return what a function makes of its arguments, or the sentence that says why not."""
        try:
            return make(*given, **options)
        except MpcError as error:
            return paragraphs([error], "note")


def slim(picture: str) -> str:
    """Return an SVG without what only a live chart needs: labels of marks, marks not seen.

    The figure around it has one label, and hides those of its parts from screen readers.
    """
    return _TAG.sub(lambda tag: _slim_tag(tag[0]), picture)


def _slim_tag(tag: str) -> str:
    if tag.endswith(' opacity="0"/>'):
        return ""
    tag = _LABELS.sub("", tag)
    return _PATH.sub(lambda path: _DIGITS.sub(r"\1", path[0]), tag)


def _strength(cell: Cell) -> float:
    width = cell.high - cell.low
    return abs(cell.estimate) / width if width > 0 else 0.0
