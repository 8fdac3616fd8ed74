"""Small logs for tests of the pairing room."""

from __future__ import annotations

import numpy as np

import mpc_lab as mpc


def small_ranking(seed=0, *, queries=40, size=12, items=30, levels=64, groups=3, **columns):
    """Return a ranking with ties, overlapping groups and items that recur."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), size)
    n = len(query)
    frame = {
        "query": query,
        "item": np.concatenate([rng.permutation(items)[:size] for _ in range(queries)]),
        "score": rng.integers(0, levels, n) / 1024,
        "outcome": rng.integers(0, 4, n),
        **{f"g{k}": rng.random(n) < 0.4 for k in range(groups)},
        **columns,
    }
    return mpc.Ranking(
        frame,
        query="query",
        item="item",
        score="score",
        outcome="outcome",
        group=[f"g{k}" for k in range(groups)],
        position="position" if "position" in columns else None,
        weight="weight" if "weight" in columns else None,
    )
