"""How often each place is looked at, estimated from neighbours in the list with close scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from mpc_lab.inference.limit import FEWEST_DISTANCES, distinct, polynomial
from mpc_lab.vocabulary import Flags, Floats, Ints

FEWEST_EFFECTIVE = 20


@dataclass(frozen=True)
class Neighbours:
    """Items shown at places k and k + 1 of one list.

    Attributes
    ----------
    place : int64 array
        The upper one's place k.
    upper, lower : float64 arrays
        Their outcomes, at least 0.
    distance : float64 array
        How far apart their scores are.
    cluster : int64 array
        The query, or the unit that it is in.
    weight : float64 array, optional
        What the query counts; by default each counts 1.
    """

    place: Ints
    upper: Floats
    lower: Floats
    distance: Floats
    cluster: Ints
    weight: Floats | None = None

    @property
    def counts(self) -> Floats:
        """What each pair of neighbours counts."""
        return np.ones(len(self.place)) if self.weight is None else self.weight

    def take(self, chosen: Flags) -> Neighbours:
        """Return some of the neighbours."""
        return Neighbours(
            self.place[chosen],
            self.upper[chosen],
            self.lower[chosen],
            self.distance[chosen],
            self.cluster[chosen],
            None if self.weight is None else self.weight[chosen],
        )


@dataclass(frozen=True)
class Examination:
    """How often places are looked at, relative to place 1.

    Attributes
    ----------
    place : int64 array
        1, 2, … up to the last that is known.
    examined, low, high : float64 arrays
        The estimate and its interval; the first is 1 by definition.
    std_error : float64 array
        The standard error of the logarithm.
    n_pairs : int64 array
        The neighbours at this place and the one before.
    n_effective : float64 array
        The effective number of queries among them.
    ended : str
        Why no further place is known; empty where all requested places are.
    """

    place: Ints
    examined: Floats
    low: Floats
    high: Floats
    std_error: Floats
    n_pairs: Ints
    n_effective: Floats
    ended: str


def estimate_examination(
    pairs: Neighbours, *, places: int, limit: bool = False, level: float = 0.95
) -> Examination:
    r"""Compare neighbours, place by place.

    With :math:`R_k = \sum y_{upper} / \sum y_{lower}` over neighbours at places k and k + 1,
    :math:`e_1 = 1` and :math:`e_{k+1} = e_k / R_k`. To :math:`\log e_{K+1}` a query adds the error

    .. math:: \psi_q = \sum_{k \le K} \sum_{p \in q}
              \frac{y_{lower}}{\sum y_{lower}} - \frac{y_{upper}}{\sum y_{upper}},

    its variance is :math:`\sum_q \psi_q^2 \, Q/(Q - 1)`, and its interval is by t with the least
    effective number of queries of a place so far, less 1. With `limit` both sums are replaced by
    intercepts of lines in the distance. Where queries have weights, a neighbour counts that of its
    query in every sum, and effective queries are those of the weights.

    Parameters
    ----------
    pairs : Neighbours
        Those within the largest distance that counts.
    places : int
        The last place that is asked for.
    limit : bool
    level : float
    """
    # Number clusters 0, 1, …: what each adds is accumulated over places.
    cluster = np.unique(pairs.cluster, return_inverse=True)[1]
    counts = pairs.counts
    added, seen = np.zeros(len(pairs.place)), np.zeros(len(pairs.place), dtype=np.bool_)
    rows, log_e, fewest, ended = [(1.0, 0.0, 0.0, 0.0, 0, np.nan)], 0.0, np.inf, ""
    for k in range(1, places):
        here = np.flatnonzero(pairs.place == k)
        n_effective = _effective(cluster[here], counts[here])
        if n_effective < FEWEST_EFFECTIVE:
            ended = (
                f"places {k} and {k + 1}: {len(here):,} near-tied neighbours in "
                f"{n_effective:.0f} effective queries, fewer than {FEWEST_EFFECTIVE}"
            )
            break
        fitted = [_mean(pairs, side[here], here, limit) for side in (pairs.upper, pairs.lower)]
        if any(fit is None for fit in fitted):
            ended = f"places {k} and {k + 1}: the distances are too alike for a line"
            break
        (upper, of_upper), (lower, of_lower) = (fit for fit in fitted if fit is not None)
        if not (upper > 0 and lower > 0):
            ended = f"places {k} and {k + 1}: no outcome on a side"
            break
        log_e -= np.log(upper / lower)
        np.add.at(added, cluster[here], of_lower / lower - of_upper / upper)
        seen[cluster[here]] = True
        fewest = min(fewest, n_effective)
        n_clusters = int(seen.sum())
        error = float(np.sqrt(added @ added * n_clusters / (n_clusters - 1)))
        reach = float(stats.t.ppf(0.5 + level / 2, fewest - 1)) * error
        rows.append((np.exp(log_e), log_e - reach, log_e + reach, error, len(here), n_effective))
    examined, low, high, std_error, n_pairs, effective = map(np.array, zip(*rows, strict=True))
    return Examination(
        place=np.arange(1, len(rows) + 1),
        examined=examined,
        low=np.exp(low),
        high=np.exp(high),
        std_error=std_error,
        n_pairs=n_pairs.astype(np.int64),
        n_effective=effective,
        ended=ended,
    )


def _effective(cluster: Ints, weight: Floats) -> float:
    """Return the effective number of clusters, (Σc)²/Σc²."""
    if not len(cluster):
        return 0.0
    counts = np.bincount(cluster, weight)
    return float(counts.sum() ** 2 / (counts @ counts))


def _mean(pairs: Neighbours, y: Floats, here: Ints, limit: bool) -> tuple[float, Floats] | None:
    """Return a mean outcome, or the mean at distance 0, and what each pair adds to its error."""
    weight = pairs.counts[here]
    if not limit:
        share = weight / weight.sum()
        mean = float(share @ y)
        return mean, share * (y - mean)
    distance = pairs.distance[here]
    order = np.argsort(distance, kind="stable")
    if distinct(distance[order]) < FEWEST_DISTANCES:
        return None
    fit = polynomial(distance[order], y[order], weight[order], degree=1)
    if fit is None:
        return None
    each = np.empty(len(order))
    each[order] = fit.loadings * fit.residuals
    return float(fit.coefficients[0]), each
