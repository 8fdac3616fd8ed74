"""Where measures disagree about a group: which flag it, and why, from what they condition on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpc_lab.comparators.measure import Conditions, Measure
from mpc_lab.terminal import plain

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
_NAMES = {
    "calibration_gap": "the calibration gap",
    "pairwise_accuracy_overall": "pairwise accuracy (overall)",
    "pairwise_accuracy_inter": "pairwise accuracy (inter-group)",
    "pairwise_accuracy_intra": "pairwise accuracy (intra-group)",
    "inequality_group_above": "the inequality for items just above",
    "inequality_group_below": "the inequality for items just below",
    "inequalities_joint": "the joint test of inequalities",
    "exposure_ratio": "the exposure ratio",
    "treatment_ratio": "the treatment ratio",
    "impact_ratio": "the impact ratio",
    "ndkl": "NDKL",
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
        The reading, in one sentence.
    """

    group: str
    undervalued: tuple[str, ...]
    favoured: tuple[str, ...]
    flagged: tuple[str, ...]
    silent: tuple[str, ...]
    unknown: tuple[str, ...]
    agree: bool
    sentence: str


def explain(group: str, mpc: Measure, rivals: Sequence[Measure]) -> Explanation:
    """Say which measures flag a group, and why those that differ from MPC do.

    The reason is taken from what the measures condition on: close scores or all, the same query
    or all, outcomes or exposure only.

    Parameters
    ----------
    group : str
    mpc : Measure
        The matched pair calibration of the group.
    rivals : list of Measure
        Of the same group.
    """
    every = [mpc, *rivals]
    known = [one for one in every if can_tell(one)]
    differing = [one for one in rivals if can_tell(one) and _reading(one) != _reading(mpc)]

    def names(chosen: Sequence[Measure]) -> tuple[str, ...]:
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


def can_tell(one: Measure) -> bool:
    """Whether a measure could have flagged the group: it has a null and an interval or a test."""
    has_null = one.null == one.null or one.p_value == one.p_value
    return bool(has_null and (one.ci_low == one.ci_low or one.p_value == one.p_value))


def _reading(one: Measure) -> str:
    return (one.says or "flagged") if one.flagged else "silent"


def _sentence(
    group: str, mpc: Measure, known: Sequence[Measure], differing: Sequence[Measure]
) -> str:
    if not can_tell(mpc):
        flags = [_name(one.name) for one in known if one.flagged]
        said = f"it is flagged by {_listed(flags)}" if flags else "no other measure flags it"
        return f"MPC cannot be estimated for group '{plain(group)}'; {said}."
    if not differing:
        said = {"silent": "does not flag", "flagged": "flags"}.get(_reading(mpc), "")
        how = f"{said} it" if said else f"calls it {_own_word(mpc)}"
        return f"MPC {how}, and no measure contradicts it for group '{plain(group)}'."
    parts = [f"{_says(mpc, group)}, comparing outcomes at close scores in the same query"]
    bundles: dict[tuple[str, str], list[Measure]] = {}
    for one in differing:
        bundles.setdefault((_difference(one.conditions), _reading(one)), []).append(one)
    for (difference, _), ones in bundles.items():
        several = len(ones) > 1
        clause = _CLAUSES[difference][several]
        said = _verb(ones[0], several)
        parts.append(f"{_listed([_name(one.name) for one in ones])} {clause} and {said}")
    return "; ".join(parts) + "."


def _difference(conditions: Conditions) -> str:
    if conditions.looks_at in ("exposure", "both"):
        return conditions.looks_at
    if conditions.queries == "all":
        return "all queries"
    return {"neighbours": "neighbours", "all": "all scores"}.get(conditions.scores, "none")


def _says(mpc: Measure, group: str) -> str:
    if not mpc.flagged:
        return f"MPC does not flag group '{plain(group)}'"
    word = _own_word(mpc)
    name = f"group '{plain(group)}'"
    return f"MPC calls {name} {word}" if word else f"MPC flags {name}"


def _own_word(mpc: Measure) -> str:
    """Return the word of the verdict: what rivals call favoured is overvalued to MPC."""
    return "overvalued" if mpc.says == "favoured" else mpc.says


def _verb(one: Measure, several: bool) -> str:
    if not one.flagged:
        return f"{'do' if several else 'does'} not flag it"
    if one.says:
        return f"{'call' if several else 'calls'} it {one.says}"
    return f"{'flag' if several else 'flags'} it without a direction"


def _name(name: str) -> str:
    return _NAMES.get(name, name.replace("_", " "))


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
