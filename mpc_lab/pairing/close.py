"""All close pairs of a query, each visited once: sums for a regression, and sums over clusters.

A pair is oriented from the lower to the upper one of the list. Its regressors are the difference
of membership in each group, of the score in units of the width, a constant, differences of
covariates, and, for one group, its difference inside bins of the mean score and inside segments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mpc_lab.pairing.kernels import ONE, contrast, inlined_late, kernel, lowest, tight
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.weighting import weight_of_pair
from mpc_lab.vocabulary import Floats, Ints, Masks


@dataclass(frozen=True)
class Design:
    """Which pairs a regression is over, and on what.

    Attributes
    ----------
    n_groups : int
        The groups of the masks.
    width : float
        h: pairs at most so far apart.
    by_place : bool
        Whether the upper one is the one shown higher; otherwise the one with the higher score, and
        of a tied pair half in each orientation.
    n_covariates : int
        How many columns of `Log.extra` there are.
    cuts : float64 array
        Where bins of the mean score of a pair begin, after the first; group 0 alone has them.
    segment : int64 array (query,)
        Segments of queries, from 0; empty where group 0 has no terms for them.
    n_segments : int
    uniform, across, no_slope : bool
        Whether every pair weighs 1, only pairs across group 0 count, and the score has no column.
    """

    n_groups: int
    width: float
    by_place: bool = False
    n_covariates: int = 0
    cuts: Floats = field(default_factory=lambda: np.empty(0))
    segment: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    n_segments: int = 0
    uniform: bool = False
    across: bool = False
    no_slope: bool = False

    @property
    def slope(self) -> int:
        """Where the column of the score is."""
        return self.n_groups

    @property
    def constant(self) -> int:
        """Where the constant is."""
        return self.n_groups + 1

    @property
    def first_term(self) -> int:
        """Where the terms of bins, then of segments, begin."""
        return self.n_groups + 2 + self.n_covariates

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return self.first_term + len(self.cuts) + max(self.n_segments - 1, 0)


class _Rows(NamedTuple):
    """The arrays of a log that kernels read."""

    units: Ints
    starts: Ints
    score: Floats
    outcome: Floats
    masks: Masks
    tie: Ints
    sign: bool
    weight: Floats
    estimand: int
    x: Floats
    width: float
    by_place: bool
    cuts: Floats
    segment: Ints
    n_groups: int
    uniform: bool
    across: bool
    no_slope: bool


def _rows(design: Design, log: Log) -> _Rows:
    weights = log.weights
    x = log.extra[log.row] if design.n_covariates else np.empty((0, 0))
    return _Rows(
        log.units,
        log.starts,
        log.score,
        log.outcome,
        log.masks,
        log.tie,
        log.sign,
        np.empty(0) if weights is None else weights.weight,
        0 if weights is None else weights.estimand,
        np.ascontiguousarray(x, dtype=np.float64),
        float(design.width),
        design.by_place,
        design.cuts,
        design.segment,
        design.n_groups,
        design.uniform,
        design.across,
        design.no_slope,
    )


@dataclass(frozen=True)
class Gram:
    """Sums of a regression, which add up over blocks.

    Attributes
    ----------
    inner : float64 array (column + 1, column + 1)
        X'WX, with the difference of outcomes as the last column.
    weight : float
        Σw.
    pairs, ties : int
        The pairs that have a weight, and those of them with one score.
    """

    inner: Floats
    weight: float
    pairs: int
    ties: int

    def __add__(self, other: Gram) -> Gram:
        return Gram(
            self.inner + other.inner,
            self.weight + other.weight,
            self.pairs + other.pairs,
            self.ties + other.ties,
        )


def gram_of(design: Design, log: Log, first: int, last: int) -> Gram:
    """Return the sums of some units."""
    k = design.n_columns + 1
    inner, totals = np.zeros((k, k)), np.zeros(3)
    _add_gram(_rows(design, log), first, last, inner, totals)
    return Gram(inner, float(totals[0]), int(totals[1]), int(totals[2]))


def count_within(width: float, log: Log, first: int, last: int) -> int:
    """Return how many pairs of some units are at most `width` apart; none below 0, or NaN."""
    return int(_count(log.units, log.starts, log.score, width, first, last))


def mean_scores(design: Design, log: Log, first: int, last: int) -> Floats:
    """Return the mean score of every pair of some units across group 0."""
    rows = _rows(design, log)
    found = np.empty(_means(rows, first, last, np.empty(0)))
    _means(rows, first, last, found)
    return found


@dataclass(frozen=True)
class Targets:
    r"""The numbers whose contributions are wanted.

    Pair p adds :math:`w_p (c_t' x_p)(d_p - b_t' x_p)` to the error of number t.

    Attributes
    ----------
    pick, fit : float64 arrays (target, column)
        c and b.
    """

    pick: Floats
    fit: Floats


@dataclass(frozen=True)
class Contributions:
    """Sums over clusters of what pairs add to the error of each target.

    Attributes
    ----------
    by_query : float64 array (target, target)
        Σ over queries, or units, of products.
    naive, by_item_query, by_dyad_query : float64 arrays (target,)
        Σ of squares over pairs, over items inside queries, over two items inside queries.
    count, count_squares : float64 arrays (column,)
        Weight of the pairs in which a regressor is not 0, and Σ of its squares over queries.
    queries : int
        Queries, or units, with a pair.
    item_queries : int
        Pairs of an item and a query that it has a pair in.
    item : int64 array (item,)
        Items with a pair.
    by_item : float64 array (item, target)
    sides : float64 array (item, 2, column)
        Weight of an item's pairs with a regressor that is not 0: inside the group, and outside;
        for other columns as the upper and as the lower one.
    """

    by_query: Floats
    naive: Floats
    by_item_query: Floats
    by_dyad_query: Floats
    count: Floats
    count_squares: Floats
    queries: int
    item_queries: int
    item: Ints
    by_item: Floats
    sides: Floats


def contributions_of(
    design: Design, targets: Targets, items: bool, log: Log, first: int, last: int
) -> Contributions:
    """Return the sums of some units; those over items are empty unless `items`."""
    rows = _rows(design, log)
    n_targets, k = targets.pick.shape
    units = last - first
    start = log.starts[log.units[first]]
    n_rows = int(log.starts[log.units[last]] - start) if items else 0
    by_unit, count = np.zeros((units, n_targets)), np.zeros((units, k))
    naive, pairs_of = np.zeros(n_targets), np.zeros(units)
    by_row, sides = np.zeros((n_rows, n_targets)), np.zeros((n_rows, 2, k))
    cluster = log.cluster if items else np.empty(0, dtype=np.int64)
    _add_contributions(
        rows,
        targets.pick.T.copy(),
        targets.fit.T.copy(),
        cluster,
        first,
        last,
        by_unit,
        count,
        naive,
        pairs_of,
        by_row,
        sides,
    )
    empty = np.zeros(n_targets)
    item, by_item, of_items, by_item_query, n_both = (
        np.empty(0, dtype=np.int64),
        np.empty((0, n_targets)),
        np.empty((0, 2, k)),
        empty,
        0,
    )
    if items:
        here = slice(start, start + n_rows)
        met = np.flatnonzero(sides[:, :, design.constant].any(axis=1))
        unit = np.repeat(np.arange(units), np.diff(log.starts[log.units[first : last + 1]]))
        item, at = np.unique(cluster[here][met], return_inverse=True)
        met_at = np.full(n_rows, -1, dtype=np.int64)
        met_at[met] = at
        by_item = _sum_by(met_at, len(item), by_row)
        of_items = _sum_by(met_at, len(item), sides.reshape(n_rows, -1)).reshape(-1, 2, k)
        both = np.unique(at * max(units, 1) + unit[met], return_inverse=True)
        n_both = len(both[0])
        if n_both < len(met):  # else each item is in a unit once, and its rows are the sums
            met_at[met] = both[1]
            by_row = _sum_by(met_at, n_both, by_row)
        by_item_query = np.einsum("it,it->t", by_row, by_row)
    return Contributions(
        by_query=by_unit.T @ by_unit,
        naive=naive,
        by_item_query=by_item_query,
        by_dyad_query=empty,
        count=count.sum(axis=0),
        count_squares=(count**2).sum(axis=0),
        queries=int(np.count_nonzero(pairs_of)),
        item_queries=n_both,
        item=item,
        by_item=by_item,
        sides=of_items,
    )


class Dyads(NamedTuple):
    """Sums over the pairs of the same two items.

    Attributes
    ----------
    one, other : int64 arrays (dyad,)
        The items of dyads that are met again, the smaller code first.
    total : float64 array (dyad, target)
        Of those.
    met_once : float64 array (target,)
        Σ of squares over the dyads that are a single pair.
    inside_queries : float64 array (target,)
        Σ of squares of the sums inside queries, or units, over all dyads.
    """

    one: Ints
    other: Ints
    total: Floats
    met_once: Floats
    inside_queries: Floats


def names_of_dyads(
    design: Design, rounds: int, chosen: int, log: Log, first: int, last: int
) -> Ints:
    """Return the two items of each pair of some units, in one number: of one dyad in `rounds`."""
    how: tuple[Any, ...] = (_rows(design, log), log.cluster, rounds, chosen, first, last)
    counted: tuple[Any, ...] = (*how, np.empty(0, dtype=np.int64))
    names = np.empty(_name_dyads(*counted), dtype=np.int64)
    named: tuple[Any, ...] = (*how, names)
    _name_dyads(*named)
    return names


def dyads_of(
    design: Design,
    targets: Targets,
    again: Ints,
    rounds: int,
    chosen: int,
    log: Log,
    first: int,
    last: int,
) -> Dyads:
    """Return the sums over some of the dyads: one in `rounds`, so that few are held at a time.

    `again` has the ascending names of those that more than one pair has: only these are listed.
    """
    rows, cluster = _rows(design, log), log.cluster
    n_targets = len(targets.pick)
    none, once = np.empty((0, 3), dtype=np.int64), np.zeros(n_targets)
    how: tuple[Any, ...] = (rows, targets.pick.T.copy(), targets.fit.T.copy(), cluster)
    how = (*how, again, rounds, chosen, first, last)
    counted: tuple[Any, ...] = (*how, none, np.empty((0, n_targets)), once)
    n = _list_dyads(*counted)
    keys, values = np.empty((n, 3), dtype=np.int64), np.empty((n, n_targets))
    if n:
        listed: tuple[Any, ...] = (*how, keys, values, once)
        _list_dyads(*listed)
    inside = add_by(keys, values)[1]
    pair, total = add_by(keys[:, :2], values)
    return Dyads(pair[:, 0], pair[:, 1], total, once, once + (inside**2).sum(axis=0))


def add_by(keys: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Return the distinct rows of keys, and the sum of the values of each."""
    if not len(keys):
        return keys, values
    order = np.lexsort(keys.T[::-1])
    keys, values = keys[order], values[order]
    new = np.concatenate([[True], (np.diff(keys, axis=0) != 0).any(axis=1)])
    return keys[new], np.add.reduceat(values, np.flatnonzero(new), axis=0)


