"""Clustered estimates from one number for each pair, row or query, and from what these share.

Pairs that share a query or an item move together. `estimate_listed` takes listed pairs,
`cell_means` the entries of many cells at once, `ratio` and `mean_over_queries` what each query
adds up to, and `from_influence` any smooth function of sums over queries.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.estimates import (
    TOO_FEW_CLUSTERS,
    Estimates,
    critical,
    effective_clusters,
    effective_items,
    enough_clusters,
    estimate,
    t_interval,
)
from mpc_lab.inference.shared_codes import dyads, inside_queries
from mpc_lab.pairing.kernels import FEW_ROWS, kernel
from mpc_lab.pairing.moments import Quadratic
from mpc_lab.pairing.threads import at_once
from mpc_lab.vocabulary import ITEM, VARIANCES, Flags, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


@dataclass(frozen=True)
class ItemCodes:
    """The two items of each pair, as dense codes.

    Attributes
    ----------
    inside, outside : array of int64 (pair,)
        The item of the group, and the other item; or their producers.
    dyad : array of int64
        The same two items in either role; -1 where both are of one producer.
    inside_query, outside_query, dyad_query : array of int64
        The same inside one query.
    owner : {"item", "producer"}
        Who these items are.
    """

    inside: Ints
    outside: Ints
    dyad: Ints
    inside_query: Ints
    outside_query: Ints
    dyad_query: Ints
    owner: str = ITEM


@dataclass(frozen=True)
class PairCodes:
    """What pairs share with each other, found once by sorting, O(P log P).

    Attributes
    ----------
    query : array of int64 (pair,)
        The query, or unit, of each pair.
    items : ItemCodes or None
        None where items are not known.
    weight : float64 array (pair,), optional
        What each pair counts; by default 1.
    """

    query: Ints
    items: ItemCodes | None = None
    weight: Floats | None = None

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
        return self.effective(self.counts)[0]

    @property
    def counts(self) -> Floats:
        """What each pair counts, times a number that makes the mean 1."""
        if self.weight is None or not len(self.weight):
            return np.ones(self.pairs)
        return np.asarray(self.weight * (self.pairs / self.weight.sum()))

    def mean(self, values: Floats) -> float:
        """Return the mean of one number a pair; NaN without pairs."""
        if not len(values):
            return _NAN
        if self.weight is None:
            return float(values.mean())
        return float(dot(self.counts, values)) / self.pairs

    @property
    def effective_items(self) -> tuple[float, float]:
        """The same over the items of the group and over the other items; NaN without items."""
        if self.items is None:
            return float("nan"), float("nan")
        sides, count = (self.items.inside, self.items.outside), self.counts
        inside, outside = (effective(totals(side, count)) for side in sides)
        return inside, outside

    @property
    def shares_items(self) -> bool:
        """Whether some item has pairs in two queries."""
        if self.items is None:
            return False
        item = np.concatenate([self.items.inside, self.items.outside])
        item_query = np.concatenate([self.items.inside_query, self.items.outside_query])
        return _distinct(item_query) > _distinct(item)

    def take(self, chosen: Flags | Ints | slice) -> PairCodes:
        """Return the codes of some of the pairs."""
        weight = None if self.weight is None else self.weight[chosen]
        if self.items is None:
            return PairCodes(self.query[chosen], None, weight)
        parts: dict[str, Any] = {
            field.name: getattr(self.items, field.name)[chosen]
            for field in fields(ItemCodes)
            if field.name != "owner"
        }
        return PairCodes(self.query[chosen], replace(self.items, **parts), weight)

    def clusters(self) -> dict[str, tuple[Ints, ...]]:
        """Return the codes of each kind of cluster; a pair is in one cluster for each array.

        A code of -1 means no cluster: a pair inside one producer is in that producer once, and in
        no dyad.
        """
        items = self.items
        if items is None:
            return {"query": (self.query,)}
        other, other_query = items.outside, items.outside_query
        if items.owner != ITEM:
            same = items.inside == items.outside
            other, other_query = np.where(same, -1, other), np.where(same, -1, other_query)
        return {
            "query": (self.query,),
            "item": (items.inside, other),
            "dyad": (items.dyad,),
            "item_query": (items.inside_query, other_query),
            "dyad_query": (items.dyad_query,),
        }

    @property
    def owner(self) -> str:
        """Who the items are: items, or their producers."""
        return ITEM if self.items is None else self.items.owner

    def sums(self, u: Floats, weight: Floats | None = None) -> dict[str, Quadratic]:
        """Return Σc², Σcu and Σu² over each kind of cluster, for one number u a pair.

        A pair counts its weight, by default 1; in ``"naive"`` every pair counts 1.
        """
        u = np.asarray(u, dtype=np.float64)
        naive = Quadratic(np.array(float(len(u))), u.sum(), dot(u, u))
        kinds = self.clusters().items()
        by_kind = {kind: _quadratic(u, *codes, weight=weight) for kind, codes in kinds}
        return {"naive": naive, **by_kind}

    def effective(self, weight: Floats) -> tuple[float, float]:
        """Return the effective number of queries, and of items, of weighted pairs.

        For items it is the smaller of two numbers, of the group's items and of the others; NaN
        without items.
        """
        items = self.items
        sides = () if items is None else (items.inside, items.outside)
        queries, *found = (effective(totals(c, weight)) for c in (self.query, *sides))
        return queries, min(found, default=_NAN)


def pair_codes(
    query: Ints,
    item_i: Ints | None = None,
    item_j: Ints | None = None,
    owner: str = ITEM,
    *,
    weight: Floats | None = None,
) -> PairCodes:
    """Find what listed pairs share.

    Parameters
    ----------
    query : array of int64 (pair,)
        The query, or unit, of each pair; numbers from 0 up.
    item_i, item_j : array of int64 (pair,), optional
        Its item of the group and its other item, or their producers; both or neither.
    owner : {"item", "producer"}
        Which of the two.
    weight : array (pair,), optional
        What it counts; by default 1.
    """
    query = np.asarray(query, dtype=np.int64)
    if (item_i is None) != (item_j is None):
        raise MpcError(
            "item_i and item_j must be given together; got only one. Give both or neither."
        )
    if item_i is None or item_j is None:
        return PairCodes(query, None, weight)
    i, j = (np.asarray(item, dtype=np.int64) for item in (item_i, item_j))
    if not len(query) == len(i) == len(j):
        raise MpcError(
            f"query, item_i and item_j must have one entry for each pair; got {len(query)}, "
            f"{len(i)} and {len(j)}."
        )
    few = len(query) < FEW_ROWS
    dyad, (inside, outside, dyad_query) = at_once(
        partial(dyads, i, j), partial(inside_queries, query, i, j), here=few
    )
    if owner != ITEM:
        dyad, dyad_query = (np.where(i == j, -1, codes) for codes in (dyad, dyad_query))
    return PairCodes(
        query,
        ItemCodes(i, j, dyad, inside, outside, dyad_query, owner),
        weight,
    )


def estimate_listed(
    u: Floats,
    center: float,
    codes: PairCodes,
    *,
    cluster: str,
    level: float = 0.95,
    weighted: bool = False,
) -> Estimates:
    """Return center + mean(u) with its inference, by the rules of `mpc_lab.inference.estimates`.

    What each pair counts is in `codes`.

    Parameters
    ----------
    u : array (pair,)
        What each pair contributes, best near 0 on average so that squares do not cancel.
    center : float
        The number that was subtracted.
    codes : PairCodes
        What the pairs share.
    cluster : {"naive", "query", "item", "union"}
    level : float
    weighted : bool
        Whether `u` holds what pairs add to the error of an estimate, so that their weights are in
        it already.

    Returns
    -------
    Estimates
        With 0-dimensional arrays.
    """
    pairs = np.array(codes.pairs)
    items = codes.items
    by = codes.sums(u)
    if codes.weight is not None:
        by = _weighted_sums(u if weighted else codes.counts * u, codes, alone=weighted)
    return estimate(
        pairs,
        center,
        by,
        clusters=np.array(codes.queries),
        cluster=cluster,
        level=level,
        item_effective=None if items is None else np.array(min(codes.effective_items)),
        shared_items=codes.shares_items,
        owner=codes.owner,
    )


def _weighted_sums(u: Floats, codes: PairCodes, *, alone: bool) -> dict[str, Quadratic]:
    """Return the sums of pairs that do not count alike, u having their weights in it.

    In ``"naive"``, Σc·u is taken to be Σu, which goes with one count for each pair and the right
    sum of squares.
    """
    count = codes.counts
    by = codes.sums(u, count)
    mean = float(u.sum()) / max(codes.pairs, 1)
    residual = u - mean * (1.0 if alone else count)
    n = np.array(float(len(u)))
    by["naive"] = Quadratic(n, u.sum(), dot(residual, residual) + n * mean**2)
    return by


def dot(one: Floats, other: Floats) -> Floats:
    """Return Σ one·other on one thread; for so little work BLAS loses time waking other threads."""
    return np.asarray(np.einsum("p,p->", one, other))


def _quadratic(u: Floats, *codes: Ints, weight: Floats | None = None) -> Quadratic:
    """Add over clusters; a pair is in one cluster for each array of codes."""
    size = max((int(code.max(initial=-1)) for code in codes), default=-1) + 1
    count, total = np.zeros(size), np.zeros(size)
    for code in codes:
        _add_pairs(code, u, np.empty(0) if weight is None else weight, count, total)
    return Quadratic(dot(count, count), dot(count, total), dot(total, total))


@kernel
def _add_pairs(code: Ints, u: Floats, weight: Floats, count: Floats, total: Floats) -> None:
    """Add what pairs count, and their numbers, to those of their clusters."""
    weighted = len(weight) > 0
    for p in range(len(code)):
        if code[p] >= 0:
            count[code[p]] += weight[p] if weighted else 1.0
            total[code[p]] += u[p]


def totals(code: Ints, values: Floats) -> Floats:
    """Return the sum of the values of each cluster."""
    return np.asarray(np.bincount(code, values), dtype=np.float64)


def _distinct(code: Ints) -> int:
    return int(np.count_nonzero(np.bincount(code)))


_NAN = float("nan")
# A spread below this share of the sum is rounding error.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Clustered:
    """One estimate with its inference; the interval is NaN where it cannot be estimated.

    Attributes
    ----------
    estimate, std_error, ci_low, ci_high, p_value, dof : float
        The p-value is two-sided, against `null`.
    n_effective : float
        Effective number of clusters, (Σc)²/Σc² over what each cluster weighs.
    null : float
        The value that says nothing is wrong.
    reason : str
        Why there is no interval; "" where there is one.
    """

    estimate: float
    std_error: float = _NAN
    ci_low: float = _NAN
    ci_high: float = _NAN
    p_value: float = _NAN
    dof: float = _NAN
    n_effective: float = _NAN
    null: float = 0.0
    reason: str = ""

    @property
    def estimable(self) -> bool:
        """Whether there is an interval."""
        return self.reason == ""

    def interval(self, a: float) -> tuple[float, float]:
        """Return the ends of the interval that misses with probability `a`."""
        half = float(critical(a / 2, self.dof)) * self.std_error
        return self.estimate - half, self.estimate + half


def from_influence(
    estimate: float,
    influence: Floats,
    effective: float,
    clusters: int,
    *,
    scale: float | None = None,
    level: float = 0.95,
    null: float = 0.0,
) -> Clustered:
    r"""Return an estimate whose error is a sum of one contribution a cluster.

    :math:`V = \frac{K}{K-1} \sum_k \psi_k^2`, and the interval is that of t with G − 1 degrees of
    freedom, K the plain and G the effective number of clusters.

    Parameters
    ----------
    estimate : float
    influence : array (cluster,)
        ψ, what each cluster adds to the error of the estimate.
    effective : float
        G.
    clusters : int
        K.
    scale : float, optional
        The size of the numbers whose differences make up ψ; by default that of the estimate.
    level : float
    null : float
        What the p-value tests.
    """
    size = max(abs(estimate), scale or 0.0)
    spread = float(np.sqrt(influence @ influence))
    reason = ""
    if not np.isfinite(estimate):
        reason = "no finite estimate"
    elif not enough_clusters(np.asarray(effective)):
        reason = TOO_FEW_CLUSTERS
    elif not spread > _ROUNDING * size:
        reason = "variance is 0"
    if reason:
        return Clustered(estimate, n_effective=effective, null=null, reason=reason)
    std_error = spread * float(np.sqrt(clusters / (clusters - 1)))
    found = t_interval(estimate, std_error, effective, level=level, null=null)
    low, high, p_value, dof = (float(value) for value in found)
    return Clustered(estimate, std_error, low, high, p_value, dof, effective, null)


def ratio(sums: Floats, counts: Floats, *, level: float = 0.95, null: float = 0.0) -> Clustered:
    r"""Return :math:`\theta = \sum D_k / \sum c_k`, a mean over what clusters are made of.

    Its error is :math:`\psi_k = (D_k - \theta c_k) / \sum c_k`. Clusters with c = 0 do not count.

    Parameters
    ----------
    sums, counts : array (cluster,)
        D and c.
    level, null : float
        As in `from_influence`.
    """
    counts = np.asarray(counts, dtype=np.float64)
    total = counts.sum()
    if not total > 0:
        return Clustered(_NAN, null=null, reason="nothing to count")
    # Measured from the first mean: large outcomes would otherwise leave rounding in the second.
    near = sums.sum() / total
    estimate = float(near + (sums - near * counts).sum() / total)
    influence = (sums - estimate * counts) / total
    clusters = int(np.count_nonzero(counts))
    return from_influence(
        estimate,
        influence,
        effective(counts),
        clusters,
        scale=float(np.abs(sums).sum() / total),
        level=level,
        null=null,
    )


def mean_over_queries(
    values: Floats,
    cluster: Ints,
    n_clusters: int,
    *,
    kept: Flags | None = None,
    weight: Floats | None = None,
    level: float = 0.95,
) -> Clustered:
    """Return the mean of one number a query, clustered where several queries share a cluster.

    Parameters
    ----------
    values : array (query,)
    cluster : array of int64 (query,)
        The cluster of each query, from 0.
    n_clusters : int
    kept : array of bool (query,), optional
        The queries that have a value.
    weight : float64 array (query,), optional
        How much each query counts; by default 1.
    level : float
    """
    if kept is not None:
        values, cluster = values[kept], cluster[kept]
        weight = None if weight is None else weight[kept]
    values = values if weight is None else weight * values
    counts = np.bincount(cluster, weight, minlength=n_clusters).astype(np.float64)
    sums = np.bincount(cluster, values, minlength=n_clusters).astype(np.float64)
    return ratio(sums, counts, level=level)


def effective(weights: Floats) -> float:
    """Return G = (Σc)²/Σc² of the weights of clusters; NaN where all are 0."""
    return float(effective_clusters(np.asarray(weights.sum()), dot(weights, weights)))


def query_clusters(ranking: Ranking) -> tuple[Ints, int]:
    """Return the cluster of each query code, its unit or itself, and how many there are."""
    if ranking.unit_code is None:
        return np.arange(ranking.n_queries, dtype=np.int64), ranking.n_queries
    unit = np.empty(ranking.n_queries, dtype=np.int64)
    unit[ranking.query_code] = ranking.unit_code
    return unit, ranking.n_units


def row_clusters(ranking: Ranking) -> tuple[Ints, int]:
    """Return the cluster of each row, its unit or its query, and how many there are."""
    code = ranking.query_code if ranking.unit_code is None else ranking.unit_code
    return code, ranking.n_units


@dataclass(frozen=True)
class _Table:
    """Counts and sums of the entries that each cluster has in each cell."""

    cluster: Ints
    cell: Ints
    count: Floats
    total: Floats
    n_cells: int

    def quadratic(self) -> Quadratic:
        """Return Σc², ΣcU and ΣU² of each cell."""
        parts = (self.count**2, self.count * self.total, self.total**2)
        return Quadratic(*(_add(self.cell, part, self.n_cells) for part in parts))

    def products(self) -> Floats:
        """Return ΣU·U over clusters for every two cells."""
        from scipy.sparse import csr_array

        shape = (int(self.cluster.max(initial=-1)) + 1, self.n_cells)
        table = csr_array((self.total, (self.cluster, self.cell)), shape=shape)
        return np.asarray((table.T @ table).toarray())


def _table(
    cell: Ints, u: Floats, codes: tuple[Ints, ...], n_cells: int, weight: Floats | None = None
) -> _Table:
    """Add up u times weight; an entry is in one cluster for each array of codes."""
    every, u = np.concatenate(codes), np.tile(u, len(codes))
    counted = np.ones(len(u)) if weight is None else np.tile(weight, len(codes))
    of = every * n_cells + np.tile(cell, len(codes))
    if every.min(initial=0) < 0:
        of, u, counted = of[every >= 0], u[every >= 0], counted[every >= 0]
    key, at = np.unique(of, return_inverse=True)
    dense = np.unique(key // n_cells, return_inverse=True)[1]
    count, total = np.bincount(at, counted, minlength=len(key)), np.bincount(at, u)
    return _Table(dense, key % n_cells, count.astype(np.float64), total.astype(np.float64), n_cells)


def _add(cell: Ints, what: Floats | None, n_cells: int) -> Floats:
    return np.bincount(cell, what, minlength=n_cells).astype(np.float64)


@dataclass(frozen=True)
class CellMeans:
    """The mean of each cell.

    Attributes
    ----------
    estimates : Estimates
        Arrays over cells.
    counts : int64 array
        Entries of each cell.
    mean : float64 array
        Also where there is no interval; NaN without entries.
    tables : dict
        For each kind of cluster, its sums by cell.
    """

    estimates: Estimates
    counts: Ints
    mean: Floats
    tables: dict[str, _Table]

    def covariance(self, variance: str = "query") -> Floats:
        """Return the raw covariance of the means (cell, cell), by one way to cluster.

        NaN for cells without entries.
        """
        known = np.where(self.counts > 0, self.counts, np.nan)
        if variance == "naive":
            return np.diag(self.estimates.variance_by["naive"])
        terms = VARIANCES[variance].terms.items()
        products = sum(sign * self.tables[kind].products() for kind, sign in terms)
        return np.asarray(products / np.outer(known, known))


def cell_means(
    cell: Ints,
    codes: PairCodes,
    values: Floats,
    n_cells: int,
    *,
    cluster: str = "query",
    level: float = 0.95,
) -> CellMeans:
    """Return the mean of the values in each cell.

    Parameters
    ----------
    cell : array of int64 (entry,)
        From 0.
    codes : PairCodes
        What the entries share.
    values : float64 array (entry,)
    n_cells : int
    cluster : {"naive", "query", "item", "union"}
    level : float
    """
    needed = VARIANCES[cluster].needs_items
    codes = codes if needed else PairCodes(codes.query, None, codes.weight)
    n = _add(cell, None, n_cells)
    known = np.where(n > 0, n, np.nan)
    weight = None
    if codes.weight is not None:
        # Weights have mean 1 in each cell, so that sums can still be divided by counts of entries.
        of_cell = np.bincount(cell, codes.weight, minlength=n_cells)
        weight = codes.weight * (n / np.where(n > 0, of_cell, 1.0))[cell]
    middle = float(np.median(values)) if len(values) else 0.0
    apart = values - middle if weight is None else weight * (values - middle)
    mean = middle + np.bincount(cell, apart, minlength=n_cells) / known
    u = values - mean[cell] if weight is None else weight * (values - mean[cell])
    tables = {kind: _table(cell, u, of, n_cells, weight) for kind, of in codes.clusters().items()}
    by = {"naive": Quadratic(n, _add(cell, u, n_cells), _add(cell, u**2, n_cells))}
    by |= {kind: table.quadratic() for kind, table in tables.items()}
    return CellMeans(
        estimates=estimate(
            n.astype(np.int64),
            np.nan_to_num(mean),
            by,
            clusters=np.bincount(tables["query"].cell, minlength=n_cells).astype(np.int64),
            cluster=cluster,
            level=level,
            item_effective=_effective_items_by_cell(cell, codes, n, weight),
            # For an item in two queries, the square of its whole sum exceeds the squares of the
            # parts.
            shared_items=_larger(by["item"].cc, by["item_query"].cc) if "item" in by else False,
            owner=codes.owner,
        ),
        counts=n.astype(np.int64),
        mean=np.asarray(mean),
        tables=tables,
    )


def _larger(whole: Floats, parts: Floats) -> Flags:
    """Whether a sum of squares is larger by more than rounding."""
    return np.asarray(whole * (1 - _ROUNDING) > parts)


def _effective_items_by_cell(
    cell: Ints, codes: PairCodes, n: Floats, weight: Floats | None
) -> Floats | None:
    if codes.items is None:
        return None
    nothing = np.zeros(len(cell))
    sides = (codes.items.inside, codes.items.outside)
    inside, outside = (
        _table(cell, nothing, (side,), len(n), weight).quadratic().cc for side in sides
    )
    return effective_items(n.astype(np.int64), inside, outside)
