"""Sums over units of products of parts, from which pools of logs with positions get intervals.

Which weight a part (one side in one cell of places) has in an estimate, and which mean its pairs
are compared with, is known only once the sums of all logs are. What a unit adds to the error of an
estimate is linear in five sums over its pairs in each part, so its square is known from their
products, whatever the weights and means turn out to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.kernels import ONE, contrast, kernel, lowest, tight
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.measure import words_of
from mpc_lab.pairing.moments import Sides, SideTable
from mpc_lab.pairing.places import N_CELLS, N_PARTS, too_many
from mpc_lab.pairing.sided import (
    COUNT,
    DISTANCE,
    DISTANCE_SQUARED,
    DISTANCE_SUM,
    FEWEST_DISTANCES,
    LOWER,
    N_PART_SUMS,
    NUMBER,
    SUM,
    _few_distinct,
    _see_distance,
    part_of_pair,
    scales_of,
    weigh_queries,
)
from mpc_lab.pairing.walk import Walk
from mpc_lab.vocabulary import Floats, Ints, Masks

# The first sums of a part are those that its products are of: weights, Σx, ΣΔ, ΣΔ² and ΣΔx.
N_FACTORS = 1 + max(COUNT, SUM, DISTANCE, DISTANCE_SQUARED, DISTANCE_SUM)


@dataclass(frozen=True)
class PartProducts:
    """The sums of the pairs of one group up to one threshold, by part, and their products.

    Attributes
    ----------
    part : int64 array (kept,)
        The parts with a pair, ascending.
    sums : float64 array (kept, 7)
        As in `mpc_lab.pairing.sided.PartSums`.
    alone : float64 array (kept, 5, 5)
        Over pairs, the products of what one pair adds to the five sums of its part.
    distances : float64 array (side, 4)
        Up to four distinct distances, ascending; infinite where there are fewer.
    first, second : int64 arrays (product,)
        Two parts, `first` at most `second`, in which some unit has pairs.
    product : float64 array (product, 5, 5)
        Over units, the products of their five sums in these two parts.
    units, queries : int
        How many have a pair.
    """

    part: Ints
    sums: Floats
    alone: Floats
    distances: Floats
    first: Ints
    second: Ints
    product: Floats
    units: int
    queries: int

    def recentre(self, shift: float) -> PartProducts:
        """Return the same with x + shift in place of x."""
        if shift == 0:
            return self
        moved = np.eye(N_FACTORS)
        moved[SUM, COUNT] = moved[DISTANCE_SUM, DISTANCE] = shift
        sums = self.sums.copy()
        sums[:, :N_FACTORS] = sums[:, :N_FACTORS] @ moved.T
        return PartProducts(
            self.part,
            sums,
            moved @ self.alone @ moved.T,
            self.distances,
            self.first,
            self.second,
            moved @ self.product @ moved.T,
            self.units,
            self.queries,
        )


def add_products(parts: list[PartProducts]) -> PartProducts:
    """Add up the products of logs that share no unit."""
    part = _all_keys([one.part for one in parts])
    pairs = [one.first * N_PARTS + one.second for one in parts]
    pair = _all_keys(pairs)
    return PartProducts(
        part,
        _add_rows(part, [(one.part, one.sums) for one in parts]),
        _add_rows(part, [(one.part, one.alone) for one in parts]),
        _few_distinct(np.concatenate([one.distances for one in parts], axis=-1)),
        pair // N_PARTS,
        pair % N_PARTS,
        _add_rows(pair, [(own, one.product) for own, one in zip(pairs, parts, strict=True)]),
        sum(one.units for one in parts),
        sum(one.queries for one in parts),
    )


def _all_keys(keys: list[Ints]) -> Ints:
    return np.asarray(np.unique(np.concatenate(keys)), dtype=np.int64)


def _add_rows(keys: Ints, tables: list[tuple[Ints, Floats]]) -> Floats:
    """Add tables whose rows have keys, each once in a table."""
    found = np.zeros((len(keys), *tables[0][1].shape[1:]))
    for own, values in tables:
        found[np.searchsorted(keys, own)] += values
    return found


def sum_products(walk: Walk, epsilon: Floats, center: Floats) -> list[list[PartProducts]]:
    """Sum over the pairs of every group up to its thresholds, by part, with their products.

    Parameters
    ----------
    walk : Walk
        Of a log with positions.
    epsilon : float64 array (threshold, group)
        Below 0 where a group has no pair.
    center : float64 array (group,)

    Returns
    -------
    list of list of PartProducts
        For each threshold, those of each group.
    """
    found: list[list[PartProducts]] = [[] for _ in epsilon]
    for word, here in words_of(len(center)):
        task = partial(_products_of_block, word, epsilon[:, here], center[here])
        total: list[_BlockSums] = []
        for blocks in walk(task, "summing parts"):
            total = list(map(_add_blocks, total, blocks)) if total else blocks
        for of_threshold, block in zip(found, total, strict=True):
            of_threshold += [_of_group(block, group) for group in range(here.stop - here.start)]
    return found


class _BlockSums(NamedTuple):
    """The sums of some units: arrays (part, group, …); and products by their key."""

    sums: Floats
    alone: Floats
    distances: Floats
    counts: Ints
    key: Ints
    product: Floats


def _add_blocks(one: _BlockSums, other: _BlockSums) -> _BlockSums:
    key = _all_keys([one.key, other.key])
    product = _add_rows(key, [(block.key, block.product) for block in (one, other)])
    return _BlockSums(
        one.sums + other.sums,
        one.alone + other.alone,
        _few_distinct(np.concatenate([one.distances, other.distances], axis=-1)),
        one.counts + other.counts,
        key,
        product,
    )


def _of_group(total: _BlockSums, group: int) -> PartProducts:
    part = np.flatnonzero(total.sums[:, group, NUMBER] > 0)
    here = total.key // N_PARTS**2 == group
    pair = total.key[here] % N_PARTS**2
    units, queries = total.counts[:, group].tolist()
    return PartProducts(
        part,
        total.sums[part, group],
        total.alone[part, group],
        total.distances[:, group],
        pair // N_PARTS,
        pair % N_PARTS,
        total.product[here],
        units,
        queries,
    )


def _products_of_block(
    word: int, epsilon: Floats, center: Floats, log: Log, first: int, last: int
) -> list[_BlockSums]:
    return [_up_to(word, own, center, log, first, last) for own in epsilon]


def _up_to(
    word: int, epsilon: Floats, center: Floats, log: Log, first: int, last: int
) -> _BlockSums:
    n_groups = len(epsilon)
    sums = np.zeros((N_PARTS, n_groups, N_PART_SUMS))
    alone = np.zeros((N_PARTS, n_groups, N_FACTORS, N_FACTORS))
    distances = np.full((2, n_groups, FEWEST_DISTANCES), np.inf)
    counts = np.zeros((2, n_groups), dtype=np.int64)
    rows = (log.units, log.starts, log.score, log.outcome, log.masks[word], log.tie, log.sign)
    how = (epsilon, scales_of(epsilon), center, weigh_queries(log, word, epsilon, first, last))
    key, product = _sum_products(*rows, *how, first, last, sums, alone, distances, counts)
    order = np.argsort(key)
    return _BlockSums(sums, alone, distances, counts, key[order], product[order])


# ---- what products give, once the weights and means of parts are known


def sides_of(found: list[PartProducts], table: SideTable) -> Sides:
    """Return the sums of the two sides over pairs and units, for the table of an estimate.

    Parameters
    ----------
    found : list of PartProducts
        One for each group.
    table : SideTable
        For the same centers.
    """
    every = [_of_table(one, table, group) for group, one in enumerate(found)]
    weight, total, naive, query = (
        np.stack(parts, axis=-1)[..., None] for parts in zip(*every, strict=True)
    )
    return Sides(weight, total, {"naive": naive, "query": query})


def _of_table(
    found: PartProducts, table: SideTable, group: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the weight and sum of either side, and the products over pairs and over units."""
    rows = _coefficients(table, group)
    own = rows[:, found.part]
    of_sums = np.einsum("apk,pk->a", own, found.sums[:, :N_FACTORS])
    over_pairs = np.einsum("api,pij,bpj->ab", own, found.alone, own)
    over_units = _gram(rows, found.first, found.second, found.product)
    apart = found.first != found.second
    turned = _gram(rows, found.first[apart], found.second[apart], found.product[apart])
    return of_sums[::2], of_sums[1::2], _by_side(over_pairs), _by_side(over_units + turned.T)