def _sum_by(at: Ints, n: int, values: Floats) -> Floats:
    """Return the sum of the rows of values of each code; those of -1 are left out."""
    total = np.zeros((n, values.shape[1]))
    add_rows(at, values, total)
    return total


@kernel
def add_rows(at: Ints, values: Floats, total: Floats) -> None:
    """Add each row of values to the row of the total that it has a number of; -1 for none."""
    for row in range(len(at)):
        if at[row] >= 0:
            for t in range(values.shape[1]):
                total[at[row], t] += values[row, t]


@inlined_late
def _pair_weight(rows: _Rows, lower: int, upper: int, of_query: float) -> float:
    """Return what a pair weighs; 0 where it is not one."""
    if rows.across and ((rows.masks[0, lower] ^ rows.masks[0, upper]) & ONE) == 0:
        return 0.0
    distance: float = rows.score[upper] - rows.score[lower]
    if rows.uniform or rows.width == 0.0:
        return of_query
    return max(0.0, (1.0 - distance / rows.width)) * of_query


@inlined_late
def _query_weight(rows: _Rows, q: int) -> float:
    """Return what a pair of a query counts, before its distance."""
    if len(rows.weight) == 0:
        return 1.0
    own: float = rows.weight[q]
    if rows.estimand == 0:
        return own
    start, end = rows.starts[q], rows.starts[q + 1]
    n = 0
    for lower in range(start, end):
        upper = lower + 1
        while upper < end and rows.score[upper] - rows.score[lower] <= rows.width:
            n += _pair_weight(rows, lower, upper, 1.0) > 0.0
            upper += 1
    return weight_of_pair(own, rows.estimand, float(n))


