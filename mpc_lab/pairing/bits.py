"""Walk the set bits of a 64-bit group mask."""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.compiling import inlined

ONE = np.uint64(1)
_SHIFT = np.uint64(58)
# A de Bruijn sequence: its product with a lone bit has a different top six bits for each bit.
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)
_INDEX = np.zeros(64, dtype=np.int64)
for _bit in range(64):
    _INDEX[(int(_SEQUENCE) << _bit) % 2**64 >> 58] = _bit


@inlined
def lowest(bits: np.uint64) -> np.int64:
    """Return the index of the lowest set bit."""
    lone = bits & (~bits + ONE)
    return _INDEX[(lone * _SEQUENCE) >> _SHIFT]  # type: ignore[no-any-return]
