"""A pair as a duel, and the strip of all pairs whose mean is the gap: HTML, no widgets."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from mpc_lab.html import NO_MATH, escape
from mpc_lab.text import column, entry, minus, noun, quote
from mpc_lab.vocabulary import Floats

_BINS = 41
_WIDE, _HIGH, _FOOT = 600, 44, 18
_MOST_DIGITS = 12
# What scores seem to be apart is what they are apart, to a twentieth.
_NEAR = 0.05


def duel_html(pair: pd.Series, group: str, names: tuple[str, str], outcome: str) -> str:
    """Return a pair as two cards: label, score to the digit that differs, outcome.

    Parameters
    ----------
    pair : pandas.Series
        A row of :meth:`mpc_lab.Audit.pairs`.
    group : str
        Whose item the first card is.
    names : tuple of str
        What the two items are called.
    outcome : str
        What the outcome is called.
    """
    scores = float(pair["score"]), float(pair["other_score"])
    outcomes = float(pair["outcome"]), float(pair["other_outcome"])
    places = pair["position"], pair["other_position"]
    digits = digits_apart(*scores)
    cards = []
    for k, whose in enumerate((f"in {quote(group)}", "not in it")):
        wins = outcomes[k] > outcomes[1 - k]
        kind = f"mpc-card{' mpc-wins' if wins else ''}"
        mark = '<span class="mpc-higher">higher</span>' if wins else ""
        cards.append(
            f'<div class="{kind}"><div class="mpc-label">{escape(whose)}, place '
            f"{escape(str(places[k]))}</div>"
            f'<div class="mpc-name"><bdi>{escape(names[k])}</bdi></div>'
            f'<div class="mpc-outcome">{minus(f"{outcomes[k]:.6g}")}{mark}</div>'
            f'<div class="mpc-label">{escape(outcome)}</div>'
            f'<div class="mpc-score">score {minus(f"{scores[k]:.{digits}f}")}</div></div>'
        )
    distance = abs(scores[0] - scores[1])
    apart = f"{column([distance])[0]} apart" if distance else "the same score"
    between = f'<div class="mpc-versus"><span>{apart}</span></div>'
    return f'<div class="mpc-duel {NO_MATH}">{cards[0]}{between}{cards[1]}</div>'


def digits_apart(one: float, other: float) -> int:
    """Return how many decimals two scores need until they differ by what they differ by.

    Where they are equal: 4. Rounded to the first digit that differs, 0.07455 and 0.07466 would be
    0.0745 and 0.0747, twice as far apart as they are.

    Examples
    --------
    >>> digits_apart(0.123456, 0.123466), digits_apart(0.07455, 0.07466)
    (5, 5)
    """
    distance = abs(one - other)
    for digits in range(1, _MOST_DIGITS + 1):
        shown = abs(round(one, digits) - round(other, digits))
        if distance and abs(shown - distance) <= _NEAR * distance:
            return digits
    return _MOST_DIGITS if distance else 4


def strip_html(differences: Floats, colour: str, chosen: float | None = None) -> str:
    """Return how the differences of all pairs are spread, with their mean.

    Parameters
    ----------
    differences : float64 array
        Outcome of the group's item less that of the other.
    colour : str
        The class that colours the mean.
    chosen : float, optional
        The difference of the pair that is looked at.
    """
    known = differences[np.isfinite(differences)]
    if not len(known):
        return ""
    reach = float(np.abs(known).max()) or 1.0
    counts = np.histogram(known, bins=_BINS, range=(-reach, reach))[0]
    width = _WIDE / _BINS
    tallest = max(int(counts.max()), 1)
    bars = []
    for k, count in enumerate(counts.tolist()):
        if not count:
            continue
        high = max(_HIGH * count / tallest, 1.0)
        bars.append(
            f'<rect x="{k * width + 1:.1f}" y="{_HIGH - high:.1f}" width="{width - 2:.1f}" '
            f'height="{high:.1f}"><title>{count:,} {noun(count, "pair")}</title></rect>'
        )

    def x(value: float) -> float:
        return _WIDE * (value + reach) / (2 * reach)

    mean = float(known.mean())
    at, size = x(mean), f"{'+' if mean > 0 else ''}{entry(mean, 3)}"
    anchor = "end" if at > 0.7 * _WIDE else "start"
    shift = -5 if anchor == "end" else 5
    here = (
        f'<circle cx="{x(chosen):.1f}" cy="{_HIGH}" r="4" class="mpc-here"/>'
        if chosen is not None and math.isfinite(chosen)
        else ""
    )
    ends = "".join(
        f'<text x="{place:.0f}" y="{_HIGH + _FOOT - 4}" text-anchor="{side}">{words}</text>'
        for place, side, words in (
            (0, "start", minus(f"{-reach:.3g}")),
            (_WIDE / 2, "middle", "0"),
            (_WIDE, "end", f"+{reach:.3g}"),
        )
    )
    above, below = int((known > 0).sum()), int((known < 0).sum())
    same = len(known) - above - below
    said = (
        f"Of {len(known):,} {noun(len(known), 'pair')} the outcome is higher for the item of the "
        f"group in {above:,}, lower in {below:,}, the same in {same:,}; the mean difference is "
        f"{size}."
    )
    drawing = (
        f'<svg viewBox="0 -14 {_WIDE} {_HIGH + _FOOT + 14}" role="img" aria-label="{escape(said)}">'
        f'<g class="mpc-bars">{"".join(bars)}</g>'
        f'<line x1="{_WIDE / 2}" x2="{_WIDE / 2}" y1="0" y2="{_HIGH}" class="mpc-zero"/>'
        f'<g class="{colour} mpc-mean"><line x1="{at:.1f}" x2="{at:.1f}" y1="-4" y2="{_HIGH}"/>'
        f'<text x="{at + shift:.1f}" y="-3" text-anchor="{anchor}">mean {size}</text></g>'
        f"{here}{ends}</svg>"
    )
    return f'<div class="mpc-strip {NO_MATH}">{drawing}<p class="mpc-note">{escape(said)}</p></div>'
