"""The array types of the room, and the checks its functions share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mpc_lab.errors import MpcError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
TextArray = npt.NDArray[np.str_]


def significance(level: float) -> float:
    """Return a = 1 − level, after checking that `level` is a confidence level."""
    if not 0 < level < 1:
        raise MpcError(f"level must lie strictly between 0 and 1, got {level}; try level=0.95.")
    # 1 - 0.95 is 0.050000000000000044; the decimal that was written is meant.
    return float(round(1 - level, 15))
