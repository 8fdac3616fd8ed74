r"""The difference of two gaps, from what their pairs share.

Two estimates θ_A and θ_B, each a sum of parts (one, or the two sides of a tie). The contributions
of the pairs of both are stacked: :math:`z_p = w_p(d_p - \theta_A)/W_A` for the pairs of A, the same
with a minus sign for those of B, and a pair in both adds its two. Variances are those of
`mpc_lab.inference.estimates` over the stacked list, so that queries and items that A and B have in
common are allowed for. The sum θ_A + θ_B is estimated along with the difference: whether the new
gap is no larger than the old one needs both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from mpc_lab.inference.clustered import pair_codes, totals
from mpc_lab.inference.estimates import Estimates, estimate, join_parts, significance
from mpc_lab.inference.verdicts import Adjusted, Interval, adjust, holm
from mpc_lab.pairing.moments import Quadratic
from mpc_lab.vocabulary import INCONCLUSIVE, ITEM, NOT_ESTIMABLE, Flags, Floats, Ints, Texts

HIGHER, LOWER, NO_DIFFERENCE = "higher", "lower", "no difference"
# The difference, and the sum: what B is multiplied by.
_SIGNS = (-1.0, 1.0)
# A remainder below this share of what was subtracted is rounding error.
_ROUNDING = 1e-12
_CR3 = ("query", "item")


@dataclass(frozen=True)
class ListedEstimate:
    r"""An estimate and what every pair adds to its error.

    Attributes
    ----------
    value : float
        The estimate, :math:`f \sum_X m_X`, f = `factor` and m the mean of part X.
    share : float64 array (part, pair)
        What a pair counts in each part; the shares of a part add up to 1.
    error : float64 array (part, pair)
        Share times the difference of outcomes less its mean.
    factor : float
        1 for one part, ½ for the two sides of a tie.
    query : int64 array (pair,)
        The query, or unit, of each pair.
    inside, outside : int64 arrays (pair,), optional
        The item of the group and the other item, or their producers.
    pair : int64 array (pair,)
        A number that identifies each pair, the same in both estimates.
    """

    value: float
    share: Floats
    error: Floats
    factor: float
    query: Ints
    inside: Ints | None
    outside: Ints | None
    pair: Ints


def list_estimate(
    d: Floats,
    weight: Floats,
    query: Ints,
    inside: Ints | None,
    outside: Ints | None,
    pair: Ints,
    cell: Ints | None = None,
) -> ListedEstimate:
    """Return an estimate from its pairs: a weighted mean, or the mean of two sides.

    Parameters
    ----------
    d : float64 array (pair,)
        Differences of outcomes.
    weight : float64 array (part, pair)
        What a pair counts in each part.
    query, inside, outside, pair
        As in `ListedEstimate`.
    cell : int64 array (pair,), optional
        The cell of places inside which a part has its mean; by default a part is one cell.
    """
    whole = weight.sum(axis=1, keepdims=True)
    factor = 1.0 / len(weight)
    if not (whole > 0).all():
        nothing = np.full(weight.shape, np.nan)
        return ListedEstimate(np.nan, nothing, nothing, factor, query, inside, outside, pair)
    share = weight / whole
    # First subtract the overall mean: large differences would otherwise leave rounding errors.
    middle = float(np.einsum("p,p->", share[0], d))
    apart = d - middle
    means = np.einsum("xp,p->x", share, apart)
    if cell is None:
        error = share * (apart - means[:, None])
    else:
        error = np.empty_like(share)
        for part, of_part in enumerate(share):
            mass = np.bincount(cell, of_part)
            mean = np.bincount(cell, of_part * apart) / np.where(mass > 0, mass, 1.0)
            error[part] = of_part * (apart - mean[cell])
    value = middle + float(means.mean())
    return ListedEstimate(value, share, error, factor, query, inside, outside, pair)


@dataclass(frozen=True)
class Stacked:
    """The sums behind one difference; arrays (sign,) are for the difference, then for the sum.

    Attributes
    ----------
    new, old : float
        The two estimates.
    pairs : int
        Pairs of both estimates together; 0 where one of them has no pairs.
    clusters : int
        Queries, or units, with a pair of either.
    squares : dict of float64 arrays (sign,)
        Σz² over each kind of cluster: ``"naive"``, ``"query"`` and, where items are known,
        ``"item"``, ``"dyad"``, ``"item_query"``, ``"dyad_query"``.
    cr3 : dict of float64 arrays (sign,)
        The same over ``"query"`` and ``"item"``, with each part of a cluster divided by 1 less its
        share before the parts are added; NaN where a cluster holds a whole part.
    counts : float
        Σc² over queries, c the shares in both estimates added.
    item_effective : float
        Effective items of the stacked counts; NaN where items are not known.
    part_variance, part_queries, part_items : float64 arrays (part,)
        For every part of both estimates: the query variance it adds, and its effective queries and
        items.
    shared_items : bool
        Whether some item has pairs in two queries.
    shared_pairs : float
        How many pairs are in both; NaN where that is not known.
    """

    new: float
    old: float
    pairs: int
    clusters: int
    squares: dict[str, Floats]
    cr3: dict[str, Floats]
    counts: float
    item_effective: float
    part_variance: Floats
    part_queries: Floats
    part_items: Floats
    shared_items: bool
    shared_pairs: float = float("nan")


def stack(new: ListedEstimate, old: ListedEstimate, owner: str = ITEM) -> Stacked:
    """Stack the contributions of two estimates whose pairs are listed.

    Parameters
    ----------
    new, old : ListedEstimate
        With one numbering of queries, items and pairs.
    owner : {"item", "producer"}
        Who the items are.
    """
    both = (new, old)
    n_pairs = [len(one.query) for one in both]
    if not all(n_pairs) or not np.isfinite([new.value, old.value]).all():
        return no_stack(new.value, old.value, has_items=new.inside is not None)
    codes = pair_codes(
        np.concatenate([one.query for one in both]),
        _join([one.inside for one in both]),
        _join([one.outside for one in both]),
        owner,
    )
    error = side_by_side([one.factor * one.error for one in both])
    share = side_by_side([one.share for one in both])
    sign = np.repeat([1.0, 0.0], [len(one.share) for one in both])
    kinds = codes.clusters()
    tables = {kind: sum_by(error, of_kind) for kind, of_kind in kinds.items()}
    pair, of_pair = np.unique(np.concatenate([one.pair for one in both]), return_inverse=True)
    tables["naive"] = sum_by(error, (of_pair,))
    shares = {kind: sum_by(share, kinds[kind]) for kind in _CR3 if kind in kinds}
    counts = np.concatenate([one.factor * one.share.sum(axis=0) for one in both])
    part_queries = _effective(shares["query"])
    part_items = np.full(len(error), np.nan)
    item_effective = np.nan
    if codes.items is not None:
        of_sides = (codes.items.inside, codes.items.outside)
        part_items = np.min([_effective(sum_by(share, (side,))) for side in of_sides], axis=0)
        item_effective = codes.effective(counts)[1]
    return Stacked(
        new=new.value,
        old=old.value,
        pairs=sum(n_pairs),
        clusters=codes.queries,
        squares={kind: squares_of(sign, table) for kind, table in tables.items()},
        cr3={kind: stack_tables(sign, tables[kind], shares[kind])[1] for kind in shares},
        counts=square(totals(codes.query, counts)),
        item_effective=item_effective,
        part_variance=np.einsum("xk,xk->x", tables["query"], tables["query"]),
        part_queries=part_queries,
        part_items=part_items,
        shared_items=codes.shares_items,
        shared_pairs=float(sum(n_pairs) - len(pair)),
    )


def no_stack(new: float, old: float, *, has_items: bool) -> Stacked:
    """Return the result for two cells of which one has no estimate."""
    kinds = ["naive", "query"]
    kinds += ["item", "dyad", "item_query", "dyad_query"] if has_items else []
    unknown = {kind: np.full(2, np.nan) for kind in kinds}
    few = np.full(2, np.nan)
    return Stacked(new, old, 0, 0, unknown, unknown, np.nan, np.nan, few, few, few, False)


def _join(parts: Sequence[Ints | None]) -> Ints | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def side_by_side(parts: Sequence[Floats]) -> Floats:
    """Join arrays (part, pair), with 0 where a pair belongs to the other estimate."""
    n_parts, n_pairs = np.sum([part.shape for part in parts], axis=0)
    found, row, column = np.zeros((n_parts, n_pairs)), 0, 0
    for part in parts:
        found[row : row + part.shape[0], column : column + part.shape[1]] = part
        row, column = row + part.shape[0], column + part.shape[1]
    return found


def sum_by(values: Floats, codes: Sequence[Ints]) -> Floats:
    """Add up values (part, pair) over clusters; a pair is in one for each array of codes."""
    size = max((int(code.max(initial=-1)) for code in codes), default=-1) + 1
    found = np.zeros((len(values), size))
    # The pairs of a part are contiguous; it has none among those of the other estimate.
    runs = [_run(of_part != 0) for of_part in values]
    for code in codes:
        everywhere = code.min(initial=0) >= 0
        for part, of_part in enumerate(values):
            own, of_run = code[runs[part]], of_part[runs[part]]
            if not everywhere:
                own, of_run = own[own >= 0], of_run[own >= 0]
            found[part] += np.bincount(own, of_run, minlength=size)
    return found


def _run(some: Flags) -> slice:
    """Return the slice from the first true flag to the last."""
    if not some.any():
        return slice(0, 0)
    return slice(int(some.argmax()), len(some) - int(some[::-1].argmax()))


def stack_tables(is_new: Floats, error: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Return Σz² over clusters of the difference and of the sum, plain and with CR3 by parts.

    Parameters
    ----------
    is_new : float64 array (part,)
        1 for the parts of the new estimate, 0 for those of the old one.
    error, share : float64 arrays (part, cluster)
        How much a cluster adds to the error of its estimate, and its share of the part.
    """
    return squares_of(is_new, error), squares_of(is_new, divide_by_rest(error, share))


