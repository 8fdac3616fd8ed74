"""Representation at the top of the lists: Skew@k, MinSkew, MaxSkew, NDKL."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import rel_entr

from mpc_lab.arguments import as_whole
from mpc_lab.comparators.lists import Lists, ranked_lists
from mpc_lab.comparators.measure import (
    FAVOURED,
    Conditions,
    Measure,
    flagged_by_interval,
    measure,
)
from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import BoolArray, FloatArray, significance
from mpc_lab.objective.clustered import (
    Clustered,
    effective,
    from_influence,
    mean_over_queries,
)
from mpc_lab.pairing.log import Log

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

_MOST_PLACES = 10**12  # what no list reaches, and every sum can hold
CONDITIONS = Conditions(scores="all", queries="same", looks_at="exposure")


def skews(
    ranking: Ranking,
    group: str,
    *,
    k: int = 10,
    scores: FloatArray | None = None,
    level: float = 0.95,
    log: Log | None = None,
) -> list[Measure]:
    r"""Return Skew@k of a group, MinSkew@k and MaxSkew@k of it and the rest, and NDKL.

    .. math:: \mathrm{Skew}_g@k = \ln \frac{\sum_q \#\{g \text{ in the top } k'\}}
              {\sum_q k' \cdot \text{share of } g \text{ in } q}, \qquad k' = \min(k, n_q),

    with an interval by the delta method; −∞ without an interval where none of g is in the top.
    MinSkew and MaxSkew are the smaller and larger of the skews of g and of the rest, with an
    interval that holds for both at once (Bonferroni).

    .. math:: \mathrm{NDKL} = \frac1Z \sum_{i=1}^{n} \frac{\mathrm{KL}(\text{top } i \,\|\,
              \text{query})}{\log_2(i + 1)}, \qquad Z = \sum_{i=1}^{n} \frac{1}{\log_2(i + 1)},

    the mean over queries. It is above 0 in a random order too, so it flags nothing. Nothing is
    smoothed.

    Parameters
    ----------
    ranking : Ranking
    group : str
    k : int
        Places at the top.
    scores : float64 array, optional
        Those of another rule than the logged ones.
    level : float
    log : Log, optional
        The rows sorted by these scores, where they are sorted already.

    References
    ----------
    Geyik, Ambler & Kenthapadi (2019), Fairness-aware ranking in search and recommendation systems
    with application to LinkedIn talent search.
    """
    places = as_whole(k)
    if places is None or not 1 <= places <= _MOST_PLACES:
        raise MpcError(f"k must be a whole number of places, at least 1, but {k!r} came.")
    k = places
    lists = ranked_lists(ranking, scores, log=log)
    member = ranking.member(group)[lists.row]
    found = measure(f"skew@{k}", _skew(lists, member, k, level), CONDITIONS, high_is=FAVOURED)
    # Two intervals at half the error hold for both at once.
    strict = 1 - significance(level) / 2
    both = [_skew(lists, side, k, strict) for side in (member, ~member)]
    return [
        found,
        _extreme(f"min_skew@{k}", both, np.fmin),
        _extreme(f"max_skew@{k}", both, np.fmax),
        _ndkl(lists, member, level),
    ]


def _skew(lists: Lists, member: BoolArray, k: int, level: float) -> Clustered:
    sizes = lists.by_query(np.ones(len(lists.row)))
    inside = lists.by_query(member)
    in_top = lists.by_query(member & (lists.rank <= k))
    due = np.minimum(k, sizes) * inside / sizes
    every = np.arange(lists.n_queries)
    got, expected = lists.by_cluster(in_top, every), lists.by_cluster(due, every)
    if not expected.any():
        return Clustered(float("nan"), reason="no items")
    if not got.any():
        return Clustered(float("-inf"), reason="none in the top")
    return from_influence(
        float(np.log(got.sum() / expected.sum())),
        got / got.sum() - expected / expected.sum(),
        effective(expected),
        int(np.count_nonzero(expected)),
        scale=1.0,
        level=level,
    )


def _extreme(name: str, both: list[Clustered], pick: np.ufunc) -> Measure:
    """Return the smaller or larger of two skews; one without items does not count."""
    there = [one for one in both if not np.isnan(one.estimate)]
    estimate = float(pick.reduce([one.estimate for one in both]))
    missing = next((one.reason for one in there if one.reason), "" if there else "no items")
    made = Measure(name, estimate, CONDITIONS, reason=missing)
    if missing:
        return made
    made = replace(
        made,
        ci_low=float(pick.reduce([one.ci_low for one in there])),
        ci_high=float(pick.reduce([one.ci_high for one in there])),
        n_effective=min(one.n_effective for one in there),
    )
    return flagged_by_interval(made)


def _ndkl(lists: Lists, member: BoolArray, level: float) -> Measure:
    discount = 1 / np.log2(lists.rank + 1.0)
    so_far = np.cumsum(member) - np.repeat(
        np.concatenate([[0], np.cumsum(member)])[lists.starts[:-1]], np.diff(lists.starts)
    )
    top = so_far / lists.rank
    whole = (lists.by_query(member) / lists.by_query(np.ones(len(member))))[lists.query]
    divergence = rel_entr(top, whole) + rel_entr(1 - top, 1 - whole)
    each = lists.by_query(divergence * discount) / lists.by_query(discount)
    mean = mean_over_queries(each, lists.cluster, lists.n_clusters, level=level)
    made = measure("ndkl", replace(mean, null=float("nan")), CONDITIONS)
    return replace(made, p_value=float("nan"))
