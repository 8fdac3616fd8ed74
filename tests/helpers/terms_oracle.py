"""Pairs on other terms by double loops: scales of closeness, partners of one group, caps, signs.

Nothing here imports ``mpc_lab``. Logs are drawn so that no two distances are equal but those of
ties, and a rounding error cannot move a pair over a threshold.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import pstdev

import numpy as np

from helpers import oracle
from helpers.oracle import Log

ROOM = 1e-11


def draw_log(seed: int, *, position: bool = False, n_queries: int = 9) -> Log:
    """Draw queries of different spread, some of them without any, with ties and recurring items."""
    rng = np.random.default_rng(seed)
    query, score, item, groups, place = [], [], [], [], []
    for q in range(n_queries):
        n = int(rng.integers(1, 9))
        drawn = rng.normal(rng.normal(), 10.0 ** rng.integers(-2, 2), n)
        if q == 3:
            drawn[:] = drawn[0]  # one distinct score
        tied = rng.random(n) < 0.3
        drawn[tied] = drawn[0]
        query += [q] * n
        score += drawn.tolist()
        item += rng.choice(15, n, replace=False).tolist()
        place += (1 + rng.permutation(n)).tolist()
        groups += [frozenset(g for g in "abc" if rng.random() < 0.45) for _ in range(n)]
    outcome = np.round(np.exp(rng.normal(0, 2, len(query)))).tolist()
    return Log(query, score, outcome, groups, item, position=place if position else None)


def frame_of(log: Log) -> dict[str, object]:
    """Return the log as columns, its groups as boolean ones."""
    found = {"query": log.query, "score": log.score, "outcome": log.outcome, "item": log.item}
    found |= {name: [name in of_row for of_row in log.groups] for name in log.names}
    return found if log.position is None else {**found, "position": log.position}


def scaled(log: Log, closeness: str, scores: list[float] | None = None) -> list[float | None]:
    """Return scores on the scale of distances; None where a query has no pairs."""
    used = log.score if scores is None else scores
    found: list[float | None] = list(used)
    for query in dict.fromkeys(log.query):
        rows = log.rows_of(query)
        logged, here = [log.score[row] for row in rows], [used[row] for row in rows]
        for row in rows:
            if closeness == "query_sd":
                apart = len(set(logged)) > 1
                found[row] = used[row] / pstdev(logged) if apart else None
            elif closeness == "percentile":
                below = sum(value < used[row] for value in here)
                tied = sum(value == used[row] for value in here)
                found[row] = (below + (tied + 1) / 2 - 0.5) / len(rows)
    return found


def pairs(
    log: Log,
    group: str,
    mode: str,
    epsilon: float = math.inf,
    *,
    scores: list[float] | None = None,
    closeness: str = "score",
    against: str | None = None,
) -> list[tuple[int, int, float]]:
    """Return (row of g, other row, distance) of each pair."""
    used = log.score if scores is None else scores
    scale = scaled(log, closeness, scores)
    kept = []
    for query in dict.fromkeys(log.query):
        rows = log.rows_of(query)
        beside = oracle.neighbours(log, query, used, logged_order=scores is None)
        for i in rows:
            for j in rows:
                if group not in log.groups[i] or group in log.groups[j] or scale[i] is None:
                    continue
                if against is not None and against not in log.groups[j]:
                    continue
                above = used[j] >= used[i] if mode == "matched" else used[j] <= used[i]
                if mode == "adjacent":
                    above = frozenset((i, j)) in beside
                if above:
                    kept.append((i, j, abs(scale[j] - scale[i])))
    return within(kept, epsilon, closeness=closeness)


def within(every, epsilon: float, *, closeness: str = "score", against: str | None = None):
    """Return those of some pairs that are close enough; whom they are against is settled."""
    room = 0.0 if closeness == "score" else ROOM
    return [pair for pair in every if pair[2] <= epsilon + room]


def threshold(log: Log, group: str, wanted, **terms) -> float:
    """Return the K-th smallest distance of the matched pairs."""
    distances = sorted(distance for *_, distance in pairs(log, group, "matched", **terms))
    k = oracle.pairs_wanted(wanted, len(distances))
    return distances[min(k, len(distances)) - 1] if distances else math.nan


def sums(log: Log, kept, *, contrast: str = "difference", cap: float = math.inf) -> oracle.Sums:
    """Return what pairs add up to, with outcomes above the cap set to it."""
    capped = replace(log, outcome=[min(value, cap) for value in log.outcome])
    return oracle.sums(capped, [(i, j) for i, j, _ in kept], contrast)
