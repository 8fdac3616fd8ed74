"""DCG and NDCG of every query, and how they change from one scoring to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mpc_lab.errors import MpcError, near_match
from mpc_lab.inference.clustered import (
    Clustered,
    from_influence,
    mean_over_queries,
    query_clusters,
)
from mpc_lab.inference.estimates import effective_clusters
from mpc_lab.inference.stacking import Contrast, each_contrast
from mpc_lab.pairing.kernels import kernel, sort_order
from mpc_lab.pairing.log import Log, sort_rows
from mpc_lab.pairing.pairs import ranks_of
from mpc_lab.pairing.walk import Logs, Rewalk, Source
from mpc_lab.vocabulary import Flags, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


Weights = ArrayLike | Callable[[Floats], ArrayLike] | None


def dcg_weights(n: int) -> Floats:
    """Return 1/log2(k + 1) for the positions k = 1, …, n."""
    return np.asarray(1 / np.log2(np.arange(2, n + 2, dtype=np.float64)))


def position_weights(weights: Weights, n: int) -> Floats:
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
        raise MpcError(f"Position weights must be numbers; got {given!r}.") from None
    if found.ndim != 1 or len(found) < n:
        raise MpcError(
            f"Position weights must be a list of at least {n:,} numbers, the length of the "
            f"longest list; got an array of shape {found.shape}. Give more, or a function of the "
            "position."
        )
    found = found[:n]
    if not np.isfinite(found).all() or (found < 0).any() or (np.diff(found) >= 0).any():
        raise MpcError(
            "Position weights must stay finite and at least 0, and fall from each position to the "
            "next; got weights that do not. Give strictly decreasing weights."
        )
    return found


Numbers = TypeVar("Numbers", Floats, Ints)
GAINS = ("linear", "exponential")


@dataclass(frozen=True)
class QueryObjective:
    """The objective of each query, in the order of the ranking's query codes.

    Attributes
    ----------
    dcg, ideal : float64 array (query,)
        Σ w·gain in the order of the scores, and in the best order.
    size : int64 array (query,)
        Items of the query.
    has_ndcg : bool
        False where some outcome is negative: NDCG then has no meaning.
    """

    dcg: Floats
    ideal: Floats
    size: Ints
    has_ndcg: bool

    @property
    def kept(self) -> Flags:
        """The queries that have an NDCG."""
        return np.asarray(self.has_ndcg & (self.ideal > 0))

    @property
    def ndcg(self) -> Floats:
        """DCG as a share of the ideal; NaN where the ideal is 0 or an outcome is negative."""
        share = np.full(len(self.dcg), np.nan)
        np.divide(self.dcg, self.ideal, out=share, where=self.kept)
        return share

    @property
    def n_without_ideal(self) -> int:
        """Queries without an NDCG because no item has a gain; they are left out of its mean."""
        return int((self.ideal == 0).sum())

    @property
    def n_single(self) -> int:
        """Queries of one item; they are included."""
        return int((self.size == 1).sum())


def query_objective(
    ranking: Ranking,
    scores: Floats | None = None,
    *,
    weights: Weights = None,
    gain: str = "linear",
    log: Log | None = None,
) -> QueryObjective:
    r"""Compute DCG and NDCG of each query.

    .. math::
        \mathrm{DCG} = \sum_k w_k\, \mathrm{gain}(y_{(k)}), \qquad
        \mathrm{NDCG} = \mathrm{DCG} / \max_{\text{orders}} \mathrm{DCG},

    over all items of the query, :math:`w_k = 1/\log_2(k+1)` unless other weights are given. Items
    with one score share the mean weight of their positions [2]_, so the order of the input does
    not matter; this is scikit-learn's default. The list is that of the scores, also where
    positions were logged.

    Parameters
    ----------
    ranking : Ranking
    scores : float64 array, optional
        Those of another rule than the logged ones.
    weights : array or callable, optional
        Strictly decreasing weights of positions: `position_weights`.
    gain : {"linear", "exponential"}
        y, or 2^y − 1.
    log : Log, optional
        The rows sorted by these scores, where they are sorted already.

    References
    ----------
    .. [1] Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques.
    .. [2] McSherry & Najork (2008), Computing information retrieval performance measures
       efficiently in the presence of tied scores.
    """
    log = sort_rows(ranking, scores) if log is None else log
    size = np.diff(log.starts)
    dcg, ideal = objective_of(log, weights=weights, gain=gain)
    code = query_codes(ranking, log)
    return QueryObjective(
        dcg=in_code_order(dcg, code),
        ideal=in_code_order(ideal, code),
        size=in_code_order(size, code),
        has_ndcg=bool((ranking.outcome >= 0).all()),
    )


def objective_of(
    log: Log, *, weights: Weights = None, gain: str = "linear"
) -> tuple[Floats, Floats]:
    """Return DCG and ideal DCG of each query of a log, in its order.

    Parameters
    ----------
    log : Log
    weights, gain
        As in `query_objective`.
    """
    size = np.diff(log.starts)
    w = position_weights(weights, int(size.max(initial=0)))
    dcg, ideal = np.empty(len(size)), np.empty(len(size))
    _add_up(log.starts, log.score, gains(log.outcome, gain), w, dcg, ideal)
    return dcg, ideal


def mean_objective(
    found: QueryObjective,
    ranking: Ranking,
    *,
    kept: Flags | None = None,
    level: float = 0.95,
) -> dict[str, Clustered]:
    """Return the means of DCG and NDCG over queries, with intervals clustered by query (or unit).

    A query counts its weight.

    Parameters
    ----------
    found : QueryObjective
    ranking : Ranking
        The ranking that it was computed from.
    kept : array of bool (query,), optional
        Only over these queries.
    level : float

    Returns
    -------
    dict of Clustered
        ``dcg`` and ``ndcg``; the latter not estimable where outcomes are negative.
    """
    cluster, n = query_clusters(ranking)
    some = np.ones(len(found.dcg), dtype=np.bool_) if kept is None else kept
    how: dict[str, Any] = {"weight": ranking.query_weights, "level": level}
    return {
        "dcg": mean_over_queries(found.dcg, cluster, n, kept=some, **how),
        "ndcg": mean_over_queries(found.ndcg, cluster, n, kept=some & found.kept, **how),
    }


def gains(outcome: Floats, gain: str) -> Floats:
    """Return y, or 2^y − 1."""
    if gain not in GAINS:
        raise MpcError(
            f"gain must be 'linear' or 'exponential'; got {gain!r}.{near_match(gain, GAINS)}"
        )
    if gain == "linear":
        return outcome
    with np.errstate(over="ignore"):
        worth = np.exp2(outcome) - 1
    if not np.isfinite(worth).all():
        raise MpcError(
            f"Outcomes must be at most 1023 for exponential gain; got {outcome.max():g}. Use "
            "gain='linear', or smaller grades."
        )
    return np.asarray(worth)


def query_codes(ranking: Ranking, log: Log) -> Ints:
    """Return the ranking's code of each query of a log."""
    return ranking.query_code[log.row[log.starts[:-1]]]


