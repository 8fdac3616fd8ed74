"""A decision from an audit: pass, fail, or not enough to tell."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_lab.errors import AuditFailed, MpcError, check_level
from mpc_lab.inference.verdicts import check_tolerance, gate, outside
from mpc_lab.results.assemble import bracketed, headline_moments, infer, judge, mode_rows
from mpc_lab.results.base import AuditBase, settings
from mpc_lab.results.questions.sequence import intervals
from mpc_lab.text import listing, quoted
from mpc_lab.vocabulary import NOT_ESTIMABLE, WITHIN

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
        What it was decided by.
    planned : int or None
        Where it was decided by a confidence sequence, the queries at which that is tightest.
    """

    answer: int
    failed: tuple[str, ...]
    undecided: tuple[str, ...]
    tolerance: float | None
    planned: int | None = None


def check(
    audit: AuditBase,
    tolerance: float | None,
    level: float | None,
    inconclusive: str,
    planned: int | None = None,
) -> None:
    """Raise where a group lies outside the tolerance; see :meth:`mpc_lab.Audit.check`."""
    if not isinstance(inconclusive, str) or inconclusive not in _ANSWERS:
        raise MpcError(f"inconclusive must be 'warn', 'raise' or 'pass'; got {inconclusive!r}.")
    found = decide(audit, tolerance, level, planned)
    if found.answer == 1:
        raise AuditFailed(explain(audit, found), found.failed)
    if found.answer == 2 and inconclusive != "pass":
        message = explain(audit, found)
        if inconclusive == "raise":
            raise AuditFailed(message, found.undecided)
        warnings.warn(message, InconclusiveAudit, stacklevel=3)


def explain(audit: AuditBase, found: Decision) -> str:
    """Return a decision in one sentence, which says where it rests on a confidence sequence."""
    said = f"audit {_said(audit, found)}"
    if found.answer == 2:
        what = "why" if found.tolerance is None else "what is missing"
        said += f"; audit.summary() says {what}"
    return f"{_basis(found)} {said}."


def state(audit: AuditBase, planned: int | None) -> str:
    """Return what a document says of a gate beside its verdicts.

    Parameters
    ----------
    audit : Audit
    planned : int, optional
        As of :func:`decide`; for None the text is empty, for then the verdicts say it all.
    """
    if planned is None:
        return ""
    found = decide(audit, planned=planned)
    does = ("passes", "fails", "does not decide")[found.answer]
    return f"The gate {does}. {_basis(found)} audit {_said(audit, found)}."


def _basis(found: Decision) -> str:
    """Begin a sentence about a decision: the verdicts may differ from that of a sequence."""
    if found.planned is None:
        return "The"
    return (
        "By intervals that are valid at every look (a confidence sequence, tightest at "
        f"{found.planned:,} queries), unlike those of the verdicts, the"
    )


def _said(audit: AuditBase, found: Decision) -> str:
    if found.answer == 1:
        named = listing([quoted(group) for group in found.failed])
        what = "a gap" if found.tolerance is None else "a gap outside the tolerance"
        return f"found {what}: {named}{_where(audit)}"
    if found.answer == 2 and found.tolerance is None:
        return "could estimate no group, so it says nothing"
    if found.answer == 2:
        named = listing([quoted(group) for group in found.undecided])
        return f"cannot tell whether the gap is within the tolerance: {named}{_where(audit)}"
    if found.tolerance is None:
        return "found no gap, which is not evidence that there is none"
    return f"found every gap within the tolerance of {found.tolerance:g}{_where(audit)}"


def decide(
    audit: AuditBase,
    tolerance: float | None = None,
    level: float | None = None,
    planned: int | None = None,
) -> Decision:
    """Return the gate's answer, the groups that fail it, and those that it cannot decide.

    Parameters
    ----------
    audit : Audit
    tolerance, level : float, optional
        By default those of the audit.
    planned : int, optional
        Decide by the confidence sequence of :meth:`mpc_lab.Audit.confidence_sequence`, tightest
        at so many queries, so that the gate may be asked again and again as a log grows.
    """
    options = settings(audit)
    tolerance = own_tolerance(audit, tolerance)
    check_tolerance(tolerance)
    tolerance = None if tolerance is None else float(tolerance)
    level = float(options["level"] if level is None else check_level(level))
    if planned is None:
        cells = _judged(audit, level, tolerance)
    else:
        cells = _judged_anytime(audit, level, tolerance, planned)
    rows = mode_rows(audit)
    verdict, low, high, cut = (
        cells[name][:, rows]
        for name in ("verdict", "ci_low_adjusted", "ci_high_adjusted", "ci_cut")
    )
    answer = gate(verdict, low, high, cut=cut, tolerance=tolerance)
    if answer == 0 and (verdict == NOT_ESTIMABLE).all():
        # Where nothing could be looked at, "nothing found" would let a broken log pass.
        answer = 2
    fails = np.asarray(outside(verdict, low, high, cut=cut, tolerance=tolerance).any(axis=(0, 1)))
    open_ = np.asarray(~fails & (verdict != WITHIN).any(axis=(0, 1)))
    looks = None if planned is None else int(planned)
    return Decision(answer, _named(audit, fails), _named(audit, open_), tolerance, looks)


def _judged(audit: AuditBase, level: float, tolerance: float | None) -> dict[str, Any]:
    options = settings(audit)
    correlations = None
    if options["adjust"] == "romano_wolf" and audit.moments is not None:
        correlations = list(audit.moments["correlation"].values)
    own = headline_moments(audit)
    return judge(
        own[0].modes,
        [infer(moments, cluster=str(options["cluster"]), level=level) for moments in own],
        method=str(options["adjust"]),
        level=level,
        tolerance=tolerance,
        seed=int(options.get("seed", 0)),
        correlations=correlations,
    )


def _judged_anytime(
    audit: AuditBase, level: float, tolerance: float | None, planned: int
) -> dict[str, Any]:
    """Judge by intervals that hold at all looks together; nothing is ever cut at 0."""
    low, high = intervals(audit, planned, level)
    cut = np.zeros(low.shape, dtype=np.bool_)
    cells = {"ci_low_adjusted": low, "ci_high_adjusted": high, "ci_cut": cut}
    modes = headline_moments(audit)[0].modes
    return cells | bracketed(modes, cells, np.full(low.shape, ""), tolerance)


def own_tolerance(audit: AuditBase, tolerance: float | None) -> float | None:
    """Return the tolerance that was given, or the audit's own."""
    return settings(audit).get("tolerance") if tolerance is None else tolerance


def _where(audit: AuditBase) -> str:
    """Say that other scoring rules count too, where there are any."""
    rules = audit.headline["scoring_rule"].values.tolist()
    return "" if rules == ["baseline"] else f", over the rules {listing(list(map(quoted, rules)))}"


def _named(audit: AuditBase, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(group for group, flag in zip(audit.groups, chosen, strict=True) if flag)
