"""The synthetic example of the paper's appendix A, and the gap that is built into it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_lab.errors import check_count, check_number, check_whole
from mpc_lab.ranking import Ranking
from mpc_lab.vocabulary import Floats

ITEMS_PER_QUERY = 10
_MOST_QUERIES = 10**8
QUERY_TYPES = ("u", "v")
ITEM_TYPES = ("1", "2")

# Indexed by query type (u, v). These shares make both item types calibrated over all queries.
SHARE_OF_TYPE_1 = np.array([1 / 7, 5 / 7])
# Indexed by query type (u, v) and item type (1, 2): the slope b of the mean outcome below 1/2.
SLOPES = np.array([[1.5, 1.1], [0.9, 0.7]])


def synthetic(queries: int = 2000, seed: int = 0) -> Ranking:
    r"""Draw a log in which both groups are calibrated and group "1" is undervalued nevertheless.

    A query is of type u or v with probability 1/2 and lists 10 items. An item is of type 1 with
    probability 1/7 in u and 5/7 in v, otherwise of type 2. Its score s is uniform on [0, 1], and
    its outcome is Bernoulli with mean

    .. math:: E[y] = b s \ \text{if}\ s < 1/2, \quad 1 - (2 - b)(1 - s)\ \text{otherwise},

    with b = 1.5 (u, 1), 1.1 (u, 2), 0.9 (v, 1), 0.7 (v, 2): inside every query an item of type 1
    has a higher expected outcome than an item of type 2 with the same score.

    Parameters
    ----------
    queries : int
        How many queries to draw, at least 1 and at most 100,000,000.
    seed : int
        Seed of the generator, at least 0; the same seed gives the same log.

    Returns
    -------
    Ranking
        Groups "1" and "2" (column ``type``), segments "u" and "v" (column ``query_type``).
        Every row has an item of its own: queries share no catalogue.

    References
    ----------
    Korevaar et al. (2023), Matched Pair Calibration for Ranking Fairness, appendix A.

    Examples
    --------
    >>> ranking = synthetic(queries=100)
    >>> ranking.groups, ranking.n_rows
    (('1', '2'), 1000)
    """
    n_queries = check_count("queries", queries, at_most=_MOST_QUERIES)
    rng = np.random.default_rng(check_whole("seed", seed))
    columns = _draw(n_queries, rng)
    return Ranking(
        columns,
        query="query",
        item="item",
        score="score",
        outcome="outcome",
        group="type",
        segment="query_type",
    )


def synthetic_truth(epsilon: float) -> float:
    r"""Return the matched gap that :func:`mpc_lab.datasets.synthetic` is built to give group "1".

    With :math:`F_b(x) = \int_0^x E[y \mid b, s] ds`, two scores of one query are
    :math:`\Delta` apart with density proportional to :math:`1 - \Delta`, and the gap is

    .. math::
        \frac{\sum_t w_t \int_0^\epsilon
            F_{b_{t1}}(1 - \Delta) - F_{b_{t2}}(1) + F_{b_{t2}}(\Delta)\, d\Delta}
        {\int_0^\epsilon 1 - \Delta\, d\Delta},
        \qquad w_t \propto P(1 \mid t) P(2 \mid t).

    Parameters
    ----------
    epsilon : float
        The threshold, from 0 (the limit of small thresholds) to 1.

    Returns
    -------
    float
        The expected pair-weighted difference in outcome; exact up to rounding.

    Examples
    --------
    >>> round(synthetic_truth(0.05), 4)
    0.0456
    """
    check_number("epsilon", epsilon, at_least=0, at_most=1, remedy="Scores are between 0 and 1.")
    distances, weights = _nodes(float(epsilon))
    share = SHARE_OF_TYPE_1 * (1 - SHARE_OF_TYPE_1)
    slope_1, slope_2 = SLOPES[:, [0]], SLOPES[:, [1]]
    outcome_1 = _mean_outcome_to(slope_1, 1 - distances)
    outcome_2 = _mean_outcome_to(slope_2, np.ones_like(distances)) - _mean_outcome_to(
        slope_2, distances
    )
    difference = outcome_1 - outcome_2
    return float((share / share.sum()) @ difference @ weights / ((1 - distances) @ weights))


def _draw(n_queries: int, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    query_type = np.repeat(rng.integers(0, 2, size=n_queries), ITEMS_PER_QUERY)
    n_rows = len(query_type)
    item_type = (rng.random(n_rows) >= SHARE_OF_TYPE_1[query_type]).astype(np.int64)
    score = rng.random(n_rows)
    mean = _mean_outcome(SLOPES[query_type, item_type], score)
    return {
        "query": np.repeat(np.arange(n_queries), ITEMS_PER_QUERY),
        "item": np.arange(n_rows),
        "score": score,
        "outcome": (rng.random(n_rows) < mean).astype(np.float64),
        "type": np.array(ITEM_TYPES)[item_type],
        "query_type": np.array(QUERY_TYPES)[query_type],
    }


def _mean_outcome(slope: Floats, score: Floats) -> Floats:
    return np.where(score < 0.5, slope * score, 1 - (2 - slope) * (1 - score))


def _mean_outcome_to(slope: Floats, end: Floats) -> Floats:
    """Integrate the mean outcome over scores from 0 to ``end``."""
    low, high = np.clip(end, 0, 0.5), np.clip(end, 0.5, 1)
    upper = (high - 0.5) - (2 - slope) * (0.125 - (1 - high) * (1 - high) / 2)
    return slope * low * low / 2 + upper


def _nodes(epsilon: float) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes for the mean over [0, epsilon]: exact, as both pieces are quadratic."""
    x, w = np.polynomial.legendre.leggauss(3)
    cut = min(epsilon, 0.5)
    below, above = cut * (x + 1) / 2, cut + (epsilon - cut) * (x + 1) / 2
    share_below = cut / epsilon if epsilon > 0 else 1.0
    return np.concatenate([below, above]), np.concatenate([w * share_below, w * (1 - share_below)])
