"""The finding of an audit as a story of five cards, each a question and its answer in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.html import escape, paragraphs
from mpc_lab.results.base import check_label, settings
from mpc_lab.results.schema import AuditBase
from mpc_lab.text import decimals, minus, number, p_value, quote, with_interval
from mpc_lab.vocabulary import DIRECTIONS, MATCHED, NOT_ESTIMABLE, UNDERVALUED, VERDICTS, WITHIN

if TYPE_CHECKING:
    import xarray as xr

    from mpc_lab.results.audit import Audit
    from mpc_lab.results.questions.boosts import FairBoost
    from mpc_lab.results.questions.partial import PartialGaps
    from mpc_lab.results.summary import Cell, Slice

YES, CAUTION, OPEN = "✓", "!", "?"
_CANNOT_TELL = "cannot tell"
_FEW_CLUSTERS = 20


@dataclass(frozen=True)
class Card:
    """One question of a story.

    Attributes
    ----------
    question : str
    mark : str
        The mark of the verdict on the first card; on the others ✓ (the finding holds), ! (take
        care) or ? (the audit cannot tell).
    meaning : str
        What the mark says here, in a few words.
    answer : tuple of str
        Sentences.
    chart : str
        The call that draws it; empty where nothing can be drawn.
    """

    question: str
    mark: str
    meaning: str
    answer: tuple[str, ...]
    chart: str


@dataclass(frozen=True)
class Story:
    """The finding of one group as five cards; it prints as text and shows in a notebook.

    Attributes
    ----------
    group : str
    cards : tuple of Card
    """

    group: str
    cards: tuple[Card, ...]

    def __str__(self) -> str:
        lines: list[str] = []
        for place, card in enumerate(self.cards, start=1):
            lines += [f"{place}. {card.question}  {card.mark} {card.meaning}"]
            lines += [f"   {minus(line)}" for line in card.answer]
            lines += [f"   See: {card.chart}"] if card.chart else []
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f'<div class="mpc-story"><style>{_STYLE}</style>{_list(self)}</div>'


_STYLE = """
.mpc-story { font: 14px/1.45 var(--jp-ui-font-family, system-ui, sans-serif); max-width: 60em;
  color: var(--jp-ui-font-color1, currentColor); }
.mpc-story ol { list-style: none; margin: 0; padding: 0; }
.mpc-story li { border: 1px solid rgba(128, 128, 128, .35); border-radius: 8px;
  padding: .6em .9em; margin: 0 0 .6em; }
.mpc-story h4 { margin: 0 0 .3em; font-size: 1.08em; }
.mpc-story .mpc-mark { float: right; opacity: .85; font-weight: 600; }
.mpc-story p { margin: 0 0 .3em; overflow-wrap: anywhere; }
.mpc-story code { font-size: .92em; background: rgba(128, 128, 128, .14); color: inherit;
  padding: .1em .35em; border-radius: 3px; user-select: all; }
