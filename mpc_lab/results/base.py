"""How questions get at the contents of an audit: options, labels, thresholds, rows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mpc_lab.errors import MpcError, near_match
from mpc_lab.pairing.terms import terms_of
from mpc_lab.results.schema import AuditBase
from mpc_lab.vocabulary import ADJACENT, ITEM, MODES, PLAIN, Floats

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


def has_sums(audit: AuditBase) -> bool:
    """Return whether an audit holds the sums and counts from which its power is computed."""
    return "n_units" in audit.attrs and not (audit._own is None and audit._moments is None)


def settings(audit: AuditBase) -> dict[str, Any]:
    """Return the options of an audit and its other attributes in one flat dict."""
    return _flat({**audit.headline.attrs, **audit.attrs})


def has_tied_pairs(audit: AuditBase, rule: str) -> bool:
    """Return whether any pairs of an audit are tied under a rule.

    Audits of version 0.1 did not store this; their grids begin at 0 where some pairs are tied.
    """
    known = audit.attrs.get("rules_with_ties")
    if known is None:
        return bool(len(audit.grid) and audit.grid[0] == 0)
    try:
        return rule in json.loads(str(known))
    except (TypeError, ValueError):
        return False


def correction_of(audit: AuditBase) -> str:
    """Return how heavy clusters were corrected for: in audits of version 0.1, not at all.

    The attribute ``correction`` has it in words.
    """
    options = _flat({"options": audit.attrs.get("options", "{}")})
    return str(options.get("correction", PLAIN))


def _flat(plain: dict[Any, Any]) -> dict[str, Any]:
    try:
        options = json.loads(str(plain.pop("options", "{}")))
    except ValueError:
        options = {}
    return {**(options if isinstance(options, dict) else {}), **plain}


def as_audited(ranking: Ranking, attrs: Mapping[Any, Any]) -> Ranking:
    """Return a ranking with its outcomes and clusters as an audit took them."""
    from mpc_lab.ranking import cap_outcomes, sum_by

    options = _flat(dict(attrs))
    capped = cap_outcomes(ranking, options.get("outcome_cap"))
    return sum_by(capped, str(options.get("owner", ITEM)))


def is_rank_only(audit: AuditBase) -> bool:
    """Say whether the log of an audit has no scores, only places."""
    try:
        columns = json.loads(str(audit.attrs.get("columns", "{}")))
    except ValueError:
        return False
    return isinstance(columns, dict) and "score" in columns and columns["score"] is None


def refuse_rank_only(audit: AuditBase, method: str) -> None:
    """Refuse a question that needs scores."""
    if is_rank_only(audit):
        raise MpcError(
            f"audit.{method}() must have a log with scores; got positions only, which do not "
            "say how far apart two items are. Give score=."
        )


def refuse_terms(audit: AuditBase, method: str, reasons: Mapping[str, str]) -> None:
    """Refuse a question that has no answer on the terms of an audit.

    Parameters
    ----------
    audit : Audit
    method : str
    reasons : mapping of str to str
        Why it has no answer, by the option that must have its default.
    """
    options = settings(audit)
    default = terms_of({})
    terms = terms_of(options)
    for name, reason in reasons.items():
        if getattr(terms, name) != getattr(default, name):
            raise MpcError(
                f"audit.{method}() must be called on an audit without {name}=; got "
                f"{name}={getattr(terms, name)!r}. {reason} Run the audit without {name}=."
            )


def inference_options(audit: AuditBase) -> tuple[str, float, int]:
    """Return the cluster, level and seed of an audit."""
    options = settings(audit)
    return str(options["cluster"]), float(options["level"]), int(options.get("seed", 0))


def need_rows(audit: AuditBase, method: str) -> Ranking:
    """Return the ranking of an audit, read again where it was walked, or say how to give it."""
    if audit.ranking is None and audit._reread is not None:
        ranking = as_audited(audit._reread(), audit.attrs)
        check_same_rows(ranking, audit.attrs, "this audit")
        audit.ranking, audit._scores = ranking, partial(known_scores, ranking)
    if audit.ranking is None:
        raise MpcError(
            f"audit.{method}() must have the rows of the log; got an audit that holds aggregates "
            'only. Give the rows with mpc.load("a.nc", ranking=ranking).'
        )
    return audit.ranking


def check_same_rows(ranking: Ranking, attrs: Mapping[Any, Any], what: str) -> None:
    """Refuse rows whose counts differ from the audit's; walked logs have no fingerprint."""
    for name in ("n_rows", "n_queries", "n_units", "n_items"):
        if getattr(ranking, name) != attrs.get(name):
            raise MpcError(
                f"ranking must be the one that {what} was made from, with {name} of "
                f"{attrs.get(name)}; got {getattr(ranking, name):,}. Give the same rows."
            )


