"""Exposure by group: which items get the high places, and for how much merit?"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mpc_lab.comparators.base import (
    Case,
    Comparison,
    Conditions,
    comparison,
    log_interval,
    on_log_scale,
)
from mpc_lab.inference.clustered import Clustered, effective, from_influence
from mpc_lab.pairing.kernels import kernel
from mpc_lab.vocabulary import OVERVALUED, Flags, Floats, Ints

_EXPOSURE_ONLY = Conditions(scores="all", queries="all", looks_at="exposure")
_AGAINST_OUTCOMES = Conditions(scores="all", queries="all", looks_at="both")


def exposure_ratios(case: Case) -> list[Comparison]:
    r"""Return exposure, treatment and impact of a group over those of the rest.

    With :math:`v = 1/\log_2(1 + \text{rank})`, over queries that have both sides, and summed over
    these queries before anything is divided: n items, :math:`X = \sum v`, :math:`M = \sum y`,
    :math:`C = \sum v y`,

    .. math::
        \text{exposure } \frac{X_g/n_g}{X_{\bar g}/n_{\bar g}}, \quad
        \text{treatment } \frac{X_g/M_g}{X_{\bar g}/M_{\bar g}}, \quad
        \text{impact } \frac{C_g/M_g}{C_{\bar g}/M_{\bar g}}.

    The interval is on the logarithm, by the delta method over query sums. No query is left out
    for its outcomes. Where positions were logged, they are the ranks.

    Parameters
    ----------
    case : Case

    Returns
    -------
    list of Comparison
        ``exposure_ratio``, ``treatment_ratio``, ``impact_ratio``; above 1: in favour of the group.
        Queries with one side only are counted in ``left_out``.

    References
    ----------
    Singh & Joachims (2018), Fairness of exposure in rankings.
    """
    lists = case.lists
    n_in = case.n_inside
    n_out = lists.sizes - n_in
    used = (n_in > 0) & (n_out > 0)

    table = np.zeros((lists.n_clusters, 2, 4))
    weight = used.astype(np.float64) if lists.weight is None else used * lists.weight
    rows_of = (case.listed_member, lists.exposure, case.listed_outcome)
    _add_sides(lists.query, lists.cluster, weight, *rows_of, table)
    n, x, m, c = ((table[:, 1, k], table[:, 0, k]) for k in range(4))
    rows = n[0] + n[1]
    left_out = int(((n_in == 0) | (n_out == 0)).sum())
    return [
        _ratio(name, top, bottom, rows, what, conditions, left_out, case.level)
        for name, top, bottom, what, conditions in (
            ("exposure_ratio", x, n, "items", _EXPOSURE_ONLY),
            ("treatment_ratio", x, m, "merit", _AGAINST_OUTCOMES),
            ("impact_ratio", c, m, "merit", _AGAINST_OUTCOMES),
        )
    ]


@kernel
def _add_sides(
    query: Ints, cluster: Ints, weight: Floats, member: Flags, v: Floats, y: Floats, to: Floats
) -> None:
    """Add 1, v, y and v·y of each row to its cluster and side, with the weight of its query."""
    for k in range(len(query)):
        w = weight[query[k]]
        if w == 0:
            continue
        side = 1 if member[k] else 0
        of = cluster[query[k]]
        to[of, side, 0] += w
        to[of, side, 1] += w * v[k]
        to[of, side, 2] += w * y[k]
        to[of, side, 3] += w * (v[k] * y[k])


def _ratio(
    name: str,
    top: tuple[Floats, Floats],
    bottom: tuple[Floats, Floats],
    rows: Floats,
    what: str,
    conditions: Conditions,
    left_out: int,
    level: float,
) -> Comparison:
    totals = [float(part.sum()) for part in (*top, *bottom)]
    inside, outside = (
        totals[side] / totals[2 + side] if totals[2 + side] else float("nan") for side in (0, 1)
    )
    parts: dict[str, Any] = {"inside": inside, "outside": outside, "left_out": left_out}
    if not rows.any():
        none = Clustered(float("nan"), null=1.0, reason="no query has both sides")
        return comparison(name, none, conditions, high_is=OVERVALUED, **parts)
    if min(totals) <= 0:
        # A logarithm needs sums above 0 on both sides.
        none = Clustered(float("nan"), null=1.0, reason=f"total {what} is not above 0")
        return comparison(name, none, conditions, high_is=OVERVALUED, **parts)
    signs = (1, -1, -1, 1)
    influence = np.zeros(len(rows))
    with np.errstate(over="ignore", invalid="ignore"):
        for sign, part, total in zip(signs, (*top, *bottom), totals, strict=True):
            influence += sign * part / total
    if not np.isfinite(influence).all():
        none = Clustered(float("nan"), null=1.0, reason=f"total {what} is too close to 0")
        return comparison(name, none, conditions, high_is=OVERVALUED, **parts)
    # A difference of logarithms: the ratio of ratios itself may be too small for a float.
    logs = np.log(totals)
    log_ratio = float(logs[0] - logs[2] - logs[1] + logs[3])
    found = from_influence(
        log_ratio, influence, effective(rows), int(np.count_nonzero(rows)), scale=1.0, level=level
    )
    interval = partial(log_interval, found)
    return comparison(
        name, on_log_scale(found), conditions, high_is=OVERVALUED, interval=interval, **parts
    )
