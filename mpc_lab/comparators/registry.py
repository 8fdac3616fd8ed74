"""The comparators, each one entry here, and where they disagree with MPC and with each other.

To add a comparator, write its file and its entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mpc_lab.comparators.base import FAVOURED, UNDERVALUED, Case, Comparison, Conditions
from mpc_lab.comparators.calibration import calibration_gap
from mpc_lab.comparators.exposure import exposure_ratios
from mpc_lab.comparators.inequalities import inequalities
from mpc_lab.comparators.pairwise_accuracy import pairwise_accuracy
from mpc_lab.comparators.skew import skews
from mpc_lab.text import plain
from mpc_lab.vocabulary import OVERVALUED
from mpc_lab.vocabulary import UNDERVALUED as UNDERVALUED_VERDICT

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
) -> Comparison:
    """Return the headline cell of an audit as a comparison, flagged by its verdict.

    A verdict of ``overvalued`` says that the group is favoured.
    """
    says = {UNDERVALUED_VERDICT: UNDERVALUED, OVERVALUED: FAVOURED}.get(verdict, "")
    return Comparison(
        name="mpc",
        estimate=estimate,
        conditions=MPC_CONDITIONS,
        std_error=std_error,
        ci_low=ci_low,
        ci_high=ci_high,
        p_value=p_value,
        high_is=UNDERVALUED,
        flagged=says != "",
        says=says,
        n_effective=n_effective,
        reason="" if ci_low == ci_low else verdict,
    )


# A rival's first difference from MPC, singular and plural.
_EXPOSURE = "at who stands where, never at outcomes,"
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
    undervalued, favoured, flagged, silent, unknown : tuple of str
        Names of the measures that call the group undervalued; that call it favoured; that flag it
        either way or without a direction; that do not flag it; that have nothing to test.
    agree : bool
        Whether all measures that can tell say the same as MPC.
    sentence : str
        What they say, in one sentence.
    """

    group: str
    undervalued: tuple[str, ...]
    favoured: tuple[str, ...]
    flagged: tuple[str, ...]
    silent: tuple[str, ...]
    unknown: tuple[str, ...]
    agree: bool
    sentence: str


def explain(group: str, mpc: Comparison, rivals: Sequence[Comparison]) -> Explanation:
    """Say which measures flag a group, and why those that differ from MPC do.

    The reason is taken from what the measures condition on: close scores or all, the same query
    or all, outcomes or exposure only.

    Parameters
    ----------
    group : str
    mpc : Comparison
        The matched pair calibration of the group.
    rivals : list of Comparison
        Of the same group.
    """
    every = [mpc, *rivals]
    known = [one for one in every if can_tell(one)]
    differing = [one for one in rivals if can_tell(one) and _answer(one) != _answer(mpc)]

    def names(chosen: Sequence[Comparison]) -> tuple[str, ...]:
        return tuple(one.name for one in chosen)

    return Explanation(
        group=group,
        undervalued=names([one for one in known if one.says == "undervalued"]),
        favoured=names([one for one in known if one.says == "favoured"]),
        flagged=names([one for one in known if one.flagged]),
        silent=names([one for one in known if not one.flagged]),
        unknown=names([one for one in every if not can_tell(one)]),
        agree=can_tell(mpc) and not differing,
        sentence=_sentence(group, mpc, known, differing),
    )


def can_tell(one: Comparison) -> bool:
    """Whether a measure could have flagged the group: it has a null and an interval or a test."""
    has_null = one.null == one.null or one.p_value == one.p_value
    return bool(has_null and (one.ci_low == one.ci_low or one.p_value == one.p_value))


def _answer(one: Comparison) -> str:
    return (one.says or "flagged") if one.flagged else "silent"


def _sentence(
    group: str, mpc: Comparison, known: Sequence[Comparison], differing: Sequence[Comparison]
) -> str:
    if not can_tell(mpc):
        flags = [title_of(one.name) for one in known if one.flagged]
        said = f"it is flagged by {_listed(flags)}" if flags else "no other measure flags it"
        return f"MPC cannot be estimated for group '{plain(group)}'; {said}."
    if not differing:
        said = {"silent": "does not flag", "flagged": "flags"}.get(_answer(mpc), "")
        how = f"{said} it" if said else f"calls it {_own_word(mpc)}"
        return f"MPC {how}, and no measure contradicts it for group '{plain(group)}'."
    parts = [f"{_says(mpc, group)}, comparing outcomes at close scores in the same query"]
    bundles: dict[tuple[str, str], list[Comparison]] = {}
    for one in differing:
        bundles.setdefault((_difference(one.conditions), _answer(one)), []).append(one)
    for (difference, _), ones in bundles.items():
        several = len(ones) > 1
        clause = _CLAUSES[difference][several]
        said = _verb(ones[0], several)
        parts.append(f"{_listed([title_of(one.name) for one in ones])} {clause} and {said}")
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
    word = _own_word(mpc)
    name = f"group '{plain(group)}'"
    return f"MPC calls {name} {word}" if word else f"MPC flags {name}"


def _own_word(mpc: Comparison) -> str:
    """Return the word of the verdict: what rivals call favoured is overvalued to MPC."""
    return "overvalued" if mpc.says == "favoured" else mpc.says


def _verb(one: Comparison, several: bool) -> str:
    if not one.flagged:
        return f"{'do' if several else 'does'} not flag it"
    if one.says:
        return f"{'call' if several else 'calls'} it {one.says}"
    return f"{'flag' if several else 'flags'} it without a direction"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
