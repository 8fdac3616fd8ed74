"""Pairs whose mean difference bends with their gap, in queries with a shock of their own."""

from __future__ import annotations

import numpy as np


def near_pairs(seed=0, n=400, queries=60, ties=0):
    rng = np.random.default_rng(seed)
    gap = rng.random(n)
    gap[:ties] = 0.0
    query = rng.integers(queries, size=n)
    d = 0.4 - gap + 0.5 * gap**2 + rng.normal(size=queries)[query] + rng.normal(size=n)
    return gap, d, query
