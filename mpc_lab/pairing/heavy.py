"""How much of the variance over queries a single query makes up, found by a pass of its own.

What a query adds depends on the mean over all of them, which is known only after the sums.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mpc_lab.pairing.kernels import ONE, contrast, inlined, kernel, lowest
from mpc_lab.pairing.log import Log, slice_units
from mpc_lab.pairing.modes import DOWN, TIE, UP, Layout
from mpc_lab.pairing.moments import Moments
from mpc_lab.pairing.pairs import sums_by_unit
from mpc_lab.pairing.walk import Source, Walk
from mpc_lab.pairing.windows import most_close
from mpc_lab.scoring import Rule
from mpc_lab.vocabulary import Flags, Floats, Ints, Masks

Index = int | np.int64
# Pairs of a query that are visited one by one; with more, windows sum over them.
_MOST_VISITED = 1 << 17


def heavy_shares(source: Source, rule: Rule, own: Moments) -> Floats:
    r"""Return :math:`\max_q S_q^2 / \sum_q S_q^2`, the share of the heaviest query (or unit).

    :math:`S_q` is the sum over the pairs of a query of their difference less the mean of all pairs.

    Parameters
    ----------
    source : Source
    rule : Rule
    own : Moments
        At the one threshold of each group.

    Returns
    -------
    float64 array (mode, group)
        NaN where no query differs from the mean, and for modes of more than one side.
    """
    modes = tuple(mode for mode in own.modes if len(mode.sides) == 1)
    at = np.array([own.modes.index(mode) for mode in modes], dtype=np.int64)
    found = np.full(own.pairs.shape[:2], np.nan)
    pairs = np.maximum(own.pairs[at, :, 0], 1)
    apart = own.by["naive"].cu[at, :, 0] / pairs
    query = own.by["query"]
    cc, cu, uu = (part[at, :, 0] for part in (query.cc, query.cu, query.uu))
    total = uu - 2 * apart * cu + apart**2 * cc
    scale = np.ones(pairs.shape)
    if own.weights is not None:
        scale = own.weights.scale(own.pairs.astype(np.float64))[at, :, 0]

    def weigh(groups: Ints, walk: Walk) -> tuple[Ints, Floats]:
        parts = []
        for start in range(0, len(groups), 64):
            here = groups[start : start + 64]
            layout = Layout(modes, start // 64, own.edges[here], own.center[here])
            parts.append(_largest(walk, layout, np.ascontiguousarray(apart[:, here])))
        return groups, np.concatenate(parts, axis=1)

    for here, largest in source.each_walk(rule, weigh, "weighing queries"):
        # Squares that are rounding errors of equal sums are no query of their own.
        known = total[:, here] > 1e-12 * uu[:, here]
        share = scale[:, here] ** 2 * largest / np.where(known, total[:, here], 1.0)
        found[np.ix_(at, here)] = np.where(known, np.minimum(share, 1.0), np.nan)
    return found


def _largest(walk: Walk, layout: Layout, apart: Floats) -> Floats:
    """Return the largest square of a unit, by mode and group."""
    found = np.zeros(apart.shape)
    for part in walk(partial(_largest_of_block, layout, apart), "weighing queries"):
        found = np.maximum(found, part)
    return found


def _largest_of_block(layout: Layout, apart: Floats, log: Log, first: int, last: int) -> Floats:
    starts = log.starts[log.units[first] : log.units[last] + 1]
    reach = np.ascontiguousarray(layout.by_side[..., 0])
    size = np.diff(starts).astype(np.float64)
    few = (size**2 / 2).max(initial=0.0) <= _MOST_VISITED
    found = np.zeros(apart.shape)
    few = few or log.sign or most_close(starts, log.score, float(reach.max())) <= _MOST_VISITED
    if few and log.weights is None:
        near = np.array([side.neighbours for side in layout.sides])
        rows = (log.units, log.starts, log.score, log.outcome, log.masks[layout.word], log.below)
        _visit(*rows, log.sign, reach, near, layout.center, apart, first, last, found)
        return found
    part = slice_units(log, first, last)
    for g in range(layout.n_groups):
        member = np.asarray((part.masks[layout.word] >> np.uint64(g)) & ONE != 0)
        for m, side in enumerate(layout.sides):
            pairs, sums = sums_by_unit(part, member, side, float(layout.edges[g, 0]))
            own = sums - (layout.center[g] + apart[m, g]) * pairs
            found[m, g] = (own**2).max(initial=0.0)
    return found


@inlined
def _hold(
    held: Floats,
    reach: Floats,
    near: Flags,
    wanted: bool,
    seen: int,
    g: Index,
    far: float,
    x: float,
) -> None:
    """Add a pair to every side that takes it."""
    for side in range(len(near)):
        if near[side] == wanted and far <= reach[side, seen, g]:
            held[side, g, 0] += 1.0
            held[side, g, 1] += x


@kernel
def _visit(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    below: Ints,
    sign: bool,
    reach: Floats,
    near: Flags,
    center: Floats,
    apart: Floats,
    first: int,
    last: int,
    largest: Floats,
) -> None:
    """Keep the largest square of the sum of a unit, about the mean.

    Parameters
    ----------
    reach : float64 array (side, direction, group)
        The largest distance of a pair.
    near : bool array (side,)
        Whether only neighbours are pairs.
    center, apart : float64 arrays (group,), (side, group)
        Subtracted from each difference, and how far the mean is from it.
    largest : float64 array (side, group)
        Raised.
    """
    n_sides, n_groups = apart.shape
    held = np.zeros((n_sides, n_groups, 2))
    most, some_near = reach.max(), near.any()
    for unit in range(first, last):
        touched = ONE ^ ONE
        for q in range(units[unit], units[unit + 1]):
            for lower in range(starts[q], starts[q + 1]):
                for upper in range(lower + 1, starts[q + 1]):
                    far = score[upper] - score[lower]
                    if far > most:
                        break
                    d = contrast(outcome[lower] - outcome[upper], sign)
                    differ = mask[lower] ^ mask[upper]
                    touched |= differ
                    while differ:
                        g = lowest(differ)
                        differ &= differ - ONE
                        inside = (mask[lower] & (ONE << np.uint64(g))) != 0
                        seen = TIE if far == 0 else (UP if inside else DOWN)
                        x = (d if inside else -d) - center[g]
                        _hold(held, reach, near, False, seen, g, far, x)
            for one in range(starts[q], starts[q + 1] if some_near else starts[q]):
                other = below[one]
                if other < 0:
                    continue
                far = abs(score[one] - score[other])
                d = contrast(outcome[one] - outcome[other], sign)
                differ = mask[one] ^ mask[other]
                touched |= differ
                while differ:
                    g = lowest(differ)
                    differ &= differ - ONE
                    inside = (mask[one] & (ONE << np.uint64(g))) != 0
                    seen = UP if inside == (score[one] < score[other]) else DOWN
                    seen = TIE if far == 0 else seen
                    _hold(held, reach, near, True, seen, g, far, (d if inside else -d) - center[g])
        while touched:
            g = lowest(touched)
            touched &= touched - ONE
            for side in range(n_sides):
                own = held[side, g, 1] - apart[side, g] * held[side, g, 0]
                largest[side, g] = max(largest[side, g], own * own)
                held[side, g, 0] = 0.0
                held[side, g, 1] = 0.0