"""


def _list(story: Story) -> str:
    items = []
    for card in story.cards:
        mark = f'<span class="mpc-mark">{escape(card.mark)} {escape(card.meaning)}</span>'
        see = f"<p>See <code>{escape(card.chart)}</code></p>" if card.chart else ""
        said = paragraphs(map(minus, card.answer))
        items.append(f"<li>{mark}<h4>{escape(card.question)}</h4>{said}{see}</li>")
    return f"<ol>{''.join(items)}</ol>"


class StoryQuestions(AuditBase):
    """The story of a finding; see :class:`mpc_lab.Audit`."""

    def tell(self, group: str | None = None) -> Story:
        """Tell the finding as five questions, each answered from the numbers of the audit.

        What was found? Does it hold at every ε? Or is it chance? Or something else: what the
        preflight noted, the place, the other groups? What would closing it cost? The last two ask
        the rows, so that on a loaded audit they say how to give them.

        Parameters
        ----------
        group : str, optional
            Whose finding; by default the group with the largest one.

        Returns
        -------
        Story
            ``cards``, each with ``question``, ``mark``, ``answer`` and the call of its ``chart``.
            It prints as text.

        Examples
        --------
        >>> import mpc_lab as mpc
        >>> audit = mpc.audit(mpc.datasets.synthetic(queries=20_000), progress=False)
        >>> story = audit.tell("1")
        >>> [card.mark for card in story.cards]
        ['▲', '✓', '✓', '✓', '✓']
        >>> print(story.cards[1].answer[0])
        The band over 14 thresholds from 0.0005 to 0.07 is above 0 at 11, and below 0 at none.
        """
        return tell(cast("Audit", self), group)


def tell(
    audit: Audit,
    group: str | None = None,
    leaves: bool = False,
    partial: Callable[[], PartialGaps] | None = None,
    boost: Callable[[str], FairBoost] | None = None,
    limit: Callable[[str, str, str], xr.Dataset] | None = None,
) -> Story:
    """Return the story of one group; see :meth:`StoryQuestions.tell`.

    If it `leaves` this machine, as in a report, checks name no ids of the log. A caller that needs
    the same net gaps, boost or limit elsewhere passes functions that cache them.
    """
    from mpc_lab.results.summary import slices

    part = slices(audit)[0]
    if group is None:
        cell = part.cells[0]
    else:
        check_label("group", group, list(audit.groups))
        cell = next(one for one in part.cells if one.group == group)
    options = settings(audit)
    cards = (
        _found(cell, part, options),
        _everywhere(audit, cell, part, limit or audit.limit),
        _chance(audit, cell, part, options),
        _something_else(audit, cell, part, options, leaves, partial or audit.partial),
        _cost(cell, part, boost or audit.fair_boost),
    )
    return Story(cell.group, cards)


def _found(cell: Cell, part: Slice, options: dict[str, Any]) -> Card:
    from mpc_lab.results.summary import CUT_AT_0, is_cut, sentence, why_not

    if math.isfinite(cell.low):
        said = sentence(cell, part.mode, options)
    else:
        said = f"Group {quote(cell.group)} is not estimable: {why_not(cell)}."
    counts = {name: len(part.having(name)) for name in VERDICTS}
    others = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    lines = [said, *([CUT_AT_0] if is_cut(cell) else [])]
    if len(part.cells) > 1:
        lines.append(f"Of {len(part.cells):,} groups: {others}.")
    mark, chart = VERDICTS[cell.verdict].mark, "mpc.charts.overview(audit)"
    return Card("What was found?", mark, cell.verdict, tuple(lines), chart)


def _call(chart: str, cell: Cell, part: Slice) -> str:
    """Return the call that draws this cell."""
    rule = f", scoring_rule={part.rule!r}" if part.rule != "baseline" else ""
    mode = f", pairing_mode={part.mode!r}" if part.mode != MATCHED.name else ""
    return f"mpc.charts.{chart}(audit, {cell.group!r}{rule}{mode})"


def _everywhere(
    audit: Audit, cell: Cell, part: Slice, limit: Callable[[str, str, str], xr.Dataset]
) -> Card:
    """Say at how many thresholds the band excludes 0, and what the gap is as ε goes to 0."""
    curve = audit.curve_of(cell.group, part.rule, part.mode)
    low, high = (np.asarray(curve[name].values) for name in ("band_low", "band_high"))
    known = np.isfinite(low) & np.isfinite(high)
    chart = _call("epsilon_curve", cell, part)
    question = "Does it hold at every ε?"
    if not known.any():
        said = ("No threshold of the curve has a band.",)
        return Card(question, OPEN, _CANNOT_TELL, said, chart)
    ends = curve["epsilon"].values[known]
    above, below = int((low[known] > 0).sum()), int((high[known] < 0).sum())
    n = int(known.sum())
    over = f"{n:,} thresholds from {ends[0]:g} to {ends[-1]:g}" if n > 1 else f"ε = {ends[0]:g}"
    lines = [
        f"The band over {over} is above 0 at {above or 'none'}, and below 0 at {below or 'none'}."
    ]
    if cell.verdict == NOT_ESTIMABLE:
        return Card(question, OPEN, _CANNOT_TELL, tuple(lines), chart)
    try:
        found = limit(cell.group, part.rule, part.mode)
    except MpcError as error:
        lines.append(str(error))
    else:
        gap = with_interval(*(float(found[name]) for name in ("estimate", "ci_low", "ci_high")))
        lines.append(f"As ε goes to 0 the gap is {gap}.")
    same, other = (above, below) if cell.estimate > 0 else (below, above)
    if cell.verdict not in DIRECTIONS:
        mark, meaning = OPEN, "no finding to check"
    elif other:
        mark, meaning = CAUTION, "its sign changes with ε"
    elif same:
        mark, meaning = YES, "one sign wherever the band excludes 0"
    else:
        mark, meaning = OPEN, _CANNOT_TELL
    return Card(question, mark, meaning, tuple(lines), chart)


def _chance(audit: Audit, cell: Cell, part: Slice, options: dict[str, Any]) -> Card:
    """Say how rare such a finding is when there is no gap, and which gap could have been found."""
    from mpc_lab.results.summary import family_size

    question, chart = "Or is it chance?", _call("power", cell, part)
    if not math.isfinite(cell.p):
        said = ("There is no p-value: the group is not estimable.",)
        return Card(question, OPEN, _CANNOT_TELL, said, "")
    size = family_size(part)
    over = f", adjusted for {size:,} groups" if size > 1 and options.get("adjust") != "none" else ""
    so = ", adjusted in the same way" if over else ""
    p = _equals(p_value(cell.p))
    lines = [
        f"p {p}{over}; its {cell.pairs:,} pairs are worth {_count(cell.effective)} queries or "
        "items of equal size."
    ]
    name = "mde_adjusted" if "mde_adjusted" in audit.headline else "mde"
    cells = audit.headline.sel(scoring_rule=part.rule, pairing_mode=part.mode, group=cell.group)
    least = float(cells[name]) if name in cells else math.nan
    if math.isfinite(least):
        shown = number(least, decimals(0, 4 * least))  # two digits
        lines.append(f"A gap of {shown} would be found in 80 % of such logs{so}.")
    if cell.verdict == WITHIN:
        return Card(question, YES, "the bracket is inside the tolerance", tuple(lines), chart)
    if cell.verdict not in DIRECTIONS:
        return Card(question, OPEN, _CANNOT_TELL, tuple(lines), chart)
    if cell.effective < _FEW_CLUSTERS:
        lines.append("The gap rests on so few that the p-value is rough.")
        return Card(question, CAUTION, "it rests on few", tuple(lines), chart)
    return Card(question, YES, "rare without a gap", tuple(lines), chart)


def _equals(shown: str) -> str:
    return shown if shown.startswith("<") else f"= {shown}"


def _count(effective: float) -> str:
    return f"{effective:,.0f}" if effective >= 100 else f"{effective:.3g}"


def _something_else(
    audit: Audit,
    cell: Cell,
    part: Slice,
    options: dict[str, Any],
    leaves: bool,
    partial: Callable[[], PartialGaps],
) -> Card:
    """Say what the preflight noted, what the effect of place is, and what other groups explain."""
    from mpc_lab.results.summary import place_sentence

    poor = [one for one in audit._checked if one.state != "ok"]
    lines = [(one.to_leave() if leaves else one).sentence for one in poor]
    place = place_sentence(audit, part.rule, part.mode, cell.group, options)
    lines += [place] if place else []
    lines += [] if lines else ["The preflight found nothing to note in the log."]
    net, changed = _net(audit, cell, partial)
    lines += net
    chart = "mpc.charts.partial(audit.partial())" if changed is not None else ""
    question = "Or something else?"
    if poor or changed:
        return Card(question, CAUTION, "look into it", tuple(lines), chart)
    if net and changed is None:
        return Card(question, OPEN, "not all could be asked", tuple(lines), chart)
    return Card(question, YES, "nothing noted", tuple(lines), chart)


def _net(
    audit: Audit, cell: Cell, partial: Callable[[], PartialGaps]
) -> tuple[list[str], bool | None]:
    """Give the gap with the other groups held fixed, and whether that changes the finding."""
    if len(audit.groups) < 2 or cell.verdict not in DIRECTIONS:
        return [], None
    try:
        data = partial().data.sel(group=cell.group)
    except MpcError as error:
        return [str(error)], None
    alone, net = (data.sel(kind=kind) for kind in ("alone", "net"))
    held = [float(net[name]) for name in ("estimate", "ci_low_adjusted", "ci_high_adjusted")]
    if not math.isfinite(held[0]):
        return [], None
    said = (
        f"With the other groups held fixed the gap is {with_interval(*held)}; alone, fitted in the "
        f"same way, {number(float(alone['estimate']), 3)}."
    )
    return [said], not (held[1] > 0 if cell.verdict == UNDERVALUED else held[2] < 0)


def _cost(cell: Cell, part: Slice, boost: Callable[[str], FairBoost]) -> Card:
    """Say which boost closes the gap, and what it does to NDCG on held-out queries."""
    question, chart = "What would closing it cost?", f"mpc.charts.boost(audit, {cell.group!r})"
    if cell.verdict not in DIRECTIONS:
        return Card(question, OPEN, "nothing to close", ("There is no finding to close.",), "")
    try:
        found = boost(cell.group)
    except MpcError as error:
        return Card(question, OPEN, "could not be asked", (str(error),), "")
    lines = [line for line in (found.sentence, found.caution) if line]
    if part.mode != MATCHED.name:
        lines.append(f"The boost is about all close pairs, the verdict about {part.mode} ones.")
    mark, meaning = (YES, "measured") if found.settled else (OPEN, "the log does not tell")
    return Card(question, mark, meaning, tuple(lines), chart)
