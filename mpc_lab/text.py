"""Names, numbers, intervals and lists as a person reads them; safe to send to a terminal.

A group may be called anything, and a terminal obeys what it is sent: every name from data goes
through :func:`plain`. Numbers are written with ``-`` where the text may be printed anywhere, and
with a real minus sign by :func:`minus` and all that a page or a chart shows. May import from:
nothing.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence

# Marks that reorder the text around them; other format characters are part of real scripts.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BREAKS = frozenset("\t\n\r\v\f\x85\u2028\u2029")
# Control characters, surrogates that cannot be encoded, line and paragraph separators.
_OBEYED = frozenset({"Cc", "Cs", "Zl", "Zp"})
_NAME_AT_MOST = 60
_LABEL_AT_MOST = 34
_DECIMALS_AT_MOST = 6
_LARGE = 1e7
_SMALLEST_P = 0.0001
# A number's own sign: at the start, behind a space or a bracket, or in an exponent. A hyphen
# inside a word is not one.
_BELOW_ZERO = re.compile(r"(?:(?<![^\s(])|(?<=\de))-(?=\d|inf\b|∞)")

NOTHING = "–"


# ---- names


def plain(text: object, *, lines: bool = False) -> str:
    r"""Return the text without the characters that a terminal obeys instead of showing.

    Parameters
    ----------
    text : object
        Anything; ``str(text)`` is shown.
    lines : bool
        Keep line feeds. For text of our own that has several lines, never for a name from data.

    Returns
    -------
    str
        The same text without control characters, surrogates and marks of writing direction;
        each tab and line break becomes a space.

    Examples
    --------
    >>> plain("Drama\x1b[2J")
    'Drama[2J'
    """
    return "".join(_shown(character, lines) for character in str(text))


def _shown(character: str, lines: bool) -> str:
    if character == "\n" and lines:
        return character
    if character in _BREAKS:
        return " "
    obeyed = character in _BIDI or unicodedata.category(character) in _OBEYED
    return "" if obeyed else character


def name(label: object) -> str:
    """Return a name from data without characters that move the cursor, cut if it is long."""
    shown = plain(label)
    return shown if len(shown) <= _NAME_AT_MOST else shown[: _NAME_AT_MOST - 3] + "..."


def quote(label: object) -> str:
    """Put a name in quotes."""
    return f"'{name(label)}'"


def labels(names: Iterable[object]) -> list[str]:
    r"""Return names short enough for a chart or a menu, still different from each other.

    Examples
    --------
    >>> labels(["a", "a\x00", "b"])
    ['a', 'a (2)', 'b']
    """
    seen: set[str] = set()
    shown = []
    for one in names:
        whole = name(one).strip() or "(no name)"
        base = whole if len(whole) <= _LABEL_AT_MOST else whole[: _LABEL_AT_MOST - 1] + "…"
        label, count = base, 2
        while label in seen:
            label, count = f"{base} ({count})", count + 1
        seen.add(label)
        shown.append(label)
    return shown


def middle_cut(names: Iterable[object], at_most: int = _LABEL_AT_MOST) -> list[str]:
    r"""Return names of at most so many characters, cut in their middle, still different.

    Where two names differ only in what is cut, the later one has a number behind it.

    Examples
    --------
    >>> middle_cut(["Handmade and vintage jewellery, men", "Film-Noir", "Film-Noir"], 16)
    ['Handmad…ery, men', 'Film-Noir', 'Film-Noir (2)']
    """
    seen: set[str] = set()
    shown = []
    for one in names:
        whole = plain(one).strip() or "(no name)"
        made, count = _without_middle(whole, at_most), 2
        while made in seen:
            mark = f" ({count})"
            made, count = _without_middle(whole, at_most - len(mark)) + mark, count + 1
        seen.add(made)
        shown.append(made)
    return shown


def _without_middle(whole: str, at_most: int) -> str:
    if len(whole) <= at_most:
        return whole
    end = at_most // 2
    return f"{whole[: at_most - 1 - end].rstrip()}…{whole[-end:].lstrip()}"


def listing(words: Sequence[str], at_most: int = 8) -> str:
    """Return the words in one line, at most so many, and how many more there are.

    Examples
    --------
    >>> listing(["a", "b", "c"]), listing(["a", "b", "c"], at_most=1)
    ('a, b and c', 'a and 2 more')
    """
    shown = list(words[:at_most])
    more = len(words) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more:,} more"
    return " and ".join([*([", ".join(shown[:-1])] if shown[:-1] else []), *shown[-1:]])


# ---- numbers


def decimals(low: float, high: float) -> int:
    """Return how many decimals an interval deserves: two digits of its standard error."""
    width = (high - low) / 4
    if not math.isfinite(width) or width <= 0:
        return 3
    return min(max(1 - math.floor(math.log10(width)), 0), 12)


def number(value: float, places: int) -> str:
    """Return a number with so many decimals; what is not 0 never reads as 0."""
    if not math.isfinite(value):
        return str(value)
    fixed = f"{value:,.{places}f}"
    if value == 0:
        return "0"
    if places > _DECIMALS_AT_MOST or abs(value) >= _LARGE:
        return f"{value:.3g}"
    return fixed if float(fixed.replace(",", "")) != 0 else f"{value:.1g}"


def minus(words: str) -> str:
    """Return a number, or a sentence with numbers, with real minus signs.

    Examples
    --------
    >>> minus("'sci-fi' has a gap of -0.1") == "'sci-fi' has a gap of \N{MINUS SIGN}0.1"
    True
    """
    return _BELOW_ZERO.sub("\N{MINUS SIGN}", words)


def entry(value: float, form: int | str) -> str:
    """Return a number as an entry of a table or a chart, a dash where there is none.

    Parameters
    ----------
    value : float
    form : int or str
        A number of decimals, as of :func:`number`, or a format such as ``",.1f"``.

    Examples
    --------
    >>> entry(1234.5, ",.0f"), entry(0.02, 3), entry(float("nan"), 3), entry(float("inf"), 3)
    ('1,234', '0.020', '–', '∞')
    """
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return minus("∞" if value > 0 else "-∞")
    return minus(number(value, form) if isinstance(form, int) else format(value, form))


def with_ends(value: float, low: float, high: float) -> tuple[str, str]:
    """Return a number and its interval, with the decimals that the interval deserves."""
    if not math.isfinite(value):
        return NOTHING, NOTHING
    places = decimals(low, high)
    return entry(value, places), f"{entry(low, places)} to {entry(high, places)}"


def with_interval(estimate: float, low: float, high: float) -> str:
    """Return a number with its interval behind it."""
    if not math.isfinite(estimate):
        return "not estimable"
    if not (math.isfinite(low) and math.isfinite(high)):
        return entry(estimate, 4)
    value, ends = with_ends(estimate, low, high)
    # Held together where lines are broken.
    return f"{value} ({ends})".replace(" to ", "\u00a0to\u00a0")


def p_value(value: float) -> str:
    """Return a p-value; what is tiny is only said to be so."""
    return f"< {_SMALLEST_P:.4f}" if value < _SMALLEST_P else entry(value, ".4f")


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:g} %"


def between(values: Sequence[float], form: str) -> str:
    """Return the range of the values, or the one value they all have."""
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


# ---- counts


FEW = 10


def is_few(count: float) -> bool:
    """Return whether a count of queries is too small to leave the screen: 1 to 9."""
    return 0 < count < FEW


def guard_count(count: float) -> str:
    """Return a count of queries for what leaves the screen: few could be known one by one.

    Examples
    --------
    >>> guard_count(1234), guard_count(9), guard_count(0)
    ('1,234', '< 10', '0')
    """
    return f"< {FEW}" if is_few(count) else f"{count:,.0f}"


def guard_range(counts: Sequence[float]) -> str:
    """Return the range of counts of queries for what leaves the screen.

    Examples
    --------
    >>> guard_range([3, 40]), guard_range([3, 5]), guard_range([12, 12])
    ('< 10 to 40', '< 10', '12')
    """
    low, high = guard_count(min(counts)), guard_count(max(counts))
    return low if low == high else f"{low} to {high}"


def noun(count: float, word: str) -> str:
    """Return a word for one thing as it follows a count.

    Examples
    --------
    >>> noun(1, "query"), noun(2, "query"), noun(0, "pair")
    ('query', 'queries', 'pairs')
    """
    if count == 1:
        return word
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def plural(count: int, word: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {noun(count, word)}"
