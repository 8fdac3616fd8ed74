"""The mean gap of each cell with its standard error and interval, from sums over clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from mpc_lab.errors import MpcError, check_level, near_match
from mpc_lab.pairing.moments import ABOVE, BELOW, Moments, Sides
from mpc_lab.vocabulary import (
    ITEM,
    PRODUCER,
    QUERY_CR3,
    VARIANCES,
    Flags,
    Floats,
    Ints,
    Texts,
    Variance,
    public_variances,
)


def significance(level: float) -> float:
    """Return a = 1 − level, after checking that `level` is a confidence level."""
    # 1 - 0.95 is 0.050000000000000044; what is meant is the decimal as written.
    return round(1 - check_level(level), 15)


def two_sided_p(statistic: Floats, dof: Floats) -> Floats:
    """Return the two-sided p-value of a t statistic; NaN where either is NaN."""
    return np.asarray(2 * stdtr(dof, -np.abs(statistic)), dtype=np.float64)


def critical(tail: Floats | float, dof: Floats | float) -> Floats:
    """Return the t quantile with probability `tail` above it.

    It takes the tail, because 1 − tail loses digits where the tail is small.
    """
    return np.asarray(-stdtrit(dof, np.asarray(tail)), dtype=np.float64)


def normal_critical(tail: Floats | float) -> Floats:
    """Return the normal quantile with probability `tail` above it."""
    return np.asarray(-ndtri(np.asarray(tail)), dtype=np.float64)


_EPS = float(np.finfo(np.float64).eps)
_WORST_ADDING = 1e-9
_RELATIVE_ROUNDING = 1e-12


class ClusterSums(Protocol):
    """Sums over clusters with c_k pairs and centred sum U_k: Σc², ΣcU, ΣU²."""

    @property
    def cc(self) -> Floats: ...  # noqa: D102
    @property
    def cu(self) -> Floats: ...  # noqa: D102
    @property
    def uu(self) -> Floats: ...  # noqa: D102
    def at(self, delta: Floats, /) -> Floats:
        """Return Σ(U_k − delta·c_k)²."""
        ...


def raw_variances(
    pairs: Ints,
    center: Floats,
    by: Mapping[str, ClusterSums],
    owner: str = ITEM,
    cr3: Mapping[str, Floats] | None = None,
) -> dict[str, Floats]:
    """Return the raw variances of the mean gap θ = center + Σ(d − center)/P.

    With u_p = d_p − θ and P pairs::

        naive  P⁻² Σ u_p²
        query  P⁻² Σ_q (Σ_{p in q} u_p)²
        item   P⁻² [Σ_i S_i² − Σ_ij U_ij²]
        both   P⁻² [Σ_iq S_iq² − Σ u_p²]
        union  item + query − both

    S_i sums u over the pairs with item i on either side, U_ij over the pairs of the same two
    items, S_iq over the pairs of item i inside query q. Item and union can be negative. A value
    that is no larger than the rounding error of its terms is 0.

    Parameters
    ----------
    pairs : array of int64
        Number of pairs P in each cell.
    center : array
        The number that was subtracted from d in the sums; broadcasts against `pairs`.
    by : mapping of str to ClusterSums
        "naive" and "query"; for the item variances also "item", "dyad" and "item_query". Where
        two items can meet twice inside one cluster of "query" (a unit with several queries),
        "dyad_query" takes the place of Σ u_p² in `both`.
    owner : {"item", "producer"}
        What the items of these sums are; with producers, "producer" takes the place of "item".
    cr3 : mapping of str to array, optional
        Replaces Σ S² over "query" and "item" clusters where heavy clusters are corrected for.

    Returns
    -------
    dict of str to array
        The families that `by` allows. NaN where there is no pair.

    References
    ----------
    Aronow, Samii & Assenova (2015), Cluster-robust variance estimation for dyadic data.
    """
    count = np.where(pairs > 0, pairs, np.nan)
    delta = by["naive"].cu / count
    if "item" in by:
        by = {"dyad_query": by["naive"], **by}
    sums = {name: by[name].at(delta) for name in by} | dict(cr3 or {})
    slack = {name: _slack(by, name, delta, count, center + delta) for name in by}
    return {
        variance.name: _combine(variance.terms, sums, slack) / count**2
        for variance in VARIANCES.values()
        if all(name in by for name in variance.terms) and variance.goes_with(owner)
    }


def _combine(
    signs: Mapping[str, int], sums: Mapping[str, Floats], slack: Mapping[str, Floats]
) -> Floats:
    total = np.sum([sign * sums[name] for name, sign in signs.items()], axis=0)
    rounding = np.sum([slack[name] for name in signs], axis=0)
    return np.where(np.abs(total) <= rounding, 0.0, total)


def _slack(
    by: Mapping[str, ClusterSums],
    name: str,
    delta: Floats,
    count: Floats,
    theta: Floats,
) -> Floats:
    """Return how far from 0 rounding alone can move Σ(U_k − δc_k)².

    Three sources: the last subtraction, whose terms carry the error of adding up to P equal
    numbers; the cluster sums U_k, in which pairs may cancel; and the differences d themselves.
    """
    adding = np.minimum(_EPS * (64 + count), _WORST_ADDING)
    subtraction = adding * _size(by[name], delta)
    cancelling = _RELATIVE_ROUNDING**2 * _size(by["naive"], delta)
    differences = (_RELATIVE_ROUNDING * theta) ** 2 * by[name].cc
    return np.asarray(subtraction + cancelling + differences)


def _size(sums: ClusterSums, delta: Floats) -> Floats:
    return np.asarray(sums.uu + 2 * np.abs(delta * sums.cu) + delta**2 * sums.cc)


def owner_variance(raw: Mapping[str, Floats]) -> Floats | None:
    """Return the raw variance over items, or over producers where these were summed over."""
    return next((raw[name] for name in (ITEM, PRODUCER) if name in raw), None)


_TIE = 1e-12
# With two effective clusters t has one degree of freedom, which can give intervals of ±400 times
# the range of the outcome.
FEWEST_CLUSTERS = 3
IN_EVERY_PAIR = "one cluster is in every pair"
TOO_FEW_CLUSTERS = f"effective clusters below {FEWEST_CLUSTERS}"
TOO_FEW_PRODUCERS = f"effective producers below {FEWEST_CLUSTERS}"


@dataclass(frozen=True)
class Estimates:
    """Estimates of cells, as arrays of one shape; NaN where there is nothing to estimate from.

    Attributes
    ----------
    estimate : array
        The mean gap; NaN only where there is no pair.
    std_error, ci_low, ci_high, p_value, dof : array
        Its inference; NaN where the cell is not estimable.
    n_effective : array
        Effective number of clusters; NaN only where there is no pair.
    estimable : array of bool
    reason : array of str
        Why a cell is not estimable: "no pairs", "effective clusters below 3", "effective producers
        below 3", "variance is 0", "variance is not positive", "one cluster is in every pair";
        otherwise "".
    std_error_by : dict
        The standard errors that naive, query, item (or producer, whichever was summed over) and
        union would have given with the plain correction, and query with CR3.
    variance_from : array of str
        The variance that was used: under ``cluster="union"`` the largest of union, query and
        item (or producer), otherwise the cluster itself; "" where the cell is not estimable.
    variance_by : dict
        Raw variances that the sums allow: naive, query, item (or producer), both, union.
    """

    estimate: Floats
    std_error: Floats
    ci_low: Floats
    ci_high: Floats
    p_value: Floats
    dof: Floats
    n_effective: Floats
    estimable: Flags
    reason: Texts
    std_error_by: dict[str, Floats]
    variance_from: Texts
    variance_by: dict[str, Floats]


@dataclass(frozen=True)
class _Family:
    """One way to cluster: its variance after correction, effective clusters, largest part."""

    variance: Floats
    effective: Floats
    source: Texts

    @property
    def estimable(self) -> Flags:
        return np.asarray(enough_clusters(self.effective) & (self.variance > 0))

    @property
    def std_error(self) -> Floats:
        return np.sqrt(np.where(self.estimable, self.variance, np.nan))


def estimate(
    pairs: Ints,
    center: Floats | float,
    by: Mapping[str, ClusterSums],
    *,
    clusters: Ints,
    cluster: str,
    level: float = 0.95,
    item_effective: Floats | None = None,
    shared_items: Flags | bool = True,
    most_effective: Mapping[str, Floats] | None = None,
    owner: str = ITEM,
    cr3: Mapping[str, Floats] | None = None,
    corrected: bool = False,
) -> Estimates:
    r"""Estimate the mean gap of every cell from sums over clusters.

    The estimate is :math:`\theta = \text{center} + \sum (d_p - \text{center}) / P`. With V the
    raw variances of `raw_variances`, Q the plain number of query clusters with a pair and G the
    effective number of clusters, :math:`G = (\sum c_k)^2 / \sum c_k^2`, the variance used is::

                plain                                      CR3
        naive   V_naive                                    V_naive
        query   V_query · Q/(Q − 1)  (as statsmodels)      V_query · (Q − 1)/Q
        item    V_item · G/(G − 1)                         V_item
        union   max(V_union, V_query, V_item) · G/(G − 1)  max(V_union, V_query, V_item)

    Under CR3 the sum of each query, and of each item, is divided by 1 less its share of the pairs
    before it is squared; dyads and sums inside queries stay as they are.

    The interval is that of t with G − 1 degrees of freedom, G effective also for query and P
    for naive. Under union, G is the smallest of the query and the item count; the item count
    only where some item is in two queries.

    Parameters
    ----------
    pairs : array of int64
        Number of pairs of each cell, any shape.
    center : array or float
        What was subtracted from d in the sums; broadcasts against `pairs`.
    by : mapping of str to ClusterSums
        "naive", "query" and, for item and union, "item", "dyad" and "item_query".
    clusters : array of int64
        Plain number of query clusters (units, where there are any) with a pair.
    cluster : {"naive", "query", "item", "producer", "union"}
        The variance to use.
    level : float
        Confidence level of the intervals.
    item_effective : array, optional
        Effective number of items, see `effective_items`; needed where `by` has item sums.
    shared_items : array of bool or bool
        Whether some item of the cell is in two queries.
    most_effective : mapping of str to array, optional
        Limits of G for "queries", "items" and the "fewest" of both, where an estimate is made of
        parts: see `mpc_lab.inference.estimates`.
    owner : {"item", "producer"}
        Whether the sums over items are over items or over their producers.
    cr3 : mapping of str to array, optional
        Σ S² over "query" and "item" clusters after that division.
    corrected : bool
        Whether CR3 is used, rather than the plain correction.

    Returns
    -------
    Estimates

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> def sums(c, u):
    ...     c, u = np.asarray(c, float), np.asarray(u, float)
    ...     return SimpleNamespace(cc=c @ c, cu=c @ u, uu=u @ u,
    ...                            at=lambda delta: ((u - delta * c) ** 2).sum())
    >>> by = {"naive": sums([1, 1, 1], [1, 0, 2]), "query": sums([2, 1], [1, 2])}
    >>> cell = estimate(np.array(3), 0.0, by, clusters=np.array(2), cluster="naive")
    >>> float(cell.estimate)
    1.0
    """
    pairs = np.asarray(pairs)
    center = np.broadcast_to(np.asarray(center, dtype=np.float64), pairs.shape)
    _check(cluster, by, item_effective, owner)
    raw = raw_variances(pairs, center, by, owner)
    effective = _effective(pairs, by, item_effective, shared_items, most_effective or {})
    families = _families(raw, effective, clusters, owner, _plain)
    std_errors = _std_errors(families, pairs)
    used = families[cluster]
    if cr3:
        raw_weighed = raw_variances(pairs, center, by, owner, cr3)
        weighed = _families(raw_weighed, effective, clusters, owner, _weigh)
        std_errors[QUERY_CR3] = weighed["query"].std_error
        used = weighed[cluster] if corrected else used
    estimable = used.estimable
    count = np.where(pairs > 0, pairs, np.nan)
    theta = np.asarray(center + by["naive"].cu / count)
    low, high, p_value, dof = t_interval(theta, used.std_error, used.effective, level=level)
    return Estimates(
        estimate=theta,
        std_error=used.std_error,
        ci_low=low,
        ci_high=high,
        p_value=p_value,
        dof=dof,
        n_effective=used.effective,
        estimable=estimable,
        reason=_reasons(pairs, used, families["query"], cluster, owner),
        std_error_by=std_errors,
        variance_from=np.where(estimable, used.source, ""),
        variance_by=raw,
    )


def t_interval(
    estimate: Floats | float,
    std_error: Floats | float,
    effective: Floats | float,
    *,
    level: float = 0.95,
    null: float = 0.0,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the ends of a t interval, the p-value against `null`, and the degrees of freedom.

    The degrees of freedom are G − 1, G the effective number of clusters; all four are NaN where the
    standard error is.
    """
    dof = np.where(np.isnan(std_error), np.nan, np.maximum(np.asarray(effective) - 1, 1.0))
    half = critical(significance(level) / 2, dof) * std_error
    p_value = two_sided_p(np.asarray((estimate - null) / std_error), dof)
    return np.asarray(estimate - half), np.asarray(estimate + half), p_value, dof


