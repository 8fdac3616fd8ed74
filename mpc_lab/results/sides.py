"""Inference from moments, and what a mode of two sides adds to a headline and to saved sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.inference.estimates import (
    NEVER_TURNED,
    Estimates,
    effective_items,
    estimate,
    most_effective,
)
from mpc_lab.inference.verdicts import LEAST_OVERLAP, MOST_SHOWN_ABOVE, SHOWN_ORDER
from mpc_lab.pairing.moments import Moments, Sides
from mpc_lab.pairing.series import Series, SideSeries
from mpc_lab.results.plan import Plan
from mpc_lab.results.schema import SUM_FAMILIES
from mpc_lab.vocabulary import CR3, DIRECTIONS, INCONCLUSIVE, PLAIN, VARIANCES, WEIGHED_SUMS

if TYPE_CHECKING:
    from mpc_lab.pairing.measure_sides import TwoSides

Array = NDArray[Any]


def infer(moments: Moments, *, cluster: str, level: float, correction: str = PLAIN) -> Estimates:
    """Estimate every cell of axes (mode, group, threshold).

    Parameters
    ----------
    moments : Moments
        With what CR3 needs, where it is asked for.
    cluster, level
        As of an audit.
    correction : {"plain", "cr3"}
    """
    _check_weighed(moments, cluster, correction)
    by_item = "item" in moments.by
    items = None
    if by_item:
        items = effective_items(
            moments.pairs, moments.squares["inside"], moments.squares["outside"]
        )
    found = estimate(
        moments.pairs,
        moments.center[None, :, None],
        moments.by,
        clusters=moments.clusters,
        cluster=cluster,
        level=level,
        item_effective=items,
        shared_items=_items_recur(moments) if by_item else False,
        most_effective=most_effective(moments),
        owner=moments.owner,
        cr3=moments.cr3 if "query" in moments.cr3 else None,
        corrected=correction == CR3,
    )
    return _with_reasons(moments, found)


def _check_weighed(moments: Moments, cluster: str, correction: str) -> None:
    """Refuse a correction that these sums do not allow."""
    needed = [name for name in VARIANCES[cluster].terms if name in WEIGHED_SUMS]
    if correction == CR3 and not moments.cr3.keys() >= set(needed):
        raise MpcError(
            "correction='cr3' needs what single clusters weigh, which these sums do not hold; use "
            "correction='plain'."
        )


def _with_reasons(moments: Moments, found: Estimates) -> Estimates:
    """Say why there is no mean of two sides where there are pairs."""
    row = moments.two_sided
    if row is None:
        return found
    reason = found.reason.astype(object)
    never = np.isnan(found.estimate[row]) & (moments.pairs[row] > 0)
    reason[row] = np.where(never, NEVER_TURNED, reason[row])
    return replace(found, reason=reason.astype(np.str_))


def _items_recur(moments: Moments) -> Array:
    """Tell where an item is in two units, which makes Σc² larger over items than inside units."""
    whole, inside = moments.by["item"].cc.copy(), moments.by["item_query"].cc
    # Sums of weights round, and so do the counts of two sides, which weights join.
    if moments.weights is not None:
        whole *= 1 - 1e-12
    elif moments.two_sided is not None:
        whole[moments.two_sided] *= 1 - 1e-12
    return np.asarray(whole > inside)


_PLACE = {"": "estimate", "_low": "ci_low", "_high": "ci_high", "_p_value": "p_value"}


def side_variables(plan: Plan, sides: Sequence[TwoSides]) -> dict[str, Array]:
    """Return the effect of place and who was shown where, as (rule, mode, group)."""
    if not sides:
        return {}
    found = [infer(one.place, **plan.inference) for one in sides]
    both = [mode.two_sided or bool(mode.bracket or mode.judged_by) for mode in plan.swept_modes]
    two = [mode.two_sided for mode in plan.swept_modes]
    one = [here and not twice for here, twice in zip(both, two, strict=True)]
    baseline = [label == "baseline" for label in plan.rule_labels]

    def spread(values: list[Array], modes: list[bool], rules: list[bool] | None = None) -> Array:
        """Give each mode the number of its group where it has one."""
        known = np.array(modes)[None, :, None] & np.array(rules or [True])[:, None, None]
        return np.where(known, np.stack(values)[:, None], np.nan)

    cells = {
        f"place_effect{end}": spread([getattr(one, name)[0, :, 0] for one in found], both)
        for end, name in _PLACE.items()
    }
    if any(np.isfinite(compared.overlap).any() for compared in sides):
        cells["place_overlap"] = spread([compared.overlap for compared in sides], two)
        cells["shown_above"] = spread([compared.shown_above for compared in sides], one, baseline)
    # An effect of place without an interval is not estimable.
    known = np.isfinite(cells["place_effect_low"])
    cells["place_effect"] = np.where(known, cells["place_effect"], np.nan)
    return cells


def guarded(cells: dict[str, Array]) -> dict[str, Array]:
    """Take the direction from cells whose pairs were not shown as their words say.

    Parameters
    ----------
    cells : dict of arrays (rule, mode, group)
        ``verdict``, ``verdict_reason`` and, where the log has positions, ``place_overlap`` and
        ``shown_above``.
    """
    if "place_overlap" not in cells:
        return {}
    guard = (cells["place_overlap"] < LEAST_OVERLAP) | (cells["shown_above"] > MOST_SHOWN_ABOVE)
    guard &= np.isin(cells["verdict"], DIRECTIONS)
    return {
        "verdict": np.where(guard, INCONCLUSIVE, cells["verdict"]),
        "verdict_reason": np.where(guard, SHOWN_ORDER, cells["verdict_reason"]),
    }


def side_sums(by_rule: Sequence[Moments], own: Sequence[Moments]) -> dict[str, Array]:
    """Return the sums of a mode of two sides as they are saved.

    Inside cells of places those over clusters are known only at the thresholds of the headline,
    from a second pass; the sums of the cells are known at all.
    """
    cells = _side_cells(by_rule)
    if by_rule[0].cells is not None:
        cells["cells"] = np.stack([part.cells for part in by_rule if part.cells is not None])
        at_headline = _side_cells(own) if own else {}
        cells |= {f"headline_{name}": values[..., 0] for name, values in at_headline.items()}
        for name in own[0].cr3 if own else ():
            of_mode = [part.cr3[name][part.two_sided, :, 0] for part in own]
            cells[f"headline_{name}_cr3"] = np.stack(of_mode)
    return cells


def share_sums(by_rule: Sequence[Moments]) -> dict[str, Array]:
    """Return what single clusters weigh as it is saved, with what pools need of it."""
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
    return replace(part.with_sides(read_sides(values, rule)), cr3=cr3)


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
