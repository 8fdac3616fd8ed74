"""From walks to the sums of an audit: thresholds first, then one sweep for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mpc_lab.pairing import long_lists
from mpc_lab.pairing.clusters import ItemSums
from mpc_lab.pairing.kernels import ONE, kernel, lowest
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.modes import Layout
from mpc_lab.pairing.moments import (
    Moments,
    Quadratic,
    Together,
    UnitWeights,
    join_groups,
)
from mpc_lab.pairing.moved import MovedLog, can_visit
from mpc_lab.pairing.second_sweep import add_weights, weigh_units
from mpc_lab.pairing.selection import count_pairs, count_up_to, kth_smallest_distances
from mpc_lab.pairing.sweep import gather
from mpc_lab.pairing.terms import PAIRS, Quantile, Smallest, ranks
from mpc_lab.pairing.walk import EngineWalk, Logs, Source, Walk
from mpc_lab.pairing.weighting import Weighting
from mpc_lab.scoring import Baseline, Rule
from mpc_lab.vocabulary import ITEM, Flags, Floats, Ints, Masks, Mode

# Within this many standard deviations, squares lose no digits that matter, and sums of whole
# numbers stay exact if no center is subtracted.
_STANDARD_DEVIATIONS = 16.0
_COUNT, _MEAN, _SQUARES = range(3)
# No distance is as small: a group without a threshold has no pair in any mode.
NO_THRESHOLD = -1.0
# This many rows rule out almost all pairs of groups as complements of each other.
_FIRST_ROWS = 512


@dataclass(frozen=True)
class Headline:
    """The threshold of each group under one scoring rule.

    Attributes
    ----------
    epsilon : float64 array (group,)
        NaN where a group has no pair.
    wanted : float64 array (group,)
        How many pairs were asked for; NaN where a number was given as the threshold.
    all_pairs : float64 array (group,)
        How many ``matched`` pairs there are with no limit on the distance; NaN where not counted.
    """

    epsilon: Floats
    wanted: Floats
    all_pairs: Floats


def words_of(n_groups: int) -> list[tuple[int, slice]]:
    """Return each word of the masks with the up to 64 groups in it."""
    return [
        (word, slice(start, min(start + 64, n_groups)))
        for word, start in enumerate(range(0, n_groups, 64))
    ]


def goes_by_place(source: Source) -> bool:
    """Whether the log says where items were shown."""
    return source.facts.columns.sides_by_place


def weighting_of(source: Source) -> Weighting:
    """Return whether the pairs of a log count alike."""
    by_query = source.terms.estimand != PAIRS
    return Weighting(by_query or source.facts.columns.weight is not None, by_query)


def choose_thresholds(
    source: Source, rule: Rule, thresholds: tuple[Quantile | Smallest, ...]
) -> list[Headline]:
    """Find the exact threshold of each group, for each of some ways to choose it."""

    def choose(groups: Ints, walk: Walk) -> tuple[Ints, Ints, Floats]:
        all_pairs, epsilon = np.empty(len(groups), dtype=np.int64), np.empty((k, len(groups)))
        for word, here in words_of(len(groups)):
            pairs = all_pairs[here] = count_pairs(walk, word, here.stop - here.start)
            for chosen, threshold in zip(epsilon, thresholds, strict=True):
                rank = ranks(threshold, pairs)
                chosen[here] = kth_smallest_distances(walk, word, pairs, rank)
        return groups, all_pairs, epsilon

    k, n_groups = len(thresholds), len(source.groups)
    every, of_group = np.empty(n_groups, dtype=np.int64), np.empty((k, n_groups))
    for groups, pairs, epsilon in source.each_walk(rule, choose, "choosing thresholds", any_moved):
        every[groups], of_group[:, groups] = pairs, epsilon
    return [
        Headline(
            chosen,
            np.array([float(threshold.rank(int(n))) for n in every]),
            every.astype(np.float64),
        )
        for chosen, threshold in zip(of_group, thresholds, strict=True)
    ]


def any_moved(groups: Ints, log: Log) -> bool:
    """Whether rows may keep their order: always, if only distances matter."""
    return True


def has_ties(source: Source, rule: Rule) -> bool:
    """Tell whether any group has a pair with a distance of 0."""

    def count(groups: Ints, walk: Walk) -> bool:
        return any(
            count_up_to(walk, word, np.zeros(here.stop - here.start)).any()
            for word, here in words_of(len(groups))
        )

    return any(source.each_walk(rule, count, "looking for ties", any_moved))


def measure(
    source: Source,
    rule: Rule,
    edges: Floats,
    *,
    modes: tuple[Mode, ...],
    items: bool,
    count_items: bool = True,
) -> Moments:
    """Sum over the pairs of every group up to each of its thresholds.

    Parameters
    ----------
    source : Source
    rule : Rule
    edges : float64 array (group, threshold)
        Ascending within a group.
    modes : tuple of Mode
    items : bool
        Whether to sum over items too, for item and union variance.
    count_items : bool
        Whether to count the items with a pair where they are not summed over.
    """
    counted = source.facts.n_items if count_items and not items else 0
    n_items = counted if source.counts_items else 0

    def sweep_all(groups: Ints, walk: EngineWalk) -> Moments:
        layouts = _layouts(source, walk, modes, edges[groups])
        swept = join_groups([gather(walk, layout, n_items) for layout in layouts])
        return add_item_counts(walk, swept) if counted > n_items else swept

    def takes(groups: Ints, log: MovedLog) -> bool:
        how = (np.zeros(0), goes_by_place(source), weighting_of(source))
        bare = (
            Layout(modes, word, edges[groups[here]], *how) for word, here in words_of(len(groups))
        )
        return counted == n_items and all(can_visit(log, layout) for layout in bare)

    found = join_groups(list(source.each_walk(rule, sweep_all, "sweeping", takes)))
    return measure_items(source, rule, found) if items else found


def measure_items(source: Source, rule: Rule, moments: Moments) -> Moments:
    """Add the sums over items to moments of all groups, at the thresholds they have.

    Where the pairs of items move with their producers, the sums are over producers.
    """
    owner = source.facts.owner

    def sum_all(groups: Ints, walk: EngineWalk) -> Moments:
        return add_item_sums(walk, moments.of_groups(groups), owner)

    def takes(groups: Ints, log: MovedLog) -> bool:
        return can_visit_items(log, moments)

    return join_groups(list(source.each_walk(rule, sum_all, "summing over items", takes)))


def can_visit_items(log: MovedLog, moments: Moments) -> bool:
    """Whether the pairs of each item can be visited, and are enough for sums over items."""
    longest = float(np.diff(log.starts).max(initial=0))
    plain = not any(mode.two_sided or mode.side.neighbours for mode in moments.modes)
    visited = longest**2 / 4 <= long_lists.LEAST_PAIRS
    return plain and visited and log.weights is None and len(log.row) > 0


def weigh_headline(source: Source, rule: Rule, own: Moments) -> tuple[Moments, UnitWeights]:
    """Find what single units weigh at the one threshold of each group.

    A mode of two sides that goes by places is left out, with NaN: it has a pass of its own.
    """
    by_place, weighting = goes_by_place(source), weighting_of(source)
    modes = np.flatnonzero([not (by_place and mode.two_sided) for mode in own.modes])
    some = own.of_modes([own.modes[m].name for m in modes])
    found = UnitWeights(*np.full((3, *own.pairs.shape), np.nan))

    def layouts(groups: Ints) -> Iterator[tuple[Ints, Layout]]:
        for word, here in words_of(len(groups)):
            part = some.of_groups(groups[here])
            yield (
                groups[here],
                Layout(some.modes, word, part.edges, part.center, weighting=weighting),
            )

    def weigh_all(groups: Ints, walk: EngineWalk) -> list[tuple[Ints, UnitWeights]]:
        return [
            (here, weigh_units(walk, layout, some.of_groups(here)).units)
            for here, layout in layouts(groups)
        ]

    def takes(groups: Ints, log: MovedLog) -> bool:
        return all(can_visit(log, layout) for _, layout in layouts(groups))

    if len(modes):
        for weighed in source.each_walk(rule, weigh_all, "weighing queries", takes):
            for here, units in weighed:
                for whole, values in zip(found, units, strict=True):
                    whole[np.ix_(modes, here)] = values
    return add_weights(own, found), found


def weigh_curve(
    source: Source, rule: Rule, moments: Moments
) -> tuple[Moments, list[tuple[Ints, Together]]]:
    """Find what single units weigh at every threshold, and how thresholds move together.

    Returns
    -------
    Moments
        The same with what single units weigh.
    list of (groups, Together)
        For some groups at a time, as (mode, group, …).
    """
    order, parts, moving = [], [], []
    for groups, walk in source.walks(rule):
        for word, here in words_of(len(groups)):
            part = moments.of_groups(groups[here])
            how = (goes_by_place(source), weighting_of(source))
            layout = Layout(part.modes, word, part.edges, part.center, *how)
            found = weigh_units(walk, layout, part, curve=True)
            order.append(groups[here])
            parts.append(replace(add_weights(part, found.units), series=found.series))
            if found.together is not None:
                moving.append((groups[here], found.together))
    back = np.argsort(np.concatenate(order), kind="stable")
    return join_groups(parts).of_groups(back), moving


def _layouts(source: Source, walk: Walk, modes: tuple[Mode, ...], edges: Floats) -> list[Layout]:
    how = (goes_by_place(source), weighting_of(source))
    return [
        Layout(modes, word, edges[here], centers(walk, word, here.stop - here.start), *how)
        for word, here in words_of(len(edges))
    ]


def insert_thresholds(epsilon: Floats, grid: Floats) -> tuple[Floats, Ints, Ints]:
    """Insert each group's own threshold into the grid.

    Returns
    -------
    edges : float64 array (group, threshold)
    in_grid : int64 array (group, epsilon)
        The indices of the points of the grid among the edges.
    own : int64 array (group, 1)
        The index of the group's own threshold.
    """
    chosen = np.where(np.isnan(epsilon), NO_THRESHOLD, epsilon)
    edges = np.sort(np.column_stack([np.tile(grid, (len(chosen), 1)), chosen]), axis=1)
    own = np.array([[np.searchsorted(row, e)] for row, e in zip(edges, chosen, strict=True)])
    in_grid = np.array([np.searchsorted(row, grid) for row in edges])
    return edges, in_grid.astype(np.int64), own.astype(np.int64)


def add_item_sums(walk: EngineWalk, moments: Moments, owner: str = ITEM) -> Moments:
    """Return the moments of all groups of the log with what item and union variance need."""
    return put_item_sums(moments, walk.item_sums(moments), owner)


def add_item_counts(walk: EngineWalk, moments: Moments) -> Moments:
    """Return the moments with the number of items that have a pair."""
    found = walk.item_sums(moments, by_item=True)
    return replace(moments, items=put_item_sums(moments, found).items)


def put_item_sums(moments: Moments, found: list[list[ItemSums]], owner: str = ITEM) -> Moments:
    """Return moments with the sums over items, or over producers, of each group and mode."""
    modes = range(len(moments.pairs))

    def stacked(pick: Callable[..., Any]) -> Any:
        return np.array([[pick(of_group[mode]) for of_group in found] for mode in modes])

    by = {
        name: Quadratic(
            stacked(lambda sums, name=name: sums.by[name].cc),
            stacked(lambda sums, name=name: sums.by[name].cu),
            stacked(lambda sums, name=name: sums.by[name].uu),
        )
        for name in found[0][0].by
    }
    scale = np.ones(moments.pairs.shape)
    if moments.weights is not None:
        scale = moments.weights.scale(moments.pairs.astype(np.float64))
    cr3 = {}
    if all(sums.cr3 is not None for of_group in found for sums in of_group):
        cr3["item"] = scale**2 * stacked(lambda sums: sums.cr3)
    summed = replace(
        moments,
        cr3=moments.cr3 | cr3,
        items=stacked(lambda sums: sums.items) if owner == ITEM else moments.items,
        owner=owner,
        by=moments.by | {name: sums.times(scale) for name, sums in by.items()},
        squares={
            "inside": scale**2 * stacked(lambda sums: sums.inside),
            "outside": scale**2 * stacked(lambda sums: sums.outside),
        },
        dyads_once=moments.dyads_once
        or any(sums.dyads_once for of_group in found for sums in of_group),
    )
    row = moments.two_sided
    if row is not None and moments.cells is not None and moments.table is None:
        # Inside cells of places only a second pass knows what clusters add.
        return summed.with_estimates(
            moments.by["naive"].cu[row] / np.maximum(moments.pairs[row], 1)
        )
    if moments.sides is None or row is None:
        return summed
    of_mode = [of_group[row] for of_group in found]

    def of_groups(name: str) -> dict[str, Floats]:
        return {
            key: np.stack([getattr(sums, name)[key] for sums in of_mode], axis=-2)
            for key in getattr(of_mode[0], name)
        }

    by_side = moments.sides.by | of_groups("sides")
    sides = replace(moments.sides, by=by_side, squares=of_groups("side_squares"))
    return summed.with_sides(sides)


def centers(walk: Walk, word: int, n_groups: int) -> Floats:
    """Return the mean outcome of each group less that of the rest, if that dwarfs the spread.

    Otherwise 0.
    """
    total = np.zeros((n_groups + 1, 3))
    for part in walk(partial(_spread_of_block, word, n_groups), "reading outcomes"):
        total = _merge(total, part)
    inside, everything = total[:-1], total[-1]
    with np.errstate(all="ignore"):
        outside = _rest(everything, inside)
        difference = inside[:, _MEAN] - outside[:, _MEAN]
        variance = sum(part[:, _SQUARES] / part[:, _COUNT] for part in (inside, outside))
        large = difference**2 > _STANDARD_DEVIATIONS**2 * variance
    return np.where(large & np.isfinite(difference), difference, 0.0)


def _spread_of_block(word: int, n_groups: int, log: Log, first: int, last: int) -> Floats:
    """Return count, mean and squares about the mean of each group, and of all rows at the end."""
    sums = np.zeros((n_groups + 1, 3))
    if log.sign:  # never above 1 in size, so that squares lose nothing
        return sums
    start, end = log.starts[log.units[first]], log.starts[log.units[last]]
    off = float(log.outcome[start]) if end > start else 0.0
    _outcome_sums(log.outcome, log.masks[word], off, start, end, sums)
    count = np.maximum(sums[:, 0], 1.0)
    mean = sums[:, 1] / count
    return np.column_stack([sums[:, 0], mean + off, np.maximum(sums[:, 2] - count * mean**2, 0.0)])


def _merge(one: Floats, other: Floats) -> Floats:
    """Add two parts, each with count, mean and squares about the mean."""
    count = np.maximum(one[:, _COUNT] + other[:, _COUNT], 1.0)
    share = other[:, _COUNT] / count
    apart = other[:, _MEAN] - one[:, _MEAN]
    squares = one[:, _SQUARES] + other[:, _SQUARES] + apart**2 * one[:, _COUNT] * share
    return np.column_stack(
        [one[:, _COUNT] + other[:, _COUNT], one[:, _MEAN] + share * apart, squares]
    )


def _rest(everything: Floats, inside: Floats) -> Floats:
    """Take a part away from the whole."""
    count = everything[_COUNT] - inside[:, _COUNT]
    mean = everything[_MEAN] + (everything[_MEAN] - inside[:, _MEAN]) * inside[:, _COUNT] / count
    apart = (inside[:, _MEAN] - mean) ** 2 * inside[:, _COUNT] * count / everything[_COUNT]
    squares = np.maximum(everything[_SQUARES] - inside[:, _SQUARES] - apart, 0.0)
    return np.column_stack([count, mean, squares])


@kernel
def _outcome_sums(
    outcome: Floats, mask: Masks, off: float, start: int, end: int, sums: Floats
) -> None:
    """Add count, Σy and Σy² of the rows of each group, and of all rows at the end."""
    for r in range(start, end):
        y = outcome[r] - off
        bits = mask[r]
        while bits:
            g = lowest(bits)
            bits &= bits - ONE
            sums[g, 0] += 1
            sums[g, 1] += y
            sums[g, 2] += y * y
        sums[-1, 0] += 1
        sums[-1, 1] += y
        sums[-1, 2] += y * y


# ---- groups that are everything outside another one, on every row


def find_complements(source: Source) -> list[tuple[int, int]]:
    """Return the pairs of groups, by number, such that every row is in exactly one of the two.

    Parameters
    ----------
    source : Source
        Without `against`: members of two groups are then compared with each other.
    """
    n_groups = len(source.groups)
    if n_groups < 2:
        return []
    start = np.zeros((n_groups, n_groups), dtype=np.int64)
    refuted = source.together((Baseline(),), count_refuted, "complements", start)
    return [(int(a), int(b)) for a, b in np.argwhere(np.triu(refuted == 0, k=1))]


def count_refuted(logs: Logs) -> Ints:
    """Mark the pairs of groups that share a row or leave one out; a task for `Source.together`."""
    return next(_refute(log, len(groups)) for _, groups, log in logs)


def _refute(log: Log, n_groups: int) -> Ints:
    """Return 1 for each pair of groups that some row refutes: array (group, group)."""
    inside = np.stack([_members(log, g, _FIRST_ROWS) for g in range(n_groups)]).astype(np.float64)
    refuted = (inside @ inside.T + (1 - inside) @ (1 - inside).T > 0).astype(np.int64)
    for a, b in np.argwhere(np.triu(refuted == 0, k=1)):
        if (_members(log, a) == _members(log, b)).any():
            refuted[a, b] = refuted[b, a] = 1
    return refuted


def _members(log: Log, group: int, n_rows: int | None = None) -> Flags:
    words = log.masks[group // 64][:n_rows]
    return np.asarray((words >> np.uint64(group % 64)) & np.uint64(1) != 0)