def effective_clusters(pairs: Ints | Floats, squared_counts: Floats) -> Floats:
    """Return G = (Σc)²/Σc², with `pairs` = Σc; NaN where there is no pair, or no such sum."""
    count = np.where((pairs > 0) & (squared_counts > 0), pairs, np.nan)
    return np.asarray(count / (squared_counts / count))


def effective_items(pairs: Ints, squared_inside: Floats, squared_outside: Floats) -> Floats:
    """Return the smaller effective number of items of the two sides of the pairs.

    Parameters
    ----------
    pairs : array of int64
        Number of pairs of each cell.
    squared_inside, squared_outside : array
        Σc² over the items on the side of the group, and over those on the other side.
    """
    return np.minimum(
        effective_clusters(pairs, squared_inside), effective_clusters(pairs, squared_outside)
    )


def _check(
    cluster: str, by: Mapping[str, ClusterSums], item_effective: Floats | None, owner: str
) -> None:
    known = public_variances()
    if cluster not in known:
        hint = near_match(cluster, known)
        raise MpcError(f"cluster must be one of {', '.join(known)}; got {cluster!r}.{hint}")
    has_items = "item" in by
    if VARIANCES[cluster].needs_items and not has_items:
        raise MpcError(
            f"cluster={cluster!r} must have sums over items; got pairs without them. Name the "
            "item column of the ranking, or use cluster='query'."
        )
    if not VARIANCES[cluster].goes_with(owner):
        raise MpcError(
            f"cluster={cluster!r} must have sums over {cluster}s; got sums over {owner}s. Run the "
            f"audit with cluster={cluster!r}."
        )
    if has_items and item_effective is None:
        raise MpcError(
            "Sums over items must come with item_effective; got none. Compute it with "
            "effective_items."
        )


