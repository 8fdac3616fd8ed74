"""Names, numbers and lists as a person reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mpc_lab.terminal import plain

_NAME_AT_MOST = 60
_DECIMALS_AT_MOST = 6
_LARGE = 1e7


def name(label: object) -> str:
    """Return a name from data without characters that move the cursor, cut if it is long."""
    shown = plain(label)
    return shown if len(shown) <= _NAME_AT_MOST else shown[: _NAME_AT_MOST - 3] + "..."


def quoted(label: object) -> str:
    """Return a name in quotes."""
    return f"'{name(label)}'"


def listing(words: Sequence[str], at_most: int = 8) -> str:
    """Return the words in one line, at most so many, and how many more there are."""
    shown = list(words[:at_most])
    more = len(words) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more:,} more"
    return " and ".join([*([", ".join(shown[:-1])] if shown[:-1] else []), *shown[-1:]])


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


def between(values: Sequence[float], form: str) -> str:
    """Return the range of the values, or the one value they all have."""
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def noun(count: float, word: str) -> str:
    """Return a word for one thing as it stands behind a count.

    Examples
    --------
    >>> noun(1, "query"), noun(2, "query"), noun(0, "pair")
    ('query', 'queries', 'pairs')
    """
    if count == 1:
        return word
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:g} %"
