"""From walks to the sums of an audit: thresholds first, then one sweep for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpc_lab.engines.items import add_item_counts, add_item_sums
from mpc_lab.engines.sources import Source
from mpc_lab.pairing.arrays import Floats, Ints
from mpc_lab.pairing.centers import centers
from mpc_lab.pairing.gather import Layout, gather, gather_cross
from mpc_lab.pairing.moments import Moments, Quadratic, concatenate
from mpc_lab.pairing.selection import count_pairs, count_up_to, kth_smallest_gaps
from mpc_lab.pairing.thresholds import Quantile, Smallest, ranks
from mpc_lab.pairing.walk import Walk
from mpc_lab.scoring import Rule

# No gap is as small: a group without a threshold has no pair in any mode.
NO_THRESHOLD = -1.0


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
        How many ``matched`` pairs there are with no limit on the gap; NaN where not counted.
    """

    epsilon: Floats
    wanted: Floats
    all_pairs: Floats


def _words(n_groups: int) -> list[tuple[int, slice]]:
    """Return each word of the masks with the up to 64 groups in it."""
    return [
        (word, slice(start, min(start + 64, n_groups)))
        for word, start in enumerate(range(0, n_groups, 64))
    ]


def choose_thresholds(
    source: Source, rule: Rule, thresholds: tuple[Quantile | Smallest, ...]
) -> list[Headline]:
    """Find the exact threshold of each group, for each of some ways to choose it."""
    n_groups = len(source.groups)
    epsilon = np.empty((len(thresholds), n_groups))
    wanted = np.empty((len(thresholds), n_groups))
    all_pairs = np.empty(n_groups)
    for groups, walk in source.walks(rule):
        for word, here in _words(len(groups)):
            pairs = count_pairs(walk, word, here.stop - here.start)
            all_pairs[groups[here]] = pairs
            for k, threshold in enumerate(thresholds):
                chosen = kth_smallest_gaps(walk, word, pairs, ranks(threshold, pairs))
                epsilon[k, groups[here]] = chosen
                wanted[k, groups[here]] = [threshold.rank(int(n)) for n in pairs]
    return [Headline(*found, all_pairs) for found in zip(epsilon, wanted, strict=True)]


def has_ties(source: Source, rule: Rule) -> bool:
    """Tell whether any group has a pair with a gap of 0."""
    return any(
        count_up_to(walk, word, np.zeros(here.stop - here.start)).any()
        for groups, walk in source.walks(rule)
        for word, here in _words(len(groups))
    )


def measure(
    source: Source,
    rule: Rule,
    edges: Floats,
    *,
    adjacent: bool,
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
    adjacent : bool
        Whether the mode ``adjacent`` follows on ``matched`` and ``mirrored``.
    items : bool
        Whether to sum over items too, for item and union variance.
    count_items : bool
        Whether to count the items with a pair where they are not summed over.
    """
    parts = []
    counted = source.facts.n_items if count_items and not items else 0
    n_items = counted if source.counts_items else 0
    for groups, walk in source.walks(rule):
        words = [
            _sweep(walk, layout, n_items, adjacent) for layout in _layouts(walk, edges[groups])
        ]
        swept = concatenate(words, "group")
        parts.append(add_item_counts(walk, swept) if counted > n_items else swept)
    found = concatenate(parts, "group")
    return measure_items(source, rule, found) if items else found


def measure_items(source: Source, rule: Rule, moments: Moments) -> Moments:
    """Add the sums over items to moments of all groups, at the thresholds they have."""
    parts = [add_item_sums(walk, moments.of_groups(groups)) for groups, walk in source.walks(rule)]
    return concatenate(parts, "group")


def measure_cross(
    source: Source, rule: Rule, edges: Floats, *, adjacent: bool
) -> list[tuple[Ints, Quadratic]]:
    """Sum how thresholds move together; for some groups at a time, as (mode, group, …)."""
    parts = []
    for groups, walk in source.walks(rule):
        for (_, here), layout in zip(
            _words(len(groups)), _layouts(walk, edges[groups]), strict=True
        ):
            both = gather_cross(walk, layout, adjacent=False)
            if adjacent:
                both = _on_top(both, gather_cross(walk, layout, adjacent=True))
            parts.append((groups[here], both))
    return parts


def _layouts(walk: Walk, edges: Floats) -> list[Layout]:
    return [
        Layout(word, edges[here], centers(walk, word, here.stop - here.start))
        for word, here in _words(len(edges))
    ]


def _sweep(walk: Walk, layout: Layout, n_items: int, adjacent: bool) -> Moments:
    modes = [gather(walk, layout, n_items, adjacent=False)]
    if adjacent:
        modes.append(gather(walk, layout, n_items, adjacent=True))
    return concatenate(modes, "mode")


def _on_top(one: Quadratic, other: Quadratic) -> Quadratic:
    return Quadratic(
        np.concatenate([one.cc, other.cc]),
        np.concatenate([one.cu, other.cu]),
        np.concatenate([one.uu, other.uu]),
    )


def insert_thresholds(epsilon: Floats, grid: Floats) -> tuple[Floats, Ints, Ints]:
    """Insert each group's own threshold into the grid.

    Returns
    -------
    edges : float64 array (group, threshold)
    in_grid : int64 array (group, epsilon)
        Where the points of the grid stand among the edges.
    own : int64 array (group, 1)
        Where the group's own threshold stands.
    """
    chosen = np.where(np.isnan(epsilon), NO_THRESHOLD, epsilon)
    edges = np.sort(np.column_stack([np.tile(grid, (len(chosen), 1)), chosen]), axis=1)
    own = np.array([[np.searchsorted(row, e)] for row, e in zip(edges, chosen, strict=True)])
    in_grid = np.array([np.searchsorted(row, grid) for row in edges])
    return edges, in_grid.astype(np.int64), own.astype(np.int64)