def _effective(
    pairs: Ints,
    by: Mapping[str, ClusterSums],
    item_effective: Floats | None,
    shared_items: Flags | bool,
    most_effective: Mapping[str, Floats],
) -> dict[str, Floats]:
    """Return the effective number of clusters of each kind."""
    queries = effective_clusters(pairs, by["query"].cc)
    effective = {"pairs": np.where(pairs > 0, pairs, np.nan), "queries": queries}
    if item_effective is not None:
        items = np.where(pairs > 0, item_effective, np.nan)
        fewest = np.where(shared_items, np.minimum(queries, items), queries)
        effective |= {"items": items, "fewest": fewest}
    for name, limit in most_effective.items():
        if name in effective:
            effective[name] = np.minimum(effective[name], limit)
    return effective


def _families(
    raw: Mapping[str, Floats],
    effective: Mapping[str, Floats],
    clusters: Ints,
    owner: str,
    correct: Callable[[Variance, Floats, Floats, Ints], Floats],
) -> dict[str, _Family]:
    families = {}
    for name in public_variances():
        record = VARIANCES[name]
        if name in raw and record.clusters in effective:
            largest, source = _largest(raw, (name, *record.floors(owner)))
            groups = effective[record.clusters]
            families[name] = _Family(correct(record, largest, groups, clusters), groups, source)
    return families