@inlined_late
def _fill(
    rows: _Rows, q: int, lower: int, upper: int, at: Ints, value: Floats
) -> tuple[int, float]:
    """Write the regressors that are not 0; return how many, and the difference of outcomes."""
    n = 0
    own = 0.0
    for word in range(len(rows.masks)):
        bits = rows.masks[word, lower] ^ rows.masks[word, upper]
        while bits:
            g = 64 * word + lowest(bits)
            if g < rows.n_groups:
                inside = (rows.masks[word, upper] >> np.uint64(g % 64)) & ONE
                at[n], value[n] = g, 1.0 if inside else -1.0
                if g == 0:
                    own = value[n]
                n += 1
            bits &= bits - ONE
    distance = rows.score[upper] - rows.score[lower]
    if distance != 0.0 and not rows.no_slope:
        at[n], value[n] = rows.n_groups, distance / rows.width
        n += 1
    at[n], value[n] = rows.n_groups + 1, 1.0
    n += 1
    k = rows.n_groups + 2
    if rows.x.shape[1]:
        for c in range(rows.x.shape[1]):
            apart = rows.x[upper, c] - rows.x[lower, c]
            if apart != 0.0:
                at[n], value[n] = k + c, apart
                n += 1
    k += rows.x.shape[1]
    if own != 0.0 and len(rows.cuts):
        middle = 0.5 * (rows.score[upper] + rows.score[lower])
        bin_ = 0
        while bin_ < len(rows.cuts) and middle > rows.cuts[bin_]:
            bin_ += 1
        if bin_ > 0:
            at[n], value[n] = k + bin_ - 1, own
            n += 1
    if own != 0.0 and len(rows.segment) and rows.segment[q] > 0:
        at[n], value[n] = k + len(rows.cuts) + rows.segment[q] - 1, own
        n += 1
    d = contrast(rows.outcome[upper] - rows.outcome[lower], rows.sign)
    return n, d


