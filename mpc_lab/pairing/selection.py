"""Find the exact K-th smallest gap of every group by counting, never by storing all gaps.

Pairs drawn at random bracket the answer, and one pass counts the gaps below the bracket and
collects those inside it. Where the bracket misses, or holds too many, bisection over the
floating-point numbers narrows it first, one counting pass a step.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mpc_lab.pairing.arrays import Flags, Floats, Ints
from mpc_lab.pairing.counting import count_all, count_and_collect
from mpc_lab.pairing.drawing import draw_gaps
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.walk import Walk

_COLLECTED_AT_MOST = 1 << 23
_ROOM = 1 << 16  # gaps of a block that are collected without counting them first
_STANDARD_ERRORS = 4.0
_BELOW_ZERO = -1.0  # every gap lies above it


def count_pairs(walk: Walk, word: int, n_groups: int) -> Ints:
    """Return the number of ``matched`` pairs of each group with no limit on the gap."""
    start = np.zeros(n_groups, dtype=np.int64)
    return walk.total(partial(_count_all, word, n_groups), "counting pairs", start)


def count_up_to(walk: Walk, word: int, limit: Floats, wanted: Flags | None = None) -> Ints:
    """Return the number of ``matched`` pairs of each group with a gap of at most its limit."""
    mask = _mask(np.ones(len(limit), dtype=bool) if wanted is None else wanted)
    start = np.zeros(len(limit), dtype=np.int64)
    return walk.total(partial(_count, word, mask, limit), "counting gaps", start)


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
    low, high, expected = _guess(walk, word, pairs, k)
    share = _COLLECTED_AT_MOST // max(1, int((pairs > 0).sum()))
    _select(walk, word, k, low, high, (pairs > 0) & (expected <= share), found)
    missed = (pairs > 0) & np.isnan(found)
    if missed.any():
        low, high, single = _bisect(walk, word, pairs, k, missed, share, [low, high])
        found[single] = high[single]
        _select(walk, word, k, low, high, missed & ~single, found)
    return found


def _guess(walk: Walk, word: int, pairs: Ints, k: Ints) -> tuple[Floats, Floats, Floats]:
    """Return numbers that very likely bracket the K-th smallest gaps, and how many lie between."""
    gap, matched = draw_gaps(walk, word)
    low, high = np.full(len(pairs), _BELOW_ZERO), np.full(len(pairs), np.inf)
    between = pairs.astype(np.float64)
    for g in np.flatnonzero(pairs > 0):
        mine = gap[(matched >> np.uint64(g)) & np.uint64(1) == 1]
        rank = len(mine) * (int(k[g]) / int(pairs[g]))
        margin = _STANDARD_ERRORS * (np.sqrt(rank) + 1)
        first, last = int(rank - margin), int(rank + margin)
        if not 0 <= last < len(mine):
            continue
        mine = np.partition(mine, [max(first, 0), last])
        low[g] = mine[first] if first >= 0 else _BELOW_ZERO
        high[g] = mine[last]
        between[g] = pairs[g] * (last - max(first, 0) + 1) / len(mine)
    return low, high, between


def _select(
    walk: Walk, word: int, k: Ints, low: Floats, high: Floats, wanted: Flags, found: Floats
) -> None:
    """Fill in the K-th gap of each wanted group whose bracket (low, high] holds it."""
    parts = list(walk(partial(_collect, word, _mask(wanted), low, high), "selecting thresholds"))
    below = sum((part[0] for part in parts), np.zeros(len(k), dtype=np.int64))
    for g in np.flatnonzero(wanted):
        inside = np.concatenate(
            [gaps[ends[g - 1] if g else 0 : ends[g]] for _, gaps, ends in parts]
        )
        rank = k[g] - below[g] - 1
        if 0 <= rank < len(inside):
            found[g] = np.partition(inside, rank)[rank]


def _bisect(
    walk: Walk,
    word: int,
    pairs: Ints,
    k: Ints,
    wanted: Flags,
    share: int,
    guesses: list[Floats],
) -> tuple[Floats, Floats, Flags]:
    """Halve the range of numbers until each bracket holds few gaps, or a single number.

    The guesses are tried before the middle is.
    """
    # The bits of a floating-point number, 0 or above, are its place in the order of all of them.
    low = np.full(len(k), -1, dtype=np.int64)
    high = np.full(len(k), np.float64(np.inf).view(np.int64))
    below, up_to = np.zeros_like(pairs), pairs.copy()
    while True:
        wide = wanted & (high - low > 1) & (up_to - below > share)
        if not wide.any():
            break
        middle = low + (high - low) // 2
        if guesses:
            guess = np.maximum(guesses.pop(0), 0.0).view(np.int64)
            middle = np.where((guess > low) & (guess < high), guess, middle)
        count = count_up_to(walk, word, middle.view(np.float64), wide)
        short = wide & (count < k)
        enough = wide & ~short
        low[short], below[short] = middle[short], count[short]
        high[enough], up_to[enough] = middle[enough], count[enough]
    lowest = np.where(low < 0, _BELOW_ZERO, np.maximum(low, 0).view(np.float64))
    return lowest, high.view(np.float64), wanted & (high - low == 1)


def _collect(
    word: int, mask: np.uint64, low: Floats, high: Floats, log: Log, first: int, last: int
) -> tuple[Ints, Floats, Ints]:
    """Return how many gaps of each group are at most `low`, and those up to `high` by group.

    These stand one group after the other; the last array says where each group's end.
    """
    rows = (log.units, log.starts, log.score, log.masks[word])
    room = _ROOM
    while True:
        count = np.zeros(len(low), dtype=np.int64)
        which, gaps = np.empty(room, dtype=np.uint8), np.empty(room)
        needed = count_and_collect(*rows, mask, low, high, first, last, count, which, gaps)
        if needed <= room:
            break
        room = needed
    which, gaps = which[:needed], gaps[:needed]
    ends = np.cumsum(np.bincount(which, minlength=len(low)))
    return count, gaps[np.argsort(which, kind="stable")], ends


def _count_all(word: int, n_groups: int, log: Log, first: int, last: int) -> Ints:
    total = np.zeros(n_groups, dtype=np.int64)
    count_all(log.units, log.starts, log.score, log.masks[word], first, last, total)
    return total


def _count(word: int, mask: np.uint64, limit: Floats, log: Log, first: int, last: int) -> Ints:
    return _collect(word, mask, limit, limit, log, first, last)[0]


def _mask(wanted: Flags) -> np.uint64:
    return np.uint64(sum(1 << int(g) for g in np.flatnonzero(wanted)))
