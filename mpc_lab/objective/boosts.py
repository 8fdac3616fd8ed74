"""One group of a ranking under boosts of its scores: its gap, and the value of the lists.

The rows of each query are two sorted runs, inside and outside the group. A boost moves one run
against the other and keeps the order inside each, so that everything about a boost takes one pass
over two runs, with no sort and no list of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mpc_lab.errors import MpcError, check_epsilon
from mpc_lab.inference.clustered import estimate_listed, pair_codes
from mpc_lab.inference.estimates import Estimates, estimate
from mpc_lab.objective.antitonic import (
    AntitonicFit,
    add_cells,
    default_steps,
    fit_antitonic,
    split_cells,
)
from mpc_lab.objective.boost_kernels import (
    CC,
    CLUSTERS,
    CU,
    N_SUMS,
    PAIRS,
    SQUARES,
    SUM,
    UU,
    add_windows,
    list_window,
    merge_boosted,
)
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
from mpc_lab.pairing.kernels import FEW_ROWS, interruptible
from mpc_lab.pairing.log import Log, sort_rows
from mpc_lab.pairing.moments import Quadratic
from mpc_lab.pairing.threads import in_order
from mpc_lab.vocabulary import VARIANCES, Flags, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


@dataclass(frozen=True)
class Run:
    """The rows of one side, sorted by query and score.

    Attributes
    ----------
    starts : int64 array, one longer than the number of queries
    score, outcome : float64 array
    place : int64 array
        The index of the row in the log.
    turn : int64 array
        Tied rows of a query are listed in ascending turn.
    """

    starts: Ints
    score: Floats
    outcome: Floats
    place: Ints
    turn: Ints


@dataclass(frozen=True)
class Runs:
    """The two runs of a log, and where its units and queries start."""

    units: Ints
    starts: Ints
    inside: Run
    outside: Run


def split(log: Log, ranking: Ranking, group: str) -> Runs:
    """Take a sorted log apart into the rows inside and outside a group."""
    member = ranking.member(group)[log.row]
    return Runs(log.units, log.starts, _run(log, ranking, member), _run(log, ranking, ~member))


def mean_difference(runs: Runs) -> float:
    """Return the mean of d over all cross-group pairs of all queries; 0 without any."""
    inside, outside = runs.inside, runs.outside
    n_in, n_out = np.diff(inside.starts), np.diff(outside.starts)
    both = (n_in > 0) & (n_out > 0)
    origin = outside.outcome[outside.starts[:-1][both]]

    def sums(run: Run) -> Floats:
        query = np.repeat(np.arange(len(both)), np.diff(run.starts))
        place = np.cumsum(both)[query] - 1
        y = (run.outcome - origin[place])[both[query]]
        return np.bincount(place[both[query]], y, minlength=len(origin)).astype(np.float64)

    pairs = float(n_in[both] @ n_out[both])
    if not pairs:
        return 0.0
    return float(n_out[both] @ sums(inside) - n_in[both] @ sums(outside)) / pairs


def _run(log: Log, ranking: Ranking, chosen: Flags) -> Run:
    place = np.flatnonzero(chosen)
    row = log.row[place]
    return Run(
        starts=np.searchsorted(place, log.starts).astype(np.int64),
        score=log.score[place],
        outcome=log.outcome[place],
        place=place,
        turn=row if ranking.position is None else ranking.position[row],
    )


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
        The weights and gain of the objective, as in `mpc_lab.objective.ndcg.query_objective`.
    log : Log, optional
        The rows sorted by the logged scores, with any groups, where they are sorted already.
    """

    def __init__(
        self,
        ranking: Ranking,
        group: str,
        *,
        weights: Weights = None,
        gain: str = "linear",
        log: Log | None = None,
    ) -> None:
        ranking.group_index(group)
        self.ranking, self.group = ranking, group
        self.log = sort_rows(ranking) if log is None else log
        self.runs: Runs = split(self.log, ranking, group)
        self._weights = position_weights(weights, int(np.diff(self.log.starts).max(initial=0)))
        self._gain = gain
        self._in_worth = gains(self.runs.inside.outcome, gain)
        self._out_worth = gains(self.runs.outside.outcome, gain)

    @cached_property
    def baseline(self) -> QueryObjective:
        """The objective without a boost."""
        return query_objective(self.ranking, weights=self._weights, gain=self._gain, log=self.log)

    @cached_property
    def _codes(self) -> Ints:
        return query_codes(self.ranking, self.log)

    @cached_property
    def query_weight(self) -> Floats:
        """The weight of each query, in the order of the log."""
        weights = self.ranking.query_weights
        return np.ones(len(self._codes)) if weights is None else weights[self._codes]

    @cached_property
    def fit(self) -> AntitonicFit:
        """The mean of d as a non-increasing function of the signed distance, within ±σ."""
        every = np.ones(len(self.runs.units) - 1, dtype=np.bool_)
        reach = self.ranking.score_std
        cells, _ = add_cells(self.runs, every, self.query_weight, reach)
        return fit_antitonic(split_cells(self.runs, every, self.query_weight, reach, cells)[0])

    def shift(self, alphas: Floats) -> Boosts:
        """Return the same group with its scores raised by the α of each cluster (cluster,)."""
        shifted = copy(self)
        inside = self.runs.inside
        of_query = np.repeat(alphas, np.diff(self.runs.units))
        moved = inside.score + np.repeat(of_query, np.diff(inside.starts))
        shifted.runs = replace(self.runs, inside=replace(inside, score=moved))
        return shifted

    @cached_property
    def _center(self) -> float:
        return mean_difference(self.runs)

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
            The last two need items and list the pairs of each step, as weights of queries do too.
        kept : array of bool (cluster,), optional
            Only the queries of these units (without units: these queries).
        level : float
        """
        steps = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        some = np.ones(len(self.runs.units) - 1, dtype=np.bool_) if kept is None else kept
        sums = self._windows(steps, epsilon, some)
        pairs = sums[:, PAIRS].astype(np.int64)
        known = np.where(pairs > 0, pairs, np.nan)
        weighted = self.ranking.weight is not None
        if VARIANCES[cluster].needs_items or weighted:
            items = self._items(cluster) if VARIANCES[cluster].needs_items else None

            def listed(step: int) -> Estimates:
                rows = self._pairs(float(steps[step]), epsilon, some, int(pairs[step]))
                return self._estimate(*rows, items, cluster, level)

            estimates = _stack(list(in_order(listed, range(len(steps)), here=self._is_small)))
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
        mean = estimates.estimate if weighted else self._center + sums[:, SUM] / known
        return Gaps(steps, pairs, mean, estimates)

    @property
    def _is_small(self) -> bool:
        return len(self.log.row) < FEW_ROWS

    def objective(self, alpha: float) -> tuple[QueryObjective, Ints]:
        """Return the objective under a boost, and how many places of each list have a new row.

        Lists are those of the scores, ties in the order of logged positions, else of the input.
        """
        inside, outside = self.runs.inside, self.runs.outside
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

    def changes(self, alphas: Floats, *, level: float = 0.95) -> Iterator[tuple[Change, float]]:
        """Yield the `change` of each boost."""
        # What all boosts are compared with is made before threads could make it twice.
        few = self._is_small or not len(self.baseline.dcg)
        return in_order(partial(self.change, level=level), alphas.tolist(), here=few)

    def _windows(self, steps: Floats, epsilon: float, kept: Flags) -> Floats:
        inside, outside = self.runs.inside, self.runs.outside
        sums = np.zeros((len(steps), N_SUMS))
        interruptible(
            len(inside.score) + len(outside.score),
            add_windows,
            self.runs.units,
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
        inside, outside = self.runs.inside, self.runs.outside
        i, j = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        list_window(
            self.runs.units,
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
        self, one: Ints, other: Ints, items: Ints | None, cluster: str, level: float
    ) -> Estimates:
        ranking = self.ranking
        d = ranking.outcome[one] - ranking.outcome[other]
        code = ranking.query_code if ranking.unit_code is None else ranking.unit_code
        # For few pairs of a large log, new codes keep the sums as short as the list of pairs.
        query = _dense(code[one])
        weight = None if ranking.weight is None else ranking.weight[one]
        if items is None:
            codes = pair_codes(query, weight=weight)
        else:
            item = _dense(items[np.concatenate([one, other])])
            owners = (item[: len(one)], item[len(one) :], ranking.owner)
            codes = pair_codes(query, *owners, weight=weight)
        center = codes.mean(d) if len(d) else 0.0
        return estimate_listed(d - center, center, codes, cluster=cluster, level=level)

    def _items(self, cluster: str) -> Ints:
        if self.ranking.item_code is None:
            raise MpcError(
                f"cluster={cluster!r} must have items; got a ranking without an item column. Pass "
                "item= to Ranking, or use cluster='query'."
            )
        return self.ranking.owner_code  # type: ignore[return-value]


def _dense(code: Ints) -> Ints:
    """Return new codes, from 0 and without gaps, in the order of the old ones."""
    there = np.zeros(int(code.max(initial=-1)) + 1, dtype=np.bool_)
    there[code] = True
    return (np.cumsum(there) - 1)[code]


def _stack(cells: list[Estimates]) -> Estimates:
    def join(parts: list[Any]) -> Any:
        if isinstance(parts[0], dict):
            return {name: join([part[name] for part in parts]) for name in parts[0]}
        return np.stack([np.asarray(part) for part in parts])

    return Estimates(
        **{f.name: join([getattr(cell, f.name) for cell in cells]) for f in fields(Estimates)}
    )


@dataclass(frozen=True)
class BoostCurve:
    """A group under boosts by each α; arrays over α.

    Attributes
    ----------
    gaps : Gaps
        MPC(α) of the group.
    fit : array
        The antitonic fit of d at the distance α; NaN beyond the distances of the log.
    objective : dict of arrays
        ``dcg``, ``ndcg`` and their ``_std_error``; ``dcg_change`` and ``ndcg_change`` against no
        boost, paired, each with ``_low`` and ``_high``.
    share_changed : array
        Share of the places of all lists that have a new row.
    """

    gaps: Gaps
    fit: Floats
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
        For the interval of the gap; the intervals of the objective are by query.
    weights, gain
        The weights and gain of the objective.
    """
    ready = prepare(ranking, group, weights, gain)
    steps = _alphas(alphas, ready.ranking)
    epsilon = check_epsilon(epsilon)
    changes = list(ready.changes(steps, level=level))
    columns: dict[str, list[float]] = {}
    for change, _ in changes:
        for name, value in change.flat().items():
            columns.setdefault(name, []).append(value)
    return BoostCurve(
        gaps=ready.gap(steps, epsilon, cluster=cluster, level=level),
        fit=ready.fit.at(steps),
        objective={name: np.array(values) for name, values in columns.items()},
        share_changed=np.array([share for _, share in changes]),
    )


def _alphas(alphas: ArrayLike | None, ranking: Ranking) -> Floats:
    if alphas is None:
        return default_steps(ranking.score_std)
    try:
        steps = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise MpcError(f"alphas must be numbers; got {alphas!r}.") from None
    if steps.ndim != 1 or not len(steps) or not np.isfinite(steps).all():
        raise MpcError(f"alphas must be a list of finite numbers; got {alphas!r}.")
    return steps


def prepare(ranking: Ranking | Boosts, group: str, weights: Weights, gain: str) -> Boosts:
    """Return `Boosts` unchanged, or prepare them."""
    if isinstance(ranking, Boosts):
        if ranking.group != group:
            raise MpcError(
                "Boosts must be asked about the group they were prepared for, "
                f"{ranking.group!r}; got {group!r}. Prepare Boosts for each group."
            )
        return ranking
    return Boosts(ranking, group, weights=weights, gain=gain)