def squares_of(is_new: Floats, table: Floats) -> Floats:
    """Return Σz² over clusters (part, cluster) of the difference and of the sum."""
    return np.array([square(np.where(is_new > 0, 1.0, minus) @ table) for minus in _SIGNS])


def square(values: Floats) -> float:
    """Return the sum of squares."""
    return float(np.einsum("k,k->", values, values))


def divide_by_rest(table: Floats, share: Floats) -> Floats:
    """Divide a cluster's sum in a part by 1 less its share of the part; NaN where that is 0."""
    rest = 1.0 - share
    return np.asarray(table / np.where(rest > _ROUNDING, rest, np.nan))


def _effective(share: Floats) -> Floats:
    """Return 1/Σc² of each part."""
    return np.asarray(1.0 / np.einsum("xk,xk->x", share, share))


@dataclass(frozen=True)
class Differences:
    """Differences of cells with their inference; arrays (cell,), NaN where not estimable.

    Attributes
    ----------
    difference, std_error, ci_low, ci_high, p_value, dof, n_effective : float64 arrays
    same : array of bool
        Where both estimates are made of the same pairs: the difference is exactly 0, its standard
        error 0 and p 1.
    reason : array of str
        Why a cell is not estimable.
    variance_from : array of str
    sum, sum_std_error, sum_dof : float64 arrays
        The inference of θ_new + θ_old.
    """

    difference: Floats
    std_error: Floats
    ci_low: Floats
    ci_high: Floats
    p_value: Floats
    dof: Floats
    n_effective: Floats
    same: Flags
    reason: Texts
    variance_from: Texts
    sum: Floats
    sum_std_error: Floats
    sum_dof: Floats


