"""The finding of a group as five cards, one at a time with its chart: what a reader asks first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import ipywidgets as widgets
import traitlets

from mpc_lab.explorers.controls import Note
from mpc_lab.explorers.explorer import Explorer
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.page import ActiveHtml
from mpc_lab.explorers.state import call_of
from mpc_lab.html import NO_MATH, escape
from mpc_lab.results.summary import slices
from mpc_lab.text import minus, quote

if TYPE_CHECKING:
    from mpc_lab.charts.theme import AnyChart
    from mpc_lab.results.questions.tell import Card, Story

_ALL = "the story is about the first rule and pairs, at every ε"


class StoryExplorer(Explorer):
    """Five questions about a finding, each with its answer, its mark and its chart.

    Attributes
    ----------
    card : int
        The one that is shown, from 0.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=500), progress=False)
    >>> explorer = mpc.explorers.StoryExplorer(audit, group="1", card=2)
    >>> explorer.selection.question
    'Or is it chance?'
    """

    title: ClassVar[str] = "Walk me through"
    unused: ClassVar[dict[str, str]] = {
        "scoring_rule": _ALL,
        "pairing_mode": _ALL,
        "epsilon": _ALL,
    }

    card = traitlets.Int(0, min=0, max=4).tag(redraw=True)

    def prepare(self) -> None:
        """Start without a story."""
        self._stories: dict[str, Story] = {}

    @property
    def story(self) -> Story:
        """The story of the group; the last questions ask the rows, which takes a while."""
        if self.group not in self._stories:
            self._stories[self.group] = self.audit.tell(self.group)
        return self._stories[self.group]

    @property
    def selection(self) -> Card:
        """The card that is shown."""
        return self.story.cards[self.card]

    def call(self) -> str:
        """Return the call of the story."""
        return call_of("audit.tell", self.group)

    def make_view(self) -> Sequence[widgets.Widget]:
        """Return the five steps, the card, and its chart."""
        self.controls["steps"] = ActiveHtml(
            self._pressed, by_keys=True, spoken="Five questions; the arrow keys walk through them"
        )
        self.controls["sentence"], self.controls["chart"] = Note(kind="sentence"), LiveChart()
        return [self.controls[name] for name in ("steps", "sentence", "chart")]

    def draw(self) -> None:
        """Show the steps with their marks, and the chosen card."""
        if self.group not in self._stories:
            said = f"Asking the log five questions about group {quote(self.group)} …"
            self.controls["sentence"].text = said
        shown = self.selection
        self.controls["steps"].value = steps_html(self.story, self.card)
        self.controls["sentence"].text = "\n".join(map(minus, shown.answer))
        self.controls["chart"].layout.display = "" if shown.chart else "none"
        # Of all groups, as the panel's own head, which has said it.
        self.controls["chart"].titled = shown is not self.story.cards[0]
        if shown.chart:
            self.controls["chart"].show(*self._forms(shown.chart))

    def _forms(self, call: str) -> tuple[AnyChart, AnyChart | None]:
        """Return the chart that a card names, and its form for narrow columns where it has one."""
        from mpc_lab import charts

        name = call.partition("(")[0].rpartition(".")[2]
        if name == "partial":
            return charts.partial(self.audit.partial()), None
        if name == "overview":
            return charts.overview(self.audit), charts.overview(self.audit, narrow=True)
        if name == "boost":
            return charts.boost(self.audit, self.group), None
        first = slices(self.audit)[0]
        return charts.draw(name, self.audit, self.group, first.rule, first.mode), None

    def _pressed(self, name: str) -> None:
        by = {"previous": -1, "next": 1}.get(name)
        self.card = int(name) if by is None else min(max(self.card + by, 0), 4)


def steps_html(story: Story, chosen: int) -> str:
    """Return the questions of a story as buttons, each with its mark and what that says."""
    steps = []
    for place, card in enumerate(story.cards):
        current = ' aria-current="step"' if place == chosen else ""
        steps.append(
            f'<button type="button" class="mpc-story-step" data-press="{place}"{current}>'
            f"<b>{place + 1}. {escape(card.question)}</b>"
            f"<span>{escape(card.mark)} {escape(card.meaning)}</span></button>"
        )
    return f'<div class="mpc-story-steps {NO_MATH}">{"".join(steps)}</div>'
