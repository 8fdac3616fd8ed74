"""Rankers to audit: ratings become scored rows.

May import from: errors, ranking.
"""

from __future__ import annotations

from mpc_lab.rankers.svd import svd as svd

__all__ = ["svd"]
