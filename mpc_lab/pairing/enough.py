"""Find the smallest threshold with enough pairs in enough effective queries, without outcomes.

The effective number of queries is not a monotone function of the threshold, so all distances of a
group have to be tried, in ascending order. The closest pairs of all groups are collected in one
pass, and mostly that is enough. Else ranges of distances are halved: one whose pairs are few is
collected and tried distance by distance, and one in which the number asked for cannot be reached is
skipped, for the sum of what queries count and the sum of its squares only grow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from mpc_lab.pairing.kernels import ONE
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.measure import Headline, any_moved, words_of
from mpc_lab.pairing.selection import (
    collect_pairs,
    count_pairs,
    count_up_to,
    kth_smallest_distances,
)
from mpc_lab.pairing.terms import PAIRS, PERCENTILE, QUERIES, QUERY_SD, Enough, Terms, round_up
from mpc_lab.pairing.walk import Source, Walk
from mpc_lab.ranking.spread import NOTHING, exact_mean, exact_sum, squared_deviations
from mpc_lab.scoring import Rule
from mpc_lab.vocabulary import Bytes, Flags, Floats, Ints

SHARE_OF_SPREAD = 0.1
_AT_FIRST = 8  # times the pairs asked for in each group: collect so many before halving any range
_COLLECTED_AT_MOST = 1 << 20
_BELOW_ZERO = -1.0  # every distance is above it
# Square roots added in another order give a slightly different sum.
_ROUNDING = 1e-9


def choose_enough(source: Source, rule: Rule, threshold: Enough) -> tuple[Headline, Flags]:
    """Find the threshold of each group, and say where too few pairs are close.

    Returns
    -------
    Headline
    short : bool array (group,)
        Where the largest threshold allowed has too few pairs, or pairs of too few queries.
    """
    n_groups = len(source.groups)
    epsilon, wanted = np.full(n_groups, np.nan), np.full(n_groups, np.nan)
    all_pairs, short = np.zeros(n_groups, dtype=np.int64), np.zeros(n_groups, dtype=np.bool_)

    def choose(groups: Ints, walk: Walk) -> list[tuple[Ints, Ints, list[_Found]]]:
        found = []
        for word, here in words_of(len(groups)):
            pairs = count_pairs(walk, word, here.stop - here.start)
            reach = SHARE_OF_SPREAD * _spread(source, walk, word, len(pairs))
            search = _Search(walk, word, threshold, source.terms, pairs, reach)
            found.append((groups[here], pairs, search.run()))
        return found

    for words in source.each_walk(rule, choose, "choosing thresholds", any_moved):
        for groups, pairs, chosen in words:
            all_pairs[groups] = pairs
            epsilon[groups] = [one.epsilon for one in chosen]
            wanted[groups] = [one.wanted for one in chosen]
            short[groups] = [one.is_short for one in chosen]
    return Headline(epsilon, wanted, all_pairs.astype(np.float64)), short


def _spread(source: Source, walk: Walk, word: int, n_groups: int) -> Floats:
    """Return the standard deviation of the scores, for each group, on the scale of distances."""
    closeness = source.terms.closeness
    if closeness == QUERY_SD:
        return np.ones(n_groups)
    if closeness == PERCENTILE:
        return np.full(n_groups, math.sqrt(1 / 12))  # evenly spread shares
    n_rows = source.facts.n_rows
    start = np.stack([NOTHING] * n_groups)
    totals = walk.total(partial(_add_scores, word, n_groups, None), "spread of scores", start)
    means = np.array([exact_mean(total, n_rows) for total in totals])
    # Scores beyond 1e150 have no square: a power of two near their size changes no digit.
    size = math.frexp(max(walk(_largest_score, "spread of scores"), default=0.0))[1]
    task = partial(_add_scores, word, n_groups, (means, size))
    squares = walk.total(task, "spread of scores", start)
    return np.array([math.ldexp(math.sqrt(exact_mean(one, n_rows)), size) for one in squares])


def _largest_score(log: Log, first: int, last: int) -> float:
    rows = slice(int(log.starts[log.units[first]]), int(log.starts[log.units[last]]))
    both = (log.score[rows], log.member_score[rows])
    return max(float(np.abs(scores).max(initial=0.0)) for scores in both)


def _add_scores(
    word: int,
    n_groups: int,
    about: tuple[Floats, int] | None,
    log: Log,
    first: int,
    last: int,
) -> Ints:
    """Add up the scores of each group's rule, or squared deviations, exactly.

    `about` holds the mean of each group, and the power of two that scores are divided by.
    """
    rows = slice(int(log.starts[log.units[first]]), int(log.starts[log.units[last]]))
    added = []
    for g in range(n_groups):
        member = (log.masks[word][rows] >> np.uint64(g)) & ONE != 0
        score = np.where(member, log.member_score[rows], log.score[rows])
        if about is not None:
            score = np.ldexp(score, -about[1]) - math.ldexp(about[0][g], -about[1])
        added.append(exact_sum(score) if about is None else squared_deviations(score, 0.0))
    return np.stack(added)


@dataclass(frozen=True)
class _Found:
    """The threshold of one group, the pairs that it takes, and whether these are too few."""

    epsilon: float
    wanted: float
    is_short: bool


@dataclass(frozen=True)
class _State:
    """What holds up to a distance: its rank, and what units count, added up and squared."""

    epsilon: float
    pairs: int
    total: float
    squares: float


@dataclass(frozen=True)
class _Close:
    """Pairs of one group in a range of distances.

    Attributes
    ----------
    distance : float64 array (pair,)
    query, unit : int64 arrays (pair,)
        Numbers that tell queries, and units, from each other.
    before, unit_before : float64 arrays (pair,)
        Pairs of its query, and what its unit counts, below the range.
    """

    distance: Floats
    query: Ints
    unit: Ints
    before: Floats
    unit_before: Floats


class _Search:
    """The search in one word of the masks."""

    def __init__(
        self,
        walk: Walk,
        word: int,
        threshold: Enough,
        terms: Terms,
        pairs: Ints,
        reach: Floats,
    ) -> None:
        self.walk, self.word, self.threshold = walk, word, threshold
        self.pairs, self.reach = pairs, reach
        self.estimand = terms.estimand
        self.rounds = terms.closeness == PERCENTILE
        self.within = count_up_to(walk, word, reach)

    def run(self) -> list[_Found]:
        """Return what was found for each group."""
        # A query counts at least as much as any one of its pairs, so fewer pairs are not enough.
        asked = max(self.threshold.pairs, math.ceil(self.threshold.queries))
        rank = np.minimum(self.within, _AT_FIRST * asked)
        high = self._distances(rank)
        counts = count_up_to(self.walk, self.word, high)
        low = np.full(len(high), _BELOW_ZERO)
        few = (counts > 0) & (counts <= max(_COLLECTED_AT_MOST, _AT_FIRST * asked))
        closest = self._collect(low, high, few)
        return [self._of_group(g, closest.get(g), high[g]) for g in range(len(high))]

    def _of_group(self, g: int, closest: _Close | None, high: float) -> _Found:
        nothing = _State(_BELOW_ZERO, 0, 0.0, 0.0)
        if not self.pairs[g]:
            return _Found(math.nan, math.nan, False)
        if not self.within[g]:
            return _Found(float(self.reach[g]), math.nan, True)
        found = None if closest is None else self._scan(closest, nothing)
        if found is None:
            low = nothing if closest is None else self._state(g, high)
            last = self._state(g, self._distance(g, int(self.within[g])))
            found = self._search(g, low, last)
            if found is None:
                return _Found(self._round(last.epsilon), math.nan, True)
        return found

    def _search(self, g: int, low: _State, high: _State) -> _Found | None:
        """Return the smallest threshold of a range that is enough, None where there is none."""
        needed = self.threshold.queries * low.squares * (1 - _ROUNDING)
        if high.pairs < self.threshold.pairs or high.total**2 < needed or high.pairs <= low.pairs:
            return None
        middle = low.pairs + (high.pairs - low.pairs) // 2
        at = self._distance(g, middle)
        if high.pairs - low.pairs <= _COLLECTED_AT_MOST or at in (low.epsilon, high.epsilon):
            return self._collected(g, low, high)
        split = self._state(g, at)
        return self._search(g, low, split) or self._search(g, split, high)

    def _collected(self, g: int, low: _State, high: _State) -> _Found | None:
        wanted = np.arange(len(self.pairs)) == g
        first = np.where(wanted, low.epsilon, _BELOW_ZERO)
        last = np.where(wanted, high.epsilon, _BELOW_ZERO)
        return self._scan(self._collect(first, last, wanted)[g], low)

    def _scan(self, close: _Close, low: _State) -> _Found | None:
        """Try every distance of some pairs in ascending order."""
        distance = round_up(close.distance) if self.rounds else close.distance
        order = np.argsort(distance, kind="stable")
        distance, query, unit = distance[order], close.query[order], close.unit[order]
        before = close.before[order] + _running(query, np.ones(len(order)))
        more = _weigh_counts(self.estimand, before + 1) - _weigh_counts(self.estimand, before)
        of_unit = close.unit_before[order] + _running(unit, more)
        total = low.total + np.cumsum(more)
        squares = low.squares + np.cumsum(more * (2 * of_unit + more))
        rank = low.pairs + 1 + np.arange(len(order))
        enough = total**2 >= self.threshold.queries * squares * (1 - _ROUNDING)
        enough &= rank >= self.threshold.pairs
        enough[:-1] &= distance[1:] != distance[:-1]  # ties come together
        if not enough.any():
            return None
        epsilon = float(distance[np.argmax(enough)])
        fewer = low.pairs + int(np.searchsorted(distance, epsilon))
        return _Found(epsilon, float(max(self.threshold.pairs, fewer + 1)), False)

    def _state(self, g: int, epsilon: float) -> _State:
        limit = np.full(len(self.pairs), _BELOW_ZERO)
        limit[g] = epsilon
        task = partial(_add_units, self.word, g, limit)
        pairs, total, squares = self.walk.total(task, "counting queries", np.zeros(3))
        return _State(epsilon, int(pairs), float(total), float(squares))

    def _distance(self, g: int, rank: int) -> float:
        ranks = np.minimum(1, self.pairs)
        ranks[g] = rank
        only = np.where(np.arange(len(self.pairs)) == g, self.pairs, 0)
        return float(kth_smallest_distances(self.walk, self.word, only, ranks)[g])

    def _distances(self, rank: Ints) -> Floats:
        some = np.where(rank > 0, self.pairs, 0)
        found = kth_smallest_distances(self.walk, self.word, some, np.maximum(rank, 1))
        return np.where(rank > 0, found, _BELOW_ZERO)

    def _collect(self, low: Floats, high: Floats, wanted: Flags) -> dict[int, _Close]:
        """Return the pairs of the wanted groups with a distance in (low, high]."""
        mask = np.uint64(sum(1 << int(g) for g in np.flatnonzero(wanted)))
        task = partial(_collect, self.word, mask, low, high)
        parts = list(self.walk(task, "selecting thresholds"))
        which = np.concatenate([part[0] for part in parts])
        columns = [np.concatenate(column) for column in zip(*(p[1] for p in parts), strict=True)]
        return {
            int(g): _Close(*(column[which == g] for column in columns))
            for g in np.flatnonzero(wanted)
        }

    def _round(self, epsilon: float) -> float:
        return float(round_up(np.array([epsilon]))[0]) if self.rounds else epsilon


def _weigh_counts(estimand: str, pairs: Floats) -> Floats:
    """Return what queries with this many pairs count."""
    if estimand == PAIRS:
        return pairs
    return np.minimum(pairs, 1.0) if estimand == QUERIES else np.sqrt(pairs)


def _running(key: Ints, values: Floats) -> Floats:
    """Return, for each place, the sum of the values before it that have the same key."""
    order = np.argsort(key, kind="stable")
    total = np.cumsum(values[order]) - values[order]
    starts = np.flatnonzero(np.diff(key[order], prepend=key[order][:1] - 1))
    sizes = np.diff(starts, append=len(key))
    found = np.empty(len(key))
    found[order] = total - np.repeat(total[starts], sizes)
    return found


def _add_units(word: int, g: int, limit: Floats, log: Log, first: int, last: int) -> Floats:
    """Add up the pairs of a group up to its limit, what units count by them, and its squares."""
    mask = np.uint64(1 << g)
    *_, count = collect_pairs(word, mask, limit, limit, log, first, last, by_query=True)
    pairs = count[:, g].astype(np.float64)
    counted = _by_unit(log, first, last, _weigh_counts(log.estimand, pairs))
    return np.array([pairs.sum(), counted.sum(), (counted**2).sum()])


def _by_unit(log: Log, first: int, last: int, of_query: Floats) -> Floats:
    units = log.units[first : last + 1] - log.units[first]
    return np.add.reduceat(np.append(of_query, 0.0), units[:-1]) if len(of_query) else of_query


def _collect(
    word: int, mask: np.uint64, low: Floats, high: Floats, log: Log, first: int, last: int
) -> tuple[Bytes, tuple[Floats, Ints, Ints, Floats, Floats]]:
    """Return the group of each pair with a distance in (low, high], and what `_Close` has."""
    how = (word, mask, low, high, log, first, last)
    which, distance, query, whole = collect_pairs(*how, by_query=True)
    count = whole.astype(np.float64)
    origin = int(log.units[first])
    unit = np.searchsorted(log.units, query + origin, side="right") - 1
    of_query = _weigh_counts(log.estimand, count)
    of_unit = np.zeros((last - first, len(low)))
    for g in np.unique(which):
        of_unit[:, g] = _by_unit(log, first, last, of_query[:, g])
    # Each part of a log numbers its queries from its own first query.
    numbers = query + origin + log.origin, log.units[unit] + log.origin
    return which, (distance, *numbers, count[query, which], of_unit[unit - first, which])
