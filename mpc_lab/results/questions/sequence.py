"""Intervals for an audit that is repeated as queries come in, labelled."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.inference.sequence import confidence_sequence as sequence
from mpc_lab.pairing.thresholds import parse_threshold
from mpc_lab.results.assemble import family_size, headline_moments, infer, mode_rows
from mpc_lab.results.base import AuditBase, settings
from mpc_lab.results.schema import HEADLINE_DIMS

Floats = NDArray[np.float64]


def confidence_sequence(audit: AuditBase, planned: int) -> xr.Dataset:
    """Return the interval of each cell; see :meth:`mpc_lab.Audit.confidence_sequence`."""
    options = settings(audit)
    level = float(options["level"])
    low, high = intervals(audit, planned, level)
    rows = mode_rows(audit)
    variables = {
        name: (HEADLINE_DIMS, np.moveaxis(values[:, rows], (0, 1), (1, 2)))
        for name, values in (("low", low), ("high", high))
    }
    variables["estimate"] = (HEADLINE_DIMS, audit.headline["estimate"].values)
    labels = {dim: audit.headline[dim] for dim in HEADLINE_DIMS}
    attrs = {"level": level, "planned": planned, "n_queries": int(options["n_units"])}
    return xr.Dataset(variables, labels, attrs)


def intervals(audit: AuditBase, planned: int, level: float) -> tuple[Floats, Floats]:
    """Return both ends for every cell, axes (rule, mode, group), the modes that were summed over.

    Parameters
    ----------
    audit : Audit
        At a threshold that was fixed in advance.
    planned : int
        See :meth:`mpc_lab.Audit.confidence_sequence`.
    level : float
        The probability that no look ever misses, over all groups of a rule and mode.
    """
    options = settings(audit)
    if not isinstance(parse_threshold(str(options["threshold"])), float):
        raise MpcError(
            "Repeated looks need a threshold that was fixed in advance: run the audit with a "
            f"number as threshold, not {options['threshold']}."
        )
    found = [infer(own, cluster="query", level=level) for own in headline_moments(audit)]
    queries = np.array(int(options["n_units"]))
    ends = [
        [
            sequence(
                estimates.estimate[mode, :, 0],
                estimates.variance_by["query"][mode, :, 0],
                queries,
                level=level,
                planned=planned,
                tests=int(size),
            )
            for mode, size in enumerate(sizes)
        ]
        for estimates, sizes in zip(found, family_size(found), strict=True)
    ]
    # Pairs of one query alone have a raw variance of 0, which is no knowledge.
    known = np.stack([estimates.estimable[..., 0] for estimates in found])
    low, high = (
        np.where(known, np.array([[end[k] for end in modes] for modes in ends]), np.nan)
        for k in (0, 1)
    )
    return low, high
