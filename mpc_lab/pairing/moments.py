"""The sums that pass from pairing to inference. They add up: over blocks, machines and days."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from mpc_lab.pairing.series import Series, join_series
from mpc_lab.vocabulary import ITEM, Floats, Ints, Mode


@dataclass(frozen=True)
class Quadratic:
    r"""What one way of clustering contributes to a variance.

    For clusters :math:`k` with :math:`c_k` pairs and centred sum
    :math:`U_k = \sum_{p \in k} (d_p - \text{center})`.

    Attributes
    ----------
    cc, cu, uu : float64 arrays of one shape
        :math:`\sum_k c_k^2`, :math:`\sum_k c_k U_k` and :math:`\sum_k U_k^2`.
    """

    cc: Floats
    cu: Floats
    uu: Floats

    def at(self, delta: Floats) -> Floats:
        r"""Return :math:`\sum_k (U_k - \delta c_k)^2`."""
        return self.uu - 2 * delta * self.cu + delta**2 * self.cc

    def __add__(self, other: Quadratic) -> Quadratic:
        return Quadratic(self.cc + other.cc, self.cu + other.cu, self.uu + other.uu)

    def __getitem__(self, key: Any) -> Quadratic:
        return Quadratic(self.cc[key], self.cu[key], self.uu[key])

    def replace_row(self, row: int, other: Quadratic) -> Quadratic:
        """Return the same sums with one row of the first axis replaced."""
        new = [square.copy() for square in (self.cc, self.cu, self.uu)]
        for square, values in zip(new, (other.cc, other.cu, other.uu), strict=True):
            square[row] = values
        return Quadratic(*new)

    def times(self, scale: Floats) -> Quadratic:
        """Return the sums with each cluster multiplied by `scale`."""
        return Quadratic(self.cc * scale**2, self.cu * scale**2, self.uu * scale**2)


@dataclass(frozen=True)
class PairWeights:
    r"""Sums over pairs that do not count alike, as they add up; axes (mode, group, threshold).

    Pair p counts :math:`w_p`, its centred difference is :math:`x_p`. A mode of two sides has its
    weights in `Sides`; its row here is not a mode.

    Attributes
    ----------
    weight, total : float64 arrays
        :math:`W = \sum w_p` and :math:`\sum w_p x_p`.
    alone : Quadratic
        :math:`\sum w_p^2`, :math:`\sum w_p^2 x_p` and :math:`\sum w_p^2 x_p^2`.
    by_query : bool
        Whether what a pair counts depends on how many pairs its query has, so that modes share no
        rows.
    """

    weight: Floats
    total: Floats
    alone: Quadratic
    by_query: bool

    def take(self, pick: Callable[[Floats], Floats]) -> PairWeights:
        """Apply a choice to all arrays."""
        alone = Quadratic(*(pick(part) for part in (self.alone.cc, self.alone.cu, self.alone.uu)))
        return PairWeights(pick(self.weight), pick(self.total), alone, self.by_query)

    def scale(self, pairs: Floats) -> Floats:
        """Return the factor that gives the weights of `pairs` pairs a mean of 1."""
        return np.asarray(np.where(self.weight > 0, pairs, 1.0) / self._known)

    @property
    def delta(self) -> Floats:
        """The centred mean; 0 without a pair."""
        return np.asarray(self.total / self._known)

    @property
    def _known(self) -> Floats:
        return np.where(self.weight > 0, self.weight, 1.0)


@dataclass(frozen=True)
class Together(Quadratic):
    """How the sums up to two thresholds move together over units.

    Axes (mode, group, threshold, threshold′): Σc·c′, Σc·U′ and ΣU·U′. A mode of two sides has no
    row that means anything until its clusters are joined (`of`).

    Attributes
    ----------
    sides : float64 array (3, 4, group, threshold, threshold′), optional
        The products of either side.
    joined : float64 array (group, threshold, threshold′), optional
        For the mode of two sides, ΣU·U′ of clusters joined and centred at their estimates, where it
        goes by cells of places.
    """

    sides: Floats | None = None
    joined: Floats | None = None

    def of_groups(self, groups: Ints) -> Together:
        """Keep some of the groups."""
        return Together(
            self.cc[:, groups],
            self.cu[:, groups],
            self.uu[:, groups],
            None if self.sides is None else self.sides[:, :, groups],
            None if self.joined is None else self.joined[groups],
        )

    def of(self, mode: int, group: int, scaling: Scaling | None, index: Ints) -> list[Floats]:
        """Return the three sums of one cell at some thresholds.

        For a mode of two sides, the scaling is at these thresholds alone; NaN where the joint
        movement is not known.
        """
        both = np.ix_(index, index)
        if scaling is not None and self.sides is None:
            nothing = np.zeros((len(index), len(index)))
            unknown = np.full(nothing.shape, np.nan)
            joined = unknown if self.joined is None else self.joined[group][both]
            return [nothing, nothing, joined]
        if scaling is None or self.sides is None:
            return [square[mode, group][both] for square in (self.cc, self.cu, self.uu)]
        first = Scaling(scaling.alpha[..., :, None], scaling.eta[..., :, None])
        second = Scaling(scaling.alpha[..., None, :], scaling.eta[..., None, :])
        joined = first.join(self.sides[:, :, group][:, :, both[0], both[1]], second)
        return [joined.cc, joined.cu, joined.uu]


# ---- a mode of two sides: the ten products of (c, U) below and above a tie, over clusters

BELOW, ABOVE = range(2)
# Which two sides a product is of; and of counts c or centred sums U, the first and the second.
BELOW_BELOW, ABOVE_ABOVE, BELOW_ABOVE = range(3)
_CC, _CU, _UC, _UU = range(4)
# Either side as a combination of the rows below, above and tied: a tie is half on each.
_OF_ROWS = ((1.0, 0.0, -0.5), (0.0, 1.0, -0.5))


@dataclass(frozen=True)
class Sides:
    r"""Sums of a mode of two sides, whose estimate is the mean of what each side gives.

    A cluster k has the weight :math:`c_{kX}` on side X, *below* or *above*, and the centred sum
    :math:`U_{kX}`. Sums over clusters of their ten products add up, as those of one side do.

    Attributes
    ----------
    weight, total : float64 arrays (side, group, threshold)
        :math:`W_X = \sum_k c_{kX}` and :math:`\sum_k U_{kX}`.
    by : dict of float64 arrays (3, 4, group, threshold)
        For each family of clusters, of both sides below, both above, and one of each: Σc·c′, Σc·U′,
        ΣU·c′ and ΣU·U′.
    squares : dict of float64 arrays (3, group, threshold)
        Where items are summed over, Σc·c′ of the same sides over the items ``"inside"`` the group's
        side of the pairs, and over those ``"outside"``.
    """

    weight: Floats
    total: Floats
    by: dict[str, Floats]
    squares: dict[str, Floats] = field(default_factory=dict)

    def take(self, pick: Callable[[Floats], Floats]) -> Sides:
        """Apply a choice of groups and thresholds, the last two axes, to all arrays."""
        return Sides(
            pick(self.weight),
            pick(self.total),
            {name: pick(products) for name, products in self.by.items()},
            {name: pick(products) for name, products in self.squares.items()},
        )

    @property
    def means(self) -> Floats:
        """The centred mean of each side, as (side, group, threshold); NaN without a pair."""
        return self.total / np.where(self.weight > 0, self.weight, np.nan)

    @property
    def delta(self) -> Floats:
        """The centred estimate, as (group, threshold); NaN where a side has no pair."""
        return np.asarray(self.means.mean(axis=0))

    def scaled(self, pairs: Floats) -> Scaling:
        """Return the scaling that joins the two sums of a cluster, for a mean of `pairs` pairs."""
        half = 0.5 * pairs / np.where(self.weight > 0, self.weight, np.nan)
        return Scaling(half, self.means - self.delta)


class Scaling(NamedTuple):
    r"""How the two sides of a cluster become one: :math:`\sum_X \alpha_X (U_X - \eta_X c_X)`.

    With :math:`\alpha_X = P / 2W_X` and :math:`\eta_X` the mean of the side less the estimate, a
    cluster has the *pairs* :math:`\sum_X \alpha_X c_X` and the *sum* above, for which all rules for
    a mean over P pairs hold: the sum less the estimate times the pairs is P times the contribution
    of the cluster.

    Attributes
    ----------
    alpha, eta : float64 arrays (side, …)
    """

    alpha: Floats
    eta: Floats

    def join(self, products: Floats, other: Scaling | None = None) -> Quadratic:
        """Return Σc·c′, Σc·U′, ΣU·U′ of the joined clusters.

        Parameters
        ----------
        products : float64 array (3, 4, …)
            As `Sides.by` has them.
        other : Scaling, optional
            The scaling of the second factor, where it is at another threshold: the last axis but
            one of `products` is then about the first factor, and the last about the second.
        """
        second = self if other is None else other
        found = [0.0, 0.0, 0.0]
        for one in (BELOW, ABOVE):
            for two in (BELOW, ABOVE):
                cc, cu, uc, uu = _of_sides(products, one, two, turned=other is not None)
                eta, eta2 = self.eta[one], second.eta[two]
                weight = self.alpha[one] * second.alpha[two]
                found[0] = found[0] + weight * cc
                found[1] = found[1] + weight * (cu - eta2 * cc)
                found[2] = found[2] + weight * (uu - eta * cu - eta2 * uc + eta * eta2 * cc)
        return Quadratic(*(np.asarray(total) for total in found))

    def join_squares(self, products: Floats) -> Floats:
        """Return Σc² of the joined clusters, from an array (3, …) of Σc·c′."""
        below, above = self.alpha
        between = 2 * below * above * products[BELOW_ABOVE]
        own = below**2 * products[BELOW_BELOW] + above**2 * products[ABOVE_ABOVE]
        return np.asarray(own + between)


def _of_sides(products: Floats, one: int, two: int, *, turned: bool) -> Floats:
    """Return the four sums of the products of two sides, in this order."""
    if (one, two) == (ABOVE, BELOW):
        return turn(products[BELOW_ABOVE], turned)
    return np.asarray(products[BELOW_ABOVE if one != two else one])


def turn(four: Floats, thresholds: bool = False) -> Floats:
    """Return Σc·c′, Σc·U′, ΣU·c′, ΣU·U′ with the factors exchanged, and the last two axes too."""
    found = four[[_CC, _UC, _CU, _UU]]
    return np.asarray(np.swapaxes(found, -1, -2) if thresholds else found)


def fold_rows(products: Mapping[tuple[int, int], Floats], thresholds: bool = False) -> Floats:
    """Return the products of the two sides of a tie, from those of the rows that count ties fully.

    Parameters
    ----------
    products : mapping of (row, row) to float64 arrays (4, …)
        For the rows below (0), above (1) and tied (2), the lesser first.
    thresholds : bool
        Whether the last two axes are the thresholds of the first and of the second factor.
    """

    def of(one: int, two: int) -> Floats:
        return products[one, two] if one <= two else turn(products[two, one], thresholds)

    def combine(one: int, two: int) -> Any:
        return sum(
            a * b * of(k, m)
            for k, a in enumerate(_OF_ROWS[one])
            for m, b in enumerate(_OF_ROWS[two])
            if a and b
        )

    return np.stack([combine(BELOW, BELOW), combine(ABOVE, ABOVE), combine(BELOW, ABOVE)])


class SideTable(NamedTuple):
    """The numbers that give what a pair adds to the error of an estimate.

    Attributes
    ----------
    weight, offset : float64 arrays (part, group)
        The weight and offset of either side in each cell.
    line : float64 array (side, group, 4)
        k0, k1, slope and base.
    reach : float64 array (group,)
        The distance up to which a query must not have too many pairs to be visited.
    by_place : bool
        Whether sides and cells go by places; else sides go by scores, in one cell, and a tied pair
        is on both with half its weight.
    """

    weight: Floats
    offset: Floats
    line: Floats
    reach: Floats
    by_place: bool

    def of_groups(self, groups: Ints) -> SideTable:
        """Keep some of the groups."""
        return SideTable(
            self.weight[:, groups],
            self.offset[:, groups],
            self.line[:, groups],
            self.reach[groups],
            self.by_place,
        )


def join_tables(tables: Sequence[SideTable]) -> SideTable:
    """Join the tables of other groups."""
    return SideTable(
        np.concatenate([table.weight for table in tables], axis=1),
        np.concatenate([table.offset for table in tables], axis=1),
        np.concatenate([table.line for table in tables], axis=1),
        np.concatenate([table.reach for table in tables]),
        tables[0].by_place,
    )


class UnitWeights(NamedTuple):
    r"""What single units weigh in each cell; arrays (mode, group, threshold).

    Attributes
    ----------
    corrected : float64 array
        :math:`\sum_k (S_k / (1 - c_k / P))^2`, :math:`S_k` the sum over a unit's pairs of their
        difference less the mean of all: P² times the sum of the squared changes of the mean where
        a unit is left out. Of a mode of two sides the part of a unit on side X is divided by
        :math:`1 - c_{kX} / W_X` before the sides are added. NaN where one unit has all pairs.
    largest_share : float64 array
        The largest :math:`c_k / P`; of two sides, the mean of both shares.
    largest_square : float64 array
        The largest :math:`S_k^2`.
    """

    corrected: Floats
    largest_share: Floats
    largest_square: Floats


@dataclass(frozen=True)
class Moments:
    """Sums over the pairs up to each threshold, with axes (mode, group, threshold).

    The sums over clusters of a mode of two sides are those of its clusters joined (`Scaling`), and
    represent no others: what adds up is in `sides`. Where pairs do not count alike, sums over
    clusters are those of weights with a mean of 1, so that all rules for a mean over `pairs` pairs
    hold; what adds up is in `weights`.

    Attributes
    ----------
    modes : tuple of Mode
        What the first axis is about.
    edges : float64 array (group, threshold)
        The thresholds, ascending within a group.
    center : float64 array (group,)
        Subtracted from every difference before it is squared, so that large outcomes do not cancel.
    pairs, queries, clusters, items : int64 arrays (mode, group, threshold)
        Pairs; queries, clusters and items with a pair.
    by : dict of Quadratic
        ``"naive"``: each pair its own cluster. ``"query"``: clusters are units, or queries. Where
        items are summed over, ``"item"``, ``"dyad"`` (two items), and both inside a unit:
        ``"item_query"``, ``"dyad_query"``.
    squares : dict of float64 arrays
        Where items are summed over, Σc² over the items ``"inside"`` the group's side of the pairs,
        and over those ``"outside"``.
    dyads_once : bool
        Whether some dyads that may occur again were taken as occurring once, in lists with too
        many pairs to see which two items they are of.
    sides : Sides, optional
        Where a mode of two sides is summed over.
    cells : float64 array (weight or sum, part, group, threshold), optional
        Where its sides are compared inside cells of places: the pairs and centred sums of each
        part. The sums over clusters are then known only after a second pass.
    table : SideTable, optional
        The numbers that the second pass needs, at one threshold.
    owner : {"item", "producer"}
        Who the items of the sums over items are: their producers, where these are clusters.
    weights : PairWeights, optional
        Where pairs do not count alike.
    cr3 : dict of float64 arrays
        In place of Σ S² over ``"query"`` or ``"item"`` clusters, S the centred sum of a cluster
        about the estimate: the same with each S divided by 1 less the cluster's share of the pairs.
        Known after a second pass; NaN where one cluster has all pairs.
    series : Series, optional
        What of it adds up over logs.
    query_sides : bool
        Whether the mode of two sides has sums over queries alone, and not what single ones weigh,
        as in a pool inside cells of places: it is clustered by query, with the plain correction.
    """

    modes: tuple[Mode, ...]
    edges: Floats
    center: Floats
    pairs: Ints
    queries: Ints
    clusters: Ints
    items: Ints
    by: dict[str, Quadratic]
    squares: dict[str, Floats] = field(default_factory=dict)
    dyads_once: bool = False
    sides: Sides | None = None
    cells: Floats | None = None
    table: SideTable | None = None
    owner: str = ITEM
    weights: PairWeights | None = None
    cr3: dict[str, Floats] = field(default_factory=dict)
    series: Series | None = None
    query_sides: bool = False

    @property
    def by_query(self) -> bool:
        """Whether what a pair counts depends on how many pairs its query has."""
        return self.weights is not None and self.weights.by_query

    @property
    def total_weight(self) -> Floats:
        """What all pairs count, as they add up."""
        return self.pairs.astype(np.float64) if self.weights is None else self.weights.weight

    @property
    def scale(self) -> Floats:
        """The factor that turns additive sums over clusters into those of a mean over the pairs."""
        pairs = self.pairs.astype(np.float64)
        return np.ones(pairs.shape) if self.weights is None else self.weights.scale(pairs)

    def with_weights(self, weights: PairWeights) -> Moments:
        """Return moments whose sums over clusters, so far as they add up, are those of a mean."""
        pairs, delta = self.pairs.astype(np.float64), weights.delta
        scale = weights.scale(pairs)
        by = {name: sums.times(scale) for name, sums in self.by.items()}
        # Where a pair is a cluster by itself, Σc·U is read as ΣU.
        squares = scale**2 * weights.alone.at(delta)
        by["naive"] = Quadratic(pairs, pairs * delta, squares + pairs * delta**2)
        of_items = {name: sums * scale**2 for name, sums in self.squares.items()}
        return replace(self, by=by, squares=of_items, weights=weights)

    def without_weights(self) -> Moments:
        """Return moments whose sums over clusters are those that add up."""
        if self.weights is None:
            return self
        scale = 1 / self.weights.scale(self.pairs.astype(np.float64))
        by = {name: sums.times(scale) for name, sums in self.by.items()} | {
            "naive": self.weights.alone
        }
        of_items = {name: sums * scale**2 for name, sums in self.squares.items()}
        return replace(self, by=by, squares=of_items, weights=None)

    @property
    def two_sided(self) -> int | None:
        """The index of the mode of two sides, if there is one."""
        return next((k for k, mode in enumerate(self.modes) if mode.two_sided), None)

    def with_estimates(self, delta: Floats) -> Moments:
        """Return moments with the centred estimate of the mode of two sides, and no more of it."""
        row = self.two_sided
        assert row is not None
        pairs = self.pairs[row].astype(np.float64)
        unknown = np.full(pairs.shape, np.nan)
        by = dict(self.by)
        by["naive"] = by["naive"].replace_row(row, Quadratic(pairs, pairs * delta, unknown))
        for name in by.keys() - {"naive"}:
            by[name] = by[name].replace_row(row, Quadratic(unknown, unknown, unknown))
        return replace(self, by=by)

    def with_sides(self, sides: Sides | None) -> Moments:
        """Return moments with these sums of two sides, and what follows from them."""
        row = self.two_sided
        if sides is None or row is None:
            return self
        pairs = self.pairs[row].astype(np.float64)
        scaling, delta = sides.scaled(pairs), sides.delta
        by = {}
        for name, products in sides.by.items():
            joined = scaling.join(products)
            if name == "naive":
                # Where a pair is a cluster by itself, Σc·U is read as ΣU.
                squares = joined.at(delta)
                joined = Quadratic(pairs, pairs * delta, squares + pairs * delta**2)
            whole = self.by.get(name) or Quadratic(*(np.zeros(self.pairs.shape) for _ in range(3)))
            by[name] = whole.replace_row(row, joined)
        of_items = dict(self.squares)
        for name, products in sides.squares.items():
            of_items[name] = of_items[name].copy()
            of_items[name][row] = scaling.join_squares(products)
        return replace(self, sides=sides, by=self.by | by, squares=of_items)

    @property
    def mode_names(self) -> tuple[str, ...]:
        """What the modes are called."""
        return tuple(mode.name for mode in self.modes)

    def of_modes(self, modes: Sequence[str]) -> Moments:
        """Keep some of the modes, in this order."""
        rows = [self.mode_names.index(mode) for mode in modes]
        return replace(
            self,
            modes=tuple(self.modes[row] for row in rows),
            pairs=self.pairs[rows],
            queries=self.queries[rows],
            clusters=self.clusters[rows],
            items=self.items[rows],
            by={name: sums[rows] for name, sums in self.by.items()},
            squares={side: sums[rows] for side, sums in self.squares.items()},
            weights=self.weights and self.weights.take(lambda values: values[rows]),
            cr3={name: sums[rows] for name, sums in self.cr3.items()},
            series=self.series and self.series.of_modes(rows, self.two_sided),
            query_sides=self.query_sides and self.two_sided in rows,
            **self._kept_sides(any(self.modes[row].two_sided for row in rows)),
        )

    def _kept_sides(self, wanted: bool) -> dict[str, Any]:
        names = ("sides", "cells", "table")
        return {name: getattr(self, name) if wanted else None for name in names}

    def of_groups(self, groups: Ints) -> Moments:
        """Keep some of the groups."""
        return replace(
            self,
            edges=self.edges[groups],
            center=self.center[groups],
            pairs=self.pairs[:, groups],
            queries=self.queries[:, groups],
            clusters=self.clusters[:, groups],
            items=self.items[:, groups],
            by={name: sums[:, groups] for name, sums in self.by.items()},
            squares={side: sums[:, groups] for side, sums in self.squares.items()},
            cr3={name: sums[:, groups] for name, sums in self.cr3.items()},
            series=self.series and self.series.take(lambda values: values[..., groups, :]),
            sides=self.sides and self.sides.take(lambda values: values[..., groups, :]),
            cells=None if self.cells is None else self.cells[..., groups, :],
            weights=self.weights and self.weights.take(lambda values: values[..., groups, :]),
            table=self.table and self.table.of_groups(groups),
        )

    def at(self, index: Ints) -> Moments:
        """Keep the thresholds ``index[group, k]`` of each group."""
        group = np.arange(len(self.center))[:, None]

        def pick(values: Any) -> Any:
            return values[:, group, index]

        return replace(
            self,
            edges=self.edges[group, index],
            pairs=pick(self.pairs),
            queries=pick(self.queries),
            clusters=pick(self.clusters),
            items=pick(self.items),
            by={
                name: Quadratic(pick(sums.cc), pick(sums.cu), pick(sums.uu))
                for name, sums in self.by.items()
            },
            squares={side: pick(sums) for side, sums in self.squares.items()},
            cr3={name: pick(sums) for name, sums in self.cr3.items()},
            series=self.series and self.series.take(lambda values: values[..., group, index]),
            sides=self.sides and self.sides.take(lambda values: values[..., group, index]),
            cells=None if self.cells is None else self.cells[..., group, index],
            weights=self.weights and self.weights.take(pick),
        )


def join_groups(parts: list[Moments]) -> Moments:
    """Join moments of other groups, of the same modes and number of thresholds."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]

    def join(pick: Any, axis: int = 1) -> Any:
        return np.concatenate([pick(part) for part in parts], axis=axis)

    def join_sums(name: str) -> Quadratic:
        return Quadratic(
            join(lambda part: part.by[name].cc),
            join(lambda part: part.by[name].cu),
            join(lambda part: part.by[name].uu),
        )

    return Moments(
        modes=first.modes,
        edges=join(lambda part: part.edges, axis=0),
        center=join(lambda part: part.center, axis=0),
        pairs=join(lambda part: part.pairs),
        queries=join(lambda part: part.queries),
        clusters=join(lambda part: part.clusters),
        items=join(lambda part: part.items),
        by={name: join_sums(name) for name in first.by},
        squares={side: join(lambda part, side=side: part.squares[side]) for side in first.squares},
        dyads_once=any(part.dyads_once for part in parts),
        sides=_join_sides([part.sides for part in parts if part.sides is not None]),
        cells=_join_cells([part.cells for part in parts if part.cells is not None]),
        table=_join_tables([part.table for part in parts if part.table is not None]),
        owner=first.owner,
        weights=_join_weights([part.weights for part in parts if part.weights is not None]),
        cr3={name: join(lambda part, name=name: part.cr3[name]) for name in first.cr3},
        series=join_series([part.series for part in parts if part.series is not None]),
        query_sides=first.query_sides,
    )


def _join_weights(parts: list[PairWeights]) -> PairWeights | None:
    if not parts:
        return None

    def join(pick: Callable[[PairWeights], Floats]) -> Floats:
        return np.concatenate([pick(part) for part in parts], axis=1)

    alone = Quadratic(
        join(lambda part: part.alone.cc),
        join(lambda part: part.alone.cu),
        join(lambda part: part.alone.uu),
    )
    weight, total = join(lambda part: part.weight), join(lambda part: part.total)
    return PairWeights(weight, total, alone, parts[0].by_query)


def _join_cells(parts: list[Floats]) -> Floats | None:
    return np.concatenate(parts, axis=-2) if parts else None


def _join_tables(parts: list[SideTable]) -> SideTable | None:
    return join_tables(parts) if parts else None


def _join_sides(parts: list[Sides]) -> Sides | None:
    if not parts:
        return None

    def join(arrays: list[Floats]) -> Floats:
        return np.concatenate(arrays, axis=-2)

    return Sides(
        join([part.weight for part in parts]),
        join([part.total for part in parts]),
        {name: join([part.by[name] for part in parts]) for name in parts[0].by},
        {name: join([part.squares[name] for part in parts]) for name in parts[0].squares},
    )
