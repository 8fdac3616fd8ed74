"""A second pass over the pairs at one threshold: how much each adds to the error of an estimate.

Where an estimate is made of cells of places, or is an intercept, what a pair adds to its error is
known only once the sums of all pairs are. So the pairs up to each group's threshold are walked
twice: for the sums of each part (one side in one cell), and for what clusters add. Both take
numbers from tables, so that the mean of two sides and the effect of place are one pass with two
tables. A pair counts c on its side, and its sum is

    c · [(k0 + k1·Δ) · (x − offset − slope·Δ) + base],

x the centred difference, Δ the distance of the scores. On either side the terms in the first
brackets add up to 0, so that the mean of the side is its base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mpc_lab.pairing.bookings import (
    CORRECTED,
    LARGEST_SHARE,
    LARGEST_SQUARE,
    N_WEIGHED,
    NOTHING_LEFT,
)
from mpc_lab.pairing.entries import (
    OF_BOTH,
    OF_GROUP,
    OF_OTHER,
    Entries,
    GroupLog,
    Room,
    make_room,
    write,
)
from mpc_lab.pairing.kernels import ONE, contrast, inlined, kernel, lowest
from mpc_lab.pairing.log import Log, Tally
from mpc_lab.pairing.moments import ABOVE, BELOW, Sides, SideTable, UnitWeights
from mpc_lab.pairing.places import (
    FEWEST,
    N_CELLS,
    Combined,
    cell_of,
    combine_cells,
    count_left_out,
    find_left_out,
    too_many,
)
from mpc_lab.pairing.walk import Walk
from mpc_lab.pairing.weighting import BY_PAIRS, Weights
from mpc_lab.vocabulary import Floats, Ints, Masks

# The sums over the pairs of a part: their weights, Σx, ΣΔ, ΣΔ², ΣΔx; the number of pairs in which
# the item of the group has the lower score; and the number of all pairs.
COUNT, SUM, DISTANCE, DISTANCE_SQUARED, DISTANCE_SUM, LOWER, NUMBER = range(7)
N_PART_SUMS = 7
# A line needs this many distinct distances.
FEWEST_DISTANCES = 4


class PartSums(NamedTuple):
    """The sums of the pairs up to one threshold, by part and group.

    Attributes
    ----------
    sums : float64 array (part, group, 7)
    distances : float64 array (side, group, 4)
        Up to four distinct distances, ascending; infinite where there are fewer.
    reach : float64 array (group,)
        See `SideTable`.
    by_place : bool
    left_out : int64 array (query, 2)
        For each query with too many close pairs to visit: its number in the order of the walk, and
        its first row.
    n_left_out : int64 array (2, group)
        How many of these queries, and of units with no other query, have a pair.
    """

    sums: Floats
    distances: Floats
    reach: Floats
    by_place: bool
    left_out: Ints
    n_left_out: Ints

    @property
    def cells(self) -> Floats:
        """The sums as (side, cell, group, 7)."""
        return self.sums.reshape(2, -1, *self.sums.shape[1:])

    @property
    def fewest(self) -> float:
        """How many pairs a side of a cell must have to count."""
        return FEWEST if self.by_place else 0.0

    def combine(self) -> Combined:
        """Compare both sides inside cells."""
        cells = self.cells
        return combine_cells(cells[..., COUNT], cells[..., SUM], self.fewest, cells[..., NUMBER])

    @property
    def shown_above(self) -> Floats:
        """The share of pairs whose item of the group has the lower score and was shown above.

        NaN with fewer than 20 such pairs.
        """
        lower = self.cells[..., LOWER].sum(axis=1)
        number = lower.sum(axis=0)
        return np.asarray(lower[ABOVE] / np.where(number >= 20, number, np.nan))


def part_sums(walk: Walk, word: int, epsilon: Floats, center: Floats, by_place: bool) -> PartSums:
    """Sum over the pairs up to each group's threshold, by part.

    Parameters
    ----------
    walk : Walk
    word : int
        Which word of the masks.
    epsilon, center : float64 arrays (group,)
        The threshold and center of each group.
    by_place : bool
    """
    task = partial(_sum_block, word, epsilon, center, by_place)
    n_parts = 2 * (N_CELLS if by_place else 1)
    sums = np.zeros((n_parts, len(epsilon), N_PART_SUMS))
    distances = np.full((2, len(epsilon), FEWEST_DISTANCES), np.inf)
    left_out, n_left_out = [np.empty((0, 2), np.int64)], np.zeros((2, len(epsilon)), np.int64)
    n_queries = 0
    for of_block, seen, long, with_pairs, more in walk(task, "comparing both sides"):
        sums += of_block
        distances = _few_distinct(np.concatenate([distances, seen], axis=-1))
        left_out.append(long + np.array([n_queries, 0]))
        n_left_out += with_pairs
        n_queries += more
    reach = np.full(len(epsilon), epsilon.max())
    return PartSums(sums, distances, reach, by_place, np.concatenate(left_out), n_left_out)


def _few_distinct(values: Floats) -> Floats:
    """Return the four smallest distinct numbers of the last axis, infinite beyond those."""
    values = np.sort(values, axis=-1)
    values[..., 1:][values[..., 1:] == values[..., :-1]] = np.inf
    return np.sort(values, axis=-1)[..., :FEWEST_DISTANCES]


def _sum_block(
    word: int, epsilon: Floats, center: Floats, by_place: bool, log: Log, first: int, last: int
) -> tuple[Floats, Floats, Ints, Ints, int]:
    n_cells = N_CELLS if by_place else 1
    sums = np.zeros((2 * n_cells, len(epsilon), N_PART_SUMS))
    distances = np.full((2, len(epsilon), FEWEST_DISTANCES), np.inf)
    rows = (log.units, log.starts, log.score, log.outcome, log.masks[word], log.tie, log.sign)
    how = (reach_groups(epsilon), center, by_place, n_cells)
    factor = weigh_queries(log, word, epsilon, first, last)
    _sum_parts(*rows, *how, factor, first, last, sums, distances)
    from_, to = int(log.units[first]), int(log.units[last])
    long = (
        find_left_out(log, from_, to, float(epsilon.max())) if by_place else np.empty(0, np.int64)
    )
    named = np.stack([long, log.row[log.starts[from_ + long]]], axis=1)
    return sums, distances, named, count_left_out(log, word, epsilon, from_ + long), to - from_


class Reached(NamedTuple):
    """Which groups a distance is within the threshold of.

    Attributes
    ----------
    ends : float64 array (end,)
        The distinct thresholds, ascending.
    groups : uint64 array (end,)
        The groups whose threshold is at least this long.
    unscale : float64 array (group,)
        One over the scale of each group's distances; see `scales_of`.
    """

    ends: Floats
    groups: Masks
    unscale: Floats


def reach_groups(epsilon: Floats) -> Reached:
    """Sort the thresholds of groups, so that a pair is held against one of them at a time."""
    ends = np.unique(epsilon)
    bits = ONE << np.arange(len(epsilon), dtype=np.uint64)
    groups = np.array([np.bitwise_or.reduce(bits[epsilon >= end]) for end in ends])
    return Reached(ends, groups, 1.0 / scales_of(epsilon))


def scales_of(epsilon: Floats) -> Floats:
    """Return powers of 2 near the thresholds, so that squares of distances over these exist.

    One over any of them exists too.
    """
    known = np.where(np.isfinite(epsilon) & (epsilon > 0), epsilon, 1.0)
    known = np.maximum(known, np.finfo(np.float64).tiny)
    return np.asarray(np.ldexp(1.0, np.frexp(known)[1] - 1), dtype=np.float64)


# ---- tables


def mean_table(found: PartSums) -> SideTable:
    """Return the table of the mean of two sides, compared inside cells."""
    cells, joined = found.cells, found.combine()
    weight = joined.share / np.where(joined.share > 0, cells[..., COUNT], 1.0)
    base = (joined.share * joined.means).sum(axis=1)
    line = np.stack([np.ones_like(base), np.zeros_like(base), np.zeros_like(base), base], axis=-1)
    n_parts = len(found.sums)
    means = joined.means.reshape(n_parts, -1)
    return SideTable(weight.reshape(n_parts, -1), means, line, found.reach, found.by_place)


def place_table(found: PartSums) -> SideTable:
    r"""Return the table of half the difference of the two sides' intercepts.

    On either side d is regressed on 1, Δ with the weights that pairs have in the mean of two sides.
    A side with fewer than 4 distinct distances has no line: its weights are 0.
    """
    cells, joined = found.cells, found.combine()
    weight = joined.share / np.where(joined.share > 0, cells[..., COUNT], 1.0)
    moments = np.einsum("scg,scgk->sgk", weight, cells)
    s0, s1, s2 = (moments[..., k] for k in (COUNT, DISTANCE, DISTANCE_SQUARED))
    t0, t1 = moments[..., SUM], moments[..., DISTANCE_SUM]
    enough = np.isfinite(found.distances[..., -1]).all(axis=0)
    spread = s0 * s2 - s1**2
    usable = enough & (spread > 1e-12 * s2).all(axis=0)
    safe = np.where(usable, spread, 1.0)
    slope, intercept = (s0 * t1 - s1 * t0) / safe, (s2 * t0 - s1 * t1) / safe
    sign = np.array([-1.0, 1.0])[:, None]
    # The loading of a pair in the intercept is c·(s2 − s1·Δ)/spread.
    line = np.stack([sign * s2 / safe, -sign * s1 / safe, slope, sign * intercept], axis=-1)
    n_parts = len(found.sums)
    kept = np.where(usable, weight, 0.0).reshape(n_parts, -1)
    offset = np.repeat(intercept[:, None], cells.shape[1], axis=1).reshape(n_parts, -1)
    return SideTable(kept, offset, line, found.reach, found.by_place)


# ---- what units add


class SidedSums(NamedTuple):
    """What clusters add to the error of an estimate made of two sides, at one threshold.

    Attributes
    ----------
    sides : Sides
    clusters : int64 array (group, 1)
        The units with such a pair.
    weights : UnitWeights
        What single units weigh, as (1, group, 1), of sums that are not yet times the pairs.
    """

    sides: Sides
    clusters: Ints
    weights: UnitWeights


class Centred(NamedTuple):
    """A table, and what is subtracted from the differences of each group before it is used."""

    center: Floats
    table: SideTable


def sum_sides(walk: Walk, word: int, epsilon: Floats, tables: Sequence[Centred]) -> list[SidedSums]:
    """Sum over units what the pairs up to each group's threshold add to the errors of estimates.

    Either side of a table weighs 1, or 0 where it has no pair, and its mean is the base of its
    line: so what single units weigh is known in the same pass. Pairs are visited once for all
    tables, of which each has an estimate.
    """
    task = partial(_products_of_block, word, epsilon, tables)
    n_tables, n_groups = len(tables), len(epsilon)
    start = Tally(
        np.zeros(n_tables * (6 + 2 * 12) * n_groups),
        np.zeros((2 * n_tables, n_groups)),
        np.zeros((0, 0)),
    )
    tally = walk.total(task, "comparing both sides", start)
    sums, largest = tally.sums.reshape(n_tables, -1), tally.largest.reshape(n_tables, 2, -1)
    return [_unpack(*of_table, n_groups) for of_table in zip(sums, largest, strict=True)]


def _unpack(sums: Floats, largest: Floats, n_groups: int) -> SidedSums:
    clusters, corrected = sums[: 2 * n_groups].reshape(2, -1)
    found = sums[2 * n_groups :]
    weight, total = found[: 4 * n_groups].reshape(2, 2, n_groups, 1)
    products = found[4 * n_groups :].reshape(2, 3, 4, n_groups, 1)
    weights = (corrected, *largest)
    return SidedSums(
        Sides(weight, total, {"naive": products[0], "query": products[1]}),
        clusters.astype(np.int64)[:, None],
        UnitWeights(*(values[None, :, None] for values in weights)),
    )


def _products_of_block(
    word: int, epsilon: Floats, tables: Sequence[Centred], log: Log, first: int, last: int
) -> Tally:
    units, alone = unit_sides(log, word, epsilon, tables, first, last)
    n_groups, found, largest = len(epsilon), [], []
    for k, (_, table) in enumerate(tables):
        clusters, sums, query = (
            np.zeros(n_groups),
            np.zeros((2, 2, n_groups)),
            np.zeros((3, 4, n_groups)),
        )
        weights = np.zeros((N_WEIGHED, n_groups))
        base = np.ascontiguousarray(table.line[..., -1])
        _sum_products(units[k], base, clusters, sums, query, weights)
        found += [clusters, weights[CORRECTED], sums, alone[k], query]
        largest.append(weights[[LARGEST_SHARE, LARGEST_SQUARE]])
    return Tally(
        np.concatenate([part.ravel() for part in found]),
        np.concatenate(largest),
        np.zeros((0, 0)),
    )


def unit_sides(
    log: Log, word: int, epsilon: Floats, tables: Sequence[Centred], first: int, last: int
) -> tuple[Floats, Floats]:
    """Return the weight and the sum of units on either side, and the products of single pairs.

    Returns
    -------
    units : float64 array (table, unit, group, side, 2)
    alone : float64 array (table, 3, 4, group)
    """
    units = np.zeros((len(tables), last - first, len(epsilon), 2, 2))
    alone = np.zeros((len(tables), 3, 4, len(epsilon)))
    by_place, reach = tables[0].table.by_place, float(tables[0].table.reach.max())
    rows = (log.units, log.starts, log.score, log.outcome, log.masks[word], log.tie, log.sign)
    _sum_units(
        *rows,
        reach_groups(epsilon),
        np.stack([center for center, _ in tables]),
        np.stack([table.weight for _, table in tables]),
        np.stack([table.offset for _, table in tables]),
        np.stack([table.line for _, table in tables]),
        reach,
        by_place,
        N_CELLS if by_place else 1,
        weigh_queries(log, word, epsilon, first, last),
        first,
        last,
        units,
        alone,
    )
    return units, alone


def weigh_queries(log: Log, word: int, epsilon: Floats, first: int, last: int) -> Floats | None:
    """Return what a pair of each query counts, as (query, group); None where every pair counts 1.

    Up to its threshold a group has the pairs of both sides, wherever they were shown.
    """
    weights = log.weights
    if weights is None:
        return None
    queries = slice(int(log.units[first]), int(log.units[last]))
    pairs = np.zeros((queries.stop - queries.start, len(epsilon)))
    if weights.estimand != BY_PAIRS:
        rows = (log.starts, log.score, log.masks[word])
        _count_pairs(*rows, epsilon, queries.start, queries.stop, pairs)
    of_block = Weights(weights.weight[queries, None], weights.estimand)
    return np.ascontiguousarray(of_block.of_pairs(pairs) + np.zeros(pairs.shape))


# ---- what items add


def list_sided(
    group: GroupLog, table: SideTable, share: int = 0, shares: int = 1
) -> list[tuple[Entries, Entries]]:
    """List the pairs of a group on either side, seen from items and from dyads; and no ties.

    Parameters
    ----------
    group : GroupLog
        With one threshold.
    table : SideTable
        A table of this group alone.
    share, shares : int
        Only entries whose key leaves this rest when divided by this many shares.
    """
    columns = (np.ascontiguousarray(values[:, 0]) for values in table[:3])
    n_cells, reach = N_CELLS if table.by_place else 1, float(table.reach[0])
    epsilon = group.edges[-1:]
    how = (float(epsilon[0]), float(scales_of(epsilon)[0]), group.center, group.bit)
    alone = replace(group.log, masks=group.member[None].astype(np.uint64))
    factor = weigh_queries(alone, 0, epsilon, 0, len(alone.units) - 1)
    more = (*columns, reach, table.by_place, n_cells, group.n_items, share, shares)
    rows = (*group.rows[:5], group.log.tie, group.log.cluster, group.log.sign)
    # Few rows have a close neighbour: the others need not be walked for every group.
    close = np.flatnonzero(np.diff(group.log.score) <= how[0])

    def fill(items: Room, dyads: Room) -> None:
        arguments: tuple[Any, ...] = (*rows, close, *how, *more, factor, items, dyads)
        _list_sides(*arguments)

    counted = make_room([0, 0]), make_room([0, 0])
    fill(*counted)
    rooms = [make_room(room.next.tolist(), weighted=True) for room in counted]
    starts = [room.next.copy() for room in rooms]
    fill(rooms[0], rooms[1])
    found = [
        tuple(
            room.entries.take(slice(start[side], room.end[side]))
            for room, start in zip(rooms, starts, strict=True)
        )
        for side in (BELOW, ABOVE)
    ]
    none = tuple(room.entries.take(slice(0)) for room in rooms)
    return [*found, none]  # type: ignore[list-item]


# ---- kernels


@inlined
def part_of_pair(
    in_lower: bool, place: int, other: int, distance: float, by_place: bool, n_cells: int
) -> int:
    """Return the part of a pair; of a tied one without places the one below.

    Parameters
    ----------
    in_lower : bool
        Whether the item of the group has the lower score, or is the first of a tie.
    place, other : int
        Places of the group's item and of the other.
    """
    if by_place:
        if place < other:
            return n_cells + cell_of(place, other)
        return cell_of(other, place)
    return 0 if in_lower or distance == 0 else 1


@inlined
def _cell_of_pair(tie_lower: int, tie_upper: int, by_place: bool) -> int:
    """Return the cell of the places of a pair; of two rows the one with more of a tie is above."""
    if not by_place:
        return 0
    return cell_of(-max(tie_lower, tie_upper), -min(tie_lower, tie_upper))


@inlined
def _side_of_pair(
    in_lower: bool, tie_lower: int, tie_upper: int, distance: float, by_place: bool
) -> int:
    """Return the side of a pair; of a tied one without places the side below."""
    if by_place:
        return 1 if in_lower == (tie_lower > tie_upper) else 0
    return 0 if in_lower or distance == 0 else 1


@kernel
def _count_pairs(
    starts: Ints, score: Floats, mask: Masks, epsilon: Floats, first: int, last: int, pairs: Floats
) -> None:
    """Count the pairs of each query up to each group's threshold."""
    reach = epsilon.max()
    for q in range(first, last):
        for lower in range(starts[q], starts[q + 1]):
            for upper in range(lower + 1, starts[q + 1]):
                distance = score[upper] - score[lower]
                if distance > reach:
                    break
                differ = mask[lower] ^ mask[upper]
                while differ:
                    g = lowest(differ)
                    differ &= differ - ONE
                    if distance <= epsilon[g]:
                        pairs[q - first, g] += 1.0


