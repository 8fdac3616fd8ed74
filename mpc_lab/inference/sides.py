"""Estimates from listed pairs on both sides of a tie: lines and curves in the distance.

A pair is on a side with a weight; with logged positions it is in a cell of places too, and the two
sides are compared inside cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.clustered import PairCodes, dot, estimate_listed, totals
from mpc_lab.inference.estimates import (
    FEWEST_CLUSTERS,
    NEVER_TURNED,
    Estimates,
    effective_clusters,
    enough_clusters,
    estimate,
    join_parts,
)
from mpc_lab.inference.limit import (
    LOCAL_QUADRATIC,
    MEAN_OVER_TIES,
    Limit,
    distinct,
    polynomial,
    why_ties,
)
from mpc_lab.pairing.moments import ABOVE, BELOW
from mpc_lab.pairing.places import FEWEST, N_CELLS, combine_cells, parts_of
from mpc_lab.pairing.weighting import ListedWeights
from mpc_lab.vocabulary import NOT_ESTIMABLE, Flags, Floats, Ints


@dataclass(frozen=True)
class SidedPairs:
    """Listed pairs, each once, and the side or sides it is on.

    Attributes
    ----------
    distance, d : array (pair,)
        Distance of the scores, and difference of the outcomes.
    weight : array (side, pair)
        What a pair counts below and above; 0 where it is not on that side.
    cell : array of int64 (pair,)
        Its cell of places; 0 where there are no positions.
    n_cells : int
    codes : PairCodes
    counts : ListedWeights, optional
        What pairs count besides.
    """

    distance: Floats
    d: Floats
    weight: Floats
    cell: Ints
    n_cells: int
    codes: PairCodes
    counts: ListedWeights | None = None

    @property
    def weighted(self) -> Floats:
        """What a pair counts on either side, with the weight of its query."""
        return self.weight if self.counts is None else self.weight * self.counts.of_pairs

    def take(self, chosen: Flags) -> SidedPairs:
        """Return some of the pairs."""
        return SidedPairs(
            self.distance[chosen],
            self.d[chosen],
            self.weight[:, chosen],
            self.cell[chosen],
            self.n_cells,
            self.codes.take(chosen),
            None if self.counts is None else self.counts.take(chosen),
        )

    def shares(self, weight: Floats) -> Floats:
        """Return weights (side, pair) that give both sides the same mix of cells.

        Each side of a cell weighs ω, which its pairs share in their former proportions.
        """
        on_side = self.weight > 0
        mass, number = (
            np.array([np.bincount(self.cell, w, minlength=self.n_cells) for w in by_side])
            for by_side in (weight, on_side.astype(np.float64))
        )
        fewest = FEWEST if self.n_cells > 1 else 0.0
        enough = (number >= fewest).all(axis=0)
        found = combine_cells(np.where(enough, mass, 0.0), np.zeros_like(mass), 0.0)
        return np.asarray(weight * (found.share / np.where(mass > 0, mass, 1.0))[:, self.cell])


def by_score(
    distance: Floats, d: Floats, direction: Floats, tie: float, codes: PairCodes
) -> SidedPairs:
    """Return pairs on the side that their scores say; a tied pair is on both, with this weight.

    Parameters
    ----------
    direction : array (pair,)
        The sign of the other's score less that of the group's item.
    """
    weight = np.where(direction == 0, tie, np.array([direction > 0, direction < 0])).astype(float)
    return SidedPairs(distance, d, weight, np.zeros(len(d), dtype=np.int64), 1, codes)


def by_place(distance: Floats, d: Floats, place: Ints, other: Ints, codes: PairCodes) -> SidedPairs:
    """Return pairs on the sides, and in the cells, that the logged places say."""
    part = parts_of(place, other)
    weight = np.array([part < N_CELLS, part >= N_CELLS]).astype(float)
    return SidedPairs(distance, d, weight, part % N_CELLS, N_CELLS, codes)


@dataclass(frozen=True)
class TwoLines:
    """The intercepts of the two sides, joined as their mean and as half their difference."""

    mean: Estimates
    half_difference: Estimates


def intercepts(
    pairs: SidedPairs,
    weight: Floats,
    *,
    degree: int,
    cluster: str,
    level: float,
    correct: bool = False,
) -> TwoLines | None:
    """Fit a polynomial in the distance to either side, and join the intercepts.

    Parameters
    ----------
    pairs : SidedPairs
    weight : array (side, pair)
        The weights of the least squares.
    degree : int
    cluster, level
        As in an audit.
    correct : bool
        Whether a side's part is corrected by (n − 1)/(n − k), as statsmodels does.

    Returns
    -------
    TwoLines or None
        None where a side has too few distinct distances.
    """
    each, values = np.zeros((2, len(pairs.d))), np.zeros(2)
    order = np.argsort(pairs.distance, kind="stable")
    for side in (BELOW, ABOVE):
        here = order[weight[side, order] > 0]
        distance, d = pairs.distance[here], pairs.d[here]
        if degree == 0:
            share = weight[side, here] / weight[side, here].sum()
            values[side] = share @ d
            each[side, here] = share * (d - values[side])
            continue
        fit = polynomial(distance, d, weight[side, here], degree=degree)
        if fit is None:
            return None
        n = len(here)
        scale = np.sqrt((n - 1) / (n - degree - 1)) if correct and n > degree + 1 else 1.0
        values[side] = fit.coefficients[0]
        each[side, here] = fit.loadings * fit.residuals * scale
    counts = np.where(weight > 0, pairs.weighted, 0.0)
    half = 0.5 * each
    options: dict[str, Any] = {"cluster": cluster, "level": level}
    difference = 0.5 * float(values[ABOVE] - values[BELOW])
    turned = np.array([-half[BELOW], half[ABOVE]])
    return TwoLines(
        estimate_sides(half, counts, float(values.mean()), pairs.codes, **options),
        estimate_sides(turned, counts, difference, pairs.codes, **options),
    )


def limit_of_sides(
    pairs: SidedPairs, *, bandwidth: float, cluster: str, level: float = 0.95
) -> tuple[Limit, Estimates | None]:
    """Return the mean of the two one-sided limits at one bandwidth, and the place effect.

    Each side is a regression of d on 1, Δ, Δ² with weights 1 − Δ/h, as in
    `mpc_lab.inference.limit.limit`; with positions both sides have the same cells of places. Where
    a side has fewer than 4 distinct distances, or more than half its weight on ties, the estimate
    is the mean over ties.
    """
    near = pairs.take((pairs.distance < bandwidth) | (pairs.distance == 0))
    kernel = 1 - near.distance / bandwidth if bandwidth > 0 else np.ones(len(near.d))
    kernel = kernel if near.counts is None else kernel * near.counts.of_pairs
    weight = near.shares((near.weight > 0) * kernel)
    tied = near.distance == 0
    both = (weight > 0).any(axis=1).all() if weight.size else False
    why = "" if both else NEVER_TURNED
    for side in weight if both else ():
        mass = float(side[tied].sum() / side.sum())
        why = why or why_ties(distinct(near.distance[side > 0]), mass)
    options: dict[str, Any] = {"cluster": cluster, "level": level}
    found = (
        None if why else intercepts(near, weight, degree=2, correct=cluster == "query", **options)
    )
    used, method, effect = near, LOCAL_QUADRATIC, None
    if found is not None:
        effect = found.half_difference
    else:
        why = why or "the distances are too alike for a curve"
        used, method = near.take(tied), MEAN_OVER_TIES
        weight = used.shares(used.weighted)
        if weight.size and (weight > 0).any(axis=1).all():
            found = intercepts(used, weight, degree=0, **options)
    if found is None or not found.mean.estimable:
        method = NOT_ESTIMABLE
        why = f"{why}; {found.mean.reason}" if found is not None and why else why
    values = {
        name: float(getattr(found.mean, name)) if found is not None else float("nan")
        for name in ("estimate", "std_error", "ci_low", "ci_high", "p_value", "dof", "n_effective")
    }
    n_ties = int(tied.sum())
    ties = near.take(tied)
    of_ties = None if ties.counts is None else ties.counts.of_pairs
    limit = Limit(
        **values,
        bandwidth=float(bandwidth),
        tie_share=n_ties / len(near.d) if len(near.d) else float("nan"),
        tie_mean=replace(ties.codes, weight=of_ties).mean(ties.d),
        tie_weight=float(kernel[tied].sum() / kernel.sum()) if len(near.d) else float("nan"),
        n_pairs=len(used.d),
        n_ties=n_ties,
        variance_from=str(found.mean.variance_from) if found is not None else "",
        method=method,
        reason=why,
    )
    return limit, effect


def estimate_sides(
    each: Floats,
    weight: Floats,
    center: float,
    codes: PairCodes,
    *,
    cluster: str,
    level: float = 0.95,
) -> Estimates:
    """Return an estimate that is a sum of two sides, given what each pair adds to its error.

    Parameters
    ----------
    each : array (side, pair)
        What a pair adds to the error of the estimate, on either side; 0 where it is not on it.
    weight : array (side, pair)
        What it counts on either side.
    center : float
        The estimate.
    codes : PairCodes
    cluster, level
        As in `estimate_listed`.

    Returns
    -------
    Estimates
        With 0-dimensional arrays. The degrees of freedom are those of an estimate made of parts.
    """
    pairs, n_pairs = np.array(codes.pairs), codes.pairs
    whole = weight.sum(axis=1, keepdims=True)
    if n_pairs == 0 or not (whole > 0).all():
        return estimate_listed(np.empty(0), np.nan, codes.take(slice(0)), cluster=cluster)
    stacked = 0.5 * n_pairs * (weight / whole).sum(axis=0)
    variance = np.array([dot(*[totals(codes.query, side)] * 2) for side in each])
    queries, items = np.array([codes.effective(side) for side in weight]).T
    most = {"queries": join_parts(variance, queries)}
    of_items = None
    if codes.items is not None:
        most |= {"items": join_parts(variance, items)}
        most |= {"fewest": join_parts(variance, np.minimum(queries, items))}
        of_items = np.array(codes.effective(stacked)[1])
    return estimate(
        pairs,
        center,
        codes.sums(n_pairs * each.sum(axis=0), stacked),
        clusters=np.array(codes.queries),
        cluster=cluster,
        level=level,
        item_effective=of_items,
        shared_items=codes.shares_items,
        most_effective=most,
        owner=codes.owner,
    )


def fit(d: Floats, query_codes: Ints, weight: Floats | None = None) -> Any:
    """Regress the outcome differences of a cell on a constant, clustered by query.

    d_p = MPC + u_p. The standard error equals that of ``cluster="query"``; the interval does
    not, because statsmodels takes the normal distribution and not t with the effective number
    of queries.

    Parameters
    ----------
    d : array
        Outcome differences, one for each pair.
    query_codes : array of int64
        The query (or unit) of each pair.
    weight : array, optional
        What each pair counts; by default 1.

    Returns
    -------
    statsmodels.regression.linear_model.RegressionResultsWrapper

    Examples
    --------
    >>> import numpy as np
    >>> result = fit(np.array([1.0, 0.0, 2.0]), np.array([0, 1, 2]))
    >>> result.model.exog_names
    ['MPC']
    """
    _check(d, query_codes, weight)
    import pandas as pd
    import statsmodels.api as sm

    outcome = pd.Series(np.asarray(d, dtype=np.float64), name="d")
    constant = pd.DataFrame({"MPC": np.ones(len(outcome))})
    groups = np.asarray(query_codes)
    alike = weight is None or np.ptp(weight) == 0
    model = sm.OLS(outcome, constant) if alike else sm.WLS(outcome, constant, weights=weight)
    return model.fit(cov_type="cluster", cov_kwds={"groups": groups})


def fit_sides(d: Floats, direction: Floats, query_codes: Ints, weight: Floats | None = None) -> Any:
    """Regress the outcome differences of a cell of two sides on a constant and the side.

    d_p = MPC ± place + u_p, + where the item of the group is the upper one; a tied pair is in
    twice, with half its weight on either side. The constant is the mean of the two sides.

    Parameters
    ----------
    d : array
        Outcome differences, one for each pair.
    direction : array
        Above 0 where the item of the group is the lower one, below 0 where it is the upper one.
    query_codes : array of int64
        The query (or unit) of each pair.
    weight : array, optional
        What each pair counts; by default 1.

    Examples
    --------
    >>> import numpy as np
    >>> result = fit_sides(np.array([1.0, 0.0, 2.0, 1.0]), np.array([1, -1, 1, -1]),
    ...                    np.array([0, 1, 2, 3]))
    >>> result.model.exog_names, round(float(result.params["MPC"]), 3)
    (['MPC', 'place'], 1.0)
    """
    _check(d, query_codes, weight)
    import pandas as pd
    import statsmodels.api as sm

    tied = np.flatnonzero(direction == 0)
    row = np.concatenate([np.arange(len(d)), tied])
    above = np.where(direction > 0, -1.0, 1.0)
    above = np.concatenate([above, np.full(len(tied), -1.0)])
    if np.ptp(above) == 0:
        raise MpcError(
            f"A regression of both sides must have pairs on each of them; got all {len(d):,} "
            "pairs on one. Choose a larger epsilon or another group."
        )
    outcome = pd.Series(np.asarray(d, dtype=np.float64)[row], name="d")
    columns = pd.DataFrame({"MPC": np.ones(len(row)), "place": above})
    weights = np.where(np.asarray(direction)[row] == 0, 0.5, 1.0)
    weights = weights if weight is None else weights * weight[row]
    groups = np.asarray(query_codes)[row]
    model = sm.WLS(outcome, columns, weights=weights)
    return model.fit(cov_type="cluster", cov_kwds={"groups": groups})


def _check(d: Floats, query_codes: Ints, weight: Floats | None) -> None:
    """Refuse pairs that allow no regression."""
    at = np.unique(query_codes, return_inverse=True)[1]
    counts = np.bincount(at, weight).astype(np.float64)
    effective = effective_clusters(np.asarray(counts.sum()), np.asarray(counts @ counts))
    if not enough_clusters(effective):
        raise MpcError(
            f"A clustered regression must have pairs from at least {FEWEST_CLUSTERS} effective "
            f"queries; got {float(effective):.3g}. Choose a larger epsilon or another group."
        )
    if np.ptp(d) == 0:
        raise MpcError(
            f"A regression must have outcome differences that vary; got {len(d):,} pairs with the "
            "same difference. Choose a larger epsilon or another group."
        )
