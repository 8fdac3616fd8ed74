"""Degrees of freedom of an estimate that is made of parts, such as the two sides of a tie."""

from __future__ import annotations

import numpy as np

from mpc_lab.inference.estimates import effective_clusters
from mpc_lab.pairing.moments import ABOVE, BELOW, Moments, Sides
from mpc_lab.vocabulary import Floats

FEWEST_OF_A_PART = 3
NEVER_TURNED = "the log never shows such pairs the other way round"


def join_parts(variance: Floats, effective: Floats) -> Floats:
    r"""Return the effective number of clusters of a sum of parts.

    .. math:: G = 1 + \frac{(\sum_X v_X)^2}{\sum_X v_X^2 / (G_X - 1)}

    A part with fewer than 3 effective clusters decides: the fewest of any part is returned then.

    Parameters
    ----------
    variance : float64 array (part, …)
        v, the query variance that each part adds.
    effective : float64 array (part, …)
        G of each part.

    References
    ----------
    Satterthwaite (1946), An approximate distribution of estimates of variance components.

    Examples
    --------
    >>> import numpy as np
    >>> float(join_parts(np.array([1.0, 1.0]), np.array([11.0, 11.0])))
    21.0
    >>> float(join_parts(np.array([1.0, 1.0]), np.array([2.5, 1000.0])))
    2.5
    """
    fewest = np.min(effective, axis=0)
    enough = fewest >= FEWEST_OF_A_PART * (1 - 1e-12)
    with np.errstate(all="ignore"):
        joined = 1 + variance.sum(axis=0) ** 2 / (variance**2 / (effective - 1)).sum(axis=0)
    # Where no part varies there is nothing to weigh them by.
    joined = np.where(np.isfinite(joined), joined, effective.sum(axis=0))
    return np.asarray(np.where(enough, joined, fewest))


def most_effective(moments: Moments) -> dict[str, Floats] | None:
    """Return the most effective clusters that a cell of two sides may have; else no limit.

    Returns
    -------
    dict of float64 arrays (mode, group, threshold) or None
        ``"queries"`` and, where items are summed over, ``"items"`` and the ``"fewest"`` of both.
        None where no mode has two sides.
    """
    row, sides = moments.two_sided, moments.sides
    if row is None or sides is None:
        return None
    variance = _query_variances(sides)
    queries = effective_clusters(sides.weight, sides.by["query"][[BELOW, ABOVE], 0])
    found = {"queries": join_parts(variance, queries)}
    if sides.squares:
        items = np.min(
            [effective_clusters(sides.weight, squares[:2]) for squares in sides.squares.values()],
            axis=0,
        )
        found["items"] = join_parts(variance, items)
        found["fewest"] = join_parts(variance, np.fmin(queries, items))
    limits = {}
    for name, values in found.items():
        limits[name] = np.full(moments.pairs.shape, np.inf)
        limits[name][row] = values
    return limits


def _query_variances(sides: Sides) -> Floats:
    """Return the query variance that each side adds to the mean of both."""
    cc, cu, _, uu = np.moveaxis(sides.by["query"][[BELOW, ABOVE]], 1, 0)
    mean = sides.means
    weight = np.where(sides.weight > 0, sides.weight, np.nan)
    return np.asarray((uu - 2 * mean * cu + mean**2 * cc) / (2 * weight) ** 2)
