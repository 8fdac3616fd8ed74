"""Fit on half of the queries, choose on a quarter, report on the rest; and how each is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from mpc_lab.engines.memory import MemorySource, MemoryWalk
from mpc_lab.errors import MpcError
from mpc_lab.inference.clustered import query_clusters
from mpc_lab.inference.estimates import Estimates, significance
from mpc_lab.objective.ndcg import QueryObjective, ndcg_change, query_objective
from mpc_lab.objective.offsets import Offsets, fit_offsets, shift_scores
from mpc_lab.offsets.guarantee import COLLINEAR, JUDGED, TOO_FEW, Guarantee
from mpc_lab.pairing.log import apply_terms, select_groups, sort_rows
from mpc_lab.pairing.measure import NO_THRESHOLD, choose_thresholds, measure, weigh_headline
from mpc_lab.pairing.measure_sides import compare_sides
from mpc_lab.pairing.terms import ROOT, Quantile, Terms
from mpc_lab.ranking.spread import standard_deviation
from mpc_lab.results.assemble import infer
from mpc_lab.results.questions.boosts import shown_order_caution
from mpc_lab.scoring import Baseline, Rule
from mpc_lab.text import number, quote
from mpc_lab.vocabulary import CR3, SYMMETRIC, Flags, Floats

if TYPE_CHECKING:
    from mpc_lab.inference.clustered import Clustered
    from mpc_lab.ranking import LogFacts, Ranking

TERMS = Terms(estimand=ROOT)
_FIRST_PERCENTILE = Quantile(0.01)
_PARTS = 4  # half, a quarter, a quarter


def divide(ranking: Ranking, seed: int) -> tuple[Ranking, Ranking, Ranking]:
    """Return a half of the queries (or units) to fit, a quarter to choose, a quarter to report."""
    of_query, n = query_clusters(ranking)
    if n < _PARTS:
        what = "queries" if ranking.unit_code is None else "units"
        raise MpcError(
            f"FairOffsets must have at least {_PARTS} {what}, to fit on one half and to judge "
            f"on the other; got {n}. Give a longer log."
        )
    order = np.random.default_rng(seed).permutation(n)
    first, second = (n + 1) // 2, (n + 1) // 2 + (n - (n + 1) // 2 + 1) // 2
    part = np.empty(n, dtype=np.int64)
    part[order[:first]], part[order[first:second]], part[order[second:]] = 0, 1, 2
    of_row = part[of_query[ranking.query_code]]
    return tuple(ranking.subset(of_row == k) for k in range(3))  # type: ignore[return-value]


@dataclass(frozen=True)
class Shifted:
    """Scores with offsets of groups added, as a scoring rule."""

    offsets: Floats
    same_for_all_groups: ClassVar[bool] = True
    in_sample: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """Return ``"offsets"``."""
        return "offsets"

    def scores(self, ranking: Ranking, group: str) -> Floats:
        """Return the scores of all rows; the group does not matter."""
        return shift_scores(ranking.score, ranking.masks, self.offsets)

    def alpha_in(self, ranking: LogFacts) -> float | None:
        """Return None: the rule is not a boost of one group."""
        return None


@dataclass(frozen=True)
class Judged:
    """Gaps and NDCG under some offsets on one part.

    Attributes
    ----------
    gaps : Estimates
        Arrays (group,).
    ndcg : Clustered
        Its change against the scores without offsets.
    """

    gaps: Estimates
    ndcg: Clustered


class Judge:
    """One part of a log, ready to judge offsets of all its groups.

    Parameters
    ----------
    part : Ranking
    epsilon : float64 array (group,), optional
        The threshold of each group; by default the first percentile of its distances here.
    """

    def __init__(self, part: Ranking, epsilon: Floats | None = None) -> None:
        self.part = part
        self.source = MemorySource(part, part.groups, None, TERMS)
        if epsilon is None:
            (chosen,) = choose_thresholds(self.source, Baseline(), (_FIRST_PERCENTILE,))
            epsilon = chosen.epsilon
        self.epsilon = epsilon
        self._before: QueryObjective | None = None

    def gaps(self, offsets: Floats, level: float) -> Estimates:
        """Estimate the ``symmetric`` gap of each group, clustered by query.

        Parameters
        ----------
        offsets : float64 array (group,)
        level : float
            The level of two-sided intervals.
        """
        rule: Rule = Shifted(offsets) if offsets.any() else Baseline()
        edges = np.where(np.isnan(self.epsilon), NO_THRESHOLD, self.epsilon)[:, None]
        own = measure(self.source, rule, edges, modes=(SYMMETRIC,), items=False, count_items=False)
        if self.part.columns.sides_by_place:
            own = compare_sides(self.source, rule, own).own
        own, _ = weigh_headline(self.source, rule, own)
        return _cells(infer(own, cluster="query", level=level, correction=CR3))

    def change(self, offsets: Floats, level: float) -> Clustered:
        """Return the paired change of NDCG."""
        if self._before is None:
            self._before = query_objective(self.part)
        after = self._before
        if offsets.any():
            after = query_objective(self.part, Shifted(offsets).scores(self.part, ""))
        return ndcg_change(self.part, self._before, after, level=level)

    def judge(self, offsets: Floats, level: float) -> Judged:
        """Return gaps and the change of NDCG, with two-sided intervals at this level."""
        return Judged(self.gaps(offsets, level), self.change(offsets, level))


def _cells(found: Estimates) -> Estimates:
    """Return the estimates of the one mode at the one threshold of each group."""

    def part(value: object) -> object:
        if isinstance(value, dict):
            return {name: each[0, :, 0] for name, each in value.items()}
        return np.asarray(value)[0, :, 0]

    return Estimates(**{name: part(value) for name, value in vars(found).items()})  # type: ignore[arg-type]


def one_sided(level: float) -> float:
    """Return the level of a two-sided interval each end of which is one-sided at `level`."""
    return 1 - 2 * significance(level)


def within(gaps: Estimates, tolerance: float) -> Flags:
    """Return which intervals are inside ± the tolerance; none where there is no interval."""
    return np.asarray((gaps.ci_low >= -tolerance) & (gaps.ci_high <= tolerance))


PATH = (1.0, 0.75, 0.5, 0.25, 0.0)
_OF_OUTCOME = 0.2  # standard deviations of the outcome: the default tolerance
_TRIED = ("passed", "farthest", "of_group", "ndcg_change", "ndcg_change_low")


@dataclass(frozen=True)
class Asked:
    """The parameters of `FairOffsets`, checked."""

    tolerance: float | None
    ndcg_drop: float | None
    min_effective: float
    level: float
    seed: int


@dataclass(frozen=True)
class Found:
    """What the three parts of a log showed.

    Attributes
    ----------
    fitted, chosen : float64 arrays (group,)
        β, and β·t; the latter is 0 where nothing passed.
    share : float
        t; NaN where nothing passed.
    tolerance : float
    judged, collinear : bool arrays (group,)
        Groups with enough effective queries, and those of them that are collinear with others.
    n_effective : float64 array (group,)
        Effective queries in the first part.
    fit : Offsets or None
        None where no group is judged, or all scores are equal.
    tried : pandas.DataFrame
    failed : tuple of str
    before, after : Judged
        On the third part; after with β·t, or with β where nothing passed.
    n_queries : tuple of int
    """

    fitted: Floats
    chosen: Floats
    share: float
    tolerance: float
    judged: Flags
    collinear: Flags
    n_effective: Floats
    fit: Offsets | None
    tried: pd.DataFrame
    failed: tuple[str, ...]
    before: Judged
    after: Judged
    n_queries: tuple[int, int, int]

    @property
    def n_steps(self) -> int:
        """Steps of the fit."""
        return 0 if self.fit is None else self.fit.n_steps

    @property
    def is_open(self) -> bool:
        """Whether there are offsets to be judged: the slope is clear."""
        return self.fit is not None and self.fit.slope_is_clear


def find_offsets(ranking: Ranking, asked: Asked) -> Found:
    """Fit offsets of all groups with enough data, choose what share of them to use, and test that.

    Parameters
    ----------
    ranking : Ranking
    asked : Asked

    Returns
    -------
    Found
    """
    first, second, third = divide(ranking, asked.seed)
    tolerance = asked.tolerance
    if tolerance is None:
        tolerance = _OF_OUTCOME * standard_deviation(first.outcome)
    nothing = np.zeros(len(ranking.groups))
    fitting = Judge(first)
    n_effective = fitting.gaps(nothing, asked.level).n_effective
    judged = np.nan_to_num(n_effective) >= asked.min_effective
    fit, fitted, collinear = _fit(first, judged, asked.level)
    failed: tuple[str, ...] = ()
    share, tried = float("nan"), _frame([])
    if fit is not None and fit.slope_is_clear:
        choosing = Judge(second, fitting.epsilon)
        share, tried, failed = _go_down(choosing, fitted, judged, tolerance, asked)
    chosen = fitted * share if np.isfinite(share) else nothing
    # If nothing passed, the refusal says what the offsets would have done.
    tested = chosen if np.isfinite(share) else fitted
    reporting = Judge(third, fitting.epsilon)
    before = reporting.judge(nothing, asked.level)
    return Found(
        fitted=fitted,
        chosen=chosen,
        share=share,
        tolerance=tolerance,
        judged=judged,
        collinear=collinear,
        n_effective=n_effective,
        fit=fit,
        tried=tried,
        failed=failed,
        before=before,
        after=reporting.judge(tested, asked.level) if tested.any() else before,
        n_queries=(first.n_queries, second.n_queries, third.n_queries),
    )


def _fit(part: Ranking, judged: Flags, level: float) -> tuple[Offsets | None, Floats, Flags]:
    """Return the fit of the judged groups, offsets of all, and which of them are collinear."""
    values, collinear = np.zeros(len(judged)), np.zeros(len(judged), dtype=np.bool_)
    if not judged.any() or not part.score_std > 0:
        return None, values, collinear
    these = np.flatnonzero(judged)
    log = sort_rows(part, masks=select_groups(part.masks, these))
    found = fit_offsets(
        apply_terms(TERMS, log, log),
        len(these),
        part.score_std,
        by_place=part.columns.sides_by_place,
        level=level,
        walk_of=MemoryWalk,
    )
    values[these], collinear[these] = found.values, ~found.first.kept
    return found, values, collinear


def _go_down(
    judge: Judge, fitted: Floats, judged: Flags, tolerance: float, asked: Asked
) -> tuple[float, pd.DataFrame, tuple[str, ...]]:
    """Return the last t that passed, all that were tried, and what failed at t = 1."""
    failed: tuple[str, ...] = ()
    share, rows = float("nan"), []
    for t in PATH:
        found = judge.judge(fitted * t, one_sided(asked.level))
        why = _failures(found, judge.part.groups, judged, tolerance, asked.ndcg_drop)
        rows.append((t, *_row(found, judge.part.groups, judged, not why)))
        if why:
            failed = tuple(why) if t == PATH[0] else ()
            break
        share = t
    return share, _frame(rows), failed


def _failures(
    found: Judged,
    groups: tuple[str, ...],
    judged: Flags,
    tolerance: float,
    drop: float | None,
) -> list[str]:
    """Say which conditions do not hold, the worst first."""
    inside = within(found.gaps, tolerance)
    reach = _reach(found)
    bad = [g for g in np.flatnonzero(judged) if not inside[g]]
    bad.sort(key=lambda g: -np.nan_to_num(reach[g], nan=np.inf))
    said = [
        f"the gap of {quote(groups[g])} may be {number(reach[g], 3)}"
        if np.isfinite(reach[g])
        else f"the gap of {quote(groups[g])} has no interval ({found.gaps.reason[g]})"
        for g in bad
    ]
    low = found.ndcg.ci_low
    if drop is not None and not low >= -drop:
        fall = f"may fall by {number(-low, 5)}" if np.isfinite(low) else "has no interval"
        said.insert(0, f"NDCG {fall}")
    return said


def _reach(found: Judged) -> Floats:
    """Return how far from 0 the intervals of the gaps reach."""
    return np.asarray(np.maximum(np.abs(found.gaps.ci_low), np.abs(found.gaps.ci_high)))


def _row(
    found: Judged, groups: tuple[str, ...], judged: Flags, passed: bool
) -> tuple[bool, float, str, float, float]:
    reach = np.where(judged, np.nan_to_num(_reach(found), nan=np.inf), -1.0)
    worst = int(np.argmax(reach))
    return passed, float(reach[worst]), groups[worst], found.ndcg.estimate, found.ndcg.ci_low


def _frame(rows: list[tuple[float, bool, float, str, float, float]]) -> pd.DataFrame:
    columns = list(zip(*rows, strict=True)) or [()] * (1 + len(_TRIED))
    made = pd.DataFrame(dict(zip(("share", *_TRIED), columns, strict=True)))
    numbers = ("share", "farthest", "ndcg_change", "ndcg_change_low")
    types = {**dict.fromkeys(numbers, "float64"), "passed": "bool", "of_group": "str"}
    return made.astype(types).set_index("share")


def make_guarantee(
    found: Found, asked: Asked, ranking: Ranking, offsets: pd.Series[float]
) -> Guarantee:
    """Put what was found into words and tables.

    Parameters
    ----------
    found : Found
    asked : Asked
    ranking : Ranking
        The ranking that the offsets were fitted to.
    offsets : pandas.Series
        Those that were tried on the third part, in units of its score column.
    """
    reason = ""
    if not np.isfinite(found.share):
        open_ = "judged" if found.is_open else "slope"
        reason = open_ if found.judged.any() else "groups"
    first = None if found.fit is None else found.fit.first
    unknown = (float("nan"),) * 3
    slope, low, high = (
        unknown if first is None else (first.slope, first.slope_low, first.slope_high)
    )
    ndcg = found.after.ndcg
    return Guarantee(
        holds=not reason,
        share=found.share,
        tolerance=found.tolerance,
        ndcg_drop=asked.ndcg_drop,
        level=asked.level,
        reason=reason,
        failed=found.failed,
        slope=slope,
        slope_low=low,
        slope_high=high,
        groups=_groups(found, offsets),
        tried=found.tried,
        ndcg_change=float(ndcg.estimate),
        ndcg_change_low=float(ndcg.ci_low),
        ndcg_change_high=float(ndcg.ci_high),
        n_queries=found.n_queries,
        outcome=str(ranking.columns.outcome_name or ranking.columns.outcome),
        caution=shown_order_caution(ranking),
    )


def _groups(found: Found, offsets: pd.Series[float]) -> pd.DataFrame:
    status = np.where(found.judged, np.where(found.collinear, COLLINEAR, JUDGED), TOO_FEW)
    columns = {
        "offset": offsets.to_numpy(),
        "status": status.astype(str),
        "n_effective": found.n_effective,
    }
    for when, judged in (("before", found.before), ("after", found.after)):
        columns[f"gap_{when}"] = judged.gaps.estimate
        columns[f"gap_{when}_low"] = judged.gaps.ci_low
        columns[f"gap_{when}_high"] = judged.gaps.ci_high
    return pd.DataFrame(columns, index=offsets.index.rename("group"))
