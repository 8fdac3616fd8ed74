"""What a pair counts: the weight of its query, alone or shared by the query's pairs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.kernels import inlined
from mpc_lab.vocabulary import Flags, Floats, Ints

# In the order of `mpc_lab.pairing.terms.ESTIMANDS`.
BY_PAIRS, BY_QUERIES, BY_ROOT = range(3)


class Weighting(NamedTuple):
    """Whether the pairs of a log count alike.

    Attributes
    ----------
    weighted : bool
        Whether some pair may count other than 1.
    by_query : bool
        Whether what a pair counts depends on how many pairs its query has.
    """

    weighted: bool
    by_query: bool


ALIKE = Weighting(weighted=False, by_query=False)


class Weights(NamedTuple):
    """What the pairs of each query count.

    Attributes
    ----------
    weight : float64 array (query,)
    estimand : int
        ``BY_PAIRS``, ``BY_QUERIES`` or ``BY_ROOT``.
    """

    weight: Floats
    estimand: int

    def of_pairs(self, pairs: Floats) -> Floats:
        """Return what one pair of each query counts, given how many pairs the query has."""
        shared = np.maximum(pairs, 1.0)
        if self.estimand == BY_QUERIES:
            return np.asarray(self.weight / shared)
        return self.weight / np.sqrt(shared) if self.estimand == BY_ROOT else self.weight


class ListedWeights(NamedTuple):
    """What listed pairs count.

    Attributes
    ----------
    query : int64 array (pair,)
        The query of each.
    weight : float64 array (pair,)
        The weight of that query.
    estimand : int
        As in `Weights`.
    """

    query: Ints
    weight: Floats
    estimand: int

    @property
    def by_query(self) -> bool:
        """Whether what a pair counts depends on how many pairs its query has."""
        return self.estimand != BY_PAIRS

    def take(self, chosen: Flags | Ints | slice) -> ListedWeights:
        """Return the same for some of the pairs, which share the weight of their query."""
        return ListedWeights(self.query[chosen], self.weight[chosen], self.estimand)

    @property
    def of_pairs(self) -> Floats:
        """What each pair counts if its query has no other pairs than these."""
        _, at, pairs = np.unique(self.query, return_inverse=True, return_counts=True)
        return Weights(self.weight, self.estimand).of_pairs(pairs[at].astype(np.float64))


@inlined
def weight_of_pair(weight: float, estimand: int, pairs: float) -> float:
    """Return what a pair counts in a query with this many pairs; 0 where there are none."""
    if pairs <= 0.0:
        return 0.0
    if estimand == BY_QUERIES:
        return weight / pairs
    if estimand == BY_ROOT:
        return weight / math.sqrt(pairs)
    return weight