@kernel
def _sum_parts(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    tie: Ints,
    sign: bool,
    reached: Reached,
    center: Floats,
    by_place: bool,
    n_cells: int,
    factor: Floats | None,
    first: int,
    last: int,
    sums: Floats,
    distances: Floats,
) -> None:
    ends, groups, unscale = reached.ends, reached.groups, reached.unscale
    for q in range(units[first], units[last]):
        if by_place and too_many(score, starts[q], starts[q + 1], ends[-1]):
            continue
        for lower in range(starts[q], starts[q + 1]):
            at = 0
            for upper in range(lower + 1, starts[q + 1]):
                distance = score[upper] - score[lower]
                if distance > ends[-1]:
                    break
                while distance > ends[at]:
                    at += 1
                differ = (mask[lower] ^ mask[upper]) & groups[at]
                if not differ:
                    continue
                d = contrast(outcome[lower] - outcome[upper], sign)
                cell = _cell_of_pair(tie[lower], tie[upper], by_place)
                both = distance == 0 and not by_place
                c = 0.5 if both else 1.0
                while differ:
                    g = lowest(differ)
                    differ &= differ - ONE
                    in_lower = (mask[lower] & (ONE << np.uint64(g))) != 0
                    x = (d if in_lower else -d) - center[g]
                    f = 1.0
                    if factor is not None:
                        f = factor[q - units[first], g]
                    near = distance * unscale[g]
                    from_ = _side_of_pair(in_lower, tie[lower], tie[upper], distance, by_place)
                    for side in range(from_, from_ + 2 if both else from_ + 1):
                        part = side * n_cells + cell
                        sums[part, g, NUMBER] += c
                        sums[part, g, COUNT] += c * f
                        sums[part, g, SUM] += c * f * x
                        sums[part, g, DISTANCE] += f * near
                        sums[part, g, DISTANCE_SQUARED] += f * near * near
                        sums[part, g, DISTANCE_SUM] += f * near * x
                        if in_lower and distance > 0:
                            sums[part, g, LOWER] += 1.0
                        if distances[side, g, FEWEST_DISTANCES - 1] == np.inf:
                            _see_distance(distances[side, g], distance)


