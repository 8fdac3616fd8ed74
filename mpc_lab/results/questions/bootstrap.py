"""Bootstrap intervals of the headline, from the sums of each query alone."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from mpc_lab.errors import check_whole
from mpc_lab.results.base import AuditBase, inference_options, need_rows
from mpc_lab.results.questions.pairs import open_cell
from mpc_lab.results.schema import HEADLINE_DIMS
from mpc_lab.vocabulary import MODES


def bootstrap(audit: AuditBase, draws: int = 201, seed: int | None = None) -> xr.Dataset:
    """Resample queries and recompute the headline; see :meth:`mpc_lab.Audit.bootstrap`."""
    from mpc_lab.inference.bootstrap import bootstrap as resample
    from mpc_lab.pairing.pairs import sums_by_unit

    ranking = need_rows(audit, "bootstrap")
    labels = {name: audit.headline[name].values for name in HEADLINE_DIMS}
    shape = tuple(len(values) for values in labels.values())
    cells = list(product(*labels.values()))
    counts = np.zeros((ranking.n_units, len(cells)))
    sums = np.zeros_like(counts)
    opened = None
    for k, (group, rule, mode) in enumerate(cells):
        epsilon = float(audit.headline["epsilon"].sel(group=group, scoring_rule=rule).values[0])
        if np.isnan(epsilon):
            continue
        if (group, rule) != opened:
            cell, opened = open_cell(audit, "bootstrap", group, rule, mode), (group, rule)
        side = MODES[mode].side
        counts[:, k], sums[:, k] = sums_by_unit(cell.log, cell.member, side, epsilon)
    _, level, own_seed = inference_options(audit)
    seed = own_seed if seed is None else check_whole("seed", seed)
    found = resample(counts, sums, draws=draws, level=level, seed=seed)
    variables = {
        name: (HEADLINE_DIMS, getattr(found, name).reshape(shape))
        for name in found.__dataclass_fields__
    }
    attrs = {"draws": draws, "seed": seed, "level": level}
    return xr.Dataset(variables, coords=labels, attrs=attrs)
