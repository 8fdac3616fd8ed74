"""The errors a user sees, each one sentence: what was expected, what was passed, what to do.

One check for each kind of argument raises them. May import from no other room.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from math import inf, isfinite, nan
from numbers import Integral, Real
from typing import Any

_LISTED_AT_MOST = 8


class MpcError(ValueError):
    """Input that cannot be audited, or an option that cannot be honoured."""


class AuditFailed(MpcError):
    """A group is outside the tolerance of a gate.

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
    >>> near_match("CR3", ["cr3", "plain"])
    " Did you mean 'cr3'?"
    """
    names = [str(choice) for choice in choices]
    close = _closest(str(name), names)
    if close is not None:
        return f" Did you mean {close!r}?"
    if not names:
        return ""
    listed = ", ".join(repr(choice) for choice in names[:_LISTED_AT_MOST])
    more = f" and {len(names) - _LISTED_AT_MOST} more" if len(names) > _LISTED_AT_MOST else ""
    return f" There are: {listed}{more}."


def _closest(name: str, names: list[str]) -> str | None:
    """Return the known name most similar to another, ignoring case; None if none is similar."""
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return close[0]
    by_small = {one.casefold(): one for one in reversed(names)}
    close = difflib.get_close_matches(name.casefold(), by_small, n=1, cutoff=0.6)
    return by_small[close[0]] if close else None


def near_matches(names: Iterable[str], choices: Iterable[str]) -> str:
    """Return one hint for several misspelt names.

    Examples
    --------
    >>> near_matches(["scroe", "usr"], ["score", "user"])
    " Did you mean 'score', 'user'?"
    """
    known = list(choices)
    found = [_closest(name, known) for name in names]
    if all(one is not None for one in found):
        return f" Did you mean {', '.join(map(repr, found))}?"
    return near_match("", known)


# ---- arguments: one check for each kind, with one sentence


def as_number(value: object) -> float:
    """Return a number as a float, and NaN, which is in no range, for everything else.

    True and False are not numbers; a whole number that no float can hold is infinite.

    Examples
    --------
    >>> as_number(3), as_number(True), as_number("3"), as_number(-(10**400))
    (3.0, nan, nan, -inf)
    """
    found: Any = _unwrap(value)
    if isinstance(found, bool) or not isinstance(found, Real):
        return nan
    try:
        return float(found)
    except OverflowError:
        return -inf if found < 0 else inf


def as_whole(value: object) -> int | None:
    """Return a whole number as an int, and None for everything else.

    Examples
    --------
    >>> as_whole(3), as_whole(3.0), as_whole(True)
    (3, None, None)
    """
    found: Any = _unwrap(value)
    return int(found) if isinstance(found, Integral) and not isinstance(found, bool) else None


def check_number(
    name: str,
    value: object,
    *,
    at_least: float = -inf,
    above: float = -inf,
    at_most: float = inf,
    below: float = inf,
    remedy: str = "",
) -> float:
    """Return a finite number within its bounds as a float, or raise.

    Examples
    --------
    >>> check_number("effect", 3, above=0)
    3.0
    """
    found = as_number(value)
    if isfinite(found) and at_least <= found <= at_most and above < found < below:
        return found
    bounds = {"at least": at_least, "above": above, "at most": at_most, "below": below}
    range_ = " and ".join(f"{word} {x:,g}" for word, x in bounds.items() if isfinite(x))
    of = " of" if range_.startswith("at") else ""
    raise _refusal(name, f"a finite number{of} {range_}".rstrip(), value, remedy)


def check_whole(
    name: str,
    value: object,
    *,
    at_least: int = 0,
    at_most: int | None = None,
    remedy: str = "",
) -> int:
    """Return a whole number within its bounds as an int, or raise.

    Examples
    --------
    >>> check_whole("seed", 3)
    3
    """
    found = as_whole(value)
    if found is not None and found >= at_least and (at_most is None or found <= at_most):
        return found
    bounds = f"of at least {at_least:,}" if at_most is None else f"from {at_least:,} to {at_most:,}"
    raise _refusal(name, f"a whole number {bounds}", value, remedy)


def check_count(name: str, value: object, *, at_most: int | None = None, remedy: str = "") -> int:
    """Return a whole number of at least 1 as an int, or raise."""
    return check_whole(name, value, at_least=1, at_most=at_most, remedy=remedy)


def check_flag(name: str, value: object) -> bool:
    """Return True or False, and refuse everything else: whether a list is true is ambiguous.

    Examples
    --------
    >>> check_flag("curve", False)
    False
    """
    found: Any = _unwrap(value)
    if not isinstance(found, bool):
        raise _refusal(name, "True or False", value)
    return found


def check_level(level: object) -> float:
    """Return a confidence level as a float, or raise.

    Examples
    --------
    >>> check_level(0.95)
    0.95
    """
    return check_number("level", level, above=0, below=1, remedy="Try level=0.95.")


def check_epsilon(epsilon: object, *, unlimited: bool = False, remedy: str = "") -> float:
    """Return a threshold for the score distance of a pair as a float, or raise.

    Parameters
    ----------
    epsilon : object
        What was passed.
    unlimited : bool
        Whether infinity, which takes every pair, is a threshold too.
    remedy : str
        What to do instead, as a sentence.
    """
    found = as_number(epsilon)
    if found >= 0 and (unlimited or isfinite(found)):
        return found
    kind = f"a {'' if unlimited else 'finite '}number of at least 0"
    raise _refusal("epsilon", kind, epsilon, remedy)


def _refusal(name: str, kind: str, value: object, remedy: str = "") -> MpcError:
    return MpcError(f"{name} must be {kind}; got {value!r}.{' ' if remedy else ''}{remedy}")


def _unwrap(value: Any) -> Any:
    """Return the one value of an array without axes, such as a cell of an xarray.Dataset."""
    is_one = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    return value.item() if is_one else value
