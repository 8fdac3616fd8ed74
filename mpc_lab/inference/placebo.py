"""What would a meaningless group show? Membership is reassigned at random inside each query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpc_lab.errors import check_count
from mpc_lab.inference.clustered import PairCodes, estimate_listed, pair_codes
from mpc_lab.inference.estimates import significance
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.pairs import close_rows, shuffle_within
from mpc_lab.vocabulary import Flags, Floats, Ints

# One more than the flips is a multiple of 1/a for the usual levels, so that the rate can be a.
FLIPS = 999
_MOST_SUMS = 1_000
_ROUNDING = 1e-12


def sign_flip_p(sums: Floats, a: float, rng: np.random.Generator) -> float:
    """Test that independent sums, each symmetric about 0, add up to 0.

    Exact whatever their spread and their tails. Σ±T is compared, not a t statistic: given |T| the
    two put all signs in the same order, because ΣT² does not change with them. Those as far from 0
    as ΣT itself count in part, by a uniform draw: sums of a few whole numbers have many such, and
    a p-value that counted them all would be at most `a` less often than it should.

    Parameters
    ----------
    sums : array
        One for each independent unit. More than 1,000 are added to 1,000 first, by their order,
        which costs hardly any power and leaves them independent and symmetric.
    a : float
        The level of the test.
    rng : Generator
        Draws the signs.

    Returns
    -------
    float
        The p-value; NaN where so few sums differ from 0 that no signs could reject at `a`.

    Examples
    --------
    >>> import numpy as np
    >>> sign_flip_p(np.ones(20), 0.05, np.random.default_rng(0)) <= 0.001
    True
    """
    sums = np.asarray(sums, dtype=np.float64)
    sums = sums[sums != 0]
    if len(sums) > _MOST_SUMS:
        sums = np.asarray(np.bincount(np.arange(len(sums)) % _MOST_SUMS, sums), dtype=np.float64)
    # Of 2ⁿ signs two are as far from 0 as any.
    if 2.0 ** (1 - len(sums)) > a:
        return float("nan")
    total = float(sums.sum())
    bits = np.unpackbits(
        rng.integers(0, 256, (FLIPS, -(-len(sums) // 8)), dtype=np.uint8), axis=1, count=len(sums)
    )
    flipped = np.abs(2.0 * (bits @ sums) - total)
    # The same signs may be added up in another order, and must count as equal.
    excess = flipped - abs(total)
    rounding = _ROUNDING * float(np.abs(sums).sum())
    beyond, equal = (excess > rounding).sum(), 1 + (np.abs(excess) <= rounding).sum()
    return float((beyond + rng.uniform() * equal) / (1 + FLIPS))


@dataclass(frozen=True)
class Placebo:
    """Estimates of groups assigned at random; NaN where not estimable.

    Attributes
    ----------
    estimate, p_value : array (permutation,)
        The p-value is that of random signs, one a query (or unit).
    audited_p_value, query_p_value : array (permutation,)
        By the variance that the audit itself uses, and by the variance over queries.
    observed : float
        The same number for the group itself: its pairs in both orders.
    observed_p_value : float
        Share of permutations at least as far from 0 as `observed`, itself counted among them.
    rejected, audited_rejected, query_rejected : float
        Shares of p-values of at most 1 − level, among those that could be estimated.
    n_estimable : int
        Permutations with a `p_value`.
    """

    estimate: Floats
    p_value: Floats
    audited_p_value: Floats
    query_p_value: Floats
    observed: float
    observed_p_value: float
    rejected: float
    audited_rejected: float
    query_rejected: float
    n_estimable: int


def placebo(
    log: Log,
    member: Flags,
    query: Ints,
    *,
    epsilon: float,
    item: Ints | None = None,
    cluster: str = "query",
    level: float = 0.95,
    permutations: int = 200,
    seed: int = 0,
    done: Callable[[], None] | None = None,
) -> Placebo:
    r"""Estimate the gap of groups that are permuted within query.

    The pairs are those with :math:`|s_i - s_j| \le \varepsilon`, in both orders together. In one
    order alone a group without meaning does not centre on 0: the item scored lower should do a
    little worse. In both orders the sum of d over a query's pairs is

    .. math::
        T_q = \sum_{i \in g} a_i, \qquad
        a_i = \sum_{j :\, |s_i - s_j| \le \varepsilon} (y_i - y_j),
        \qquad \sum_{i \in q} a_i = 0,

    a total over rows that were drawn without replacement from numbers that sum to 0. So its mean
    is 0, exactly, and queries are permuted independently of each other, whatever items they
    share. That is all a test of a placebo needs to know, and no variance has to be estimated:
    each is compared with the sums :math:`\sum_q \pm T_q` under random signs,

    .. math:: p = \frac{1 + \#\{|\sum_q \pm T_q| \ge |\sum_q T_q|\}}{1 + \text{flips}},

    with ties, which sums of clicks have many of, broken by a uniform draw.

    Given :math:`|T_q|` all signs are equally likely if :math:`T_q` is symmetric about 0, and then
    the test is exact, however heavy the tails and however few queries hold most pairs. It is
    symmetric where half the rows of a query are members, or where the :math:`a_i` are. Its third
    moment is in proportion to :math:`(n - 2k) \sum_i a_i^3` for k members among n rows; such
    skewness shifts the two tails in opposite directions, so that it touches the two-sided rate
    only in the second order. The pairs P, by which the estimate divides T, have no part in this:
    T/P is 0 where T is.

    The other exact reference, the permutations themselves, is what the group itself is held
    against (`observed_p_value`). It cannot serve for the placebos: a permutation ranked among
    permutations is beyond 95 % of them in 5 % of cases whatever the sums are. Signs know nothing
    of how groups were assigned; they reject too often where sums do not centre on 0 or queries
    are not independent.

    How often the audit's own variance rejects stands beside it. The variance over queries, with
    its t, is an approximation that rejects somewhat too often where a few queries hold most pairs;
    variances over items reject less often, as they allow for shared items, which placebos do not
    inherit.

    Parameters
    ----------
    log : Log
        Sorted rows.
    member : array of bool (row of the log,)
    query : array of int64 (row of the log,)
        Query, or unit, of each row; membership is shuffled inside queries in either case.
    epsilon : float
        The largest distance.
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
    Fisher (1935), The design of experiments, section 21. Canay, Romano & Shaikh (2017),
    Randomization tests under an approximate symmetry assumption. Phipson & Smyth (2010),
    Permutation p-values should never be zero.
    """
    permutations = check_count("permutations", permutations, remedy="Try 200.")
    a = significance(level)
    lower, upper = close_rows(log, epsilon)
    items = (None, None) if item is None else (item[lower], item[upper])
    codes = pair_codes(query[lower], *items)
    d = log.outcome[lower] - log.outcome[upper]
    # Signs must not move in step with the draws, so they have a stream of their own.
    drawing, signs = np.random.default_rng(seed).spawn(2)

    def estimate_for(member: Flags) -> tuple[float, float, float, float]:
        below = member[lower]
        cross = below != member[upper]
        return _both_orders(d, below, cross, codes, cluster, level, signs)

    observed = estimate_for(member)[0]
    found = []
    for _ in range(permutations):
        found.append(estimate_for(shuffle_within(log.starts, member, drawing)))
        if done is not None:
            done()
    estimate, p_value, audited, by_query = np.array(found).T
    return Placebo(
        estimate=estimate,
        p_value=p_value,
        audited_p_value=audited,
        query_p_value=by_query,
        observed=observed,
        observed_p_value=_share_beyond(observed, estimate[np.isfinite(estimate)]),
        rejected=_share_up_to(p_value, a),
        audited_rejected=_share_up_to(audited, a),
        query_rejected=_share_up_to(by_query, a),
        n_estimable=int(np.isfinite(p_value).sum()),
    )


def _both_orders(
    d: Floats,
    below: Flags,
    cross: Flags,
    codes: PairCodes,
    cluster: str,
    level: float,
    signs: np.random.Generator,
) -> tuple[float, float, float, float]:
    """Estimate from the pairs with one member, which is on the side of the group.

    Returns the estimate and its p-values: by random signs, as audited, and over queries.
    """
    if not cross.any():
        return (float("nan"),) * 4
    signed = np.where(below[cross], d[cross], -d[cross])
    center = float(signed.mean())
    pairs = codes.take(cross).exchanged(~below[cross])
    p_value = sign_flip_p(_sums(signed, pairs.query), significance(level), signs)
    audited = estimate_listed(signed - center, center, pairs, cluster=cluster, level=level)
    if cluster == "query":
        return center, p_value, float(audited.p_value), float(audited.p_value)
    queries = PairCodes(pairs.query)
    by_query = estimate_listed(signed - center, center, queries, cluster="query", level=level)
    return center, p_value, float(audited.p_value), float(by_query.p_value)


def _sums(d: Floats, query: Ints) -> Floats:
    """Return the sum of each query that has a pair."""
    return np.asarray(np.bincount(query, d)[np.bincount(query) > 0])


def _share_up_to(p_value: Floats, a: float) -> float:
    known = p_value[np.isfinite(p_value)]
    return float((known <= a).mean()) if len(known) else float("nan")


def _share_beyond(observed: float, drawn: Floats) -> float:
    if not np.isfinite(observed) or len(drawn) == 0:
        return float("nan")
    return float((1 + (np.abs(drawn) >= abs(observed)).sum()) / (1 + len(drawn)))
