"""One group of a ranking under boosts of its scores: its gap and what the lists are worth."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mpc_lab.errors import MpcError, check_epsilon
from mpc_lab.inference.clustered import estimate_listed, pair_codes
from mpc_lab.inference.estimates import Estimates, estimate
from mpc_lab.objective.ndcg import (
    Change,
    QueryObjective,
    Weights,
    change_between,
    gains,
    in_code_order,
    position_weights,
    query_codes,
    query_objective,
)
from mpc_lab.objective.sides import (
    CC,
    CLUSTERS,
    CU,
    N_SUMS,
    PAIRS,
    SQUARES,
    SUM,
    UU,
    Sides,
    add_windows,
    list_window,
    mean_difference,
    merge_boosted,
    split,
)
from mpc_lab.pairing.kernels import interruptible
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.moments import Quadratic
from mpc_lab.vocabulary import VARIANCES, Flags, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


@dataclass(frozen=True)
class Gaps:
    """MPC(α) at each step; arrays over α.

    Attributes
    ----------
    alpha : float64 array
    pairs : int64 array
    mean : float64 array
        Mean difference of outcomes, also where it is not estimable; NaN without pairs.
    estimates : Estimates
    """

    alpha: Floats
    pairs: Ints
    mean: Floats
    estimates: Estimates


class Boosts:
    r"""One group of a ranking, sorted once and ready to be boosted by any α.

    A step costs one pass over the rows. The ``matched`` pairs under a boost by α are the
    cross-group pairs with :math:`\alpha \le s(j) - s(i) \le \alpha + \varepsilon`.

    Parameters
    ----------
    ranking : Ranking
    group : str
    weights, gain
        Of the objective, as in `mpc_lab.objective.ndcg.query_objective`.
    """

    def __init__(
        self,
        ranking: Ranking,
        group: str,
        *,
        weights: Weights = None,
        gain: str = "linear",
    ) -> None:
        ranking.group_index(group)
        self.ranking, self.group = ranking, group
        self.log = sort_rows(ranking)
        self.sides: Sides = split(self.log, ranking, group)
        self._weights = position_weights(weights, int(np.diff(self.log.starts).max(initial=0)))
        self._gain = gain
        self._in_worth = gains(self.sides.inside.outcome, gain)
        self._out_worth = gains(self.sides.outside.outcome, gain)

    @cached_property
    def baseline(self) -> QueryObjective:
        """The objective without a boost."""
        return query_objective(self.ranking, weights=self._weights, gain=self._gain, log=self.log)

    @cached_property
    def _codes(self) -> Ints:
        return query_codes(self.ranking, self.log)

    @cached_property
    def _center(self) -> float:
        return mean_difference(self.sides)

    def gap(
        self,
        alphas: ArrayLike,
        epsilon: float,
        *,
        cluster: str = "query",
        kept: Flags | None = None,
        level: float = 0.95,
    ) -> Gaps:
        """Return MPC(α) at each α.

        Parameters
        ----------
        alphas : array
        epsilon : float
            The threshold, the same for every α.
        cluster : {"query", "naive", "item", "union"}
            The last two list the pairs of each step and need items.
        kept : array of bool (cluster,), optional
            Only the queries of these units (without units: these queries).
        level : float
        """
        steps = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        some = np.ones(len(self.sides.units) - 1, dtype=np.bool_) if kept is None else kept
        sums = self._windows(steps, epsilon, some)
        pairs = sums[:, PAIRS].astype(np.int64)
        known = np.where(pairs > 0, pairs, np.nan)
        if VARIANCES[cluster].needs_items:
            items = self._items(cluster)
            listed = (self._pairs(a, epsilon, some, n) for a, n in zip(steps, pairs, strict=True))
            estimates = _stack([self._estimate(*rows, items, cluster, level) for rows in listed])
        else:
            estimates = estimate(
                pairs,
                self._center,
                {
                    "naive": Quadratic(sums[:, PAIRS], sums[:, SUM], sums[:, SQUARES]),
                    "query": Quadratic(sums[:, CC], sums[:, CU], sums[:, UU]),
                },
                clusters=sums[:, CLUSTERS].astype(np.int64),
                cluster=cluster,
                level=level,
            )
        return Gaps(steps, pairs, self._center + sums[:, SUM] / known, estimates)

    def objective(self, alpha: float) -> tuple[QueryObjective, Ints]:
        """Return the objective under a boost, and how many places of each list have a new row.

        Lists are those of the scores, ties in the order of logged positions, else of the input.
        """
        inside, outside = self.sides.inside, self.sides.outside
        dcg = np.empty(self.ranking.n_queries)
        moved = np.empty(self.ranking.n_queries, dtype=np.int64)
        merge_boosted(
            inside.starts,
            inside.score,
            self._in_worth,
            inside.place,
            inside.turn,
            outside.starts,
            outside.score,
            self._out_worth,
            outside.place,
            outside.turn,
            float(alpha),
            self._weights,
            dcg,
            moved,
        )
        after = replace(self.baseline, dcg=in_code_order(dcg, self._codes))
        return after, in_code_order(moved, self._codes)

    def change(
        self, alpha: float, *, kept: Flags | None = None, level: float = 0.95
    ) -> tuple[Change, float]:
        """Return the paired change of the objective, and the share of places with a new row.

        `kept` are queries, in the order of the ranking's query codes.
        """
        after, moved = self.objective(alpha)
        some = np.ones(len(moved), dtype=np.bool_) if kept is None else kept
        change = change_between(self.ranking, self.baseline, after, kept=some, level=level)
        rows = self.baseline.size[some].sum()
        return change, float(moved[some].sum() / rows) if rows else float("nan")

    def _windows(self, steps: Floats, epsilon: float, kept: Flags) -> Floats:
        inside, outside = self.sides.inside, self.sides.outside
        sums = np.zeros((len(steps), N_SUMS))
        interruptible(
            len(inside.score) + len(outside.score),
            add_windows,
            self.sides.units,
            kept,
            inside.starts,
            inside.score,
            inside.outcome,
            outside.starts,
            outside.score,
            outside.outcome,
            steps,
            steps + epsilon,
            self._center,
            sums,
        )
        return sums

    def _pairs(self, alpha: float, epsilon: float, kept: Flags, n: int) -> tuple[Ints, Ints]:
        """Return the rows of the ranking that make the `n` pairs of one step."""
        inside, outside = self.sides.inside, self.sides.outside
        i, j = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        list_window(
            self.sides.units,
            kept,
            inside.starts,
            inside.score,
            outside.starts,
            outside.score,
            alpha,
            alpha + epsilon,
            i,
            j,
        )
        return self.log.row[inside.place[i]], self.log.row[outside.place[j]]

    def _estimate(
        self, one: Ints, other: Ints, items: Ints, cluster: str, level: float
    ) -> Estimates:
        ranking = self.ranking
        d = ranking.outcome[one] - ranking.outcome[other]
        center = float(d.mean()) if len(d) else 0.0
        code = ranking.query_code if ranking.unit_code is None else ranking.unit_code
        # Few pairs of a large log: codes of their own keep the sums as short as the pairs.
        query = _dense(code[one])
        item = _dense(items[np.concatenate([one, other])])
        codes = pair_codes(query, item[: len(one)], item[len(one) :])
        return estimate_listed(d - center, center, codes, cluster=cluster, level=level)

    def _items(self, cluster: str) -> Ints:
        if self.ranking.item_code is None:
            raise MpcError(
                f"cluster={cluster!r} needs items, but the ranking has no item column; "
                "pass item= to Ranking or use cluster='query'."
            )
        return self.ranking.item_code


def _dense(code: Ints) -> Ints:
    return np.unique(code, return_inverse=True)[1].astype(np.int64)


def _stack(cells: list[Estimates]) -> Estimates:
    def join(parts: list[Any]) -> Any:
        if isinstance(parts[0], dict):
            return {name: join([part[name] for part in parts]) for name in parts[0]}
        return np.stack([np.asarray(part) for part in parts])

    return Estimates(
        **{f.name: join([getattr(cell, f.name) for cell in cells]) for f in fields(Estimates)}
    )


STEPS = 201


@dataclass(frozen=True)
class BoostCurve:
    """A group under boosts by each α; arrays over α.

    Attributes
    ----------
    gaps : Gaps
        MPC(α) of the group.
    objective : dict of arrays
        ``dcg``, ``ndcg`` and their ``_std_error``; ``dcg_change`` and ``ndcg_change`` against no
        boost, paired, each with ``_low`` and ``_high``.
    share_changed : array
        Share of the places of all lists that have a new row.
    """

    gaps: Gaps
    objective: dict[str, Floats]
    share_changed: Floats


def boost_curve(
    ranking: Ranking | Boosts,
    group: str,
    epsilon: float,
    alphas: ArrayLike | None = None,
    *,
    cluster: str = "query",
    level: float = 0.95,
    weights: Weights = None,
    gain: str = "linear",
) -> BoostCurve:
    """Follow a group's gap and the objective along boosts.

    Parameters
    ----------
    ranking : Ranking or Boosts
        `Boosts` of the same group where it was prepared before: a step then costs no sort.
    group : str
    epsilon : float
        The threshold, the same for every α: that of the baseline's headline.
    alphas : array, optional
        By default 201 steps over ± the standard deviation of all scores.
    cluster, level
        Of the interval of the gap; those of the objective are by query.
    weights, gain
        Of the objective.
    """
    ready = prepare(ranking, group, weights, gain)
    steps = _alphas(alphas, ready.ranking)
    epsilon = check_epsilon(epsilon)
    changes = [ready.change(alpha, level=level) for alpha in steps]
    columns: dict[str, list[float]] = {}
    for change, _ in changes:
        for name, value in change.flat().items():
            columns.setdefault(name, []).append(value)
    return BoostCurve(
        gaps=ready.gap(steps, epsilon, cluster=cluster, level=level),
        objective={name: np.array(values) for name, values in columns.items()},
        share_changed=np.array([share for _, share in changes]),
    )


def default_alphas(ranking: Ranking, steps: int = STEPS) -> Floats:
    """Return steps of α over ± the standard deviation of all scores, 0 among them."""
    half = steps // 2
    return np.asarray(ranking.score_std * (np.arange(-half, half + 1) / half))


def _alphas(alphas: ArrayLike | None, ranking: Ranking) -> Floats:
    if alphas is None:
        return default_alphas(ranking)
    try:
        steps = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise MpcError(f"alphas must be numbers, but {alphas!r} came.") from None
    if steps.ndim != 1 or not len(steps) or not np.isfinite(steps).all():
        raise MpcError(f"alphas must be a list of finite numbers, but {alphas!r} came.")
    return steps


def prepare(ranking: Ranking | Boosts, group: str, weights: Weights, gain: str) -> Boosts:
    """Return `Boosts` as they came, or prepare them."""
    if isinstance(ranking, Boosts):
        if ranking.group != group:
            raise MpcError(
                f"These Boosts were prepared for group {ranking.group!r}, but {group!r} is asked "
                "for: prepare Boosts for each group."
            )
        return ranking
    return Boosts(ranking, group, weights=weights, gain=gain)
