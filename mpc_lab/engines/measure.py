"""From a walk to the sums of an audit: thresholds first, then one sweep for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpc_lab.pairing.arrays import Floats, Ints
from mpc_lab.pairing.centers import centers
from mpc_lab.pairing.gather import Layout, gather
from mpc_lab.pairing.moments import Moments, concatenate
from mpc_lab.pairing.selection import count_pairs, count_up_to, kth_smallest_gaps
from mpc_lab.pairing.thresholds import Threshold, ranks
from mpc_lab.pairing.walk import Walk


@dataclass(frozen=True)
class Headline:
    """The threshold of each group.

    Attributes
    ----------
    epsilon : float64 array (group,)
        NaN where a group has no pair.
    wanted : float64 array (group,)
        How many pairs were asked for; NaN where a number was given as the threshold.
    """

    epsilon: Floats
    wanted: Floats


@dataclass(frozen=True)
class Measured:
    """The sums of one scoring rule, and where the grid and the headline stand among them.

    Attributes
    ----------
    moments : Moments
        Modes ``matched``, ``mirrored`` and, where asked for, ``adjacent``.
    grid : int64 array (group, epsilon)
        The threshold of `moments` that each point of the grid is.
    headline : int64 array (group, 1)
        The threshold of `moments` that is the group's own.
    """

    moments: Moments
    grid: Ints
    headline: Ints


def _words(n_groups: int) -> list[tuple[int, slice]]:
    """Return each word of the masks with the up to 64 groups in it."""
    return [
        (word, slice(start, min(start + 64, n_groups)))
        for word, start in enumerate(range(0, n_groups, 64))
    ]


def choose_thresholds(walk: Walk, n_groups: int, threshold: Threshold) -> Headline:
    """Find the exact threshold of each group."""
    if isinstance(threshold, float):
        return Headline(np.full(n_groups, threshold), np.full(n_groups, np.nan))
    epsilon, wanted = np.empty(n_groups), np.empty(n_groups)
    for word, groups in _words(n_groups):
        pairs = count_pairs(walk, word, groups.stop - groups.start)
        epsilon[groups] = kth_smallest_gaps(walk, word, pairs, ranks(threshold, pairs))
        wanted[groups] = [threshold.rank(int(n)) for n in pairs]
    return Headline(epsilon, wanted)


def has_ties(walk: Walk, n_groups: int) -> bool:
    """Tell whether any group has a pair with a gap of 0."""
    return any(
        count_up_to(walk, word, np.zeros(groups.stop - groups.start)).any()
        for word, groups in _words(n_groups)
    )


def measure(
    walk: Walk, headline: Headline, grid: Floats, *, n_items: int, adjacent: bool
) -> Measured:
    """Sweep the log once for each word of groups, and once more for neighbours if wanted."""
    edges, in_grid, own = _edges(headline.epsilon, grid)
    parts = []
    for word, groups in _words(len(edges)):
        center = centers(walk, word, groups.stop - groups.start)
        layout = Layout(word, edges[groups], center)
        modes = [gather(walk, layout, n_items, adjacent=False)]
        if adjacent:
            modes.append(gather(walk, layout, n_items, adjacent=True))
        parts.append(concatenate(modes, "mode"))
    return Measured(concatenate(parts, "group"), in_grid, own)


def _edges(epsilon: Floats, grid: Floats) -> tuple[Floats, Ints, Ints]:
    """Insert each group's own threshold into the grid."""
    # A group without a threshold has no pair: any number will do in its place.
    own = np.where(np.isnan(epsilon), grid[-1], epsilon)
    edges = np.sort(np.column_stack([np.tile(grid, (len(own), 1)), own]), axis=1)
    headline = np.array([[np.searchsorted(row, e)] for row, e in zip(edges, own, strict=True)])
    in_grid = np.array([np.searchsorted(row, grid) for row in edges])
    return edges, in_grid.astype(np.int64), headline.astype(np.int64)
