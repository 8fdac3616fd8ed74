"""The curve of one cell, made alone where that spares the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_lab.results.rows import check_label

if TYPE_CHECKING:
    import xarray as xr

    from mpc_lab.results.audit import Audit


def curve_of(audit: Audit, group: str, rule: str, mode: str) -> xr.Dataset:
    """Return the curve of one cell; see :meth:`mpc_lab.Audit.curve_of`."""
    check_label("group", group, audit.groups)
    check_label("scoring rule", rule, audit.headline["scoring_rule"].values.tolist())
    check_label("pairing mode", mode, audit.headline["pairing_mode"].values.tolist())
    part, is_made = audit.curve_part, "curve" in vars(audit)
    found = audit.curve if part is None or is_made else part(group, rule)
    return found.sel(group=group, scoring_rule=rule, pairing_mode=mode)
