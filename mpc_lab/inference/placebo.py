"""What would a group without any meaning show? Membership is dealt out anew inside each query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import BoolArray, FloatArray, IntArray, significance
from mpc_lab.inference.listed import PairCodes, estimate_listed, pair_codes
from mpc_lab.inference.student import two_sided_p
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.shuffling import close_rows, shuffle_within


@dataclass(frozen=True)
class Placebo:
    """Estimates of groups that were dealt out at random; NaN where not estimable.

    Attributes
    ----------
    estimate, std_error, p_value : array (permutation,)
        The error is that of a jackknife over queries.
    audited_p_value : array (permutation,)
        By the variance that the audit itself uses.
    observed : float
        The same number for the group itself: its pairs in both orders.
    observed_p_value : float
        Share of permutations at least as far from 0 as `observed`, itself counted among them.
    rejected, audited_rejected : float
        Shares of p-values of at most 1 − level, among those that could be estimated.
    n_estimable : int
        Permutations with a `p_value`.
    """

    estimate: FloatArray
    std_error: FloatArray
    p_value: FloatArray
    audited_p_value: FloatArray
    observed: float
    observed_p_value: float
    rejected: float
    audited_rejected: float
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
    done: Callable[[], None] | None = None,
) -> Placebo:
    r"""Estimate the gap of groups that are permuted within query.

    The pairs are those with :math:`|s_i - s_j| \le \varepsilon`, in both orders together. In one
    order alone a group without meaning does not centre on 0: the item scored lower should do a
    little worse. In both orders each pair of rows has either sign with the same probability, so
    that the sum of d is 0 on average, exactly.

    Placebos of different queries are dealt out independently, whatever items they share, so that
    their own test clusters by query. It takes the error of a jackknife, which leaves out one query
    at a time, with t of G − 1 degrees of freedom, G the effective number of queries:

    .. math::
        SE^2 = \frac{Q - 1}{Q} \sum_q
               \Big( \frac{D_q - \hat\theta c_q}{P - c_q} \Big)^2,

    for c pairs and a sum D of differences in each of Q queries. The plain sum over queries is too
    small where a few of them hold most pairs. How often the audit's own variance rejects stands
    beside it; with variances over items that is less often, as they allow for shared items.

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
        The variance that the audit itself uses.
    level : float
        Its complement is the nominal rate of rejection.
    permutations : int
        How many groups to deal out.
    seed : int
    done : callable, optional
        Called after each of them.

    Returns
    -------
    Placebo

    References
    ----------
    Phipson & Smyth (2010), Permutation p-values should never be zero. Bell & McCaffrey (2002),
    Bias reduction in standard errors for linear regression with multi-stage samples.
    """
    if permutations < 1:
        raise MpcError(f"permutations must be at least 1, got {permutations}; try 200.")
    lower, upper = close_rows(log, epsilon)
    items = (None, None) if item is None else (item[lower], item[upper])
    codes = pair_codes(query[lower], *items)
    d = log.outcome[lower] - log.outcome[upper]

    def dealt(member: BoolArray) -> tuple[float, float, float, float]:
        below = member[lower]
        return _both_orders(d, below, below != member[upper], codes, cluster, level)

    observed = dealt(member)[0]
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(permutations):
        found.append(dealt(shuffle_within(log.starts, member, rng)))
        if done is not None:
            done()
    estimate, std_error, p_value, audited = np.array(found).T
    return Placebo(
        estimate=estimate,
        std_error=std_error,
        p_value=p_value,
        audited_p_value=audited,
        observed=observed,
        observed_p_value=_share_beyond(observed, estimate[np.isfinite(estimate)]),
        rejected=_share_up_to(p_value, significance(level)),
        audited_rejected=_share_up_to(audited, significance(level)),
        n_estimable=int(np.isfinite(p_value).sum()),
    )


def _both_orders(
    d: FloatArray,
    below: BoolArray,
    cross: BoolArray,
    codes: PairCodes,
    cluster: str,
    level: float,
) -> tuple[float, float, float, float]:
    """Estimate from the pairs with one member, which is on the side of the group.

    Returns the estimate, its error by jackknife, its p-value, and its p-value as audited.
    """
    if not cross.any():
        return (float("nan"),) * 4
    signed = np.where(below[cross], d[cross], -d[cross])
    center = float(signed.mean())
    pairs = codes.take(cross).exchanged(~below[cross])
    audited = estimate_listed(signed - center, center, pairs, cluster=cluster, level=level)
    std_error = _jackknife(signed - center, pairs.query)
    dof = np.array(pairs.effective_queries - 1)
    p_value = two_sided_p(np.array(center / std_error), dof)
    return center, std_error, float(p_value), float(audited.p_value)


def _jackknife(u: FloatArray, query: IntArray) -> float:
    """Return the error of a mean, from the means without each query in turn; NaN if it is 0."""
    count = np.bincount(query)
    some = count > 0
    total, count = np.bincount(query, u)[some], count[some]
    rest = len(u) - count
    if len(count) < 2:
        return float("nan")
    variance = (len(count) - 1) / len(count) * float(((total / rest) ** 2).sum())
    return float(np.sqrt(variance)) if variance > 0 else float("nan")


def _share_up_to(p_value: FloatArray, a: float) -> float:
    known = p_value[np.isfinite(p_value)]
    return float((known <= a).mean()) if len(known) else float("nan")


def _share_beyond(observed: float, drawn: FloatArray) -> float:
    if not np.isfinite(observed) or len(drawn) == 0:
        return float("nan")
    return float((1 + (np.abs(drawn) >= abs(observed)).sum()) / (1 + len(drawn)))
