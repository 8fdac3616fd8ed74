"""Plan, run, collect: the only place that walks all the rooms above."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab.engines.measure import choose_thresholds, has_ties, measure
from mpc_lab.engines.memory import MemoryWalk
from mpc_lab.engines.progress import Progress
from mpc_lab.pairing.arrays import Masks
from mpc_lab.pairing.compiling import announced_compilation
from mpc_lab.pairing.log import select_groups, sort_rows
from mpc_lab.pairing.thresholds import Quantile, Threshold, default_grid
from mpc_lab.ranking import as_ranking
from mpc_lab.results import Audit, assemble
from mpc_lab.results.plan import Plan, make_plan

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mpc_lab.ranking import Ranking

_FIRST_PERCENTILE = Quantile(0.01)
_MODES = ("matched", "mirrored", "adjacent")


def audit(
    data: Any,
    *,
    groups: Sequence[str] | None = None,
    scoring_rules: Sequence[str] = ("baseline",),
    pairing_modes: Sequence[str] = ("matched",),
    threshold: Threshold = _FIRST_PERCENTILE,
    epsilon: ArrayLike | None = None,
    cluster: str = "auto",
    level: float = 0.95,
    adjust: str = "none",
    tolerance: float | None = None,
    seed: int = 0,
    progress: bool | None = None,
    **columns: Any,
) -> Audit:
    r"""Audit whether a ranker undervalues groups of items.

    Inside each query an item of the group is paired with an item outside it whose score is tied
    or just above; the estimate is the mean difference of their outcomes over all pairs,

    .. math:: \mathrm{MPC}_\varepsilon(g) = \frac{1}{P} \sum_{(i, j)} (y_i - y_j),
              \qquad 0 \le s_j - s_i \le \varepsilon.

    Positive: items of the group do better than the items ranked just above them.

    Parameters
    ----------
    data : Ranking or frame
        A :class:`mpc_lab.Ranking`, or what it takes together with its keywords.
    groups : list of str, optional
        The groups to audit; by default all.
    scoring_rules : list of str
        ``"baseline"``: the scores as they are.
    pairing_modes : list of {"matched", "mirrored", "adjacent"}
        ``matched``: the item of the group is tied with or just below the other. ``mirrored``: tied
        with or just above. ``adjacent``: neighbours in the ranked list.
    threshold : Quantile, Smallest or float
        The largest gap of the headline, by default the first percentile of the gaps of each group.
    epsilon : list of float, optional
        The grid of the curve; by default round numbers around the thresholds.
    cluster : {"auto", "query", "naive"}
        What is independent of each other: queries (or units), or, naively, all pairs.
    level : float
        Confidence level.
    adjust : {"none"}
        Correction for looking at several groups.
    tolerance : float, optional
        A gap inside ± this, in units of the outcome, is called ``within tolerance``.
    seed : int
        For whatever is drawn at random.
    progress : bool, optional
        Whether to show a progress bar; by default in a terminal or notebook when the work is long.
    **columns
        The keywords of :class:`mpc_lab.Ranking`, when `data` is a frame.

    Returns
    -------
    Audit

    References
    ----------
    Korevaar, McConnell, Tong, Brinkman, Shine, Abbas, Metevier, Corbett-Davies, El-Arini (2023),
    Matched Pair Calibration for Ranking Fairness.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> found = mpc.audit(mpc.datasets.synthetic(queries=20_000), progress=False)
    >>> str(found.headline.verdict.sel(group="1").item())
    'undervalued'
    """
    ranking = as_ranking(data, **columns)
    plan = make_plan(
        ranking,
        groups=groups,
        scoring_rules=scoring_rules,
        pairing_modes=pairing_modes,
        threshold=threshold,
        epsilon=epsilon,
        cluster=cluster,
        level=level,
        adjust=adjust,
        tolerance=tolerance,
        seed=seed,
    )
    with Progress(progress) as bar, announced_compilation(bar.wanted):
        return _run(plan, ranking, bar)


def _run(plan: Plan, ranking: Ranking, bar: Progress) -> Audit:
    n_groups = len(plan.groups)
    walk = MemoryWalk(sort_rows(ranking, masks=_masks(plan, ranking)), bar)
    headline = choose_thresholds(walk, n_groups, plan.threshold)
    if plan.epsilon is None:
        grid = default_grid(headline.epsilon, has_ties(walk, n_groups))
    else:
        grid = np.array(plan.epsilon)
    adjacent = "adjacent" in plan.pairing_modes
    found = measure(walk, headline, grid, n_items=ranking.n_items, adjacent=adjacent)
    own = {"baseline": found.moments.at(found.headline)}
    on_grid = {"baseline": found.moments.at(found.grid)}
    return Audit(
        assemble.headline(plan, own, headline.epsilon[None], headline.wanted[None]),
        partial(assemble.curve, plan, on_grid, grid),
        assemble.moments(plan, {"baseline": found.moments}, _MODES[: 2 + adjacent]),
        assemble.attributes(plan, ranking),
        ranking=ranking,
    )


def _masks(plan: Plan, ranking: Ranking) -> Masks | None:
    if plan.groups == ranking.groups:
        return None
    chosen = np.array([ranking.group_index(group) for group in plan.groups], dtype=np.int64)
    return select_groups(ranking.masks, chosen)
