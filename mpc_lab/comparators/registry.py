"""The comparators, each one entry here, and where they disagree with MPC and with each other.

To add a comparator, write its file and its entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mpc_lab.comparators.base import Case, Comparison, Conditions
from mpc_lab.comparators.calibration import calibration_gap
from mpc_lab.comparators.exposure import exposure_ratios
from mpc_lab.comparators.inequalities import inequalities
from mpc_lab.comparators.pairwise_accuracy import pairwise_accuracy
from mpc_lab.comparators.skew import skews
from mpc_lab.inference.estimates import significance
from mpc_lab.inference.verdicts import holm
from mpc_lab.text import plain
from mpc_lab.vocabulary import DIRECTIONS, OVERVALUED, UNDERVALUED, Floats

MPC_CONDITIONS = Conditions(scores="close", queries="same", looks_at="outcomes")


@dataclass(frozen=True)
class Comparator:
    """A rival of matched pair calibration.

    Attributes
    ----------
    compare : callable
        From a `Case` to its comparisons, always the same ones in the same order.
    titles : mapping of str to str
        What a sentence calls each comparison; without one, its name with spaces.
    """

    compare: Callable[[Case], list[Comparison]]
    titles: Mapping[str, str] = field(default_factory=dict)


COMPARATORS: dict[str, Comparator] = {
    "calibration": Comparator(calibration_gap, {"calibration_gap": "the calibration gap"}),
    "pairwise_accuracy": Comparator(
        pairwise_accuracy,
        {
            "pairwise_accuracy_overall": "pairwise accuracy (overall)",
            "pairwise_accuracy_inter": "pairwise accuracy (inter-group)",
            "pairwise_accuracy_intra": "pairwise accuracy (intra-group)",
        },
    ),
    "inequalities": Comparator(
        inequalities,
        {
            "inequality_group_above": "the inequality for items just above",
            "inequality_group_below": "the inequality for items just below",
            "inequalities_joint": "the joint test of inequalities",
        },
    ),
    "exposure": Comparator(
        exposure_ratios,
        {
            "exposure_ratio": "the exposure ratio",
            "treatment_ratio": "the treatment ratio",
            "impact_ratio": "the impact ratio",
        },
    ),
    "skew": Comparator(skews, {"ndkl": "NDKL"}),
}


def compare(case: Case) -> list[Comparison]:
    """Return what every comparator says of one group, from one sort of the rows.

    Returns
    -------
    list of Comparison
        ``calibration_gap``; ``pairwise_accuracy_overall``, ``_inter``, ``_intra``;
        ``inequality_group_above``, ``inequality_group_below``, ``inequalities_joint``;
        ``exposure_ratio``, ``treatment_ratio``, ``impact_ratio``; ``skew@k``, ``min_skew@k``,
        ``max_skew@k``, ``ndkl``; then those of comparators that were added.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> found = compare(Case(mpc.datasets.synthetic(queries=500), "1"))
    >>> found[0].name, found[0].flagged
    ('calibration_gap', False)
    """
    return [found for entry in COMPARATORS.values() for found in entry.compare(case)]


def adjust(every: Sequence[Sequence[Comparison]], level: float = 0.95) -> list[list[Comparison]]:
    """Flag rivals by Holm over the groups of each measure, as the gap is.

    The interval is Bonferroni's at 1 − a/m over the m groups with a p-value; where Holm rejects and
    the interval still includes the null, its end on the far side is set to the null; where Holm
    does not reject and the interval excludes the null, it is stretched to reach it. A measure with
    a one-sided test keeps its two-sided interval and is flagged by its p-value. A measure without a
    p-value is never flagged, and its interval stays as it is.

    Parameters
    ----------
    every : list of lists of Comparison
        For each group its rivals, as `compare` gives them.
    level : float

    Returns
    -------
    list of lists of Comparison
        The same, with ``p_adjusted``, its interval, ``flagged`` and ``says``, and with
        ``p_overall`` by Holm over all groups and measures together.
    """
    p = np.array([[one.p_value for one in rivals] for rivals in every], dtype=np.float64)
    overall = _holm(p.ravel()).reshape(p.shape)
    by_measure = np.stack([_holm(column) for column in p.T], axis=1) if p.size else p
    tests = np.maximum(np.isfinite(p).sum(axis=0), 1)
    a = significance(level)
    return [
        [
            replace(_adjust_one(one, by_measure[g, m], a, int(tests[m])), p_overall=overall[g, m])
            for m, one in enumerate(rivals)
        ]
        for g, rivals in enumerate(every)
    ]


def _holm(p: Floats) -> Floats:
    known = np.isfinite(p)
    adjusted = np.full(p.shape, np.nan)
    adjusted[known] = holm(p[known])
    return adjusted


def _adjust_one(one: Comparison, p: float, a: float, tests: int) -> Comparison:
    flagged = bool(p <= a)
    low, high = one.ci_low, one.ci_high
    # Without an interval there is nothing to widen; without a p-value there is no family to adjust
    # over.
    if one.interval is not None and low == low and p == p:
        low, high = one.interval(a / tests)
    covers = low <= one.null <= high
    if one.two_sided and p == p and flagged == covers:
        low, high = (one.null, high) if one.estimate > one.null else (low, one.null)
    return replace(
        one,
        p_adjusted=float(p),
        ci_low_adjusted=low,
        ci_high_adjusted=high,
        flagged=flagged,
        says=one.leans if flagged else "",
    )


def title_of(name: str) -> str:
    """Return what a sentence calls a comparison."""
    titles = {name: title for one in COMPARATORS.values() for name, title in one.titles.items()}
    return titles.get(name, name.replace("_", " "))


def compare_mpc(
    estimate: float,
    std_error: float,
    ci_low: float,
    ci_high: float,
    p_value: float,
    n_effective: float,
    verdict: str,
    p_adjusted: float = float("nan"),
    ci_low_adjusted: float = float("nan"),
    ci_high_adjusted: float = float("nan"),
    rank_only: bool = False,
) -> Comparison:
    """Return the headline cell of an audit as a comparison, flagged by its verdict."""
    says = verdict if verdict in DIRECTIONS else ""
    return Comparison(
        name="mpc",
        estimate=estimate,
        conditions=replace(MPC_CONDITIONS, scores="neighbours") if rank_only else MPC_CONDITIONS,
        std_error=std_error,
        ci_low=ci_low,
        ci_high=ci_high,
        p_value=p_value,
        high_is=UNDERVALUED,
        flagged=says != "",
        says=says,
        leans=says,
        n_effective=n_effective,
        p_adjusted=p_adjusted,
        ci_low_adjusted=ci_low_adjusted,
        ci_high_adjusted=ci_high_adjusted,
        reason="" if ci_low == ci_low else verdict,
    )


# A rival's first difference from MPC, singular and plural.
_EXPOSURE = "at who is where, never at outcomes,"
_CLAUSES = {
    "exposure": (f"looks {_EXPOSURE}", f"look {_EXPOSURE}"),
    "both": (
        "sets exposure against outcomes, whatever the scores,",
        "set exposure against outcomes, whatever the scores,",
    ),
    "all queries": (
        "compares items of all queries at about the same score",
        "compare items of all queries at about the same score",
    ),
    "neighbours": (
        "compares neighbours of the list, however far apart their scores are,",
        "compare neighbours of the list, however far apart their scores are,",
    ),
    "all scores": ("counts pairs with any scores", "count pairs with any scores"),
    "none": (
        "compares close scores in the same query too",
        "compare close scores in the same query too",
    ),
}


@dataclass(frozen=True)
class Explanation:
    """What the measures of one group say.

    Attributes
    ----------
    group : str
    undervalued, overvalued, flagged, silent, unknown : tuple of str
        Names of the measures that call the group undervalued; that call it overvalued; that flag it
        either way or without a direction; that do not flag it; that have nothing to test.
    agree : bool
        Whether no measure contradicts MPC by more than chance.
    by_chance : tuple of str
        Names of the measures that flag the group although MPC does not, no more often than chance
        would among all measures and groups.
    sentence : str
        What they say, in one sentence.
    """

    group: str
    undervalued: tuple[str, ...]
    overvalued: tuple[str, ...]
    flagged: tuple[str, ...]
    silent: tuple[str, ...]
    unknown: tuple[str, ...]
    agree: bool
    by_chance: tuple[str, ...]
    sentence: str


def explain(
    group: str, mpc: Comparison, rivals: Sequence[Comparison], level: float = 0.95
) -> Explanation:
    """Say which measures flag a group, and why those that differ from MPC do.

    The reason is taken from what the measures condition on: close scores or all, the same query
    or all, outcomes or exposure only. Noise gets no reason: a rival that flags a group that MPC
    does not must do so after Holm's correction over all groups and rivals together; and a rival
    without a flag contradicts nothing if it points the same way as MPC and would be significant by
    itself.

    Parameters
    ----------
    group : str
    mpc : Comparison
        The matched pair calibration of the group.
    rivals : list of Comparison
        The rivals of the same group; from `adjust`, where there are several groups.
    level : float
    """
    every = [mpc, *rivals]
    known = [one for one in every if can_tell(one)]
    apart = [one for one in rivals if can_tell(one) and _answer(one) != _answer(mpc)]
    differing = [one for one in apart if _beyond_chance(one, mpc, significance(level))]
    chance = [one for one in apart if one.flagged and one not in differing]

    def names(chosen: Sequence[Comparison]) -> tuple[str, ...]:
        return tuple(one.name for one in chosen)

    return Explanation(
        group=group,
        undervalued=names([one for one in known if one.says == UNDERVALUED]),
        overvalued=names([one for one in known if one.says == OVERVALUED]),
        flagged=names([one for one in known if one.flagged]),
        silent=names([one for one in known if not one.flagged]),
        unknown=names([one for one in every if not can_tell(one)]),
        agree=can_tell(mpc) and not differing,
        by_chance=names(chance),
        sentence=_sentence(group, mpc, known, differing, chance),
    )


def _beyond_chance(one: Comparison, mpc: Comparison, a: float) -> bool:
    """Whether a rival that contradicts MPC does so by more than noise."""
    if one.flagged:
        # A group by itself has no other test to be adjusted for.
        return not one.p_overall > a
    return not (one.p_value <= a and one.leans == mpc.says)


def can_tell(one: Comparison) -> bool:
    """Whether a measure could have flagged the group: it has a null and an interval or a test."""
    has_null = one.null == one.null or one.p_value == one.p_value
    return bool(has_null and (one.ci_low == one.ci_low or one.p_value == one.p_value))


def _answer(one: Comparison) -> str:
    return (one.says or "flagged") if one.flagged else "silent"


def _sentence(
    group: str,
    mpc: Comparison,
    known: Sequence[Comparison],
    differing: Sequence[Comparison],
    chance: Sequence[Comparison],
) -> str:
    if not can_tell(mpc):
        flags = [title_of(one.name) for one in known if one.flagged]
        said = f"it is flagged by {_list_names(flags)}" if flags else "no other measure flags it"
        return f"MPC cannot be estimated for group '{plain(group)}'; {said}."
    if not differing:
        said = {"silent": "does not flag", "flagged": "flags"}.get(_answer(mpc), "")
        how = f"{said} it" if said else f"calls it {mpc.says}"
        start = f"MPC {how}, and no measure contradicts it"
        if not chance:
            return f"{start} for group '{plain(group)}'."
        listed = _list_names([title_of(one.name) for one in chance])
        return (
            f"{start} by more than chance for group '{plain(group)}': {listed} "
            f"{_flag(len(chance) > 1)} it, as may happen "
            "by chance among so many tests."
        )
    close = {"neighbours": "of neighbours in the list"}
    how = close.get(mpc.conditions.scores, "at close scores in the same query")
    parts = [f"{_says(mpc, group)}, comparing outcomes {how}"]
    bundles: dict[tuple[str, str], list[Comparison]] = {}
    for one in differing:
        bundles.setdefault((_difference(one.conditions), _answer(one)), []).append(one)
    for (difference, _), ones in bundles.items():
        several = len(ones) > 1
        clause = _CLAUSES[difference][several]
        said = _verb(ones[0], several)
        parts.append(f"{_list_names([title_of(one.name) for one in ones])} {clause} and {said}")
    return "; ".join(parts) + "."


def _difference(conditions: Conditions) -> str:
    if conditions.looks_at in ("exposure", "both"):
        return conditions.looks_at
    if conditions.queries == "all":
        return "all queries"
    return {"neighbours": "neighbours", "all": "all scores"}.get(conditions.scores, "none")


def _says(mpc: Comparison, group: str) -> str:
    if not mpc.flagged:
        return f"MPC does not flag group '{plain(group)}'"
    name = f"group '{plain(group)}'"
    return f"MPC calls {name} {mpc.says}" if mpc.says else f"MPC flags {name}"


def _flag(several: bool) -> str:
    return "flag" if several else "flags"


def _verb(one: Comparison, several: bool) -> str:
    if not one.flagged:
        return f"{'do' if several else 'does'} not flag it"
    if one.says:
        return f"{'call' if several else 'calls'} it {one.says}"
    return f"{_flag(several)} it without a direction"


def _list_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
