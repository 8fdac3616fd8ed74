"""Both sides of a tie: the effect of place is a jump, and the gap is its middle."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from mpc_lab.charts import theme
from mpc_lab.charts.theme import chart, find_cell, intervals, level_of
from mpc_lab.results.base import settings
from mpc_lab.results.questions.limit import Tie
from mpc_lab.results.questions.limit import tie as both_sides
from mpc_lab.results.wording import outcome_word
from mpc_lab.text import entry, minus, quote, with_interval
from mpc_lab.vocabulary import DIRECTIONS, INCONCLUSIVE, SYMMETRIC, VERDICTS

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_WIDTH, _HEIGHT = 660, 250
# The words are to the right of the drawing, at these multiples of ε.
_END, _MARK, _WORDS = 2.0, 1.1, 1.17
_APART = 15
_X_TITLE = "distance of the two scores (units of the score)"


@chart
def tie(
    audit: Audit,
    group: str,
    scoring_rule: str = "baseline",
    epsilon: float | None = None,
    bins: int = 10,
) -> alt.LayerChart:
    """Draw the mean difference in outcome against the signed distance of the scores.

    Left: the item of the group was the lower one; right: the upper one. Half the jump where both
    sides meet is the effect of place, and the middle of the jump is the gap at a tie: place pushes
    one side down and lifts the other by as much. Dots are means over about equally many pairs,
    lines are fitted to either side. Where the log has no positions, sides go by score, and nothing
    is called an effect of place. The gap that an audit judges, of symmetric pairs up to ε, is in
    the line above the drawing.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group, scoring_rule : str
    epsilon : float, optional
        The largest distance of the scores; by default the headline's own threshold.
    bins : int
        At most this many dots a side.

    Returns
    -------
    altair.LayerChart
    """
    own = epsilon is None
    return draw(
        audit,
        group,
        scoring_rule,
        lambda: both_sides(audit, group, scoring_rule, epsilon, bins),
        own,
    )


def draw(
    audit: Audit, group: str, scoring_rule: str, find: Callable[[], Tie], own: bool = True
) -> alt.LayerChart:
    """Draw both sides of a tie, which are looked for once the group is known to have pairs.

    Parameters
    ----------
    audit : Audit
    group, scoring_rule : str
    find : callable
        Finds both sides.
    own : bool
        Whether they have the threshold of the headline.
    """
    modes = audit.headline["pairing_mode"].values.tolist()
    mode = SYMMETRIC.name if SYMMETRIC.name in modes else modes[0]
    cell = find_cell(audit, group, scoring_rule, mode)
    if own and math.isnan(cell.epsilon):
        words = f"Group {quote(group)} has no pairs with nearly equal scores"
        nothing = theme.layered(theme.zero_line()).properties(width=_WIDTH, height=_HEIGHT)
        return theme.finish(nothing, words, [], _WIDTH)
    found = find()
    judged = cell.verdict if SYMMETRIC.name in modes and own else None
    verdict = _direction(found, judged)
    title, lines = _words(audit, found, group, verdict, judged)
    return theme.finish(_layers(audit, found, verdict), title, lines, _WIDTH)


def _direction(found: Tie, judged: str | None) -> str:
    """Return what the gap at a tie is called: no direction that the audit itself does not give."""
    _, low, high = found.middle
    own = DIRECTIONS[0] if low > 0 else DIRECTIONS[1] if high < 0 else INCONCLUSIVE
    return own if judged in (None, own) else INCONCLUSIVE


def _words(
    audit: Audit, found: Tie, group: str, verdict: str, judged: str | None
) -> tuple[str, list[str]]:
    word, who = outcome_word(settings(audit)), f"Group {quote(group)}"
    lines = [
        f"Mean difference of {word} inside pairs, item of the group less the other; scores at most "
        f"ε = {found.epsilon:.3g} apart; {found.pairs[0]:,} pairs below, {found.pairs[1]:,} above; "
        f"{level_of(audit)} intervals{_of_one(audit)}"
    ]
    if not math.isfinite(found.middle[0]):
        return f"{who}: this log does not show such pairs in both orders", lines
    lines.append(f"Gap at a tie, the middle of the jump: {with_interval(*found.middle)}")
    if found.lines:
        lines.append(f"{_effect(found).capitalize()}, half the jump: {with_interval(*found.place)}")
        whole = f"Mean of both sides over all these pairs: {with_interval(*found.overall)}"
        lines.append(whole if judged is None else f"{whole}; verdict: {judged}")
    else:
        lines.append("Too few different distances for a line: each side is the mean of its pairs")
    title = f"{_of_gap(found, who, word, verdict, judged)}; {_of_place(found)}"
    return minus(title), [minus(line) for line in lines]


def _of_one(audit: Audit) -> str:
    return ", not adjusted for the number of groups" if len(audit.groups) > 1 else ""


def _of_gap(found: Tie, who: str, word: str, verdict: str, judged: str | None) -> str:
    """Return what the middle of the jump says, as half of a title."""
    if verdict in DIRECTIONS:
        return f"{who} at a tie: {_higher(word, found.middle[0])}"
    if judged in DIRECTIONS:
        return f"{who}: {_higher(word, found.overall[0])} over all these pairs, not clear at a tie"
    return f"{who} at a tie: no clear difference in {word}"


def _higher(word: str, gap: float) -> str:
    return f"{word} {entry(abs(gap), 3)} {'higher' if gap > 0 else 'lower'}"


def _effect(found: Tie) -> str:
    return "effect of place" if found.by_place else "effect of being ranked above"


def _of_place(found: Tie) -> str:
    """Return what the jump says, as half of a title."""
    if not found.lines:
        return f"too few different distances for an {_effect(found)}"
    if not math.isfinite(found.place[0]):
        # As where every outcome is the same: distances are not to blame.
        return f"no interval can be given for the {_effect(found)}"
    if found.place[1] > 0 or found.place[2] < 0:
        where = "shown" if found.by_place else "ranked"
        return f"being {where} above is worth {entry(found.place[0], 3)}"
    return f"no {_effect(found)} is seen"


def _layers(audit: Audit, found: Tie, verdict: str) -> alt.LayerChart:
    reach = found.epsilon if found.epsilon > 0 else 1.0
    frame = found.bins.assign(interval=intervals(found.bins, "difference", "low", "high"))
    frame["where"] = frame["side"].map({"below": "below the other", "above": "above the other"})
    low, high = _domain(found)
    x = alt.X(
        "distance:Q",
        title=_X_TITLE if found.epsilon > 0 else "all these scores are tied",
        scale=alt.Scale(domain=[-1.05 * reach, _END * reach], nice=False),
        axis=alt.Axis(
            values=_ticks(found.epsilon),
            # The side says the sign.
            labelExpr="format(abs(datum.value), '~g')",
            titleAnchor="start",
            grid=False,
        ),
    )
    upright: dict[str, Any] = {
        "title": f"difference in {outcome_word(settings(audit))}",
        "scale": alt.Scale(domain=[low, high], nice=False, zero=False),
    }
    base = alt.Chart(frame).encode(
        x=x,
        tooltip=[
            alt.Tooltip("where:N", title="item of the group"),
            alt.Tooltip("distance:Q", title="distance of the scores", format=".3g"),
            alt.Tooltip("interval:N", title="mean difference"),
            alt.Tooltip("pairs:Q", format=","),
        ],
    )
    whiskers = base.mark_rule(color=theme.GREY, opacity=0.35, strokeWidth=2, clip=True)
    dots = base.mark_point(color=theme.GREY, filled=True, size=45, opacity=0.9, clip=True)
    layers: list[Any] = [
        _stretch(reach, 0.0, 0.0, dash=[1, 0], opacity=0.7),
        _upright(low, high),
        whiskers.encode(y=alt.Y("low:Q", **upright), y2=alt.Y2("high:Q")),
        *_lines(found),
        dots.encode(y=alt.Y("difference:Q", **upright)),
        *_headings(reach, found),
    ]
    if math.isfinite(found.middle[0]):
        layers += _meeting(found, reach, verdict)
        layers += _labels(found, reach, verdict, (high - low) / _HEIGHT, (low, high))
    return theme.layered(*layers).properties(width=_WIDTH, height=_HEIGHT)


def _domain(found: Tie) -> tuple[float, float]:
    """Return the ends of the vertical axis: all dots, and whiskers of a reasonable length."""
    dots = found.bins["difference"].tolist()
    sure = [value for value in (*found.middle, *found.ends.ravel()) if math.isfinite(value)]
    whiskers = found.bins[["low", "high"]].to_numpy(dtype=np.float64).ravel()
    whiskers = whiskers[np.isfinite(whiskers)]
    values = [*dots, *sure, 0.0]
    span = max(max(values) - min(values), 1e-12)
    inside = [v for v in whiskers if min(values) - 0.6 * span <= v <= max(values) + 0.6 * span]
    low, high = min([*values, *inside]), max([*values, *inside])
    room = 0.12 * (high - low or 1.0)
    return low - room, high + 2 * room


def _ticks(reach: float) -> list[float]:
    """Return round distances on both sides of 0."""
    if not reach > 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(reach))
    step = max(k * power for k in (0.2, 0.5, 1.0, 2.0, 5.0) if k * power <= 0.7 * reach)
    count = int(1.001 * reach / step)
    return [float(f"{k * step:.6g}") for k in range(-count, count + 1)]


def _one(**columns: Any) -> alt.Chart:
    return alt.Chart(pd.DataFrame({name: [value] for name, value in columns.items()}))


def _stretch(
    reach: float, start: float, at: float, *, dash: list[int], opacity: float, end: float = 1.05
) -> alt.Chart:
    """Return a level line from a distance to the right, or over all distances."""
    begin = start if start or dash != [1, 0] else -1.05 * reach
    mark = _one(distance=begin, end=end * reach, difference=at).mark_rule(
        color=theme.GREY, strokeDash=dash, opacity=opacity
    )
    made: alt.Chart = mark.encode(
        x=alt.X("distance:Q"), x2=alt.X2("end:Q"), y=alt.Y("difference:Q")
    )
    return made


def _upright(low: float, high: float) -> alt.Chart:
    mark = _one(distance=0.0, difference=low, top=high).mark_rule(
        color=theme.GREY, strokeDash=[2, 3], opacity=0.7
    )
    made: alt.Chart = mark.encode(
        x=alt.X("distance:Q"), y=alt.Y("difference:Q"), y2=alt.Y2("top:Q")
    )
    return made


def _lines(found: Tie) -> list[alt.Chart]:
    made = []
    for side, sign in enumerate((-1.0, 1.0)):
        start, end = found.ends[side]
        if not math.isfinite(start):
            continue
        frame = pd.DataFrame({"distance": [0.0, sign * found.epsilon], "difference": [start, end]})
        line = alt.Chart(frame).mark_line(color=theme.GREY, strokeWidth=2.5, clip=True)
        made.append(line.encode(x=alt.X("distance:Q"), y=alt.Y("difference:Q")))
    return made


def _headings(reach: float, found: Tie) -> list[alt.Chart]:
    """Return what left and right mean, at the top of the drawing."""
    shown = "shown" if found.by_place else "ranked"
    words = {-0.52: f"◀ {shown} below", 0.52: f"{shown} above ▶"}
    return [
        _one(distance=at * reach, label=text)
        .mark_text(color=theme.GREY, fontSize=11.5, fontWeight="bold", baseline="top")
        .encode(x=alt.X("distance:Q"), y=alt.value(2), text=alt.Text("label:N"))
        for at, text in words.items()
    ]


def _meeting(found: Tie, reach: float, verdict: str) -> list[alt.Chart]:
    """Return the jump where both sides meet, its middle, and both again beside the words."""
    below, above = found.ends[:, 0]
    known = VERDICTS[verdict]
    gap, low, high = found.middle
    made = [
        _stretch(reach, 1e-9 * reach, level, dash=[3, 3], opacity=0.55, end=_MARK)
        for level in (below, above, gap)
    ]
    jump = _one(distance=_MARK * reach, difference=below, top=above)
    made.append(
        jump.mark_rule(color=theme.GREY, strokeWidth=5, opacity=0.45).encode(
            x=alt.X("distance:Q"), y=alt.Y("difference:Q"), y2=alt.Y2("top:Q")
        )
    )
    ends = pd.DataFrame({"distance": [0.0, 0.0], "difference": [below, above]})
    rings = alt.Chart(ends).mark_point(color=theme.GREY, filled=False, size=70, strokeWidth=2)
    made.append(rings.encode(x=alt.X("distance:Q"), y=alt.Y("difference:Q")))
    middle = _one(distance=_MARK * reach, difference=gap, low=low, high=high,
                  interval_of_middle=with_interval(gap, low, high))  # fmt: skip
    tooltip = [alt.Tooltip("interval_of_middle:N", title="gap at a tie")]
    if math.isfinite(low):
        made.append(
            middle.mark_rule(color=known.colour, strokeWidth=2.5, clip=True).encode(
                x=alt.X("distance:Q"), y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), tooltip=tooltip
            )
        )
    made.append(
        middle.mark_point(
            color=known.colour, filled=True, size=120, opacity=1, shape=known.shape
        ).encode(x=alt.X("distance:Q"), y=alt.Y("difference:Q"), tooltip=tooltip)
    )
    return made


def _labels(
    found: Tie, reach: float, verdict: str, unit: float, span: tuple[float, float]
) -> list[alt.Chart]:
    """Return the words to the right, apart from each other; `unit` is the height of a pixel."""
    below, above = (float(end) for end in found.ends[:, 0])
    shown = "shown" if found.by_place else "ranked"
    digits = 3
    words = [
        (f"{shown} above: {entry(above, digits)}", above, False),
        (f"gap at a tie: {entry(found.middle[0], digits)}", found.middle[0], True),
        (f"{shown} below: {entry(below, digits)}", below, False),
    ]
    if found.lines and math.isfinite(found.place[0]):
        effect = "place" if found.by_place else "rank"
        half = f"effect of {effect}: {entry(found.place[0], digits)}"
        words.append((half, found.middle[0] - 1e-9, False))
    words.sort(key=lambda word: -word[1])
    heights = _spread([at for _, at, _ in words], _APART * unit, span)
    made = []
    for (text, _, bold), height in zip(words, heights, strict=True):
        mark = _one(distance=_WORDS * reach, difference=height, label=minus(text)).mark_text(
            align="left",
            color=VERDICTS[verdict].colour if bold else theme.GREY,
            fontSize=12 if bold else 11.5,
            fontWeight="bold" if bold else "normal",
        )
        made.append(
            mark.encode(x=alt.X("distance:Q"), y=alt.Y("difference:Q"), text=alt.Text("label:N"))
        )
    return made


def _spread(heights: list[float], least: float, span: tuple[float, float]) -> list[float]:
    """Move descending heights apart as little as needed, inside the drawing."""
    moved = list(heights)
    for _ in range(50):
        for k in range(len(moved) - 1):
            short = least - (moved[k] - moved[k + 1])
            if short > 0:
                moved[k] += short / 2
                moved[k + 1] -= short / 2
    shift = max(0.0, span[0] + least / 2 - moved[-1]) - max(0.0, moved[0] + 2 * least - span[1])
    return [height + shift for height in moved]
