"""Codes of what pairs share say the same as sorting all pairs does."""

import numpy as np
import pytest

from mpc_lab.inference import shared_codes
from mpc_lab.inference.shared_codes import dyads, inside_queries


def alike(found, wanted):
    """Whether two arrays of codes put the same entries together, the first without gaps."""
    both = np.unique(np.stack([found, np.unique(wanted, return_inverse=True)[1]]), axis=1)
    n = len(np.unique(found))
    return (
        both.shape[1] == n == len(np.unique(wanted)) and found.min() == 0 and found.max() == n - 1
    )


def check(query, one, other):
    pairs = np.sort(np.stack([one, other]), axis=0)
    inside, outside, both = inside_queries(query, one, other)
    items = np.concatenate([one, other]) + 10_000 * np.concatenate([query, query])
    assert alike(np.concatenate([inside, outside]), items)
    assert alike(both, (pairs[0] * 10_000 + pairs[1]) * 10_000 + query)
    assert alike(dyads(one, other), pairs[0] * 10_000 + pairs[1])


def drawn(n, queries, items, seed):
    rng = np.random.default_rng(seed)
    return np.sort(rng.integers(queries, size=n)), *rng.integers(items, size=(2, n))


@pytest.mark.parametrize(("n", "queries", "items"), [(1, 1, 1), (400, 20, 5), (3000, 7, 900)])
def test_pairs_that_are_listed_query_by_query(n, queries, items):
    check(*drawn(n, queries, items, 0))


def test_pairs_in_any_order_and_long_queries(monkeypatch):
    query, one, other = drawn(500, 20, 8, 1)
    mixed = np.random.default_rng(2).permutation(500)
    check(query[mixed], one[mixed], other[mixed])
    monkeypatch.setattr(shared_codes, "_LONGEST_RUN", 3)
    check(query, one, other)


def test_without_pairs_there_are_no_codes():
    none = np.empty(0, dtype=np.int64)
    assert [len(codes) for codes in inside_queries(none, none, none)] == [0, 0, 0]
