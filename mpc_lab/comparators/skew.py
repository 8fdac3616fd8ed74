"""Representation at the top of the lists: Skew@k, MinSkew, MaxSkew, NDKL."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mpc_lab.comparators.base import (
    Case,
    Comparison,
    Conditions,
    Lists,
    comparison,
    flag_by_interval,
)
from mpc_lab.errors import check_count
from mpc_lab.inference.clustered import (
    Clustered,
    effective,
    from_influence,
    mean_over_queries,
)
from mpc_lab.inference.estimates import significance
from mpc_lab.pairing.kernels import kernel
from mpc_lab.vocabulary import OVERVALUED, Flags, Floats, Ints

_MOST_PLACES = 10**12  # longer than any list, and small enough for every sum
CONDITIONS = Conditions(scores="all", queries="same", looks_at="exposure")


def skews(case: Case) -> list[Comparison]:
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
    case : Case

    References
    ----------
    Geyik, Ambler & Kenthapadi (2019), Fairness-aware ranking in search and recommendation systems
    with application to LinkedIn talent search.
    """
    k, level, lists = check_count("k", case.k, at_most=_MOST_PLACES), case.level, case.lists
    inside, member = case.n_inside, case.listed_member
    top, in_top = np.minimum(k, lists.sizes), np.zeros(lists.n_queries)
    _count_top(lists.starts, lists.query, member, k, in_top)
    sides = ((inside, in_top), (lists.sizes - inside, top - in_top))
    both = [_skew(lists, *side, k, level) for side in sides]
    found = comparison(f"skew@{k}", both[0], CONDITIONS, high_is=OVERVALUED)
    return [
        found,
        _extreme(f"min_skew@{k}", both, min, level),
        _extreme(f"max_skew@{k}", both, max, level),
        _ndkl(lists, member, inside, level),
    ]


def _skew(lists: Lists, inside: Floats, in_top: Floats, k: int, level: float) -> Clustered:
    """Return the skew of a side of which each query has some rows, and some of them in the top."""
    sizes = lists.sizes
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


_Pick = Callable[[Iterable[float]], float]


def _extreme(name: str, both: list[Clustered], pick: _Pick, level: float) -> Comparison:
    """Return the smaller or larger of two skews; one without items does not count."""
    there = [one for one in both if not np.isnan(one.estimate)]
    estimate = pick(one.estimate for one in there) if there else float("nan")
    missing = next((one.reason for one in there if one.reason), "" if there else "no items")
    made = Comparison(name, estimate, CONDITIONS, reason=missing)
    if missing:
        return made
    interval = partial(_extreme_interval, there, pick)
    low, high = interval(significance(level))
    made = replace(
        made,
        ci_low=low,
        ci_high=high,
        p_value=_extreme_p(there, pick),
        n_effective=min(one.n_effective for one in there),
        interval=interval,
    )
    return flag_by_interval(made)


def _extreme_interval(there: list[Clustered], pick: _Pick, a: float) -> tuple[float, float]:
    """Return the extremes of two intervals at half the error, which hold for both at once."""
    ends = [one.interval(a / 2) for one in there]
    return pick(low for low, _ in ends), pick(high for _, high in ends)


def _extreme_p(there: list[Clustered], pick: _Pick) -> float:
    """Return the smallest error at which that interval leaves out 0.

    The smaller of two is below 0 where either is, and above 0 where both are; the larger of two
    the other way round.
    """
    beyond = [one.p_value for one in there if pick((one.estimate, 0.0)) != 0]
    p = min(beyond) if beyond else max(one.p_value for one in there)
    return min(1.0, 2 * p)


@kernel
def _count_top(starts: Ints, query: Ints, member: Flags, k: int, to: Floats) -> None:
    """Count the rows of the group among the first `k` of each list, by query code."""
    for q in range(len(starts) - 1):
        for row in range(starts[q], min(starts[q] + k, starts[q + 1])):
            to[query[row]] += member[row]


def _ndkl(lists: Lists, member: Flags, inside: Floats, level: float) -> Comparison:
    whole = inside / lists.sizes
    divergence = np.zeros(lists.n_queries)
    _add_divergence(lists.query, lists.rank, member, whole, lists.discount, divergence)
    each = divergence / lists.discounts
    how: dict[str, Any] = {"weight": lists.weight, "level": level}
    mean = mean_over_queries(each, lists.cluster, lists.n_clusters, **how)
    made = comparison("ndkl", replace(mean, null=float("nan")), CONDITIONS)
    return replace(made, p_value=float("nan"))


@kernel
def _add_divergence(
    query: Ints, rank: Ints, member: Flags, whole: Floats, discount: Floats, to: Floats
) -> None:
    """Add the discounted divergence of the list down to each row from its whole query."""
    so_far = 0
    for k in range(len(query)):
        if rank[k] == 1:
            so_far = 0
        so_far += member[k]
        share, due = so_far / rank[k], whole[query[k]]
        found = 0.0
        if share > 0:
            found += share * np.log(share / due)
        if share < 1:
            found += (1 - share) * np.log((1 - share) / (1 - due))
        to[query[k]] += found * discount[k]
