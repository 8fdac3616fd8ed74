from __future__ import annotations

import numpy as np
import pytest

from mpc_lab.pairing.kernels import kernel, sort_order


@kernel
def _order(key, order, spare):
    sort_order(key, order, spare)


@pytest.mark.parametrize("n", [0, 1, 2, 11, 12, 13, 24, 25, 100, 1000, 4097])
@pytest.mark.parametrize("values", [1, 3, 10**6])
def test_the_order_is_that_of_a_stable_sort(n, values):
    key = np.random.default_rng(n).integers(0, values, n).astype(np.float64)
    order = np.full(n, -1)
    _order(key, order, np.empty(n, dtype=np.int64))
    assert order.tolist() == np.argsort(key, kind="stable").tolist()


@pytest.mark.parametrize("step", [1, -1])
def test_sorted_keys_are_sorted_either_way(step):
    key = np.arange(500.0)[::step].copy()
    order = np.empty(500, dtype=np.int64)
    _order(key, order, np.empty(500, dtype=np.int64))
    assert key[order].tolist() == sorted(key)