@inlined
def _see_distance(seen: Floats, distance: float) -> None:
    """Keep the first few distinct distances."""
    for k in range(len(seen)):
        if seen[k] == distance:
            return
        if seen[k] == np.inf:
            seen[k] = distance
            return


@kernel
def _sum_units(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    tie: Ints,
    sign: bool,
    reached: Reached,
    center: Floats,
    weight: Floats,
    offset: Floats,
    line: Floats,
    reach: float,
    by_place: bool,
    n_cells: int,
    factor: Floats | None,
    first: int,
    last: int,
    found: Floats,
    alone: Floats,
) -> None:
    """Add what pairs give under each table; arrays of tables have them first."""
    ends, groups, unscale = reached.ends, reached.groups, reached.unscale
    for unit in range(first, last):
        for q in range(units[unit], units[unit + 1]):
            if by_place and too_many(score, starts[q], starts[q + 1], reach):
                continue
            for lower in range(starts[q], starts[q + 1]):
                at = 0
                for upper in range(lower + 1, starts[q + 1]):
                    distance = score[upper] - score[lower]
                    if distance > ends[-1]:
                        break
                    while distance > ends[at]:
                        at += 1
                    differ = (mask[lower] ^ mask[upper]) & groups[at]
                    if not differ:
                        continue
                    d = contrast(outcome[lower] - outcome[upper], sign)
                    cell = _cell_of_pair(tie[lower], tie[upper], by_place)
                    while differ:
                        g = lowest(differ)
                        differ &= differ - ONE
                        in_lower = (mask[lower] & (ONE << np.uint64(g))) != 0
                        near, f = distance * unscale[g], 1.0
                        if factor is not None:
                            f = factor[q - units[first], g]
                        side = _side_of_pair(in_lower, tie[lower], tie[upper], distance, by_place)
                        part = side * n_cells + cell
                        for t in range(len(weight)):
                            x = (d if in_lower else -d) - center[t, g]
                            if distance == 0 and not by_place:
                                c0 = 0.5 * f * weight[t, 0, g]
                                c1 = 0.5 * f * weight[t, 1, g]
                                u0 = c0 * sum_of_pair(x, near, offset[t, 0, g], line[t, 0, g])
                                u1 = c1 * sum_of_pair(x, near, offset[t, 1, g], line[t, 1, g])
                                _add_pair(found[t, unit - first, g, 0], alone[t, 0], g, c0, u0)
                                _add_pair(found[t, unit - first, g, 1], alone[t, 1], g, c1, u1)
                                alone[t, 2, 0, g] += c0 * c1
                                alone[t, 2, 1, g] += c0 * u1
                                alone[t, 2, 2, g] += u0 * c1
                                alone[t, 2, 3, g] += u0 * u1
                            elif weight[t, part, g] > 0:
                                c = f * weight[t, part, g]
                                u = c * sum_of_pair(x, near, offset[t, part, g], line[t, side, g])
                                to = found[t, unit - first, g, side]
                                _add_pair(to, alone[t, side], g, c, u)


