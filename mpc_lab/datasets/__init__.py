"""Logs to learn and test with, each handed over as a :class:`mpc_lab.Ranking`.

May import from: errors, ranking, rankers.
"""

from __future__ import annotations

from mpc_lab.datasets.synthetic import synthetic as synthetic
from mpc_lab.datasets.synthetic import synthetic_truth as synthetic_truth

__all__ = ["synthetic", "synthetic_truth"]
