"""Plan, run, collect: the only place that walks all the rooms above."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mpc_lab.engines import OpenLog
from mpc_lab.engines.memory import open_log
from mpc_lab.engines.running import Progress
from mpc_lab.errors import MpcError, near_match
from mpc_lab.inference.bands import correlation
from mpc_lab.pairing.correlating import covariances
from mpc_lab.pairing.enough import choose_enough
from mpc_lab.pairing.kernels import announce_compilation
from mpc_lab.pairing.measure import (
    Headline,
    choose_thresholds,
    find_complements,
    goes_by_place,
    has_ties,
    insert_thresholds,
    measure,
    measure_items,
    weigh_curve,
    weigh_headline,
)
from mpc_lab.pairing.measure_sides import TwoSides, compare_on_curve, compare_sides
from mpc_lab.pairing.moments import Moments, UnitWeights
from mpc_lab.pairing.pairs import CAPPED_SUMS, capped_totals, count_outside
from mpc_lab.pairing.terms import (
    PAIRS,
    PERCENTILE,
    SIGN,
    Enough,
    Powered,
    Quantile,
    Smallest,
    Threshold,
    default_grid,
    round_up,
)
from mpc_lab.pairing.walk import Rewalk, Source, Walk
from mpc_lab.ranking import LogFacts, Ranking
from mpc_lab.results import Audit, assemble
from mpc_lab.results.plan import (
    Plan,
    attributes,
    check_bounds,
    complements_attribute,
    count_look,
    find_bounds,
    key_of,
    make_plan,
)
from mpc_lab.results.questions.bootstrap import add_to_headline
from mpc_lab.results.questions.power import choose_powered, tried_attribute
from mpc_lab.results.sums import label_sums
from mpc_lab.scoring import Baseline, Column, Custom, Rule
from mpc_lab.vocabulary import ADJACENT, CR3, ITEM, VARIANCES, Flags, Floats, Ints

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import ArrayLike

    from mpc_lab.engines.parts import PartsSource

FIRST_PERCENTILE = Quantile(0.01)


def audit(
    data: Any,
    *,
    groups: Sequence[str] | None = None,
    scoring_rules: Any = ("baseline",),
    pairing_modes: Sequence[str] | None = None,
    threshold: Threshold = FIRST_PERCENTILE,
    epsilon: ArrayLike | None = None,
    cluster: str = "auto",
    level: float = 0.95,
    adjust: str = "holm",
    tolerance: float | None = None,
    primary: Any = None,
    bounds: tuple[float, float] | None = None,
    pairs_cap: int = 10,
    bootstrap: int = 0,
    seed: int = 0,
    against: str | None = None,
    closeness: str = "score",
    contrast: str = "difference",
    outcome_cap: float | None = None,
    estimand: str = "pairs",
    correction: str = CR3,
    progress: bool | None = None,
    memory: str | int | None = None,
    spill: str | os.PathLike[str] | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    **columns: Any,
) -> Audit:
    r"""Audit whether a ranker undervalues groups of items.

    Inside each query an item of the group is paired with an item outside it whose score is tied
    or just above; the estimate is the mean difference of their outcomes over all pairs,

    .. math:: \mathrm{MPC}_\varepsilon(g) = \frac{1}{P} \sum_{(i, j)} (y_i - y_j),
              \qquad 0 \le s_j - s_i \le \varepsilon.

    Above 0, the outcome is higher for items of the group than for items with the same score or
    ranked just above them.

    Parameters
    ----------
    data : Ranking, frame, path or list of paths
        A :class:`mpc_lab.Ranking`, or what it takes together with its keywords. Or the path of a
        CSV, Parquet, Feather or JSON lines file, a folder, a pattern such as
        ``"logs/*.parquet"``, or a list of these; they may be larger than memory. Or a Dask or
        Spark frame, larger than a machine.
    groups : list of str, optional
        The groups to audit; by default all.
    scoring_rules : list
        ``"baseline"``: the scores as they are. ``"boosted"``, ``"demoted"``: the group's scores
        raised or lowered by a third of the scores' standard deviation, or by the α of
        ``mpc.Boosted(α)``, ``mpc.Demoted(α)``. ``"calibrated"``: isotonic regression of the outcome
        on the score, inside and outside the group. ``mpc.Column("name")``: another column. Or a
        function (ranking, group) -> scores.
    pairing_modes : list of {"matched", "mirrored", "adjacent", "symmetric"}, optional
        ``matched``: the item of the group is tied with or just below the other. ``mirrored``: tied
        with or just above. ``adjacent``: neighbours in the ranked list. ``symmetric``: the mean of
        the pairs with the item of the group below and of those with it above, compared at the same
        places where the log has positions. By default ``matched``; where the log has positions
        ``symmetric`` and ``matched``, because outcomes such as clicks depend on the place; for a
        log without scores ``adjacent``, at a distance of 1 place. The first one leads.
    threshold : Quantile, Smallest, Powered, Enough or float
        The largest distance between the scores of a pair in the headline, by default the first
        percentile of the distances of each group. ``mpc.Enough()`` is for small logs.
    epsilon : list of float, optional
        The grid of the curve; by default round numbers around the thresholds.
    cluster : {"auto", "union", "query", "item", "producer", "naive"}
        Which pairs may depend on each other: those that share a query (or unit), an item, a
        producer of items, either a query or an item (``union``; a query or a producer where
        producers are known), or none (``naive``). ``auto`` is ``union`` where items are known,
        else ``query``.
    level : float
        Confidence level.
    adjust : {"holm", "romano_wolf", "fdr_bh", "none"}
        Correction for looking at several groups; each scoring rule is a family of its own.
    tolerance : float, optional
        A gap inside ± this, in units of the outcome, is called ``within tolerance``.
    primary : tuple, optional
        (scoring rule, pairing mode, threshold), or a dict with these keys, declared before the run:
        the finding that the audit is about. It leads the summary and is kept in the saved file;
        everything else is marked exploratory. All three must be among those of this run.
    bounds : (float, float), optional
        The lowest and the highest outcome that can occur, such as ``(0, 5)``, for
        :meth:`Audit.confidence_sequence` and ``check(anytime=True)``. They are known for
        outcomes of 0 and 1 in memory; for files and clusters that are walked, give ``(0, 1)``.
    pairs_cap : int
        How many pairs of a query those intervals look at: the closest ones. Fix it before the
        first look.
    bootstrap : int
        Resample queries this many times as well: the headline then has ``bootstrap_low`` and
        ``bootstrap_high`` (percentile), ``bootstrap_t_low`` and ``bootstrap_t_high`` (studentised).
    seed : int
        Seed of everything that is drawn at random.
    against : str, optional
        Pair the items of each group with members of this group only, which is then not audited
        itself; by default with all items outside the group.
    closeness : {"score", "query_sd", "percentile"}
        On what scale two scores are close: as they are; divided by the standard deviation of the
        logged scores of their query, for logs whose queries have scores of different spread; or
        by their places in the list, (rank − ½)/n. The threshold and the grid are on that scale;
        the α of a boost stays in units of the score.
    contrast : {"difference", "sign"}
        What a pair counts: the difference of its outcomes, or its sign, so that the gap is the
        share of pairs in which the item of the group has the higher outcome less the share in
        which it has the lower one. For outcomes with a long tail.
    outcome_cap : float, optional
        Outcomes above it are set to it, and counted, so that a long tail weighs less.
    estimand : {"pairs", "queries", "root"}
        What the gap is a mean over. ``pairs``: every pair counts 1, as in the paper, and a query
        counts as many times as it has pairs. ``queries``: every query with a pair counts 1, so
        that its pairs count 1/P. ``root``: they count 1/√P, between the two: less noise than
        ``pairs`` where a few long lists have most of them. A ``weight`` of the query multiplies
        each of these.
    correction : {"cr3", "plain"}
        How standard errors allow for few or unequal clusters. ``"cr3"`` divides the sum of each
        query, and of each item, by 1 less its share of the pairs, because a query that holds many
        pairs pulls the mean towards itself. ``"plain"`` multiplies by Q/(Q − 1), or by G/(G − 1),
        as version 0.1 did.
    progress : bool, optional
        Whether to show a progress bar; by default in a terminal or notebook when the work is long.
    memory : str or int, optional
        For files: walk them out of core in at most this much memory, as ``"4GB"`` or in bytes. By
        default files that fit into half of the machine's memory are read into it, and others are
        walked.
    spill : path, optional
        For files that are walked: the folder for what does not fit into memory, by default that
        of the system's temporary files. What is written there is removed at the end.
    sep, encoding : str, optional
        For text files: the separator, such as ``";"``, and the character encoding, such as
        ``"latin-1"``. Both are detected unless given, and printed unless they are a comma and
        UTF-8.
    **columns
        The keywords of :class:`mpc_lab.Ranking`, when `data` is not one.

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
    files = {"memory": memory, "spill": spill, "sep": sep, "encoding": encoding}
    with Progress(progress) as bar:
        log = open_log(data, columns, **files, rules=scoring_rules, progress=bar)
        plan = make_plan(
            log.known,
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
            primary=primary,
            bounds=bounds,
            pairs_cap=pairs_cap,
            closeness=closeness,
            contrast=contrast,
            against=against,
            outcome_cap=outcome_cap,
            estimand=estimand,
            correction=correction,
        )
        log = log.with_cap(plan.outcome_cap).with_owner(plan.owner)
        _check_rows_stay(plan, log)
        with announce_compilation(bar.wanted), log.source(plan, bar) as source:
            made = _run(plan, log, source)
            if plan.bootstrap:
                add_to_headline(made, plan.bootstrap, plan.seed)
        made._looks = count_look(key_of(log.ranking, log.origin), made.attrs)
        return made


