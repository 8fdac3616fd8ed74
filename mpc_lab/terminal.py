"""Words that come from data, made safe to show in a terminal.

A group may be called anything, and a terminal obeys what it is sent. May import from: nothing.
"""

from __future__ import annotations

import unicodedata

# Marks that reorder the text around them; other format characters are part of real scripts.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BREAKS = frozenset("\t\n\r\v\f\x85\u2028\u2029")
# Control characters, surrogates that cannot be encoded, line and paragraph separators.
_OBEYED = frozenset({"Cc", "Cs", "Zl", "Zp"})


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
        a space stands for each tab and line break.

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
