"""Raw variances of a mean over pairs, from sums over clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from mpc_lab.inference.arrays import FloatArray, IntArray

ITEM_SUMS = ("item", "dyad", "item_query")
_EPS = float(np.finfo(np.float64).eps)
_WORST_ADDING = 1e-9
_RELATIVE_ROUNDING = 1e-12


class Quadratic(Protocol):
    """Sums over clusters with c_k pairs and centred sum U_k: Σc², ΣcU, ΣU²."""

    @property
    def cc(self) -> FloatArray: ...  # noqa: D102
    @property
    def cu(self) -> FloatArray: ...  # noqa: D102
    @property
    def uu(self) -> FloatArray: ...  # noqa: D102
    def at(self, delta: FloatArray, /) -> FloatArray:
        """Return Σ(U_k − delta·c_k)²."""
        ...


def raw_variances(
    pairs: IntArray, center: FloatArray, by: Mapping[str, Quadratic]
) -> dict[str, FloatArray]:
    """Return the raw variances of the mean gap θ = center + Σ(d − center)/P.

    With u_p = d_p − θ and P pairs::

        naive  P⁻² Σ u_p²
        query  P⁻² Σ_q (Σ_{p in q} u_p)²
        item   P⁻² [Σ_i S_i² − Σ_ij U_ij²]
        both   P⁻² [Σ_iq S_iq² − Σ u_p²]
        union  item + query − both

    S_i sums u over the pairs with item i on either side, U_ij over the pairs of the same two
    items, S_iq over the pairs of item i inside query q. Item and union can be negative. A value
    that is no larger than the rounding error of its terms is 0.

    Parameters
    ----------
    pairs : array of int64
        Number of pairs P in each cell.
    center : array
        The number that was subtracted from d in the sums; broadcasts against `pairs`.
    by : mapping of str to Quadratic
        "naive" and "query"; for the item variances also "item", "dyad" and "item_query". Where
        two items can meet twice inside one cluster of "query" (a unit with several queries),
        "dyad_query" takes the place of Σ u_p² in `both`.

    Returns
    -------
    dict of str to array
        The families that `by` allows. NaN where there is no pair.

    References
    ----------
    Aronow, Samii & Assenova (2015), Cluster-robust variance estimation for dyadic data.
    """
    count = np.where(pairs > 0, pairs, np.nan)
    delta = by["naive"].cu / count
    sums = {name: by[name].at(delta) for name in by}
    slack = {name: _slack(by, name, delta, count, center + delta) for name in by}
    terms = {"naive": {"naive": 1}, "query": {"query": 1}}
    if all(name in by for name in ITEM_SUMS):
        inner = "dyad_query" if "dyad_query" in by else "naive"
        terms["item"] = {"item": 1, "dyad": -1}
        terms["both"] = {"item_query": 1, inner: -1}
        terms["union"] = {"item": 1, "dyad": -1, "query": 1, "item_query": -1, inner: 1}
    return {family: _combined(signs, sums, slack) / count**2 for family, signs in terms.items()}


def _combined(
    signs: Mapping[str, int], sums: Mapping[str, FloatArray], slack: Mapping[str, FloatArray]
) -> FloatArray:
    total = np.sum([sign * sums[name] for name, sign in signs.items()], axis=0)
    rounding = np.sum([slack[name] for name in signs], axis=0)
    return np.where(np.abs(total) <= rounding, 0.0, total)


def _slack(
    by: Mapping[str, Quadratic],
    name: str,
    delta: FloatArray,
    count: FloatArray,
    theta: FloatArray,
) -> FloatArray:
    """Return how far from 0 rounding alone can push Σ(U_k − δc_k)².

    Three sources: the last subtraction, whose terms carry the error of adding up to P equal
    numbers; the cluster sums U_k, in which pairs may cancel; and the differences d themselves.
    """
    adding = np.minimum(_EPS * (64 + count), _WORST_ADDING)
    subtraction = adding * _size(by[name], delta)
    cancelling = _RELATIVE_ROUNDING**2 * _size(by["naive"], delta)
    differences = (_RELATIVE_ROUNDING * theta) ** 2 * by[name].cc
    return np.asarray(subtraction + cancelling + differences)


def _size(sums: Quadratic, delta: FloatArray) -> FloatArray:
    return np.asarray(sums.uu + 2 * np.abs(delta * sums.cu) + delta**2 * sums.cc)