def audit_slices(
    ranking: Ranking, groups: Sequence[str], mode: str, *, progress: bool | None, **options: Any
) -> Audit:
    """Audit many groups for their gaps alone: unadjusted, without effects of place or a curve.

    Parameters
    ----------
    ranking : Ranking
    groups : sequence of str
    mode : str
        The pairing mode.
    progress : bool, optional
    **options
        ``threshold``, ``cluster``, ``level``, ``seed``, ``estimand``, ``contrast`` and
        ``outcome_cap`` of `audit`.
    """
    rest: dict[str, Any] = {"adjust": "none", "tolerance": None, "bootstrap": 0, "epsilon": [0.0]}
    rest |= {"groups": groups, "scoring_rules": ("baseline",), "pairing_modes": (mode,)}
    with Progress(progress) as bar:
        log = open_log(ranking, {})
        plan = replace(make_plan(log.known, **rest, **options), place_effect=False)
        log = log.with_cap(plan.outcome_cap).with_owner(plan.owner)
        with announce_compilation(bar.wanted), log.source(plan, bar) as source:
            return _run(plan, log, source)


# Keywords that affect how an audit is shown, not what it computes.
_ELSEWHERE = {
    "title": " Give it where the audit is shown: audit.report(path, title=…), "
    "audit.model_card(title=…) or mpc.charts.forest(audit, title=…)."
}


