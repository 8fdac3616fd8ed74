"""From sums to the labelled results: the one place where plain arrays get names."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mpc_lab import __version__
from mpc_lab.inference.estimates import Estimates, estimate
from mpc_lab.inference.verdicts import verdicts
from mpc_lab.results.plan import Plan
from mpc_lab.results.schema import curve_dataset, headline_dataset, moments_dataset

if TYPE_CHECKING:
    from mpc_lab.pairing.moments import Moments
    from mpc_lab.ranking import Ranking

_LIBRARIES = ("numpy", "pandas", "scipy", "statsmodels", "numba", "xarray", "narwhals")
_CORRECTIONS = {
    "naive": "none; t with P - 1 degrees of freedom, P pairs",
    "query": "Q/(Q - 1), Q clusters with a pair; t with G - 1 degrees of freedom, G effective",
}

Array = NDArray[Any]


def infer(plan: Plan, moments: Moments) -> Estimates:
    """Estimate every cell of axes (mode, group, threshold)."""
    return estimate(
        moments.pairs,
        moments.center[None, :, None],
        moments.by,
        clusters=moments.clusters,
        cluster=plan.cluster,
        level=plan.level,
    )


def headline(
    plan: Plan, by_rule: Mapping[str, Moments], epsilon: Array, wanted: Array
) -> xr.Dataset:
    """Label the cells at each group's own threshold.

    Parameters
    ----------
    plan : Plan
    by_rule : mapping of rule to Moments
        At the one threshold of each group.
    epsilon, wanted : float64 arrays (rule, group)
        Thresholds and the pairs asked for.
    """
    rules = [_headline_of_rule(plan, moments) for moments in by_rule.values()]
    cells: dict[str, Any] = {name: _stack([rule[name] for rule in rules]) for name in rules[0]}
    families = {name[4:]: cells.pop(name) for name in list(cells) if name.startswith("by: ")}
    shape = cells["n_pairs"].shape
    cells["epsilon"] = np.broadcast_to(epsilon.T[:, :, None], shape)
    cells["tie_inflation"] = np.where(
        cells["n_pairs"] > 0, cells["n_pairs"] / wanted.T[:, :, None], np.nan
    )
    cells["std_error_by"] = families
    return headline_dataset(
        plan.groups, plan.scoring_rules, plan.pairing_modes, cells, {"level": plan.level}
    )


def _headline_of_rule(plan: Plan, moments: Moments) -> dict[str, Array]:
    """Return arrays (mode, group) of the modes that the plan names."""
    found = infer(plan, moments)
    cells = {name: values[:, :, 0] for name, values in _shared_cells(moments, found).items()}
    low, high = cells["ci_low"], cells["ci_high"]
    verdict, reason = _verdicts(plan, low, high, found.reason[:, :, 0])
    cells |= {
        "p_adjusted": cells["p_value"],
        "ci_low_adjusted": low,
        "ci_high_adjusted": high,
        "ci_cut": np.zeros(low.shape, dtype=bool),
        "verdict": verdict,
        "verdict_reason": reason,
    }
    for family, std_error in found.std_error_by.items():
        cells[f"by: {family}"] = std_error[:, :, 0]
    return {name: values[_mode_rows(plan)] for name, values in cells.items()}


def _verdicts(plan: Plan, low: Array, high: Array, why: Array) -> tuple[Array, Array]:
    """Judge ``matched`` with its mirror image, and let ``mirrored`` carry the same verdict."""
    verdict, reason = verdicts(low[0], high[0], low[1], high[1], tolerance=plan.tolerance)
    rows = [(verdict, np.where(verdict == "not estimable", why[0], reason))] * 2
    if len(low) == 3:
        verdict, reason = verdicts(low[2], high[2], low[2], high[2], tolerance=plan.tolerance)
        rows.append((verdict, np.where(verdict == "not estimable", why[2], reason)))
    return np.stack([row[0] for row in rows]), np.stack([row[1] for row in rows])


def curve(plan: Plan, by_rule: Mapping[str, Moments], grid: Array) -> xr.Dataset:
    """Label the cells at every threshold of the grid."""
    rules = []
    for moments in by_rule.values():
        cells = _shared_cells(moments, infer(plan, moments))
        rules.append({name: values[_mode_rows(plan)] for name, values in cells.items()})
    stacked = {name: _stack([rule[name] for rule in rules]) for name in rules[0]}
    return curve_dataset(
        plan.groups, grid, plan.scoring_rules, plan.pairing_modes, stacked, {"level": plan.level}
    )


def _shared_cells(moments: Moments, found: Estimates) -> dict[str, Array]:
    return {
        "estimate": found.estimate,
        "std_error": found.std_error,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "p_value": found.p_value,
        "n_pairs": moments.pairs,
        "n_queries": moments.queries,
        "n_items": moments.items,
        "n_effective": found.n_effective,
        "dof": found.dof,
    }


def _mode_rows(plan: Plan) -> list[int]:
    return [("matched", "mirrored", "adjacent").index(mode) for mode in plan.pairing_modes]


def _stack(by_rule: list[Array]) -> Array:
    """Turn (mode, group, …) of each rule into (group, …, rule, mode)."""
    stacked = np.stack(by_rule)
    return np.moveaxis(np.moveaxis(stacked, 0, -1), 0, -1)


def moments(plan: Plan, by_rule: Mapping[str, Moments], modes: tuple[str, ...]) -> xr.Dataset:
    """Label the sums, so that saved audits can be added up."""
    parts = list(by_rule.values())
    cells: dict[str, Any] = {
        "edges": np.stack([part.edges for part in parts]),
        "center": np.stack([part.center for part in parts]),
    }
    for name in ("pairs", "queries", "clusters", "items"):
        cells[name] = np.stack([getattr(part, name) for part in parts])
    for family in parts[0].by:
        for square in ("cc", "cu", "uu"):
            cells[f"{family}_{square}"] = np.stack(
                [getattr(part.by[family], square) for part in parts]
            )
    return moments_dataset(plan.groups, plan.scoring_rules, modes, cells)


def attributes(plan: Plan, ranking: Ranking) -> dict[str, int | float | str]:
    """Return what makes the audit reproducible; the fingerprint of the rows is added on saving."""
    family = {"adjust": plan.adjust, "over": "groups × scoring rules of one pairing mode"}
    return {
        "options": plan.to_json(),
        "versions": json.dumps(_versions()),
        "family": json.dumps(family),
        "columns": json.dumps(_columns(ranking), default=str),
        "cluster": plan.cluster,
        "correction": _CORRECTIONS[plan.cluster],
        "level": plan.level,
        "adjust": plan.adjust,
        "threshold": repr(plan.threshold),
        "n_rows": ranking.n_rows,
        "n_queries": ranking.n_queries,
        "n_items": ranking.n_items,
        "n_dropped": ranking.dropped,
    }


def _versions() -> dict[str, str]:
    found = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return {"mpc_lab": __version__, "python": platform.python_version(), **found}


def _columns(ranking: Ranking) -> dict[str, Any]:
    return {name: getattr(ranking.columns, name) for name in ranking.columns.__dataclass_fields__}
