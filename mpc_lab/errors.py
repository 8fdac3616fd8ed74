"""The errors a user sees: one sentence that says what was expected, what came, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LISTED_AT_MOST = 8


class MpcError(ValueError):
    """Input that cannot be audited, or an option that cannot be honoured."""


class AuditFailed(MpcError):
    """A group lies outside the tolerance of a gate.

    Attributes
    ----------
    groups : tuple of str
        The groups that failed.
    """

    def __init__(self, message: str, groups: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.groups = tuple(groups)


def near_match(name: object, choices: Iterable[str]) -> str:
    """Return a hint to append to an error about a misspelt name.

    Examples
    --------
    >>> near_match("scroe", ["score", "user"])
    " Did you mean 'score'?"
    """
    names = [str(choice) for choice in choices]
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if close:
        return f" Did you mean {close[0]!r}?"
    if not names:
        return ""
    listed = ", ".join(repr(choice) for choice in names[:_LISTED_AT_MOST])
    more = f" and {len(names) - _LISTED_AT_MOST} more" if len(names) > _LISTED_AT_MOST else ""
    return f" There are: {listed}{more}."