def rule_scores(audit: AuditBase, group: str, rule: str, mode: str) -> Floats | None:
    """Return the scores of a rule, None for those of the log, once the cell is known to exist."""
    check_label("group", group, audit.groups)
    check_label("scoring rule", rule, audit.headline["scoring_rule"].values.tolist())
    check_label("pairing mode", mode, tuple(MODES))
    if is_rank_only(audit) and mode != ADJACENT.name:
        raise MpcError(
            f"pairing_mode must be {ADJACENT.name!r} for a log without scores; got {mode!r}. "
            f"Places do not say how far apart two items are. Pass pairing_mode={ADJACENT.name!r}."
        )
    if audit._scores is not None:
        return audit._scores(rule, group)
    if rule == "baseline":
        return None
    raise MpcError(
        f"The scores of rule {rule!r} must be known to see its pairs; got a saved audit, "
        "which does not keep them. Run mpc.audit again on the ranking."
    )


def need_one_side(method: str, mode: str) -> None:
    """Refuse a mode that is the mean of two sides, where a plain mean over pairs is needed."""
    if mode in MODES and MODES[mode].two_sided:
        raise MpcError(
            f"{method} must have a mode whose estimate is a mean over its pairs; got {mode!r}, "
            'which is the mean of two sides. Take pairing_mode="matched" or "mirrored".'
        )


def known_scores(ranking: Ranking, label: str, group: str) -> Floats | None:
    """Return the scores of a rule that is known by its label alone; None for those of the log."""
    from mpc_lab.scoring import SCORING_RULES, Boosted, Column, Demoted, as_rule

    if label == "baseline":
        return None
    if label in SCORING_RULES:
        return as_rule(label).scores(ranking, group)
    moved = re.fullmatch(r"(boosted|demoted)\((.+)\)", label)
    if moved:
        kind = Boosted if moved[1] == "boosted" else Demoted
        return kind(float(moved[2])).scores(ranking, group)
    try:
        return Column(label).scores(ranking, group)
    except MpcError as error:
        raise MpcError(
            f"The scores of rule {label!r} must be known; got a saved audit, which does not keep "
            "them, and a ranking without such a column. Run mpc.audit again with that rule."
        ) from error


def check_label(what: str, label: str, known: Sequence[str]) -> None:
    """Refuse a label that the audit does not have."""
    if not isinstance(label, str):
        hint = near_match("", known)
        raise MpcError(f"A {what} must be a text; got {type(label).__name__}.{hint}")
    if label not in known:
        raise MpcError(f"This audit has no {what} {label!r}.{near_match(label, known)}")


def names_in(given: Any) -> tuple[Any, ...]:
    """Return one name, or several, as a tuple; anything but a list counts as a name."""
    if isinstance(given, str):
        return (given,)
    try:
        return tuple(given)
    except TypeError:
        return (given,)


def chosen_groups(audit: AuditBase, method: str, groups: Any) -> tuple[str, ...]:
    """Return the groups that were asked for by name or by a list of names, each once."""
    names = names_in(groups)
    if not names:
        raise MpcError(
            f"{method} must name at least one group; got none. Leave groups out for all of them."
        )
    for name in names:
        check_label("group", name, audit.groups)
    if len(set(names)) < len(names):
        raise MpcError(f"{method} must name each group once; got {names!r}.")
    return names


def headline_epsilon(audit: AuditBase, group: str, rule: str) -> float:
    """Return the headline's own threshold of a cell; NaN where it has no pair."""
    # All modes of one group and rule share the threshold of `matched`, so any mode can give it.
    return float(audit.headline["epsilon"].sel(group=group, scoring_rule=rule).values[0])


def cell_epsilon(audit: AuditBase, group: str, rule: str) -> float:
    """Return the headline's own threshold of a cell, which must have one."""
    value = headline_epsilon(audit, group, rule)
    if math.isnan(value):
        raise MpcError(
            f"Group {group!r} must have pairs under rule {rule!r} to choose a threshold "
            "from; got none. Give epsilon."
        )
    return value


def read_complements(audit: AuditBase) -> tuple[list[tuple[int, int]], list[int]]:
    """Return which groups are complements, and which rules that binds, both by number."""
    groups = audit.headline["group"].values.tolist()
    rules = audit.headline["scoring_rule"].values.tolist()
    try:
        known = json.loads(str(audit.attrs.get("complements", '{"groups": [], "rules": []}')))
        pairs = [(groups.index(one), groups.index(other)) for one, other in known["groups"]]
        return pairs, [rules.index(rule) for rule in known["rules"]]
    except (ValueError, KeyError, TypeError) as error:
        raise MpcError(
            "The complements of a saved audit must be pairs of its groups; got something else. "
            "Save the audit again."
        ) from error
