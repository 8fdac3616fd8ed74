"""What a comparator is given, and what it gives: a number, its interval, what it conditions on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab.errors import check_count
from mpc_lab.inference.clustered import Clustered, query_clusters
from mpc_lab.inference.estimates import significance
from mpc_lab.pairing.kernels import kernel
from mpc_lab.pairing.log import Log, sort_rows
from mpc_lab.vocabulary import OVERVALUED, UNDERVALUED, Flags, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

_NAN = float("nan")
BINS = 20
_BINS_AT_MOST = 1_000
Interval = Callable[[float], tuple[float, float]]


@dataclass(frozen=True)
class Lists:
    """Rows in the order of their lists, query by query.

    Attributes
    ----------
    row : int64 array
        The row of the ranking at this place.
    query : int64 array
        Its query code.
    rank : int64 array
        Its place in the list, from 1.
    position : int64 array
        Its logged position where the list is the logged one, else its rank.
    starts : int64 array, one longer than the number of queries
        Where each list starts.
    cluster : int64 array (query,)
        The cluster of each query code.
    n_clusters : int
    weight : float64 array (query,), optional
        How much each query code counts; by default 1.
    """

    row: Ints
    query: Ints
    rank: Ints
    position: Ints
    starts: Ints
    cluster: Ints
    n_clusters: int
    weight: Floats | None = None

    @property
    def n_queries(self) -> int:
        """Number of lists."""
        return len(self.starts) - 1

    def by_cluster(self, values: Floats, query: Ints | None = None) -> Floats:
        """Add up over clusters one number a row, or one number for each of the given queries.

        Each number is multiplied by the weight of its query.
        """
        query = self.query if query is None else query
        values = values if self.weight is None else self.weight[query] * values
        return add_up(self.cluster[query], values, self.n_clusters)

    def by_query(self, values: Floats | Flags) -> Floats:
        """Add up one number a row over queries, in the order of query codes."""
        return add_up(self.query, values, self.n_queries)

    @cached_property
    def sizes(self) -> Floats:
        """Rows of each query code."""
        return self.by_query(np.ones(len(self.row)))

    @cached_property
    def discount(self) -> Floats:
        """1/log₂(1 + rank) of each row."""
        return np.asarray(1 / np.log2(self.rank + 1.0))

    @cached_property
    def discounts(self) -> Floats:
        """The discounts of each query code, added up."""
        return self.by_query(self.discount)

    @cached_property
    def exposure(self) -> Floats:
        """1/log₂(1 + position) of each row."""
        if self.position is self.rank:
            return self.discount
        return np.asarray(1 / np.log2(self.position + 1.0))

    @cached_property
    def clusters(self) -> Floats:
        """What the queries of each cluster count."""
        return self.by_cluster(np.ones(self.n_queries), np.arange(self.n_queries))

    @cached_property
    def uppers(self) -> Ints:
        """The rows that have a neighbour just below them in their list."""
        below = (self.query[1:] == self.query[:-1]) & (np.diff(self.position) == 1)
        return np.flatnonzero(below)


@kernel
def add_up(code: Ints, values: Floats | Flags, n: int) -> Floats:
    """Return the sum of the values that have each code from 0 to before n."""
    total = np.zeros(n)
    for k in range(len(code)):
        total[code[k]] += values[k]
    return total


class Case:
    """A group of a ranking under some scores: what every comparator is given.

    Parameters
    ----------
    ranking : Ranking
    group : str
    scores : float64 array, optional
        Scores of a rule other than the logged one.
    k : int
        Places at the top, for Skew@k.
    level : float
        Confidence level of the intervals.
    seed : int
        Seed of the comparators that simulate.
    log : Log, optional
        The rows sorted by these scores, where they are sorted already.
    like : Case, optional
        The case of another group under the same scores, to reuse what does not depend on the group.
    """

    def __init__(
        self,
        ranking: Ranking,
        group: str,
        *,
        scores: Floats | None = None,
        k: int = 10,
        level: float = 0.95,
        seed: int = 0,
        log: Log | None = None,
        like: Case | None = None,
    ) -> None:
        self.ranking, self.group, self.scores = ranking, group, scores
        self.k, self.level, self.seed = k, level, seed
        self.member: Flags = ranking.member(group)
        self._log, self._like = log, like
        self._bins: dict[int, Ints] = {}

    @cached_property
    def log(self) -> Log:
        """The rows sorted by query and score."""
        if self._like is not None:
            return self._like.log
        return sort_rows(self.ranking, self.scores) if self._log is None else self._log

    @cached_property
    def listed_outcome(self) -> Floats:
        """The outcome of each row of `lists`."""
        if self._like is not None:
            return self._like.listed_outcome
        return self.ranking.outcome[self.lists.row]

    @cached_property
    def listed_member(self) -> Flags:
        """Whether each row of `lists` is in the group."""
        return self.member[self.lists.row]

    @cached_property
    def n_inside(self) -> Floats:
        """Rows of the group of each query code."""
        return self.lists.by_query(self.listed_member)

    @cached_property
    def middle(self) -> float:
        """The median outcome of all rows."""
        return float(np.median(self.ranking.outcome)) if self._like is None else self._like.middle

    @cached_property
    def lists(self) -> Lists:
        """The ranked lists.

        Under the logged scores with logged positions, the order of positions; in every other case
        descending score, a tie broken by position where there is one, else by the order of the
        input.
        """
        if self._like is not None:
            return self._like.lists
        ranking, log = self.ranking, self.log
        sizes = np.diff(log.starts)
        rank = np.arange(len(log.row)) - np.repeat(log.starts[:-1], sizes) + 1
        row = log.row[np.repeat(log.starts[1:], sizes) - rank]
        position = rank
        if self.scores is None and ranking.position is not None:
            of_list = np.repeat(np.arange(len(sizes)), sizes)
            row = row[np.lexsort((ranking.position[row], of_list))]
            position = ranking.position[row]
        cluster, n_clusters = query_clusters(ranking)
        return Lists(
            row=row,
            query=ranking.query_code[row],
            rank=rank,
            position=position,
            starts=log.starts,
            cluster=cluster,
            n_clusters=n_clusters,
            weight=ranking.query_weights,
        )

    def bins(self, number: int) -> Ints:
        """Return the bin of each row of the ranking: see `score_bins`."""
        if self._like is not None:
            return self._like.bins(number)
        if number not in self._bins:
            scores = self.ranking.score if self.scores is None else self.scores
            self._bins[number] = score_bins(scores, number)
        return self._bins[number]


def check_bins(bins: object) -> int:
    """Accept a number of bins."""
    return check_count("bins", bins, at_most=_BINS_AT_MOST)


def score_bins(scores: Floats, bins: int = BINS) -> Ints:
    """Return the bin of each row: `bins` bins of equal counts, but tied scores stay together.

    Bin b ends at the score that ⌈(b + 1)·n/bins⌉ rows do not exceed.
    """
    bins = check_bins(bins)
    n = len(scores)
    last = np.array([-(-(b + 1) * n // bins) - 1 for b in range(bins - 1)], dtype=np.int64)
    ends = np.sort(scores)[np.maximum(last, 0)]
    return np.searchsorted(ends, scores, side="left").astype(np.int64)


@dataclass(frozen=True)
class Conditions:
    """What a comparator holds fixed and what it looks at.

    Attributes
    ----------
    scores : {"close", "binned", "neighbours", "all"}
        Whether the items compared have close scores, scores in one of a few bins, are next to
        each other in the list, or have any scores.
    queries : {"same", "all"}
        Whether they come from one query.
    looks_at : {"outcomes", "exposure", "both"}
        Whether it looks at outcomes, only at who is shown where, or at one relative to the other.
    """

    scores: str
    queries: str
    looks_at: str


@dataclass(frozen=True)
class Comparison:
    """What one comparator says of one group.

    Attributes
    ----------
    name : str
    estimate, std_error, ci_low, ci_high, p_value : float
        NaN where there is none; the estimate may be there without an interval.
    null : float
        The value at which nothing is wrong; NaN where the comparator has no such value.
    high_is : {"undervalued", "overvalued", ""}
        What an estimate above `null` says of the group; "" where it says neither.
    flagged : bool
        Whether `p_adjusted` is at most 1 − level; of a group by itself, whether the interval (for
        one-sided tests, the p-value) excludes `null`.
    says : {"undervalued", "overvalued", ""}
        What a flag says of the group; "" where it is not flagged.
    leans : {"undervalued", "overvalued", ""}
        What a flag would say.
    conditions : Conditions
    inside, outside : float
        The two numbers that are compared, in the group and outside it, where there are two.
    n_effective : float
        Effective number of queries.
    left_out : int
        How many bins, queries or inequalities could not be used.
    reason : str
        Why there is no interval; "" where there is one.
    two_sided : bool
        Whether the p-value is two-sided; the interval always is.
    interval : callable, optional
        From a probability to the ends of the interval that misses with that probability.
    p_adjusted, ci_low_adjusted, ci_high_adjusted : float
        Adjusted by Holm over the groups of this measure; NaN before that.
    p_overall : float
        Adjusted by Holm over the groups of all rivals together; NaN before that.
    """

    name: str
    estimate: float
    conditions: Conditions
    std_error: float = _NAN
    ci_low: float = _NAN
    ci_high: float = _NAN
    p_value: float = _NAN
    null: float = 0.0
    high_is: str = ""
    flagged: bool = False
    says: str = ""
    leans: str = ""
    inside: float = _NAN
    outside: float = _NAN
    n_effective: float = _NAN
    left_out: int = 0
    reason: str = ""
    two_sided: bool = True
    interval: Interval | None = field(default=None, repr=False, compare=False)
    p_adjusted: float = _NAN
    ci_low_adjusted: float = _NAN
    ci_high_adjusted: float = _NAN
    p_overall: float = _NAN


def comparison(
    name: str,
    found: Clustered,
    conditions: Conditions,
    *,
    high_is: str = "",
    interval: Interval | None = None,
    **parts: Any,
) -> Comparison:
    """Return a comparison that is flagged where its interval excludes its null.

    At other levels its interval is that of `found`, unless another is given.
    """
    made = Comparison(
        name=name,
        estimate=found.estimate,
        conditions=conditions,
        std_error=found.std_error,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        p_value=found.p_value,
        null=found.null,
        high_is=high_is,
        n_effective=found.n_effective,
        reason=found.reason,
        interval=interval or found.interval,
        **parts,
    )
    return flag_by_interval(made)


def flag_by_interval(made: Comparison) -> Comparison:
    """Return the comparison with its flag and what it says, from its interval."""
    above, below = made.ci_low > made.null, made.ci_high < made.null
    low_is = {UNDERVALUED: OVERVALUED, OVERVALUED: UNDERVALUED}.get(made.high_is, "")
    high = above or (not below and made.estimate > made.null)
    leans = made.high_is if high else low_is
    flagged = bool(above or below)
    return replace(made, flagged=flagged, leans=leans, says=leans if flagged else "")


def flag_by_p_value(made: Comparison, level: float) -> Comparison:
    """Return the comparison with its flag from a p-value that is not that of its interval."""
    flagged = bool(made.p_value <= significance(level))
    return replace(made, flagged=flagged, says=made.leans if flagged else "")


def on_log_scale(found: Clustered) -> Clustered:
    """Turn an estimate of ln R with null 0 into one of R with null 1.

    The interval is that of ln R, carried over; the standard error is R·SE(ln R).
    """
    with np.errstate(over="ignore"):
        value, low, high = np.exp([found.estimate, found.ci_low, found.ci_high]).tolist()
    return replace(
        found,
        estimate=value,
        std_error=value * found.std_error,
        ci_low=low,
        ci_high=high,
        null=1.0,
    )


def log_interval(found: Clustered, a: float) -> tuple[float, float]:
    """Return the interval of R from an estimate of ln R."""
    with np.errstate(over="ignore"):
        low, high = np.exp(found.interval(a)).tolist()
    return low, high


def share(part: Floats, whole: Floats) -> float:
    """Return Σpart/Σwhole; NaN where there is nothing."""
    total = float(np.sum(whole))
    return float(np.sum(part)) / total if total else _NAN
