"""Rankers to audit: ratings become scored rows.

The one here is that of the paper's MovieLens example, a truncated SVD of a filled rating matrix.
May import from: errors, vocabulary, ranking.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh

from mpc_lab.errors import MpcError, check_count, check_number
from mpc_lab.ranking.columns import (
    Frame,
    get_column,
    is_missing,
    numbers,
    open_table,
    pandas_series,
)
from mpc_lab.vocabulary import Floats, Ints

__all__ = ["svd"]

# ARPACK draws a new random vector if a matrix of low rank leaves it none; older scipy has no seed
# for that, so that scores may differ in the last bits from run to run.
_SEED: dict[str, Any] = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}
_CELLS_AT_ONCE = 2**16


@dataclass(frozen=True)
class Factors:
    """A matrix of low rank as a product: one row of `users` and one of `items` give a cell."""

    users: Floats
    items: Floats

    def cells(self, user: Ints, item: Ints) -> Floats:
        """Return the inner products at the given cells, in blocks of bounded size."""
        found = np.empty(len(user))
        for start in range(0, len(user), _CELLS_AT_ONCE):
            block = slice(start, start + _CELLS_AT_ONCE)
            left, right = self.users[user[block]], self.items[item[block]]
            found[block] = np.einsum("ij,ij->i", left, right)
        return found


def fill_matrix(user: Ints, item: Ints, rating: Floats) -> LinearOperator:
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
    that V spans alone, not on how well the singular values inside it are separated.
    """
    tall = matrix.shape[0] >= matrix.shape[1]
    across = matrix if tall else matrix.T
    vectors = _top_right_vectors(across, rank)
    image = across.matmat(vectors)
    return Factors(users=image, items=vectors) if tall else Factors(users=vectors, items=image)


def _top_right_vectors(matrix: LinearOperator, rank: int) -> Floats:
    start = np.random.default_rng(0).standard_normal(matrix.shape[1])
    _, vectors = eigsh(matrix.T @ matrix, k=rank, which="LM", v0=start, tol=0, **_SEED)
    # ARPACK's vectors are not quite orthogonal where singular values are close together.
    orthogonal: Floats = np.linalg.qr(vectors)[0]
    return orthogonal


COLUMNS = ("user", "item", "rating", "timestamp")


def svd(ratings: Any, rank: int = 64, train_fraction: float = 0.8) -> pd.DataFrame:
    r"""Learn from early ratings by a truncated SVD, and score the later ones.

    Ratings are sorted by time, ties in their original order, and the first share trains.
    With R the training ratings and m their mean, the user × item matrix

    .. math:: A_{ui} = R_{ui}\ \text{if}\ u\ \text{rated}\ i, \quad m\ \text{otherwise}

    is replaced by the nearest matrix of the given rank, :math:`U_k \Sigma_k V_k^\top` of its
    singular value decomposition, and the score of a later rating is that matrix's cell. The
    result is exact up to rounding and the same at every run; A itself is never built.

    Parameters
    ----------
    ratings : table
        One row a rating, in columns ``user``, ``item``, ``rating`` and ``timestamp``; a pair of
        user and item at most once. Any table that :class:`mpc_lab.Ranking` takes.
    rank : int
        How many singular vectors to keep, below the number of users and of items in training.
    train_fraction : float
        Share of the ratings, the earliest, to learn from; between 0 and 1.

    Returns
    -------
    pandas.DataFrame
        The later ratings, by time, whose user and item both occur in training: the four columns
        and ``score``.

    References
    ----------
    Korevaar et al. (2023), Matched Pair Calibration for Ranking Fairness.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cells = rng.permutation(30 * 20)
    >>> ratings = {"user": cells // 20, "item": cells % 20, "timestamp": np.arange(600)}
    >>> ratings["rating"] = rng.integers(1, 6, size=600)
    >>> scored = svd(ratings, rank=4)
    >>> len(scored), list(scored.columns)
    (120, ['user', 'item', 'rating', 'timestamp', 'score'])
    """
    rows = _by_time(open_table(ratings))
    n_train = _train_size(train_fraction, len(rows))
    # Ids are numbered by first appearance in time, so that those of training come first.
    user, item = (pd.factorize(rows[name])[0].astype(np.int64) for name in ("user", "item"))
    _check_once(rows, user, item)
    train = slice(n_train)
    kept = _check_rank(rank, user[train], item[train])
    rating = rows["rating"].to_numpy(dtype=np.float64)[train]
    factors = best_factors(fill_matrix(user[train], item[train], rating), kept)
    is_known = (user <= user[train].max()) & (item <= item[train].max())
    later = n_train + np.flatnonzero(is_known[n_train:])
    scored = rows.iloc[later].reset_index(drop=True)
    return scored.assign(score=factors.cells(user[later], item[later]))


def _by_time(table: Frame) -> pd.DataFrame:
    """Return the four columns as pandas, complete and sorted by time."""
    columns: dict[str, pd.Series[Any]] = {}
    for name in COLUMNS:
        series = get_column(table, name)
        absent = is_missing(series)
        if absent.any():
            raise MpcError(
                f"Column {name!r} must be complete; got {int(absent.sum()):,} missing values, the "
                f"first in row {int(absent.argmax())} (rows count from 0). Leave such rows out."
            )
        columns[name] = pandas_series(series).reset_index(drop=True)
    if not np.isfinite(numbers(get_column(table, "rating"), "The column 'rating'")).all():
        raise MpcError(
            "Column 'rating' must hold finite numbers; got infinite ones. Leave such rows out."
        )
    try:
        return pd.DataFrame(columns).sort_values("timestamp", kind="stable", ignore_index=True)
    except TypeError as error:
        raise MpcError(
            "Column 'timestamp' must hold times or numbers that can be sorted; got an error "
            f"({error}). Convert it first."
        ) from error


def _train_size(fraction: float, n_rows: int) -> int:
    check_number("train_fraction", fraction, above=0, below=1, remedy="Try train_fraction=0.8.")
    # The decimal that was written: 0.29 of 100 rows is 29, though the float is a little less.
    size = int(Fraction(repr(float(fraction))) * n_rows)
    if not size:
        raise MpcError(
            f"train_fraction must leave ratings to learn from; got {fraction!r} of {n_rows:,} "
            "ratings. Give more ratings, or a larger fraction."
        )
    return size


def _check_once(rows: pd.DataFrame, user: Ints, item: Ints) -> None:
    cell = user * (int(item.max()) + 1) + item
    ordered = np.sort(cell)  # several times faster than a hash table where nothing is wrong
    if (ordered[1:] == ordered[:-1]).any():
        row = rows[pd.Series(cell).duplicated()][:1]
        who, what = row["user"].tolist()[0], row["item"].tolist()[0]
        raise MpcError(
            f"A user must rate an item at most once; got several ratings of item {what!r} by user "
            f"{who!r}. Keep one of them."
        )


def _check_rank(rank: object, user: Ints, item: Ints) -> int:
    n_users, n_items = int(user.max()) + 1, int(item.max()) + 1
    few = f"It must be below the {n_users:,} users and {n_items:,} items of the training ratings."
    return check_count("rank", rank, at_most=min(n_users, n_items) - 1, remedy=few)
