"""What an estimate would be without each query, item or producer, from listed pairs.

Nothing is approximated: the sums of a cluster are taken out of the sums of all pairs, on each side
of a tie and in each cell of places, and what remains is combined as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mpc_lab.pairing.places import FEWEST, combine_cells
from mpc_lab.pairing.weighting import ListedWeights, Weights
from mpc_lab.vocabulary import Floats, Ints

# Clusters whose sums over all sides and cells are held at a time.
_AT_A_TIME = 4096


@dataclass(frozen=True)
class WeighedPairs:
    """Pairs on the sides and in the cells that an estimate is made of.

    Attributes
    ----------
    d : float64 array (pair,)
        Difference of the outcomes.
    weight : float64 array (side, pair)
        What a pair counts on each side, without the weight of its query; one side where the
        estimate is a mean over pairs.
    cell : int64 array (pair,)
        Its cell of places; 0 where there is one.
    n_cells : int
    counts : ListedWeights, optional
        What pairs count besides.
    """

    d: Floats
    weight: Floats
    cell: Ints
    n_cells: int
    counts: ListedWeights | None = None

    @property
    def n_sides(self) -> int:
        """One, or two where the estimate is the mean of both sides of a tie."""
        return len(self.weight)

    def combine(self, sums: Floats) -> Floats:
        """Return the estimate from weight, sum and number (3, side, cell, …); NaN without any."""
        weight, total, number = sums
        if self.n_sides == 1:
            whole = weight.sum(axis=(0, 1))
            return np.asarray(total.sum(axis=(0, 1)) / np.where(whole > 0, whole, np.nan))
        fewest = FEWEST if self.n_cells > 1 else 0.0
        found = combine_cells(weight, total, fewest, number)
        known = (weight > 0).any(axis=1).all(axis=0) & (found.share.sum(axis=0) > 0)
        return np.where(known, found.estimate, np.nan)


@dataclass(frozen=True)
class LeaveOneOut:
    """Estimates without each cluster.

    Attributes
    ----------
    estimate : float
        With all of them.
    without : float64 array (cluster,)
        NaN where too little is left, and where the cluster has no pair.
    share : float64 array (cluster,)
        The share of the cluster's pairs in what all pairs count.
    mean : float64 array (cluster,)
        Mean difference of its own pairs.
    n_pairs : int64 array (cluster,)
    """

    estimate: float
    without: Floats
    share: Floats
    mean: Floats
    n_pairs: Ints


def leave_one_out(parts: WeighedPairs, clusters: tuple[Ints, ...], n_clusters: int) -> LeaveOneOut:
    r"""Return :math:`\theta_{(-c)} = (D - D_c)/(W - W_c)` for every cluster c.

    For an estimate made of two sides, or of cells, this is done in each before they are joined.
    Where a pair counts less the more pairs its query has, the pairs that are left count more.

    Parameters
    ----------
    parts : WeighedPairs
    clusters : tuple of int64 arrays (pair,)
        The clusters that each pair is in; -1 for none. A pair is in no cluster twice.
    n_clusters : int

    Examples
    --------
    >>> import numpy as np
    >>> d = np.array([1.0, 1.0, 4.0])
    >>> parts = WeighedPairs(d, np.ones((1, 3)), np.zeros(3, dtype=np.int64), 1)
    >>> found = leave_one_out(parts, (np.array([0, 0, 1]),), 2)
    >>> found.estimate, found.without.tolist()
    (2.0, [4.0, 1.0])
    """
    pair = np.concatenate([np.flatnonzero(code >= 0) for code in clusters])
    cluster = np.concatenate([code[code >= 0] for code in clusters])
    worth = np.ones(len(parts.d)) if parts.counts is None else parts.counts.of_pairs
    # Sums are measured from a number near the mean, so that rounding does not swamp what is left.
    centre = float(np.average(parts.d, weights=worth)) if len(parts.d) else 0.0
    by_pair = _sums_of_pairs(parts, worth, centre)
    shape = (3, parts.n_sides, parts.n_cells)
    whole = np.asarray(by_pair.sum(axis=0), dtype=np.float64).reshape(shape)
    n_pairs = np.bincount(cluster, minlength=n_clusters).astype(np.int64)
    own_weight = np.bincount(cluster, worth[pair], minlength=n_clusters)
    own_sum = np.bincount(cluster, (worth * (parts.d - centre))[pair], minlength=n_clusters)
    known = np.where(n_pairs > 0, own_weight, np.nan)
    size = (n_clusters, len(parts.d))
    of_cluster = csr_array((np.ones(len(pair)), (cluster, pair)), shape=size) @ by_pair
    goes = of_cluster
    if parts.counts is not None and parts.counts.by_query:
        goes = _sums_that_go(parts.counts, pair, cluster, n_clusters, by_pair)
    without = np.full(n_clusters, np.nan)
    for first in range(0, n_clusters, _AT_A_TIME):
        here = slice(first, min(first + _AT_A_TIME, n_clusters))
        taken = goes[here].toarray().T.reshape(*shape, -1)
        taken[2] = of_cluster[here].toarray().T.reshape(*shape, -1)[2]
        left: Floats = whole[..., None] - taken
        # Rounding may leave a remainder of a part that is taken out completely; it does not count.
        left[:2] = np.where(left[2] > 0.25, left[:2], 0.0)
        without[here] = centre + parts.combine(left)
    without[n_pairs == 0] = np.nan
    total = float(worth.sum())
    return LeaveOneOut(
        estimate=centre + float(parts.combine(whole)),
        without=without,
        share=own_weight / total if total > 0 else np.full(n_clusters, np.nan),
        mean=np.asarray(centre + own_sum / known),
        n_pairs=n_pairs,
    )


def _sums_of_pairs(parts: WeighedPairs, worth: Floats, centre: float) -> csr_array:
    """Return each pair's addition to weight, sum and number of each part: (pair, 3·side·cell)."""
    n, block = len(parts.d), parts.n_sides * parts.n_cells
    rows, columns, values = [], [], []
    for side, alone in enumerate(parts.weight):
        at = np.flatnonzero(alone > 0)
        weight = (alone * worth)[at]
        for kind, added in enumerate((weight, weight * (parts.d[at] - centre), np.ones(len(at)))):
            rows.append(at)
            columns.append(kind * block + side * parts.n_cells + parts.cell[at])
            values.append(added)
    at_all = (np.concatenate(rows), np.concatenate(columns))
    return csr_array((np.concatenate(values), at_all), shape=(n, 3 * block))


