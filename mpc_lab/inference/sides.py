"""Estimates from listed pairs on both sides of a tie: lines and curves in the distance.

A pair is on a side with a weight; with logged positions it is in a cell of places too, and the two
sides are compared inside cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mpc_lab.inference.clustered import PairCodes, dot, estimate_listed, totals
from mpc_lab.inference.estimates import NEVER_TURNED, Estimates, estimate, join_parts
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
        What it counts below and above; 0 where it is not on that side.
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
        """Return weights (side, pair) with which both sides have the same cells.

        A side of a cell weighs ω, and the pairs in it share that as they did before.
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
    """Return pairs on the side, and in the cell, of the places that were logged."""
    part = parts_of(place, other)
    weight = np.array([part < N_CELLS, part >= N_CELLS]).astype(float)
    return SidedPairs(distance, d, weight, part % N_CELLS, N_CELLS, codes)


@dataclass(frozen=True)
class TwoLines:
    """The two sides' intercepts, joined as their mean and as half their difference."""

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
        Of the least squares.
    degree : int
    cluster, level
        As of an audit.
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
        why = why or why_ties(distinct(np.sort(near.distance[side > 0])), mass)
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
        As of `estimate_listed`.

    Returns
    -------
    Estimates
        Of 0-dimensional arrays. Its degrees of freedom are those of an estimate made of parts.
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