@inlined_late
def _turn(rows: _Rows, at: Ints, value: Floats, n: int, d: float) -> float:
    """Swap the two items of a pair: everything but the constant changes its sign."""
    for e in range(n):
        if at[e] != rows.n_groups + 1:
            value[e] = -value[e]
    return -d


@inlined_late
def _upside_down(rows: _Rows, lower: int, upper: int) -> bool:
    """Whether the row with the lower score was shown above the other."""
    return rows.by_place and rows.tie[lower] > rows.tie[upper]


@inlined_late
def _is_split(rows: _Rows, lower: int, upper: int) -> bool:
    """Whether a pair counts half in each orientation."""
    return not rows.by_place and rows.score[lower] == rows.score[upper]


@kernel
def _add_gram(rows: _Rows, first: int, last: int, inner: Floats, totals: Floats) -> None:
    k = len(inner) - 1
    at, value = np.empty(k + 1, dtype=np.int64), np.empty(k + 1)
    for q in range(rows.units[first], rows.units[last]):
        start, end = rows.starts[q], rows.starts[q + 1]
        of_query = _query_weight(rows, q)
        for lower in range(start, end):
            upper = lower + 1
            while upper < end and rows.score[upper] - rows.score[lower] <= rows.width:
                w = _pair_weight(rows, lower, upper, of_query)
                if w > 0.0:
                    n, d = _fill(rows, q, lower, upper, at, value)
                    if _upside_down(rows, lower, upper):
                        d = _turn(rows, at, value, n, d)
                    turns = 2 if _is_split(rows, lower, upper) else 1
                    for turn in range(turns):
                        if turn:
                            d = _turn(rows, at, value, n, d)
                        for a in range(n):
                            wa = w / turns * value[a]
                            for b in range(n):
                                inner[at[a], at[b]] += wa * value[b]
                            inner[at[a], k] += wa * d
                            inner[k, at[a]] += wa * d
                    inner[k, k] += w * d * d
                    totals[0] += w
                    totals[1] += 1
                    totals[2] += rows.score[lower] == rows.score[upper]
                upper += 1


