"""Draw pairs of rows at random, to guess where a quantile of the gaps lies."""

from __future__ import annotations

from functools import partial

import numpy as np

from mpc_lab.pairing.arrays import Floats, Ints, Masks
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.walk import Walk

_FEWEST, _MOST = 100_000, 1_000_000
_SHARE = 1 / 1000


def draw_gaps(walk: Walk, word: int) -> tuple[Floats, Masks]:
    """Return the gaps of pairs of rows of one query, all pairs equally likely.

    Returns
    -------
    gap : float64 array
    matched : uint64 array
        The groups of which the pair is a ``matched`` pair.
    """
    total = walk.total(_weigh, "sizing up", 0.0)
    # More of a larger log: what lies inside the guess has to be collected.
    drawn = min(max(_FEWEST, _SHARE * total), _MOST)
    share = drawn / total if total else 0.0
    parts = list(walk(partial(_draw, word, share), "drawing pairs"))
    return np.concatenate([gap for gap, _ in parts]), np.concatenate([mask for _, mask in parts])


def _weigh(log: Log, first: int, last: int) -> float:
    return float(_pairs_in_queries(log, first, last).sum())


def _draw(word: int, share: float, log: Log, first: int, last: int) -> tuple[Floats, Masks]:
    weight = _pairs_in_queries(log, first, last)
    n = int(np.ceil(share * weight.sum()))
    lower, upper = _draw_rows(log, int(log.units[first]), weight, n)
    gap = log.gap(upper, lower)
    mask = log.masks[word]
    differ = mask[lower] ^ mask[upper]
    # A tie is a pair of both modes, so either of the two may be in the group.
    return gap, np.where(gap == 0, differ, differ & mask[lower])


def _pairs_in_queries(log: Log, first: int, last: int) -> Floats:
    size = np.diff(log.starts[log.units[first] : log.units[last] + 1]).astype(np.float64)
    return np.asarray(size * (size - 1) / 2)


def _draw_rows(log: Log, first_query: int, weight: Floats, n: int) -> tuple[Ints, Ints]:
    # Blocks that drew alike would draw the same places of their lists again and again.
    rng = np.random.default_rng(log.origin + first_query)
    cumulated = np.cumsum(weight)
    # Sorted, so that the rows of the drawn queries are read in the order they stand in.
    at = np.sort(rng.random(n)) * (cumulated[-1] if n else 0)
    query = first_query + np.minimum(np.searchsorted(cumulated, at, side="right"), len(weight) - 1)
    start, size = log.starts[query], log.starts[query + 1] - log.starts[query]
    start, size = start[size > 1], size[size > 1]
    one = (rng.random(len(size)) * size).astype(np.int64)
    other = (one + 1 + (rng.random(len(size)) * (size - 1)).astype(np.int64)) % size
    return start + np.minimum(one, other), start + np.maximum(one, other)
