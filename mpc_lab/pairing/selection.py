"""Find the exact K-th smallest gap of every group by counting, never by storing all gaps.

Pairs drawn at random bracket the answer, a counting pass checks the bracket, bisection over the
floating-point numbers narrows it where it is too wide, and only the gaps inside it are collected.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mpc_lab.pairing.arrays import Flags, Floats, Ints, Masks
from mpc_lab.pairing.counting import collect_between, count_all, count_within
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.walk import Walk

_DRAWN_PAIRS = 200_000
_COLLECTED_AT_MOST = 1 << 22
_STANDARD_ERRORS = 4.0
_BELOW_ZERO = -1  # as the bits of a number: every gap lies above it


def count_pairs(walk: Walk, word: int, n_groups: int) -> Ints:
    """Return the number of ``matched`` pairs of each group with no limit on the gap."""

    def task(log: Log, first: int, last: int) -> Ints:
        total = np.zeros(n_groups, dtype=np.int64)
        count_all(log.units, log.starts, log.score, log.masks[word], first, last, total)
        return total

    return _added(walk(task, "counting pairs"), n_groups)


def count_up_to(walk: Walk, word: int, limit: Floats, wanted: Flags | None = None) -> Ints:
    """Return the number of ``matched`` pairs of each group with a gap of at most its limit."""
    mask = _mask(np.ones(len(limit), dtype=bool) if wanted is None else wanted)

    def task(log: Log, first: int, last: int) -> Ints:
        count = np.zeros(len(limit), dtype=np.int64)
        count_within(
            log.units, log.starts, log.score, log.masks[word], mask, limit, first, last, count
        )
        return count

    return _added(walk(task, "counting gaps"), len(limit))


def kth_smallest_gaps(walk: Walk, word: int, pairs: Ints, k: Ints) -> Floats:
    """Return the K-th smallest gap of each group's ``matched`` pairs; NaN for a group without any.

    Parameters
    ----------
    walk : Walk
    word : int
        Which word of the masks.
    pairs : int64 array (group,)
        What `count_pairs` returned.
    k : int64 array (group,)
        From 1 to `pairs`.
    """
    found = np.full(len(pairs), np.nan)
    search = _Bracket(walk, word, pairs, k)
    for limit in _guesses(walk, word, pairs, k):
        search.probe(limit)
    while search.too_wide.any():
        search.probe(search.middle)
    found[search.settled] = search.high[search.settled]
    open_ = search.open
    if open_.any():
        gaps, ends = search.collect(open_)
        starts = np.concatenate([[0], ends[:-1]])
        for g in np.flatnonzero(open_):
            inside = gaps[starts[g] : ends[g]]
            rank = k[g] - search.below[g] - 1
            found[g] = np.partition(inside, rank)[rank]
    return found


class _Bracket:
    """For each group, numbers low < high with fewer than K gaps up to low, and K up to high."""

    def __init__(self, walk: Walk, word: int, pairs: Ints, k: Ints) -> None:
        self.walk, self.word, self.k = walk, word, k
        self.has_pairs = pairs > 0
        self.low_bits = np.full(len(pairs), _BELOW_ZERO, dtype=np.int64)
        self.high_bits = np.full(len(pairs), _bits(np.inf), dtype=np.int64)
        self.below = np.zeros(len(pairs), dtype=np.int64)
        self.up_to = pairs.copy()

    @property
    def low(self) -> Floats:
        return np.where(self.low_bits < 0, -1.0, _number(np.maximum(self.low_bits, 0)))

    @property
    def high(self) -> Floats:
        return _number(self.high_bits)

    @property
    def settled(self) -> Flags:
        """Groups whose bracket holds a single number."""
        return np.asarray(self.has_pairs & (self.high_bits - self.low_bits == 1))

    @property
    def open(self) -> Flags:
        return np.asarray(self.has_pairs & ~self.settled)

    @property
    def too_wide(self) -> Flags:
        """Groups with more gaps in their bracket than their share of what may be collected."""
        share = _COLLECTED_AT_MOST // max(1, int(self.open.sum()))
        return np.asarray(self.open & (self.up_to - self.below > share))

    @property
    def middle(self) -> Floats:
        """Halfway between low and high among the floating-point numbers; NaN: leave alone."""
        middle = _number(self.low_bits + (self.high_bits - self.low_bits) // 2)
        return np.where(self.too_wide, middle, np.nan)

    def probe(self, limit: Floats) -> None:
        """Count the gaps up to a limit inside each bracket, and tighten the brackets by it."""
        bits = _bits(np.nan_to_num(limit, nan=0.0))
        wanted = self.has_pairs & np.isfinite(limit)
        wanted &= (bits > self.low_bits) & (bits < self.high_bits)
        if not wanted.any():
            return
        count = count_up_to(self.walk, self.word, np.where(wanted, limit, 0.0), wanted)
        short = wanted & (count < self.k)
        enough = wanted & ~short
        self.low_bits[short], self.below[short] = bits[short], count[short]
        self.high_bits[enough], self.up_to[enough] = bits[enough], count[enough]

    def collect(self, wanted: Flags) -> tuple[Floats, Ints]:
        """Return the gaps in the brackets, group after group, and where each group ends."""
        above, limit, mask = self.low, self.high, _mask(wanted)
        sizes = np.where(wanted, self.up_to - self.below, 0)
        ends = np.cumsum(sizes)

        def task(log: Log, first: int, last: int) -> tuple[Floats, Ints]:
            views = (log.units, log.starts, log.score, log.masks[self.word], mask)
            inside, outside = np.zeros_like(sizes), np.zeros_like(sizes)
            count_within(*views, limit, first, last, inside)
            count_within(*views, above, first, last, outside)
            here = np.where(wanted, inside - outside, 0)
            place = np.cumsum(here) - here
            gaps = np.empty(int(here.sum()))
            collect_between(*views, above, limit, first, last, place, gaps)
            return gaps, here

        gaps, place = np.empty(int(sizes.sum())), ends - sizes
        for part, here in self.walk(task, "selecting thresholds"):
            offset = 0
            for g in np.flatnonzero(here):
                gaps[place[g] : place[g] + here[g]] = part[offset : offset + here[g]]
                place[g] += here[g]
                offset += here[g]
        return gaps, ends


def _guesses(walk: Walk, word: int, pairs: Ints, k: Ints) -> tuple[Floats, Floats]:
    """Return numbers that very likely lie below and above the K-th smallest gaps."""
    gap, mask = _drawn_gaps(walk, word)
    order = np.argsort(gap, kind="stable")
    gap, mask = gap[order], mask[order]
    low, high = np.full(len(pairs), np.nan), np.full(len(pairs), np.nan)
    for g in np.flatnonzero(pairs > 0):
        mine = gap[(mask >> np.uint64(g)) & np.uint64(1) == 1]
        expected = len(mine) * (int(k[g]) / int(pairs[g]))
        margin = _STANDARD_ERRORS * (np.sqrt(expected) + 1)
        if expected - margin >= 0:
            low[g] = mine[int(expected - margin)]
        if expected + margin < len(mine):
            high[g] = mine[int(expected + margin)]
    return low, high


def _drawn_gaps(walk: Walk, word: int) -> tuple[Floats, Masks]:
    """Draw pairs of rows of one query, all equally likely, and say which groups they match."""

    def weigh(log: Log, first: int, last: int) -> float:
        return float(_pairs_in_queries(log, first, last).sum())

    total = sum(walk(weigh, "sizing up"))
    if not total:
        return np.empty(0), np.empty(0, dtype=np.uint64)

    def draw(log: Log, first: int, last: int) -> tuple[Floats, Masks]:
        weight = _pairs_in_queries(log, first, last)
        n_drawn = int(np.ceil(_DRAWN_PAIRS * weight.sum() / total))
        return _draw(log, word, first, weight, n_drawn)

    parts = list(walk(draw, "drawing pairs"))
    return np.concatenate([gap for gap, _ in parts]), np.concatenate([mask for _, mask in parts])


def _pairs_in_queries(log: Log, first: int, last: int) -> Floats:
    size = np.diff(log.starts[log.units[first] : log.units[last] + 1]).astype(float)
    return np.asarray(size * (size - 1) / 2)


def _draw(log: Log, word: int, first: int, weight: Floats, n: int) -> tuple[Floats, Masks]:
    if not n:
        return np.empty(0), np.empty(0, dtype=np.uint64)
    rng = np.random.default_rng(0)
    cumulated = np.cumsum(weight)
    query = np.searchsorted(cumulated, rng.random(n) * cumulated[-1], side="right")
    query = log.units[first] + np.minimum(query, len(weight) - 1)
    start, size = log.starts[query], log.starts[query + 1] - log.starts[query]
    usable = size > 1
    start, size = start[usable], size[usable]
    one = rng.integers(0, size)
    other = (one + rng.integers(1, size)) % size
    lower, upper = start + np.minimum(one, other), start + np.maximum(one, other)
    gap = log.score[upper] - log.score[lower]
    mask = log.masks[word]
    matched = mask[lower] & ~mask[upper]
    tied = mask[upper] & ~mask[lower]
    return gap, np.where(gap == 0, matched | tied, matched)


def _added(parts: Iterable[Ints], n_groups: int) -> Ints:
    total = np.zeros(n_groups, dtype=np.int64)
    for part in parts:
        total += part
    return total


def _mask(wanted: Flags) -> np.uint64:
    return np.uint64(sum(1 << int(g) for g in np.flatnonzero(wanted)))


def _bits(number: Floats | float) -> Ints:
    """Return the place of a floating-point number, 0 or above, in the order of all of them."""
    return np.asarray(number, dtype=np.float64).view(np.int64)


def _number(bits: Ints) -> Floats:
    return np.asarray(bits, dtype=np.int64).view(np.float64)