@inlined_late
def _contribute(
    rows: _Rows,
    pick: Floats,
    fit: Floats,
    w: float,
    at: Ints,
    value: Floats,
    n: int,
    d: float,
    z: Floats,
    load: Floats,
    residual: Floats,
) -> None:
    # Over all targets at once, which lie beside each other.
    load[:] = 0.0
    residual[:] = d
    for a in range(n):
        column, own = at[a], value[a]
        for t in range(len(z)):
            load[t] += pick[column, t] * own
            residual[t] -= fit[column, t] * own
    for t in range(len(z)):
        z[t] += w * load[t] * residual[t]


@inlined_late
def _of_pair(
    rows: _Rows,
    pick: Floats,
    fit: Floats,
    q: int,
    lower: int,
    upper: int,
    w: float,
    at: Ints,
    value: Floats,
    z: Floats,
    load: Floats,
    residual: Floats,
) -> int:
    """Write what a pair adds to the error of each target; return how many regressors it has.

    `pick` and `fit` are (column, target) here, `load` and `residual` room for a number a target.
    """
    n, d = _fill(rows, q, lower, upper, at, value)
    if _upside_down(rows, lower, upper):
        d = _turn(rows, at, value, n, d)
    z[:] = 0.0
    if _is_split(rows, lower, upper):
        _contribute(rows, pick, fit, 0.5 * w, at, value, n, d, z, load, residual)
        d = _turn(rows, at, value, n, d)
        _contribute(rows, pick, fit, 0.5 * w, at, value, n, d, z, load, residual)
        d = _turn(rows, at, value, n, d)
    else:
        _contribute(rows, pick, fit, w, at, value, n, d, z, load, residual)
    return n


@kernel
def _add_contributions(
    rows: _Rows,
    pick: Floats,
    fit: Floats,
    cluster: Ints,
    first: int,
    last: int,
    by_unit: Floats,
    count: Floats,
    naive: Floats,
    pairs_of: Floats,
    by_row: Floats,
    sides: Floats,
) -> None:
    k = len(pick)
    at, value = np.empty(k + 1, dtype=np.int64), np.empty(k + 1)
    z, load, residual = np.zeros(pick.shape[1]), np.zeros(pick.shape[1]), np.zeros(pick.shape[1])
    items = len(cluster) > 0
    offset = rows.starts[rows.units[first]]
    for unit in range(first, last):
        for q in range(rows.units[unit], rows.units[unit + 1]):
            start, end = rows.starts[q], rows.starts[q + 1]
            of_query = _query_weight(rows, q)
            for lower in range(start, end):
                upper = lower + 1
                while upper < end and rows.score[upper] - rows.score[lower] <= rows.width:
                    w = _pair_weight(rows, lower, upper, of_query)
                    if w > 0.0:
                        n = _of_pair(
                            rows, pick, fit, q, lower, upper, w, at, value, z, load, residual
                        )
                        pairs_of[unit - first] += 1
                        for t in range(len(z)):
                            by_unit[unit - first, t] += z[t]
                            naive[t] += z[t] * z[t]
                        for a in range(n):
                            count[unit - first, at[a]] += w
                        if items:
                            one, other = lower - offset, upper - offset
                            same = cluster[lower] == cluster[upper]
                            for t in range(len(z)):
                                by_row[one, t] += z[t]
                                if not same:
                                    by_row[other, t] += z[t]
                            turned = _upside_down(rows, lower, upper)
                            for a in range(n):
                                j = at[a]
                                if j >= rows.n_groups and _is_split(rows, lower, upper):
                                    sides[one, :, j] += 0.5 * w
                                    sides[other, :, j] += 0.5 * w
                                    continue
                                # Value is +1 where the one shown above is in the group.
                                up = value[a] > 0.0 if j < rows.n_groups else True
                                top, bottom = (one, other) if turned else (other, one)
                                inside, outside = (top, bottom) if up else (bottom, top)
                                sides[inside, 0, j] += w
                                sides[outside, 1, j] += w
                    upper += 1