def _gram(rows: Floats, first: Ints, second: Ints, product: Floats) -> Floats:
    left = np.einsum("api,pij->apj", rows[:, first], product)
    return np.asarray(np.einsum("apj,bpj->ab", left, rows[:, second]))


def _by_side(gram: Floats) -> Floats:
    """Return the products below, above and of both, from those of (c, U) below and above."""
    return np.stack([gram[a : a + 2, b : b + 2].ravel() for a, b in ((0, 0), (2, 2), (0, 2))])


def _coefficients(table: SideTable, group: int) -> Floats:
    """Return what the five sums of each part count in c and U below, and in c and U above."""
    weight, offset = table.weight[:, group], table.offset[:, group]
    found = np.zeros((4, N_PARTS, N_FACTORS))
    for side in range(2):
        here = slice(side * N_CELLS, (side + 1) * N_CELLS)
        k0, k1, slope, base = table.line[side, group]
        w, o = weight[here], offset[here]
        found[2 * side, here, 0] = w
        of_sum = [base - k0 * o, k0 + 0 * o, -k0 * slope - k1 * o, -k1 * slope + 0 * o, k1 + 0 * o]
        found[2 * side + 1, here] = w[:, None] * np.stack(of_sum, axis=-1)
    return found


# ---- kernels


