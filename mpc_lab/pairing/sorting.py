"""A sort for the inside of kernels.

Not ``np.sort`` or ``np.argsort``: numba tells their inner functions apart by a counter that starts
anew in every process, so that kernels cached by different processes, ours or another package's,
can call each other's, and the process dies. What is inlined has no name to be mistaken.
"""

from __future__ import annotations

from mpc_lab.pairing.arrays import Floats, Ints
from mpc_lab.pairing.compiling import inlined

_RUN = 12


@inlined
def sort_order(key: Floats, order: Ints, spare: Ints) -> None:
    """Write to the start of `order` the order that sorts `key`; equal ones stay as they are.

    Runs are sorted by insertion and merged. `order` and `spare` have room for one entry a key.
    """
    n = len(key)
    for first in range(0, n, _RUN):
        for k in range(first, min(first + _RUN, n)):
            place = k
            while place > first and key[order[place - 1]] > key[k]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = k
    width = _RUN
    while width < n:
        for first in range(0, n, 2 * width):
            middle, last = min(first + width, n), min(first + 2 * width, n)
            one, other = first, middle
            for k in range(first, last):
                if other == last or (one < middle and key[order[one]] <= key[order[other]]):
                    spare[k] = order[one]
                    one += 1
                else:
                    spare[k] = order[other]
                    other += 1
        for k in range(n):
            order[k] = spare[k]
        width *= 2
