"""What an argument is worth as a number, whatever came.

May import from: errors.
"""

from __future__ import annotations

from math import inf, nan
from numbers import Integral, Real
from typing import Any

from mpc_lab.errors import MpcError


def as_number(value: object) -> float:
    """Return a number as a float, and NaN, which lies in no range, for all that is none.

    A truth value is none; a whole number that no float can hold is infinite.

    Examples
    --------
    >>> as_number(3), as_number(True), as_number("3"), as_number(-(10**400))
    (3.0, nan, nan, -inf)
    """
    found: Any = _without_shape(value)
    is_number = isinstance(found, Real) and not isinstance(found, bool)
    if not is_number:
        return nan
    try:
        return float(found)
    except OverflowError:
        return -inf if found < 0 else inf


def as_whole(value: object) -> int | None:
    """Return a whole number as an int, and None for all that is none.

    Examples
    --------
    >>> as_whole(3), as_whole(3.0), as_whole(True)
    (3, None, None)
    """
    found: Any = _without_shape(value)
    return int(found) if isinstance(found, Integral) and not isinstance(found, bool) else None


def as_flag(option: str, value: object) -> bool:
    """Return a truth value, and refuse all else: what is true of a list is anyone's guess.

    Examples
    --------
    >>> as_flag("curve", False)
    False
    """
    found: Any = _without_shape(value)
    if not isinstance(found, bool):
        raise MpcError(f"{option} takes True or False, not {value!r}.")
    return found


def _without_shape(value: Any) -> Any:
    """Return the one value of an array without axes, such as a cell of an xarray.Dataset."""
    is_one = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    return value.item() if is_one else value
