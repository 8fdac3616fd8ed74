"""How much single items change an estimate, summed over items as they are closed.

An item that holds the share s of the pairs pulls the mean of all towards itself, so its sum about
that mean is too small: it is divided by 1 − s before it is squared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.bookings import NOTHING_LEFT, Index
from mpc_lab.pairing.kernels import ONE, inlined, kernel, lowest, tight
from mpc_lab.pairing.modes import SumRows
from mpc_lab.pairing.moments import ABOVE, BELOW, Moments
from mpc_lab.vocabulary import Floats, Ints, Masks


class Whole(NamedTuple):
    """The sums over all pairs of a group, which the sums of one item are compared with.

    Attributes
    ----------
    weight, mean : float64 arrays (row of sums, bin)
        Σc and the centred mean of all pairs up to each bin; no bins where nothing is wanted.
    pairs : float64 array (bin,)
        Pairs of a mode of two sides; empty where there is no such mode, or its sides are not known.
    side_weight, side_mean : float64 arrays (side, bin)
        The same for its sides.
    """

    weight: Floats
    mean: Floats
    pairs: Floats
    side_weight: Floats
    side_mean: Floats

    @property
    def n_rows(self) -> int:
        """The number of rows of a result: one for each row of sums, and one for two sides."""
        return len(self.weight) + 1

    def nothing(self) -> Floats:
        """Return an array (row, bin) of zeros to add results to."""
        return np.zeros((self.n_rows, self.weight.shape[1]))

    def by_mode(self, rows: SumRows, found: Floats) -> list[Floats]:
        """Return what was found of each mode, NaN where nothing is known."""
        twin = found[-1] if len(self.pairs) else np.full(found.shape[1], np.nan)
        return [twin if row < 0 else found[row] for row in rows.of_mode]


def whole_of(moments: Moments, group: int, rows: SumRows) -> Whole:
    """Return the sums over all pairs of one group of moments."""
    n_bins = moments.pairs.shape[2]
    n_rows = max([len(rows.sides), *(row + 1 for row in rows.twin)])
    weight, mean = np.zeros((2, n_rows, n_bins))
    for mode, row in enumerate(rows.of_mode):
        if row >= 0:
            weight[row] = moments.total_weight[mode, group]
            pairs = np.maximum(moments.pairs[mode, group], 1)
            mean[row] = moments.by["naive"].cu[mode, group] / pairs
    two_sided, sides = moments.two_sided, moments.sides
    if two_sided is None or sides is None:
        return Whole(weight, mean, np.zeros(0), np.zeros((2, 0)), np.zeros((2, 0)))
    pairs = moments.pairs[two_sided, group].astype(np.float64)
    return Whole(
        weight,
        mean,
        pairs,
        np.ascontiguousarray(sides.weight[:, group]),
        np.ascontiguousarray(np.nan_to_num(sides.means[:, group])),
    )


@tight
def weigh_run(
    first: Index, last: Index, c: float, u: float, weight: Floats, mean: Floats, found: Floats
) -> None:
    """Add what an item with c pairs and the sum u does in bins in which it has no more pairs."""
    for b in range(first, last):
        rest = weight[b] - c
        changed = (u - mean[b] * c) * (weight[b] / rest)
        found[b] += changed * changed if rest > NOTHING_LEFT * weight[b] else np.nan


@kernel
def weigh_rows(
    bins: Ints, pairs: Floats, sums: Floats, weight: Floats, mean: Floats, found: Floats
) -> None:
    """Add what items with all their pairs in one bin do."""
    for k in range(len(bins)):
        weigh_run(bins[k], len(weight), pairs[k], sums[k], weight, mean, found)


@inlined
def weigh_held(held: Floats, held_bins: Masks, weight: Floats, mean: Floats, found: Floats) -> None:
    """Add what an item does from its first pair on, given its pairs and sum by bin."""
    c, u, last = 0.0, 0.0, np.int64(-1)
    for word in range(len(held_bins)):
        bits = held_bins[word]
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            if last >= 0:
                weigh_run(last, b, c, u, weight, mean, found)
            c, u, last = c + held[b, 0], u + held[b, 1], b
    weigh_run(last, len(weight), c, u, weight, mean, found)


@inlined
def weigh_sides_held(
    held: Floats,
    first: int,
    pairs: Floats,
    weight: Floats,
    mean: Floats,
    found: Floats,
) -> None:
    """Add what an item of two sides does, given its rows below, above and tied by bin."""
    cb, ub, ca, ua = 0.0, 0.0, 0.0, 0.0
    for b in range(first, len(pairs)):
        ties, of_ties = 0.5 * held[2, b, 0], 0.5 * held[2, b, 1]
        cb += held[BELOW, b, 0] - ties
        ub += held[BELOW, b, 1] - of_ties
        ca += held[ABOVE, b, 0] - ties
        ua += held[ABOVE, b, 1] - of_ties
        wb, wa = weight[BELOW, b], weight[ABOVE, b]
        rb, ra = wb - cb, wa - ca
        if rb > NOTHING_LEFT * wb and ra > NOTHING_LEFT * wa:
            xb, xa = ub - mean[BELOW, b] * cb, ua - mean[ABOVE, b] * ca
            changed = 0.5 * pairs[b] * (xb / rb + xa / ra)
            found[b] += changed * changed
        else:
            found[b] = np.nan


@tight
def weigh_sides_of(
    held: Floats,
    rows: tuple[Index, Index, Index],
    g: Index,
    pairs: Floats,
    weight: Floats,
    mean: Floats,
    found: Floats,
) -> None:
    """Add what an item of two sides does from its first pair on."""
    cb, ub, ca, ua = 0.0, 0.0, 0.0, 0.0
    at = len(found) - len(pairs) + g
    for b in range(held.shape[1]):
        ties, of_ties = 0.5 * held[rows[2], b, 0], 0.5 * held[rows[2], b, 1]
        cb += held[rows[0], b, 0] - ties
        ub += held[rows[0], b, 1] - of_ties
        ca += held[rows[1], b, 0] - ties
        ua += held[rows[1], b, 1] - of_ties
        if cb == 0.0 and ca == 0.0:
            continue
        wb, wa = weight[BELOW, g, b], weight[ABOVE, g, b]
        rb, ra = wb - cb, wa - ca
        if rb > NOTHING_LEFT * wb and ra > NOTHING_LEFT * wa:
            xb, xa = ub - mean[BELOW, g, b] * cb, ua - mean[ABOVE, g, b] * ca
            changed = 0.5 * pairs[g, b] * (xb / rb + xa / ra)
            found[at, b] += changed * changed
        else:
            found[at, b] = np.nan


@inlined
def weigh_from(
    slot: Index,
    first: Index,
    last: Index,
    c: float,
    u: float,
    weight: Floats,
    mean: Floats,
    found: Floats,
) -> None:
    """Add what an item with c pairs and the sum u does in bins in which it has no more pairs."""
    for b in range(first, last):
        if weight[slot, b] > 0:
            rest = weight[slot, b] - c
            enough = rest > NOTHING_LEFT * weight[slot, b]
            changed = (u - mean[slot, b] * c) * (weight[slot, b] / rest) if enough else np.nan
            found[slot, b] += changed * changed
