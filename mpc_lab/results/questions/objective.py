"""What the lists are worth under each scoring rule, labelled."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from mpc_lab.results.base import AuditBase, need_rows, settings

_NAMES = {
    "dcg": "mean discounted cumulative gain over queries",
    "ndcg": "mean normalised discounted cumulative gain over queries",
}
_PARTS = {
    "": "{}",
    "_std_error": "standard error, clustered by query: {}",
    "_change": "paired change against the logged scores: {}",
    "_change_low": "lower end of the interval of the change: {}",
    "_change_high": "upper end of the interval of the change: {}",
}


def objective(audit: AuditBase) -> xr.Dataset:
    """Return DCG and NDCG under each rule; see :attr:`mpc_lab.Audit.objective`."""
    from mpc_lab.objective.ndcg import change_between, query_objective

    ranking = need_rows(audit, "objective")
    level = float(settings(audit)["level"])
    before = query_objective(ranking)
    rules = audit.headline["scoring_rule"].values.tolist()
    found: dict[str, Any] = {
        f"{name}{part}": np.empty((len(audit.groups), len(rules)))
        for name in _NAMES
        for part in _PARTS
    }
    unchanged = change_between(ranking, before, before, level=level).flat()
    for r, rule in enumerate(rules):
        for g, group in enumerate(audit.groups):
            scores = None if audit._scores is None else audit._scores(rule, group)
            cell = unchanged
            if scores is not None:
                after = query_objective(ranking, scores)
                cell = change_between(ranking, before, after, level=level).flat()
            for name, values in found.items():
                values[g, r] = cell[name]
    dims = ("group", "scoring_rule")
    variables = {
        f"{name}{part}": (dims, found[f"{name}{part}"], {"long_name": words.format(meaning)})
        for name, meaning in _NAMES.items()
        for part, words in _PARTS.items()
    }
    attrs = {
        "level": level,
        "n_queries": ranking.n_queries,
        "n_without_ideal": before.n_without_ideal,
        "n_single": before.n_single,
    }
    return xr.Dataset(variables, {dim: audit.headline[dim] for dim in dims}, attrs)
