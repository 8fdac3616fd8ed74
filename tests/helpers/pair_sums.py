"""Small random pair lists, and their sums by cluster, written the slow way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sums:
    cc: np.ndarray
    cu: np.ndarray
    uu: np.ndarray

    def at(self, delta):
        return self.uu - 2 * delta * self.cu + delta**2 * self.cc


@dataclass(frozen=True)
class Pairs:
    """Pair p compares inside[p], an item of the group, with outside[p] in query[p]."""

    query: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    d: np.ndarray

    @property
    def count(self):
        return np.array(len(self.d))


def random_pairs(seed, *, n=60, queries=9, items=14, fixed_membership=True):
    rng = np.random.default_rng(seed)
    half = items // 2
    while True:
        query = rng.integers(queries, size=3 * n)
        inside = rng.integers(half if fixed_membership else items, size=3 * n)
        outside = rng.integers(half if fixed_membership else 0, items, size=3 * n)
        keep = inside != outside
        rows = np.column_stack([query, inside, outside])[keep]
        # In one query a row is an item, so two items meet there once and in one role.
        low, high = np.minimum(rows[:, 1], rows[:, 2]), np.maximum(rows[:, 1], rows[:, 2])
        _, first = np.unique(np.column_stack([rows[:, 0], low, high]), axis=0, return_index=True)
        if len(first) >= n:
            rows = rows[np.sort(first)[:n]]
            shock = rng.normal(size=(queries, 1)) + rng.normal(size=(1, items))
            d = shock[rows[:, 0], rows[:, 1]] - shock[rows[:, 0], rows[:, 2]]
            return Pairs(*rows.T, d + 0.3 + rng.normal(size=n))


def sums(labels, u):
    _, code = np.unique(np.asarray(labels), axis=0, return_inverse=True)
    count, total = np.bincount(code).astype(float), np.bincount(code, u)
    return Sums(np.array(count @ count), np.array(count @ total), np.array(total @ total))


def families(pairs, center=0.0):
    u = pairs.d - center
    twice = np.concatenate([u, u])
    item = np.concatenate([pairs.inside, pairs.outside])
    low, high = np.minimum(pairs.inside, pairs.outside), np.maximum(pairs.inside, pairs.outside)
    return {
        "naive": sums(np.arange(len(u)), u),
        "query": sums(pairs.query, u),
        "item": sums(item, twice),
        "dyad": sums(np.column_stack([low, high]), u),
        "item_query": sums(np.column_stack([item, np.tile(pairs.query, 2)]), twice),
    }


def squared_counts(labels):
    return np.array(float((np.unique(labels, return_counts=True)[1] ** 2).sum()))


def double_sum(pairs, dependent):
    """Return P⁻² Σ_p Σ_p' u_p u_p' over the pairs of pairs that `dependent` picks."""
    u = pairs.d - pairs.d.mean()
    same_query = pairs.query[:, None] == pairs.query[None, :]
    ends = np.stack([pairs.inside, pairs.outside])
    same_item = (ends[:, None, :, None] == ends[None, :, None, :]).any(axis=(0, 1))
    return u @ dependent(same_query, same_item) @ u / len(u) ** 2
