"""Names, numbers, intervals and lists as a person reads them; safe to send to a terminal.

A group may be called anything, and a terminal obeys what it is sent: every name from data goes
through :func:`plain`. Numbers are written with ``-`` where the text may be printed anywhere, and
with a real minus sign by :func:`minus` and everywhere on a page or a chart. May import from:
nothing.
"""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence

# Marks that reorder the text around them; other format characters are part of real scripts.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BREAKS = frozenset("\t\n\r\v\f\x85\u2028\u2029")
# Control characters, surrogates that cannot be encoded, line and paragraph separators.
_OBEYED = frozenset({"Cc", "Cs", "Zl", "Zp"})
_NAME_AT_MOST = 60
_LABEL_AT_MOST = 34
# Names cut shorter have no room for the words in which they differ.
_LEAST_TO_DIFFER = 8
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
    """Return a name from data without characters that move the cursor; a long one loses its middle.

    Examples
    --------
    >>> len(name("a" * 50 + "z" * 50)), name("a" * 50 + "z" * 50)[-3:]
    (60, 'zzz')
    """
    return _without_middle(plain(label), _NAME_AT_MOST)


def quote(label: object) -> str:
    """Put a name in quotes."""
    return f"'{name(label)}'"


def labels(names: Iterable[object]) -> list[str]:
    r"""Return names short enough for a chart or a menu, but still different from each other.

    Examples
    --------
    >>> labels(["a", "a\x00", "b"])
    ['a', 'a (2)', 'b']
    """
    return middle_cut(names)


def middle_cut(names: Iterable[object], at_most: int = _LABEL_AT_MOST) -> list[str]:
    r"""Return names of at most this many characters, cut in their middle, still different.

    Names that begin and end alike keep the part in which they differ. Where even that is cut, the
    later one has a number behind it.

    Examples
    --------
    >>> middle_cut(["Handmade and vintage jewellery, men", "Film-Noir", "Film-Noir"], 16)
    ['Handmad…ery, men', 'Film-Noir', 'Film-Noir (2)']
    >>> middle_cut([f"Home and garden, part {k} of the catalogue" for k in (1, 2)], 22)
    ['Home an…part 1…talogue', 'Home an…part 2…talogue']
    """
    whole = [plain(one).strip() or "(no name)" for one in names]
    seen: set[str] = set()
    shown = []
    for one, cut in zip(whole, _cut_apart(whole, at_most), strict=True):
        made, count = cut, 2
        while made in seen:
            mark = f" ({count})"
            made, count = _without_middle(one, at_most - len(mark)) + mark, count + 1
        seen.add(made)
        shown.append(made)
    return shown


def _cut_apart(names: Sequence[str], at_most: int) -> list[str]:
    """Return names cut in their middle; names that would then be equal show where they differ."""
    shown = [_without_middle(one, at_most) for one in names]
    for cut in set(shown):
        alike = [k for k, one in enumerate(shown) if one == cut]
        different = sorted({names[k] for k in alike})
        if len(different) > 1 and at_most >= _LEAST_TO_DIFFER:
            told = dict(zip(different, _around_differences(different, at_most), strict=True))
            for k in alike:
                shown[k] = told[names[k]]
    return shown


