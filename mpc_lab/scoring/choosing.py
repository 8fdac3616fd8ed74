"""From what a user writes to rules: names, rules, or functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from mpc_lab.errors import MpcError, near_match
from mpc_lab.scoring.calibrated import Calibrated
from mpc_lab.scoring.rules import Baseline, Boosted, Column, Custom, Demoted, Rule

_BY_NAME: dict[str, Rule] = {
    rule.label: rule for rule in (Baseline(), Boosted(), Demoted(), Calibrated())
}
SCORING_RULES = tuple(_BY_NAME)
_KINDS = (Baseline, Boosted, Demoted, Calibrated, Column, Custom)
_WAYS = (
    '"baseline", "boosted", "demoted", "calibrated", mpc.Boosted(alpha), mpc.Demoted(alpha), '
    'mpc.Column("name") or a function (ranking, group) -> scores'
)


def as_rule(value: Any) -> Rule:
    """Return the rule that a name, a rule or a function stands for.

    Examples
    --------
    >>> as_rule("boosted")
    Boosted(alpha=None)
    """
    if isinstance(value, str):
        if value not in _BY_NAME:
            raise MpcError(
                f"There is no scoring rule {value!r}; for a column of the log write "
                f"mpc.Column({value!r}).{near_match(value, SCORING_RULES)}"
            )
        return _BY_NAME[value]
    rule = Custom(value) if callable(value) and not isinstance(value, (*_KINDS, type)) else value
    if not isinstance(rule, _KINDS):
        raise MpcError(f"A scoring rule is {_WAYS}, but {value!r} came.")
    return _named(cast(Rule, rule))


def as_rules(values: Any) -> tuple[Rule, ...]:
    """Return the rules of a list, or of one rule alone; their labels must differ."""
    several = isinstance(values, Iterable) and not isinstance(values, str)
    rules = tuple(as_rule(value) for value in (values if several else [values]))
    if not rules:
        raise MpcError(f"scoring_rules needs at least one rule: {_WAYS}.")
    labels = [rule.label for rule in rules]
    for label in labels:
        if labels.count(label) > 1:
            raise MpcError(
                f"Two scoring rules have the label {label!r}; name the functions or columns "
                "differently, or give each boost another alpha."
            )
    return rules


def _named(rule: Rule) -> Rule:
    if not rule.label.strip() or "\0" in rule.label:
        raise MpcError(
            f"A scoring rule is labelled by its name, but {rule!r} has none that can be printed: "
            "give it one, for example by a def."
        )
    if isinstance(rule, Column | Custom) and rule.label in _BY_NAME:
        raise MpcError(
            f"{rule.label!r} is the label of a built-in scoring rule, but a column or function "
            "has it too: rename that one."
        )
    return rule
