"""The whole audit as one labelled tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit


def tree(audit: Audit) -> xr.DataTree:
    """Return headline, curve, objective and moments under a root that holds the attributes."""
    attrs = dict(audit.attrs)
    if audit.ranking is not None:
        attrs["fingerprint"] = audit.ranking.fingerprint()
    parts = {"/": xr.Dataset(attrs=attrs), "headline": audit.headline, "curve": audit.curve}
    if audit.ranking is not None or "objective" in audit.extras:
        parts["objective"] = audit.objective
    if audit.moments is not None:
        parts["moments"] = audit.moments
    return xr.DataTree.from_dict(parts)
