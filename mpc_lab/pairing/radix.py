"""A stable sort of codes: linear in their number, with no memory of the size of their range."""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.arrays import Ints
from mpc_lab.pairing.compiling import kernel

_BITS = 11


def stable_order(key: Ints) -> Ints:
    """Return the order that sorts whole numbers, 0 or above; equal ones stay as they are."""
    bits = int(key.max(initial=0)).bit_length()
    return _radix(key, max(1, -(-bits // _BITS)))


@kernel
def _radix(key: Ints, passes: int) -> Ints:
    order = np.arange(len(key))
    sorted_ = np.empty(len(key), dtype=np.int64)
    for k in range(passes):
        shift = k * _BITS
        place = np.zeros((1 << _BITS) + 1, dtype=np.int64)
        for e in range(len(key)):
            place[((key[e] >> shift) & ((1 << _BITS) - 1)) + 1] += 1
        place = np.cumsum(place)
        for entry in order:
            digit = (key[entry] >> shift) & ((1 << _BITS) - 1)
            sorted_[place[digit]] = entry
            place[digit] += 1
        order, sorted_ = sorted_, order
    return order
