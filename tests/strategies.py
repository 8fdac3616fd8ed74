"""Random logs full of ties, for hypothesis, and the door from them to a Ranking."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from oracle import Log

import mpc_lab as mpc

STEP = 2.0**-10  # sums and differences of such scores are exact
MAX_ITEMS, MAX_QUERIES = 12, 8
POOL = np.random.default_rng(20).normal(size=9).tolist()  # numbers whose differences round

integers = st.integers(0, 5)
eighths = st.integers(-16, 16).map(lambda k: k / 8)
awkward = st.sampled_from(POOL)


def _some_groups(number: int) -> st.SearchStrategy[frozenset[str]]:
    """Return 0 to 4 of ``number`` groups; with many groups, mostly those about the 64th."""
    if number > 6:
        names = [f"g{k:03d}" for k in (0, 1, *range(number - 8, number))]
        return st.frozensets(st.sampled_from(names), max_size=4)
    names = [f"g{k}" for k in range(number)]
    subsets = itertools.chain.from_iterable(itertools.combinations(names, k) for k in range(5))
    return st.sampled_from([frozenset(subset) for subset in subsets])


@st.composite
def logs(draw, outcomes=None, groups=None, positions=None, units=None, distinct_scores=False):
    """Draw a log: 1 to 8 queries of 1 to 12 items, few distinct scores, overlapping groups."""
    outcomes = draw(st.sampled_from([integers, eighths])) if outcomes is None else outcomes
    n_groups = draw(st.integers(1, 6)) if groups is None else groups
    n_queries = draw(st.integers(1, MAX_QUERIES))
    n = draw(st.integers(1, min(60, n_queries * MAX_ITEMS)))
    width = draw(st.sampled_from([0, 2, 8, 40]))
    row = st.tuples(
        st.integers(0, n_queries - 1),
        st.integers(0, MAX_ITEMS - 1),
        st.integers(-2, width - 2),
        outcomes,
        _some_groups(n_groups),
    )
    rows = draw(st.lists(row, min_size=n, max_size=n, unique_by=lambda r: r[:2]))
    query, item, score, outcome, member = map(list, zip(*rows, strict=True))
    if not any(member):
        member[0] = frozenset({"g0"})
    if distinct_scores:
        score = draw(st.permutations(range(n)))
    log = Log(query, [k * STEP for k in score], outcome, member, item)
    if draw(st.booleans()) if positions is None else positions:
        log = replace(log, position=draw(_positions(query)))
    if draw(st.booleans()) if units is None else units:
        unit_of = draw(st.lists(st.integers(0, 3), min_size=n_queries, max_size=n_queries))
        log = replace(log, unit=[unit_of[label] for label in query])
    return log


@st.composite
def _positions(draw, query):
    """Draw a logged order that has little to do with the scores, with holes in it."""
    order = draw(st.permutations(range(1, MAX_ITEMS + 4)))
    turn: dict[int, int] = {}
    found = []
    for label in query:
        turn[label] = turn.get(label, -1) + 1
        found.append(order[(turn[label] + label) % len(order)])
    return found


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


# A grid that meets gaps exactly, lies between them, and begins at ties.
GRID = [0.0, STEP, 2.5 * STEP, 7 * STEP, 1.0]
