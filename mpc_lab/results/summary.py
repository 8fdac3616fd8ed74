"""The reading of an audit in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit


def summary(audit: Audit) -> str:
    """Return a short reading."""
    return "\n".join(f"Group {group!r}" for group in audit.groups)
