"""A small log, in every kind of table that a user may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from mpc_lab.ranking import Ranking

COLUMNS: dict[str, Any] = {
    "query": "user",
    "item": "movie",
    "score": "score",
    "outcome": "rating",
    "group": "genres",
    "group_sep": "|",
}
KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dict": lambda log: log,
    "arrays": lambda log: {name: pd.Series(values).to_numpy() for name, values in log.items()},
    "pandas": pd.DataFrame,
    "pandas objects": lambda log: pd.DataFrame(log, dtype=object),
    "pandas nullable": lambda log: pd.DataFrame(log).convert_dtypes(),
    "pandas arrow": lambda log: pd.DataFrame(log).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda log: pl.DataFrame(log, strict=False),
    "pyarrow": lambda log: pa.table(log),
    "pyarrow chunks": lambda log: pa.concat_tables([pa.table(log)[:2], pa.table(log)[2:]]),
}


def small_log(**changes: Any) -> dict[str, Any]:
    """Return five rows of two users, with columns changed or added."""
    log = {
        "user": [7, 7, 7, 3, 3],
        "movie": ["b", "a", "c", "a", "d"],
        "score": [0.5, 0.25, 0.5, -1.0, 2.0],
        "rating": [5, 3, 4, 1, 2],
        "genres": ["Action|Drama", "Drama", "", None, "Action"],
    }
    return log | changes


def make(log: Any = None, **columns: Any) -> Ranking:
    """Return a ranking of the small log, or of another, with some keywords changed."""
    return Ranking(small_log() if log is None else log, **{**COLUMNS, **columns})


def arrays(ranking: Ranking) -> dict[str, Any]:
    """Return everything that the rooms below read."""
    found = {
        "query": ranking.query_code,
        "item": ranking.item_code,
        "unit": ranking.unit_code,
        "segment": ranking.segment_code,
        "position": ranking.position,
        "score": ranking.score,
        "outcome": ranking.outcome,
        "masks": ranking.masks,
        "query labels": ranking.query_labels(np.arange(ranking.n_queries)),
    }
    return {name: values for name, values in found.items() if values is not None}


def assert_same(one: Ranking, other: Ranking) -> None:
    """Insist on the same groups, segments and arrays, bit by bit."""
    assert (one.groups, one.segments) == (other.groups, other.segments)
    first, second = arrays(one), arrays(other)
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)
        assert values.dtype == second[name].dtype, name
        assert values.flags.c_contiguous, name
        assert values.flags.writeable, name