def in_code_order(values: Numbers, code: Ints) -> Numbers:
    """Return values of a log's queries in the order of the ranking's query codes."""
    placed = np.empty_like(values)
    placed[code] = values
    return placed


@kernel
def _add_up(
    starts: Ints,
    score: Floats,
    worth: Floats,
    weights: Floats,
    dcg: Floats,
    ideal: Floats,
) -> None:
    order = np.empty(len(weights), dtype=np.int64)
    spare = np.empty(len(weights), dtype=np.int64)
    for q in range(len(starts) - 1):
        start, end = starts[q], starts[q + 1]
        total = 0.0
        top = end
        while top > start:
            # Rows from `bottom` to before `top` are tied; the list is read from the end.
            bottom = top - 1
            shared, gain = weights[end - top], worth[bottom]
            while bottom > start and score[bottom - 1] == score[top - 1]:
                bottom -= 1
                shared += weights[end - 1 - bottom]
                gain += worth[bottom]
            total += gain * (shared / (top - bottom))
            top = bottom
        dcg[q] = total
        sort_order(worth[start:end], order, spare)
        total = 0.0
        for k in range(end - start):
            total += worth[start + order[end - start - 1 - k]] * weights[k]
        ideal[q] = total


_ROUNDING = 1e-13


@dataclass(frozen=True)
class Change:
    """The objective before and after, and the mean of the differences query by query.

    Attributes
    ----------
    dcg, ndcg : Clustered
        After less before. If no list changes in value, the change is 0 with the interval [0, 0].
    before, after : dict of Clustered
        The means of ``dcg`` and ``ndcg``.
    n_queries : int
        Queries compared.
    n_without_ideal : int
        How many of these are left out of NDCG because no item has a gain.
    n_single : int
        How many of these have a single item; they are included.
    """

    dcg: Clustered
    ndcg: Clustered
    before: dict[str, Clustered]
    after: dict[str, Clustered]
    n_queries: int
    n_without_ideal: int
    n_single: int

    def flat(self) -> dict[str, float]:
        """Return plain numbers, under the names of ``audit.objective``."""
        numbers = {}
        for name in ("dcg", "ndcg"):
            after, difference = self.after[name], getattr(self, name)
            numbers[name] = after.estimate
            numbers[f"{name}_std_error"] = after.std_error
            numbers[f"{name}_change"] = difference.estimate
            numbers[f"{name}_change_low"] = difference.ci_low
            numbers[f"{name}_change_high"] = difference.ci_high
        return numbers


