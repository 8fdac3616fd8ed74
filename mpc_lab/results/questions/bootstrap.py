"""Bootstrap intervals of the headline, from the sums of each query alone."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from mpc_lab.errors import check_whole
from mpc_lab.results.base import inference_options, need_rows
from mpc_lab.results.questions.pairs import open_cell
from mpc_lab.results.schema import HEADLINE, HEADLINE_DIMS, AuditBase, check_headline, noted
from mpc_lab.vocabulary import MODES


def bootstrap(audit: AuditBase, draws: int = 201, seed: int | None = None) -> xr.Dataset:
    """Resample queries and recompute the headline; see :meth:`mpc_lab.Audit.bootstrap`."""
    from mpc_lab.inference.bands import Bootstrap, bootstrap_sides
    from mpc_lab.inference.bands import bootstrap as resample
    from mpc_lab.pairing.pairs import sums_by_unit

    ranking = need_rows(audit, "bootstrap")
    labels = {name: audit.headline[name].values for name in HEADLINE_DIMS}
    shape = tuple(len(values) for values in labels.values())
    _, level, own_seed = inference_options(audit)
    seed = own_seed if seed is None else check_whole("seed", seed)
    options: dict[str, Any] = {"draws": draws, "level": level, "seed": seed}
    cells = list(product(*labels.values()))
    counts = np.zeros((ranking.n_units, len(cells)))
    sums = np.zeros_like(counts)
    two_sided: dict[int, Bootstrap] = {}
    opened = None
    for k, (group, rule, mode) in enumerate(cells):
        epsilon = float(audit.headline["epsilon"].sel(group=group, scoring_rule=rule).values[0])
        if np.isnan(epsilon):
            continue
        if (group, rule) != opened:
            cell, opened = open_cell(audit, "bootstrap", group, rule, mode), (group, rule)
        if MODES[mode].two_sided:
            two_sided[k] = bootstrap_sides(*cell.parts_by_unit(mode, epsilon), **options)
        else:
            side = MODES[mode].side
            counts[:, k], sums[:, k] = sums_by_unit(cell.log, cell.member, side, epsilon)
    found = resample(counts, sums, **options)
    for k, of_cell in two_sided.items():
        for name in found.__dataclass_fields__:
            getattr(found, name)[k] = getattr(of_cell, name)[0]
    variables = {
        name: (HEADLINE_DIMS, getattr(found, name).reshape(shape))
        for name in found.__dataclass_fields__
    }
    attrs = {"draws": draws, "seed": seed, "level": level}
    return xr.Dataset(variables, coords=labels, attrs=attrs)


def add_to_headline(audit: AuditBase, draws: int, seed: int) -> None:
    """Put the bootstrap intervals into the headline of an audit."""
    found = bootstrap(audit, draws, seed)
    columns = {
        "bootstrap_low": "percentile_low",
        "bootstrap_high": "percentile_high",
        "bootstrap_t_low": "studentised_low",
        "bootstrap_t_high": "studentised_high",
    }
    for name, column in columns.items():
        audit.headline[name] = (HEADLINE_DIMS, found[column].values, noted(HEADLINE[name]))
    audit.headline = check_headline(audit.headline)
