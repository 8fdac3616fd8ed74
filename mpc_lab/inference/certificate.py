"""The largest boost that the paper's theorem, read distance by distance, can certify."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.bands import covariance_of_clusters, sup_t_band
from mpc_lab.inference.estimates import Estimates, effective_clusters
from mpc_lab.inference.listed import ListedSums, estimate_each, sum_listed
from mpc_lab.pairing.both_orders import share_pairs
from mpc_lab.pairing.kernels import FEW_ROWS, stable_order
from mpc_lab.pairing.threads import in_order
from mpc_lab.vocabulary import ITEM, VARIANCES, Flags, Floats, Ints

MOST_BINS = 10
# The mean over one wide bin is just MPC, which certifies nothing.
FEWEST_BINS = 4
FEWEST_QUERIES = 30


@dataclass(frozen=True)
class Curve:
    """Means of d over some sets of pairs, with a band that covers all of them at once.

    Attributes
    ----------
    estimate, std_error, dof, n_effective : array (bin,)
        NaN where not estimable.
    n_pairs, n_queries : array of int64 (bin,)
    band_low, band_high : array (bin,)
    above : array of bool (bin,)
        Whether this bin and all before it have a lower band above 0; for the bins of a
        certificate, False where there are fewer than 4.
    """

    estimate: Floats
    std_error: Floats
    dof: Floats
    n_effective: Floats
    n_pairs: Ints
    n_queries: Ints
    band_low: Floats
    band_high: Floats
    above: Flags


@dataclass(frozen=True)
class Certified:
    """What a certificate rests on.

    Attributes
    ----------
    alpha : float
        The right end of the last bin such that it and all before it have a lower band above 0;
        0 if the first has not, or if there are fewer than 4 bins.
    edges : array (bin + 1,)
        From 0; a bin holds its right end, the first also its left. One number where no bin has
        enough queries.
    bins : Curve
        The mean of d in each bin.
    cumulative : Curve
        The mean over all distances up to the right end of each bin, which is MPC itself.
    mpc_epsilon : float
        What `cumulative` would have certified, for comparison: it certifies nothing.
    level : float
    """

    alpha: float
    edges: Floats
    bins: Curve
    cumulative: Curve
    mpc_epsilon: float
    level: float


def certify(
    distance: Floats,
    d: Floats,
    query: Ints,
    *,
    item_i: Ints | None = None,
    item_j: Ints | None = None,
    owner: str = ITEM,
    weight: Floats | None = None,
    cluster: str = "query",
    level: float = 0.95,
    seed: int = 0,
) -> Certified:
    r"""Find the largest boost up to which the mean of d is above 0 at every distance.

    The theorem: if outcome differences depend on items only through their score distance, and

    .. math:: E[d \mid \Delta] > 0 \quad \text{for all } 0 \le \Delta \le \alpha,

    boosting the group by α raises the expected objective Σ w y. It is stated in terms of the mean
    over distances *up to* ε, but its proof needs the mean *at* each distance, and the first does
    not give the second. So the distances are cut into bins with equal numbers of pairs, the first
    from 0, as many as give each at least 30 effective queries and at most 10, from the scores
    alone; a sup-t band covers the means of all bins at once. Fewer than 4 bins certify nothing:
    inside a wide bin the mean may change its sign unseen.

    Parameters
    ----------
    distance, d : array (pair,)
        Distance and outcome difference of the ``matched`` pairs, those with the smallest distances.
    query : array of int64 (pair,)
        Query, or unit, of each pair.
    item_i, item_j : array of int64 (pair,), optional
        Items, or producers, for ``cluster="item"``, ``"producer"`` and ``"union"``.
    owner : {"item", "producer"}
        Which of the two.
    weight : array (pair,), optional
        The weight of each pair's query.
    cluster : {"naive", "query", "item", "union"}
    level : float
        Probability that the band covers all bins.
    seed : int
        Seed of the simulation behind the band.

    Returns
    -------
    Certified

    References
    ----------
    Korevaar et al. (2023), Matched Pair Calibration for Ranking Fairness, theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> distance = rng.random(20_000)
    >>> d = 0.4 - distance + rng.normal(size=20_000)
    >>> found = certify(distance, d, np.arange(20_000) // 4)
    >>> 0.2 < found.alpha < 0.4 < found.mpc_epsilon
    True
    """
    if (item_i is None) != (item_j is None):
        raise MpcError(
            "item_i and item_j must be given together; got only one. Give both or neither."
        )
    if (np.diff(query) < 0).any():
        order = stable_order(query)
        distance, d, query = distance[order], d[order], query[order]
        item_i, item_j = (None if item is None else item[order] for item in (item_i, item_j))
        weight = None if weight is None else weight[order]
    if not VARIANCES[cluster].needs_items:
        item_i = item_j = None
    cut = cut_bins(distance, query, weight)
    ends, place, counts, edges = cut.ends, cut.place, cut.counts, np.append(0.0, cut.edges)
    sums = _table(query, place, len(ends), d if weight is None else weight * d)
    pairs = counts if weight is None else _table(query, place, len(ends))
    shared = share_pairs(query, item_i, item_j)

    def curve(first: Ints, pairs: Floats, counts: Floats, sums: Floats) -> Curve:
        def add(k: int) -> ListedSums:
            chosen = np.flatnonzero((place >= first[k]) & (place <= k))
            here = None if weight is None else weight[chosen]
            return sum_listed(shared, chosen, np.ones(len(chosen), dtype=np.bool_), d[chosen], here)

        few = len(distance) < FEW_ROWS
        cells = estimate_each(
            list(in_order(add, range(len(ends)), here=few)), cluster, owner=owner, level=level
        )
        return _curve(cells, pairs, counts, sums, level=level, seed=seed)

    tables = (pairs, counts, sums)
    bins = curve(np.arange(len(ends)), *tables)
    cumulative = curve(np.zeros_like(ends), *(table.cumsum(axis=1) for table in tables))
    if len(ends) < FEWEST_BINS:
        bins = replace(bins, above=np.zeros_like(bins.above))
    alpha, epsilon = (float(edges[int(part.above.sum())]) for part in (bins, cumulative))
    return Certified(alpha, edges, bins, cumulative, epsilon, level)


class DistanceBins(NamedTuple):
    """Bins of the distance: where they end among sorted pairs, and in distance.

    Then the bin of each pair, and what the pairs of each query count in each bin.
    """

    ends: Ints
    edges: Floats
    place: Ints
    counts: Floats


def cut_bins(distance: Floats, query: Ints, weight: Floats | None = None) -> DistanceBins:
    """Cut pairs in any order into bins of equal numbers of pairs, by their distances.

    As many bins as give each at least 30 effective queries, at most 10; none where all pairs
    together have fewer. Tied distances stay in one bin, so that numbers can differ.
    """
    ascending = np.sort(distance)
    for bins in range(MOST_BINS, 0, -1):
        rank = np.ceil(np.arange(1, bins + 1) * len(distance) / bins).astype(np.int64)
        if len(distance) < bins:
            continue
        edges = np.unique(ascending[rank - 1])
        place = np.searchsorted(edges, distance, side="left")
        counts = _table(query, place, len(edges), weight)
        effective = effective_clusters(counts.sum(axis=0), (counts**2).sum(axis=0))
        if (effective >= FEWEST_QUERIES).all():
            return DistanceBins(
                np.searchsorted(ascending, edges, side="right"), edges, place, counts
            )
    none = np.empty(0, dtype=np.int64)
    return DistanceBins(none, np.empty(0), np.zeros_like(query), _table(query, none, 0))


def _table(query: Ints, place: Ints, bins: int, values: Floats | None = None) -> Floats:
    """Return sums of values, by default 1, of each query in each bin, as a table (query, bin)."""
    queries = int(query.max(initial=-1)) + 1
    if not bins:
        return np.empty((queries, 0))
    found = np.bincount(query * bins + place, values, minlength=queries * bins)
    return found.astype(np.float64).reshape(queries, bins)


def _curve(
    cells: Estimates,
    pairs: Floats,
    counts: Floats,
    sums: Floats,
    *,
    level: float,
    seed: int,
) -> Curve:
    estimate, std_error, dof = cells.estimate, cells.std_error, cells.dof
    together = covariance_of_clusters(counts, sums)
    band = sup_t_band(estimate, std_error, dof, together, level=level, seed=seed)
    return Curve(
        estimate=estimate,
        std_error=std_error,
        dof=dof,
        n_effective=cells.n_effective,
        n_pairs=pairs.sum(axis=0).astype(np.int64),
        n_queries=(pairs > 0).sum(axis=0).astype(np.int64),
        band_low=band.low,
        band_high=band.high,
        above=np.logical_and.accumulate(band.low > 0),
    )
