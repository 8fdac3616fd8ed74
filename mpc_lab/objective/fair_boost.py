"""The boost at which a group's gap is 0, chosen on one half of the queries, tried on the other."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.errors import MpcError, check_epsilon
from mpc_lab.inference.clustered import query_clusters
from mpc_lab.inference.estimates import Estimates, critical, significance
from mpc_lab.objective.boosts import STEPS, Boosts, Gaps, default_alphas, prepare
from mpc_lab.objective.ndcg import Change, Weights
from mpc_lab.vocabulary import Flags, Floats

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

Intervals = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class HeldOut:
    """What a boost by α* does on the queries it was not chosen on.

    Attributes
    ----------
    gaps : Gaps
        MPC of the group without and with the boost.
    change : Change
        The objective before and after, with the paired interval of the difference.
    share_changed : float
        Share of the places of all lists that have a new row.
    n_queries : int
    """

    gaps: Gaps
    change: Change
    share_changed: float
    n_queries: int


@dataclass(frozen=True)
class ChosenBoost:
    """α*, how sure it is, and what it costs.

    Attributes
    ----------
    alpha : float
        The crossing from + to − nearest 0; NaN where there is none.
    resolution : float
        ε/2. α* lies about so much below the point where the mean difference at the gap is 0.
    n_crossings : int
        Crossings from + to − in the range.
    sign : int
        Sign of MPC over the whole range where there is no crossing; 0 where it has both.
    confidence_set : tuple of (low, high)
        All α at which a gap of 0 is not rejected, or cannot be tested. May be empty.
    unbounded_low, unbounded_high : bool
        Whether the set reaches the end of the range.
    curve : Gaps
        MPC(α) along the range, on the queries that α* was chosen on.
    n_queries : int
        How many these are.
    held_out : HeldOut or None
        None where there is no α*.
    note : str
        What there is to say about α* in words.
    """

    alpha: float
    resolution: float
    n_crossings: int
    sign: int
    confidence_set: Intervals
    unbounded_low: bool
    unbounded_high: bool
    curve: Gaps
    n_queries: int
    held_out: HeldOut | None
    note: str


def fair_boost(
    ranking: Ranking | Boosts,
    group: str,
    epsilon: float,
    *,
    cluster: str = "query",
    level: float = 0.95,
    seed: int = 0,
    steps: int = STEPS,
    weights: Weights = None,
    gain: str = "linear",
) -> ChosenBoost:
    r"""Find the boost α* that closes a group's gap.

    :math:`\mathrm{MPC}(\alpha)` is the mean of d over cross-group pairs with
    :math:`\alpha \le s(j) - s(i) \le \alpha + \varepsilon`, for steps of α over ± the standard
    deviation σ of all scores. α* is its crossing from + to − nearest 0, linear between steps. The
    confidence set holds all α with :math:`|\mathrm{MPC}(\alpha)| \le t\, SE(\alpha)`, linear
    between steps, and all α where that cannot be estimated. Both come from one half of the
    clusters; the objective before and after is measured on the other.

    Parameters
    ----------
    ranking : Ranking or Boosts
        `Boosts` of the same group where it was prepared before.
    group : str
    epsilon : float
        The baseline's headline threshold.
    cluster : {"query", "naive", "item", "union"}
        Of the standard error of the gap.
    level : float
    seed : int
        Of the division into halves.
    steps : int
        Number of values of α, odd.
    weights, gain
        Of the objective.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> found = fair_boost(mpc.datasets.synthetic(queries=4000), "1", epsilon=0.02)
    >>> -0.1 < found.alpha < 0.2
    True
    """
    ready = prepare(ranking, group, weights, gain)
    epsilon = check_epsilon(epsilon)
    if steps < 3 or steps % 2 == 0:
        raise MpcError(f"steps must be an odd number of at least 3, but {steps!r} came.")
    chosen = halves(ready.ranking, seed)
    alphas = default_alphas(ready.ranking, steps)
    curve = ready.gap(alphas, epsilon, cluster=cluster, kept=chosen, level=level)
    crossings = falling_crossings(alphas, curve.mean)
    alpha = min(crossings, key=abs, default=float("nan"))
    sign = 0 if crossings else _sign(curve.mean)
    found = confidence_set(alphas, curve.estimates, level)
    held = None
    of_queries = chosen[query_clusters(ready.ranking)[0]]
    if crossings:
        held = _try(ready, alpha, epsilon, cluster, ~chosen, ~of_queries, level)
    return ChosenBoost(
        alpha=alpha,
        resolution=epsilon / 2,
        n_crossings=len(crossings),
        sign=sign,
        confidence_set=found,
        unbounded_low=bool(found) and found[0][0] == alphas[0],
        unbounded_high=bool(found) and found[-1][1] == alphas[-1],
        curve=curve,
        n_queries=int(of_queries.sum()),
        held_out=held,
        note=_note(len(crossings), curve.mean),
    )


def halves(ranking: Ranking, seed: int) -> Flags:
    """Return which clusters (units, or queries) are in the half that α* is chosen on."""
    _, n = query_clusters(ranking)
    if n < 2:
        raise MpcError(
            "A fair boost is chosen on one half of the queries and tried on the other, but there "
            "is only one query or unit: give a log with more."
        )
    chosen = np.zeros(n, dtype=np.bool_)
    chosen[np.random.default_rng(seed).permutation(n)[: (n + 1) // 2]] = True
    return chosen


def falling_crossings(alphas: Floats, means: Floats) -> list[float]:
    """Return where a curve goes from + to −, linear between the steps that have a value.

    A value of exactly 0 between + and − is the crossing itself.
    """
    known = np.isfinite(means)
    at, value = alphas[known], means[known]
    signed = np.flatnonzero(value)
    crossings = []
    for left, right in itertools.pairwise(signed):
        if value[left] > 0 > value[right]:
            # With zeros between the two, the first of them.
            after = left + 1
            share = value[left] / (value[left] - value[after])
            crossings.append(float(at[left] + share * (at[after] - at[left])))
    return crossings


def confidence_set(alphas: Floats, curve: Estimates, level: float) -> Intervals:
    """Return all α at which 0 lies inside the interval of MPC(α), linear between steps.

    Where a step has no interval, nothing is excluded on either side of it.
    """
    half = critical(significance(level) / 2, curve.dof) * curve.std_error
    low = np.where(curve.estimable, curve.estimate - half, -np.inf)
    high = np.where(curve.estimable, curve.estimate + half, np.inf)
    pieces: list[tuple[float, float]] = []
    for k in range(len(alphas) - 1):
        first, last = _inside(low[k], low[k + 1], high[k], high[k + 1])
        if first > last:
            continue
        width = alphas[k + 1] - alphas[k]
        start = float(alphas[k + 1] if first == 1 else alphas[k] + first * width)
        end = float(alphas[k + 1] if last == 1 else alphas[k] + last * width)
        if pieces and start <= pieces[-1][1]:
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    return tuple(pieces)


def _inside(low: float, next_low: float, high: float, next_high: float) -> tuple[float, float]:
    """Return the part of a step, from 0 to 1, where low ≤ 0 ≤ high; empty if first > last."""
    if not np.isfinite([low, next_low, high, next_high]).all():
        return 0.0, 1.0
    first, last = 0.0, 1.0
    # Both conditions say that a straight line is at most 0.
    for here, there in ((low, next_low), (-high, -next_high)):
        if here > 0 and there > 0:
            return 1.0, 0.0
        if here > 0:
            first = max(first, here / (here - there))
        elif there > 0:
            last = min(last, here / (here - there))
    return first, last


def _try(
    ready: Boosts,
    alpha: float,
    epsilon: float,
    cluster: str,
    clusters: Flags,
    queries: Flags,
    level: float,
) -> HeldOut:
    gaps = ready.gap([0.0, alpha], epsilon, cluster=cluster, kept=clusters, level=level)
    change, share = ready.change(alpha, kept=queries, level=level)
    return HeldOut(gaps, change, share, int(queries.sum()))


def _sign(means: Floats) -> int:
    known = means[np.isfinite(means)]
    if len(known) and (known > 0).all():
        return 1
    return -1 if len(known) and (known < 0).all() else 0


def _note(n_crossings: int, means: Floats) -> str:
    if n_crossings == 1:
        return ""
    if n_crossings:
        return f"{n_crossings} crossings in the range; α* is the one nearest 0"
    if not np.isfinite(means).any():
        return "no pairs at any α of the range"
    reading = {
        1: "positive throughout",
        -1: "negative throughout",
        0: "of both signs, but never goes from + to −",
    }
    return f"no root in the range: MPC is {reading[_sign(means)]}"