def paired_change(
    ranking: Ranking,
    new_scores: Floats,
    old_scores: Floats | None = None,
    *,
    weights: Weights = None,
    gain: str = "linear",
    level: float = 0.95,
) -> Change:
    r"""Compare the objective under two scorings of a ranking.

    :math:`\Delta = \frac{1}{Q} \sum_q (\mathrm{DCG}'_q - \mathrm{DCG}_q)`, and likewise for NDCG
    over the queries whose ideal DCG is above 0; with weights, the weighted mean. Intervals are
    clustered by query, or unit.

    Parameters
    ----------
    ranking : Ranking
    new_scores : float64 array
        The scores after.
    old_scores : float64 array, optional
        The scores before; by default those that were logged.
    weights, gain
        As in `query_objective`.
    level : float
    """
    before = query_objective(ranking, old_scores, weights=weights, gain=gain)
    after = query_objective(ranking, new_scores, weights=weights, gain=gain)
    return change_between(ranking, before, after, level=level)


def change_between(
    ranking: Ranking,
    before: QueryObjective,
    after: QueryObjective,
    *,
    kept: Flags | None = None,
    level: float = 0.95,
) -> Change:
    """Compare two objectives of the same ranking, over all its queries or those in `kept`."""
    some = np.ones(len(before.dcg), dtype=np.bool_) if kept is None else kept
    both = some & before.kept
    return Change(
        dcg=_mean(ranking, before.dcg, after.dcg, some, level),
        ndcg=_mean(ranking, before.ndcg, after.ndcg, both, level),
        before=mean_objective(before, ranking, kept=some, level=level),
        after=mean_objective(after, ranking, kept=some, level=level),
        n_queries=int(some.sum()),
        n_without_ideal=int((some & (before.ideal == 0)).sum()),
        n_single=int((some & (before.size == 1)).sum()),
    )


def ndcg_change(
    ranking: Ranking, before: QueryObjective, after: QueryObjective, *, level: float = 0.95
) -> Clustered:
    """Return the paired change of NDCG alone, over all queries of a ranking."""
    return _mean(ranking, before.ndcg, after.ndcg, before.kept, level)


def subtract_worth(after: Floats, before: Floats) -> Floats:
    """Return by how much the value of each list rises; a list in the same order keeps its value.

    Gains that are added in another order leave rounding errors.
    """
    difference = after - before
    difference[np.abs(difference) <= _ROUNDING * np.abs(before)] = 0.0
    return np.asarray(difference)


def _mean(ranking: Ranking, before: Floats, after: Floats, kept: Flags, level: float) -> Clustered:
    difference = subtract_worth(after, before)
    cluster, n_clusters = query_clusters(ranking)
    how: dict[str, Any] = {"weight": ranking.query_weights, "level": level}
    found = mean_over_queries(difference, cluster, n_clusters, kept=kept, **how)
    if kept.any() and not difference[kept].any():
        # Not a sample that happens to have no spread: no list has changed in value.
        return replace(found, std_error=0.0, ci_low=0.0, ci_high=0.0, reason="")
    return found


# ---- the lists of two rules, in a log that is walked

# For each contrast: queries whose top differs, how far rows move in total, outcomes below 0; then
# for DCG and for NDCG, over clusters: Σc, ΣD, Σc², ΣcD, ΣD², Σ|D|, and their number.
_N_CHANGES = 3 + 2 * 7


