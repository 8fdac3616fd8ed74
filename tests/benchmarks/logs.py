"""Logs of any size to measure on."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd


def overlapping_groups(rows: int, *, queries: int, items: int, groups: int = 20, seed: int = 0):
    """Return a frame of a ranking log whose items are each in none, one or several groups.

    Integer ids, lists of about ``rows / queries`` items, normal scores, outcomes that follow them,
    group labels as one text with "|" between them.
    """
    rng = np.random.default_rng(seed)
    query = rng.integers(0, queries, rows)
    item = np.empty(rows, dtype=np.int64)
    order = np.argsort(query, kind="stable")
    sizes = np.bincount(query, minlength=queries)
    # A stride that shares no factor with the number of items visits no item of a query twice.
    strides = [k for k in range(1, min(items, 500)) if math.gcd(k, items) == 1]
    place = np.arange(rows) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    step = np.repeat(rng.choice(strides, queries), sizes)
    item[order] = (np.repeat(rng.integers(items, size=queries), sizes) + step * place) % items
    labels = [f"g{k:02d}" for k in range(groups)]
    share = np.linspace(0.02, 0.3, groups)
    member = rng.random((items, groups)) < share
    text = np.array(["|".join(np.array(labels)[m]) for m in member])
    score = rng.normal(size=rows)
    outcome = (rng.normal(size=rows) + score > 0).astype(np.int64)
    return pd.DataFrame(
        {"query": query, "item": item, "score": score, "outcome": outcome, "groups": text[item]}
    )