def estimate_differences(
    cells: Sequence[Stacked],
    *,
    cluster: str,
    level: float = 0.95,
    owner: str = ITEM,
    corrected: bool = True,
) -> Differences:
    r"""Estimate differences from stacked contributions.

    The variance is that of `mpc_lab.inference.estimates.estimate` over the stacked list; with CR3
    the part of a cluster inside part X is divided by 1 less its share of X before parts are added.
    The interval is that of t with G − 1 degrees of freedom,
    :math:`G = 1 + (\sum v_X)^2 / \sum [v_X^2 / (G_X - 1)]` over the parts of both estimates, not
    above the G of the stacked counts; not estimable where a part has fewer than 3.

    Parameters
    ----------
    cells : sequence of Stacked
    cluster : {"naive", "query", "item", "producer", "union"}
    level : float
    owner : {"item", "producer"}
    corrected : bool
        Whether CR3 is used, rather than the plain correction.
    """
    both = [_estimates(cells, k, cluster, level, owner, corrected) for k in range(2)]
    found, total = both
    same = np.array([_same(cell) for cell in cells], dtype=np.bool_)
    values = {
        name: np.where(same, exact, getattr(found, name))
        for name, exact in (
            ("std_error", 0.0),
            ("ci_low", 0.0),
            ("ci_high", 0.0),
            ("p_value", 1.0),
        )
    }
    return Differences(
        difference=np.where(same, 0.0, found.estimate),
        dof=np.where(same, np.maximum(found.n_effective - 1, 1.0), found.dof),
        n_effective=found.n_effective,
        same=same,
        reason=np.where(same, "", found.reason),
        variance_from=found.variance_from,
        sum=total.estimate,
        sum_std_error=total.std_error,
        sum_dof=total.dof,
        **values,
    )


