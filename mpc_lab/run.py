"""Plan, run, collect: the only place that walks all the rooms above."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab.engines.measure import (
    NO_THRESHOLD,
    Headline,
    choose_thresholds,
    has_ties,
    insert_thresholds,
    measure,
    measure_cross,
    measure_items,
)
from mpc_lab.engines.progress import Progress
from mpc_lab.engines.sources import MemorySource
from mpc_lab.engines.tables import cell_correlation, unit_sums
from mpc_lab.errors import MpcError, near_match
from mpc_lab.inference.power import mde
from mpc_lab.pairing.arrays import Flags, Floats
from mpc_lab.pairing.compiling import announced_compilation
from mpc_lab.pairing.moments import Moments
from mpc_lab.pairing.thresholds import Powered, Quantile, Threshold, default_grid
from mpc_lab.ranking import Ranking, as_ranking
from mpc_lab.results import Audit, assemble
from mpc_lab.results.family import ITEM_FAMILIES, infer
from mpc_lab.results.plan import Plan, make_plan
from mpc_lab.results.schema import check_headline, noted
from mpc_lab.results.variables import HEADLINE, HEADLINE_DIMS
from mpc_lab.scoring import Rule

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_FIRST_PERCENTILE = Quantile(0.01)


def audit(
    data: Any,
    *,
    groups: Sequence[str] | None = None,
    scoring_rules: Any = ("baseline",),
    pairing_modes: Sequence[str] = ("matched",),
    threshold: Threshold = _FIRST_PERCENTILE,
    epsilon: ArrayLike | None = None,
    cluster: str = "auto",
    level: float = 0.95,
    adjust: str = "holm",
    tolerance: float | None = None,
    bootstrap: int = 0,
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
    scoring_rules : list
        ``"baseline"``: the scores as they are. ``"boosted"``, ``"demoted"``: the group's scores
        raised or lowered by a third of the scores' standard deviation, or by the α of
        ``mpc.Boosted(α)``, ``mpc.Demoted(α)``. ``"calibrated"``: isotonic regression of the outcome
        on the score, inside and outside the group. ``mpc.Column("name")``: another column. Or a
        function (ranking, group) -> scores.
    pairing_modes : list of {"matched", "mirrored", "adjacent"}
        ``matched``: the item of the group is tied with or just below the other. ``mirrored``: tied
        with or just above. ``adjacent``: neighbours in the ranked list.
    threshold : Quantile, Smallest, Powered or float
        The largest gap of the headline, by default the first percentile of the gaps of each group.
    epsilon : list of float, optional
        The grid of the curve; by default round numbers around the thresholds.
    cluster : {"auto", "union", "query", "item", "naive"}
        What may make pairs alike: a common query (or unit), a common item, either of them
        (``union``), or nothing. ``auto`` is ``union`` where items are known, else ``query``.
    level : float
        Confidence level.
    adjust : {"holm", "romano_wolf", "fdr_bh", "none"}
        Correction for looking at several groups and scoring rules.
    tolerance : float, optional
        A gap inside ± this, in units of the outcome, is called ``within tolerance``.
    bootstrap : int
        Also resample queries so many times: the headline then has ``bootstrap_low`` and
        ``bootstrap_high`` (percentile), ``bootstrap_t_low`` and ``bootstrap_t_high`` (studentised).
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
    _check_keywords(columns)
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
        bootstrap=bootstrap,
        seed=seed,
    )
    with Progress(progress) as bar, announced_compilation(bar.wanted):
        return _with_bootstrap(plan, _run(plan, MemorySource(ranking, plan.groups, bar)))


def _check_keywords(columns: dict[str, Any]) -> None:
    """Refuse a keyword that neither an audit nor a ranking has."""
    known = {*signature(Ranking).parameters, *signature(audit).parameters} - {"frame", "columns"}
    for name in columns:
        if name not in known:
            raise MpcError(f"mpc.audit has no option {name!r}.{near_match(name, sorted(known))}")


def _run(plan: Plan, source: MemorySource) -> Audit:
    rules = plan.scoring_rules
    chosen = [_thresholds(plan, source, rule) for rule in rules]
    epsilon = np.stack([headline.epsilon for headline, _ in chosen])
    wanted = np.stack([headline.wanted for headline, _ in chosen])
    grid = _grid(plan, source, epsilon)
    layouts = [insert_thresholds(own, grid) for own in epsilon]
    moments = [
        measure(source, rule, edges, adjacent=_adjacent(plan), items=False)
        for rule, (edges, _, _) in zip(rules, layouts, strict=True)
    ]
    own = [part.at(index) for part, (_, _, index) in zip(moments, layouts, strict=True)]
    if _items(plan):
        own = [measure_items(source, *cells) for cells in zip(rules, own, strict=True)]
    later = _Later(plan, source.ranking, moments)
    correlations = _correlations(plan, source, epsilon)
    cross = partial(_cross, plan, source.ranking, [edges for edges, _, _ in layouts])
    flags = [underpowered for _, underpowered in chosen if underpowered is not None]
    return Audit(
        assemble.headline(
            plan,
            own,
            epsilon,
            wanted,
            correlations=correlations,
            underpowered=np.stack(flags) if flags else None,
        ),
        lambda: assemble.curve(
            plan,
            [part.at(here) for part, (_, here, _) in zip(later.moments, layouts, strict=True)],
            grid,
            [here for _, here, _ in layouts],
            cross,
        ),
        lambda: assemble.moments(
            plan,
            later.moments,
            grid,
            np.stack([headline.all_pairs for headline, _ in chosen]),
            correlations,
        ),
        assemble.attributes(plan, source.ranking)
        | {"dyads_once": int(any(part.dyads_once for part in own))},
        ranking=source.ranking,
        scores=partial(_scores, plan, source.ranking),
        cross=cross,
        own=own,
    )


class _Later:
    """The sums on the whole grid; those over items are added when they are first asked for.

    The grid reaches far beyond the headline's thresholds, and most of its pairs lie there.
    """

    def __init__(self, plan: Plan, ranking: Ranking, moments: list[Moments]) -> None:
        self._plan, self._ranking, self._moments = plan, ranking, moments

    @cached_property
    def moments(self) -> list[Moments]:
        if not _items(self._plan):
            return self._moments
        source = MemorySource(self._ranking, self._plan.groups)
        cells = zip(self._plan.scoring_rules, self._moments, strict=True)
        return [measure_items(source, rule, part) for rule, part in cells]


def _with_bootstrap(plan: Plan, made: Audit) -> Audit:
    """Put the bootstrap intervals into the headline, where they were asked for."""
    if not plan.bootstrap:
        return made
    found = made.bootstrap(plan.bootstrap, plan.seed)
    columns = {
        "bootstrap_low": "percentile_low",
        "bootstrap_high": "percentile_high",
        "bootstrap_t_low": "studentised_low",
        "bootstrap_t_high": "studentised_high",
    }
    added = {name: (HEADLINE_DIMS, found[column].values) for name, column in columns.items()}
    for name, (dims, values) in added.items():
        made.headline[name] = (dims, values, noted(HEADLINE[name]))
    made.headline = check_headline(made.headline)
    return made


def _adjacent(plan: Plan) -> bool:
    return "adjacent" in plan.swept_modes


def _items(plan: Plan) -> bool:
    return plan.cluster in ITEM_FAMILIES


def _thresholds(plan: Plan, source: MemorySource, rule: Rule) -> tuple[Headline, Flags | None]:
    """Choose the threshold of each group, and say where it lacks the power asked for."""
    n_groups = len(plan.groups)
    if isinstance(plan.threshold, float):
        unknown = np.full(n_groups, np.nan)
        return Headline(np.full(n_groups, plan.threshold), unknown, unknown), None
    if not isinstance(plan.threshold, Powered):
        return choose_thresholds(source, rule, (plan.threshold,))[0], None
    candidates = choose_thresholds(source, rule, plan.threshold.candidates)
    epsilon = np.stack([candidate.epsilon for candidate in candidates], axis=1)
    wanted = np.stack([candidate.wanted for candidate in candidates], axis=1)
    moments = measure(
        source, rule, np.nan_to_num(epsilon, nan=NO_THRESHOLD), adjacent=False, items=_items(plan)
    )
    found = infer(moments, cluster=plan.cluster, level=plan.level)
    std_error, dof = found.std_error[0], found.dof[0]
    smallest = mde(std_error, dof, level=plan.level, power=plan.threshold.power)
    enough = smallest <= plan.threshold.effect
    best = np.argmin(np.where(np.isnan(std_error), np.inf, std_error), axis=1)
    pick = np.where(enough.any(axis=1), np.argmax(enough, axis=1), best)
    group = np.arange(n_groups)
    lacking = np.asarray(~enough.any(axis=1))
    all_pairs = candidates[0].all_pairs
    return Headline(epsilon[group, pick], wanted[group, pick], all_pairs), lacking


def _grid(plan: Plan, source: MemorySource, epsilon: Floats) -> Floats:
    if plan.epsilon is not None:
        return np.array(plan.epsilon)
    return default_grid(epsilon, any(has_ties(source, rule) for rule in plan.scoring_rules))


def _correlations(plan: Plan, source: MemorySource, epsilon: Floats) -> list[Floats] | None:
    """Return how the headline cells of each mode move together, where that is needed."""
    if plan.adjust != "romano_wolf":
        return None
    return [
        cell_correlation(
            unit_sums(source, plan.scoring_rules, mode, epsilon), source.ranking.n_units
        )
        for mode in plan.swept_modes
    ]


def _cross(plan: Plan, ranking: Ranking, edges: list[Floats], rule: int) -> Any:
    """Sweep again for the band of a curve, which is made when it is first asked for."""
    source = MemorySource(ranking, plan.groups)
    return measure_cross(source, plan.scoring_rules[rule], edges[rule], adjacent=_adjacent(plan))


def _scores(plan: Plan, ranking: Ranking, label: str, group: str) -> Floats | None:
    """Return the scores of a rule, None for the logged ones."""
    if label == "baseline":
        return None
    return plan.scoring_rules[plan.rule_labels.index(label)].scores(ranking, group)
