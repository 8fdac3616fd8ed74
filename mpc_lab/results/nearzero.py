"""What an audit says about the smallest gaps: the limit ε → 0 of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.arguments import as_number
from mpc_lab.errors import MpcError
from mpc_lab.results.balance import balance
from mpc_lab.results.cell_pairs import CellRows, inference_options, open_cell
from mpc_lab.results.certificate import Certificate, certificate
from mpc_lab.results.rows import names_in

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit

__all__ = ["Certificate", "balance", "certificate", "limit"]

_METHOD = (
    "intercept of a regression of d on 1, gap, gap^2 with weights 1 - gap/bandwidth "
    "(robust bias-corrected local linear, one bandwidth); mean over ties where it says so"
)
BINS = 20


def limit(
    audit: Audit,
    group: str,
    scoring_rule: str = "baseline",
    pairing_mode: str | Sequence[str] = "matched",
    bandwidth: float | None = None,
) -> xr.Dataset:
    r"""Estimate the gap in outcomes as the gap in scores goes to 0.

    .. math:: \lim_{\varepsilon \to 0} \mathrm{MPC}_\varepsilon(g) = E[d \mid \Delta \to 0],

    by the intercept of d on 1, Δ, Δ² with weights 1 − Δ/h: the robust bias-corrected local linear
    estimate [1]_. At a threshold ε > 0 the item that is scored lower should do a little worse,
    whatever its group; in the limit it should not, so that ``matched`` and ``mirrored`` close on
    one value. It needs data: its interval is several times as wide as that at a threshold.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group, scoring_rule : str
        The cell.
    pairing_mode : str or list of str
        With a list the result has the dim ``pairing_mode``.
    bandwidth : float, optional
        h, in units of the score; by default the one with the least expected squared error, chosen
        from the ``matched`` pairs for all modes (`mpc_lab.inference.bandwidth`).

    Returns
    -------
    xarray.Dataset
        ``estimate``, ``std_error``, ``ci_low``, ``ci_high``, ``p_value``, ``dof``,
        ``n_effective``, ``bandwidth``, ``n_pairs``; ``tie_share`` (of the pairs inside the
        bandwidth), ``tie_mean``, ``tie_weight`` (of the kernel weight), ``n_ties``; ``method``
        (local quadratic, mean over ties, not estimable), ``reason``, ``variance_from``;
        ``density_at_zero``, and over ``gap`` the ``gap_density`` and ``gap_count`` of untied
        pairs inside the bandwidth.

    References
    ----------
    .. [1] Calonico, Cattaneo & Titiunik (2014), Robust nonparametric confidence intervals for
       regression-discontinuity designs.

    Examples
    --------
    >>> import mpc_lab as mpc
    >>> from mpc_lab.results.nearzero import limit
    >>> audit = mpc.audit(mpc.datasets.synthetic(queries=20_000, seed=1), progress=False)
    >>> found = limit(audit, "1")
    >>> bool(found.ci_low < 0.06875 < found.ci_high)
    True
    """
    modes = names_in(pairing_mode)
    if not modes:
        raise MpcError('pairing_mode needs at least one mode, such as "matched", but none came.')
    cell = open_cell(audit, "limit", group, scoring_rule, *modes)
    cluster, level, _ = inference_options(audit)
    h = _chosen(cell) if bandwidth is None else _given(bandwidth)
    found = [_of_mode(cell, mode, h, cluster, level) for mode in modes]
    variables: dict[str, Any] = {
        name: (("pairing_mode", "gap") if np.ndim(found[0][name]) else "pairing_mode", column)
        for name, column in ((name, np.stack([one[name] for one in found])) for name in found[0])
    }
    chosen = "least expected squared error over matched pairs"
    labelled = xr.Dataset(
        variables,
        coords={
            "pairing_mode": np.array(modes),
            "gap": (np.arange(BINS) + 0.5) / BINS * h,
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

    check_bandwidth(bandwidth)
    return as_number(bandwidth)


def _chosen(cell: CellRows) -> float:
    """Choose the bandwidth from the matched pairs; 0 where there is none."""
    from mpc_lab.inference.bandwidth import LARGEST_LIST, choose_bandwidth
    from mpc_lab.pairing.reach import nearest_gap

    reach = nearest_gap(cell.log, LARGEST_LIST)
    if np.isnan(reach):
        return 0.0
    pairs = cell.pairs("matched", reach)
    return choose_bandwidth(pairs.gap, pairs.d, pairs.query).value


def _of_mode(cell: CellRows, mode: str, h: float, cluster: str, level: float) -> dict[str, Any]:
    from mpc_lab.inference.density import gap_density
    from mpc_lab.inference.limit import limit as limit_of_pairs

    pairs = cell.pairs(mode, h)
    found = limit_of_pairs(
        pairs.gap,
        pairs.d,
        pairs.query,
        bandwidth=h,
        item_i=pairs.item_i,
        item_j=pairs.item_j,
        cluster=cluster,
        level=level,
    )
    # Without a bandwidth there are ties alone, and no density to draw.
    near = gap_density(pairs.gap, h, total=cell.count(mode), bins=BINS) if h > 0 else None
    return {
        **asdict(found),
        "density_at_zero": near.at_zero if near else np.nan,
        "gap_density": near.density if near else np.full(BINS, np.nan),
        "gap_count": near.counts if near else np.zeros(BINS, dtype=np.int64),
    }
