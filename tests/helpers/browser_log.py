"""The log of the browser tests, and the cell that loads its audit."""

from __future__ import annotations

import numpy as np
import pandas as pd

COLUMNS = {name: name for name in ("query", "item", "score", "outcome", "group", "segment")}
GROUPS = ("alpha", "beta", "gamma", "delta")
LOAD = f"""
import pandas as pd
import mpc_lab as mpc
ranking = mpc.Ranking(pd.read_parquet("log.parquet"), **{COLUMNS!r})
audit = mpc.load("audit.nc", ranking=ranking)
"""


def log(groups, queries=400, per_query=20, seed=0):
    """Return a log in which the first group is undervalued."""
    draw = np.random.default_rng(seed)
    n = queries * per_query
    score = draw.uniform(size=n)
    group = draw.integers(0, len(groups), n)
    truth = np.clip(score + 0.3 * (group == 0), 0, 1)
    return pd.DataFrame(
        {
            "query": np.repeat(np.arange(queries), per_query),
            "item": np.tile(np.arange(per_query), queries) + per_query * draw.integers(0, 40, n),
            "score": score,
            "outcome": (draw.uniform(size=n) < truth).astype(float),
            "group": np.array(groups, dtype=object)[group],
            "segment": np.where(np.repeat(np.arange(queries), per_query) % 2, "u", "v"),
        }
    )
