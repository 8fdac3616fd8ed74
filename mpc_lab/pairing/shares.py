"""What a query adds to its unit where pairs do not count alike.

What a pair counts may depend on how many pairs its query has up to a threshold, so the pairs of a
query are held until it ends. At each bin in which it has a pair, the weight of all its pairs up to
there changes; the change is booked, so that sums over bins are right at every threshold.
"""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.bookings import SQUARES, Bookings, Index, Scratch
from mpc_lab.pairing.kernels import ONE, inlined, lowest
from mpc_lab.pairing.weighting import BY_PAIRS, weight_of_pair
from mpc_lab.vocabulary import Floats, Ints, Masks

# What is booked beside the weighted sums: how many pairs there are, Σw² and Σw²x.
COUNT, WEIGHT_SQUARED, SQUARED_SUM = range(3)
N_SHARES = 3


@inlined
def fold_query(
    to: Bookings,
    scratch: Scratch,
    held: Bookings,
    here: Scratch,
    parts: Masks,
    weight: float,
    estimand: int,
    twin: Ints,
    n_slots: int,
    n_groups: int,
) -> None:
    """Add the pairs that are held of a query to those of its unit, and wipe them.

    Parameters
    ----------
    to, scratch
        Of the unit.
    held, here
        Of the query: its squares and cells; its pairs and centred sums.
    parts : uint64 array (group, 2)
        In which parts of cells of places it has pairs.
    """
    # The rows of a mode of two sides are its own then, and count by the pairs of both sides.
    apart = estimand != BY_PAIRS and len(twin) > 0
    for slot in range(n_slots):
        if apart and slot >= twin[0] * n_groups:
            g = slot % n_groups
            below, above, tied = twin[0] * n_groups, twin[1] * n_groups, twin[2] * n_groups
            _fold_slot(
                to, scratch, held, here, weight, estimand, slot, below + g, above + g, tied + g
            )
        else:
            _fold_slot(to, scratch, held, here, weight, estimand, slot, slot, slot, slot)
    for g in range(len(to.cells)):
        if parts[g, 0] | parts[g, 1]:
            below, above, tied = twin[0] * n_groups, twin[1] * n_groups, twin[2] * n_groups
            for word in range(2):
                bits = parts[g, word]
                parts[g, word] = np.uint64(0)
                while bits:
                    part = 64 * word + lowest(bits)
                    bits &= bits - ONE
                    _fold_part(
                        to.cells[g, part],
                        held.cells[g, part],
                        here,
                        weight,
                        estimand,
                        below + g,
                        above + g,
                        tied + g,
                    )
    for slot in range(n_slots):
        _wipe(held.sums, here, slot)


@inlined
def _fold_slot(
    to: Bookings,
    scratch: Scratch,
    held: Bookings,
    here: Scratch,
    weight: float,
    estimand: int,
    slot: Index,
    below: Index,
    above: Index,
    tied: Index,
) -> None:
    """Book what the pairs of one row change at each bin in which the query has a pair.

    The query has the pairs of two rows, those of a third being in both; or of one, three times.
    """
    pairs, n, x, xx = 0.0, 0.0, 0.0, 0.0
    c, u, cc, cu, uu = 0.0, 0.0, 0.0, 0.0, 0.0
    for word in range(here.touched.shape[1]):
        bits = here.touched[below, word] | here.touched[above, word]
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            pairs += here.unit[below, b, 0] + here.unit[above, b, 0] - here.unit[tied, b, 0]
            fresh = here.unit[slot, b, 0]
            n += fresh
            if n == 0.0:
                continue
            x += here.unit[slot, b, 1]
            xx += held.sums[slot, b, SQUARES]
            f = weight_of_pair(weight, estimand, pairs)
            scratch.unit[slot, b, 0] += f * n - c
            scratch.unit[slot, b, 1] += f * x - u
            to.sums[slot, b, SQUARES] += f * f * xx - uu
            line = to.shares[slot, b]
            line[COUNT] += fresh
            line[WEIGHT_SQUARED] += f * f * n - cc
            line[SQUARED_SUM] += f * f * x - cu
            c, u, cc, cu, uu = f * n, f * x, f * f * n, f * f * x, f * f * xx
            scratch.touched[slot, word] |= ONE << np.uint64(b & 63)


@inlined
def _fold_part(
    to: Floats,
    held: Floats,
    here: Scratch,
    weight: float,
    estimand: int,
    below: Index,
    above: Index,
    tied: Index,
) -> None:
    """Book the same of one part of the cells of places, and wipe it."""
    pairs, n, x, c, u = 0.0, 0.0, 0.0, 0.0, 0.0
    for word in range(here.touched.shape[1]):
        bits = here.touched[below, word] | here.touched[above, word]
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            pairs += here.unit[below, b, 0] + here.unit[above, b, 0] - here.unit[tied, b, 0]
            fresh = held[b, 0]
            n += fresh
            x += held[b, 1]
            held[b, 0] = 0.0
            held[b, 1] = 0.0
            f = weight_of_pair(weight, estimand, pairs)
            to[b, 0] += f * n - c
            to[b, 1] += f * x - u
            to[b, 2] += fresh
            c, u = f * n, f * x


@inlined
def _wipe(sums: Floats, here: Scratch, slot: Index) -> None:
    """Forget the pairs of a row of the query."""
    for word in range(here.touched.shape[1]):
        bits = here.touched[slot, word]
        here.touched[slot, word] = np.uint64(0)
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            here.unit[slot, b, 0] = 0.0
            here.unit[slot, b, 1] = 0.0
            sums[slot, b, SQUARES] = 0.0