def _sums_that_go(
    counts: ListedWeights, pair: Ints, cluster: Ints, n_clusters: int, by_pair: csr_array
) -> csr_array:
    """Return what each cluster takes away where pairs count by the number in their query.

    If n of the P pairs of a query are left out, the remaining ones are multiplied by r = f(P −
    n)/f(P). In total, r times the pairs of the cluster and 1 − r times all pairs of its queries are
    subtracted.
    """
    n, size = len(counts.query), np.bincount(counts.query)
    key = cluster * len(size) + counts.query[pair]
    key, at, gone = np.unique(key, return_inverse=True, return_counts=True)
    of_query, of_cluster = key % len(size), key // len(size)
    before = size[of_query].astype(np.float64)
    left = before - gone
    one = Weights(np.ones(len(key)), counts.estimand)
    ratio = np.where(left > 0, one.of_pairs(left) / one.of_pairs(before), 1.0)
    in_query = csr_array((np.ones(n), (counts.query, np.arange(n))), shape=(len(size), n))
    change = csr_array((1 - ratio, (of_cluster, of_query)), shape=(n_clusters, len(size)))
    own = csr_array((ratio[at], (cluster, pair)), shape=(n_clusters, n))
    goes: Any = own @ by_pair + change @ (in_query @ by_pair)
    return csr_array(goes)
