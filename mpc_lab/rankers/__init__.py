"""Rankers to audit: ratings become scored rows.

May import from: errors, ranking.
"""

from __future__ import annotations

from mpc_lab.rankers.low_rank import svd as svd

__all__ = ["svd"]
