"""The sections of a report, in its order: each a function from a context to HTML.

A new section is a function in a file of this folder, and a line in ``SECTIONS``.
"""

from mpc_lab.report.context import Section
from mpc_lab.report.sections.checks import balance, curves, ladder, power
from mpc_lab.report.sections.difference import has_rules, rules
from mpc_lab.report.sections.finding import finding, forest, pairs, verdicts
from mpc_lab.report.sections.method import data_and_method, everything
from mpc_lab.report.sections.rivals import boosts, rivals
from mpc_lab.report.sections.why import why

SECTIONS = [
    Section("finding", "The finding", finding),
    Section("forest", "Every group with its interval", forest),
    Section("verdicts", "Verdicts", verdicts),
    Section("curves", "The gap over ε", curves, explores=True),
    Section("ladder", "What the standard errors rest on", ladder),
    Section("power", "What could have been found", power),
    Section("balance", "Are the two sides of the pairs alike", balance, needs_rows=True),
    Section(
        "rules",
        "What each scoring rule changes",
        rules,
        needs_rows=True,
        explores=True,
        is_for=has_rules,
    ),
    Section("why", "What is left once other groups are held fixed", why, needs_rows=True),
    Section(
        "rivals",
        "Other measures, and why they disagree",
        rivals,
        needs_rows=True,
        explores=True,
    ),
    Section(
        "boosts",
        "The boost that would close the gap, and its cost",
        boosts,
        needs_rows=True,
        explores=True,
    ),
    Section("pairs", "A sample of pairs", pairs, needs_rows=True),
    Section("method", "Data and method", data_and_method),
    Section("settings", "Settings, versions, fingerprint", everything),
]

__all__ = ["SECTIONS"]