@tight
def _name(one: int, other: int) -> np.int64:
    """Return two items as one number; that others have the same by chance does no harm."""
    first = np.int64(one) * np.int64(2685821657736338717)
    return first ^ (np.int64(other) * np.int64(7046029254386353131))


@kernel
def _name_dyads(
    rows: _Rows, cluster: Ints, rounds: int, chosen: int, first: int, last: int, names: Ints
) -> int:
    """Write the name of the two items of each pair; return how many there are."""
    m = 0
    for q in range(rows.units[first], rows.units[last]):
        start, end = rows.starts[q], rows.starts[q + 1]
        of_query = _query_weight(rows, q)
        for lower in range(start, end):
            upper = lower + 1
            while upper < end and rows.score[upper] - rows.score[lower] <= rows.width:
                one = min(cluster[lower], cluster[upper])
                other = max(cluster[lower], cluster[upper])
                wanted = one != other and (one ^ other) % rounds == chosen
                if wanted and _pair_weight(rows, lower, upper, of_query) > 0.0:
                    if len(names):
                        names[m] = _name(one, other)
                    m += 1
                upper += 1
    return m


@kernel
def _list_dyads(
    rows: _Rows,
    pick: Floats,
    fit: Floats,
    cluster: Ints,
    again: Ints,
    rounds: int,
    chosen: int,
    first: int,
    last: int,
    keys: Ints,
    values: Floats,
    once: Floats,
) -> int:
    """Write (item, item, unit) and contributions of the pairs of dyads that are met again.

    Of other pairs the squares are added to `once`. Return how many pairs are written.
    """
    k = len(pick)
    at, value = np.empty(k + 1, dtype=np.int64), np.empty(k + 1)
    z, load, residual = np.zeros(pick.shape[1]), np.zeros(pick.shape[1]), np.zeros(pick.shape[1])
    m = 0
    for unit in range(first, last):
        for q in range(rows.units[unit], rows.units[unit + 1]):
            start, end = rows.starts[q], rows.starts[q + 1]
            of_query = _query_weight(rows, q)
            for lower in range(start, end):
                upper = lower + 1
                while upper < end and rows.score[upper] - rows.score[lower] <= rows.width:
                    w = _pair_weight(rows, lower, upper, of_query)
                    one = min(cluster[lower], cluster[upper])
                    other = max(cluster[lower], cluster[upper])
                    if w > 0.0 and one != other and (one ^ other) % rounds == chosen:
                        name = _name(one, other)
                        place = np.searchsorted(again, name)
                        if place < len(again) and again[place] == name:
                            if len(keys):
                                _of_pair(
                                    rows,
                                    pick,
                                    fit,
                                    q,
                                    lower,
                                    upper,
                                    w,
                                    at,
                                    value,
                                    z,
                                    load,
                                    residual,
                                )
                                values[m] = z
                                keys[m, 0], keys[m, 1], keys[m, 2] = one, other, unit
                            m += 1
                        elif len(keys) == 0:
                            _of_pair(
                                rows, pick, fit, q, lower, upper, w, at, value, z, load, residual
                            )
                            for t in range(len(z)):
                                once[t] += z[t] * z[t]
                    upper += 1
    return m


@kernel
def _count(units: Ints, starts: Ints, score: Floats, width: float, first: int, last: int) -> int:
    n = 0
    # A row is not within a negative width of itself: the search for its window would not end.
    if not width >= 0.0:
        return n
    for q in range(units[first], units[last]):
        low = starts[q]
        for row in range(starts[q], starts[q + 1]):
            while score[row] - score[low] > width:
                low += 1
            n += row - low
    return n


@kernel
def _means(rows: _Rows, first: int, last: int, found: Floats) -> int:
    n = 0
    for q in range(rows.units[first], rows.units[last]):
        start, end = rows.starts[q], rows.starts[q + 1]
        for lower in range(start, end):
            upper = lower + 1
            while upper < end and rows.score[upper] - rows.score[lower] <= rows.width:
                differ = ((rows.masks[0, lower] ^ rows.masks[0, upper]) & ONE) != 0
                if differ and _pair_weight(rows, lower, upper, 1.0) > 0.0:
                    if len(found):
                        found[n] = 0.5 * (rows.score[upper] + rows.score[lower])
                    n += 1
                upper += 1
    return n
