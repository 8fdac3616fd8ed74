"""The story at the head of a report: five questions, each with its answer and its picture."""

from __future__ import annotations

from typing import Any

import altair as alt

from mpc_lab import charts
from mpc_lab.charts.theme import AnyChart
from mpc_lab.html import escape, paragraphs
from mpc_lab.report.context import Context
from mpc_lab.results.questions.tell import Card, tell
from mpc_lab.text import minus, quote

# The chapter that says more about each card of the story.
_CHAPTERS = ("finding", "curves", "power", "why", "boosts")
# At most this many groups are on the picture of a card, which is seen beside the text.
_ROWS = 12
_WIDE = 340
_LINES = 2


def story(context: Context) -> str:
    """Return five questions with their answers, each with a picture and a link to its chapter."""
    # With covariates, the chapter holds more fixed than the story says.
    partial = None if len(context.covariates) else lambda: context.partial
    found = tell(
        context.audit, leaves=True, partial=partial, boost=context.boost, limit=context.limit
    )
    items = [
        _card(context, card, chapter, found.group)
        for card, chapter in zip(found.cards, _CHAPTERS, strict=True)
    ]
    who = f"The story of group {quote(found.group)}, in five questions"
    cards = f'<ol class="cards">{"".join(items)}</ol>'
    return f'<section class="story" id="story"><h2>{escape(who)}</h2>{cards}</section>'


def _card(context: Context, card: Card, chapter: str, group: str) -> str:
    said = paragraphs(map(minus, card.answer))
    picture = context.attempt(_picture, context, chapter, group) if card.chart else ""
    return (
        f'<li><h3>{escape(card.question)} <span class="mark">{escape(card.mark)} '
        f"{escape(card.meaning)}</span></h3>{said}{picture}"
        f'<p class="soft"><a href="#{chapter}">Read more</a></p></li>'
    )


def _picture(context: Context, chapter: str, group: str) -> str:
    chart = _chart(context, chapter, group)
    words: Any = chart.usermeta
    caption = ". ".join(words["mpc"]["subtitle"][:_LINES])
    return context.figure(_shrink(chart), caption)


def _shrink(chart: AnyChart) -> AnyChart:
    """Return a chart as wide as a card, without its words, which the card says."""
    made: Any = chart.copy()
    made.title = alt.Undefined
    for panel in getattr(made, "vconcat", [made]):
        panel.width = _WIDE
    made.config.legend.orient = "bottom"
    shrunk: AnyChart = made
    return shrunk


def _chart(context: Context, chapter: str, group: str) -> AnyChart:
    audit, part = context.audit, context.part
    if chapter == "finding":
        only: dict[str, Any] = {"limit": _ROWS, "scoring_rule": part.rule}
        return charts.forest(audit, part.mode, **only)
    if chapter == "why":
        return charts.partial(context.partial, limit=_ROWS)
    if chapter == "boosts":
        return context.boost_chart(group)
    if chapter == "curves":
        return charts.epsilon_curve(audit, group, part.rule, part.mode)
    return charts.power(audit, group, part.rule, part.mode)
