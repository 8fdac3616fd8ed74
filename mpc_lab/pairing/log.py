"""The form of a log that kernels walk: rows sorted by unit, query and score."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mpc_lab.pairing.kernels import interruptible, kernel, sort_order, stable_order
from mpc_lab.pairing.terms import ESTIMANDS, PAIRS, PERCENTILE, QUERY_SD, SIGN, Terms
from mpc_lab.pairing.weighting import ListedWeights, Weights
from mpc_lab.vocabulary import PRODUCER, Flags, Floats, Ints, Masks

if TYPE_CHECKING:
    from mpc_lab.pairing.terms import Terms
    from mpc_lab.ranking import Ranking


ROWS_IN_A_BLOCK = 1 << 16


@kernel
def _subtract(values: Floats, one: Ints, other: Ints) -> Floats:
    """Return the values of some rows less those of others, without an array of either."""
    found = np.empty(len(one))
    for p in range(len(one)):
        found[p] = values[one[p]] - values[other[p]]
    return found


@dataclass(frozen=True)
class Log:
    """Rows sorted by (unit, query, score), so that a query is a run and a unit a run of queries.

    Read from its end, the run of a query is its ranked list: descending score, a tie in the order
    of logged positions where there are any, else in the order of the input.

    Attributes
    ----------
    units : int64 array, one longer than the number of units
        Where each unit starts, as an index into `starts`.
    starts : int64 array, one longer than the number of queries
        Where each query starts, as an index into the rows.
    score, outcome : float64 arrays
    masks : uint64 array (word, row)
        Group membership, one bit a group.
    item : int64 array
        Item codes; empty when items are not known.
    owner : int64 array
        Codes of producers; empty where items are clusters of their own.
    below : int64 array
        The row just below this one in the ranked list, or -1.
    row : int64 array
        The row of the ranking at this place.
    tie : int64 array
        Ascends among rows of one query and score.
    origin : int
        How many queries precede these where the log is a part of a larger one.
    sign : bool
        Whether a pair counts by the sign of its difference in outcomes.
    weight : float64 array (query,)
        How much each query counts; empty where each counts 1.
    estimand : str
        What a pair of a query counts, see `mpc_lab.pairing.terms.Terms`.
    extra : float64 array (row of the ranking, column)
        Further numbers that a question reads, by `row`; empty for most.
    """

    units: Ints
    starts: Ints
    score: Floats
    outcome: Floats
    masks: Masks
    item: Ints
    below: Ints
    row: Ints
    tie: Ints
    origin: int = 0
    sign: bool = False
    owner: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    weight: Floats = field(default_factory=lambda: np.empty(0))
    estimand: str = PAIRS
    extra: Floats = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def cluster(self) -> Ints:
        """The cluster of each row's pairs: its producer, or its item."""
        return self.owner if len(self.owner) else self.item

    @property
    def weights(self) -> Weights | None:
        """What the pairs of each query count; None where every pair counts 1."""
        if self.estimand == PAIRS and not len(self.weight):
            return None
        every = self.weight if len(self.weight) else np.ones(len(self.starts) - 1)
        return Weights(every, ESTIMANDS.index(self.estimand))

    @property
    def member_score(self) -> Floats:
        """The score of each row when a group it is in is looked at."""
        return self.score

    def contrast(self, one: Ints, other: Ints) -> Floats:
        """Return by how much the outcomes of some rows are above those of others, or the sign."""
        difference = _subtract(self.outcome, one, other)
        return np.sign(difference) if self.sign else difference

    def distance(self, one: Ints, other: Ints) -> Floats:
        """Return how far apart the scores of two rows are; infinite beyond the largest number."""
        apart = _subtract(self.score, one, other)
        return np.abs(apart, out=apart)

    def weights_of(self, rows: Ints) -> ListedWeights | None:
        """Return what pairs count, given a row of each; None where every pair counts 1."""
        weights = self.weights
        if weights is None:
            return None
        query = np.searchsorted(self.starts, rows, side="right") - 1
        return ListedWeights(query, weights.weight[query], weights.estimand)

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Runs of whole units of about `ROWS_IN_A_BLOCK` rows; they depend on the data alone."""
        return block_bounds(self.starts[self.units], ROWS_IN_A_BLOCK)


def block_bounds(first_rows: Ints, rows_in_a_block: int) -> list[tuple[int, int]]:
    """Cut units, given by their first rows, into runs of at least `rows_in_a_block` rows."""
    n_units = len(first_rows) - 1
    bounds = [0]
    while bounds[-1] < n_units:
        target = first_rows[bounds[-1]] + rows_in_a_block
        bounds.append(min(n_units, int(np.searchsorted(first_rows, target, side="left"))))
    return list(itertools.pairwise(bounds))


def sort_rows(ranking: Ranking, score: Floats | None = None, masks: Masks | None = None) -> Log:
    """Sort a ranking into the form that kernels walk.

    Parameters
    ----------
    ranking : Ranking
    score : float64 array, optional
        Scores of another rule. The ranked list of the logged scores is the logged positions, where
        there are any; the ranked list of any other scores is their descending order.
    masks : uint64 array (word, row), optional
        Membership in other groups than all of the ranking's.
    """
    masks = ranking.masks if masks is None else masks
    logged = score is None
    values = ranking.score if score is None else score
    # Among tied rows the lower one comes first: the one shown lower, or later in the input.
    if ranking.position is None:
        visit = np.arange(ranking.n_rows - 1, -1, -1, dtype=np.int64)
    else:
        visit = stable_order(ranking.position.max(initial=0) - ranking.position)
    code, units = _query_order(ranking)
    starts = np.zeros(ranking.n_queries + 1, dtype=np.int64)
    np.cumsum(np.bincount(code, minlength=ranking.n_queries), out=starts[1:])
    row = np.empty(ranking.n_rows, dtype=np.int64)
    interruptible(ranking.n_rows, _place, code, values, visit, starts, row)
    item = np.empty(0, dtype=np.int64) if ranking.item_code is None else ranking.item_code[row]
    producer = ranking.producer_code if ranking.owner == PRODUCER else None
    owner = np.empty(0, dtype=np.int64) if producer is None else producer[row]
    if logged and ranking.position is not None:
        below = below_by_position(starts, ranking.position[row])
    else:
        below = below_by_score(starts)
    return Log(
        units=units,
        starts=starts,
        score=values[row],
        outcome=ranking.outcome[row],
        masks=np.take(masks, row, axis=1),  # indexed, rows of several words would be scattered
        item=item,
        below=below,
        row=row,
        tie=-row if ranking.position is None else -ranking.position[row],
        owner=owner,
        weight=np.empty(0) if ranking.weight is None else ranking.weight[row[starts[:-1]]],
    )


def resort(log: Log, score: Floats) -> Log:
    """Return the log under any other scores, with the same groups.

    Parameters
    ----------
    log : Log
    score : float64 array
        By row of the log.
    """
    order = np.empty(len(score), dtype=np.int64)
    query = np.repeat(np.arange(len(log.starts) - 1), np.diff(log.starts))
    _place(query, score, np.argsort(log.tie, kind="stable"), log.starts, order)
    return replace(
        log,
        score=score[order],
        outcome=log.outcome[order],
        masks=np.take(log.masks, order, axis=1),
        item=log.item[order] if len(log.item) else log.item,
        owner=log.owner[order] if len(log.owner) else log.owner,
        below=below_by_score(log.starts),
        row=log.row[order],
        tie=log.tie[order],
    )


def rescore(
    log: Log,
    score: Floats,
    member: Flags,
    *,
    raised: Floats | None = None,
    below: Ints | None = None,
) -> Log:
    """Return the log of one group under scores that keep the order inside and outside the group.

    Then every query is two sorted runs, and they are merged rather than sorted again.

    Parameters
    ----------
    log : Log
    score : float64 array
        By row of the log. Of two rows inside the group, or two outside, the one with the lower
        logged score has no higher score here.
    member : bool array
        Whether the row of the log is in the group: the only group of the new log.
    raised : float64 array, optional
        The scores of the rows inside the group, where they are not in `score`.
    below : int64 array, optional
        What `below_by_score` returns, where it is known.
    """
    rows = (log.outcome, log.item, log.owner, log.row, log.tie)
    scores = (score if raised is None else raised, score, member)
    merged = interruptible(len(score), _merge, log.starts, *scores, *rows)
    score, mask, outcome, item, owner, row, tie = merged
    below = below_by_score(log.starts) if below is None else below
    moved = replace(log, score=score, outcome=outcome, masks=mask[None], below=below)
    return replace(moved, item=item, owner=owner, row=row, tie=tie)


def without_owners(log: Log) -> Log:
    """Return the log with every item a cluster of its own."""
    return replace(log, owner=np.empty(0, dtype=np.int64))


def keep_rows(log: Log, keep: Flags) -> Log:
    """Return the log with some of its rows; a query may be left with none.

    Rows are neighbours only if they were before.
    """
    before = np.concatenate([[0], np.cumsum(keep)]).astype(np.int64)
    below = log.below[keep]
    stays = (below >= 0) & keep[below]
    return replace(
        log,
        starts=before[log.starts],
        score=log.score[keep],
        outcome=log.outcome[keep],
        masks=np.ascontiguousarray(log.masks[:, keep]),
        item=log.item[keep] if len(log.item) else log.item,
        owner=log.owner[keep] if len(log.owner) else log.owner,
        below=np.where(stays, before[below], -1),
        row=log.row[keep],
        tie=log.tie[keep],
    )


@kernel
def _merge(
    starts: Ints,
    raised: Floats,
    score: Floats,
    member: Flags,
    outcome: Floats,
    item: Ints,
    owner: Ints,
    row: Ints,
    tie: Ints,
) -> tuple[Floats, Masks, Floats, Ints, Ints, Ints, Ints]:
    """Merge the rows inside the group and those outside, and put ties in their order.

    Returns scores, masks, and the columns that were given but for the first three.
    """
    longest, n_rows = 0, len(score)
    for q in range(len(starts) - 1):
        longest = max(longest, starts[q + 1] - starts[q])
    order, run = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    within, spare = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    key, new_score, mask = np.empty(longest), np.empty(n_rows), np.empty(n_rows, dtype=np.uint64)
    new_outcome, new_row, new_tie = np.empty(n_rows), np.empty_like(row), np.empty_like(tie)
    new_item, new_owner = np.empty_like(item), np.empty_like(owner)
    for q in range(len(starts) - 1):
        start, end = starts[q], starts[q + 1]
        inside, outside = start, start
        for k in range(end - start):
            while inside < end and not member[inside]:
                inside += 1
            while outside < end and member[outside]:
                outside += 1
            if outside == end or (inside < end and raised[inside] <= score[outside]):
                order[k], new_score[start + k] = inside, raised[inside]
                inside += 1
            else:
                order[k], new_score[start + k] = outside, score[outside]
                outside += 1
        first = 0
        for k in range(1, end - start + 1):
            if k == end - start or new_score[start + k] != new_score[start + first]:
                n = k - first
                if n > 1:
                    for m in range(n):
                        run[m] = order[first + m]
                        key[m] = tie[run[m]]
                    sort_order(key[:n], within, spare)
                    for m in range(n):
                        order[first + m] = run[within[m]]
                first = k
        for k in range(end - start):
            old, new = order[k], start + k
            mask[new] = np.uint64(member[old])
            new_outcome[new], new_row[new], new_tie[new] = outcome[old], row[old], tie[old]
            if len(item):
                new_item[new] = item[old]
            if len(owner):
                new_owner[new] = owner[old]
    return new_score, mask, new_outcome, new_item, new_owner, new_row, new_tie


def with_groups(log: Log, masks: Masks) -> Log:
    """Return the log with other groups, given their masks by row of the ranking."""
    return replace(log, masks=np.take(masks, log.row, axis=1))


def select_groups(masks: Masks, chosen: Ints) -> Masks:
    """Return masks in which group k is the chosen group ``chosen[k]``."""
    selected = np.zeros((max(1, -(-len(chosen) // 64)), masks.shape[1]), dtype=np.uint64)
    one = np.uint64(1)
    for k, g in enumerate(chosen):
        bit = (masks[g // 64] >> np.uint64(g % 64)) & one
        selected[k // 64] |= bit << np.uint64(k % 64)
    return selected


def _query_order(ranking: Ranking) -> tuple[Ints, Ints]:
    """Return new query numbers with those of one unit in a row, and where each unit starts."""
    if ranking.unit_code is None:
        return ranking.query_code, np.arange(ranking.n_queries + 1, dtype=np.int64)
    unit = np.empty(ranking.n_queries, dtype=np.int64)
    unit[ranking.query_code] = ranking.unit_code
    order = np.argsort(unit, kind="stable")
    number = np.empty(ranking.n_queries, dtype=np.int64)
    number[order] = np.arange(ranking.n_queries)
    units = np.zeros(ranking.n_units + 1, dtype=np.int64)
    np.cumsum(np.bincount(unit, minlength=ranking.n_units), out=units[1:])
    return number[ranking.query_code], units


@kernel
def _place(code: Ints, score: Floats, visit: Ints, starts: Ints, row: Ints) -> None:
    """Sort by counting over queries, then stably by score inside each query."""
    longest, free = 0, np.empty(len(starts) - 1, dtype=np.int64)
    for q in range(len(free)):
        free[q] = starts[q]
        if starts[q + 1] - starts[q] > longest:
            longest = starts[q + 1] - starts[q]
    for k in range(len(visit)):
        q = code[visit[k]]
        row[free[q]] = visit[k]
        free[q] += 1
    key, run = np.empty(longest), np.empty(longest, dtype=np.int64)
    order, spare = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    for q in range(len(starts) - 1):
        start, n = starts[q], starts[q + 1] - starts[q]
        for k in range(n):
            run[k] = row[start + k]
            key[k] = score[run[k]]
        sort_order(key[:n], order, spare)
        for k in range(n):
            row[start + k] = run[order[k]]


def below_by_score(starts: Ints) -> Ints:
    """Return the row just below each row in the order of scores, or -1."""
    below = np.arange(-1, starts[-1] - 1, dtype=np.int64)
    below[starts[:-1][starts[:-1] < starts[1:]]] = -1
    return below


def below_by_position(starts: Ints, position: Ints) -> Ints:
    """Neighbours are rows whose positions differ by exactly 1, so not across a hole in the log."""
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = stable_order(position)
    order = order[stable_order(query[order])]
    upper, lower = order[:-1], order[1:]
    touching = (query[upper] == query[lower]) & (position[lower] - position[upper] == 1)
    below = np.full(len(position), -1, dtype=np.int64)
    below[upper[touching]] = lower[touching]
    return below


def apply_terms(terms: Terms, log: Log, logged: Log) -> Log:
    """Return the log of a rule with its scores on the scale of distances, and the contrast.

    The order of rows does not change. Whom a group is compared with is up to `only_against`.

    Parameters
    ----------
    terms : Terms
    log : Log
        Under the scores of a rule.
    logged : Log
        The same queries under the logged scores.
    """
    if terms.closeness == QUERY_SD:
        log = _divide(log, spread_of_queries(logged.starts, logged.score))
    elif terms.closeness == PERCENTILE:
        log = replace(log, score=percentiles(log.starts, log.score))
    return replace(log, sign=terms.contrast == SIGN, estimand=terms.estimand)


def compare_group(
    ranking: Ranking,
    group: str,
    scores: Floats | None,
    terms: Terms,
    logged: Log | None = None,
) -> tuple[Log, Log]:
    """Return the log of one group under a rule on some terms, and the whole log before them.

    Parameters
    ----------
    ranking : Ranking
    group : str
        The only group of the logs.
    scores : float64 array or None
        Scores of a rule; None for the logged scores.
    terms : Terms
    logged : Log, optional
        All rows sorted by the logged scores, with any groups, where they are sorted already.
    """
    masks = ranking.member(group).astype(np.uint64)[None]
    if scores is None and logged is not None:
        whole = with_groups(logged, masks)
    else:
        whole = sort_rows(ranking, scores, masks)
    if terms.are_default:
        return whole, whole
    by_logged = terms.closeness == QUERY_SD and scores is not None
    if by_logged and logged is None:
        logged = sort_rows(ranking, masks=masks)
    log = apply_terms(terms, whole, logged if by_logged and logged is not None else whole)
    if terms.against is not None:
        # Rows of queries without any spread are gone already.
        log = only_against(log, 0, ranking.member(terms.against)[log.row])
    return log, whole


def only_against(log: Log, group: int, other: Flags) -> Log:
    """Return a log with one group and only those other rows that it is compared with.

    Parameters
    ----------
    log : Log
    group : int
        Where the group is in the masks; it is the only group of the new log.
    other : bool array (row of the log,)
        The members of the group that it is compared with.
    """
    member = (log.masks[group // 64] >> np.uint64(group % 64)) & np.uint64(1)
    return keep_rows(replace(log, masks=member[None]), (member != 0) | other)


def spread_of_queries(starts: Ints, score: Floats) -> Floats:
    """Return the population standard deviation of the scores of each query.

    Every engine sums in the order of the sorted rows, so that all find the same number.
    """
    found = np.zeros(len(starts) - 1)
    _spread(starts, score, found)
    return found


def percentiles(starts: Ints, score: Floats) -> Floats:
    """Return (rank − ½)/n of each row in its query, 1 being the lowest; ties share their mean rank.

    The number of half ranks is exact, and 1/(2n) is cut to so many bits that each of its multiples
    is exact too: two rows that are as many ranks apart as two others have the same distance.
    """
    size = np.maximum(np.diff(starts), 1)
    fraction, exponent = np.frexp(1.0 / (2.0 * size))
    bits = 53 - np.ceil(np.log2(2.0 * size)).astype(np.int64)
    step = np.ldexp(np.floor(np.ldexp(fraction, bits)), exponent - bits)
    found = np.empty(len(score))
    _half_ranks(starts, score, found)
    return np.asarray(found * np.repeat(step, np.diff(starts)))


def _divide(log: Log, spread: Floats) -> Log:
    """Divide scores by the spread of their query, and leave queries without any out."""
    size = np.diff(log.starts)
    apart = np.repeat(spread > 0, size)
    log = log if apart.all() else keep_rows(log, apart)
    return replace(log, score=log.score / np.repeat(spread, np.diff(log.starts)))


@kernel
def _spread(starts: Ints, score: Floats, found: Floats) -> None:
    for q in range(len(starts) - 1):
        start, end = starts[q], starts[q + 1]
        if end - start < 2 or score[start] == score[end - 1]:
            continue
        # Measured from the lowest, in units of the range, so that nothing overflows or vanishes.
        low, n = score[start], end - start
        width = score[end - 1] - low
        total = 0.0
        for row in range(start, end):
            total += (score[row] - low) / width
        squares = 0.0
        for row in range(start, end):
            apart = (score[row] - low) / width - total / n
            squares += apart * apart
        found[q] = width * np.sqrt(squares / n)


@kernel
def _half_ranks(starts: Ints, score: Floats, found: Floats) -> None:
    """Write twice the rank less 1: how many rows are below, twice, and how many are tied."""
    for q in range(len(starts) - 1):
        first = starts[q]
        while first < starts[q + 1]:
            last = first + 1
            while last < starts[q + 1] and score[last] == score[first]:
                last += 1
            for row in range(first, last):
                found[row] = (first - starts[q]) + (last - starts[q])
            first = last


Result = TypeVar("Result")


Task = Callable[[Log, int, int], Result]


class PlainWalk:
    """A `Walk` over the blocks of one log, one after the other where it is called."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def __call__(self, task: Task[Result], label: str = "") -> Iterator[Result]:
        """Yield what the task returns for each block, in order."""
        return (task(self.log, first, last) for first, last in self.log.blocks)

    def total(self, task: Task[Result], label: str, start: Result) -> Result:
        """Add what the task returns for each block."""
        return add_up(self(task), start)


def add_up(parts: Iterator[Result], start: Result) -> Result:
    """Add numbers or arrays in their order; `start` stays as it is."""
    total = start
    for part in parts:
        total = total + part  # type: ignore[operator]
    return total


@dataclass(frozen=True)
class Tally:
    """Numbers that add up over blocks, numbers of which the largest counts, and rows to keep.

    Attributes
    ----------
    sums, largest : float64 arrays
    kept : float64 array (row, column)
    """

    sums: Floats
    largest: Floats
    kept: Floats

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.sums + other.sums,
            np.maximum(self.largest, other.largest),
            np.concatenate([self.kept, other.kept]),
        )