def _check_keywords(columns: dict[str, Any]) -> None:
    """Refuse a keyword that neither an audit nor a ranking has."""
    known = {*signature(Ranking).parameters, *signature(audit).parameters} - {"frame", "columns"}
    for name in columns:
        if name not in known:
            hint = _ELSEWHERE.get(name) or near_match(name, sorted(known))
            raise MpcError(f"mpc.audit has no option {name!r}.{hint}")


def _check_rows_stay(plan: Plan, log: OpenLog) -> None:
    """Refuse what needs all rows where they are walked once and not kept."""
    if log.ranking is not None:
        return
    for rule in plan.scoring_rules:
        if isinstance(rule, Custom):
            raise MpcError(
                f"Scoring rule {rule.label!r} must have all rows in memory; got a log "
                "that is read in parts. Write its scores into a column of the log and pass "
                f"mpc.Column({rule.label!r})."
            )
    if plan.bootstrap:
        raise MpcError(
            "bootstrap must have the queries in memory; got a log that is read in parts. Leave "
            "bootstrap out, or audit a part of the log that fits, as a Ranking."
        )


def _run(plan: Plan, log: OpenLog, source: Source) -> Audit:
    rules = plan.scoring_rules
    chosen = [_thresholds(plan, source, rule) for rule in rules]
    epsilon = np.stack([one.headline.epsilon for one in chosen])
    wanted = np.stack([one.headline.wanted for one in chosen])
    with_ties = [rule.label for rule in rules if has_ties(source, rule)]
    grid = _grid(plan, epsilon, tied_pairs=bool(with_ties))
    layouts = [insert_thresholds(own, grid) for own in epsilon]
    later = _Later(plan, log, layouts, grid)
    if log.ranking is None:
        # Reading the log again for the grid would take longer than sweeping it now.
        own = [
            part.at(index) for part, (_, _, index) in zip(later.sweep(source), layouts, strict=True)
        ]
    else:
        own = [
            _measure(plan, source, rule, np.take_along_axis(edges, index, axis=1))
            for rule, (edges, _, index) in zip(rules, layouts, strict=True)
        ]
    sides = _compare_sides(plan, source, own)
    own = [found.own for found in sides] if sides else own
    if _items(plan):
        own = [measure_items(source, *cells) for cells in zip(rules, own, strict=True)]
    together = None
    if plan.adjust == "romano_wolf":
        moving = covariances(source, rules, plan.swept_modes, epsilon, own)
        together = [correlation(of_mode) for of_mode in moving]
    capped = _capped_sums(plan, log, source, epsilon)
    complements = _complements(plan, source)
    powered = isinstance(plan.threshold, Powered)
    own, weights = _weigh(plan, source, own, sides)
    return Audit(
        assemble.headline(
            plan,
            own,
            epsilon,
            wanted,
            correlations=together,
            weights=weights,
            flags=_flags(chosen),
            sides=sides,
            complements=complements,
        ),
        later.curve,
        lambda: label_sums(
            plan,
            later.moments,
            grid,
            np.stack([one.headline.all_pairs for one in chosen]),
            together,
            capped(),
            own,
        ),
        attributes(plan, source.facts, log.origin)
        | {"dyads_once": int(any(part.dyads_once for part in own))}
        | {"rules_with_ties": json.dumps(with_ties)}
        | (tried_attribute(plan, [one.tried for one in chosen]) if powered else {})
        | complements_attribute(plan, *complements)
        | _left_out(log, sides),
        ranking=log.ranking,
        scores=None if log.ranking is None else partial(_scores, plan, log.ranking),
        cross=later.cross,
        own=own,
        grid=grid,
        # Reading a log again for every cell would take longer than reading it once for all.
        curve_part=None if log.ranking is None else later.curve_part,
        curve_parts=None if log.ranking is None else later.curve_parts,
        reread=None if log.ranking is not None else partial(_reread, plan, log, source.facts),
        walk=_rewalk(plan, log),
        walk_with=None if log.ranking is not None else partial(_walk_with, plan, log),
    )


