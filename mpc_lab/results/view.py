"""The notebook view of an audit."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit


def html_view(audit: Audit) -> str:
    """Return the view as HTML."""
    return f"<pre>{html.escape(audit.summary())}</pre>"
