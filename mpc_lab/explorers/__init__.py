"""Explorers of an audit in a notebook: each a set of traits with widgets that follow them.

State apart from view: what is looked at is an ``AuditState``, which needs no browser; widgets show
it and change it. Charts are those of ``mpc_lab.charts``, drawn in the page without a network; names
from data are shown as text. May import from ``errors`` to ``charts``; loads ipywidgets and Altair,
and is itself loaded when ``mpc_lab.explorers`` is first used.
"""

from mpc_lab.explorers.boost import BoostExplorer
from mpc_lab.explorers.calibration import CalibrationExplorer
from mpc_lab.explorers.checks import ChecksExplorer
from mpc_lab.explorers.epsilon import EpsilonExplorer
from mpc_lab.explorers.explorer import Explorer
from mpc_lab.explorers.groups import GroupsExplorer
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.pairs import PairsExplorer
from mpc_lab.explorers.panel import AuditExplorer
from mpc_lab.explorers.rivals import RivalsExplorer
from mpc_lab.explorers.start import start
from mpc_lab.explorers.state import AuditState

__all__ = [
    "AuditExplorer",
    "AuditState",
    "BoostExplorer",
    "CalibrationExplorer",
    "ChecksExplorer",
    "EpsilonExplorer",
    "Explorer",
    "GroupsExplorer",
    "LiveChart",
    "PairsExplorer",
    "RivalsExplorer",
    "start",
]
