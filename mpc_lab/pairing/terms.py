"""On what terms rows are compared: how close they must be, how they count, and with whom.

A threshold is a number, or the exact K-th smallest distance. Nothing here loads a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, isfinite
from numbers import Integral, Real
from typing import Any, SupportsFloat

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.vocabulary import Floats, Ints

SCORE, QUERY_SD, PERCENTILE = "score", "query_sd", "percentile"
CLOSENESS = (SCORE, QUERY_SD, PERCENTILE)
DIFFERENCE, SIGN = "difference", "sign"
CONTRASTS = (DIFFERENCE, SIGN)
PAIRS, QUERIES, ROOT = "pairs", "queries", "root"
ESTIMANDS = (PAIRS, QUERIES, ROOT)
# Pairs of one query that are looked at one by one, where windows cannot sum over them.
MOST_VISITED = 20_000_000


@dataclass(frozen=True)
class Terms:
    r"""How the rows of a log are compared.

    Attributes
    ----------
    closeness : {"score", "query_sd", "percentile"}
        ``score``: the scores as they are. ``query_sd``: divided by the population standard
        deviation of the logged scores of their query; a query with one distinct score has no
        pairs. ``percentile``: replaced by (rank − ½)/n within their query, ties shared.
    contrast : {"difference", "sign"}
        What a pair counts: :math:`d = y_i - y_j`, or its sign.
    against : str, optional
        The group that the other item of a pair is in; without it, any item outside the group.
    estimand : {"pairs", "queries", "root"}
        What the gap is a mean over. With P the pairs of a query and w its weight, by default 1, a
        pair counts w (``pairs``), w/P (``queries``: every query with a pair counts alike) or w/√P
        (``root``: between the two).

    Examples
    --------
    >>> Terms(closeness="query_sd").are_default
    False
    """

    closeness: str = SCORE
    contrast: str = DIFFERENCE
    against: str | None = None
    estimand: str = PAIRS

    @property
    def are_default(self) -> bool:
        """Whether scores, outcomes and partners are taken as they are."""
        return self == AS_LOGGED


AS_LOGGED = Terms()


def terms_of(options: Mapping[str, Any]) -> Terms:
    """Return the terms that the options of an audit name; those of older audits name none."""
    known = {name: options[name] for name in Terms.__dataclass_fields__ if name in options}
    return Terms(**known)


@dataclass(frozen=True)
class Quantile:
    r"""The threshold below which a share `p` of a group's ``matched`` pairs are.

    :math:`\varepsilon` is the K-th smallest distance of the N ``matched`` pairs with no limit on
    the distance, :math:`K = \max(1, \lceil pN \rceil)` with `p` the decimal number that was
    written.

    Parameters
    ----------
    p : float
        Above 0, at most 1.

    Examples
    --------
    >>> Quantile(0.07).rank(100)
    7
    """

    p: float = 0.01

    def __post_init__(self) -> None:
        if not isinstance(self.p, Real) or isinstance(self.p, bool) or not 0 < self.p <= 1:
            raise MpcError(
                f"p of Quantile(p) must be a number above 0 and at most 1; got {self.p!r}."
            )

    def rank(self, pairs: int) -> int:
        """Return K for a group with this many pairs."""
        return max(1, ceil(Fraction(repr(float(self.p))) * pairs))


@dataclass(frozen=True)
class Smallest:
    """The K-th smallest distance of a group's ``matched`` pairs; the largest where there are fewer.

    Parameters
    ----------
    k : int
        At least 1.
    """

    k: int

    def __post_init__(self) -> None:
        if not isinstance(self.k, Integral) or isinstance(self.k, bool) or self.k < 1:
            raise MpcError(
                f"k of Smallest(k) must be a whole number of at least 1; got {self.k!r}."
            )

    def rank(self, pairs: int) -> int:
        """Return K for a group with this many pairs."""
        return int(self.k)


@dataclass(frozen=True)
class Powered:
    r"""The smallest threshold at which a gap of `effect` would be found with the given power.

    The smallest of the 0.1, 0.2, 0.5, 1, 2, 5 and 10 % quantiles of a group's distances with
    :math:`(t_{1-a/2} + t_{power}) \, SE \le` `effect`; where there is none, the one with the
    smallest standard error, and the cell is marked ``underpowered``.

    Parameters
    ----------
    effect : float
        A gap in units of the outcome, above 0.
    power : float
        Probability of finding it, between 0 and 1.
    """

    effect: float
    power: float = 0.8

    def __post_init__(self) -> None:
        for value in (self.effect, self.power):
            if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                raise MpcError(
                    f"Powered(effect, power) must have two numbers above 0; got {value!r}."
                )
        if not isfinite(finite(self.effect)) or not self.power < 1:
            raise MpcError(
                "Powered(effect, power) must have a finite effect and a power below 1; got "
                f"{self.effect!r} and {self.power!r}."
            )

    @property
    def candidates(self) -> tuple[Quantile, ...]:
        """The quantiles to choose from, ascending."""
        return tuple(Quantile(p) for p in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1))


@dataclass(frozen=True)
class Enough:
    r"""The smallest threshold with enough pairs in enough effective queries, for small logs.

    The smallest distance of a group's ``matched`` pairs, ties included, up to which it has at least
    `pairs` of them and :math:`(\sum_q c_q)^2 / \sum_q c_q^2 \ge` `queries`, where :math:`c_q` is
    what the pairs of query (or unit) q count by the estimand of the audit; no outcome plays a part.
    It is never beyond a tenth of the standard deviation of the scores (with ``closeness``, of the
    scores on its scale); a group with too few pairs there gets all of them, and is marked
    ``short_of_pairs``.

    Parameters
    ----------
    pairs : int
        At least 1.
    queries : float
        At least 1.
    """

    pairs: int = 200
    queries: float = 50

    def __post_init__(self) -> None:
        if not isinstance(self.pairs, Integral) or isinstance(self.pairs, bool) or self.pairs < 1:
            raise MpcError(
                f"Enough(pairs) must be a whole number of at least 1; got {self.pairs!r}."
            )
        known = isinstance(self.queries, Real) and not isinstance(self.queries, bool)
        if not known or not 1 <= finite(self.queries) < inf:
            raise MpcError(
                f"Enough(queries) must be a finite number of at least 1; got {self.queries!r}."
            )


Threshold = Quantile | Smallest | Powered | Enough | float
_WHOLE = ("k", "pairs")


def finite(value: SupportsFloat) -> float:
    """Return a number as a float; infinity for a whole number that no float can hold."""
    try:
        return float(value)
    except OverflowError:
        return inf


def as_threshold(value: object) -> Threshold:
    """Accept a threshold rule or a finite number of at least 0."""
    if isinstance(value, Quantile | Smallest | Powered | Enough):
        return value
    if isinstance(value, Real) and not isinstance(value, bool):
        number = finite(value)
        if isfinite(number) and number >= 0:
            return number
    raise MpcError(
        "threshold must be mpc.Quantile(p), mpc.Smallest(k), mpc.Powered(effect), "
        f"mpc.Enough(pairs, queries) or a finite number of at least 0; got {value!r}."
    )


_IN_WORDS = "a number, quantile:0.01, smallest:1000, powered:0.02 or enough:200:50"


def threshold_in_words(text: object) -> Threshold:
    """Return the threshold that a person wrote on a line, in a file or in a field.

    Examples
    --------
    >>> threshold_in_words("smallest:1000"), threshold_in_words("enough")
    (Smallest(k=1000), Enough(pairs=200, queries=50))
    """
    if not isinstance(text, str):
        return as_threshold(text)
    word, *arguments = [part.strip() for part in text.split(":")]
    try:
        if word == "enough" and len(arguments) <= 2:
            return Enough(*map(int, arguments[:1]), *map(float, arguments[1:]))
        if not arguments:
            return as_threshold(float(word))
        if word == "quantile" and len(arguments) == 1:
            return Quantile(float(arguments[0]))
        if word == "smallest" and len(arguments) == 1:
            return Smallest(int(arguments[0]))
        if word == "powered" and len(arguments) <= 2:
            return Powered(*map(float, arguments))
    except MpcError:
        raise
    except ValueError:
        pass
    raise MpcError(f"threshold must be {_IN_WORDS}; got {text!r}.")


def parse_threshold(written: str) -> Threshold:
    """Return the threshold that was written as a text, such as ``Quantile(p=0.01)``."""
    try:
        for kind in (Quantile, Smallest, Powered, Enough):
            if written.startswith(f"{kind.__name__}("):
                inside = written.removeprefix(f"{kind.__name__}(").removesuffix(")")
                options = dict(part.strip().split("=") for part in inside.split(","))
                numbers = {
                    name: int(v) if name in _WHOLE else float(v) for name, v in options.items()
                }
                return kind(**numbers)  # type: ignore[arg-type]
        return float(written)
    except (TypeError, ValueError) as error:
        raise MpcError(
            f"threshold must be a number, Quantile, Smallest, Powered or Enough; got {written!r}."
        ) from error


_STEPS = ("1", "1.5", "2", "3", "5", "7")
_POINTS_AT_MOST = 60


def default_grid(headline: Floats, tied_pairs: bool) -> Floats:
    """Return the grid of a curve: round numbers around the headline thresholds.

    Parameters
    ----------
    headline : float64 array
        The thresholds of all cells; NaN where a cell has no pair.
    tied_pairs : bool
        Whether any pair is tied: the grid then starts at 0.
    """
    # A distance may exceed the largest float; a grid of round numbers cannot.
    positive = headline[(headline > 0) & np.isfinite(headline)]
    if not len(positive):
        return np.zeros(1)
    # A tenth of the smallest floats would be 0, and ten times the largest would be infinite.
    low = max(float(positive.min()) / 10, 5e-324)
    high = min(float(positive.max()), 1e307) * 10
    exponents = range(int(np.floor(np.log10(low))) - 2, int(np.ceil(np.log10(high))) + 2)
    values = np.array([float(f"{step}e{k}") for k in exponents for step in _STEPS])
    values = values[(values > 0) & np.isfinite(values)]
    first = max(int(np.searchsorted(values, low, side="right")) - 1, 0)
    last = min(int(np.searchsorted(values, high, side="left")), len(values) - 1)
    grid = values[first : last + 1]
    if tied_pairs:
        grid = np.concatenate([[0.0], grid])
    if len(grid) > _POINTS_AT_MOST:
        grid = grid[np.unique(np.linspace(0, len(grid) - 1, _POINTS_AT_MOST).round().astype(int))]
    return np.asarray(grid)


_DIGITS = 10


def round_up(epsilon: Floats) -> Floats:
    """Return thresholds rounded up to 10 significant digits; NaN and 0 stay.

    Shares such as 1/2 and 3/6 are equal, but the floating-point numbers for them need
    not be; a threshold that is one of them then reaches all of them.

    Examples
    --------
    >>> round_up(np.array([0.04999999999999993, 0.0]))
    array([0.05, 0.  ])
    """
    known = epsilon > 0
    size = np.where(known, epsilon, 1.0)
    power = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(size)))
    rounded = np.maximum(np.ceil(size * power * (1 - 1e-12)) / power, size)
    return np.where(known, rounded, epsilon)


def ranks(threshold: Quantile | Smallest, pairs: Ints) -> Ints:
    """Return K for each group, limited to the pairs there are."""
    return np.array([min(threshold.rank(int(n)), int(n)) for n in pairs], dtype=np.int64)
