"""What would a group without any meaning show? Membership is dealt out anew inside each query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import BoolArray, FloatArray, IntArray
from mpc_lab.inference.estimates import Estimates
from mpc_lab.inference.listed import PairCodes, estimate_listed, pair_codes
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.shuffling import close_rows, shuffle_within


@dataclass(frozen=True)
class Placebo:
    """Estimates of groups that were dealt out at random; NaN where not estimable.

    Attributes
    ----------
    estimate, std_error, p_value : array (permutation,)
    observed : float
        The same number for the group itself: its pairs in both orders.
    observed_p_value : float
        Share of permutations at least as far from 0 as `observed`, itself counted among them.
    rejected : float
        Share of estimable permutations with a p-value of at most 1 − level.
    n_estimable : int
    """

    estimate: FloatArray
    std_error: FloatArray
    p_value: FloatArray
    observed: float
    observed_p_value: float
    rejected: float
    n_estimable: int


def placebo(
    log: Log,
    member: BoolArray,
    query: IntArray,
    *,
    epsilon: float,
    item: IntArray | None = None,
    cluster: str = "query",
    level: float = 0.95,
    permutations: int = 200,
    seed: int = 0,
) -> Placebo:
    r"""Estimate the gap of groups that are permuted within query.

    The pairs are those with :math:`|s_i - s_j| \le \varepsilon`, in both orders together. In one
    order alone a group without meaning does not centre on 0: the item scored lower should do a
    little worse. In both orders each pair of rows has either sign with the same probability, so
    that the sum of d is 0 on average, exactly.

    Parameters
    ----------
    log : Log
        Sorted rows.
    member : array of bool (row of the log,)
    query : array of int64 (row of the log,)
        Query, or unit, of each row; membership is shuffled inside queries in either case.
    epsilon : float
        The largest gap.
    item : array of int64 (row of the log,), optional
        Items, for ``cluster="item"`` and ``"union"``.
    cluster : {"naive", "query", "item", "union"}
    level : float
        Its complement is the nominal rate of rejection.
    permutations : int
        How many groups to deal out.
    seed : int

    Returns
    -------
    Placebo

    References
    ----------
    Phipson & Smyth (2010), Permutation p-values should never be zero.
    """
    if permutations < 1:
        raise MpcError(f"permutations must be at least 1, got {permutations}; try 200.")
    lower, upper = close_rows(log, epsilon)
    items = (None, None) if item is None else (item[lower], item[upper])
    codes = pair_codes(query[lower], *items)
    d = log.outcome[lower] - log.outcome[upper]

    def dealt(member: BoolArray) -> Estimates:
        below = member[lower]
        return _both_orders(d, below, below != member[upper], codes, cluster, level)

    observed = dealt(member)
    rng = np.random.default_rng(seed)
    found = [dealt(shuffle_within(log.starts, member, rng)) for _ in range(permutations)]
    estimate, std_error, p_value = (
        np.array([float(getattr(one, name)) for one in found])
        for name in ("estimate", "std_error", "p_value")
    )
    known = np.isfinite(p_value)
    return Placebo(
        estimate,
        std_error,
        p_value,
        float(observed.estimate),
        _share_beyond(float(observed.estimate), estimate[known]),
        float((p_value[known] <= 1 - level).mean()) if known.any() else float("nan"),
        int(known.sum()),
    )


def _both_orders(
    d: FloatArray,
    below: BoolArray,
    cross: BoolArray,
    codes: PairCodes,
    cluster: str,
    level: float,
) -> Estimates:
    """Estimate from the pairs with one member, which is on the side of the group."""
    signed = np.where(below[cross], d[cross], -d[cross])
    center = float(signed.mean()) if len(signed) else 0.0
    pairs = codes.take(cross).exchanged(~below[cross])
    return estimate_listed(signed - center, center, pairs, cluster=cluster, level=level)


def _share_beyond(observed: float, drawn: FloatArray) -> float:
    if not np.isfinite(observed) or len(drawn) == 0:
        return float("nan")
    return float((1 + (np.abs(drawn) >= abs(observed)).sum()) / (1 + len(drawn)))
