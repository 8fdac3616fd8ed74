"""Gaps net of other groups: a regression over all close pairs, in two passes over a log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import stats

from mpc_lab.errors import MpcError
from mpc_lab.inference.estimates import Estimates, effective_clusters, estimate
from mpc_lab.pairing.close import (
    Contributions,
    Design,
    Gram,
    Targets,
    add_by,
    add_rows,
    contributions_of,
    count_within,
    dyads_of,
    gram_of,
    mean_scores,
    names_of_dyads,
)
from mpc_lab.pairing.moments import Quadratic
from mpc_lab.pairing.walk import Walk
from mpc_lab.vocabulary import ITEM, VARIANCES, Flags, Floats, Ints

PAIRS_A_COEFFICIENT = 20
BINS = 5
# The share of a column that must be left once the columns before it are held fixed.
_LEFT = 1e-9
# How far from -1 a coefficient of -1 may be.
_WHOLE = 1e-3
# Numbers that the sums over two items may fill at a time.
_ROOM = 30_000_000


@dataclass(frozen=True)
class Partial:
    """Coefficients of a regression over close pairs.

    Attributes
    ----------
    net : Estimates
        Arrays (column,): groups, slope, constant, covariates, further terms; NaN where left out.
    alone : Estimates
        Arrays (group,): each group in a regression of its own, with slope and constant.
    parts : float64 array (group, column)
        What each column adds to the gap of a group alone; the sum over columns is the gap.
    kept : bool array (column,)
        Whether a column is in the regression; others are collinear with those before them.
    varies : bool array (column,)
        Whether the rows of some pair differ in a column; the constant does.
    against : int64 array (group,)
        The left-out group whose items a net gap is relative to: every item outside the one group is
        in the other. -1 where there is no such group.
    covariance : float64 array (column, column)
        Clustered by query, with Q/(Q − 1).
    width : float
        h.
    n_pairs, n_ties, n_queries : int
    """

    net: Estimates
    alone: Estimates
    parts: Floats
    kept: Flags
    varies: Flags
    against: Ints
    covariance: Floats
    width: float
    n_pairs: int
    n_ties: int
    n_queries: int


def fit_partial(
    walk: Walk,
    design: Design,
    *,
    cluster: str = "query",
    level: float = 0.95,
    owner: str = ITEM,
    ridge: float = 0.0,
) -> Partial:
    r"""Regress differences of outcomes on differences of membership, over all close pairs.

    Over the pairs of a query at most h apart, of any groups, from the lower to the upper one of
    the list,

    .. math:: y_{upper} - y_{lower} = \sum_g \theta_g \Delta m_g + \kappa \Delta s + \pi
              + \gamma' \Delta x,

    with weights :math:`1 - |\Delta s| / h`; a tied pair counts half in each orientation. The error
    of :math:`\theta` is a sum of one contribution a pair, the row of :math:`(X'WX)^{-1}` times
    :math:`x_p w_p e_p`, and goes by the clusters of `mpc_lab.inference.estimates` with the plain
    correction; clustered by query, times (n − 1)/(n − k), as in statsmodels. Effective clusters of
    a coefficient are those of the pairs in which its regressor is not 0.

    The first pass adds up X'WX, the second what clusters contribute; a walk may have any number
    of blocks.

    Parameters
    ----------
    walk : Walk
        Walks a log whose items, where the cluster needs them, have the same code in all blocks.
    design : Design
    cluster, level, owner
        As in an audit.
    ridge : float
        Added to the diagonal of the groups in X'WX/Σw.

    Returns
    -------
    Partial
    """
    k = design.n_columns
    start = Gram(np.zeros((k + 1, k + 1)), 0.0, 0, 0)
    gram = walk.total(partial(gram_of, design), "comparing close pairs", start)
    return _finish(walk, design, gram, cluster, level, owner, ridge)


def count_close(walk: Walk, width: float) -> int:
    """Return how many pairs are at most `width` apart, without visiting them."""
    return walk.total(partial(count_within, width), "counting close pairs", 0)


def choose_width(walk: Walk, largest_epsilon: float, n_columns: int) -> float:
    """Return twice the largest threshold, and at least what gives 20 pairs a coefficient."""
    wanted = PAIRS_A_COEFFICIENT * n_columns

    def count(width: float) -> int:
        return walk.total(partial(count_within, width), "counting close pairs", 0)

    low = 2 * largest_epsilon if np.isfinite(largest_epsilon) else 0.0
    if count(low) >= wanted:
        return low
    widest = float(np.finfo(np.float64).max)
    wanted = min(wanted, count(widest))
    high = max(low, np.finfo(np.float64).tiny)
    while count(high) < wanted:
        low, high = high, min(high * 1024, widest)
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high or high - low <= 1e-9 * high:
            return high
        if count(middle) < wanted:
            low = middle
        else:
            high = middle


def _finish(
    walk: Walk, design: Design, gram: Gram, cluster: str, level: float, owner: str, ridge: float
) -> Partial:
    k, groups = design.n_columns, design.n_groups
    inner = gram.inner[:k, :k].copy()
    kept = find_kept(inner, design)
    against = find_against(inner, kept, groups)
    inner[range(groups), range(groups)] += ridge * gram.weight
    right = gram.inner[:k, k]
    fit, pick = solve(inner, right, np.flatnonzero(kept))
    picks, fits = [*pick], [fit] * k
    parts = np.zeros((groups, k))
    for g in range(groups):
        base = [c for c in (g, design.slope, design.constant) if inner[c, c] > 0]
        base = [c for c in base if c == g or kept[c]]
        if g not in base:
            picks.append(np.zeros(k))
            fits.append(np.zeros(k))
            continue
        own, of_own = solve(inner, right, np.array(base))
        picks.append(of_own[g])
        fits.append(own)
        # What a column adds to the gap alone is its coefficient times that of g in a regression
        # of the column on g, slope and constant.
        added = (of_own[g] @ inner) * fit
        added[[c for c in base if c != g]] = 0.0
        parts[g] = added
    targets = Targets(np.array(picks), np.array(fits))
    column = np.concatenate([np.arange(k), np.arange(groups)])
    known = np.concatenate([kept, targets.pick[k:].any(axis=1)])
    values = np.concatenate([fit, [targets.fit[k + g, g] for g in range(groups)]])
    # The slope was fitted to distances in widths, and is given in units of the score.
    scale = np.ones(len(column))
    with np.errstate(over="ignore"):  # infinite for a width so small
        scale[design.slope] = 1 / np.float64(design.width) if design.width > 0 else 1.0
    items = VARIANCES[cluster].needs_items
    sums, dyads = sum_contributions(walk, design, targets, items, gram.pairs)
    n_kept = np.where(np.arange(len(column)) < k, kept.sum(), 3)
    found = estimate_targets(
        values, known, column, sums, dyads, gram.pairs, n_kept, cluster, level, owner
    )
    found = _in_units(found, scale)
    factor = sums.queries / max(sums.queries - 1, 1)
    covariance = sums.by_query[:k, :k] * factor
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = covariance * scale[:k, None] * scale[:k]
    return Partial(
        net=_take(found, slice(0, k)),
        alone=_take(found, slice(k, None)),
        parts=parts,
        kept=kept,
        varies=gram.inner.diagonal()[:k] > 0,
        against=against,
        covariance=covariance,
        width=design.width,
        n_pairs=gram.pairs,
        n_ties=gram.ties,
        n_queries=sums.queries,
    )


def find_kept(inner: Floats, design: Design) -> Flags:
    """Return which columns are not collinear with earlier ones.

    The constant and the slope come first, then groups, covariates and further terms in their order.
    """
    order = [design.constant, design.slope]
    order += [c for c in range(design.n_columns) if c not in order]
    kept = np.zeros(design.n_columns, dtype=np.bool_)
    size = np.sqrt(np.where(inner.diagonal() > 0, inner.diagonal(), 1.0))
    unit = inner / np.outer(size, size)
    rows: list[Floats] = []
    chosen: list[int] = []
    for c in order:
        if inner[c, c] <= 0:
            continue
        row = np.zeros(len(chosen))
        for e, before in enumerate(chosen):
            row[e] = (unit[c, before] - rows[e][:e] @ row[:e]) / rows[e][e]
        left = 1.0 - float(row @ row)
        if left > _LEFT:
            rows.append(np.append(row, np.sqrt(left)))
            chosen.append(c)
            kept[c] = True
    return kept


def find_against(inner: Floats, kept: Flags, groups: int) -> Ints:
    """Return for each group the left-out one that falls by 1 where it rises by 1; -1 for none."""
    against = np.full(groups, -1)
    base = np.flatnonzero(kept)
    for c in np.flatnonzero(~kept[:groups] & (inner.diagonal()[:groups] > 0)):
        made_of, _ = solve(inner, inner[:, c], base)
        against[np.abs(made_of[:groups] + 1) < _WHOLE] = c
    return against


def solve(inner: Floats, right: Floats, base: Ints) -> tuple[Floats, Floats]:
    """Return coefficients, and the inverse, of some columns, with 0 for all others."""
    k = len(right)
    fit, pick = np.zeros(k), np.zeros((k, k))
    if len(base):
        here = np.ix_(base, base)
        size = np.sqrt(inner[base, base])
        inverse = np.linalg.inv(inner[here] / np.outer(size, size)) / np.outer(size, size)
        inverse = (inverse + inverse.T) / 2
        pick[here] = inverse
        fit[base] = inverse @ right[base]
    return fit, pick


def sum_contributions(
    walk: Walk, design: Design, targets: Targets, items: bool, n_pairs: int
) -> tuple[Contributions, Floats]:
    """Return the sums over clusters, and Σ of squares over dyads."""
    parts = list(walk(partial(contributions_of, design, targets, items), "summing over clusters"))
    n_targets = len(targets.pick)
    total = _together(parts, targets.pick.shape)
    squares = np.zeros(n_targets)
    if not items:
        return total, squares
    inside = np.zeros(n_targets)
    rounds = max(1, -(-n_pairs * n_targets // _ROOM))
    for chosen in range(rounds):
        # Most dyads are a single pair, which is its own sum: only the others are listed.
        task = partial(names_of_dyads, design, rounds, chosen)
        names = np.sort(np.concatenate(list(walk(task, "looking for two items that meet again"))))
        again = np.unique(names[1:][names[1:] == names[:-1]])
        listed = partial(dyads_of, design, targets, again, rounds, chosen)
        found = list(walk(listed, "summing over two items"))
        keys = np.concatenate([np.column_stack([one.one, one.other]) for one in found])
        sums = add_by(keys, np.concatenate([one.total for one in found]))[1]
        squares += (sums**2).sum(axis=0) + sum(one.met_once for one in found)
        inside += sum(one.inside_queries for one in found)
    return replace(total, by_dyad_query=inside), squares


def _together(parts: list[Contributions], shape: tuple[int, ...]) -> Contributions:
    n_targets, k = shape
    item = np.concatenate([np.empty(0, dtype=np.int64), *(part.item for part in parts)])
    codes = np.unique(item)
    by_item, sides = np.zeros((len(codes), n_targets)), np.zeros((len(codes), 2 * k))
    for part in parts:
        at = np.searchsorted(codes, part.item)
        add_rows(at, part.by_item, by_item)
        add_rows(at, part.sides.reshape(len(at), 2 * k), sides)

    def total(name: str) -> Floats:
        return np.asarray(sum(getattr(part, name) for part in parts))

    return Contributions(
        by_query=total("by_query") + np.zeros((n_targets, n_targets)),
        naive=total("naive") + np.zeros(n_targets),
        by_item_query=total("by_item_query") + np.zeros(n_targets),
        by_dyad_query=np.zeros(n_targets),
        count=total("count") + np.zeros(k),
        count_squares=total("count_squares") + np.zeros(k),
        queries=sum(part.queries for part in parts),
        item_queries=sum(part.item_queries for part in parts),
        item=codes,
        by_item=by_item,
        sides=sides.reshape(-1, 2, k),
    )


def estimate_targets(
    values: Floats,
    known: Flags,
    column: Ints,
    sums: Contributions,
    dyads: Floats,
    n_pairs: int,
    n_kept: Ints,
    cluster: str,
    level: float,
    owner: str,
) -> Estimates:
    """Return estimates of all targets; those left out have no pairs."""
    n = float(n_pairs)
    pairs = np.where(known, n_pairs, 0)
    zero = np.zeros(len(values))
    # Contributions are u/P already, while counts have to add up to P.
    spread = n**2
    more = np.where(n_pairs > n_kept, (n - 1) / np.maximum(n - n_kept, 1), 1.0)
    if cluster != "query":
        more = np.ones(len(values))
    count = np.where(sums.count > 0, sums.count, 1.0)
    squares = (sums.count_squares * (n / count) ** 2)[column]
    by = {
        "naive": Quadratic(np.full(len(values), n), zero, sums.naive * spread),
        "query": Quadratic(squares, zero, sums.by_query.diagonal() * spread * more),
    }
    of_items = None
    if VARIANCES[cluster].needs_items:
        kinds = {
            "item": (sums.by_item**2).sum(axis=0),
            "dyad": dyads,
            "item_query": sums.by_item_query,
            "dyad_query": sums.by_dyad_query,
        }
        by |= {name: Quadratic(zero, zero, value * spread) for name, value in kinds.items()}
        totals = sums.sides.sum(axis=0)
        effective = effective_clusters(totals, (sums.sides**2).sum(axis=0))
        of_items = effective.min(axis=0)[column]
    return estimate(
        pairs,
        np.where(known, values, np.nan),
        by,
        clusters=np.where(known, sums.queries, 0),
        cluster=cluster,
        level=level,
        item_effective=of_items,
        shared_items=sums.item_queries > len(sums.item),
        owner=owner,
    )


def _in_units(found: Estimates, scale: Floats) -> Estimates:
    """Multiply estimates and errors by a scale; their squares may overflow."""
    with np.errstate(over="ignore", invalid="ignore"):  # infinite beyond the largest number
        return replace(
            found,
            estimate=found.estimate * scale,
            std_error=found.std_error * scale,
            ci_low=found.ci_low * scale,
            ci_high=found.ci_high * scale,
            std_error_by={name: one * scale for name, one in found.std_error_by.items()},
            variance_by={name: one * scale * scale for name, one in found.variance_by.items()},
        )


def _take(found: Estimates, some: slice) -> Estimates:
    """Return some of the estimates."""

    def part(value: object) -> object:
        if isinstance(value, dict):
            return {name: each[some] for name, each in value.items()}
        return np.asarray(value)[some]

    return Estimates(**{name: part(value) for name, value in vars(found).items()})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Assumption:
    """A Wald test that a group's gap is the same at all levels of the score, and in all segments.

    Attributes
    ----------
    statistic, p_value, dof : float
        The F test; NaN where there are too few queries or too few terms.
    n_terms : int
    """

    statistic: float
    p_value: float
    n_terms: int
    dof: float


def check_assumption(
    walk: Walk,
    design: Design,
    segment: Ints | None = None,
    n_segments: int = 0,
) -> Assumption:
    r"""Test that the gap of group 0 does not depend on the level of the score or on the segment.

    The theorem assumes that differences of outcomes depend on items through the distance of their
    scores alone. The regression of `fit_partial` with one group is extended by the products of its
    :math:`\Delta m` with the quintiles of the pair's mean score and with segments, and all of these
    are tested at once, clustered by query: :math:`W = b' V^{-1} b`, and W/r is compared with F with
    r and G − 1 degrees of freedom, G effective.

    Parameters
    ----------
    walk : Walk
    design : Design
        With one group, and no covariates.
    segment : int64 array (query of the log,), optional
    n_segments : int
    """
    if design.n_groups != 1 or design.n_covariates:
        raise MpcError("design must have one group and no covariates; got another design.")
    middles = np.concatenate(list(walk(partial(mean_scores, design), "placing pairs")))
    cuts = np.empty(0)
    if len(middles):
        cuts = np.unique(np.quantile(middles, np.arange(1, BINS) / BINS))
        cuts = cuts[cuts < middles.max()]
    if segment is not None and n_segments > 1:
        design = replace(design, segment=segment, n_segments=n_segments)
    found = fit_partial(walk, replace(design, cuts=cuts), cluster="query")
    terms = np.arange(len(found.kept)) > design.constant
    tested = np.flatnonzero(found.kept & terms)
    n_effective = float(found.net.n_effective[0])
    nothing = Assumption(float("nan"), float("nan"), len(tested), float("nan"))
    # With fewer effective queries than terms, the covariance has no meaningful inverse.
    if not len(tested) or not n_effective - 1 > len(tested):
        return nothing
    b, v = found.net.estimate[tested], found.covariance[np.ix_(tested, tested)]
    if np.linalg.matrix_rank(v, hermitian=True) < len(tested):
        return nothing
    statistic = float(b @ np.linalg.solve(v, b)) / len(tested)
    dof = n_effective - 1
    p_value = float(stats.f.sf(statistic, len(tested), dof))
    return Assumption(statistic, p_value, len(tested), dof)
