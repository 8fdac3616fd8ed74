"""The words that every room shares, each with everything that is said and drawn about it.

May import from: errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mpc_lab.errors import MpcError

# ---- arrays: the only ones that kernels take, and labels

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Masks = NDArray[np.uint64]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Texts = NDArray[np.str_]
Objects = NDArray[np.object_]
# Bins of ε; there are few of them.
Bins = NDArray[np.int32]
FirstBins = NDArray[np.uint8] | NDArray[np.uint16]

# ---- modes: who is paired with whom


@dataclass(frozen=True)
class Side:
    """Which pairs are on one side of a tie, as the numbers that kernels take.

    An item i of the group and an item j outside it, of one query, are a pair where the signed
    distance s(j) − s(i) is between `low` and `high` times ε. The interval holds 0 or begins
    there, so that pairs only ever join as ε grows; what is added up bin by bin relies on it.

    Attributes
    ----------
    low, high : float
        Ends of the interval as multiples of ε; `low` at most 0, `high` at least 0.
    low_closed, high_closed : bool
        Whether a pair at that end counts. A tie is a pair where the interval holds 0.
    neighbours : bool
        Whether i and j have to be neighbours in the ranked list.
    tie_weight : float
        What a tied pair counts; below 1 where it is on two sides of one mode.
    """

    low: float
    high: float
    low_closed: bool = True
    high_closed: bool = True
    neighbours: bool = False
    tie_weight: float = 1.0

    def __post_init__(self) -> None:
        if not -np.inf < self.low <= 0 <= self.high < np.inf:
            raise MpcError(
                "The interval of a side, in units of ε, must be finite and contain 0; got "
                f"{self.low!r} to {self.high!r}."
            )
        if self.low == self.high and not self.ties:
            raise MpcError("The interval of a side must hold a distance; got one that is empty.")

    @property
    def up(self) -> bool:
        """Whether the group's item may have the lower score of the two."""
        return self.high > 0

    @property
    def down(self) -> bool:
        """Whether the group's item may have the higher score of the two."""
        return self.low < 0

    @property
    def ties(self) -> bool:
        """Whether two equal scores make a pair."""
        return (self.low < 0 or self.low_closed) and (self.high > 0 or self.high_closed)

    def edges(self, epsilon: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the largest distance of a pair up, of a pair down, and 0 or more for a tie.

        All ends are closed: an open one is the number just before it. Below 0 there is no pair.
        """
        epsilon = np.asarray(epsilon, dtype=np.float64)

        def end(multiple: float, closed: bool) -> Floats:
            # Not 0 × ε, which is NaN for an infinite ε.
            edge = multiple * epsilon if multiple > 0 else np.zeros(epsilon.shape)
            edge = edge if closed else np.nextafter(edge, -np.inf)
            return np.where(epsilon < 0, epsilon, edge)

        up, down = end(self.high, self.high_closed), end(-self.low, self.low_closed)
        return up, down, np.minimum(up, down)


_ENDS = ((min, "low"), (max, "high"))


@dataclass(frozen=True)
class Mode:
    """A pairing mode: which pairs it keeps, and everything that is said and drawn about it.

    Attributes
    ----------
    name : str
    sides : tuple of Side
        One; or two, and the estimate is the mean of what each of them gives.
    bracket : str
        The mode whose interval a verdict rests on too: the hull of both must leave out 0, or be
        inside the tolerance. By default none, and the verdict rests on the mode's own interval.
    judged_by : str
        The mode whose verdict this one carries; by default its own.
    against : str
        Whom the items of the group are compared with, after "higher than for".
    those : str
        The same, where "the items" were named just before.
    against_with_ties, those_with_ties : str
        Both where some of the pairs are tied; by default the same words.
    method : str
        Which pairs it keeps, in the method section of a report.
    label : str
        Its name in the legend of a chart.
    made_of : tuple of str
        The modes that are its two sides with ties in full.
    """

    name: str
    sides: tuple[Side, ...]
    bracket: str = ""
    judged_by: str = ""
    against: str = ""
    those: str = ""
    against_with_ties: str = ""
    those_with_ties: str = ""
    method: str = ""
    label: str = ""
    made_of: tuple[str, ...] = ()

    @property
    def side(self) -> Side:
        """The side that holds all of its pairs, each once: its only one, or all of them joined."""
        first = self.sides[0]
        if len(self.sides) == 1:
            return first
        low, high = (pick(getattr(side, end) for side in self.sides) for pick, end in _ENDS)
        return Side(low, high, neighbours=first.neighbours)

    @property
    def two_sided(self) -> bool:
        """Whether its estimate is the mean of two sides of a tie."""
        return len(self.sides) > 1

    @property
    def needs(self) -> tuple[str, ...]:
        """The other modes that its estimate or its verdict needs."""
        return tuple(name for name in (self.bracket, self.judged_by, *self.made_of) if name)

    def compared_with(self, epsilon: float, ties: bool) -> str:
        """Return whom the items of a group are compared with, after "higher than for".

        Parameters
        ----------
        epsilon : float
            The largest distance of a pair; at 0 all pairs are tied.
        ties : bool
            Whether any pairs are tied.

        Examples
        --------
        >>> MATCHED.compared_with(0.01, ties=False)
        'the items ranked just above them'
        >>> MATCHED.compared_with(0.01, ties=True)
        'the items with the same score or ranked just above them'
        >>> MATCHED.compared_with(0.0, ties=True)
        'items with the same score'
        """
        if epsilon == 0 and not self.side.neighbours:
            return "items with the same score"
        return (self.against_with_ties if ties else "") or self.against

    def compared_too(self, ties: bool) -> str:
        """Return whom they are compared with too, where "the items" were named just before."""
        return (self.those_with_ties if ties else "") or self.those


MATCHED = Mode(
    "matched",
    (Side(0.0, 1.0),),
    bracket="mirrored",
    against="the items ranked just above them",
    those="those ranked just above them",
    against_with_ties="the items with the same score or ranked just above them",
    those_with_ties="those with the same score or ranked just above them",
    method="the group's item is tied with the other, or scored at most ε below it",
    label="matched (group's item scored lower)",
)
MIRRORED = Mode(
    "mirrored",
    (Side(-1.0, 0.0),),
    judged_by="matched",
    against="the items ranked just below them",
    those="those ranked just below them",
    against_with_ties="the items with the same score or ranked just below them",
    those_with_ties="those with the same score or ranked just below them",
    method="tied with the other, or scored at most ε above it",
    label="mirrored (group's item scored higher)",
)
ADJACENT = Mode(
    "adjacent",
    (Side(-1.0, 1.0, neighbours=True),),
    against="their neighbours in the list",
    those="their neighbours in the list",
    method="neighbours in the ranked list, at most ε apart",
    label="adjacent (neighbours in the list)",
)
SYMMETRIC = Mode(
    "symmetric",
    (Side(0.0, 1.0, tie_weight=0.5), Side(-1.0, 0.0, tie_weight=0.5)),
    against="the items ranked just above and just below them",
    those="those ranked just above and just below them",
    against_with_ties="the items with the same score or ranked just above or just below them",
    those_with_ties="those with the same score or ranked just above or just below them",
    method="scored at most ε above or below the other, and the mean is taken of the pairs with the "
    "group's item lower and of those with it higher",
    label="symmetric (both sides of a tie)",
    made_of=("matched", "mirrored"),
)
# The pairs on both sides of a tie.
TIES = Side(0.0, 0.0)
# In the order in which they are swept, stored and read.
MODES = {mode.name: mode for mode in (MATCHED, MIRRORED, ADJACENT, SYMMETRIC)}


def register_mode(mode: Mode) -> Mode:
    """Let audits pair by a further mode, which comes last in the order of modes.

    Examples
    --------
    >>> tied = Mode("tied", (Side(0.0, 0.0),), against="the items tied with them")
    >>> register_mode(tied).name
    'tied'
    >>> _ = MODES.pop("tied")
    """
    if mode.name in MODES:
        raise MpcError(f"The name of a mode must be new; got {mode.name!r}. Choose another.")
    if len(mode.sides) != 1:
        raise MpcError(f"A mode must have one side; got {len(mode.sides)}.")
    for name in mode.needs:
        if name not in MODES:
            raise MpcError(f"Mode {mode.name!r} must be built on modes that exist; got {name!r}.")
    MODES[mode.name] = mode
    return mode


def verdict_modes(name: str) -> tuple[str, ...]:
    """Return the modes whose intervals the verdict of a mode rests on: one, or a bracket of two.

    Examples
    --------
    >>> verdict_modes("mirrored"), verdict_modes("adjacent")
    (('matched', 'mirrored'), ('adjacent',))
    """
    judge = MODES[MODES[name].judged_by or name]
    return (judge.name, judge.bracket) if judge.bracket else (judge.name,)


def default_modes(has_positions: bool) -> tuple[str, ...]:
    """Return the modes of an audit that names none: both sides first where places are known."""
    return (SYMMETRIC.name, MATCHED.name) if has_positions else (MATCHED.name,)


def swept_modes(asked: Iterable[str]) -> tuple[Mode, ...]:
    """Return the modes to sum over, in their order: those asked for and what their verdicts need.

    ``matched`` is always among them, because thresholds count its pairs.
    """
    wanted = [MATCHED.name, *asked]
    for name in wanted:
        wanted += [other for other in MODES[name].needs if other not in wanted]
    return tuple(mode for name, mode in MODES.items() if name in wanted)


# ---- variances: whose pairs move together

# Sums over clusters that any log gives, and those that need items. "naive": each pair is its own
# cluster; "dyad": the pairs of the same two items; "_query": inside one query (or unit).
QUERY_SUMS = ("naive", "query")
ITEM_SUMS = ("item", "dyad", "item_query", "dyad_query")
# What the pairs of an item are summed by: the item, or its producer. Either gives `ITEM_SUMS`.
ITEM, PRODUCER = "item", "producer"
# Sums in which a cluster's sum is divided by 1 less its share of the pairs before squaring.
WEIGHED_SUMS = ("query", "item")
CR3, PLAIN = "cr3", "plain"
CORRECTIONS = (CR3, PLAIN)
# The name of the query variance with that correction, beside the plain ones.
QUERY_CR3 = "query_cr3"
_GREY = "#7a7a7a"


@dataclass(frozen=True)
class Variance:
    """One way to assemble the variance of a mean over pairs from sums over clusters.

    Attributes
    ----------
    name : str
        As in ``cluster=`` and along the dim ``variance`` of ``std_error_by``.
    terms : mapping of str to int
        The sums over clusters that are added, and the sign of each.
    clusters : {"pairs", "queries", "items", "fewest"}
        Whose effective number G gives the degrees of freedom; "fewest" is the smaller of queries
        and items, the latter only where some item is in two queries.
    factor : {"none", "plain", "effective"}
        The correction: none, Q/(Q − 1) with the plain number of queries, or G/(G − 1).
    at_least : tuple of str
        Variances that it never falls below: the largest of these and of itself is used.
    owner : {"", "item", "producer"}
        What items must be summed by for it; "" if either is possible.
    public : bool
        Whether ``cluster=`` and ``std_error_by`` know it.
    correction, cr3 : str
        The plain correction in words, and that for heavy clusters, for the attributes of an audit.
    clustered : str
        How pairs are clustered, as a summary says it.
    label, colour, shape : str
        On charts.
    """

    name: str
    terms: Mapping[str, int]
    clusters: Literal["pairs", "queries", "items", "fewest"] = "queries"
    factor: Literal["none", "plain", "effective"] = "effective"
    at_least: tuple[str, ...] = ()
    owner: str = ""
    public: bool = True
    correction: str = ""
    cr3: str = ""
    clustered: str = ""
    label: str = ""
    colour: str = _GREY
    shape: str = "circle"

    @property
    def needs_items(self) -> bool:
        """Whether it needs sums over items."""
        return any(name in ITEM_SUMS for name in self.terms)

    def goes_with(self, owner: str) -> bool:
        """Whether it can use sums over items, or over producers, as `owner` says."""
        return self.owner in ("", owner)

    def floors(self, owner: str) -> tuple[str, ...]:
        """Return `at_least` with the variance of those that were summed over."""
        return tuple(owner if name == ITEM else name for name in self.at_least)

    def clustered_by(self, owner: str) -> str:
        """Return how pairs are clustered, in words, where items are summed by `owner`."""
        return of_owner(self.clustered, owner) if not self.owner else self.clustered

    @property
    def is_weighed(self) -> bool:
        """Whether clusters that hold many pairs are corrected for in it."""
        return any(name in WEIGHED_SUMS for name in self.terms)

    def describe_correction(self, correction: str) -> str:
        """Return a correction in words."""
        return self.cr3 if correction == CR3 and self.is_weighed else self.correction


_CR3 = "CR3, the sum of each cluster divided by 1 less its share of the pairs"
VARIANCES: dict[str, Variance] = {
    variance.name: variance
    for variance in (
        Variance(
            "naive",
            {"naive": 1},
            clusters="pairs",
            factor="none",
            correction="none; t with P − 1 degrees of freedom, P pairs",
            clustered="not at all (cluster 'naive': pairs taken as independent, which they are "
            "not)",
            label="naive: pairs independent",
            shape="cross",
        ),
        Variance(
            "query",
            {"query": 1},
            factor="plain",
            correction="Q/(Q − 1), Q queries or units with a pair; t with G − 1 degrees of "
            "freedom, G effective queries or units",
            cr3=f"{_CR3}, times (Q − 1)/Q, Q queries or units with a pair; t with G − 1 degrees of "
            "freedom, G effective queries or units",
            clustered="by query (cluster 'query')",
            label="by query",
            colour="#00808c",
        ),
        Variance(
            "item",
            {"item": 1, "dyad": -1},
            clusters="items",
            owner=ITEM,
            correction="G/(G − 1), G effective items; t with G − 1 degrees of freedom",
            cr3=f"{_CR3}; t with G − 1 degrees of freedom, G effective items",
            clustered="by item (cluster 'item')",
            label="by item",
            colour="#c0699b",
            shape="square",
        ),
        Variance(
            "producer",
            {"item": 1, "dyad": -1},
            clusters="items",
            owner=PRODUCER,
            correction="G/(G − 1), G effective producers; t with G − 1 degrees of freedom",
            cr3=f"{_CR3}; t with G − 1 degrees of freedom, G effective producers",
            clustered="by producer (cluster 'producer')",
            label="by producer",
            colour="#5b6fc4",
            shape="triangle-up",
        ),
        Variance("both", {"item_query": 1, "dyad_query": -1}, public=False),
        Variance(
            "union",
            {"item": 1, "dyad": -1, "query": 1, "item_query": -1, "dyad_query": 1},
            clusters="fewest",
            at_least=("query", "item"),
            correction="the largest of the union, query and item variance times G/(G − 1), G the "
            "fewest effective queries or items; t with G − 1 degrees of freedom",
            cr3=f"{_CR3}, the largest of the union, query and item variance; t with G − 1 degrees "
            "of freedom, G the fewest effective queries or items",
            clustered="by query and by item (cluster 'union')",
            label="by query and item",
            colour="#a08a00",
            shape="diamond",
        ),
    )
}


def of_owner(words: str, owner: str) -> str:
    """Return words about items with producers in their place, where these are summed over.

    Examples
    --------
    >>> of_owner("few queries or items", "producer")
    'few queries or producers'
    """
    return words if owner == ITEM else re.sub(r"\bitem(s?)\b", rf"{owner}\1", words)


def public_variances() -> tuple[str, ...]:
    """Return the names that ``cluster=`` knows, in their order."""
    return tuple(name for name, variance in VARIANCES.items() if variance.public)


def listed_variances() -> tuple[str, ...]:
    """Return the names that ``std_error_by`` knows, in their order."""
    return (*public_variances(), QUERY_CR3)


# ---- verdicts: what is concluded about a group


@dataclass(frozen=True)
class Verdict:
    """What is concluded about a group, and how it looks.

    Attributes
    ----------
    name : str
    rests_on : str
        When it is given, as a clause about the bracket.
    is_direction : bool
        Whether it says which way a group is off: these are the findings.
    mark : str
        In front of it in tables.
    colour, shape : str
        On charts and in tables.
    """

    name: str
    rests_on: str
    mark: str
    shape: str
    colour: str = _GREY
    is_direction: bool = False


UNDERVALUED = "undervalued"
OVERVALUED = "overvalued"
WITHIN = "within tolerance"
INCONCLUSIVE = "inconclusive"
NOT_ESTIMABLE = "not estimable"
# In the order in which people read them.
VERDICTS: dict[str, Verdict] = {
    verdict.name: verdict
    for verdict in (
        Verdict(
            UNDERVALUED,
            "undervalued where it is above 0",
            mark="▲",
            shape="triangle-up",
            colour="#b4500f",
            is_direction=True,
        ),
        Verdict(
            OVERVALUED,
            "overvalued where it is below 0",
            mark="▼",
            shape="triangle-down",
            colour="#1f6bb8",
            is_direction=True,
        ),
        Verdict(
            WITHIN,
            "within tolerance where it is inside the tolerance",
            mark="=",
            shape="square",
            colour="#009e73",
        ),
        Verdict(
            INCONCLUSIVE,
            "otherwise inconclusive, which is not the same as no gap",
            mark="●",
            shape="circle",
        ),
        Verdict(NOT_ESTIMABLE, "", mark="–", shape="cross"),
    )
}
DIRECTIONS = tuple(name for name, verdict in VERDICTS.items() if verdict.is_direction)


@dataclass(frozen=True)
class Reason:
    """Why a group with an interval gets no direction.

    Attributes
    ----------
    name : str
        As in ``verdict_reason``.
    sentence : str
        What it means, as a clause.
    """

    name: str
    sentence: str


BRACKET = "bracket"
SHOWN_ORDER = "shown order"
AGAINST = "scores run against outcomes"
COMPLEMENT = "complement says the same"
# An interval that covers 0 needs no such words.
REASONS: dict[str, Reason] = {
    reason.name: reason
    for reason in (
        Reason(
            BRACKET,
            "the intervals for the items just above and for those just below do not both exclude 0 "
            "on the same side, as may happen in a ranking without bias too",
        ),
        Reason(
            SHOWN_ORDER,
            "the pairs were not shown in the order that these words need, so that the effect of "
            "the place cannot be distinguished from a gap",
        ),
        Reason(
            AGAINST,
            "higher than for the items ranked just above them and lower than for those just below; "
            "the score may be upside down, such as a distance or a rank",
        ),
        Reason(
            COMPLEMENT,
            "all items outside the group are a group too, and at its own threshold it would get "
            "the same direction, which cannot be true of both; audit them at one threshold",
        ),
    )
}
