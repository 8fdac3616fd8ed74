"""All tabs of the panel, in their order, and the other names that need the chart library."""

from __future__ import annotations

from mpc_lab.explorers.boost import BoostExplorer
from mpc_lab.explorers.calibration import CalibrationExplorer
from mpc_lab.explorers.checks import ChecksExplorer
from mpc_lab.explorers.epsilon import EpsilonExplorer
from mpc_lab.explorers.explorer import Explorer
from mpc_lab.explorers.groups import GroupsExplorer
from mpc_lab.explorers.live_chart import LiveChart
from mpc_lab.explorers.pairs import PairsExplorer
from mpc_lab.explorers.rivals import RivalsExplorer
from mpc_lab.explorers.start_panel import start

__all__ = [
    "TABS",
    "BoostExplorer",
    "CalibrationExplorer",
    "ChecksExplorer",
    "EpsilonExplorer",
    "GroupsExplorer",
    "LiveChart",
    "PairsExplorer",
    "RivalsExplorer",
    "start",
]

TABS: tuple[type[Explorer], ...] = (
    GroupsExplorer,
    EpsilonExplorer,
    BoostExplorer,
    PairsExplorer,
    CalibrationExplorer,
    RivalsExplorer,
    ChecksExplorer,
)
