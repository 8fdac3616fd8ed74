"""What to add to scores so that gaps close: offsets of several groups at once, the boost of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.errors import MpcError, check_epsilon
from mpc_lab.inference.clustered import query_clusters
from mpc_lab.inference.estimates import critical, effective_clusters, significance
from mpc_lab.inference.partial import find_kept
from mpc_lab.objective.antitonic import (
    CELLS,
    AntitonicFit,
    add_cells,
    default_steps,
    fit_antitonic,
    join_cells,
    split_cells,
    steps_not_rejected,
)
from mpc_lab.objective.boosts import Boosts, Gaps, prepare
from mpc_lab.objective.ndcg import Change, Weights
from mpc_lab.pairing.close import Design, Gram
from mpc_lab.pairing.close_windows import (
    Window,
    gram_by_windows,
    join_scores,
    scores_by_windows,
)
from mpc_lab.pairing.kernels import kernel
from mpc_lab.pairing.log import Log, PlainWalk, resort
from mpc_lab.pairing.walk import Walk
from mpc_lab.vocabulary import Flags, Floats, Ints, Masks

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking

RIDGE = 1e-3
MOST_STEPS = 10
_WIDTH = 0.5
_LONGEST_STEP = 0.25
_ENOUGH = 0.5  # standard errors
_FEWEST = 3.0


@dataclass(frozen=True)
class CloseFit:
    """The regression over close pairs at one scoring, clustered by query.

    Attributes
    ----------
    gap, std_error : float64 arrays (group,)
        θ and its standard error; 0 and infinite where a group is left out.
    kept : bool array (group,)
        Whether a group is in the regression; others are collinear with those before them.
    slope, slope_low, slope_high : float
        κ and its interval; NaN where there is none.
    n_pairs, n_queries : int
    """

    gap: Floats
    std_error: Floats
    kept: Flags
    slope: float
    slope_low: float
    slope_high: float
    n_pairs: int
    n_queries: int


def fit_close(walk: Walk, window: Window, *, level: float = 0.95, ridge: float = RIDGE) -> CloseFit:
    r"""Fit gaps net of each other, and the slope, as `mpc_lab.inference.partial.fit_partial` does.

    It gets the same numbers from sums over windows, at a cost that does not depend on the number of
    pairs.

    Parameters
    ----------
    walk : Walk
    window : Window
    level : float
        The level of the interval of the slope: t with effective queries less 1 degrees of freedom.
    ridge : float
        Added to the diagonal of the groups in X'WX/Σw.
    """
    groups, k = window.n_groups, window.n_groups + 2
    start = Gram(np.zeros((k + 1, k + 1)), 0.0, 0, 0)
    gram = walk.total(partial(gram_by_windows, window), "comparing close pairs", start)
    inner = gram.inner[:k, :k].copy()
    kept = find_kept(inner, Design(groups, window.width))
    inner[range(groups), range(groups)] += ridge * gram.weight
    fit, inverse = np.zeros(k), np.zeros((k, k))
    base = np.flatnonzero(kept)
    if len(base):
        size = np.sqrt(inner[base, base])
        scaled = np.linalg.inv(inner[np.ix_(base, base)] / np.outer(size, size))
        inverse[np.ix_(base, base)] = (scaled + scaled.T) / 2 / np.outer(size, size)
        fit = inverse @ gram.inner[:k, k]
    task = partial(scores_by_windows, window, fit)
    scores = join_scores(list(walk(task, "summing over queries")), k)
    n, queries = gram.pairs, scores.units
    correction = queries / max(queries - 1, 1) * (n - 1) / max(n - len(base), 1)
    variance = np.diag(inverse @ scores.outer @ inverse) * max(correction, 0.0)
    slope, error = fit[groups] / window.width, float(np.sqrt(variance[groups])) / window.width
    effective = float(effective_clusters(np.array(scores.weight), np.array(scores.weight_squares)))
    low = high = float("nan")
    if kept[groups] and effective >= _FEWEST and error > 0:
        reach = float(critical(significance(level) / 2, effective - 1)) * error
        low, high = slope - reach, slope + reach
    return CloseFit(
        gap=fit[:groups],
        std_error=np.where(kept[:groups], np.sqrt(variance[:groups]), np.inf),
        kept=kept[:groups],
        slope=float(slope) if kept[groups] else float("nan"),
        slope_low=low,
        slope_high=high,
        n_pairs=n,
        n_queries=queries,
    )


@dataclass(frozen=True)
class Offsets:
    """Offsets of groups, and how they were found.

    Attributes
    ----------
    values : float64 array (group,)
        β; 0 throughout where the slope is not clear.
    first, last : CloseFit
        The regression without offsets, and with them.
    n_steps : int
    settled : bool
        Whether no gap exceeded half its standard error at the end.
    width : float
        h.
    """

    values: Floats
    first: CloseFit
    last: CloseFit
    n_steps: int
    settled: bool
    width: float

    @property
    def slope_is_clear(self) -> bool:
        """Whether outcomes clearly rise with the score among close items."""
        return self.first.slope_low > 0


def fit_offsets(
    log: Log,
    n_groups: int,
    spread: float,
    *,
    by_place: bool = False,
    level: float = 0.95,
    walk_of: Callable[[Log], Walk] = PlainWalk,
) -> Offsets:
    r"""Find offsets β of groups with which tied items have no gap left, net of each other.

    .. math:: \beta \leftarrow \beta + \hat\theta / \hat\kappa,

    :math:`\hat\theta` from the regression over close pairs on the scores :math:`s + M\beta`, with
    :math:`h = \sigma/2` and a ridge of 0.001; :math:`\hat\kappa` once, on s. A step of a group is
    at most σ/4; there are at most 10, and none once no :math:`|\hat\theta|` exceeds half its
    standard error. Where the interval of κ is not above 0 all offsets are 0.

    Parameters
    ----------
    log : Log
        Rows sorted by s, with the groups as masks and the estimand.
    n_groups : int
    spread : float
        σ.
    by_place : bool
        Whether the upper one of a pair is the one shown higher.
    level : float
        The level of the interval of κ.
    walk_of : callable
        Opens a walk over a log.

    Returns
    -------
    Offsets
    """
    window = Window(n_groups, _WIDTH * spread, by_place)
    offsets = np.zeros(n_groups)
    first = last = fit_close(walk_of(log), window, level=level)
    if not first.slope_low > 0:
        return Offsets(offsets, first, last, 0, False, window.width)
    n_steps = 0
    while _is_open(last) and n_steps < MOST_STEPS:
        step = np.clip(last.gap / first.slope, -_LONGEST_STEP * spread, _LONGEST_STEP * spread)
        offsets = offsets + step
        n_steps += 1
        moved = resort(log, shift_scores(log.score, log.masks, offsets))
        last = fit_close(walk_of(moved), window, level=level)
    return Offsets(offsets, first, last, n_steps, not _is_open(last), window.width)


def _is_open(found: CloseFit) -> bool:
    return bool((np.abs(found.gap) > _ENOUGH * found.std_error).any())


def shift_scores(score: Floats, masks: Masks, offsets: Floats) -> Floats:
    """Return scores with the offsets of all groups of a row added, one after the other.

    Offsets of 0 are left out: adding the others in the same order, and 0 to rows outside a group,
    gives the same bits.
    """
    moved = score.copy()
    _add_offsets(moved, masks, np.flatnonzero(offsets), offsets)
    return moved


@kernel
def _add_offsets(moved: Floats, masks: Masks, groups: Ints, offsets: Floats) -> None:
    """Add the offsets of some groups to the scores of their rows, row by row."""
    one = np.uint64(1)
    for row in range(len(moved)):
        value = moved[row]
        for g in groups:
            inside = (masks[g // 64, row] >> np.uint64(g % 64)) & one != 0
            # 0 is added too, because it turns -0 into 0, as other ways of adding up scores do.
            value += offsets[g] if inside else 0.0
        moved[row] = value


Intervals = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class HeldOut:
    """What boosts do on queries they were not chosen on: each half chooses for the other.

    Attributes
    ----------
    before, after : Gaps
        MPC of the group over all queries, without and with the boosts; one number each.
    change : Change
        The objective before and after, with the paired interval of the difference.
    share_changed : float
        Share of the places of all lists that have a new row.
    n_queries : int
    alphas : tuple of float
        The root on the first half, which is tried on the second, and the other way round.
    """

    before: Gaps
    after: Gaps
    change: Change
    share_changed: float
    n_queries: int
    alphas: tuple[float, float]


@dataclass(frozen=True)
class ChosenBoost:
    """α*, how sure it is, and what it costs.

    Attributes
    ----------
    alpha : float
        The root of the fit; NaN where there is none.
    resolution : float
        0 where α* is that of all pairs; σ/800, the width of a cell, in a log too large for that.
    sign : int
        Sign of the fit over the whole range where there is no root; 0 where it is 0 throughout.
    confidence_set : tuple of (low, high)
        The hull of the steps that no test rejects: one interval, or nothing.
    unbounded_low, unbounded_high : bool
        Whether the set reaches the end of the range.
    fit : AntitonicFit
    n_queries : int
    held_out : HeldOut or None
        None where the log or one of its halves has no root.
    note : str
        A remark about α* in words.
    """

    alpha: float
    resolution: float
    sign: int
    confidence_set: Intervals
    unbounded_low: bool
    unbounded_high: bool
    fit: AntitonicFit
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
    weights: Weights = None,
    gain: str = "linear",
) -> ChosenBoost:
    r"""Find the boost α* at which the mean outcome difference of a group is 0.

    D = s(j) − s(i) is the signed distance of a pair of one query, i in the group and j not, and
    m(D) the mean of d at D, which falls where outcomes rise with the score. α* is the root of the
    antitonic regression of d on D over all pairs with :math:`|D| \le \sigma`, σ the standard
    deviation of all scores: the middle of the stretch between the last fitted value above 0 and
    the first below. Pairs are added up in 1,601 cells of D, σ/800 wide, with ties in a cell of
    their own. The pairs of the few cells in which the fit may cross 0 are listed, so that α* is
    that of all pairs, unless these cells hold more than 10,000,000.

    The confidence set is the hull of the steps of α, 201 over ±σ, that no monotone test rejects:
    see `mpc_lab.objective.antitonic.steps_not_rejected`.

    What boosts do is measured by two-fold cross-fitting: the root of each half of the queries, or
    units, is tried on the other half.

    Parameters
    ----------
    ranking : Ranking or Boosts
        `Boosts` of the same group where it was prepared before.
    group : str
    epsilon : float
        The threshold of the gap before and after; α* and its set do not depend on it.
    cluster : {"query", "naive", "item", "union"}
        For the standard error of the gap before and after; the confidence set is clustered by
        query.
    level : float
    seed : int
        Seed of the division into halves.
    weights, gain
        The weights and gain of the objective.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> found = fair_boost(mpc.datasets.synthetic(queries=4000), "1", epsilon=0.02)
    >>> 0.03 < found.alpha < 0.12
    True
    """
    ready = prepare(ranking, group, weights, gain)
    epsilon = check_epsilon(epsilon)
    chosen = halves(ready.ranking, seed)
    runs, reach, weight = ready.runs, ready.ranking.score_std, ready.query_weight
    parts = add_cells(runs, chosen, weight, reach)
    whole = join_cells(*parts)
    fit, exact = _fit(ready, np.ones_like(chosen), whole)
    kept = steps_not_rejected(runs, whole, weight, reach, level)
    steps = default_steps(reach)[kept]
    first, second = (
        _fit(ready, half, cells)[0].root
        for half, cells in zip((chosen, ~chosen), parts, strict=True)
    )
    held = None
    if not np.isnan([fit.root, first, second]).any():
        held = _try(ready, chosen, (first, second), epsilon, cluster, level)
    return ChosenBoost(
        alpha=fit.root,
        resolution=0.0 if exact else reach / CELLS,
        sign=fit.sign,
        confidence_set=((float(steps[0]), float(steps[-1])),) if len(steps) else (),
        unbounded_low=bool(kept[0]),
        unbounded_high=bool(kept[-1]),
        fit=fit,
        n_queries=ready.ranking.n_queries,
        held_out=held,
        note=_note(fit, held is not None, kept),
    )


def halves(ranking: Ranking, seed: int) -> Flags:
    """Return which clusters (units, or queries) are in the first half."""
    _, n = query_clusters(ranking)
    if n < 2:
        raise MpcError(
            "A fair boost must have at least two queries or units, because it is chosen on one "
            "half and tried on the other; got one. Give a longer log."
        )
    chosen = np.zeros(n, dtype=np.bool_)
    chosen[np.random.default_rng(seed).permutation(n)[: (n + 1) // 2]] = True
    return chosen


def _fit(ready: Boosts, half: Flags, cells: Floats) -> tuple[AntitonicFit, bool]:
    reach = ready.ranking.score_std
    split, exact = split_cells(ready.runs, half, ready.query_weight, reach, cells)
    return fit_antitonic(split), exact


def _try(
    ready: Boosts,
    chosen: Flags,
    roots: tuple[float, float],
    epsilon: float,
    cluster: str,
    level: float,
) -> HeldOut:
    boosted = ready.shift(np.where(chosen, roots[1], roots[0]))
    before, after = (
        one.gap([0.0], epsilon, cluster=cluster, level=level) for one in (ready, boosted)
    )
    change, share = boosted.change(0.0, level=level)
    return HeldOut(before, after, change, share, ready.ranking.n_queries, roots)


def _note(fit: AntitonicFit, measured: bool, kept: Flags) -> str:
    if not len(fit.value):
        return "no pairs within one standard deviation of the scores"
    notes = []
    if np.isnan(fit.root):
        reading = {1: "above 0 throughout", -1: "below 0 throughout", 0: "0 throughout"}
        notes.append(f"no root in the range: the fitted difference is {reading[fit.sign]}")
    elif not measured:
        notes.append(
            "one half of the queries has no root in the range, so what a boost does on other "
            "queries is not measured"
        )
    if not kept.any():
        notes.append("every boost of the range is rejected")
    return "; ".join(notes)