def _largest(raw: Mapping[str, Floats], names: Sequence[str]) -> tuple[Floats, Texts]:
    """Return the largest of some variances and its name; the first where several are equal."""
    largest = reduce(np.maximum, [raw[name] for name in names])
    near = largest - _TIE * np.abs(largest)
    source = np.full(np.shape(largest), names[-1])
    for name in reversed(names[:-1]):
        source = np.where(raw[name] >= near, name, source)
    return largest, source


def _weigh(record: Variance, variance: Floats, effective: Floats, plain: Ints) -> Floats:
    """Return a variance in which heavy clusters are corrected for."""
    if not record.is_weighed:
        return _plain(record, variance, effective, plain)
    if record.factor != "plain":
        return variance
    groups = np.where(enough_clusters(effective), plain, np.nan)
    return np.asarray(variance * (groups - 1) / groups)


def _plain(record: Variance, variance: Floats, effective: Floats, plain: Ints) -> Floats:
    if record.factor == "none":
        return variance
    enough = enough_clusters(effective)
    if record.factor == "plain":
        groups = np.where(enough, plain, np.nan)
        return np.asarray(variance * groups / (groups - 1))
    groups = np.where(enough, effective, np.nan)
    return np.asarray(variance * (groups / (groups - 1)))


def enough_clusters(effective: Floats) -> Flags:
    """Whether there are three effective clusters; with fewer, an interval says nothing."""
    # Three equal clusters have G = 3, which division may leave a rounding error below 3.
    return np.asarray(effective >= FEWEST_CLUSTERS * (1 - _TIE))


