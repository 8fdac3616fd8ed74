"""Whatever a rule returns becomes one finite float64 number a row, or an error that names it."""

from __future__ import annotations

from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mpc_lab.errors import MpcError

Floats: TypeAlias = NDArray[np.float64]


def checked_scores(values: Any, n_rows: int, what: str) -> Floats:
    """Return `values` as float64, one finite number for each of `n_rows` rows."""
    found = np.asarray(values)
    if found.shape != (n_rows,):
        raise MpcError(
            f"{what} must give one score for each of the {n_rows:,} rows, but an array of shape "
            f"{found.shape} came: return them in the order of the rows."
        )
    scores = _numbers(found, what)
    bad = ~np.isfinite(scores)
    if bad.any():
        raise MpcError(
            f"{what} must give finite scores, but {int(bad.sum()):,} of {n_rows:,} are missing or "
            f"infinite, the first in row {int(np.flatnonzero(bad)[0])}: fill or remove them."
        )
    return scores


def _numbers(found: NDArray[Any], what: str) -> Floats:
    wrong = ""
    if found.dtype == object:
        kinds = {type(value) for value in found.tolist()}
        strange = [kind for kind in kinds if not issubclass(kind, Real) and kind is not type(None)]
        wrong = strange[0].__name__ if strange else ""
    elif found.dtype.kind not in "biuf":
        wrong = str(found.dtype)
    if wrong:
        raise MpcError(f"{what} must give numbers, but {wrong} came: convert them to float64.")
    return np.ascontiguousarray(found, dtype=np.float64)
