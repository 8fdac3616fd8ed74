"""The mean gap of each cell with its standard error, interval and p-value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mpc_lab.errors import MpcError, near_match
from mpc_lab.inference.arrays import BoolArray, FloatArray, IntArray, TextArray, significance
from mpc_lab.inference.student import critical, two_sided_p
from mpc_lab.inference.variances import ITEM_SUMS, Quadratic, raw_variances

FAMILIES = ("naive", "query", "item", "union")
_TIE = 1e-12


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
        Why a cell is not estimable: "no pairs", "effective clusters below 2", "variance is 0",
        "variance is not positive"; otherwise "".
    std_error_by : dict
        Standard error that each of naive, query, item, union would have given.
    variance_from : array of str
        The variance that was used: under ``cluster="union"`` the largest of union, query and
        item, otherwise the cluster itself; "" where the cell is not estimable.
    variance_by : dict
        Raw variances: naive, query, item, both, union; those that the sums allow.
    """

    estimate: FloatArray
    std_error: FloatArray
    ci_low: FloatArray
    ci_high: FloatArray
    p_value: FloatArray
    dof: FloatArray
    n_effective: FloatArray
    estimable: BoolArray
    reason: TextArray
    std_error_by: dict[str, FloatArray]
    variance_from: TextArray
    variance_by: dict[str, FloatArray]


@dataclass(frozen=True)
class _Family:
    """One way to cluster: its variance after correction and its effective clusters."""

    variance: FloatArray
    effective: FloatArray

    @property
    def estimable(self) -> BoolArray:
        return np.asarray(_enough(self.effective) & (self.variance > 0))

    @property
    def std_error(self) -> FloatArray:
        return np.sqrt(np.where(self.estimable, self.variance, np.nan))


