"""Estimates from some of the pairs that were listed once, for many choices of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_lab.inference.clustered import dot
from mpc_lab.inference.estimates import Estimates, effective_items, estimate
from mpc_lab.pairing import both_orders
from mpc_lab.pairing.both_orders import ClusterTotals, SharedPairs, add_clusters
from mpc_lab.pairing.moments import Quadratic
from mpc_lab.vocabulary import ITEM, VARIANCES, Flags, Floats, Ints


@dataclass(frozen=True)
class ListedSums:
    """What chosen pairs add up to.

    Attributes
    ----------
    pairs : int
    mean : float
        Of their differences, taken away before squares are added up; NaN without pairs.
    naive : float64 array (3,)
        What takes the place of Σc², Σcu and Σu² over pairs.
    over : ClusterTotals
        Sums over clusters.
    """

    pairs: int
    mean: float
    naive: Floats
    over: ClusterTotals


def sum_listed(
    shared: SharedPairs, chosen: Ints, inside: Flags, d: Floats, weight: Floats | None = None
) -> ListedSums:
    """Add up the differences of chosen pairs, about their mean, over clusters.

    Parameters
    ----------
    shared : SharedPairs
        Of all listed pairs.
    chosen : int64 array
        Some of them, ascending.
    inside : bool array (chosen,)
        Whether the first item of each is on the side of the group.
    d : float64 array (chosen,)
    weight : float64 array (chosen,), optional
        What each counts; by default 1.
    """
    n = len(chosen)
    if not n or weight is None:
        mean = float(d.mean()) if n else float("nan")
        over = add_clusters(shared, chosen, inside, d - mean, np.empty(0))
        return ListedSums(n, mean, over.sums[both_orders.NAIVE], over)
    count = weight * (n / weight.sum())
    mean = float(dot(count, d)) / n
    u = count * (d - mean)
    over = add_clusters(shared, chosen, inside, u, count)
    # Σcu is read as Σu: it has a count for each pair and the right sum of squares.
    apart = float(u.sum()) / n
    residual = u - apart * count
    naive = np.array([n, u.sum(), dot(residual, residual) + n * apart**2])
    return ListedSums(n, mean, naive, over)


_KINDS = {
    "query": both_orders.QUERY,
    "item": both_orders.ITEMS,
    "dyad": both_orders.DYAD,
    "item_query": both_orders.ITEM_QUERY,
    "dyad_query": both_orders.DYAD_QUERY,
}


def estimate_each(
    found: Sequence[ListedSums], cluster: str, *, owner: str = ITEM, level: float = 0.95
) -> Estimates:
    """Return the mean of each choice of pairs with its inference, as `estimate_listed` does.

    Parameters
    ----------
    found : sequence of ListedSums
        With items where the way to cluster needs them.
    cluster : {"naive", "query", "item", "producer", "union"}
    owner : {"item", "producer"}
        Who the items of these pairs are.
    level : float
    """
    pairs = np.array([one.pairs for one in found], dtype=np.int64)
    mean = np.array([one.mean for one in found], dtype=np.float64)
    sums = np.array([one.over.sums for one in found]).reshape(-1, both_orders.N_KINDS, 3)
    numbers = np.array([one.over.numbers for one in found], dtype=np.int64)
    numbers = numbers.reshape(-1, both_orders.N_NUMBERS)
    by = {"naive": Quadratic(*np.array([one.naive for one in found]).reshape(-1, 3).T)}
    has_items, effective = VARIANCES[cluster].needs_items, None
    if has_items:
        sides = np.array([one.over.sides for one in found]).reshape(-1, 2)
        effective = effective_items(pairs, *sides.T)
    for kind, number in _KINDS.items():
        if has_items or kind == "query":
            by[kind] = Quadratic(*sums[:, number].T)
    return estimate(
        pairs,
        np.nan_to_num(mean),
        by,
        clusters=numbers[:, both_orders.N_QUERIES],
        cluster=cluster,
        level=level,
        item_effective=effective,
        shared_items=numbers[:, both_orders.N_ITEM_QUERIES] > numbers[:, both_orders.N_ITEMS],
        owner=owner,
    )
