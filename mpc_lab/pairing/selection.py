"""Find the exact K-th smallest distance of every group by counting, never by storing them all.

For an item of g, the rows whose score is tied or above by at most x are a run of the sorted query.
Its end only moves forward as the item does, so one pointer for each group counts in one pass,
however many pairs there are. Pairs drawn at random bracket the answer, and one pass counts the
distances below the bracket and collects those inside it. Where the bracket misses, or holds too
many, bisection over the floating-point numbers narrows it first, one counting pass a step.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mpc_lab.pairing.kernels import ONE, kernel, lowest
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.walk import Walk
from mpc_lab.vocabulary import Bytes, Flags, Floats, Ints, Masks

_COLLECTED_AT_MOST = 1 << 23
_ROOM = 1 << 16  # distances of a block that are collected without counting them first
_STANDARD_ERRORS = 4.0
_BELOW_ZERO = -1.0  # every distance is above it
# Pairs of rows that are drawn: a share of them, within bounds.
_FEWEST, _MOST = 100_000, 1_000_000
_SHARE = 1 / 1000


def count_pairs(walk: Walk, word: int, n_groups: int) -> Ints:
    """Return the number of ``matched`` pairs of each group with no limit on the distance."""
    start = np.zeros(n_groups, dtype=np.int64)
    return walk.total(partial(_count_all, word, n_groups), "counting pairs", start)


def count_up_to(walk: Walk, word: int, limit: Floats, wanted: Flags | None = None) -> Ints:
    """Return the number of ``matched`` pairs of each group with a distance of at most its limit."""
    mask = _mask(np.ones(len(limit), dtype=bool) if wanted is None else wanted)
    start = np.zeros(len(limit), dtype=np.int64)
    return walk.total(partial(_count, word, mask, limit), "counting distances", start)


def kth_smallest_distances(walk: Walk, word: int, pairs: Ints, k: Ints) -> Floats:
    """Return the K-th smallest distance of each group's ``matched`` pairs; NaN without any.

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
    """Return numbers that very likely bracket the K-th distances, and how many are between."""
    distance, matched = draw_distances(walk, word)
    low, high = np.full(len(pairs), _BELOW_ZERO), np.full(len(pairs), np.inf)
    between = pairs.astype(np.float64)
    for g in np.flatnonzero(pairs > 0):
        mine = distance[(matched >> np.uint64(g)) & np.uint64(1) == 1]
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
    """Fill in the K-th distance of each wanted group whose bracket (low, high] holds it."""
    parts = list(walk(partial(_collect, word, _mask(wanted), low, high), "selecting thresholds"))
    below = sum((part[0] for part in parts), np.zeros(len(k), dtype=np.int64))
    for g in np.flatnonzero(wanted):
        inside = np.concatenate(
            [distances[ends[g - 1] if g else 0 : ends[g]] for _, distances, ends in parts]
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
    """Halve the range of numbers until each bracket holds few distances, or a single number.

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
    """Return how many distances of each group are at most `low`, and those up to `high` by group.

    One group follows the other; the last array says where each group's end.
    """
    which, distances, _, count = collect_pairs(word, mask, low, high, log, first, last)
    ends = np.cumsum(np.bincount(which, minlength=len(low)))
    return count[0], distances[np.argsort(which, kind="stable")], ends


def collect_pairs(
    word: int,
    mask: np.uint64,
    low: Floats,
    high: Floats,
    log: Log,
    first: int,
    last: int,
    *,
    by_query: bool = False,
) -> tuple[Bytes, Floats, Ints, Ints]:
    """Return the groups of the pairs in (low, high], their distances and their queries.

    Then how many pairs of each group are at most `low`: array (query, group). Unless `by_query`,
    no queries are named and all are counted as one.
    """
    rows = (log.units, log.starts, log.member_score, log.score, log.masks[word])
    n_counted = int(log.units[last] - log.units[first]) if by_query else 1
    room = _ROOM
    while True:
        count = np.zeros((n_counted, len(low)), dtype=np.int64)
        which, distances = np.empty(room, dtype=np.uint8), np.empty(room)
        queries = np.empty(room if by_query else 0, dtype=np.int64)
        into = (count, which, distances, queries)
        needed = count_and_collect(*rows, mask, low, high, first, last, *into)
        if needed <= room:
            return which[:needed], distances[:needed], queries[:needed], count
        room = needed


def _count_all(word: int, n_groups: int, log: Log, first: int, last: int) -> Ints:
    total = np.zeros(n_groups, dtype=np.int64)
    rows = (log.units, log.starts, log.member_score, log.score, log.masks[word])
    count_all(*rows, first, last, total)
    return total


def _count(word: int, mask: np.uint64, limit: Floats, log: Log, first: int, last: int) -> Ints:
    return _collect(word, mask, limit, limit, log, first, last)[0]


def _mask(wanted: Flags) -> np.uint64:
    return np.uint64(sum(1 << int(g) for g in np.flatnonzero(wanted)))


def draw_distances(walk: Walk, word: int) -> tuple[Floats, Masks]:
    """Return the distances of pairs of rows of one query, all pairs equally likely.

    Returns
    -------
    distance : float64 array
    matched : uint64 array
        The groups of which the pair is a ``matched`` pair.
    """
    total = walk.total(_weigh, "sizing up", 0.0)
    # More from a larger log, because all pairs inside the guess have to be collected.
    drawn = min(max(_FEWEST, _SHARE * total), _MOST)
    share = drawn / total if total else 0.0
    parts = list(walk(partial(_draw, word, share), "drawing pairs"))
    distances, masks = zip(*parts, strict=True)
    return np.concatenate(distances), np.concatenate(masks)


def _weigh(log: Log, first: int, last: int) -> float:
    return float(_pairs_in_queries(log, first, last).sum())


def _draw(word: int, share: float, log: Log, first: int, last: int) -> tuple[Floats, Masks]:
    weight = _pairs_in_queries(log, first, last)
    n = int(np.ceil(share * weight.sum()))
    lower, upper = _draw_rows(log, int(log.units[first]), weight, n)
    # Either of the two may be in a group.
    member, other = np.concatenate([lower, upper]), np.concatenate([upper, lower])
    mask = log.masks[word]
    matched = mask[member] & ~mask[other]
    with np.errstate(over="ignore"):
        distance = log.score[other] - log.member_score[member]
    some = (distance >= 0) & (matched != 0)
    return distance[some], matched[some]


def _pairs_in_queries(log: Log, first: int, last: int) -> Floats:
    size = np.diff(log.starts[log.units[first] : log.units[last] + 1]).astype(np.float64)
    return np.asarray(size * (size - 1) / 2)


def _draw_rows(log: Log, first_query: int, weight: Floats, n: int) -> tuple[Ints, Ints]:
    # With equal seeds, blocks would draw the same places of their lists again and again.
    rng = np.random.default_rng(log.origin + first_query)
    cumulated = np.cumsum(weight)
    # Sorted, so that the rows of the drawn queries are read in their own order.
    at = np.sort(rng.random(n)) * (cumulated[-1] if n else 0)
    query = first_query + np.minimum(np.searchsorted(cumulated, at, side="right"), len(weight) - 1)
    start, size = log.starts[query], log.starts[query + 1] - log.starts[query]
    start, size = start[size > 1], size[size > 1]
    one = (rng.random(len(size)) * size).astype(np.int64)
    other = (one + 1 + (rng.random(len(size)) * (size - 1)).astype(np.int64)) % size
    return start + np.minimum(one, other), start + np.maximum(one, other)


@kernel
def count_all(
    units: Ints,
    starts: Ints,
    member_score: Floats,
    score: Floats,
    mask: Masks,
    first: int,
    last: int,
    total: Ints,
) -> None:
    """Add to `total` the ``matched`` pairs of each group with no limit on the distance."""
    seen = np.zeros(len(total), dtype=np.int64)
    for q in range(units[first], units[last]):
        start, end = starts[q], starts[q + 1]
        if end - start < 2:
            continue
        seen[:] = 0
        above = end  # the first row tied with the member or above it
        for member in range(end - 1, start - 1, -1):
            bits = mask[member]
            while bits and above > start and score[above - 1] >= member_score[member]:
                above -= 1
                met = mask[above]
                while met:
                    seen[lowest(met)] += 1
                    met &= met - ONE
            while bits:
                g = lowest(bits)
                total[g] += (end - above) - seen[g]
                bits &= bits - ONE


@kernel
def count_and_collect(
    units: Ints,
    starts: Ints,
    member_score: Floats,
    score: Floats,
    mask: Masks,
    wanted: np.uint64,
    low: Floats,
    high: Floats,
    first: int,
    last: int,
    count: Ints,
    which: Bytes,
    distances: Floats,
    queries: Ints,
) -> int:
    """Add to `count` the ``matched`` pairs of each query and wanted group up to `low`.

    Distances in (low, high] are written to `distances`, their groups to `which` and the places of
    their queries in the block to `queries`. Where that has no place, `count` has one row for all
    queries. Returned is how many distances there are, whether they have room there or not.
    """
    n_groups, by_query = count.shape[1], len(queries) > 0
    seen = np.zeros(n_groups, dtype=np.int64)
    pointer = np.zeros(n_groups, dtype=np.int64)
    seen_at_pointer = np.zeros(n_groups, dtype=np.int64)
    n = 0
    for q in range(units[first], units[last]):
        start, end = starts[q], starts[q + 1]
        if end - start < 2:
            continue
        at = q - units[first] if by_query else 0
        seen[:] = 0
        pointer[:] = start
        above = start  # the first row tied with the member or above it
        for member in range(start, end):
            bits, own = mask[member] & wanted, member_score[member]
            while bits and above < end and score[above] < own:
                met = mask[above] & wanted
                while met:
                    seen[lowest(met)] += 1
                    met &= met - ONE
                above += 1
            while bits:
                g = lowest(bits)
                bits &= bits - ONE
                p, s = pointer[g], seen_at_pointer[g]
                if p <= above:
                    p, s = above, seen[g]
                while p < end and score[p] - own <= low[g]:
                    s += np.int64((mask[p] >> np.uint64(g)) & ONE)
                    p += 1
                pointer[g], seen_at_pointer[g] = p, s
                count[at, g] += (p - above) - (s - seen[g])
                while p < end and score[p] - own <= high[g]:
                    if not (mask[p] >> np.uint64(g)) & ONE:
                        if n < len(distances):
                            which[n], distances[n] = g, score[p] - own
                            if by_query:
                                queries[n] = at
                        n += 1
                    p += 1
    return n
