"""Inside an aggregate, labelled: the gap by segment of queries and by position in the list."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from mpc_lab.errors import check_epsilon
from mpc_lab.results.base import (
    AuditBase,
    cell_epsilon,
    headline_epsilon,
    need_rows,
    rule_scores,
    settings,
)
from mpc_lab.results.schema import text

_NUMBERS = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "n_effective", "dof")


def by_segment(audit: AuditBase, scoring_rule: str, pairing_mode: str) -> xr.Dataset:
    """Return the headline within each segment; see :meth:`mpc_lab.Audit.by_segment`."""
    from mpc_lab.inference.slices import by_segment as within

    ranking = need_rows(audit, "by_segment")
    level = float(settings(audit)["level"])
    # Scores first: they tell whether there is such a rule. Without a threshold there is no pair.
    cells = [
        (
            group,
            rule_scores(audit, group, scoring_rule, pairing_mode),
            np.nan_to_num(headline_epsilon(audit, group, scoring_rule), nan=-1.0),
        )
        for group in audit.groups
    ]
    found = [
        within(
            ranking,
            group,
            epsilon,
            scores=scores,
            mode=pairing_mode,
            level=level,
        )
        for group, scores, epsilon in cells
    ]
    dims = ("group", "segment")
    variables: dict[str, Any] = {
        name: (dims, np.stack([getattr(one.estimates, name) for one in found])) for name in _NUMBERS
    }
    for name in ("n_pairs", "n_queries"):
        variables[name] = (dims, np.stack([getattr(one, name) for one in found]))
    variables["agree_statistic"] = ("group", np.array([one.statistic for one in found]))
    variables["agree_p_value"] = ("group", np.array([one.p_value for one in found]))
    labels = {"group": text(audit.groups), "segment": text(ranking.segments)}
    attrs = {"level": level, "scoring_rule": scoring_rule, "pairing_mode": pairing_mode}
    return xr.Dataset(variables, labels, attrs)


def by_position(
    audit: AuditBase,
    group: str,
    scoring_rule: str,
    pairing_mode: str,
    epsilon: float | None,
    weights: Any,
) -> xr.Dataset:
    """Return the gap by position; see :meth:`mpc_lab.Audit.by_position`."""
    from mpc_lab.inference import slices
    from mpc_lab.objective.ndcg import position_weights

    options = settings(audit)
    level, cluster = float(options["level"]), str(options["cluster"])
    ranking = need_rows(audit, "by_position")
    scores = rule_scores(audit, group, scoring_rule, pairing_mode)
    if epsilon is None:
        used = cell_epsilon(audit, group, scoring_rule)
    else:
        used = check_epsilon(epsilon, unlimited=True)
    pairs = slices.pair_table(ranking, group, used, scores=scores, mode=pairing_mode)
    worth = position_weights(weights, int(pairs.position.max(initial=1)))
    found = slices.by_position(pairs, level=level)
    weighted = slices.position_weighted(pairs, weights=worth, cluster=cluster, level=level)
    moved = slices.position_sensitivity(pairs, cluster=cluster, level=level)
    variables: dict[str, Any] = {
        name: ("position", getattr(found.estimates, name)) for name in _NUMBERS
    }
    variables["n_pairs"] = ("position", found.n_pairs)
    variables["n_queries"] = ("position", found.n_queries)
    for name in ("estimate", "std_error", "ci_low", "ci_high", "p_value"):
        variables[f"weighted_{name}"] = ((), float(getattr(weighted.estimates, name)))
    variables["positions_left_out"] = ((), weighted.n_left_out)
    variables["gamma_flip"] = ((), moved.flip)
    variables["gamma_slope"] = ((), moved.slope)
    attrs = {"group": group, "scoring_rule": scoring_rule, "pairing_mode": pairing_mode}
    return xr.Dataset(
        variables, {"position": found.position}, {**attrs, "epsilon": used, "level": level}
    )