@kernel
def _sum_products(
    units: Floats,
    base: Floats,
    clusters: Floats,
    sums: Floats,
    products: Floats,
    weights: Floats,
) -> None:
    """Add up units, and what the sums of their two sides give multiplied with each other.

    Parameters
    ----------
    units : float64 array (unit, group, side, weight or sum)
    base : float64 array (side, group)
        The mean of either side, which weighs 1.
    clusters : float64 array (group,)
        Units with a pair.
    sums : float64 array (weight or sum, side, group)
    products : float64 array (3, 4, group)
        The products of the sides below and above with themselves and with each other.
    weights : float64 array (3, group)
        What single units weigh; see `CORRECTED`.
    """
    for unit in range(len(units)):
        for g in range(len(clusters)):
            c0, u0 = units[unit, g, 0, 0], units[unit, g, 0, 1]
            c1, u1 = units[unit, g, 1, 0], units[unit, g, 1, 1]
            # Most units have no pair of most groups.
            if c0 == 0 and c1 == 0:
                continue
            clusters[g] += 1.0
            sums[0, 0, g] += c0
            sums[0, 1, g] += c1
            sums[1, 0, g] += u0
            sums[1, 1, g] += u1
            _add_products(products[0], g, c0, u0, c0, u0)
            _add_products(products[1], g, c1, u1, c1, u1)
            _add_products(products[2], g, c0, u0, c1, u1)
            x0, x1 = u0 - base[0, g] * c0, u1 - base[1, g] * c1
            if max(c0, c1) < 1.0 - NOTHING_LEFT:
                changed = 0.5 * (x0 / (1.0 - c0) + x1 / (1.0 - c1))
                weights[CORRECTED, g] += changed * changed
            else:
                weights[CORRECTED, g] = np.nan
            own = 0.5 * (x0 + x1)
            weights[LARGEST_SHARE, g] = max(weights[LARGEST_SHARE, g], 0.5 * (c0 + c1))
            weights[LARGEST_SQUARE, g] = max(weights[LARGEST_SQUARE, g], own * own)