def compare_lists(
    source: Source, walk: Rewalk, contrasts: Sequence[Contrast], top: int, level: float
) -> dict[str, Floats]:
    """Return how the lists of the two rules of each contrast differ.

    The change of DCG and NDCG with its interval; ``churn``, the share of queries whose top differs,
    and ``displacement``, by how much rows move on average, if rows with the same score have an
    order.

    Parameters
    ----------
    source : Source
    walk : Rewalk
        What opened the walk.
    contrasts : sequence of (Cell, Cell)
        New and old.
    top : int
        How many items the top of a list has.
    level : float
    """
    facts = source.facts
    logged = facts.columns.position is not None
    by_position = [k for k, rule in enumerate(walk.rules) if logged and rule.label == "baseline"]
    task = partial(_add_changes, contrasts, top, by_position)
    start = np.zeros((len(contrasts), _N_CHANGES))
    sums = source.together(walk.rules, task, "comparing lists", start)
    changes = [_changes_of(of_one, level) for of_one in sums]
    found = {name: np.array([one[name] for one in changes]) for name in changes[0]}
    if walk.in_order:
        found["churn"] = sums[:, 0] / facts.n_queries
        found["displacement"] = sums[:, 1] / facts.n_rows
    return found


def _add_changes(
    contrasts: Sequence[Contrast], top: int, by_position: Sequence[int], logs: Logs
) -> Floats:
    """Return sums (contrast, `_N_CHANGES`); the lists of some rules are the logged positions."""
    found = np.zeros((len(contrasts), _N_CHANGES))
    for number, *both in each_contrast(contrasts, logs):
        place = []
        for (log, _), cell in zip(both, contrasts[number], strict=True):
            rank = -log.tie if cell.rule in by_position else ranks_of(log)
            place.append(rank[np.argsort(log.row)])
        new, old = (marked.log for marked in both)
        query = np.repeat(np.arange(len(old.starts) - 1), np.diff(old.starts))
        of_row = query[np.argsort(old.row)]
        differs = (place[0] <= top) != (place[1] <= top)
        moved = [len(np.unique(of_row[differs])), np.abs(place[0] - place[1]).sum()]
        (after, ideal), (before, _) = objective_of(new), objective_of(old)
        kept = ideal > 0
        share = [
            np.divide(one, ideal, out=np.zeros_like(one), where=kept) for one in (after, before)
        ]
        dcg = _sums_of(old, subtract_worth(after, before), np.ones(len(kept), dtype=np.bool_))
        ndcg = _sums_of(old, subtract_worth(share[0], share[1]), kept)
        found[number] += [*moved, int((old.outcome < 0).sum()), *dcg, *ndcg]
    return found


def _sums_of(log: Log, change: Floats, kept: Flags) -> list[float]:
    weight = np.where(kept, log.weight if len(log.weight) else 1.0, 0.0)
    unit = np.repeat(np.arange(len(log.units) - 1), np.diff(log.units))
    size = len(log.units) - 1
    c, d = (np.bincount(unit, w, minlength=size) for w in (weight, weight * change))
    sums = [c.sum(), d.sum(), c @ c, c @ d, d @ d, np.abs(d).sum(), np.count_nonzero(c)]
    return [float(one) for one in sums]


def _changes_of(sums: Floats, level: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, own in (("ndcg", sums[10:]), ("dcg", sums[3:10])):
        total, value, cc, cd, dd, size, clusters = own.tolist()
        ends = (np.nan, np.nan)
        known = total > 0 and (name == "dcg" or not sums[2])
        estimate = value / total if known else np.nan
        if known and not dd:
            ends = (0.0, 0.0)
        elif known:
            spread = np.sqrt(max(dd - 2 * estimate * cd + estimate**2 * cc, 0.0)) / total
            one = from_influence(
                estimate,
                np.array([spread]),
                float(effective_clusters(np.asarray(total), np.asarray(cc))),
                int(clusters),
                scale=size / total,
                level=level,
            )
            ends = (one.ci_low, one.ci_high)
        found |= {f"{name}_change": estimate}
        found |= {f"{name}_change_low": ends[0], f"{name}_change_high": ends[1]}
    return found
