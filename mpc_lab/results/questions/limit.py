"""What an audit says about the closest scores: the limit ε → 0 of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.errors import MpcError
from mpc_lab.results.base import inference_options, names_in, refuse_rank_only
from mpc_lab.results.questions.pairs import CellRows, open_cell
from mpc_lab.results.schema import AuditBase
from mpc_lab.vocabulary import MODES

if TYPE_CHECKING:
    from mpc_lab.inference.estimates import Estimates

_METHOD = (
    "intercept of a regression of d on 1, x, x^2 with weights 1 - x/bandwidth, x the distance "
    "(robust bias-corrected local linear, one bandwidth); mean over ties where it says so"
)
BINS = 20


def limit(
    audit: AuditBase,
    group: str,
    scoring_rule: str = "baseline",
    pairing_mode: str | Sequence[str] = "matched",
    bandwidth: float | None = None,
) -> xr.Dataset:
    """Estimate the gap as the distance goes to 0; see :meth:`mpc_lab.Audit.limit`."""
    refuse_rank_only(audit, "limit")
    modes = names_in(pairing_mode)
    if not modes:
        raise MpcError('pairing_mode must name at least one mode, such as "matched"; got none.')
    cell = open_cell(audit, "limit", group, scoring_rule, *modes)
    cluster, level, _ = inference_options(audit)
    h = _chosen(cell) if bandwidth is None else _given(bandwidth)
    found = [_of_mode(cell, mode, h, cluster, level) for mode in modes]
    variables: dict[str, Any] = {
        name: (("pairing_mode", "distance") if np.ndim(found[0][name]) else "pairing_mode", column)
        for name, column in ((name, np.stack([one[name] for one in found])) for name in found[0])
    }
    chosen = "least expected squared error over matched pairs"
    labelled = xr.Dataset(
        variables,
        coords={
            "pairing_mode": np.array(modes),
            "distance": (np.arange(BINS) + 0.5) / BINS * h,
            "group": np.str_(group),
            "scoring_rule": np.str_(scoring_rule),
        },
        attrs={
            "method": _METHOD,
            "bandwidth_from": chosen if bandwidth is None else "given",
            "cluster": cluster,
            "level": level,
        },
    )
    return labelled.isel(pairing_mode=0) if isinstance(pairing_mode, str) else labelled


def _given(bandwidth: float) -> float:
    from mpc_lab.inference.limit import check_bandwidth

    return check_bandwidth(bandwidth)


def _chosen(cell: CellRows) -> float:
    """Choose the bandwidth from the matched pairs; 0 where there is none."""
    from mpc_lab.inference.limit import LARGEST_LIST, choose_bandwidth
    from mpc_lab.pairing.pairs import nearest_distance

    reach = nearest_distance(cell.log, LARGEST_LIST)
    if np.isnan(reach):
        return 0.0
    pairs = cell.pairs("matched", reach)
    return choose_bandwidth(pairs.distance, pairs.d, pairs.query).value


def _of_mode(cell: CellRows, mode: str, h: float, cluster: str, level: float) -> dict[str, Any]:
    from mpc_lab.inference.limit import distance_density
    from mpc_lab.inference.limit import limit as limit_of_pairs
    from mpc_lab.inference.sides import limit_of_sides

    pairs = cell.pairs(mode, h)
    effect: Estimates | None = None
    if MODES[mode].two_sided:
        sided = cell.sided(pairs, tie=1.0)
        found, effect = limit_of_sides(sided, bandwidth=h, cluster=cluster, level=level)
    else:
        found = limit_of_pairs(
            pairs.distance,
            pairs.d,
            pairs.query,
            bandwidth=h,
            item_i=pairs.owner_i,
            item_j=pairs.owner_j,
            owner=pairs.owner,
            weights=pairs.weights,
            cluster=cluster,
            level=level,
        )
    # Without a bandwidth there are ties alone, and no density to draw.
    near = distance_density(pairs.distance, h, total=cell.count(mode), bins=BINS) if h > 0 else None
    return {
        **asdict(found),
        **_place_effect(effect),
        "density_at_zero": near.at_zero if near else np.nan,
        "distance_density": near.density if near else np.full(BINS, np.nan),
        "distance_count": near.counts if near else np.zeros(BINS, dtype=np.int64),
    }


def _place_effect(found: Estimates | None) -> dict[str, float]:
    """Return half the difference of the two sides' limits; NaN for a mode of one side."""
    names = {"": "estimate", "_low": "ci_low", "_high": "ci_high", "_p_value": "p_value"}
    return {
        f"place_effect{end}": float("nan") if found is None else float(getattr(found, name))
        for end, name in names.items()
    }
