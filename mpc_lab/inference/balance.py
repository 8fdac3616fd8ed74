"""Are the two sides of the pairs alike in what is known of them, and how often do items recur?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.clustered import PairCodes, estimate_listed
from mpc_lab.vocabulary import Flags, Floats, Ints


@dataclass(frozen=True)
class Difference:
    """One covariate, group against others, in standard deviations.

    Attributes
    ----------
    before : float
        Over all rows, without any pairing.
    within : float
        Inside the pairs.
    std_error, ci_low, ci_high, p_value : float
        Of `within`, clustered as the audit is; NaN where not estimable.
    scale : float
        The standard deviation that both are divided by; NaN where the covariate is constant.
    """

    before: float
    within: float
    std_error: float
    ci_low: float
    ci_high: float
    p_value: float
    scale: float


@dataclass(frozen=True)
class Reuse:
    """How often items recur in the pairs; NaN and 0 where items are not known.

    Attributes
    ----------
    items_inside, items_outside : int
        Items on the side of the group, and on the other.
    most_inside, most_outside : int
        Pairs of the item that has the most.
    mean_inside, mean_outside : float
        Pairs of an item on average.
    effective_queries, effective_inside, effective_outside : float
        (Σc)²/Σc² over pair counts c of queries and of the items of each side.
    """

    items_inside: int
    items_outside: int
    most_inside: int
    most_outside: int
    mean_inside: float
    mean_outside: float
    effective_queries: float
    effective_inside: float
    effective_outside: float


def standardised_difference(
    values: Floats,
    member: Flags,
    row_i: Ints,
    row_j: Ints,
    codes: PairCodes,
    *,
    cluster: str = "query",
    level: float = 0.95,
) -> Difference:
    r"""Compare a covariate of the two sides of the pairs.

    .. math::
        \frac{1}{P} \sum_{(i, j)} \frac{x_i - x_j}{s}, \qquad
        s^2 = \frac{s_g^2 + s_{\bar g}^2}{2},

    with s² the variances over all rows in the group and over all rows not in it, so that the
    scale does not depend on the pairing and the number before it can be put beside.

    Parameters
    ----------
    values : array (row,)
        The covariate.
    member : array of bool (row,)
        Which rows are in the group.
    row_i, row_j : array of int64 (pair,)
        The row of the group and the other row of each pair.
    codes : PairCodes
        What the pairs share.
    cluster : {"naive", "query", "item", "union"}
    level : float
        Confidence level.

    Returns
    -------
    Difference

    References
    ----------
    Austin (2009), Balance diagnostics for comparing the distribution of baseline covariates
    between treatment groups in propensity-score matched samples.
    """
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise MpcError(
            "A covariate must be finite in every row, but "
            f"{int((~np.isfinite(values)).sum()):,} of {len(values):,} values are not; fill them."
        )
    inside, outside = values[member], values[~member]
    both = len(inside) > 0 and len(outside) > 0
    scale = float(np.sqrt((inside.var() + outside.var()) / 2)) if both else float("nan")
    scale = scale if scale > 0 else float("nan")
    before = float(inside.mean() - outside.mean()) / scale if both else float("nan")
    x = (values[row_i] - values[row_j]) / scale
    center = codes.mean(x)
    # A constant covariate differs by NaN, which the inference below carries along.
    found = estimate_listed(x - center, center, codes, cluster=cluster, level=level)
    return Difference(
        before=before,
        within=center,
        std_error=float(found.std_error),
        ci_low=float(found.ci_low),
        ci_high=float(found.ci_high),
        p_value=float(found.p_value),
        scale=scale,
    )


def item_reuse(codes: PairCodes) -> Reuse:
    """Count how often items recur on the two sides of the pairs."""
    sides = []
    for item in () if codes.items is None else (codes.items.inside, codes.items.outside):
        count = np.bincount(item)
        count = count[count > 0]
        mean = float(count.mean()) if len(count) else float("nan")
        sides.append((len(count), int(count.max(initial=0)), mean))
    inside, outside = sides or [(0, 0, float("nan"))] * 2
    return Reuse(
        items_inside=inside[0],
        items_outside=outside[0],
        most_inside=inside[1],
        most_outside=outside[1],
        mean_inside=inside[2],
        mean_outside=outside[2],
        effective_queries=codes.effective_queries,
        effective_inside=codes.effective_items[0],
        effective_outside=codes.effective_items[1],
    )
