"""Matched pair calibration: does a ranker undervalue a group of items?

The front door. Public names load when first used, so that ``import mpc_lab`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

_HOME = {
    "Audit": "mpc_lab.results",
    "AuditFailed": "mpc_lab.errors",
    "Boosted": "mpc_lab.scoring",
    "Column": "mpc_lab.scoring",
    "Demoted": "mpc_lab.scoring",
    "Difference": "mpc_lab.results.difference",
    "Discovery": "mpc_lab.results.discovery",
    "Enough": "mpc_lab.pairing",
    "FairOffsets": "mpc_lab.offsets",
    "MpcError": "mpc_lab.errors",
    "PowerLaw": "mpc_lab.ranking",
    "Powered": "mpc_lab.pairing",
    "Quantile": "mpc_lab.pairing",
    "Ranking": "mpc_lab.ranking",
    "Smallest": "mpc_lab.pairing",
    "Trend": "mpc_lab.results.trend",
    "audit": "mpc_lab.run",
    "difference": "mpc_lab.results.two_audits",
    "discover": "mpc_lab.discovery",
    "from_ranx": "mpc_lab.formats",
    "load": "mpc_lab.results",
    "pool": "mpc_lab.results.pool",
    "preflight": "mpc_lab.results.preflight",
    "read_letor": "mpc_lab.formats",
    "read_run": "mpc_lab.formats",
    "trend": "mpc_lab.results.trend",
}
_ROOMS = ("charts", "datasets", "explorers", "rankers")

if TYPE_CHECKING:
    from mpc_lab import charts as charts
    from mpc_lab import datasets as datasets
    from mpc_lab import explorers as explorers
    from mpc_lab import rankers as rankers
    from mpc_lab.discovery import discover as discover
    from mpc_lab.errors import AuditFailed as AuditFailed
    from mpc_lab.errors import MpcError as MpcError
    from mpc_lab.formats import from_ranx as from_ranx
    from mpc_lab.formats import read_letor as read_letor
    from mpc_lab.formats import read_run as read_run
    from mpc_lab.offsets import FairOffsets as FairOffsets
    from mpc_lab.pairing import Enough as Enough
    from mpc_lab.pairing import Powered as Powered
    from mpc_lab.pairing import Quantile as Quantile
    from mpc_lab.pairing import Smallest as Smallest
    from mpc_lab.ranking import PowerLaw as PowerLaw
    from mpc_lab.ranking import Ranking as Ranking
    from mpc_lab.results import Audit as Audit
    from mpc_lab.results import load as load
    from mpc_lab.results.difference import Difference as Difference
    from mpc_lab.results.discovery import Discovery as Discovery
    from mpc_lab.results.pool import pool as pool
    from mpc_lab.results.preflight import preflight as preflight
    from mpc_lab.results.trend import Trend as Trend
    from mpc_lab.results.trend import trend as trend
    from mpc_lab.results.two_audits import difference as difference
    from mpc_lab.run import audit as audit
    from mpc_lab.scoring import Boosted as Boosted
    from mpc_lab.scoring import Column as Column
    from mpc_lab.scoring import Demoted as Demoted

__all__ = [*sorted(_HOME), *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"mpc_lab.{name}")
    else:
        raise AttributeError(f"module 'mpc_lab' has no attribute {name!r}")
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """Turn on offline drawing and add ``%%mpc_audit``: what ``%load_ext mpc_lab`` does."""
    importlib.import_module("mpc_lab.magics").load_ipython_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Undo what ``%load_ext mpc_lab`` did."""
    importlib.import_module("mpc_lab.magics").unload_ipython_extension(shell)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
