"""From the labelled sums of an audit, saved or fresh, back to plain moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.errors import MpcError
from mpc_lab.pairing.moments import Moments, Quadratic
from mpc_lab.results.variables import SUM_FAMILIES

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit


def moments_by_rule(audit: Audit) -> list[Moments]:
    """Return the moments of each scoring rule at all their thresholds."""
    found = audit.moments
    if found is None:
        raise MpcError("This audit holds no sums to work from; run mpc.audit again on the log.")
    values = {str(name): found[name].values for name in found.data_vars}
    return [
        Moments(
            edges=values["edges"][rule],
            center=values["center"][rule],
            pairs=values["pairs"][rule],
            queries=values["queries"][rule],
            clusters=values["clusters"][rule],
            items=values["items"][rule],
            by={
                family: Quadratic(
                    values[f"{family}_cc"][rule],
                    values[f"{family}_cu"][rule],
                    values[f"{family}_uu"][rule],
                )
                for family in SUM_FAMILIES
                if f"{family}_cc" in values
            },
            squares={
                side: values[f"{side}_cc"][rule]
                for side in ("inside", "outside")
                if f"{side}_cc" in values
            },
        )
        for rule in range(found.sizes["scoring_rule"])
    ]


def headline_moments(audit: Audit) -> list[Moments]:
    """Return the moments of each scoring rule at the one threshold of each group."""
    if audit.own is not None:
        return list(audit.own)
    own = audit.headline["epsilon"].transpose("scoring_rule", "group", ...).values[:, :, 0]
    kept = []
    for moments, epsilon in zip(moments_by_rule(audit), own, strict=True):
        # A group without a threshold stands first, below every gap.
        sought = np.where(np.isnan(epsilon), -np.inf, epsilon)
        index = [[np.searchsorted(row, e)] for row, e in zip(moments.edges, sought, strict=True)]
        kept.append(moments.at(np.array(index, dtype=np.int64)))
    return kept
