"""Bootstrap intervals of the headline, from the sums of each query alone."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from mpc_lab.results import rows as _rows
from mpc_lab.results.cell_pairs import CellRows, Floats, inference_options, open_cell
from mpc_lab.results.plan import checked_whole
from mpc_lab.results.variables import HEADLINE_DIMS

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit


def bootstrap(audit: Audit, draws: int = 201, seed: int | None = None) -> xr.Dataset:
    r"""Resample queries (or units) and recompute every cell of the headline.

    :math:`\theta^* = \sum_k w_k D_k / \sum_k w_k c_k` over queries with c pairs and the sum D of
    outcome differences, w how often each is drawn, the same draws for all cells. The threshold of
    a cell stays what it is.

    Parameters
    ----------
    audit : Audit
        With its rows.
    draws : int
        Number of resamples; the paper used 201.
    seed : int, optional
        By default the audit's own.

    Returns
    -------
    xarray.Dataset
        Dims of the headline: ``percentile_low``, ``percentile_high``, ``studentised_low``,
        ``studentised_high``, ``draws_used``.

    References
    ----------
    Davison & Hinkley (1997), Bootstrap Methods and their Application, chapter 5.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> from mpc_lab.results.bootstrapping import bootstrap
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=2_000), progress=False)
    >>> bootstrap(audit).sizes["group"]
    2
    """
    from mpc_lab.inference.bootstrap import bootstrap as resample
    from mpc_lab.pairing.log import sort_rows

    ranking = _rows.need_rows(audit, "bootstrap")
    labels = {name: audit.headline[name].values for name in HEADLINE_DIMS}
    shape = tuple(len(values) for values in labels.values())
    cells = list(product(*labels.values()))
    counts = np.zeros((ranking.n_units, len(cells)))
    sums = np.zeros_like(counts)
    logged = sort_rows(ranking)
    for k, (group, rule, mode) in enumerate(cells):
        epsilon = float(audit.headline["epsilon"].sel(group=group, scoring_rule=rule).values[0])
        if np.isnan(epsilon):
            continue
        if rule == "baseline":
            cell = CellRows(ranking, logged, ranking.member(group)[logged.row], logged=True)
        else:
            cell = open_cell(audit, "bootstrap", group, rule, mode)
        counts[:, k], sums[:, k] = _unit_sums(cell, mode, epsilon)
    _, level, own_seed = inference_options(audit)
    seed = own_seed if seed is None else checked_whole("seed", seed)
    found = resample(counts, sums, draws=draws, level=level, seed=seed)
    variables = {
        name: (HEADLINE_DIMS, getattr(found, name).reshape(shape))
        for name in found.__dataclass_fields__
    }
    attrs = {"draws": draws, "seed": seed, "level": level}
    return xr.Dataset(variables, coords=labels, attrs=attrs)


def _unit_sums(cell: CellRows, mode: str, epsilon: float) -> tuple[Floats, Floats]:
    """Return pairs and sums of differences of every unit, without listing more than neighbours."""
    from mpc_lab.pairing.windows import sums_by_unit

    if mode != "adjacent":
        return sums_by_unit(cell.log, cell.member, mode, epsilon)
    pairs, units = cell.pairs(mode, epsilon), cell.ranking.n_units
    counts = np.bincount(pairs.query, minlength=units).astype(np.float64)
    return counts, np.asarray(np.bincount(pairs.query, pairs.d, minlength=units), dtype=np.float64)