def _complements(plan: Plan, source: Source) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the groups that could contradict each other, and under which rules.

    At one threshold they cannot; compared with a third group, both may have the same direction.
    """
    if isinstance(plan.threshold, float) or plan.against is not None:
        return [], []
    return find_complements(source), plan.common_scores


def _capped_sums(
    plan: Plan, log: OpenLog, source: Source, epsilon: Floats
) -> Callable[[], tuple[Floats, tuple[float, float]] | None]:
    """Return a function that gives the sums of capped pairs, with the bounds, for repeated looks.

    Only a threshold fixed in advance allows such a sequence. A log in memory is summed when the
    sums are asked for; a log that is walked is summed now, and only if bounds were given.
    """
    bounds = plan.bounds
    if log.ranking is not None:
        bounds = find_bounds(bounds, log.ranking.outcome, sign=plan.contrast == SIGN)
    elif bounds is not None:
        outside = source.together((Baseline(),), partial(count_outside, *bounds), "bounds", 0)
        check_bounds(bounds, outside)
        bounds = (0.0, 1.0) if plan.contrast == SIGN else bounds
    alike = plan.estimand == PAIRS and source.facts.columns.weight is None
    if bounds is None or not isinstance(plan.threshold, float) or not alike:
        return lambda: None
    task = partial(capped_totals, plan.swept_modes, epsilon, plan.pairs_cap, plan.seed)
    n_cells = (len(plan.scoring_rules), len(plan.swept_modes), len(plan.groups))
    start = np.zeros((*n_cells, len(CAPPED_SUMS)))

    def add_up(walked: Source) -> tuple[Floats, tuple[float, float]]:
        return walked.together(plan.scoring_rules, task, "capping pairs", start), bounds

    if log.ranking is None:
        found = add_up(source)
        return lambda: found

    def later() -> tuple[Floats, tuple[float, float]]:
        with log.source(plan, None) as again:
            return add_up(again)

    return later


def _compare_sides(plan: Plan, source: Source, own: list[Moments]) -> list[TwoSides]:
    """Compare both sides of a tie under each rule, where the log or a mode asks for it."""
    two_sided = any(mode.two_sided for mode in plan.swept_modes)
    if not two_sided and not goes_by_place(source):
        return []
    found = []
    for rule, part in zip(plan.scoring_rules, own, strict=True):
        compared = compare_sides(source, rule, part)
        if _items(plan) and plan.place_effect:
            compared = replace(compared, place=measure_items(source, rule, compared.place))
        found.append(compared)
    return found


def _left_out(log: OpenLog, sides: list[TwoSides]) -> dict[str, int | float | str]:
    """Return the attributes that say which queries had too many pairs to look at.

    A query is numbered by the rows in memory, or else by the walk.
    """
    left_out = [part.left_out for part in sides if len(part.left_out)]
    if not left_out:
        return {}
    numbers, rows = np.concatenate(left_out).T
    codes = numbers if log.ranking is None else log.ranking.query_code[rows]
    named = (np.unique(codes) + 1).tolist()
    return {"n_left_out_of_sides": len(named), "left_out_of_sides": json.dumps(named)}


def _weigh(
    plan: Plan, source: Source, own: list[Moments], sides: list[TwoSides]
) -> tuple[list[Moments], list[UnitWeights]]:
    """Find what single queries weigh under each rule; sides by place know it already."""
    every, weights = [], []
    for k, (rule, part) in enumerate(zip(plan.scoring_rules, own, strict=True)):
        moments, found = weigh_headline(source, rule, part)
        if sides:
            both = zip(found, sides[k].weights, strict=True)
            found = UnitWeights(*(np.where(np.isnan(one), two, one) for one, two in both))
        every.append(moments)
        weights.append(found)
    return every, weights


def _rewalk(plan: Plan, log: OpenLog) -> Rewalk:
    """Return how to walk the log again, with rows of one score in their order."""
    modes = tuple(dict.fromkeys((*plan.pairing_modes, ADJACENT.name)))
    # Spark does not keep the order of rows.
    in_order = log.origin["kind"] != "spark" or log.known.columns.position is not None
    opened = partial(log.source, replace(plan, pairing_modes=modes), None)
    return Rewalk(tuple(plan.scoring_rules), opened, in_order=in_order)


def _reread(plan: Plan, log: OpenLog, facts: LogFacts) -> Ranking:
    """Read the rows of a log that was walked, with the columns that its rules name."""
    extra = [rule.name for rule in plan.scoring_rules if isinstance(rule, Column)]
    return log.read_rows(extra, facts.n_rows)


@contextmanager
def _walk_with(plan: Plan, log: OpenLog, columns: Sequence[str]) -> Iterator[tuple[Walk, LogFacts]]:
    """Walk a log that is not in memory once more, under the logged scores, with more columns."""
    rules: tuple[Rule, ...] = (Baseline(), *(Column(name) for name in columns))
    with log.source(replace(plan, scoring_rules=rules), None) as source:
        # A log that is not in memory is in parts.
        yield cast("PartsSource", source).walk_logged(columns), source.facts


class _Later:
    """What is computed only when first asked for: the results of a second sweep on the whole grid.

    The grid reaches far beyond the headline's thresholds, and most of its pairs are there.
    """

    def __init__(
        self,
        plan: Plan,
        log: OpenLog,
        layouts: list[tuple[Floats, Ints, Ints]],
        grid: Floats,
    ) -> None:
        self._plan, self._log, self._layouts = plan, log, layouts
        self._grid, self._in_edges = grid, [here for _, here, _ in layouts]
        self._swept: list[Moments] | None = None
        self._moments: list[Moments] | None = None
        self._cross: dict[int, Any] = {}
        self._parts: dict[tuple[str, str], xr.Dataset] = {}

    def sweep(self, source: Source) -> list[Moments]:
        """Return the sums on the whole grid that one sweep finds."""
        if self._swept is None:
            self._swept = [
                _measure(self._plan, source, rule, edges)
                for rule, (edges, _, _) in zip(self._plan.scoring_rules, self._layouts, strict=True)
            ]
        return self._swept

    def curve(self) -> xr.Dataset:
        """Return the curves of all cells."""
        cells = zip(self.moments, self._in_edges, strict=True)
        on_grid = [part.at(here) for part, here in cells]
        return assemble.curve(self._plan, on_grid, self._grid, self._in_edges, self.cross)

    def curve_part(self, group: str, rule: str) -> xr.Dataset:
        """Return the curves of one group under one rule, without work for the others."""
        if (group, rule) not in self._parts:
            self._make_part(self._only([group], rule))
        return self._parts[group, rule]

    def curve_parts(self, groups: Sequence[str], rule: str) -> None:
        """Make the curves of some groups under one rule in one walk of the log."""
        missing = [group for group in groups if (group, rule) not in self._parts]
        if not missing:
            return
        together = self._only(missing, rule)
        for at in range(len(missing)):
            self._make_part(together._alone(at))

    def _make_part(self, only: _Later) -> None:
        cell = (only._plan.groups[0], only._plan.rule_labels[0])
        self._parts[cell] = only._second_pass().curve()

    def _second_pass(self) -> _Later:
        """Compare both sides inside cells of places at every threshold, for one cell alone."""
        rule, (part,), (together,) = self._plan.scoring_rules[0], self.moments, self.cross(0)
        if part.cells is None:
            return self
        with self._log.source(self._plan, None) as source:
            (swept,) = self.sweep(source)
            found, moving = compare_on_curve(source, rule, swept, part, items=_items(self._plan))
        groups, sums = together
        self._moments = [found]
        self._cross[0] = [(groups, replace(sums, joined=moving[None]))]
        return self

    def _only(self, groups: Sequence[str], rule: str) -> _Later:
        at = np.array([self._plan.groups.index(group) for group in groups])
        number = self._plan.rule_labels.index(rule)
        plan = replace(
            self._plan, groups=tuple(groups), scoring_rules=(self._plan.scoring_rules[number],)
        )
        edges, here, index = self._layouts[number]
        only = _Later(plan, self._log, [(edges[at], here[at], index[at])], self._grid)
        if self._swept is not None:
            only._swept = [self._swept[number].of_groups(at)]
        return only

    def _alone(self, at: int) -> _Later:
        """Return what one group has of this, under the one rule there is."""
        moments, here = self.moments[0], np.array([at])
        only = self._only([self._plan.groups[at]], self._plan.rule_labels[0])
        only._moments = [moments.of_groups(here)]
        only._cross[0] = [
            (np.array([0]), part.of_groups(np.flatnonzero(groups == at)))
            for groups, part in self.cross(0)
            if at in groups
        ]
        return only

    @property
    def moments(self) -> list[Moments]:
        """The sums on the whole grid, with what CR3 needs, and over items if wanted."""
        if self._moments is None:
            self._sweep_again()
        return self._moments or []

    def cross(self, rule: int) -> Any:
        """Return how the thresholds of a rule move together."""
        if self._moments is None:
            self._sweep_again()
        return self._cross[rule]

    def _sweep_again(self) -> None:
        found = []
        with self._log.source(self._plan, None) as source:
            cells = zip(self._plan.scoring_rules, self.sweep(source), strict=True)
            for number, (rule, moments) in enumerate(cells):
                if _items(self._plan):
                    moments = measure_items(source, rule, moments)
                moments, self._cross[number] = weigh_curve(source, rule, moments)
                found.append(moments)
        self._moments = found


def _measure(plan: Plan, source: Source, rule: Rule, edges: Floats) -> Moments:
    """Sweep once. Later sums over items count the items too; sums over producers do not."""
    count_items = not _items(plan) or plan.owner != ITEM
    modes = plan.swept_modes
    return measure(source, rule, edges, modes=modes, items=False, count_items=count_items)


def _items(plan: Plan) -> bool:
    return VARIANCES[plan.cluster].needs_items


@dataclass(frozen=True)
class _Chosen:
    """The thresholds of one rule, what they fall short of, and what was tried.

    Attributes
    ----------
    headline : Headline
    underpowered : bool array (group,) or None
        Where no threshold has the power asked for.
    tried : float64 array (group, candidate, 2) or None
        Thresholds, and the smallest gap that each would find.
    short_of_pairs : bool array (group,) or None
        Where too few pairs are close.
    """

    headline: Headline
    underpowered: Flags | None = None
    tried: Floats | None = None
    short_of_pairs: Flags | None = None


def _thresholds(plan: Plan, source: Source, rule: Rule) -> _Chosen:
    """Choose the threshold of each group."""
    if isinstance(plan.threshold, float):
        unknown = np.full(len(plan.groups), np.nan)
        return _Chosen(Headline(np.full(len(plan.groups), plan.threshold), unknown, unknown))
    if isinstance(plan.threshold, Enough):
        headline, short = choose_enough(source, rule, plan.threshold)
        return _Chosen(headline, short_of_pairs=short)
    if isinstance(plan.threshold, Powered):
        candidates = _choose(plan, source, rule, plan.threshold.candidates)
        return _Chosen(*choose_powered(plan, plan.threshold, source, rule, candidates))
    return _Chosen(_choose(plan, source, rule, (plan.threshold,))[0])


def _flags(chosen: Sequence[_Chosen]) -> dict[str, Flags]:
    """Return what the thresholds of all rules fall short of: arrays (rule, group) by name."""
    every = {
        name: [getattr(one, name) for one in chosen] for name in ("underpowered", "short_of_pairs")
    }
    return {name: np.stack(flags) for name, flags in every.items() if flags[0] is not None}


def _choose(
    plan: Plan, source: Source, rule: Rule, thresholds: tuple[Quantile | Smallest, ...]
) -> list[Headline]:
    """Find thresholds; where scores are shares of a list, rounding must not separate equal ones."""
    found = choose_thresholds(source, rule, thresholds)
    if plan.closeness != PERCENTILE:
        return found
    return [replace(one, epsilon=round_up(one.epsilon)) for one in found]


def _grid(plan: Plan, epsilon: Floats, *, tied_pairs: bool) -> Floats:
    if plan.epsilon is not None:
        return np.array(plan.epsilon)
    return default_grid(epsilon, tied_pairs)


def _scores(plan: Plan, ranking: Ranking, label: str, group: str) -> Floats | None:
    """Return the scores of a rule, None for the logged ones."""
    if label == "baseline":
        return None
    return plan.scoring_rules[plan.rule_labels.index(label)].scores(ranking, group)
