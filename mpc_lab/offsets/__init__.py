"""Offsets of several groups at once, chosen on one part of the queries and tried on another.

An estimator in the style of scikit-learn, which it does not need. Reads rankings and tables, and
may use all rooms above. May import from all rooms before `charts`.
"""

from __future__ import annotations

from mpc_lab.offsets.estimator import FairOffsets
from mpc_lab.offsets.guarantee import Guarantee

__all__ = ["FairOffsets", "Guarantee"]
