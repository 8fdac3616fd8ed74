"""What an audit says about the closest scores: the limit ε → 0, and both sides of a tie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from mpc_lab.errors import MpcError, check_epsilon, check_whole
from mpc_lab.results.base import (
    cell_epsilon,
    check_label,
    inference_options,
    names_in,
    need_rows,
    refuse_rank_only,
)
from mpc_lab.results.questions.pairs import CellPairs, CellRows, open_cell
from mpc_lab.results.schema import AuditBase
from mpc_lab.vocabulary import MODES, SYMMETRIC, Floats

if TYPE_CHECKING:
    from mpc_lab.inference.estimates import Estimates
    from mpc_lab.inference.sides import SidedPairs


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
    h, listed = _chosen(cell) if bandwidth is None else (_given(bandwidth), {})
    listed |= {mode: cell.pairs(mode, h) for mode in modes if mode not in listed}
    found = [_of_mode(cell, mode, listed[mode], h, cluster, level) for mode in modes]
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


def _chosen(cell: CellRows) -> tuple[float, dict[str, CellPairs]]:
    """Choose the bandwidth from the matched pairs, 0 without any; also return those inside it."""
    from mpc_lab.inference.bandwidth import LARGEST_LIST, choose_bandwidth
    from mpc_lab.pairing.kernels import FEW_ROWS
    from mpc_lab.pairing.pairs import nearest_distance
    from mpc_lab.pairing.threads import at_once

    reach = nearest_distance(cell.log, LARGEST_LIST, cell.n_matched)
    if np.isnan(reach):
        return 0.0, {}
    i, j = cell.rows_of_pairs("matched", reach, LARGEST_LIST)
    few = len(i) < FEW_ROWS
    distance, (d, query) = at_once(
        lambda: cell.log.distance(i, j),
        lambda: (cell.log.contrast(i, j), cell.cluster_code(i)),
        here=few,
    )
    h = choose_bandwidth(distance, d, query).value
    near = distance <= h
    return h, {"matched": cell.pairs_of(i[near], j[near])}


def _of_mode(
    cell: CellRows, mode: str, pairs: CellPairs, h: float, cluster: str, level: float
) -> dict[str, Any]:
    from mpc_lab.inference.limit import distance_density
    from mpc_lab.inference.limit import limit as limit_of_pairs
    from mpc_lab.inference.sides import limit_of_sides

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
    # Without a bandwidth there are only ties, and no density to draw.
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


# ---- both sides of a tie: bins of the distance, a line a side, and their jump

_PAIRS_IN_A_BIN = 30
_MOST_DRAWN = 5_000_000
_SIGN = (-1.0, 1.0)


@dataclass(frozen=True)
class Tie:
    """What pairs with nearly equal scores show on either side of a tie.

    Attributes
    ----------
    bins : pandas.DataFrame
        ``side`` ("below" or "above": where the group's item was), signed ``distance`` of the
        scores, mean ``difference`` of the outcomes with ``low`` and ``high``, and ``pairs``.
    ends : float64 array (side, 2)
        The fitted difference at the tie, and at the largest distance.
    middle : tuple of (estimate, low, high)
        The gap at a tie: the mean of the two fitted differences there. Where sides are means it is
        that of symmetric pairs.
    place : tuple of (estimate, low, high)
        Half the difference of the two. Both intervals are NaN where not estimable.
    overall : tuple of (estimate, low, high)
        The gap of symmetric pairs: the mean of both sides over all distances up to ε, about which
        an audit has a verdict. It is better known than the middle, and may differ from it where
        lines are not straight.
    epsilon : float
    by_place : bool
        Whether sides go by the places at which items were shown, rather than by score.
    lines : bool
        Whether sides are lines in the distance; otherwise means, because distances are too alike.
    pairs : tuple of int
        How many there are below and above.
    """

    bins: pd.DataFrame
    ends: Floats
    middle: tuple[float, float, float]
    place: tuple[float, float, float]
    overall: tuple[float, float, float]
    epsilon: float
    by_place: bool
    lines: bool
    pairs: tuple[int, int]


def tie(
    audit: AuditBase,
    group: str,
    scoring_rule: str = "baseline",
    epsilon: float | None = None,
    bins: int = 10,
) -> Tie:
    """Return both sides of a tie for one group; the lines are those of the effect of place.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group, scoring_rule : str
    epsilon : float, optional
        The largest distance; by default the headline's own threshold.
    bins : int
        At most this many a side, of about equally many pairs.
    """
    from mpc_lab.inference.limit import FEWEST_DISTANCES, distinct
    from mpc_lab.inference.sides import intercepts

    refuse_rank_only(audit, "tie")
    bins = check_whole("bins", bins, at_least=1, at_most=100)
    cell = open_cell(audit, "tie", group, scoring_rule, SYMMETRIC.name)
    is_headline = epsilon is None
    if epsilon is None:
        _check_drawable(audit, group, scoring_rule)
        epsilon = cell_epsilon(audit, group, scoring_rule)
    epsilon = check_epsilon(epsilon)
    sided = cell.sided(cell.pairs(SYMMETRIC.name, epsilon), tie=0.5)
    weight = sided.shares(sided.weighted)
    on_side = [sided.distance[side > 0] for side in weight]
    lines = all(distinct(distances) >= FEWEST_DISTANCES for distances in on_side)
    cluster, level, _ = inference_options(audit)
    middle = place = overall = _values(None)
    if all(len(distances) for distances in on_side):
        how: dict[str, Any] = {"cluster": cluster, "level": level}
        means = intercepts(sided, weight, degree=0, **how)
        fitted = intercepts(sided, weight, degree=1, **how) if lines else None
        lines = fitted is not None
        overall = _values(None if means is None else means.mean)
        known = _headline(audit, group, scoring_rule) if is_headline else None
        if known is not None:
            # The same estimate, but with the variance of the audit.
            overall = _read(known, "estimate", "ci_low", "ci_high")
        middle = overall
        if fitted is not None:
            middle, place = _values(fitted.mean), _values(fitted.half_difference)
            if known is not None and "place_effect" in known:
                place = _read(known, "place_effect", "place_effect_low", "place_effect_high")
    bins = bins if lines else 1
    frame = pd.concat([_bins(sided, weight[side], side, bins, level) for side in (0, 1)])
    if epsilon == 0:
        # Ties have no distance: one dot a side, beside the tie.
        frame["distance"] = frame["side"].map({"below": -0.5, "above": 0.5})
    below, above = (int((side > 0).sum()) for side in sided.weight)
    return Tie(
        bins=frame.reset_index(drop=True),
        ends=np.array([_ends(sided, weight[side], epsilon, lines=lines) for side in (0, 1)]),
        middle=middle,
        place=place,
        overall=overall,
        epsilon=epsilon,
        by_place=cell.ranking.columns.sides_by_place,
        lines=lines,
        pairs=(below, above),
    )


def _check_drawable(audit: AuditBase, group: str, rule: str) -> None:
    """Refuse to list more pairs than anybody would wait for."""
    check_label("group", group, audit.groups)
    check_label("scoring rule", rule, audit.headline["scoring_rule"].values.tolist())
    pairs = int(audit.headline["n_pairs"].sel(group=group, scoring_rule=rule).max())
    if pairs > _MOST_DRAWN:
        raise MpcError(
            f"A tie must have at most {_MOST_DRAWN:,} pairs to be drawn; got {pairs:,}. Give a "
            "smaller epsilon."
        )


def sides_by_place(audit: AuditBase) -> bool:
    """Whether the sides of a tie go by the places at which items were shown, or by score."""
    return need_rows(audit, "tie").columns.sides_by_place


def _headline(audit: AuditBase, group: str, rule: str) -> xr.Dataset | None:
    """Return the cell of symmetric pairs, where the audit has one."""
    if SYMMETRIC.name not in audit.headline["pairing_mode"].values:
        return None
    labels = {"group": group, "scoring_rule": rule, "pairing_mode": SYMMETRIC.name}
    return audit.headline.sel(labels)


def _read(cells: xr.Dataset, *names: str) -> tuple[float, float, float]:
    """Return an estimate and its interval from a cell of the headline."""
    estimate, low, high = (float(cells[name]) for name in names)
    return estimate, low, high


def _values(found: Estimates | None) -> tuple[float, float, float]:
    """Return an estimate and its interval."""
    if found is None:
        return float("nan"), float("nan"), float("nan")
    return float(found.estimate), float(found.ci_low), float(found.ci_high)


def _ends(sided: SidedPairs, weight: Floats, epsilon: float, *, lines: bool) -> list[float]:
    """Return the fitted difference at the tie and at the largest distance."""
    from mpc_lab.inference.limit import polynomial

    here = np.flatnonzero(weight > 0)
    if not len(here):
        return [float("nan")] * 2
    order = here[np.argsort(sided.distance[here], kind="stable")]
    fit = None
    if lines:
        fit = polynomial(sided.distance[order], sided.d[order], weight[order], degree=1)
    if fit is None:
        mean = float(np.average(sided.d[here], weights=weight[here]))
        return [mean, mean]
    start, slope = fit.coefficients
    return [float(start), float(start + slope * epsilon)]


def _bins(sided: SidedPairs, weight: Floats, side: int, bins: int, level: float) -> pd.DataFrame:
    """Return the mean difference in bins of the distance, with intervals clustered by query."""
    from scipy import stats

    here = np.flatnonzero(weight > 0)
    here = here[np.argsort(sided.distance[here], kind="stable")]
    parts = min(bins, max(1, len(here) // _PAIRS_IN_A_BIN)) if len(here) else 0
    rows = []
    for chosen in np.array_split(here, parts) if parts else []:
        share = weight[chosen] / weight[chosen].sum()
        mean = float(share @ sided.d[chosen])
        query = np.unique(sided.codes.query[chosen], return_inverse=True)[1]
        sums = np.bincount(query, share * (sided.d[chosen] - mean))
        counts = np.bincount(query, share)
        effective = 1 / float(counts @ counts)
        reach = float("nan")
        if effective > 2:
            correction = len(counts) / (len(counts) - 1)
            reach = float(stats.t.ppf(0.5 + level / 2, effective - 1))
            reach *= float(np.sqrt(sums @ sums * correction))
        rows.append(
            {
                "side": ("below", "above")[side],
                "distance": _SIGN[side] * float(share @ sided.distance[chosen]),
                "difference": mean,
                "low": mean - reach,
                "high": mean + reach,
                "pairs": len(chosen),
            }
        )
    columns = ["side", "distance", "difference", "low", "high", "pairs"]
    return pd.DataFrame(rows, columns=columns)
