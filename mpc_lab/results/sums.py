"""Sums as a saved audit holds them: labelled, and read back as plain moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.pairing.moments import Moments, PairWeights, Quadratic, Sides
from mpc_lab.pairing.series import Series, SideSeries
from mpc_lab.pairing.terms import PAIRS, terms_of
from mpc_lab.results.base import settings
from mpc_lab.results.plan import Plan
from mpc_lab.results.schema import SUM_FAMILIES, AuditBase, moments_dataset
from mpc_lab.vocabulary import ITEM, MODES, WEIGHED_SUMS

Array = NDArray[Any]


def label_sums(
    plan: Plan,
    by_rule: Sequence[Moments],
    grid: Array,
    all_pairs: Array,
    correlations: Sequence[Array] | None = None,
    capped: tuple[Array, tuple[float, float]] | None = None,
    own: Sequence[Moments] = (),
) -> xr.Dataset:
    """Label the sums, so that saved audits can be added up and judged again."""
    cells: dict[str, Any] = {
        "grid": grid,
        "all_pairs": all_pairs,
        "edges": np.stack([part.edges for part in by_rule]),
        "center": np.stack([part.center for part in by_rule]),
    }
    for name in ("pairs", "queries", "clusters", "items"):
        cells[name] = np.stack([getattr(part, name) for part in by_rule])
    for family in by_rule[0].by:
        for square in ("cc", "cu", "uu"):
            cells[f"{family}_{square}"] = np.stack(
                [getattr(part.by[family], square) for part in by_rule]
            )
    for side in by_rule[0].squares:
        cells[f"{side}_cc"] = np.stack([part.squares[side] for part in by_rule])
    cells |= _weight_sums(by_rule)
    cells |= side_sums(by_rule, own) | share_sums(by_rule)
    if correlations is not None:
        cells["correlation"] = np.stack(list(correlations))
    attrs: dict[str, object] = {}
    if capped is not None:
        cells["capped"], (low, high) = capped
        attrs = {"bounds_low": low, "bounds_high": high, "pairs_cap": plan.pairs_cap}
    if any(part.query_sides for part in own):
        attrs["query_sides"] = 1
    modes = [mode.name for mode in plan.swept_modes]
    return moments_dataset(plan.groups, plan.rule_labels, modes, cells, attrs)


def _weight_sums(by_rule: Sequence[Moments]) -> dict[str, Array]:
    """Return the additive sums of weighted pairs, in the form that is saved."""
    found = [part.weights for part in by_rule if part.weights is not None]
    if not found:
        return {}
    cells = {
        "pair_weight": [one.weight for one in found],
        "pair_total": [one.total for one in found],
    }
    for square in ("cc", "cu", "uu"):
        cells[f"pair_{square}"] = [getattr(one.alone, square) for one in found]
    return {name: np.stack(values) for name, values in cells.items()}


def _read_weights(values: Mapping[str, Array], rule: int, by_query: bool) -> PairWeights | None:
    """Return the additive sums of weighted pairs under one rule, if they were saved."""
    if "pair_weight" not in values:
        return None
    alone = Quadratic(*(values[f"pair_{square}"][rule] for square in ("cc", "cu", "uu")))
    return PairWeights(values["pair_weight"][rule], values["pair_total"][rule], alone, by_query)


def moments_by_rule(audit: AuditBase) -> list[Moments]:
    """Return the moments of each scoring rule at all their thresholds."""
    found = audit.moments
    if found is None:
        raise MpcError(
            "The audit must hold its sums; got one without. Run mpc.audit again on the log."
        )
    modes = tuple(MODES[name] for name in found["pairing_mode"].values.tolist())
    values = {str(name): found[name].values for name in found.data_vars}
    by_query = terms_of(settings(audit)).estimand != PAIRS
    return [
        Moments(
            modes=modes,
            edges=values["edges"][rule],
            center=values["center"][rule],
            pairs=values["pairs"][rule],
            queries=values["queries"][rule],
            clusters=values["clusters"][rule],
            items=values["items"][rule],
            by={
                family: Quadratic(
                    values[f"{family}_cc"][rule],
                    values[f"{family}_cu"][rule],
                    values[f"{family}_uu"][rule],
                )
                for family in SUM_FAMILIES
                if f"{family}_cc" in values
            },
            squares={
                side: values[f"{side}_cc"][rule]
                for side in ("inside", "outside")
                if f"{side}_cc" in values
            },
            sides=read_sides(values, rule),
            cells=values["cells"][rule] if "cells" in values else None,
            owner=str(settings(audit).get("owner", ITEM)),
            weights=_read_weights(values, rule, by_query),
            **read_shares(values, rule),
        )
        for rule in range(found.sizes["scoring_rule"])
    ]


def side_sums(by_rule: Sequence[Moments], own: Sequence[Moments]) -> dict[str, Array]:
    """Return the sums of a mode of two sides, in the form that is saved.

    Inside cells of places, sums over clusters are known only at the thresholds of the headline,
    from a second pass; the sums of the cells are known at all thresholds.
    """
    cells = _side_cells(by_rule)
    if by_rule[0].cells is not None:
        cells["cells"] = np.stack([part.cells for part in by_rule if part.cells is not None])
        at_headline = _side_cells(own) if own else {}
        cells |= {f"headline_{name}": values[..., 0] for name, values in at_headline.items()}
        for name in own[0].cr3 if own and not own[0].query_sides else ():
            of_mode = [part.cr3[name][part.two_sided, :, 0] for part in own]
            cells[f"headline_{name}_cr3"] = np.stack(of_mode)
    return cells


def share_sums(by_rule: Sequence[Moments]) -> dict[str, Array]:
    """Return what single clusters weigh, in the form that is saved and that pools need."""
    cells = {
        f"{name}_cr3": np.stack([part.cr3[name] for part in by_rule]) for name in by_rule[0].cr3
    }
    series = [part.series for part in by_rule if part.series is not None]
    if len(series) < len(by_rule):
        return cells
    most = max(one.heavy.shape[1] for one in series)
    heavy = [one.with_room(most).heavy for one in series]
    cells |= {
        "query_powers": np.stack([one.powers for one in series]),
        "query_heavy": np.stack(heavy),
    }
    sides = [one.sides for one in series if one.sides is not None]
    if sides:
        most = max(one.heavy.shape[1] for one in sides)
        cells["sided_powers"] = np.stack([one.powers for one in sides])
        cells["sided_heavy"] = np.stack([one.with_room(most).heavy for one in sides])
    return cells


def read_shares(values: dict[str, Array], rule: int) -> dict[str, Any]:
    """Return what single clusters weigh under one rule, where it was saved."""
    found: dict[str, Any] = {
        "cr3": {
            name: values[f"{name}_cr3"][rule] for name in WEIGHED_SUMS if f"{name}_cr3" in values
        }
    }
    if "query_powers" in values:
        sides = None
        if "sided_powers" in values:
            sides = SideSeries(values["sided_powers"][rule], values["sided_heavy"][rule])
        found["series"] = Series(values["query_powers"][rule], values["query_heavy"][rule], sides)
    return found


def read_headline_sides(saved: xr.Dataset, rule: int, part: Moments) -> Moments:
    """Return the moments of a headline with the sums that a second pass had left."""
    if "headline_side_weight" not in saved:
        return part
    names = [str(name) for name in saved.data_vars if str(name).startswith("headline_")]
    values = {name.removeprefix("headline_"): saved[name].values[..., None] for name in names}
    cr3 = {name: known.copy() for name, known in part.cr3.items()}
    for name, known in cr3.items():
        if f"{name}_cr3" in values:
            known[part.two_sided] = values[f"{name}_cr3"][rule]
    by_query = bool(saved.attrs.get("query_sides", 0))
    return replace(part.with_sides(read_sides(values, rule)), cr3=cr3, query_sides=by_query)


def _side_cells(by_rule: Sequence[Moments]) -> dict[str, Array]:
    """Return the sums of a mode of two sides, where all rules have them."""
    found = [part.sides for part in by_rule if part.sides is not None]
    if len(found) < len(by_rule):
        return {}
    cells = {"side_weight": [s.weight for s in found], "side_sum": [s.total for s in found]}
    cells |= {f"sides_{name}": [s.by[name] for s in found] for name in found[0].by}
    cells |= {f"sides_{name}": [s.squares[name] for s in found] for name in found[0].squares}
    return {name: np.stack(values) for name, values in cells.items()}


def read_sides(values: dict[str, Array], rule: int) -> Sides | None:
    """Return the sums of a mode of two sides under one rule, where they were saved."""
    if "side_weight" not in values:
        return None
    named = {name.removeprefix("sides_"): values[name][rule] for name in values if "sides_" in name}
    return Sides(
        values["side_weight"][rule],
        values["side_sum"][rule],
        {name: named[name] for name in SUM_FAMILIES if name in named},
        {name: named[name] for name in ("inside", "outside") if name in named},
    )
