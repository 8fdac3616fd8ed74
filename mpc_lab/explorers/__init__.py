"""Explorers of an audit in a notebook: each a set of traits with widgets that follow them.

State apart from view: what is looked at is an ``AuditState``, which needs no browser; widgets show
it and change it, and are in ``controls`` by their names. Charts are those of ``mpc_lab.charts``,
drawn in the page without a network; names from data are shown as text. May import from ``errors``
to ``charts``; loads ipywidgets when ``mpc_lab.explorers`` is first used, and Altair, which takes
seconds, when a chart is drawn.
"""

from mpc_lab.explorers.boost import BoostExplorer
from mpc_lab.explorers.calibration import CalibrationExplorer
from mpc_lab.explorers.checks import ChecksExplorer
from mpc_lab.explorers.compare import CompareExplorer
from mpc_lab.explorers.epsilon import EpsilonExplorer
from mpc_lab.explorers.explorer import Explorer
from mpc_lab.explorers.groups import GroupsExplorer
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.pairs import PairsExplorer
from mpc_lab.explorers.place import PlaceExplorer
from mpc_lab.explorers.problems import readable
from mpc_lab.explorers.rivals import RivalsExplorer
from mpc_lab.explorers.start_panel import start
from mpc_lab.explorers.state import AuditState
from mpc_lab.explorers.story import StoryExplorer
from mpc_lab.explorers.tabs import AuditExplorer
from mpc_lab.explorers.why import WhyExplorer

__all__ = [
    "AuditExplorer",
    "AuditState",
    "BoostExplorer",
    "CalibrationExplorer",
    "ChecksExplorer",
    "CompareExplorer",
    "EpsilonExplorer",
    "Explorer",
    "GroupsExplorer",
    "LiveChart",
    "PairsExplorer",
    "PlaceExplorer",
    "RivalsExplorer",
    "StoryExplorer",
    "WhyExplorer",
    "readable",
    "start",
]
