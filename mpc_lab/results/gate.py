"""An audit for a machine: a decision (pass, fail, not enough to tell), and numbers by name."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_lab.errors import AuditFailed, MpcError, check_level, check_number, check_whole
from mpc_lab.inference.verdicts import (
    check_tolerance,
    gate,
    outside,
    withhold_directions,
    without_contradictions,
)
from mpc_lab.results.assemble import (
    bracketed,
    headline_moments,
    infer,
    judge,
    mode_rows,
)
from mpc_lab.results.base import check_label, correction_of, read_complements, settings
from mpc_lab.results.questions.sequence import intervals
from mpc_lab.results.schema import AuditBase
from mpc_lab.results.wording import declared, outcome_word, range_in_words
from mpc_lab.text import listing, quote
from mpc_lab.vocabulary import COMPLEMENT, DIRECTIONS, NOT_ESTIMABLE, WITHIN

_ANSWERS = ("warn", "raise", "pass")


class InconclusiveAudit(UserWarning):
    """An audit that neither passes nor fails its gate."""


@dataclass(frozen=True)
class Decision:
    """What a gate says.

    Attributes
    ----------
    answer : int
        0 to pass, 1 to fail, 2 where the cells do not decide.
    failed, undecided : tuple of str
        The groups that fail, and those that are neither inside nor outside.
    tolerance : float or None
        The tolerance that decided.
    scoring_rule, pairing_mode : str
        The cells that decide; others are shown and do not.
    planned : int or None
        If a confidence sequence decided, the number of queries at which that is tightest.
    set_aside : tuple of str
        The groups with too few pairs, or clusters, to decide.
    ranges : dict
        The interval of each undecided group.
    contradicting : tuple of str
        The groups without a direction because their complement would get the same one.
    """

    answer: int
    failed: tuple[str, ...]
    undecided: tuple[str, ...]
    tolerance: float | None
    scoring_rule: str
    pairing_mode: str
    planned: int | None = None
    set_aside: tuple[str, ...] = ()
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    contradicting: tuple[str, ...] = ()


@dataclass(frozen=True)
class Least:
    """What a group needs to decide a gate: pairs of the gate's mode, and effective clusters."""

    pairs: int = 0
    effective: float = 0.0

    def __post_init__(self) -> None:
        check_whole("min_pairs", self.pairs, at_least=0)
        check_number("min_effective", self.effective, at_least=0)


def check(
    audit: AuditBase,
    tolerance: float | None,
    level: float | None,
    inconclusive: str,
    planned: int | None = None,
    scoring_rule: str | None = None,
    least: Least | None = None,
) -> None:
    """Raise where a group is outside the tolerance; see :meth:`mpc_lab.Audit.check`."""
    if not isinstance(inconclusive, str) or inconclusive not in _ANSWERS:
        raise MpcError(f"inconclusive must be 'warn', 'raise' or 'pass'; got {inconclusive!r}.")
    found = decide(audit, tolerance, level, planned, scoring_rule, least)
    message = explain(audit, found)
    if found.answer == 1:
        raise AuditFailed(message, found.failed)
    if found.answer == 2 and inconclusive == "raise":
        raise AuditFailed(message, found.undecided)
    if found.answer == 2 and inconclusive == "warn":
        warnings.warn(message, InconclusiveAudit, stacklevel=3)
    elif _other_rules(audit):
        warnings.warn(message, UserWarning, stacklevel=3)


def explain(audit: AuditBase, found: Decision) -> str:
    """Return a decision in one sentence, which says so if a confidence sequence decided."""
    said = f"audit {_said(found)}"
    if found.answer == 2:
        said += _why_undecided(audit, found)
    return f"{_basis(found)} {said}.{_not_asked(found)}{_other_rules(audit)}"