def estimate(
    pairs: IntArray,
    center: FloatArray | float,
    by: Mapping[str, Quadratic],
    *,
    clusters: IntArray,
    cluster: str,
    level: float = 0.95,
    item_effective: FloatArray | None = None,
    shared_items: BoolArray | bool = True,
) -> Estimates:
    r"""Estimate the mean gap of every cell from sums over clusters.

    The estimate is :math:`\theta = \text{center} + \sum (d_p - \text{center}) / P`. With V the
    raw variances of `raw_variances`, Q the plain number of query clusters with a pair and G the
    effective number of clusters, :math:`G = (\sum c_k)^2 / \sum c_k^2`, the variance used is::

        naive   V_naive                                 (no correction)
        query   V_query · Q/(Q − 1)                     (as statsmodels)
        item    V_item · G/(G − 1)
        union   max(V_union, V_query, V_item) · G/(G − 1)

    The interval is that of t with G − 1 degrees of freedom, G effective also for query and P
    for naive. Under union, G is the smallest of the query and the item count; the item count
    only where some item is in two queries.

    Parameters
    ----------
    pairs : array of int64
        Number of pairs of each cell, any shape.
    center : array or float
        What was subtracted from d in the sums; broadcasts against `pairs`.
    by : mapping of str to Quadratic
        "naive", "query" and, for item and union, "item", "dyad" and "item_query".
    clusters : array of int64
        Plain number of query clusters (units, where there are any) with a pair.
    cluster : {"naive", "query", "item", "union"}
        The variance to use.
    level : float
        Confidence level of the intervals.
    item_effective : array, optional
        Effective number of items, see `effective_items`; needed where `by` has item sums.
    shared_items : array of bool or bool
        Whether some item of the cell is in two queries.

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
    _check(cluster, by, item_effective)
    raw = raw_variances(pairs, center, by)
    families, source = _families(pairs, by, raw, clusters, item_effective, shared_items)
    used = families[cluster]
    estimable = used.estimable
    count = np.where(pairs > 0, pairs, np.nan)
    theta = np.asarray(center + by["naive"].cu / count)
    dof = np.where(estimable, np.maximum(used.effective - 1, 1.0), np.nan)
    half = critical(significance(level) / 2, dof) * used.std_error
    return Estimates(
        estimate=theta,
        std_error=used.std_error,
        ci_low=theta - half,
        ci_high=theta + half,
        p_value=two_sided_p(theta / used.std_error, dof),
        dof=dof,
        n_effective=used.effective,
        estimable=estimable,
        reason=_reasons(pairs, used),
        std_error_by=_std_errors(families, pairs),
        variance_from=np.where(estimable, source if cluster == "union" else cluster, ""),
        variance_by=raw,
    )


def effective_clusters(pairs: IntArray, squared_counts: FloatArray) -> FloatArray:
    """Return G = (Σc)²/Σc², with `pairs` = Σc; NaN where there is no pair."""
    count = np.where(pairs > 0, pairs, np.nan)
    return np.asarray(count / (squared_counts / count))


def effective_items(
    pairs: IntArray, squared_inside: FloatArray, squared_outside: FloatArray
) -> FloatArray:
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


def _check(cluster: str, by: Mapping[str, Quadratic], item_effective: FloatArray | None) -> None:
    if cluster not in FAMILIES:
        hint = near_match(cluster, FAMILIES)
        raise MpcError(f"cluster must be one of {', '.join(FAMILIES)}, got {cluster!r}.{hint}")
    has_items = all(name in by for name in ITEM_SUMS)
    if cluster in ("item", "union") and not has_items:
        raise MpcError(
            f"cluster={cluster!r} needs sums over items, but these pairs have none; "
            "name the item column of the ranking or use cluster='query'."
        )
    if has_items and item_effective is None:
        raise MpcError(
            "Sums over items came without item_effective; compute it with effective_items."
        )


def _families(
    pairs: IntArray,
    by: Mapping[str, Quadratic],
    raw: Mapping[str, FloatArray],
    clusters: IntArray,
    item_effective: FloatArray | None,
    shared_items: BoolArray | bool,
) -> tuple[dict[str, _Family], TextArray]:
    queries = effective_clusters(pairs, by["query"].cc)
    plain = np.where(_enough(queries), clusters, np.nan)
    families = {
        "naive": _Family(raw["naive"], np.where(pairs > 0, pairs, np.nan)),
        "query": _Family(raw["query"] * plain / (plain - 1), queries),
    }
    source = np.full(pairs.shape, "query")
    if "union" in raw and item_effective is not None:
        items = np.where(pairs > 0, item_effective, np.nan)
        smallest = np.where(shared_items, np.minimum(queries, items), queries)
        largest, source = _largest(raw)
        families["item"] = _Family(raw["item"] * _correction(items), items)
        families["union"] = _Family(largest * _correction(smallest), smallest)
    return families, source


def _largest(raw: Mapping[str, FloatArray]) -> tuple[FloatArray, TextArray]:
    """Return the largest of union, query and item, and its name; ties count as union."""
    largest = np.maximum(np.maximum(raw["union"], raw["query"]), raw["item"])
    near = largest - _TIE * np.abs(largest)
    named = np.where(raw["query"] >= near, "query", "item")
    return largest, np.where(raw["union"] >= near, "union", named)


def _enough(effective: FloatArray) -> BoolArray:
    # Two equal clusters have G = 2, which division may leave a rounding error below 2.
    return np.asarray(effective >= 2 * (1 - _TIE))


def _correction(effective: FloatArray) -> FloatArray:
    groups = np.where(_enough(effective), effective, np.nan)
    return np.asarray(groups / (groups - 1))


def _reasons(pairs: IntArray, used: _Family) -> TextArray:
    sign = np.where(used.variance < 0, "variance is not positive", "variance is 0")
    reason = np.where(_enough(used.effective), sign, "effective clusters below 2")
    return np.where(used.estimable, "", np.where(pairs > 0, reason, "no pairs"))


def _std_errors(families: Mapping[str, _Family], pairs: IntArray) -> dict[str, FloatArray]:
    missing = np.full(pairs.shape, np.nan)
    return {name: families[name].std_error if name in families else missing for name in FAMILIES}
