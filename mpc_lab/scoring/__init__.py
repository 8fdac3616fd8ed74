"""Scoring rules: what the scores would be under another rule, when auditing a group.

A rule takes a `Ranking` and a group and gives one score a row, in the order of the rows.
May import from `errors` and `ranking`; of the outside world, numpy, and scipy when first used.
"""

from __future__ import annotations

from mpc_lab.scoring.rules import (
    SCORING_RULES,
    Baseline,
    Boosted,
    Calibrated,
    Column,
    Custom,
    Demoted,
    Rule,
    as_rule,
    as_rules,
)

__all__ = [
    "SCORING_RULES",
    "Baseline",
    "Boosted",
    "Calibrated",
    "Column",
    "Custom",
    "Demoted",
    "Rule",
    "as_rule",
    "as_rules",
]