def _why_undecided(audit: AuditBase, found: Decision) -> str:
    """Return the interval of each group that a gate cannot decide, in words."""
    if found.tolerance is None or not found.ranges:
        return ""
    word = outcome_word(settings(audit))
    known = [
        f"{quote(group)}, `{word}` between {range_in_words(*ends)}"
        if np.isfinite(ends).all()
        else f"{quote(group)}, not estimable"
        for group, ends in found.ranges.items()
    ]
    return f". Tolerance {found.tolerance:g}: {'; '.join(known[:4])}" + (
        f"; and {len(known) - 4:,} more" if len(known) > 4 else ""
    )


def _not_asked(found: Decision) -> str:
    if not found.set_aside:
        return ""
    named = listing([quote(group) for group in found.set_aside])
    return f" Too few pairs or effective clusters to decide, so not counted: {named}."


def state(
    audit: AuditBase,
    planned: int | None,
    scoring_rule: str | None = None,
    least: Least | None = None,
) -> str:
    """Return what a document says about a gate besides its verdicts.

    Parameters
    ----------
    audit : Audit
    planned : int, optional
        As in :func:`decide`; for None the text is empty, because the verdicts say it all.
    scoring_rule : str, optional
        As in :func:`decide`.
    """
    if planned is None and (least is None or least == Least()):
        return ""
    found = decide(audit, planned=planned, scoring_rule=scoring_rule, least=least)
    does = ("passes", "fails", "does not decide")[found.answer]
    said = f"{_basis(found)} audit {_said(found)}.{_not_asked(found)}{_other_rules(audit)}"
    return f"The gate {does}. {said}"


def _other_rules(audit: AuditBase) -> str:
    """Say where a gate decides by other rules than those behind the verdicts of a file."""
    rules = settings(audit).get("rules")
    if rules is None:
        return ""
    return (
        f" The gate goes by the rules of today, the verdicts of this file by those of {rules}, so "
        "the two may differ."
    )


def _basis(found: Decision) -> str:
    """Begin a sentence about a decision: verdicts may differ from the decision by a sequence."""
    if found.planned is None:
        return "The"
    return (
        "By intervals that are valid at every look (a confidence sequence, tightest at "
        f"{found.planned:,} queries), unlike those of the verdicts, the"
    )


def _said(found: Decision) -> str:
    where = "" if found.scoring_rule == "baseline" else f", under rule {quote(found.scoring_rule)}"
    if found.answer == 1:
        named = listing([quote(group) for group in found.failed])
        what = "a gap" if found.tolerance is None else "a gap outside the tolerance"
        return f"found {what}: {named}{where}"
    if found.answer == 2 and not found.undecided and found.set_aside:
        return "has no group with enough pairs or effective clusters, so it says nothing"
    if found.answer == 2 and found.tolerance is None and found.contradicting:
        named = listing([quote(group) for group in found.contradicting])
        return (
            f"found gaps that contradict each other, of a group and of its complement: {named}"
            f"{where}. Audit them at one threshold"
        )
    if found.answer == 2 and found.tolerance is None:
        few = " with enough pairs" if found.set_aside else ""
        return f"could estimate no group{few}, so it says nothing"
    if found.answer == 2:
        named = listing([quote(group) for group in found.undecided])
        return f"cannot tell whether the gap is within the tolerance: {named}{where}"
    if found.tolerance is None:
        return f"found no gap{where}, which is not evidence that there is none"
    return f"found every gap within the tolerance of {found.tolerance:g}{where}"


