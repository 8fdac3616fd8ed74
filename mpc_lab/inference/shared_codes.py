"""Dense codes of what pairs share: two items together, and items inside one query."""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.kernels import kernel, stable_order, tight
from mpc_lab.vocabulary import Ints


def dyads(one: Ints, other: Ints) -> Ints:
    """Return dense codes of the two items of each pair, in either role."""
    return _joint(np.minimum(one, other), np.maximum(one, other))


# A query with more pairs is not looked through with a table of its own, which would be large.
_LONGEST_RUN = 1 << 16


def inside_queries(query: Ints, one: Ints, other: Ints) -> tuple[Ints, Ints, Ints]:
    """Return dense codes of each pair's two items inside its query, and of both together.

    Pairs are mostly listed query by query; then each query is looked through on its own.
    """
    longest = _longest_run(query)
    if 0 <= longest <= _LONGEST_RUN:
        codes = np.empty_like(query), np.empty_like(query), np.empty_like(query)
        _code_queries(query, one, other, longest, *codes)
        return codes
    twice = _joint(np.concatenate([one, other]), np.concatenate([query, query]))
    return twice[: len(one)], twice[len(one) :], _joint(dyads(one, other), query)


@kernel
def _longest_run(code: Ints) -> int:
    """Return the length of the longest run of one code; -1 where codes do not ascend."""
    longest, first = 0, 0
    for p in range(len(code)):
        if p and code[p] < code[p - 1]:
            return -1
        if code[p] != code[first]:
            first = p
        longest = max(longest, p + 1 - first)
    return longest


_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@tight
def _look_up(key: int, mark: int, keys: Ints, marks: Ints, codes: Ints, new: int) -> int:
    """Return the code of a key in a table that is empty where its marks differ from this one.

    A key that is not there yet gets the new code.
    """
    last = len(keys) - 1
    slot = np.int64((np.uint64(key) * _SPREAD) >> np.uint64(32)) & last
    while marks[slot] == mark and keys[slot] != key:
        slot = (slot + 1) & last
    if marks[slot] != mark:
        marks[slot], keys[slot], codes[slot] = mark, key, new
    return int(codes[slot])


@kernel
def _code_queries(
    query: Ints, one: Ints, other: Ints, longest: int, inside: Ints, outside: Ints, both: Ints
) -> None:
    """Write the codes of `inside_queries` for pairs that are listed query by query."""
    room = 2
    while room < 4 * longest:
        room *= 2
    keys, codes = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    marks = np.full(room, -1, dtype=np.int64)
    n_items, ndyads, items = 0, 0, 0
    for p in range(len(one)):
        items = max(items, one[p] + 1, other[p] + 1)
    first, mark = 0, 0
    while first < len(query):
        last = first
        while last < len(query) and query[last] == query[first]:
            inside[last] = _look_up(one[last], mark, keys, marks, codes, n_items)
            n_items = max(n_items, inside[last] + 1)
            outside[last] = _look_up(other[last], mark, keys, marks, codes, n_items)
            n_items = max(n_items, outside[last] + 1)
            last += 1
        for p in range(first, last):
            dyad = min(one[p], other[p]) * items + max(one[p], other[p])
            both[p] = _look_up(dyad, mark + 1, keys, marks, codes, ndyads)
            ndyads = max(ndyads, both[p] + 1)
        first, mark = last, mark + 2


def _joint(one: Ints, other: Ints) -> Ints:
    """Return dense codes of the combinations of two codes."""
    key = one * (int(other.max(initial=0)) + 1) + other
    order = stable_order(key)
    ordered, code = key[order], np.empty(len(key), dtype=np.int64)
    code[order] = np.cumsum(ordered != np.concatenate([ordered[:1], ordered[:-1]]))
    return code
