"""What a cluster of pairs changes in sums of squares, bin by bin.

Sums are float64 arrays (bin, 9): in its first bin the cluster itself; Σc² of its pairs on the side
of the group and on the other side; then Σc², ΣcU and ΣU², over clusters and over clusters inside a
unit. What is booked in a bin is the change there, so that bins are cumulated at the end.
"""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.arrays import Floats, Masks
from mpc_lab.pairing.bits import ONE, lowest
from mpc_lab.pairing.compiling import inlined

FIRST, INSIDE, OUTSIDE, CC, CU, UU, UNIT_CC, UNIT_CU, UNIT_UU = range(9)
N_SUMS = 9


@inlined
def book_cluster(b: int, c: float, x: float, at: int, sums: Floats) -> None:
    """Book a cluster with c pairs, all of them in one bin."""
    sums[b, at] += c * c
    sums[b, at + 1] += c * x
    sums[b, at + 2] += x * x


@inlined
def book_pairs(b: int, c: float, x: float, xx: float, at: int, sums: Floats) -> None:
    """Book c pairs of one bin that are each a cluster, given their Σx and Σx²."""
    sums[b, at] += c
    sums[b, at + 1] += x
    sums[b, at + 2] += xx


@inlined
def hold(held: Floats, held_bins: Masks, b: int, c: float, x: float) -> None:
    """Keep some pairs of a cluster until it is closed."""
    held[b, 0] += c
    held[b, 1] += x
    held_bins[b >> 6] |= ONE << np.uint64(b & 63)


@inlined
def close(held: Floats, held_bins: Masks, at: int, sums: Floats) -> None:
    """Book the changes of Σc², ΣcU and ΣU² that a cluster makes, and wipe what is held of it."""
    pairs, total = 0.0, 0.0
    for word in range(len(held_bins)):
        bits = held_bins[word]
        held_bins[word] = np.uint64(0)
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            c, u = held[b, 0], held[b, 1]
            held[b, 0] = 0.0
            held[b, 1] = 0.0
            sums[b, at] += c * (2 * pairs + c)
            sums[b, at + 1] += pairs * u + c * total + c * u
            sums[b, at + 2] += u * (2 * total + u)
            pairs, total = pairs + c, total + u


@inlined
def close_sides(side: Floats, bins: Masks, sums: Floats) -> None:
    """Book a cluster's first bin and the changes of Σc² on either side."""
    inside, outside, fresh = 0.0, 0.0, 1.0
    for word in range(len(bins)):
        bits = bins[word]
        while bits:
            b = 64 * word + lowest(bits)
            bits &= bits - ONE
            sums[b, FIRST] += fresh
            sums[b, INSIDE] += side[b, 0] * (2 * inside + side[b, 0])
            sums[b, OUTSIDE] += side[b, 1] * (2 * outside + side[b, 1])
            inside, outside, fresh = inside + side[b, 0], outside + side[b, 1], 0.0
            side[b, 0] = 0.0
            side[b, 1] = 0.0


@inlined
def close_alone(held: Floats, at_side: int, sums: Floats) -> None:
    """Book a cluster that lies in one row of one unit, given its pairs and Σx by bin.

    Parameters
    ----------
    held : float64 array (bin, at least 2)
    at_side : int
        ``INSIDE`` or ``OUTSIDE``.
    """
    pairs, total, fresh = 0.0, 0.0, 1.0
    for b in range(len(held)):
        c, u = held[b, 0], held[b, 1]
        if c > 0:
            cc, cu = c * (2 * pairs + c), pairs * u + c * total + c * u
            uu = u * (2 * total + u)
            sums[b, FIRST] += fresh
            sums[b, at_side] += cc
            for at in (CC, UNIT_CC):
                sums[b, at] += cc
                sums[b, at + 1] += cu
                sums[b, at + 2] += uu
            pairs, total, fresh = pairs + c, total + u, 0.0
