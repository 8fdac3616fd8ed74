"""Both sides of a tie at the thresholds of a headline: their mean inside cells, and their jump."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mpc_lab.pairing.log import Log
from mpc_lab.pairing.measure import NO_THRESHOLD, goes_by_place, measure_items, words_of
from mpc_lab.pairing.moments import (
    Moments,
    Quadratic,
    Scaling,
    Sides,
    SideTable,
    UnitWeights,
    join_groups,
)
from mpc_lab.pairing.second_sweep import add_weights
from mpc_lab.pairing.sided import (
    NUMBER,
    Centred,
    PartSums,
    SidedSums,
    mean_table,
    part_sums,
    place_table,
    sum_sides,
    unit_sides,
)
from mpc_lab.pairing.walk import Source, Walk
from mpc_lab.scoring import Rule
from mpc_lab.vocabulary import SYMMETRIC, Floats, Ints


@dataclass(frozen=True)
class TwoSides:
    """The results of comparing the two sides of a tie, at one threshold of each group.

    Attributes
    ----------
    own : Moments
        Those that were given, with the sums of a mode of two sides where it goes by places.
    place : Moments
        The moments of half the difference of the two sides' intercepts, as a single mode.
    weights : UnitWeights
        What single units weigh in the mode of two sides, where it goes by places; else NaN.
    overlap, shown_above : float64 arrays (group,)
        See `mpc_lab.pairing.places.Combined` and `mpc_lab.pairing.sided.PartSums`; NaN where the
        log has no positions.
    left_out : int64 array (query, 2)
        Queries with too many pairs to look at: see `mpc_lab.pairing.sided.PartSums`.
    """

    own: Moments
    place: Moments
    weights: UnitWeights
    overlap: Floats
    shown_above: Floats
    left_out: Ints


def compare_sides(source: Source, rule: Rule, own: Moments) -> TwoSides:
    """Compare the two sides at the one threshold that each group of moments has.

    Parameters
    ----------
    source : Source
    rule : Rule
    own : Moments
        At one threshold; without sums over items.
    """
    by_place = goes_by_place(source)
    order, found = [], []
    for groups, walk in source.walks(rule):
        for word, here in words_of(len(groups)):
            order.append(groups[here])
            found.append(_compare(walk, word, own.of_groups(groups[here]), by_place))
    back = np.argsort(np.concatenate(order), kind="stable")
    return TwoSides(
        join_groups([part.own for part in found]).of_groups(back),
        join_groups([part.place for part in found]).of_groups(back),
        UnitWeights(
            *(
                np.concatenate(parts, axis=1)[:, back]
                for parts in zip(*(part.weights for part in found), strict=True)
            )
        ),
        np.concatenate([part.overlap for part in found])[back],
        np.concatenate([part.shown_above for part in found])[back],
        np.unique(np.concatenate([part.left_out for part in found]), axis=0),
    )


def _compare(walk: Walk, word: int, own: Moments, by_place: bool) -> TwoSides:
    epsilon = np.where(own.edges[:, 0] >= 0, own.edges[:, 0], NO_THRESHOLD)
    parts = part_sums(walk, word, epsilon, own.center, by_place)
    unknown = np.full(len(epsilon), np.nan)
    overlap, shown_above = unknown, unknown
    weights = UnitWeights(*np.full((3, *own.pairs.shape), np.nan))
    table = place_table(parts)
    # Differences are not centred here: a center would have to be added back to the estimate.
    table = table._replace(offset=table.offset + own.center)
    tables = [Centred(np.zeros(len(epsilon)), table)]
    row = own.two_sided
    if by_place and row is not None:
        tables.append(Centred(own.center, mean_table(parts)))
    place, *means = sum_sides(walk, word, epsilon, tables)
    if by_place:
        overlap, shown_above = parts.combine().overlap, parts.shown_above
    if row is not None and means:
        own = replace(_without_left_out(own, parts), table=tables[1].table)
        own = own.with_sides(means[0].sides)
        weights = _of_mode(own, row, means[0].weights)
        own = add_weights(own, weights)
    jump = place_moments(own, parts, table, place)
    return TwoSides(own, jump, weights, overlap, shown_above, parts.left_out)


def _without_left_out(own: Moments, parts: PartSums) -> Moments:
    """Subtract queries with too many pairs to look at from the counts of the mode of two sides."""
    row = own.two_sided
    pairs, queries, clusters = own.pairs.copy(), own.queries.copy(), own.clusters.copy()
    pairs[row] = parts.sums[..., NUMBER].sum(axis=0).astype(np.int64)[:, None]
    queries[row] -= parts.n_left_out[0][:, None]
    clusters[row] -= parts.n_left_out[1][:, None]
    return replace(own, pairs=pairs, queries=queries, clusters=clusters)


def _of_mode(own: Moments, mode: int, found: UnitWeights) -> UnitWeights:
    """Return what units weigh in one mode, of sums times the pairs; NaN in the others."""
    pairs = own.pairs[[mode]].astype(np.float64)
    weights = UnitWeights(*np.full((3, *own.pairs.shape), np.nan))
    for whole, values, power in zip(weights, found, (2, 0, 2), strict=True):
        whole[[mode]] = values * pairs**power
    return weights


def place_moments(own: Moments, parts: PartSums, table: SideTable, found: SidedSums) -> Moments:
    """Return moments of the jump between the two sides, as those of a mode of two sides."""
    pairs = np.ceil(parts.sums[..., NUMBER].sum(axis=0)).astype(np.int64)[None, :, None]
    nothing, clusters = np.zeros(pairs.shape), found.clusters
    place = Moments(
        modes=(SYMMETRIC,),
        edges=own.edges,
        center=np.zeros(len(own.center)),
        pairs=pairs,
        queries=clusters[None],
        clusters=clusters[None],
        items=np.zeros(pairs.shape, dtype=np.int64),
        by={name: Quadratic(nothing, nothing, nothing) for name in ("naive", "query")},
        table=table,
    ).with_sides(found.sides)
    return add_weights(place, _of_mode(place, 0, found.weights))


def compare_on_curve(
    source: Source, rule: Rule, swept: Moments, part: Moments, *, items: bool
) -> tuple[Moments, Floats]:
    """Compare the two sides inside cells of places at every threshold of one group.

    Parameters
    ----------
    source : Source
    rule : Rule
    swept : Moments
        The moments of one group, without sums over items.
    part : Moments
        The same with what its other modes need.
    items : bool
        Whether to sum over items too.

    Returns
    -------
    Moments
        `part` with the sums of the mode of two sides.
    float64 array (threshold, threshold)
        Over units, how its estimates move together, times the pairs at both thresholds.
    """
    row = swept.two_sided
    assert row is not None
    found, tables = [], []
    for k in range(swept.edges.shape[1]):
        own = swept.at(np.array([[k]])).of_modes([swept.modes[row].name])
        own = compare_sides(source, rule, own).own
        assert own.table is not None
        tables.append(own.table)
        found.append(measure_items(source, rule, own) if items else own)
    sides = [own.sides for own in found if own.sides is not None]
    joined = part.with_sides(_join_thresholds(sides))
    cr3 = {name: values.copy() for name, values in joined.cr3.items()}
    for name, values in cr3.items():
        values[row] = np.concatenate([own.cr3[name][0] for own in found], axis=-1)
    return replace(joined, cr3=cr3), _moving(source, rule, joined, tables)


def _join_thresholds(parts: list[Sides]) -> Sides:
    def join(arrays: list[Floats]) -> Floats:
        return np.concatenate(arrays, axis=-1)

    return Sides(
        join([part.weight for part in parts]),
        join([part.total for part in parts]),
        {name: join([part.by[name] for part in parts]) for name in parts[0].by},
        {name: join([part.squares[name] for part in parts]) for name in parts[0].squares},
    )


def _moving(source: Source, rule: Rule, joined: Moments, tables: list[SideTable]) -> Floats:
    """Return ΣUU′ over units, U centred at the estimate of its threshold; one group."""
    row = joined.two_sided
    assert row is not None
    assert joined.sides is not None
    pairs = joined.pairs[row, 0].astype(np.float64)
    n_bins = len(pairs)
    scaling = joined.sides.scaled(pairs[None])
    delta = joined.sides.delta[0]
    task = partial(_moving_block, joined.edges[0], joined.center, tables, scaling, delta)
    ((_, walk),) = source.walks(rule)
    return np.asarray(walk.total(task, "sweeping for the band", np.zeros((n_bins, n_bins))))


def _moving_block(
    edges: Floats,
    center: Floats,
    tables: list[SideTable],
    scaling: Scaling,
    delta: Floats,
    log: Log,
    first: int,
    last: int,
) -> Floats:
    each = np.zeros((len(edges), last - first))
    for k, table in enumerate(tables):
        units, _ = unit_sides(log, 0, edges[[k]], [Centred(center, table)], first, last)
        for side in range(2):
            c, u = units[0, :, 0, side, 0], units[0, :, 0, side, 1]
            alpha, eta = scaling.alpha[side, 0, k], scaling.eta[side, 0, k]
            each[k] += alpha * (u - (eta + delta[k]) * c)
    return np.nan_to_num(each) @ np.nan_to_num(each).T