def decide(
    audit: AuditBase,
    tolerance: float | None = None,
    level: float | None = None,
    planned: int | None = None,
    scoring_rule: str | None = None,
    least: Least | None = None,
) -> Decision:
    """Return the gate's answer, the groups that fail it, and those that it cannot decide.

    It goes by one scoring rule and one pairing mode, the one declared before the run or else the
    first that was asked for: what-if rules and further modes are shown and do not decide.

    Parameters
    ----------
    audit : Audit
    tolerance, level : float, optional
        By default those of the audit.
    planned : int, optional
        Decide by the confidence sequence of :meth:`mpc_lab.Audit.confidence_sequence`, tightest
        at this many queries, so that the gate may be asked again and again as a log grows.
    scoring_rule : str, optional
        By default the one declared before the run, else ``baseline``, or the first rule of an
        audit without it.
    least : Least, optional
        Groups with less are listed and do not decide.
    """
    options = settings(audit)
    tolerance = own_tolerance(audit, tolerance)
    check_tolerance(tolerance)
    tolerance = None if tolerance is None else float(tolerance)
    level = float(options["level"] if level is None else check_level(level))
    if planned is None:
        cells = _judge(audit, level, tolerance)
    else:
        cells = _judge_anytime(audit, level, tolerance, planned)
    rule, mode = _deciding(audit, scoring_rule)
    rules, modes = (audit.headline[dim].values.tolist() for dim in ("scoring_rule", "pairing_mode"))
    at = rules.index(rule), mode_rows(audit)[modes.index(mode)]
    verdict, low, high = (cells[name][at] for name in ("verdict", "bracket_low", "bracket_high"))
    small = _below(audit, rule, mode, least or Least())
    answer = 2
    if not small.all():
        answer = gate(verdict[~small], low[~small], high[~small], tolerance=tolerance)
    if answer == 0 and (verdict[~small] == NOT_ESTIMABLE).all():
        # Where nothing could be looked at, "nothing found" would let a broken log pass.
        answer = 2
    contradicts = (cells["verdict_reason"][at] == COMPLEMENT) & ~small
    if answer == 0 and contradicts.any():
        # Both were flagged, and one of the two flags may be right.
        answer = 2
    fails = outside(verdict, low, high, tolerance=tolerance)
    failed = _names_of(audit, fails & ~small)
    undecided = _names_of(audit, ~fails & (verdict != WITHIN) & ~small)
    looks = None if planned is None else int(planned)
    ends = dict(zip(audit.groups, zip(low.tolist(), high.tolist(), strict=True), strict=True))
    ranges, aside = {group: ends[group] for group in undecided}, _names_of(audit, small)
    return Decision(
        answer,
        failed,
        undecided,
        tolerance,
        rule,
        mode,
        looks,
        aside,
        ranges,
        _names_of(audit, contradicts),
    )


def _below(audit: AuditBase, rule: str, mode: str, least: Least) -> NDArray[np.bool_]:
    """Return which groups have fewer pairs, or effective clusters, than it takes to decide."""
    at = audit.headline.sel(scoring_rule=rule, pairing_mode=mode)
    effective = np.nan_to_num(at["n_effective"].values, nan=0.0)
    return np.asarray((at["n_pairs"].values < least.pairs) | (effective < least.effective))


def _deciding(audit: AuditBase, scoring_rule: str | None) -> tuple[str, str]:
    """Return the rule and the mode that a gate goes by."""
    rules, modes = (audit.headline[dim].values.tolist() for dim in ("scoring_rule", "pairing_mode"))
    primary = declared(settings(audit))
    rule, mode = primary.cell if primary else ("baseline", str(modes[0]))
    if scoring_rule is not None:
        check_label("scoring rule", scoring_rule, rules)
        return scoring_rule, mode
    return rule if rule in rules else str(rules[0]), mode


def _judge(audit: AuditBase, level: float, tolerance: float | None) -> dict[str, Any]:
    options = settings(audit)
    correlations = None
    if options["adjust"] == "romano_wolf" and audit.moments is not None:
        correlations = list(audit.moments["correlation"].values)
    own = headline_moments(audit)
    cells = judge(
        own[0].modes,
        [
            infer(
                moments,
                cluster=str(options["cluster"]),
                level=level,
                correction=correction_of(audit),
            )
            for moments in own
        ],
        method=str(options["adjust"]),
        level=level,
        tolerance=tolerance,
        seed=int(options.get("seed", 0)),
        correlations=correlations,
    )
    return cells | _guard(audit, cells)


