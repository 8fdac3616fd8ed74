"""What an audit could have detected, and how many queries a given gap would need."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from mpc_lab.errors import check_number
from mpc_lab.inference.estimates import owner_variance
from mpc_lab.inference.verdicts import floor_variance, mde, queries_needed
from mpc_lab.results.assemble import (
    count_sides,
    family_size,
    headline_moments,
    infer,
    mode_rows,
    weakest_sides,
)
from mpc_lab.results.base import correction_of, settings
from mpc_lab.results.schema import AuditBase

_MEANING = {
    "mde": ("smallest gap found with the given power", "outcome"),
    "mde_adjusted": ("smallest gap found with the given power, over the family", "outcome"),
    "mde_floor": ("smallest gap that any number of queries of this catalogue finds", "outcome"),
    "queries_needed": ("queries of such a log needed for the effect; inf: none suffice", "1"),
    "queries_needed_adjusted": ("queries needed for the effect, over the family", "1"),
    "n_queries": ("queries, or units, of the log, with a pair or without", "1"),
}


def power(audit: AuditBase, effect: float | None, power: float) -> xr.Dataset:
    """Return the power of every headline cell; see :meth:`mpc_lab.Audit.power`."""
    effect = None if effect is None else check_number("effect", effect)
    power = check_number("power", power)
    options = settings(audit)
    level = float(options["level"])
    own = headline_moments(audit)
    cluster, correction = str(options["cluster"]), correction_of(audit)
    found = [infer(moments, cluster=cluster, level=level, correction=correction) for moments in own]

    def stacked(values: list[Any]) -> Any:
        return np.stack([np.asarray(value)[..., 0] for value in values])

    std_error, dof = stacked([f.std_error for f in found]), stacked([f.dof for f in found])
    floor = stacked([_floor(f) for f in found])
    modes, family = own[0].modes, family_size(found)[..., None]
    how: dict[str, Any] = {"level": level, "power": power, "sides": count_sides(modes)}
    weakest = weakest_sides(modes, std_error, dof)
    cells = {
        "mde": mde(*weakest, **how),
        "mde_adjusted": mde(*weakest, tests=family, **how),
        "mde_floor": mde(*weakest_sides(modes, np.sqrt(floor), dof), **how),
        "n_queries": np.full(std_error.shape, int(options["n_units"])),
    }
    if effect is not None:
        query = stacked([f.variance_by["query"] for f in found])
        how |= {
            "variance_query": np.where(np.isnan(std_error), np.nan, query),
            "queries": cells["n_queries"].astype(float),
            "dof": dof,
            "floor": floor,
        }
        for name, tests in (("queries_needed", 1), ("queries_needed_adjusted", family)):
            # Enough queries for one side of a bracket may be too few for the other.
            of_sides = queries_needed(effect, tests=tests, **how)
            cells[name] = weakest_sides(modes, of_sides)[0]
    return _labelled(audit, cells, effect, power, level)


def _floor(found: Any) -> Any:
    """Return what more queries of the same items, or producers, cannot lower."""
    over_items = owner_variance(found.variance_by)
    if over_items is None:
        return np.where(np.isnan(found.std_error), np.nan, 0.0)
    floor = floor_variance(over_items, found.variance_by["both"])
    return np.where(np.isnan(found.std_error), np.nan, floor)


def _labelled(
    audit: AuditBase, cells: dict[str, Any], effect: float | None, power: float, level: float
) -> xr.Dataset:
    rows = mode_rows(audit)
    dims = ("group", "scoring_rule", "pairing_mode")
    variables = {
        name: (
            dims,
            np.moveaxis(values[:, rows], (0, 1), (1, 2)),
            dict(zip(("long_name", "units"), _MEANING[name], strict=True)),
        )
        for name, values in cells.items()
    }
    attrs = {"power": power, "level": level} | ({} if effect is None else {"effect": effect})
    return xr.Dataset(variables, {dim: audit.headline[dim] for dim in dims}, attrs)