def _same(cell: Stacked) -> bool:
    """Whether two estimates come from the same pairs: all that is left is rounding error."""
    if not cell.pairs:
        return False
    size = max(abs(cell.new), abs(cell.old), float(np.sqrt(cell.part_variance.max())))
    left = max(float(cell.squares[kind][0]) for kind in ("naive", "query"))
    whole = float(cell.squares["naive"][1])
    if whole == 0.0 and 2 * cell.shared_pairs != cell.pairs:
        # Outcome differences that are all equal leave no error, whatever the pairs.
        return False
    return abs(cell.new - cell.old) <= _ROUNDING * size and left <= _ROUNDING**2 * whole


def _estimates(
    cells: Sequence[Stacked], k: int, cluster: str, level: float, owner: str, corrected: bool
) -> Estimates:
    """Estimate the difference (k = 0) or the sum (k = 1) of every cell."""
    pairs = np.array([cell.pairs for cell in cells], dtype=np.int64)
    # Sums as for a mean over the pairs: contributions times their number; shares add up to 2, so
    # halve.
    scale = pairs.astype(np.float64) ** 2
    kinds = [kind for kind in cells[0].squares if all(kind in cell.squares for cell in cells)]
    nothing = np.zeros(len(cells))

    def gather(values: Sequence[float]) -> Floats:
        return scale * np.array(values, dtype=np.float64)

    by = {
        kind: Quadratic(nothing, nothing, gather([cell.squares[kind][k] for cell in cells]))
        for kind in kinds
    }
    by["query"] = Quadratic(0.25 * gather([cell.counts for cell in cells]), nothing, by["query"].uu)
    weighed = {
        kind: gather([cell.cr3[kind][k] for cell in cells])
        for kind in _CR3
        if all(kind in cell.cr3 for cell in cells)
    }
    return estimate(
        pairs,
        np.array([cell.new + _SIGNS[k] * cell.old for cell in cells]),
        by,
        clusters=np.array([cell.clusters for cell in cells]),
        cluster=cluster,
        level=level,
        item_effective=np.array([cell.item_effective for cell in cells]) if "item" in by else None,
        shared_items=np.array([cell.shared_items for cell in cells]),
        most_effective=_most_effective(cells),
        owner=owner,
        cr3=weighed if corrected else None,
        corrected=corrected,
    )


def _most_effective(cells: Sequence[Stacked]) -> dict[str, Floats]:
    """Return the largest effective number of clusters that a sum of parts may have."""

    def join(pick: str) -> Floats:
        found = []
        for cell in cells:
            limits = {"queries": cell.part_queries, "items": cell.part_items}
            few = np.minimum(cell.part_queries, cell.part_items)
            limits["fewest"] = few if cell.shared_items else cell.part_queries
            found.append(float(join_parts(cell.part_variance, limits[pick])))
        return np.array(found)

    return {name: join(name) for name in ("queries", "items", "fewest")}