def _reasons(pairs: Ints, used: _Family, by_query: _Family, cluster: str, owner: str) -> Texts:
    sign = np.where(used.variance < 0, "variance is not positive", "variance is 0")
    sign = np.where(np.isnan(used.variance), IN_EVERY_PAIR, sign)
    few: Texts | str = TOO_FEW_CLUSTERS
    if owner == PRODUCER and VARIANCES[cluster].needs_items:
        # There are enough queries, so it is the producers that are too few.
        enough = enough_clusters(by_query.effective)
        few = np.where(enough, TOO_FEW_PRODUCERS, TOO_FEW_CLUSTERS)
    reason = np.where(enough_clusters(used.effective), sign, few)
    return np.where(used.estimable, "", np.where(pairs > 0, reason, "no pairs"))


def _std_errors(families: Mapping[str, _Family], pairs: Ints) -> dict[str, Floats]:
    missing = np.full(pairs.shape, np.nan)
    found = {
        name: families[name].std_error if name in families else missing
        for name in public_variances()
    }
    return found | {QUERY_CR3: missing}


FEWEST_OF_A_PART = 3
NEVER_TURNED = "the log never shows such pairs the other way round"
NEVER_ALIKE = "the log hardly ever shows such pairs both ways round at the same places"
NOT_POOLED = "a pool has no intervals inside cells of places, which need the rows"


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
    # Three clusters that weigh the same are 3 up to rounding, in whatever order they were added.
    enough = fewest >= FEWEST_OF_A_PART * (1 - 1e-9)
    with np.errstate(all="ignore"):
        # In units of the largest: squares of variances beyond 1e154 overflow.
        share = variance / np.max(variance, axis=0)
        joined = 1 + share.sum(axis=0) ** 2 / (share**2 / (effective - 1)).sum(axis=0)
    # Where no part varies there is nothing to weigh them by.
    joined = np.where(np.isfinite(joined), joined, effective.sum(axis=0))
    return np.asarray(np.where(enough, joined, fewest))


def most_effective(moments: Moments) -> dict[str, Floats] | None:
    """Return upper limits of the effective clusters for cells of two sides, and none for others.

    Returns
    -------
    dict of float64 arrays (mode, group, threshold) or None
        ``"queries"`` and, where items are summed over, ``"items"`` and the ``"fewest"`` of both.
        None where no mode has two sides.
    """
    row, sides = moments.two_sided, moments.sides
    if row is None or sides is None:
        return None
    variance = query_variances(sides)
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


def query_variances(sides: Sides) -> Floats:
    """Return the query variance that each side adds to the mean of both."""
    cc, cu, _, uu = np.moveaxis(sides.by["query"][[BELOW, ABOVE]], 1, 0)
    mean = sides.means
    weight = np.where(sides.weight > 0, sides.weight, np.nan)
    return np.asarray((uu - 2 * mean * cu + mean**2 * cc) / (2 * weight) ** 2)
