"""Small pieces of HTML. A text from data enters a page through ``words`` alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from mpc_lab.results.wording import decimals, name, number
from mpc_lab.terminal import plain

MINUS = "\u2212"
NOTHING = "–"


def words(text: object) -> str:
    """Return any text as HTML that shows it and nothing else.

    Examples
    --------
    >>> words("<script>")
    '&lt;script&gt;'
    """
    # No line break inside "95 %".
    return escape(plain(text)).replace(" % ", "\u00a0%\u00a0")


def label(text: object) -> str:
    """Return a name from data: cut if it is long, and kept apart from the text around it."""
    return f"<bdi>{words(name(text))}</bdi>"


def paragraphs(lines: Iterable[object], kind: str = "") -> str:
    """Return a paragraph for each text."""
    start = f'<p class="{kind}">' if kind else "<p>"
    return "".join(f"{start}{_prose(line)}</p>" for line in lines)


# Names stand in quotes, so that a number behind a space or a bracket is one of ours.
_BELOW_ZERO = re.compile(r"(?<=[ (])-(?=\d)")


def _prose(line: object) -> str:
    return _BELOW_ZERO.sub(MINUS, words(line))


def signed(value: float, places: int) -> str:
    """Return a number with a real minus sign; a dash where there is none."""
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: f"{MINUS}∞"}.get(value, NOTHING)
    return number(value, places).replace("-", MINUS)


def with_ends(value: float, low: float, high: float) -> tuple[str, str]:
    """Return a number and its interval, with the decimals that the interval deserves."""
    if not math.isfinite(value):
        return NOTHING, NOTHING
    places = decimals(low, high)
    return signed(value, places), f"{signed(low, places)} to {signed(high, places)}"


def probability(value: float) -> str:
    """Return a p-value."""
    if not math.isfinite(value):
        return NOTHING
    return "&lt; 0.0001" if value < 0.0001 else f"{value:.4f}"


def count(value: float) -> str:
    """Return a whole number, or that there is none."""
    return f"{value:,.0f}" if math.isfinite(value) else ("∞" if value == math.inf else NOTHING)


@dataclass(frozen=True)
class Head:
    """The head of a column.

    Attributes
    ----------
    title : str
        HTML.
    is_text : bool
        Whether its cells stand at the left.
    """

    title: str
    is_text: bool = False


def table(heads: Sequence[Head], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table of cells that are HTML already."""

    def side(head: Head) -> str:
        return ' class="text"' if head.is_text else ""

    top = "".join(f'<th scope="col"{side(head)}>{head.title}</th>' for head in heads)
    body = "".join(
        "<tr>"
        + "".join(f"<td{side(head)}>{cell}</td>" for head, cell in zip(heads, row, strict=True))
        + "</tr>"
        for row in rows
    )
    title = f"<caption>{words(caption)}</caption>" if caption else ""
    return (
        f'<div class="wide"><table>{title}<thead><tr>{top}</tr></thead><tbody>{body}</tbody>'
        "</table></div>"
    )


def definitions(pairs: Iterable[tuple[object, object]]) -> str:
    """Return a list of names and what they stand for."""
    items = "".join(f"<dt>{words(key)}</dt><dd>{words(value)}</dd>" for key, value in pairs)
    return f"<dl>{items}</dl>"


def folded(title: str, body: str) -> str:
    """Return something that opens on a click; print shows it open."""
    return f"<details><summary>{words(title)}</summary>{body}</details>"