def judge_differences(
    found: Differences, *, method: str = "holm", level: float = 0.95
) -> tuple[Adjusted, Texts]:
    """Adjust differences over one family and give each its verdict.

    ``higher`` or ``lower`` where the adjusted interval excludes 0, ``no difference`` where both
    estimates are made of the same pairs, else ``inconclusive`` or ``not estimable``.

    Parameters
    ----------
    found : Differences
        All cells are one family.
    method, level
        As in `mpc_lab.inference.verdicts.adjust`.
    """
    numbers = (found.p_value, found.difference, found.std_error, found.dof)
    adjusted = adjust(*numbers, method=method, level=level)
    ends = Interval(adjusted.ci_low_adjusted, adjusted.ci_high_adjusted, adjusted.ci_cut)
    conditions = [found.same, ~ends.estimable, ends.above, ends.below]
    names = [NO_DIFFERENCE, NOT_ESTIMABLE, HIGHER, LOWER]
    return adjusted, np.select(conditions, names, INCONCLUSIVE)


@dataclass(frozen=True)
class NoWorse:
    """Whether new gaps are no larger than the old ones, plus a margin; arrays (cell,).

    Attributes
    ----------
    p_value : float64 array
        The larger of the two one-sided p-values: `no_worse` where it is at most a/2.
    no_worse : array of bool
    worse_p_adjusted : float64 array
        For the opposite claim, that the new gap is larger by more than the margin; by Holm over the
        cells.
    worse : array of bool
    """

    p_value: Floats
    no_worse: Flags
    worse_p_adjusted: Floats
    worse: Flags


def assess_no_worse(
    found: Differences, new: Floats, old: Floats, *, margin: float, level: float = 0.95
) -> NoWorse:
    r"""Test :math:`|\theta_{new}| \le |\theta_{old}| + m` in both directions.

    With s the sign of the estimate of θ_old it follows from :math:`\theta_{new} - s\theta_{old}
    \le m` and :math:`-\theta_{new} - s\theta_{old} \le m`; both are tested one-sided at level a/2,
    because s is chosen by the data. The claim that it is worse follows, with s the sign of the
    estimate of θ_new, from :math:`s\theta_{new} - \theta_{old} > m` and :math:`s\theta_{new} +
    \theta_{old} > m`, tested likewise.

    Parameters
    ----------
    found : Differences
    new, old : float64 arrays (cell,)
        The estimates.
    margin : float
        In units of the outcome, 0 or above.
    level : float

    Examples
    --------
    >>> import numpy as np
    >>> one, sure = np.array([0.0]), np.array([1e9])
    >>> cells = Differences(one, np.array([0.01]), one, one, one, sure, sure, one > 0, one, one,
    ...                     np.array([0.4]), np.array([0.02]), sure)
    >>> found = assess_no_worse(cells, np.array([0.2]), np.array([0.2]), margin=0.05)
    >>> bool(found.no_worse[0]), bool(found.worse[0])
    (True, False)
    """
    a = significance(level)
    of_old, of_new = np.where(old < 0, -1.0, 1.0), np.where(new < 0, -1.0, 1.0)

    def p(contrast: Floats, by_difference: Flags, *, above: bool) -> Floats:
        """Return the p-value of contrast < margin, or of contrast > margin."""
        std_error = np.where(by_difference, found.std_error, found.sum_std_error)
        dof = np.where(by_difference, found.dof, found.sum_dof)
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = (contrast - margin) / std_error
        return np.asarray(stdtr(dof, -statistic if above else statistic))

    plus = of_old > 0
    first = p(new - of_old * old, plus, above=False)
    second = p(-new - of_old * old, ~plus, above=False)
    p_value = np.where(found.same, 0.0, np.maximum(first, second))
    plus = of_new > 0
    first = p(of_new * new - old, plus, above=True)
    second = p(of_new * new + old, ~plus, above=True)
    larger = np.where(found.same, 1.0, np.minimum(2 * np.maximum(first, second), 1.0))
    worse = np.full(larger.shape, np.nan)
    known = np.isfinite(larger)
    worse[known] = holm(larger[known])
    return NoWorse(p_value, np.asarray(p_value <= a / 2), worse, np.asarray(worse <= a))
