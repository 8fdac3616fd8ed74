"""What a query adds to its unit where pairs do not count alike.

What a pair counts may depend on how many pairs its query has up to a threshold, so the pairs of a
query are held until it ends. At each bin in which it has a pair, the weight of all its pairs up to
there changes; the change is booked, so that sums over bins are right at every threshold.
"""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.bookings import SQUARES, Index
from mpc_lab.pairing.entries import UNIT_CC, UNIT_CU, UNIT_UU
from mpc_lab.pairing.kernels import ONE, lowest, tight
from mpc_lab.pairing.weighting import BY_PAIRS, weight_of_pair
from mpc_lab.vocabulary import Bins, Floats, Ints, Masks

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


@tight
def fold_cluster(
    pairs: Bins,
    changing: Masks,
    weight: float,
    share: Floats,
    here: Floats,
    here_bins: Masks,
    here_groups: Masks,
    to: Floats,
    to_bins: Masks,
    to_groups: Masks,
    closes: bool,
    sums: Floats,
) -> None:
    """Add the pairs that are held of an item, or dyad, in a query to what is held of it; wipe them.

    From its first pair on, what all of them count changes in each bin in which the query has one.

    Parameters
    ----------
    pairs : int32 array (slot, bin)
        Of the query, up to each threshold.
    changing : uint64 array (slot, word)
        The bins in which these change.
    weight : float
        Of the query.
    share : float64 array
        What a pair counts by the number of pairs, where its query has the weight 1.
    here, here_bins, here_groups : arrays
        Of the query; see `mpc_lab.pairing.item_kernel.sweep_items_of_job`.
    to, to_bins, to_groups : arrays
        Of the unit; or of all units, if `closes`.
    closes : bool
        Whether the unit has no other query, so that its sums are known.
    sums : float64 array (slot, bin, sum)
        What a unit that closes is booked in.
    """
    n_rows, n_words = len(here_groups), changing.shape[1]
    n_groups = len(pairs) // n_rows
    for r in range(n_rows):
        groups = here_groups[r]
        here_groups[r] = np.uint64(0)
        to_groups[r] |= groups
        while groups:
            slot = r * n_groups + lowest(groups)
            groups &= groups - ONE
            n, x, mine, theirs = 0.0, 0.0, 0.0, 0.0
            c, u, c_mine, c_theirs = 0.0, 0.0, 0.0, 0.0
            for word in range(n_words):
                fresh, bits = here_bins[slot, word], changing[slot, word]
                here_bins[slot, word] = np.uint64(0)
                if n == 0.0:
                    # No bin before the first pair.
                    bits &= ~((fresh & (~fresh + ONE)) - ONE) if fresh else np.uint64(0)
                to_bins[slot, word] |= bits
                while bits:
                    b = 64 * word + lowest(bits)
                    if fresh & bits & (~bits + ONE):
                        n, x = n + here[slot, b, 0], x + here[slot, b, 1]
                        mine, theirs = mine + here[slot, b, 2], theirs + here[slot, b, 3]
                        for k in range(4):
                            here[slot, b, k] = 0.0
                    bits &= bits - ONE
                    f = weight * share[pairs[slot, b]]
                    to[slot, b, 0] += f * n - c
                    to[slot, b, 1] += f * x - u
                    to[slot, b, 2] += f * mine - c_mine
                    to[slot, b, 3] += f * theirs - c_theirs
                    if closes:
                        sums[slot, b, UNIT_CC] += f * n * f * n - c * c
                        sums[slot, b, UNIT_CU] += f * n * f * x - c * u
                        sums[slot, b, UNIT_UU] += f * x * f * x - u * u
                    c, u, c_mine, c_theirs = f * n, f * x, f * mine, f * theirs


@tight
def book_changes(
    pairs: Bins,
    changing: Masks,
    weight: float,
    share: Floats,
    slot: Index,
    b: Index,
    x: float,
    as_dyad: float,
    to: Floats,
) -> None:
    """Book a pair as a dyad of its own in each bin in which what it counts changes, from its own.

    Parameters
    ----------
    pairs, changing, weight, share
        Of its query; see `fold_cluster`.
    as_dyad : float
        1, or -1 to take it back.
    to : float64 array (slot, bin, 3)
    """
    before = 0.0
    for word in range(b >> 6, changing.shape[1]):
        bits = changing[slot, word]
        if word == b >> 6:
            bits &= ~((ONE << np.uint64(b & 63)) - ONE)
        while bits:
            at = 64 * word + lowest(bits)
            bits &= bits - ONE
            f = weight * share[pairs[slot, at]]
            square = as_dyad * f * f
            to[slot, at, 0] += square - before
            to[slot, at, 1] += (square - before) * x
            to[slot, at, 2] += (square - before) * x * x
            before = square
