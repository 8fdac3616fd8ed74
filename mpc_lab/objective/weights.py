"""What each position of a list is worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mpc_lab.errors import MpcError
from mpc_lab.inference.arrays import FloatArray

Weights = ArrayLike | Callable[[FloatArray], ArrayLike] | None


def dcg_weights(n: int) -> FloatArray:
    """Return 1/log2(k + 1) for the positions k = 1, …, n."""
    return np.asarray(1 / np.log2(np.arange(2, n + 2, dtype=np.float64)))


def position_weights(weights: Weights, n: int) -> FloatArray:
    """Return the weights of the positions 1, …, n.

    Parameters
    ----------
    weights : array, callable or None
        None: those of DCG. An array of at least `n` numbers, the first for the top. A function of
        the array of positions. They must be finite, not negative and strictly decreasing.
    n : int
        The length of the longest list.

    Examples
    --------
    >>> position_weights(lambda k: 0.5**k, 3).tolist()
    [0.5, 0.25, 0.125]
    """
    if weights is None:
        return dcg_weights(n)
    given: Any = weights(np.arange(1.0, n + 1)) if callable(weights) else weights
    try:
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise MpcError(f"Position weights must be numbers, but {given!r} came.") from None
    if found.ndim != 1 or len(found) < n:
        raise MpcError(
            f"Position weights must be a list of at least {n:,} numbers, the length of the "
            f"longest list, but an array of shape {found.shape} came: give more, or a function "
            "of the position."
        )
    found = found[:n]
    if not np.isfinite(found).all() or (found < 0).any() or (np.diff(found) >= 0).any():
        raise MpcError(
            "Position weights must be finite, 0 or above, and fall from each position to the "
            "next, but they do not: give strictly decreasing weights."
        )
    return found