def _guard(audit: AuditBase, cells: dict[str, Any]) -> dict[str, Any]:
    """Remove the direction from cells whose pairs, or whose complement, do not allow it."""
    shown = {}
    rows = mode_rows(audit)
    for name in ("place_overlap", "shown_above"):
        if name not in audit.headline:
            break
        shown[name] = np.full(cells["verdict"].shape, np.nan)
        known = audit.headline[name].transpose("scoring_rule", "pairing_mode", "group").values
        shown[name][:, rows] = known
    else:
        cells = cells | withhold_directions(cells | shown)
    verdict, reason = without_contradictions(
        cells["verdict"], cells["verdict_reason"], *read_complements(audit)
    )
    return {"verdict": verdict, "verdict_reason": reason}


def _judge_anytime(
    audit: AuditBase, level: float, tolerance: float | None, planned: int
) -> dict[str, Any]:
    """Judge by intervals that hold at all looks together; nothing is ever cut at 0."""
    low, high = intervals(audit, planned, level)
    cut = np.zeros(low.shape, dtype=np.bool_)
    cells = {"ci_low_adjusted": low, "ci_high_adjusted": high, "ci_cut": cut}
    modes = headline_moments(audit)[0].modes
    cells |= bracketed(modes, cells, np.full(low.shape, ""), tolerance)
    return cells | _guard(audit, cells)


def own_tolerance(audit: AuditBase, tolerance: float | None) -> float | None:
    """Return the tolerance that was given, or the audit's own."""
    return settings(audit).get("tolerance") if tolerance is None else tolerance


def _names_of(audit: AuditBase, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(group for group, flag in zip(audit.groups, chosen, strict=True) if flag)


# ---- a flat dict of numbers, for an experiment tracker

_NUMBERS = (
    "estimate",
    "std_error",
    "ci_low",
    "ci_high",
    "bracket_low",
    "bracket_high",
    "bracket_p_adjusted",
    "n_pairs",
    "n_effective",
    "epsilon",
    "mde",
)
# The characters that MLflow, Weights & Biases and most others accept in a name.
_UNSAFE = re.compile(r"[^0-9A-Za-z_. -]+")


def metrics(audit: AuditBase) -> dict[str, float]:
    """Return the numbers of a headline by name; see :meth:`mpc_lab.Audit.to_metrics`."""
    rules, modes = (audit.headline[dim].values.tolist() for dim in ("scoring_rule", "pairing_mode"))
    groups = dict(zip(audit.groups, _keys(audit.groups), strict=True))
    by_rule = dict(zip(rules, _keys(rules), strict=True))
    found: dict[str, float] = {"gate": float(decide(audit).answer)}
    for rule in rules:
        for mode in modes:
            at = audit.headline.sel(scoring_rule=rule, pairing_mode=mode)
            prefix = f"{by_rule[rule]}.{mode}"
            flagged = [verdict in DIRECTIONS for verdict in at["verdict"].values.tolist()]
            found[f"{prefix}.n_flagged"] = float(sum(flagged))
            for k, group in enumerate(audit.groups):
                one = f"{prefix}.{groups[group]}"
                for name in (name for name in _NUMBERS if name in at):
                    found[f"{one}.{name}"] = float(at[name].values[k])
                found[f"{one}.flagged"] = float(flagged[k])
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _keys(names: list[str] | tuple[str, ...]) -> list[str]:
    """Return names that a tracker accepts, all different.

    Examples
    --------
    >>> _keys(["a/b", "a|b", "c"])
    ['a_b', 'a_b_2', 'c']
    """
    found: list[str] = []
    for name in names:
        # A dot separates the parts of a key.
        plain = _UNSAFE.sub("_", name).replace(".", "_").strip() or "_"
        key, k = plain, 1
        while key.lower() in (other.lower() for other in found):
            k += 1
            key = f"{plain}_{k}"
        found.append(key)
    return found
