"""Weighted polynomial fits in the gap, and how each pair enters them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpc_lab.inference.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Fit:
    """A least-squares polynomial in the gap.

    Attributes
    ----------
    coefficients : array (degree + 1,)
        Of 1, Δ, Δ², …
    loadings : array (pair,)
        l_p of the coefficient that was asked for: it is Σ l_p d_p.
    residuals : array (pair,)
        e_p.
    """

    coefficients: FloatArray
    loadings: FloatArray
    residuals: FloatArray


def polynomial(
    gap: FloatArray, d: FloatArray, weight: FloatArray | None, *, degree: int, of: int = 0
) -> Fit | None:
    """Regress d on 1, Δ, …, Δ^degree, and say how each pair enters one coefficient.

    Parameters
    ----------
    gap, d : array (pair,)
        The gaps in ascending order.
    weight : array (pair,) or None
        None: all alike.
    degree : int
    of : int
        The power of Δ whose coefficient the loadings are of.

    Returns
    -------
    Fit or None
        None where there are too few distinct gaps for the degree.
    """
    if distinct(gap) <= degree:
        return None
    largest = float(gap[-1])
    # In units of the largest gap the normal equations are well conditioned.
    x = gap / largest
    powers = np.stack([x**k for k in range(degree + 1)])
    weighted = powers if weight is None else powers * weight
    inner = np.einsum("kp,lp->kl", weighted, powers)
    # Gaps may differ by rounding alone.
    if np.linalg.matrix_rank(inner, hermitian=True) <= degree:
        return None
    scaled = np.linalg.solve(inner, np.einsum("kp,p->k", weighted, d))
    pick = np.linalg.solve(inner, np.eye(degree + 1)[of])
    # With gaps of 1e-300, or of 1e300, a slope or a curvature may be no number that can be written.
    with np.errstate(all="ignore"):
        coefficients = scaled / largest ** np.arange(degree + 1)
        loadings = np.einsum("k,kp->p", pick, weighted) / largest**of
    return Fit(
        coefficients=coefficients,
        loadings=loadings,
        residuals=d - np.einsum("k,kp->p", scaled, powers),
    )


def dot(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return Σ one·other on one thread: for so little work, BLAS spends its time waking others."""
    return np.asarray(np.einsum("p,p->", one, other))


def distinct(ascending: FloatArray) -> int:
    """Return how many different numbers there are."""
    return min(1, len(ascending)) + int(np.count_nonzero(np.diff(ascending)))


def clustered_variance(fit: Fit, query: IntArray) -> float:
    """Return the query-clustered variance of a coefficient, corrected as statsmodels does.

    Q/(Q − 1)·(n − 1)/(n − k)·Σ_q (Σ l_p e_p)², k coefficients; infinite where Q < 2 or n ≤ k.
    """
    n, k = len(query), len(fit.coefficients)
    number = np.bincount(query)
    queries = np.count_nonzero(number)
    if queries < 2 or n <= k:
        return float("inf")
    total = np.bincount(query, fit.loadings * fit.residuals).astype(np.float64)
    return float(dot(total, total)) * queries / (queries - 1) * (n - 1) / (n - k)
