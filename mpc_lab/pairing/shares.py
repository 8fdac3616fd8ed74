"""What a query adds to its unit where pairs do not count alike.

What a pair counts may depend on how many pairs its query has up to a threshold, so the pairs of a
query are held until it ends. At each bin in which it has a pair, the weight of all its pairs up to
there changes; the change is booked, so that sums over bins are right at every threshold.
"""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.bookings import SQUARES, Index
from mpc_lab.pairing.kernels import ONE, lowest, tight
from mpc_lab.pairing.weighting import BY_PAIRS, weight_of_pair
from mpc_lab.vocabulary import Floats, Ints, Masks

# What is booked beside the weighted sums: how many pairs there are, Σw² and Σw²x.
COUNT, WEIGHT_SQUARED, SQUARED_SUM = range(3)
N_SHARES = 3


@tight
def fold_query(
    sums: Floats,
    shares: Floats,
    cells: Floats,
    unit: Floats,
    touched: Masks,
    squares: Floats,
    of_cells: Floats,
    here: Floats,
    there: Masks,
    parts: Masks,
    weight: float,
    estimand: int,
    twin: Ints,
    n_slots: int,
    n_groups: int,
) -> None:
    """Add the pairs that are held of a query to those of its unit, and wipe them.

    Plain arrays: to take one out of a tuple for every slot would cost more than the sums.

    Parameters
    ----------
    sums, shares, cells
        From the `Bookings` of all units.
    unit, touched
        From the `Scratch` of the unit.
    squares, of_cells
        The sums and cells of the query: only its squares and cells are held there.
    here, there
        From the `Scratch` of the query: its pairs and centred sums, and the bins in which it has
        some.
    parts : uint64 array (group, 2)
        In which parts of cells of places it has pairs.
    """
    # The rows of a mode of two sides are its own then, and count by the pairs of both sides.
    apart = estimand != BY_PAIRS and len(twin) > 0
    for slot in range(n_slots):
        below = above = tied = slot
        if apart and slot >= twin[0] * n_groups:
            g = slot % n_groups
            below, above = twin[0] * n_groups + g, twin[1] * n_groups + g
            tied = twin[2] * n_groups + g
        # The query has the pairs of two rows, those of a third being in both; or of one, thrice.
        pairs, n, x, xx = 0.0, 0.0, 0.0, 0.0
        c, u, cc, cu, uu = 0.0, 0.0, 0.0, 0.0, 0.0
        for word in range(there.shape[1]):
            bits = there[below, word] | there[above, word]
            while bits:
                b = 64 * word + lowest(bits)
                bits &= bits - ONE
                pairs += here[below, b, 0] + here[above, b, 0] - here[tied, b, 0]
                fresh = here[slot, b, 0]
                n += fresh
                if n == 0.0:
                    continue
                x += here[slot, b, 1]
                xx += squares[slot, b, SQUARES]
                f = weight_of_pair(weight, estimand, pairs)
                unit[slot, b, 0] += f * n - c
                unit[slot, b, 1] += f * x - u
                sums[slot, b, SQUARES] += f * f * xx - uu
                shares[slot, b, COUNT] += fresh
                shares[slot, b, WEIGHT_SQUARED] += f * f * n - cc
                shares[slot, b, SQUARED_SUM] += f * f * x - cu
                c, u, cc, cu, uu = f * n, f * x, f * f * n, f * f * x, f * f * xx
                touched[slot, word] |= ONE << np.uint64(b & 63)
    for g in range(len(parts)):
        for word in range(2):
            bits = parts[g, word]
            parts[g, word] = np.uint64(0)
            while bits:
                part = 64 * word + lowest(bits)
                bits &= bits - ONE
                _fold_part(
                    cells[part, :, g],
                    of_cells[part, :, g],
                    here,
                    there,
                    weight,
                    estimand,
                    twin[0] * n_groups + g,
                    twin[1] * n_groups + g,
                    twin[2] * n_groups + g,
                )
    for slot in range(n_slots):
        for word in range(there.shape[1]):
            bits = there[slot, word]
            there[slot, word] = np.uint64(0)
            while bits:
                b = 64 * word + lowest(bits)
                bits &= bits - ONE
                here[slot, b, 0] = 0.0
                here[slot, b, 1] = 0.0
                squares[slot, b, SQUARES] = 0.0


@tight
def _fold_part(
    to: Floats,
    held: Floats,
    here: Floats,
    there: Masks,
    weight: float,
    estimand: int,
    below: Index,
    above: Index,
    tied: Index,
) -> None:
    """Book the same of one part of the cells of places, and wipe it."""
    pairs, n, x, c, u = 0.0, 0.0, 0.0, 0.0, 0.0
    for word in range(there.shape[1]):
        bits = there[below, word] | there[above, word]
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            pairs += here[below, b, 0] + here[above, b, 0] - here[tied, b, 0]
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
