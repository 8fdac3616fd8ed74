"""Means of many cells at once, from one number an entry, with what clusters make of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpc_lab.inference.arrays import FloatArray, IntArray
from mpc_lab.inference.estimates import Estimates, estimate
from mpc_lab.pairing.moments import Quadratic


@dataclass(frozen=True)
class CellMeans:
    """The mean of each cell, clustered by query.

    Attributes
    ----------
    estimates : Estimates
        Arrays over cells.
    counts : int64 array
        Entries of each cell.
    mean : float64 array
        Also where there is no interval; NaN without entries.
    covariance : float64 array (cell, cell)
        Raw, from query sums; NaN for cells without entries.
    """

    estimates: Estimates
    counts: IntArray
    mean: FloatArray
    covariance: FloatArray


def cell_means(
    cell: IntArray, cluster: IntArray, values: FloatArray, n_cells: int, *, level: float = 0.95
) -> CellMeans:
    """Return the mean of the values in each cell.

    Parameters
    ----------
    cell, cluster : array of int64 (entry,)
        From 0.
    values : float64 array (entry,)
    n_cells : int
    level : float
    """
    n = np.bincount(cell, minlength=n_cells).astype(np.float64)
    known = np.where(n > 0, n, np.nan)
    middle = float(np.median(values)) if len(values) else 0.0
    mean = middle + np.bincount(cell, values - middle, minlength=n_cells) / known
    u = values - mean[cell]
    key, at = np.unique(cluster * n_cells + cell, return_inverse=True)
    count = np.bincount(at, minlength=len(key)).astype(np.float64)
    total = np.bincount(at, u, minlength=len(key)).astype(np.float64)
    of_cell, of_cluster = key % n_cells, key // n_cells

    def add(to: IntArray, what: FloatArray) -> FloatArray:
        return np.bincount(to, what, minlength=n_cells).astype(np.float64)

    by = {
        "naive": Quadratic(n, add(cell, u), add(cell, u**2)),
        "query": Quadratic(
            add(of_cell, count**2), add(of_cell, count * total), add(of_cell, total**2)
        ),
    }
    return CellMeans(
        estimates=estimate(
            n.astype(np.int64),
            np.nan_to_num(mean),
            by,
            clusters=np.bincount(of_cell, minlength=n_cells).astype(np.int64),
            cluster="query",
            level=level,
        ),
        counts=n.astype(np.int64),
        mean=np.asarray(mean),
        covariance=_covariance(of_cluster, of_cell, total, known),
    )


def _covariance(
    cluster: IntArray, cell: IntArray, total: FloatArray, counts: FloatArray
) -> FloatArray:
    from scipy.sparse import csr_array

    dense = np.unique(cluster, return_inverse=True)[1]
    shape = (int(dense.max(initial=-1)) + 1, len(counts))
    table = csr_array((total, (dense, cell)), shape=shape)
    products = (table.T @ table).toarray()
    return np.asarray(products / np.outer(counts, counts))
