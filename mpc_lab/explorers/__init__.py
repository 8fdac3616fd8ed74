"""Explorers of an audit in a notebook: each a set of traits with widgets that follow them.

State apart from view: what is looked at is an ``AuditState``, which needs no browser; widgets show
it and change it. Charts are those of ``mpc_lab.charts``, drawn in the page without a network; names
from data are shown as text. May import from ``errors`` to ``charts``; loads ipywidgets when
``mpc_lab.explorers`` is first used, and Altair, which takes seconds, when a chart is.
"""

from typing import TYPE_CHECKING, Any

from mpc_lab.explorers.explorer import Explorer
from mpc_lab.explorers.panel import AuditExplorer
from mpc_lab.explorers.state import AuditState

if TYPE_CHECKING:
    from mpc_lab.explorers.tabs import BoostExplorer as BoostExplorer
    from mpc_lab.explorers.tabs import CalibrationExplorer as CalibrationExplorer
    from mpc_lab.explorers.tabs import ChecksExplorer as ChecksExplorer
    from mpc_lab.explorers.tabs import EpsilonExplorer as EpsilonExplorer
    from mpc_lab.explorers.tabs import GroupsExplorer as GroupsExplorer
    from mpc_lab.explorers.tabs import LiveChart as LiveChart
    from mpc_lab.explorers.tabs import PairsExplorer as PairsExplorer
    from mpc_lab.explorers.tabs import RivalsExplorer as RivalsExplorer
    from mpc_lab.explorers.tabs import start as start

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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'mpc_lab.explorers' has no attribute {name!r}")
    from mpc_lab.explorers import tabs

    value = globals()[name] = getattr(tabs, name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
