"""Queries with more close pairs than can be visited, where each pair has to be looked at."""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.kernels import ONE
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.terms import MOST_VISITED
from mpc_lab.pairing.windows import count_close
from mpc_lab.vocabulary import Flags, Floats, Ints


def find_left_out(log: Log, first: int, last: int, reach: float) -> Ints:
    """Return which queries, counted from the first, have too many close pairs to visit."""
    size = np.diff(log.starts[first : last + 1]).astype(np.float64)
    long = np.flatnonzero(0.5 * size**2 > MOST_VISITED)
    ends = (log.starts[first + long], log.starts[first + long + 1])
    close = [count_close(log.score, start, end, reach) for start, end in zip(*ends, strict=True)]
    return np.asarray(long[np.array(close, dtype=np.int64) > MOST_VISITED])


def count_left_out(log: Log, word: int, epsilon: Floats, left_out: Ints) -> Ints:
    """Return how many queries left out, and units with no other query, have a pair of each group.

    Parameters
    ----------
    left_out : int64 array
        Queries of the log.
    """
    found = np.zeros((2, len(epsilon)), dtype=np.int64)
    for q in left_out:
        found[0] += _has_pair(log, word, epsilon, q)
    for unit in np.unique(np.searchsorted(log.units, left_out, side="right") - 1):
        queries = range(log.units[unit], log.units[unit + 1])
        whole = np.array([_has_pair(log, word, epsilon, q) for q in queries])
        kept = whole[~np.isin(queries, left_out)]
        found[1] += whole.any(axis=0) & ~kept.any(axis=0)
    return found


def _has_pair(log: Log, word: int, epsilon: Floats, query: int) -> Flags:
    """Tell for each group whether a query has a pair: the closest one is of neighbours."""
    rows = slice(log.starts[query], log.starts[query + 1])
    score, mask = log.score[rows], log.masks[word, rows]
    differ = (mask[1:] ^ mask[:-1])[:, None] >> np.arange(len(epsilon), dtype=np.uint64)
    close = np.diff(score)[:, None] <= epsilon
    return np.asarray((((differ & ONE) != 0) & close).any(axis=0))
