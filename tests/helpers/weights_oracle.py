"""Pairs that do not count alike, by double loops and from the definitions alone.

Nothing here imports ``mpc_lab``. Every pair gets its weight by itself, and variances are sums over
pairs of pairs.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from helpers import sides_oracle
from helpers.oracle import Log, items_recur, same, share_item

ESTIMANDS = ("pairs", "queries", "root")


def pair_weights(log: Log, kept: list[tuple[int, int]], weight: dict, estimand: str) -> np.ndarray:
    """Return what each pair counts, given the weight of each query."""
    pairs = Counter(log.query[i] for i, _ in kept)
    divide = {"pairs": lambda n: 1.0, "queries": float, "root": math.sqrt}[estimand]
    return np.array([weight[log.query[i]] / divide(pairs[log.query[i]]) for i, _ in kept])


@dataclass(frozen=True)
class Weighted:
    """The mean gap of weighted pairs, its raw variances and effective clusters."""

    estimate: float
    raw: dict[str, float]
    size: dict[str, float]


def effective(labels: list, weight: np.ndarray) -> float:
    """Return (Σc)²/Σc², c the weight of a cluster."""
    totals: dict = {}
    for label, value in zip(labels, weight, strict=True):
        totals[label] = totals.get(label, 0.0) + value
    return sum(totals.values()) ** 2 / sum(value**2 for value in totals.values())


def sums(log: Log, kept: list[tuple[int, int]], w: np.ndarray, *, recur=None) -> Weighted | None:
    """Return what weighted pairs come to; None where there is none."""
    if not kept:
        return None
    d = np.array([log.outcome[i] - log.outcome[j] for i, j in kept])
    theta = float(w @ d / w.sum())
    z = w * (d - theta) / w.sum()
    clusters = [log.cluster[i] for i, _ in kept]
    in_query = same(clusters)
    raw = {"naive": z @ z, "query": z @ in_query @ z}
    size = {"query": effective(clusters, w)}
    if log.item is not None:
        in_item = share_item(log, kept)
        raw["item"] = z @ in_item @ z
        raw["both"] = z @ (in_item & in_query) @ z
        raw["union"] = raw["item"] + raw["query"] - raw["both"]
        size["item"] = min(effective([log.item[p[side]] for p in kept], w) for side in (0, 1))
        shared = items_recur(log) if recur is None else recur
        size["union"] = min(size["query"], size["item"]) if shared else size["query"]
    return Weighted(theta, raw, size)


def left_out(log: Log, kept: list[tuple[int, int]], w: np.ndarray) -> dict[str, float]:
    """Return the raw variances that allow for heavy clusters, by leaving each cluster out.

    A cluster adds the square of what the mean changes by without its pairs; pairs of the same two
    items, and items inside a query, are in twice, and are taken off as they are.
    """
    d = np.array([log.outcome[i] - log.outcome[j] for i, j in kept])
    theta = float(w @ d / w.sum())

    def changes(labels: list[tuple]) -> float:
        total = 0.0
        for label in {name for names in labels for name in names}:
            rest = np.array([label not in names for names in labels])
            total += (theta - w[rest] @ d[rest] / w[rest].sum()) ** 2 if rest.any() else np.nan
        return total

    found = {"query": changes([(log.cluster[i],) for i, _ in kept])}
    z = w * (d - theta) / w.sum()
    two = [tuple(sorted((str(log.item[i]), str(log.item[j])))) for i, j in kept]
    found["item"] = changes(two) - z @ same(list(map(str, two))) @ z
    clusters = same([log.cluster[i] for i, _ in kept])
    both = z @ (share_item(log, kept) & clusters) @ z
    found["union"] = found["item"] + found["query"] - both
    return found


def on_two_sides(
    log: Log, group: str, epsilon: float, weight: dict, estimand: str, scores=None
) -> sides_oracle.TwoSided | None:
    """Return the mean of two sides of weighted pairs."""
    with _WeightedEntries(weight, estimand):
        return sides_oracle.sums(log, group, epsilon, scores)


def place_effect(
    log: Log, group: str, epsilon: float, weight: dict, estimand: str
) -> sides_oracle.TwoSided | None:
    """Return the jump between two sides of weighted pairs."""
    with _WeightedEntries(weight, estimand):
        return sides_oracle.place_effect(log, group, epsilon)


class _WeightedEntries:
    """Let the double loops over two sides see weighted entries."""

    def __init__(self, weight: dict, estimand: str) -> None:
        self.weight, self.estimand = weight, estimand

    def __enter__(self) -> None:
        self.plain = sides_oracle.two_sides
        sides_oracle.two_sides = self._two_sides

    def __exit__(self, *_: object) -> None:
        sides_oracle.two_sides = self.plain

    def _two_sides(self, log, group, epsilon, scores=None):
        kept, entries = self.plain(log, group, epsilon, scores)
        w = pair_weights(log, kept, self.weight, self.estimand)
        return kept, [replace(entry, weight=entry.weight * w[entry.pair]) for entry in entries]
