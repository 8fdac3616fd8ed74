"""Whether the two sides of pairs are alike, and what a meaningless group would show.

For the second, membership is reassigned at random, item by item.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpc_lab.errors import MpcError, check_count
from mpc_lab.inference.clustered import PairCodes, estimate_listed
from mpc_lab.inference.estimates import significance, two_sided_p
from mpc_lab.inference.listed import ListedSums, estimate_each, sum_listed
from mpc_lab.pairing.both_orders import SharedPairs, cross_pairs, share_pairs
from mpc_lab.pairing.kernels import FEW_ROWS
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.pairs import close_rows, shuffle_within
from mpc_lab.pairing.threads import in_order
from mpc_lab.pairing.weighting import ListedWeights
from mpc_lab.vocabulary import ITEM, PRODUCER, VARIANCES, Flags, Floats, Ints


@dataclass(frozen=True)
class StandardisedDifference:
    """One covariate, group against others, in standard deviations.

    Attributes
    ----------
    before : float
        Over all rows, without any pairing.
    within : float
        Inside the pairs.
    std_error, ci_low, ci_high, p_value : float
        The inference of `within`, clustered as the audit is; NaN where not estimable.
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
) -> StandardisedDifference:
    r"""Compare a covariate of the two sides of the pairs.

    .. math::
        \frac{1}{P} \sum_{(i, j)} \frac{x_i - x_j}{s}, \qquad
        s^2 = \frac{s_g^2 + s_{\bar g}^2}{2},

    with s² the variances over all rows in the group and over all rows not in it. The scale
    therefore does not depend on the pairing, and the difference before it can be put beside.

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
    StandardisedDifference

    References
    ----------
    Austin (2009), Balance diagnostics for comparing the distribution of baseline covariates
    between treatment groups in propensity-score matched samples.
    """
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise MpcError(
            f"A covariate must be finite in every row; got {int((~np.isfinite(values)).sum()):,} "
            f"of {len(values):,} values that are not. Fill them."
        )
    inside, outside = values[member], values[~member]
    both = len(inside) > 0 and len(outside) > 0
    scale = float(np.sqrt((inside.var() + outside.var()) / 2)) if both else float("nan")
    scale = scale if scale > 0 else float("nan")
    before = float(inside.mean() - outside.mean()) / scale if both else float("nan")
    x = (values[row_i] - values[row_j]) / scale
    center = codes.mean(x)
    # A constant covariate gives NaN, which the inference below passes on.
    found = estimate_listed(x - center, center, codes, cluster=cluster, level=level)
    return StandardisedDifference(
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


STRATA = 5
BY_ITEM, BY_ROW = "item", "row"


@dataclass(frozen=True)
class Placebo:
    """Estimates of groups assigned at random; NaN where not estimable.

    Attributes
    ----------
    estimate, p_value : array (permutation,)
        The p-value tests the distance from `expected`, by the variance that the audit itself uses.
    observed : float
        The same estimate for the group itself: its pairs in both orders.
    observed_p_value : float
        Share of permutations whose absolute t is at least that of the group, itself among them.
    expected : float
        The value around which placebos centre: 0, except for the difference between items that are
        shown often and items that are shown seldom.
    rejected : float
        Share of p-values of at most 1 − level, among those that could be estimated.
    rejected_low, rejected_high : float
        Its 95 % interval over permutations (Wilson's), which their number alone makes narrow.
    n_estimable : int
        Permutations with a `p_value`.
    by : {"item", "row"}
        What was reassigned: items, or rows inside their queries.
    """

    estimate: Floats
    p_value: Floats
    observed: float
    observed_p_value: float
    expected: float
    rejected: float
    rejected_low: float
    rejected_high: float
    n_estimable: int
    by: str


def placebo(
    log: Log,
    member: Flags,
    query: Ints,
    *,
    epsilon: float,
    item: Ints | None = None,
    owner: Ints | None = None,
    cluster: str = "query",
    level: float = 0.95,
    permutations: int = 200,
    seed: int = 0,
    done: Callable[[], None] | None = None,
) -> Placebo:
    r"""Estimate the gap of groups whose members are drawn at random.

    Labels are permuted among items that are shown about as often (`item_strata`), and an item keeps
    its label in every query: whatever an item's outcomes have in common stays on one side, as it
    does in the group itself. Where items are not known, or membership varies for some item, labels
    are permuted among the rows of each query instead; such placebos have no shocks of items.

    The pairs are those with :math:`|s_i - s_j| \le \varepsilon`, in both orders together. In one
    order alone a group without meaning does not centre on 0, because outcomes rise with scores.
    In both orders it centres on

    .. math:: \mu = \frac{\sum_p d_p (\pi_{A(p)} - \pi_{B(p)})}{E[P]},

    :math:`\pi_A` the share of members in the stratum of the one item of pair p and :math:`\pi_B` in
    that of the other: on 0 by row, and on 0 by item unless items that are shown often have other
    outcomes at the same score than those shown seldom, and the group has more of one kind. The
    statistic is :math:`|t| = |\theta - \mu|/SE` with the audit's own variance, and the p-value of
    the group is its rank,

    .. math:: p = \frac{1 + \#\{|t^*| \ge |t|\}}{1 + \text{permutations}}.

    That test is exact where labels are exchangeable among the items of a stratum: lists, scores and
    outcomes would have been the same under any labels. Where a group without a gap differs from
    other items in its scores or in how its outcomes vary, it is approximate, and the division by
    the standard error is what makes it so. How often placebos are rejected says whether the audit's
    own standard errors are large enough for such groups. It may be less than 1 − level: labels are
    drawn for the queries as they are, and the standard error allows for other queries too.

    Parameters
    ----------
    log : Log
        Sorted rows.
    member : array of bool (row of the log,)
    query : array of int64 (row of the log,)
        Query, or unit, of each row; rows are shuffled inside queries in either case.
    epsilon : float
        The largest distance.
    item, owner : arrays of int64 (row of the log,), optional
        Items, which keep their label in every query; and their producers, where these are the
        clusters of the audit.
    cluster : {"naive", "query", "item", "union"}
        The variance that the audit itself uses.
    level : float
        Its complement is the nominal rate of rejection.
    permutations : int
        How many groups to draw.
    seed : int
    done : callable, optional
        Called after each of them.

    Returns
    -------
    Placebo

    References
    ----------
    Fisher (1935), The design of experiments, section 21. Chung & Romano (2013), Exact and
    asymptotically robust permutation tests. Phipson & Smyth (2010), Permutation p-values should
    never be zero.
    """
    permutations = check_count("permutations", permutations, remedy="Try 200.")
    lower, upper = close_rows(log, epsilon)
    clusters = item if owner is None else owner
    one, other = (None if clusters is None else clusters[rows] for rows in (lower, upper))
    if not VARIANCES[cluster].needs_items:
        one = other = None
    d, weights = log.contrast(lower, upper), log.weights_of(lower)
    pairs = _ListedPairs(d, share_pairs(query[lower], one, other), weights)
    dealer = _dealer(log, member, item)
    keys = dealer.keys(lower), dealer.keys(upper)

    def draw(k: int) -> ListedSums:
        rng = np.random.Generator(np.random.PCG64(seed).advance(k * dealer.drawn))
        return pairs.under(dealer.deal(rng), *keys)

    found = [pairs.under(member, lower, upper)]
    few = len(member) < FEW_ROWS
    for sums in in_order(draw, range(permutations), here=few):
        found.append(sums)
        if done is not None:
            done()
    cells = estimate_each(found, cluster, owner=ITEM if owner is None else PRODUCER)
    every, spreads = np.array([one.mean for one in found]), cells.std_error
    observed, std_error, estimate, spread = every[0], spreads[0], every[1:], spreads[1:]
    expected = dealer.expected(d, lower, upper, None if weights is None else weights.weight)
    if weights is not None and weights.by_query and dealer.by == BY_ITEM:
        # What a pair counts depends on the labels, so use the mean of the draws.
        known = estimate[np.isfinite(estimate)]
        expected = float(known.mean()) if len(known) else 0.0
    statistic = abs(observed - expected) / std_error
    t = np.abs(estimate - expected) / spread
    p_value = two_sided_p(t, cells.dof[1:])
    rejected, n_estimable = _count_up_to(p_value, significance(level))
    low, high = _wilson(rejected, n_estimable)
    return Placebo(
        estimate=estimate,
        p_value=p_value,
        observed=float(observed),
        observed_p_value=_share_beyond(statistic, t[np.isfinite(t)]),
        expected=expected,
        rejected=rejected / n_estimable if n_estimable else float("nan"),
        rejected_low=low,
        rejected_high=high,
        n_estimable=n_estimable,
        by=dealer.by,
    )


class _ByRow:
    """Permute labels among the rows of each query."""

    by = BY_ROW

    def __init__(self, log: Log, member: Flags) -> None:
        self.starts, self.member, self.drawn = log.starts, member, len(member)

    def keys(self, rows: Ints) -> Ints:
        """Return where the labels of rows are among those that are permuted."""
        return rows

    def deal(self, rng: np.random.Generator) -> Flags:
        return shuffle_within(self.starts, self.member, rng)

    def expected(self, d: Floats, lower: Ints, upper: Ints, weight: Floats | None) -> float:
        # All rows of a query are equally likely to be members.
        return 0.0


class _ByItem:
    """Permute labels among items that are shown about as often."""

    by = BY_ITEM

    def __init__(self, item: Ints, label: Flags) -> None:
        shown = np.bincount(item)
        self.item, self.there = item, np.flatnonzero(shown)
        self.label = label[self.there]
        self.stratum = item_strata(shown[self.there], self.label)
        self.place, self.drawn = np.cumsum(shown > 0) - 1, len(self.there)

    def keys(self, rows: Ints) -> Ints:
        """Return where the labels of rows are among those that are permuted."""
        return np.asarray(self.place[self.item[rows]])

    def deal(self, rng: np.random.Generator) -> Flags:
        return shuffle_strata(self.stratum, self.label, rng)

    def expected(self, d: Floats, lower: Ints, upper: Ints, weight: Floats | None) -> float:
        size = np.bincount(self.stratum)
        share = np.bincount(self.stratum, self.label) / size
        of_row = self.stratum[self.place[self.item]]
        one, other = of_row[lower], of_row[upper]
        apart = share[one] * (1 - share[other]) + share[other] * (1 - share[one])
        # If one of two items of a stratum is a member, the other is less likely to be one.
        drawn = np.where(one == other, size[one] / np.maximum(size[one] - 1, 1), 1.0)
        if weight is not None:
            d, drawn = weight * d, weight * drawn
        pairs = float((apart * drawn).sum())
        return float(d @ (share[one] - share[other])) / pairs if pairs else 0.0


def _dealer(log: Log, member: Flags, item: Ints | None) -> _ByRow | _ByItem:
    label = None if item is None else item_labels(item, member)
    return _ByRow(log, member) if item is None or label is None else _ByItem(item, label)


def item_labels(item: Ints, member: Flags) -> Flags | None:
    """Return whether each item code is a member; None where that varies from row to row."""
    shown, inside = np.bincount(item), np.bincount(item, member)
    label = np.asarray(inside > 0)
    return label if (inside[label] == shown[label]).all() else None


def item_strata(shown: Ints, label: Flags, strata: int = STRATA) -> Ints:
    """Return the stratum of each item: quintiles of how often it is shown, from 0.

    Items that are shown equally often are in one stratum. A stratum whose items all have the same
    label joins the next, the last the one before.

    Parameters
    ----------
    shown : array of int64 (item,)
        Rows of each item.
    label : array of bool (item,)
    strata : int

    Examples
    --------
    >>> import numpy as np
    >>> item_strata(np.array([1, 1, 2, 3, 9]), np.array([True, False, False, True, False]))
    array([0, 0, 1, 1, 1])
    """
    n = len(shown)
    last = np.array([-(-k * n // strata) - 1 for k in range(1, strata)], dtype=np.int64)
    ends = np.sort(shown)[np.maximum(last, 0)] if n else shown
    quintile = np.unique(np.searchsorted(ends, shown, side="left"), return_inverse=True)[1]
    members, size = np.bincount(quintile, label), np.bincount(quintile)
    joined, number, open_members, open_size = [], 0, 0.0, 0
    for inside, count in zip(members, size, strict=True):
        joined.append(number)
        open_members, open_size = open_members + inside, open_size + count
        if 0 < open_members < open_size:
            number, open_members, open_size = number + 1, 0.0, 0
    # A stratum that is still open at the end has only one label.
    place = np.minimum(joined, max(number - 1, 0)) if joined else np.zeros(0)
    return np.asarray(place, dtype=np.int64)[quintile]


def shuffle_strata(stratum: Ints, label: Flags, rng: np.random.Generator) -> Flags:
    """Return labels permuted inside each stratum."""
    drawn, shuffled = rng.random(len(stratum)), np.empty_like(label)
    for k in range(int(stratum.max(initial=-1)) + 1):
        inside = np.flatnonzero(stratum == k)
        shuffled[inside[_order(drawn[inside])]] = label[inside]
    return shuffled


def _order(drawn: Floats) -> Ints:
    """Return the stable order that sorts numbers, of which hardly any are equal."""
    order = np.argsort(drawn)
    ascending = drawn[order]
    return np.argsort(drawn, kind="stable") if (np.diff(ascending) == 0).any() else order


@dataclass(frozen=True)
class _ListedPairs:
    """Close pairs whatever their labels."""

    d: Floats
    shared: SharedPairs
    weights: ListedWeights | None

    def under(self, label: Flags, one: Ints, other: Ints) -> ListedSums:
        """Add up the pairs with one member, which is on the side of the group."""
        chosen, signed, inside = cross_pairs(label, one, other, self.d)
        weight = None if self.weights is None else self.weights.take(chosen).of_pairs
        return sum_listed(self.shared, chosen, inside, signed, weight)


def _count_up_to(p_value: Floats, a: float) -> tuple[int, int]:
    """Return how many p-values are at most `a`, and how many there are."""
    known = p_value[np.isfinite(p_value)]
    return int((known <= a).sum()), len(known)


def _wilson(count: int, n: int) -> tuple[float, float]:
    from statsmodels.stats.proportion import proportion_confint

    if not n:
        return float("nan"), float("nan")
    low, high = proportion_confint(count, n, method="wilson")
    return float(low), float(high)


def _share_beyond(observed: float, drawn: Floats) -> float:
    if not np.isfinite(observed) or len(drawn) == 0:
        return float("nan")
    return float((1 + (drawn >= abs(observed)).sum()) / (1 + len(drawn)))