def _around_differences(names: Sequence[str], at_most: int) -> list[str]:
    """Return the words in which names differ, with what fits of their beginning and end."""
    start, end = _beginning(names), _beginning([one[::-1] for one in names])
    end = min(end, min(map(len, names)) - start)
    first = names[0]
    # Beginning and end get at least a third of the room each, since they may identify the name.
    widest = at_most - 2 - at_most // 3
    longest = max(map(len, names))
    word_end = (first[len(first) - end :] + " ").find(" ")
    if longest - start - end + word_end <= widest:
        end -= word_end
    # From the beginning of its word, or of the word before, if there is room.
    for wide in (widest, at_most // 2):
        word = first.rfind(" ", 0, max(start - 1, 0)) + 1
        start = word if longest - end - word <= wide else start
    parts = _cut_apart([one[start : len(one) - end] for one in names], widest)
    room = at_most - 2 - max(map(len, parts))
    tail = min(end, room - min(start, room // 2))
    head = min(start, room - tail)
    return [
        f"{_end(first[:head], start)}{part}{_begun(one[len(one) - tail :] if tail else '', end)}"
        for one, part in zip(names, parts, strict=True)
    ]


def _beginning(names: Sequence[str]) -> int:
    """Return how many characters all names begin with."""
    shortest = min(map(len, names))
    return next((k for k in range(shortest) if len({one[k] for one in names}) > 1), shortest)


def _end(head: str, whole: int) -> str:
    return head if len(head) == whole else f"{head.rstrip()}…"


def _begun(tail: str, whole: int) -> str:
    return tail if len(tail) == whole else f"…{tail.lstrip()}"


def _without_middle(whole: str, at_most: int) -> str:
    if len(whole) <= at_most:
        return whole
    end = at_most // 2
    return f"{whole[: at_most - 1 - end].rstrip()}…{whole[-end:].lstrip()}"


def wrap_evenly(line: str, wide: int) -> list[str]:
    """Break a line, and where a word or two would be left over, into parts of about one length.

    Examples
    --------
    >>> wrap_evenly("one two three four five", 20)
    ['one two three', 'four five']
    """
    parts = textwrap.wrap(line, wide)
    if len(parts) < 2 or len(parts[-1]) > wide / 3:
        return parts
    count = len(parts)
    narrower = (textwrap.wrap(line, less) for less in range(len(line) // count, wide))
    return next((even for even in narrower if len(even) == count), parts)


def listing(words: Sequence[str], at_most: int = 8) -> str:
    """Return the words in one line, at most this many, and how many more there are.

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
    """Return a number with this many decimals; what is not 0 never reads as 0."""
    if not math.isfinite(value):
        return str(value)
    fixed = f"{value:,.{places}f}"
    if value == 0:
        return "0"
    if places > _DECIMALS_AT_MOST or abs(value) >= _LARGE:
        return f"{value:.3g}"
    return fixed if float(fixed.replace(",", "")) != 0 else f"{value:.1g}"


def round_count_up(count: float, digits: int = 2) -> int:
    """Return a count rounded up to this many digits, so that it is never less than what is needed.

    Examples
    --------
    >>> round_count_up(303), round_count_up(4_592_965, 3), round_count_up(1000)
    (310, 4600000, 1000)
    """
    power = math.floor(math.log10(count)) if count >= 1 else 0
    step: int = 10 ** max(power - digits + 1, 0)
    return math.ceil(count / step) * step


def two_digits(value: float) -> str:
    """Return a number in two significant digits, without an exponent unless it is extreme.

    Examples
    --------
    >>> two_digits(0.01234), two_digits(1.0), two_digits(123.4), two_digits(98765.0)
    ('0.012', '1', '120', '99,000')
    """
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if 100 <= abs(rounded) < _LARGE else f"{value:.2g}"


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
        A number of decimals, as in :func:`number`, or a format such as ``",.1f"``.

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


def with_ends(value: float, low: float, high: float, places: int | None = None) -> tuple[str, str]:
    """Return a number and its interval, with the decimals that the interval deserves.

    Parameters
    ----------
    value, low, high : float
    places : int, optional
        How many decimals instead, where rows of a table share them.

    Examples
    --------
    >>> with_ends(0.00004, -0.0081, 0.008)[0], with_ends(0.5, 0.25, 0.75, 3)[1]
    ('0.0000', '0.250 to 0.750')
    """
    if not math.isfinite(value):
        return NOTHING, NOTHING
    places = decimals(low, high) if places is None else places
    return beside(value, places), f"{beside(low, places)} to {beside(high, places)}"


def beside(value: float, places: int) -> str:
    """Return a number with the decimals of its neighbours; it may read as 0, which they explain.

    Examples
    --------
    >>> beside(0, 2), beside(0.00004, 3)
    ('0.00', '0.000')
    """
    if not math.isfinite(value) or places > _DECIMALS_AT_MOST or abs(value) >= _LARGE:
        return entry(value, places)
    return minus(f"{round(value, places) + 0.0:,.{places}f}")


def shared_decimals(ends: Iterable[tuple[float, float]]) -> int:
    """Return one number of decimals for intervals of a column: what the middle one deserves.

    Examples
    --------
    >>> shared_decimals([(-0.42, -0.1), (0.161, 0.18), (0.07, 0.09)])
    4
    """
    known = [(low, high) for low, high in ends if math.isfinite(low) and math.isfinite(high)]
    digits = sorted(decimals(low, high) for low, high in known)
    return digits[len(digits) // 2] if digits else 3


def column(values: Iterable[float], digits: int = 3) -> list[str]:
    """Return the numbers of a column with the same decimals, this many digits of the smallest.

    Examples
    --------
    >>> column([0.012, 0.0137]), column([1.0, 0.0, 2.0])
    (['0.0120', '0.0137'], ['1', '0', '2'])
    """
    numbers = list(values)
    sizes = [abs(one) for one in numbers if math.isfinite(one) and one]
    smallest = min(sizes, default=1.0)
    places = min(max(digits - 1 - math.floor(math.log10(smallest)), 0), _DECIMALS_AT_MOST)
    while places and all(f"{size:.{places}f}".endswith("0") for size in sizes):
        places -= 1
    return [entry(one, places) if one else f"{0:.{places}f}" for one in numbers]


def with_interval(estimate: float, low: float, high: float, *, places: int | None = None) -> str:
    """Return a number with its interval behind it; `places` as in :func:`with_ends`."""
    if not math.isfinite(estimate):
        return "not estimable"
    if not (math.isfinite(low) and math.isfinite(high)):
        return entry(estimate, 4 if places is None else places)
    value, ends = with_ends(estimate, low, high, places)
    # Kept on one line with non-breaking spaces.
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
    """Return whether a count of queries is too small to be shown outside the screen: 1 to 9."""
    return 0 < count < FEW


def guard_count(count: float) -> str:
    """Return a count of queries for a document: a small count might identify single queries.

    Examples
    --------
    >>> guard_count(1234), guard_count(9), guard_count(0)
    ('1,234', '< 10', '0')
    """
    return f"< {FEW}" if is_few(count) else f"{count:,.0f}"


def guard_range(counts: Sequence[float]) -> str:
    """Return the range of counts of queries for a document.

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
