"""What an audit was made from and how: its options, data, versions and fingerprint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mpc_lab.results.reading import settings

if TYPE_CHECKING:
    from mpc_lab.results import Audit

_SIZES = ("n_rows", "n_queries", "n_units", "n_items", "n_dropped")


def options_of(audit: Audit) -> dict[str, Any]:
    """Return the options the audit was run with."""
    return _json(audit, "options")


def versions(audit: Audit) -> dict[str, str]:
    """Return the versions of the libraries that it was run with."""
    return {str(name): str(version) for name, version in _json(audit, "versions").items()}


def columns(audit: Audit) -> dict[str, Any]:
    """Return which column played which part."""
    return {role: name for role, name in _json(audit, "columns").items() if name is not None}


def fingerprint(audit: Audit) -> str | None:
    """Return the hash of the rows, None where it is not known."""
    if audit.ranking is not None:
        return audit.ranking.fingerprint()
    known = audit.attrs.get("fingerprint")
    return None if known is None else str(known)


def data_facts(audit: Audit) -> dict[str, Any]:
    """Return the sizes of the log, its columns and its fingerprint."""
    plain = settings(audit)
    sizes = {name: int(plain[name]) for name in _SIZES if name in plain}
    return {**sizes, "columns": columns(audit), "fingerprint": fingerprint(audit)}


def _json(audit: Audit, name: str) -> dict[str, Any]:
    try:
        found = json.loads(str(audit.attrs.get(name, "{}")))
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}
