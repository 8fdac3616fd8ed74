"""How likely a place of the list is to be looked at: a power law, or a number for each place."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc_lab.errors import MpcError, check_number
from mpc_lab.vocabulary import Floats

# Outcomes are divided by no less than this, unless the caller says otherwise.
FLOOR = 0.05
_REMEDY = "Give a column, a dict such as {1: 1.0, 2: 0.6}, a Series, or mpc.PowerLaw(0.7)."


@dataclass(frozen=True)
class PowerLaw:
    r"""The place k is looked at with probability :math:`k^{-\eta}`.

    Parameters
    ----------
    eta : float
        At least 0; 0: all places alike.

    Examples
    --------
    >>> PowerLaw(1.0).at([1, 2, 4]).tolist()
    [1.0, 0.5, 0.25]
    """

    eta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", check_number("eta", self.eta, at_least=0))

    def at(self, places: Any) -> Floats:
        """Return the probability of each place."""
        return np.asarray(np.asarray(places, dtype=np.float64) ** -self.eta)

    def to_json(self) -> dict[str, Any]:
        """Return what an audit stores of it."""
        return {"eta": self.eta}

    def __str__(self) -> str:
        return f"place^-{self.eta:g}"


@dataclass(frozen=True)
class PlaceTable:
    """A probability for each of some places; NaN for any other.

    Attributes
    ----------
    chances : tuple of (int, float)
        Places, ascending, with their probabilities.
    estimated : bool
        Whether it was estimated from outcomes, which later intervals do not allow for.
    """

    chances: tuple[tuple[int, float], ...]
    estimated: bool = False

    def at(self, places: Any) -> Floats:
        """Return the probability of each place."""
        known, chance = map(np.array, zip(*self.chances, strict=True))
        wanted = np.asarray(places, dtype=np.float64)
        where = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.asarray(np.where(known[where] == wanted, chance[where], np.nan))

    def to_json(self) -> dict[str, Any]:
        """Return what an audit stores of it."""
        return {"places": {str(k): value for k, value in self.chances}} | (
            {"estimated": True} if self.estimated else {}
        )

    def __str__(self) -> str:
        what = "an estimated curve" if self.estimated else "a table"
        return f"{what} of places {self.chances[0][0]} to {self.chances[-1][0]}"


Curve = PowerLaw | PlaceTable


def as_examined(given: Any) -> Hashable:
    """Return a column's name as it is, and anything given by place as a curve.

    Parameters
    ----------
    given : name, PowerLaw, dict, Series, or what ``audit.examination()`` returned

    Examples
    --------
    >>> as_examined({1: 1.0, 2: 0.5})
    PlaceTable(chances=((1, 1.0), (2, 0.5)), estimated=False)
    """
    if isinstance(given, Curve):
        return given
    if hasattr(given, "data_vars") and "examined" in given:
        given = given["examined"]
    estimated = hasattr(given, "dims") and hasattr(given, "to_series")
    if estimated:
        given = given.to_series()
    if isinstance(given, Mapping) or (hasattr(given, "items") and hasattr(given, "index")):
        return _as_table(dict(given.items()), estimated)
    if isinstance(given, Hashable) and not isinstance(given, bool | float | tuple):
        return given
    raise MpcError(
        f"examined must say how likely a row is to be looked at; got {given!r}. {_REMEDY}"
    )


def _as_table(given: dict[Any, Any], estimated: bool) -> PlaceTable:
    try:
        pairs = sorted((float(place), float(chance)) for place, chance in given.items())
    except (TypeError, ValueError):
        raise MpcError(f"examined must have numbers; got {given!r}. {_REMEDY}") from None
    if not pairs:
        raise MpcError(f"examined must have at least one place; got none. {_REMEDY}")
    # Only the ratios of an estimated curve are known, and noise can lift a place above the first.
    top = max(chance for _, chance in pairs) if estimated else 1.0
    if estimated and top > 1:
        pairs = [(place, chance / top) for place, chance in pairs]
    for place, chance in pairs:
        if not (place >= 1 and place.is_integer()):
            raise MpcError(f"examined must have places that are whole numbers from 1 up; got "
                           f"{place:g}. {_REMEDY}")  # fmt: skip
        if not 0 < chance <= 1:
            raise MpcError(f"examined must be above 0 and at most 1; got {chance:g} for place "
                           f"{place:g}. Divide by the largest.")  # fmt: skip
    return PlaceTable(tuple((int(place), chance) for place, chance in pairs), estimated)


def from_json(kept: Any) -> Hashable:
    """Return what was given, from what an audit stores of it."""
    if not isinstance(kept, dict):
        return kept  # type: ignore[no-any-return]
    if "eta" in kept:
        return PowerLaw(float(kept["eta"]))
    chances = {int(place): float(chance) for place, chance in kept["places"].items()}
    return PlaceTable(tuple(sorted(chances.items())), bool(kept.get("estimated")))
