"""The sections of a report, in its order: each a function from a context to a piece of HTML."""

from mpc_lab.report.sections.boosts import boosts
from mpc_lab.report.sections.checks import balance, ladder, power
from mpc_lab.report.sections.curves import curves
from mpc_lab.report.sections.finding import finding, forest, verdicts
from mpc_lab.report.sections.method import data_and_method, everything
from mpc_lab.report.sections.pairs import pairs
from mpc_lab.report.sections.rivals import rivals

# Id, title, function; the rows of the log are needed for those marked so.
SECTIONS = (
    ("finding", "The finding", finding, False),
    ("forest", "Every group with its interval", forest, False),
    ("verdicts", "Verdicts", verdicts, False),
    ("curves", "The gap over ε", curves, False),
    ("ladder", "What the standard errors rest on", ladder, False),
    ("power", "What could have been found", power, False),
    ("balance", "Are the two sides of the pairs alike", balance, True),
    ("rivals", "Other measures, and why they disagree", rivals, True),
    ("boosts", "The boost that would close the gap, and its cost", boosts, True),
    ("pairs", "A sample of pairs", pairs, True),
    ("method", "Data and method", data_and_method, False),
    ("settings", "Settings, versions, fingerprint", everything, False),
)

__all__ = ["SECTIONS"]
