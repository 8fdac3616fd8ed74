"""How a kernel that runs for seconds learns that nobody waits for it any more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from mpc_lab.pairing.arrays import Stop

_here = threading.local()
_NEVER = np.zeros(1, dtype=np.uint8)


def stop_flag() -> Stop:
    """Return what kernels of this thread look at: they end early, with no result, once it is 1."""
    return getattr(_here, "flag", _NEVER)


@contextmanager
def stopped_by(flag: Stop) -> Iterator[None]:
    """Let kernels that this thread calls inside the block look at this flag."""
    before = stop_flag()
    _here.flag = flag
    try:
        yield
    finally:
        _here.flag = before
