"""Variances and estimates from pairs that are listed one by one, each with a number of its own."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import BoolArray, FloatArray, IntArray
from mpc_lab.inference.estimates import Estimates, effective_clusters, effective_items, estimate
from mpc_lab.inference.fitting import dot
from mpc_lab.pairing.moments import Quadratic


@dataclass(frozen=True)
class ItemCodes:
    """What the two items of each pair are, as dense codes.

    Attributes
    ----------
    inside, outside : array of int64 (pair,)
        The item of the group, and the other item.
    dyad : array of int64
        The same two items in either role.
    inside_query, outside_query, dyad_query : array of int64
        The same inside one query.
    """

    inside: IntArray
    outside: IntArray
    dyad: IntArray
    inside_query: IntArray
    outside_query: IntArray
    dyad_query: IntArray


@dataclass(frozen=True)
class PairCodes:
    """What pairs share with each other, found once by sorting, O(P log P).

    Attributes
    ----------
    query : array of int64 (pair,)
        The query, or unit, of each pair.
    items : ItemCodes or None
        None where items are not known.
    """

    query: IntArray
    items: ItemCodes | None = None

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self.query)

    @property
    def queries(self) -> int:
        """Number of queries (or units) with a pair."""
        return _distinct(self.query)

    @property
    def effective_queries(self) -> float:
        """(Σc)²/Σc² over the pair counts c of queries; NaN without pairs."""
        return float(effective_clusters(np.array(self.pairs), _squared_counts(self.query)))

    @property
    def effective_items(self) -> tuple[float, float]:
        """The same over the items of the group and over the other items; NaN without items."""
        if self.items is None:
            return float("nan"), float("nan")
        count = np.array(self.pairs)
        inside, outside = (_squared_counts(c) for c in (self.items.inside, self.items.outside))
        return float(effective_clusters(count, inside)), float(effective_clusters(count, outside))

    @property
    def shares_items(self) -> bool:
        """Whether some item has pairs in two queries."""
        if self.items is None:
            return False
        item = np.concatenate([self.items.inside, self.items.outside])
        item_query = np.concatenate([self.items.inside_query, self.items.outside_query])
        return _distinct(item_query) > _distinct(item)

    def take(self, chosen: BoolArray | IntArray | slice) -> PairCodes:
        """Return the codes of some of the pairs."""
        if self.items is None:
            return PairCodes(self.query[chosen])
        parts = (getattr(self.items, field.name)[chosen] for field in fields(ItemCodes))
        return PairCodes(self.query[chosen], ItemCodes(*parts))

    def exchanged(self, swap: BoolArray) -> PairCodes:
        """Return the codes with the two sides of the pairs in `swap` exchanged."""
        if self.items is None:
            return self
        i, j = self.items.inside, self.items.outside
        iq, jq = self.items.inside_query, self.items.outside_query
        return PairCodes(
            self.query,
            ItemCodes(
                np.where(swap, j, i),
                np.where(swap, i, j),
                self.items.dyad,
                np.where(swap, jq, iq),
                np.where(swap, iq, jq),
                self.items.dyad_query,
            ),
        )

    def sums(self, u: FloatArray) -> dict[str, Quadratic]:
        """Return Σc², Σcu and Σu² over each kind of cluster, for one number u a pair."""
        u = np.asarray(u, dtype=np.float64)
        count = np.array(float(len(u)))
        by = {"naive": Quadratic(count, u.sum(), dot(u, u)), "query": _quadratic(u, self.query)}
        if self.items is not None:
            items = self.items
            by["item"] = _quadratic(u, items.inside, items.outside)
            by["dyad"] = _quadratic(u, items.dyad)
            by["item_query"] = _quadratic(u, items.inside_query, items.outside_query)
            by["dyad_query"] = _quadratic(u, items.dyad_query)
        return by


def pair_codes(
    query: IntArray, item_i: IntArray | None = None, item_j: IntArray | None = None
) -> PairCodes:
    """Find what listed pairs share.

    Parameters
    ----------
    query : array of int64 (pair,)
        The query, or unit, of each pair; numbers from 0 up.
    item_i, item_j : array of int64 (pair,), optional
        Its item of the group and its other item; both or neither.
    """
    query = np.asarray(query, dtype=np.int64)
    if (item_i is None) != (item_j is None):
        raise MpcError("item_i and item_j belong together, but only one came; give both or none.")
    if item_i is None or item_j is None:
        return PairCodes(query)
    i, j = (np.asarray(item, dtype=np.int64) for item in (item_i, item_j))
    if not len(query) == len(i) == len(j):
        raise MpcError(
            "query, item_i and item_j must have one entry for each pair, "
            f"got {len(query)}, {len(i)} and {len(j)}."
        )
    dyad = _joint(np.minimum(i, j), np.maximum(i, j))
    twice = _joint(np.concatenate([i, j]), np.concatenate([query, query]))
    return PairCodes(
        query,
        ItemCodes(i, j, dyad, twice[: len(i)], twice[len(i) :], _joint(dyad, query)),
    )


def pair_variances(
    z: FloatArray,
    query: IntArray,
    item_i: IntArray | None = None,
    item_j: IntArray | None = None,
) -> dict[str, float]:
    """Return the raw variances of an estimate whose pair p contributes z_p / P.

    They are those of a mean with u_p replaced by z_p, which should sum to 0 as residuals do::

        naive  P⁻² Σ z_p²
        query  P⁻² Σ_q (Σ_{p in q} z_p)²
        item   P⁻² [Σ_i S_i² − Σ_ij Z_ij²]
        both   P⁻² [Σ_iq S_iq² − Σ_ijq Z_ijq²]
        union  item + query − both

    S sums z over the pairs with item i on either side, Z over those of the same two items; with
    the index q, inside one query.

    Parameters
    ----------
    z : array (pair,)
    query, item_i, item_j
        As in `pair_codes`.

    Returns
    -------
    dict of str to float
        naive and query; with items also item, both and union.

    References
    ----------
    Aronow, Samii & Assenova (2015), Cluster-robust variance estimation for dyadic data.

    Examples
    --------
    >>> import numpy as np
    >>> pair_variances(np.array([1.0, 1.0, -2.0]), np.array([0, 0, 1]))["query"] * 9
    8.0
    """
    squares = {name: float(q.uu) for name, q in pair_codes(query, item_i, item_j).sums(z).items()}
    raw = {"naive": squares["naive"], "query": squares["query"]}
    if "item" in squares:
        raw["item"] = squares["item"] - squares["dyad"]
        raw["both"] = squares["item_query"] - squares["dyad_query"]
        raw["union"] = raw["item"] + raw["query"] - raw["both"]
    return {name: value / len(z) ** 2 for name, value in raw.items()}


def estimate_listed(
    u: FloatArray, center: float, codes: PairCodes, *, cluster: str, level: float = 0.95
) -> Estimates:
    """Return center + mean(u) with its inference, by the rules of `mpc_lab.inference.estimates`.

    Parameters
    ----------
    u : array (pair,)
        What each pair contributes, best near 0 on average so that squares do not cancel.
    center : float
        The number that was taken away.
    codes : PairCodes
        What the pairs share.
    cluster : {"naive", "query", "item", "union"}
    level : float

    Returns
    -------
    Estimates
        Of 0-dimensional arrays.
    """
    pairs = np.array(codes.pairs)
    items = codes.items
    return estimate(
        pairs,
        center,
        codes.sums(u),
        clusters=np.array(codes.queries),
        cluster=cluster,
        level=level,
        item_effective=None
        if items is None
        else effective_items(pairs, _squared_counts(items.inside), _squared_counts(items.outside)),
        shared_items=codes.shares_items,
    )


def _quadratic(u: FloatArray, *codes: IntArray) -> Quadratic:
    """Add over clusters; a pair is in one cluster for each array of codes."""
    size = max((int(code.max(initial=-1)) for code in codes), default=-1) + 1
    count, total = np.zeros(size), np.zeros(size)
    for code in codes:
        count += np.bincount(code, minlength=size)
        total += np.bincount(code, u, minlength=size)
    return Quadratic(dot(count, count), dot(count, total), dot(total, total))


def _squared_counts(code: IntArray) -> FloatArray:
    count = np.bincount(code).astype(np.float64)
    return dot(count, count)


def _distinct(code: IntArray) -> int:
    return int(np.count_nonzero(np.bincount(code)))


def _joint(one: IntArray, other: IntArray) -> IntArray:
    """Return dense codes of the combinations of two codes."""
    key = one * (int(other.max(initial=0)) + 1) + other
    return np.asarray(np.unique(key, return_inverse=True)[1], dtype=np.int64)
