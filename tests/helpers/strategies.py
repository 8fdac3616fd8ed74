"""Random logs full of ties, for hypothesis, and the door from them to a Ranking."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import mpc_lab as mpc
from helpers.oracle import Log

STEP = 2.0**-10  # sums and differences of such scores are exact
GRID = [0.0, STEP, 2.5 * STEP, 7 * STEP, 1.0]  # from ties on; on gaps and between them


def calmly(examples: int) -> settings:
    """Return settings that try so many examples, a quarter of them outside of CI."""
    tried = examples if os.environ.get("CI") else -(-examples // 4)
    return settings(deadline=None, max_examples=tried, suppress_health_check=[HealthCheck.too_slow])


AWKWARD = np.random.default_rng(20).normal(size=9).tolist()  # their differences round
OUTCOMES = {
    "integers": list(range(6)),
    "clicks": [0, 1],
    "eighths": [k / 8 for k in range(-16, 17)],
    "awkward": AWKWARD,
}


def _member(rng: np.random.Generator, names: list[str]) -> frozenset[str]:
    """Draw 0 to 4 groups, of many mostly the last ones: they are beyond the first mask."""
    names = names if rng.random() < 0.3 else names[-10:]
    number = min(len(names), rng.integers(0, 5))
    return frozenset(rng.choice(names, size=number, replace=False).tolist())


@st.composite
def logs(draw, outcomes=None, groups=None, positions=None, units=None, distinct_scores=False):
    """Draw a log: 1 to 8 queries of 1 to 12 items, few distinct scores, overlapping groups.

    The shape is drawn by hypothesis and shrinks; what fills it comes from a seed.
    """
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_queries = draw(st.sampled_from(range(1, 9)))
    longest = draw(st.sampled_from([1, 2, 3, 6, 9, 12]))
    catalogue = draw(st.sampled_from([12, 15, 1000]))
    spread = draw(st.sampled_from([1, 3, 10, 40]))
    values = OUTCOMES[draw(st.sampled_from(["integers", "clicks", "eighths"]))]
    n_groups = draw(st.sampled_from(range(1, 7))) if groups is None else groups
    names = [f"g{k:03d}" for k in range(n_groups)]

    query = np.repeat(np.arange(n_queries), rng.integers(1, longest + 1, n_queries))
    query = rng.permutation(query) if draw(st.booleans()) else query
    n = query.size
    score = rng.permutation(n) if distinct_scores else rng.integers(-2, spread - 2, n)
    member = [_member(rng, names) for _ in range(n)]
    if not any(member):
        member[0] = frozenset(names[:1])
    log = Log(
        query=query.tolist(),
        score=(score * STEP).tolist(),
        outcome=rng.choice(values if outcomes is None else OUTCOMES[outcomes], n).tolist(),
        groups=member,
        item=_distinct_in_query(rng, query, catalogue),
    )
    if draw(st.booleans()) if positions is None else positions:
        log = replace(log, position=_distinct_in_query(rng, query, 15))
    if draw(st.booleans()) if units is None else units:
        unit_of = rng.integers(0, 4, n_queries)
        log = replace(log, unit=unit_of[query].tolist())
    return log


def _distinct_in_query(rng: np.random.Generator, query: np.ndarray, most: int) -> list[int]:
    """Draw whole numbers 1 to ``most``, none twice in a query."""
    found = np.zeros(query.size, dtype=np.int64)
    for label in np.unique(query):
        rows = np.flatnonzero(query == label)
        found[rows] = rng.permutation(most)[: rows.size] + 1
    return found.tolist()


def ranking_of(log: Log, *, item: bool = True, **extra) -> mpc.Ranking:
    """Return the Ranking of a log; groups are a list-valued column."""
    columns = {
        "query": [f"q{label}" for label in log.query],
        "score": log.score,
        "outcome": log.outcome,
        "groups": [sorted(member) for member in log.groups],
        **extra,
    }
    names = {"query": "query", "score": "score", "outcome": "outcome", "group": "groups"}
    for name in ("item", "unit", "position"):
        values = getattr(log, name)
        if values is not None and (item or name != "item"):
            columns[name] = values
            names[name] = name
    return mpc.Ranking(pd.DataFrame(columns), **names)


def boolean_ranking(score, outcome, query=None, **groups) -> mpc.Ranking:
    """Return the Ranking of plain columns, each group a boolean column."""
    query = ["q"] * len(score) if query is None else query
    frame = {"query": query, "score": score, "outcome": outcome, **groups}
    return mpc.Ranking(
        pd.DataFrame(frame), query="query", score="score", outcome="outcome", group=list(groups)
    )
