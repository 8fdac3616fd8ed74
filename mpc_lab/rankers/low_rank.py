"""The best approximation of a filled rating matrix by one of low rank, at the cells asked for."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh

# ARPACK draws a new vector where a matrix of low rank leaves it none; older scipy has no seed for
# that, and its scores may then differ in the last bits from run to run.
_SEED: dict[str, Any] = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}
_CELLS_AT_ONCE = 2**16


@dataclass(frozen=True)
class Factors:
    """A matrix of low rank as a product: one row of `users` and one of `items` give a cell."""

    users: NDArray[np.float64]
    items: NDArray[np.float64]

    def cells(self, user: NDArray[np.int64], item: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the inner products at the given cells, in blocks of bounded size."""
        found = np.empty(len(user))
        for start in range(0, len(user), _CELLS_AT_ONCE):
            block = slice(start, start + _CELLS_AT_ONCE)
            left, right = self.users[user[block]], self.items[item[block]]
            found[block] = np.einsum("ij,ij->i", left, right)
        return found


def filled_matrix(
    user: NDArray[np.int64], item: NDArray[np.int64], rating: NDArray[np.float64]
) -> LinearOperator:
    """Return the user × item matrix with the mean rating in its empty cells, without building it.

    It is mean·11ᵀ plus a sparse matrix of the ratings less their mean.
    """
    shape = (int(user.max()) + 1, int(item.max()) + 1)
    mean = float(rating.mean())
    known = aslinearoperator(csr_array((rating - mean, (user, item)), shape=shape))
    column, row = np.full((shape[0], 1), mean), np.ones((1, shape[1]))
    return known + aslinearoperator(column) @ aslinearoperator(row)


def best_factors(matrix: LinearOperator, rank: int) -> Factors:
    """Return the factors of the nearest matrix of the given rank, which is below both sides.

    With V the top right singular vectors, A V Vᵀ is that matrix: its error depends on the space
    that V spans alone, not on how well the singular values inside it are told apart.
    """
    tall = matrix.shape[0] >= matrix.shape[1]
    across = matrix if tall else matrix.T
    vectors = _top_right_vectors(across, rank)
    image = across.matmat(vectors)
    return Factors(users=image, items=vectors) if tall else Factors(users=vectors, items=image)


def _top_right_vectors(matrix: LinearOperator, rank: int) -> NDArray[np.float64]:
    start = np.random.default_rng(0).standard_normal(matrix.shape[1])
    _, vectors = eigsh(matrix.T @ matrix, k=rank, which="LM", v0=start, tol=0, **_SEED)
    # ARPACK's vectors are not quite orthogonal where singular values lie close together.
    orthogonal: NDArray[np.float64] = np.linalg.qr(vectors)[0]
    return orthogonal