@kernel
def _sum_products(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    tie: Ints,
    sign: bool,
    epsilon: Floats,
    scale: Floats,
    center: Floats,
    factor: Floats | None,
    first: int,
    last: int,
    sums: Floats,
    alone: Floats,
    distances: Floats,
    counts: Ints,
) -> tuple[Ints, Floats]:
    n_groups, reach = len(epsilon), epsilon.max()
    own = np.zeros((n_groups, N_PARTS, N_FACTORS))
    touched = np.zeros((n_groups, N_PARTS), np.int64)
    n_touched, last_query = np.zeros(n_groups, np.int64), np.zeros(n_groups, np.int64)
    # One more than the number of the product of two parts; 0 where there is none yet.
    slot = np.zeros((n_groups, N_PARTS, N_PARTS), np.int32)
    key, product = np.empty(64, np.int64), np.zeros((64, N_FACTORS, N_FACTORS))
    n_slots = 0
    v = np.empty(N_FACTORS)
    for unit in range(first, last):
        for q in range(units[unit], units[unit + 1]):
            if too_many(score, starts[q], starts[q + 1], reach):
                continue
            for lower in range(starts[q], starts[q + 1]):
                for upper in range(lower + 1, starts[q + 1]):
                    distance = score[upper] - score[lower]
                    if distance > reach:
                        break
                    d = contrast(outcome[lower] - outcome[upper], sign)
                    differ = mask[lower] ^ mask[upper]
                    while differ:
                        g = lowest(differ)
                        differ &= differ - ONE
                        if distance > epsilon[g]:
                            continue
                        in_lower = (mask[lower] & (ONE << np.uint64(g))) != 0
                        i, j = (lower, upper) if in_lower else (upper, lower)
                        part = part_of_pair(in_lower, -tie[i], -tie[j], distance, True, N_CELLS)
                        near = distance / scale[g]
                        x = (d if in_lower else -d) - center[g]
                        f = 1.0
                        if factor is not None:
                            f = factor[q - units[first], g]
                        v[COUNT], v[SUM], v[DISTANCE] = f, f * x, f * near
                        v[DISTANCE_SQUARED], v[DISTANCE_SUM] = f * near * near, f * near * x
                        if own[g, part, COUNT] == 0:
                            touched[g, n_touched[g]] = part
                            n_touched[g] += 1
                        _add_pair(own[g, part], alone[part, g], v)
                        line = sums[part, g]
                        line[NUMBER] += 1.0
                        if in_lower and distance > 0:
                            line[LOWER] += 1.0
                        _see_distance(distances[part // N_CELLS, g], distance)
                        if last_query[g] <= q:
                            last_query[g] = q + 1
                            counts[1, g] += 1
        for group in range(n_groups):
            if n_touched[group] == 0:
                continue
            counts[0, group] += 1
            for k in range(n_touched[group]):
                one = touched[group, k]
                for m in range(n_touched[group]):
                    other = touched[group, m]
                    if other < one:
                        continue
                    if slot[group, one, other] == 0:
                        if n_slots == len(key):
                            key, product = _with_room(key, product)
                        key[n_slots] = (group * N_PARTS + one) * N_PARTS + other
                        n_slots += 1
                        slot[group, one, other] = n_slots
                    _add_square(
                        product[slot[group, one, other] - 1], own[group, one], own[group, other]
                    )
            for k in range(n_touched[group]):
                _empty_into(own[group, touched[group, k]], sums[touched[group, k], group])
            n_touched[group] = 0
    return key[:n_slots], product[:n_slots]


@tight
def _add_pair(to: Floats, alone: Floats, pair: Floats) -> None:
    for a in range(len(pair)):
        to[a] += pair[a]
    _add_square(alone, pair, pair)


@tight
def _add_square(to: Floats, one: Floats, other: Floats) -> None:
    for a in range(len(one)):
        for b in range(len(one)):
            to[a, b] += one[a] * other[b]


@tight
def _empty_into(own: Floats, line: Floats) -> None:
    """Add the sums of a unit in a part to those of all units, and start again."""
    for a in range(len(own)):
        line[a] += own[a]
        own[a] = 0.0


@tight
def _with_room(key: Ints, product: Floats) -> tuple[Ints, Floats]:
    """Return the same with twice the room."""
    keys = np.empty(2 * len(key), np.int64)
    more = np.zeros((2 * len(key), N_FACTORS, N_FACTORS))
    # Not as slices, whose checks for differing shapes take seconds to compile.
    for k in range(len(key)):
        keys[k] = key[k]
        for a in range(N_FACTORS):
            for b in range(N_FACTORS):
                more[k, a, b] = product[k, a, b]
    return keys, more