@inlined
def _add_products(to: Floats, g: int, c: float, u: float, c2: float, u2: float) -> None:
    to[0, g] += c * c2
    to[1, g] += c * u2
    to[2, g] += u * c2
    to[3, g] += u * u2


@inlined
def sum_of_pair(x: float, distance: float, offset: float, line: Floats) -> float:
    """Return what a pair of weight 1 adds."""
    loading = line[0] + line[1] * distance
    return loading * (x - offset - line[2] * distance) + line[3]  # type: ignore[no-any-return]


@inlined
def _add_pair(to: Floats, alone: Floats, g: np.int64, c: float, u: float) -> None:
    to[0] += c
    to[1] += u
    alone[0, g] += c * c
    alone[1, g] += c * u
    alone[2, g] += c * u
    alone[3, g] += u * u


@kernel
def _list_sides(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    tie: Ints,
    item: Ints,
    sign: bool,
    close: Ints,
    epsilon: float,
    scale: float,
    center: float,
    bit: np.uint64,
    weight: Floats,
    offset: Floats,
    line: Floats,
    reach: float,
    by_place: bool,
    n_cells: int,
    n_items: int,
    share: int,
    shares: int,
    factor: Floats | None,
    items: Room,
    dyads: Room,
) -> None:
    end = 0
    for unit in range(len(units) - 1):
        for q in range(units[unit], units[unit + 1]):
            first = end
            while end < len(close) and close[end] < starts[q + 1]:
                end += 1
            if first == end or (by_place and too_many(score, starts[q], starts[q + 1], reach)):
                continue
            for lower in close[first:end]:
                in_lower = (mask[lower] & bit) != 0
                for upper in range(lower + 1, starts[q + 1]):
                    distance = score[upper] - score[lower]
                    if distance > epsilon:
                        break
                    if ((mask[upper] & bit) != 0) == in_lower:
                        continue
                    i, j = (lower, upper) if in_lower else (upper, lower)
                    x = contrast(outcome[i] - outcome[j], sign) - center
                    part = part_of_pair(in_lower, -tie[i], -tie[j], distance, by_place, n_cells)
                    both = distance == 0 and not by_place
                    near = distance / scale
                    dyad = min(item[i], item[j]) * n_items + max(item[i], item[j])
                    same = item[i] == item[j]  # two items of one producer, which has the pair once
                    for more in range(2 if both else 1):
                        c = weight[part + more] * (0.5 if both else 1.0)
                        if factor is not None:
                            c *= factor[q, 0]
                        side = (part + more) // n_cells
                        u = c * sum_of_pair(x, near, offset[part + more], line[side])
                        if item[i] % shares == share:
                            seen = OF_BOTH if same else OF_GROUP
                            write(items, side, item[i], unit, 0, seen, u, c)
                        if item[j] % shares == share and not same:
                            write(items, side, item[j], unit, 0, OF_OTHER, u, c)
                        # An item without weight is still an item of a pair.
                        if c > 0 and dyad % shares == share and not same:
                            write(dyads, side, dyad, unit, 0, OF_GROUP, u, c)
