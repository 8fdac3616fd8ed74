"""From sums to estimates, verdicts and the labelled tree.

The one place where plain arrays get names. Until then they have the axes (rule, mode, group); the
modes are all those that were summed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.inference.bands import covariance, sup_t_band
from mpc_lab.inference.estimates import (
    NEVER_ALIKE,
    NEVER_TURNED,
    NOT_POOLED,
    Estimates,
    effective_items,
    estimate,
    most_effective,
    owner_variance,
)
from mpc_lab.inference.verdicts import (
    Interval,
    adjust,
    bracket,
    bracket_p,
    floor_variance,
    mde,
    verdicts,
    withhold_directions,
    without_contradictions,
)
from mpc_lab.pairing.moments import (
    Moments,
    Scaling,
    Together,
    UnitWeights,
)
from mpc_lab.results.plan import Plan
from mpc_lab.results.schema import AuditBase, curve_dataset, headline_dataset
from mpc_lab.results.sums import moments_by_rule, read_headline_sides
from mpc_lab.results.wording import Primary
from mpc_lab.vocabulary import (
    CR3,
    MATCHED,
    NOT_ESTIMABLE,
    PLAIN,
    VARIANCES,
    WEIGHED_SUMS,
    Mode,
    verdict_modes,
)

if TYPE_CHECKING:
    from mpc_lab.pairing.measure_sides import TwoSides


Array = NDArray[Any]
# How pairs of thresholds move together: some groups at a time, with axes (mode, group, bin, bin).
Cross = Callable[[int], list[tuple[Array, Together]]]


def infer(moments: Moments, *, cluster: str, level: float, correction: str = PLAIN) -> Estimates:
    """Estimate every cell of axes (mode, group, threshold).

    Parameters
    ----------
    moments : Moments
        With what CR3 needs, where it is asked for.
    cluster, level
        As in an audit.
    correction : {"plain", "cr3"}
    """
    if moments.query_sides:
        return _infer_by_query(moments, cluster=cluster, level=level, correction=correction)
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


def _infer_by_query(moments: Moments, *, cluster: str, level: float, correction: str) -> Estimates:
    """Estimate where a mode of two sides has the sums of queries alone, and no others."""
    row = moments.two_sided
    assert row is not None
    sided = replace(
        moments.of_modes([moments.modes[row].name]),
        by={name: moments.by[name][[row]] for name in ("naive", "query")},
        squares={},
        cr3={},
        query_sides=False,
    )
    found = infer(sided, cluster="naive" if cluster == "naive" else "query", level=level)
    if len(moments.modes) == 1:
        return found
    rest = replace(moments, query_sides=False)
    whole = infer(rest, cluster=cluster, level=level, correction=correction)
    here = (np.arange(len(moments.modes)) == row)[:, None, None]

    def joined(one: Any, other: Any) -> Any:
        if isinstance(one, dict):
            missing = np.full(found.estimate.shape, np.nan)
            return {name: joined(one[name], other.get(name, missing)) for name in one}
        return np.where(here, other, one)

    return Estimates(
        **{
            field.name: joined(getattr(whole, field.name), getattr(found, field.name))
            for field in fields(Estimates)
        }
    )


def _check_weighed(moments: Moments, cluster: str, correction: str) -> None:
    """Refuse a correction that these sums do not allow."""
    needed = [name for name in VARIANCES[cluster].terms if name in WEIGHED_SUMS]
    if correction == CR3 and not moments.cr3.keys() >= set(needed):
        raise MpcError(
            "correction='cr3' must have the sums of single clusters; got sums without them. Use "
            "correction='plain'."
        )


def _with_reasons(moments: Moments, found: Estimates) -> Estimates:
    """Say why there is no mean of two sides, or no interval, where there are pairs."""
    row = moments.two_sided
    if row is None:
        return found
    reason = found.reason.astype(object)
    never = np.isnan(found.estimate[row]) & (moments.pairs[row] > 0)
    reason[row] = np.where(never, NEVER_TURNED, reason[row])
    if moments.cells is not None:
        shown = moments.cells[0].reshape(2, -1, *moments.cells.shape[2:]).sum(axis=1)
        reason[row] = np.where(never & (shown > 0).all(axis=0), NEVER_ALIKE, reason[row])
        # Sums of cells alone, such as those of a pool, do not tell what single queries add.
        unknown = ~never & np.isnan(found.n_effective[row]) & (moments.pairs[row] > 0)
        reason[row] = np.where(unknown, NOT_POOLED, reason[row])
    return replace(found, reason=reason.astype(np.str_))


def _items_recur(moments: Moments) -> Array:
    """Tell where some item is in two units, which makes Σc² larger over items than inside units."""
    whole, inside = moments.by["item"].cc.copy(), moments.by["item_query"].cc
    # Sums of weights are rounded, and so are counts of two sides, which are joined by weights.
    if moments.weights is not None:
        whole *= 1 - 1e-12
    elif moments.two_sided is not None:
        whole[moments.two_sided] *= 1 - 1e-12
    return np.asarray(whole > inside)


def judge(
    modes: Sequence[Mode],
    by_rule: Sequence[Estimates],
    *,
    method: str,
    level: float,
    tolerance: float | None,
    seed: int,
    correlations: Sequence[Array] | None = None,
) -> dict[str, Array]:
    """Adjust the cells of each rule and mode over its groups, and give each its verdict.

    What-if rules are families of their own: asking for one changes nothing about the others.

    Parameters
    ----------
    modes : sequence of Mode
    by_rule : sequence of Estimates
        At one threshold: arrays (mode, group, 1).
    method, level, tolerance, seed
        As in an audit.
    correlations : sequence of float64 arrays (cell, cell), optional
        For ``romano_wolf``: for each mode, the correlation of the cells, rule after rule.
    """
    stacked = {
        name: np.stack([getattr(found, name)[..., 0] for found in by_rule])
        for name in ("p_value", "estimate", "std_error", "dof", "reason")
    }
    names = ("p_adjusted", "ci_low_adjusted", "ci_high_adjusted", "ci_cut")
    n_rules, n_modes, n_groups = stacked["p_value"].shape
    cells: dict[str, Array] = {
        name: np.empty((n_rules, n_modes, n_groups), dtype=bool if name == "ci_cut" else float)
        for name in names
    }
    for rule, mode in np.ndindex(n_rules, n_modes):
        here = slice(rule * n_groups, (rule + 1) * n_groups)
        found = adjust(
            stacked["p_value"][rule, mode],
            stacked["estimate"][rule, mode],
            stacked["std_error"][rule, mode],
            stacked["dof"][rule, mode],
            method=method,
            level=level,
            correlation=None if correlations is None else correlations[mode][here, here],
            seed=seed,
        )
        for name in names:
            cells[name][rule, mode] = getattr(found, name)
    judged = bracketed(modes, cells, stacked["reason"], tolerance)
    by_mode = [
        bracket_p(_sides(cells["p_adjusted"], rows), _sides(stacked["estimate"], rows))
        for rows in _verdict_rows(modes)
    ]
    return cells | judged | {"bracket_p_adjusted": np.stack(by_mode, axis=1)}


def bracketed(
    modes: Sequence[Mode], cells: dict[str, Array], why: Array, tolerance: float | None
) -> dict[str, Array]:
    """Judge each cell by the bracket of the modes that its verdict rests on.

    Parameters
    ----------
    modes : sequence of Mode
        All modes that the verdicts of the others rest on.
    cells : dict of str to array (rule, mode, group)
        ``ci_low_adjusted``, ``ci_high_adjusted``, ``ci_cut``.
    why : array of str (rule, mode, group)
        Why a cell is not estimable.
    tolerance : float, optional
    """
    low, high, cut = (cells[name] for name in ("ci_low_adjusted", "ci_high_adjusted", "ci_cut"))
    found: dict[str, list[Array]] = {
        name: [] for name in ("verdict", "verdict_reason", "bracket_low", "bracket_high")
    }
    for mode, rows in enumerate(_verdict_rows(modes)):
        sides = [Interval(low[:, row], high[:, row], cut[:, row]) for row in rows]
        hull = bracket(sides)
        verdict, reason = verdicts(sides, tolerance=tolerance)
        absent = _why_not(modes, why, mode, rows)
        found["verdict"].append(verdict)
        found["verdict_reason"].append(np.where(verdict == NOT_ESTIMABLE, absent, reason))
        found["bracket_low"].append(hull.low)
        found["bracket_high"].append(hull.high)
    return {name: np.stack(by_mode, axis=1) for name, by_mode in found.items()}


def _verdict_rows(modes: Sequence[Mode]) -> list[list[int]]:
    """Return, for each mode, the indices of the modes that its verdict rests on."""
    names = [mode.name for mode in modes]
    return [[names.index(name) for name in verdict_modes(mode.name)] for mode in modes]


def _sides(cells: Array, rows: Sequence[int]) -> list[Array]:
    return [cells[:, row] for row in rows]


def _why_not(modes: Sequence[Mode], why: Array, mode: int, rows: Sequence[int]) -> Array:
    """Return why a cell is not estimable: its own reason, or else that of the other side."""
    reason = why[:, mode]
    for row in rows:
        named = np.char.add(f"{modes[row].name}: ", why[:, row])
        reason = np.where((reason == "") & (why[:, row] != ""), named, reason)
    return np.asarray(reason)


def family_size(by_rule: Sequence[Estimates]) -> Array:
    """Return how many cells of each rule and mode are estimable, at least 1: array (rule, mode)."""
    estimable = np.stack([found.estimable[..., 0] for found in by_rule])
    return np.asarray(np.maximum(1, estimable.sum(axis=2)))


def weakest_sides(modes: Sequence[Mode], size: Array, *along: Array) -> list[Array]:
    """Return the largest size among the sides of each verdict, with the values of that side.

    Arrays (rule, mode, group); NaN where a side is not estimable.
    """
    found = []
    for rows in _verdict_rows(modes):
        # argmax treats NaN as the largest.
        at = np.argmax(size[:, rows], axis=1)[:, None]
        found.append([np.take_along_axis(cells[:, rows], at, axis=1) for cells in (size, *along)])
    return [np.concatenate(parts, axis=1) for parts in zip(*found, strict=True)]


def count_sides(modes: Sequence[Mode]) -> Array:
    """Return the number of intervals that the verdict of each mode rests on: array (1, mode, 1)."""
    return np.array([len(rows) for rows in _verdict_rows(modes)])[None, :, None]


def headline(
    plan: Plan,
    own: Sequence[Moments],
    epsilon: Array,
    wanted: Array,
    *,
    correlations: Sequence[Array] | None = None,
    weights: Sequence[UnitWeights] = (),
    flags: Mapping[str, Array] | None = None,
    sides: Sequence[TwoSides] = (),
    complements: tuple[Sequence[tuple[int, int]], Sequence[int]] = ((), ()),
) -> xr.Dataset:
    """Label the cells at each group's own threshold.

    Parameters
    ----------
    plan : Plan
    own : sequence of Moments
        For each rule, at the one threshold of each group.
    epsilon, wanted : float64 arrays (rule, group)
        Thresholds, and the pairs asked for.
    correlations : sequence of arrays, optional
        See :func:`judge`.
    weights : sequence of UnitWeights, optional
        For each rule, what single queries weigh, which sums alone do not tell.
    flags : mapping of bool arrays (rule, group), optional
        What the thresholds fall short of, by the name of the variable.
    sides : sequence of TwoSides, optional
        For each rule, the comparison of both sides of a tie.
    complements : two sequences, optional
        Pairs of groups, by number, such that every row is in exactly one; and the rules that this
        applies to. See :func:`without_contradictions`.
    """
    found = [infer(moments, **plan.inference) for moments in own]
    cells: dict[str, Any] = {
        name: np.stack([values[..., 0] for values in by_rule])
        for name, by_rule in _shared_cells(own, found).items()
    }
    cells |= judge(
        plan.swept_modes,
        found,
        method=plan.adjust,
        level=plan.level,
        tolerance=plan.tolerance,
        seed=plan.seed,
        correlations=correlations,
    )
    cells |= side_variables(plan, sides)
    cells |= withhold_directions(cells)
    cells["verdict"], cells["verdict_reason"] = without_contradictions(
        cells["verdict"], cells["verdict_reason"], *complements
    )
    cells |= _power_cells(plan, found)
    cells |= _heavy_cells(own, weights)
    found_pairs = cells["n_pairs"][:, [plan.swept_modes.index(MATCHED)]]
    ties = np.where(found_pairs > 0, found_pairs / wanted[:, None], np.nan)
    of_threshold = {"epsilon": epsilon[:, None], "tie_inflation": ties}
    of_threshold |= {name: values[:, None] for name, values in (flags or {}).items()}
    if plan.primary is not None:
        of_threshold["exploratory"] = _exploratory(plan, plan.primary)
    for name, values in of_threshold.items():
        cells[name] = np.broadcast_to(values, cells["n_pairs"].shape)
    ladder = {
        family: np.stack([estimates.std_error_by[family][..., 0] for estimates in found])
        for family in found[0].std_error_by
    }
    named: dict[str, Any] = {name: _by_group(plan, values) for name, values in cells.items()}
    named["std_error_by"] = {name: _by_group(plan, values) for name, values in ladder.items()}
    return headline_dataset(
        plan.groups, plan.rule_labels, plan.pairing_modes, named, {"level": plan.level}
    )


def _heavy_cells(own: Sequence[Moments], weights: Sequence[UnitWeights]) -> dict[str, Array]:
    """Return the share of the heaviest query in the pairs, and in the query variance."""
    if not weights:
        return {}
    shares, squares = [], []
    for moments, of_rule in zip(own, weights, strict=True):
        query = moments.by["query"]
        delta = moments.by["naive"].cu / np.maximum(moments.pairs, 1)
        total = query.at(delta)
        # Squares that are only rounding errors of equal sums do not make a query heavy.
        known = total > 1e-12 * query.uu
        share = of_rule.largest_square / np.where(known, total, 1.0)
        squares.append(np.where(known, np.minimum(share, 1.0), np.nan)[..., 0])
        some = moments.pairs > 0
        shares.append(np.where(some, of_rule.largest_share, np.nan)[..., 0])
    return {"largest_query_share": np.stack(shares), "heavy_share": np.stack(squares)}


def _exploratory(plan: Plan, primary: Primary) -> Array:
    """Return for (rule, mode, 1) whether it differs from the one that was declared."""
    others = [
        [(rule, mode.name) != primary.cell for mode in plan.swept_modes]
        for rule in plan.rule_labels
    ]
    return np.array(others)[..., None]


def _power_cells(plan: Plan, found: Sequence[Estimates]) -> dict[str, Array]:
    std_error, dof = (
        np.stack([getattr(estimates, name)[..., 0] for estimates in found])
        for name in ("std_error", "dof")
    )
    error, freedom = weakest_sides(plan.swept_modes, std_error, dof)
    how: dict[str, Any] = {"level": plan.level, "sides": count_sides(plan.swept_modes)}
    cells = {
        "mde": mde(error, freedom, **how),
        "mde_adjusted": mde(error, freedom, tests=family_size(found)[..., None], **how),
    }
    cells["variance_from"] = np.stack([estimates.variance_from[..., 0] for estimates in found])
    if owner_variance(found[0].variance_by) is not None:
        cells["share_items"] = np.stack([_share_items(estimates)[..., 0] for estimates in found])
    return cells


def _share_items(found: Estimates) -> Array:
    """Return the share of the variance that would remain with infinitely many queries."""
    over_items = owner_variance(found.variance_by)
    assert over_items is not None
    floor = floor_variance(over_items, found.variance_by["both"])
    total = floor + found.variance_by["query"]
    usable = found.estimable & (total > 0)
    return np.where(usable, floor / np.where(usable, total, 1.0), np.nan)


def curve(
    plan: Plan,
    on_grid: Sequence[Moments],
    grid: Array,
    in_edges: Sequence[Array],
    cross: Cross | None,
) -> xr.Dataset:
    """Label the cells at every threshold of the grid, with the band over it.

    Parameters
    ----------
    plan : Plan
    on_grid : sequence of Moments
        For each rule, at the thresholds of the grid.
    grid : float64 array (epsilon,)
    in_edges : sequence of int64 arrays (group, epsilon)
        For each rule, the index of the grid among the thresholds that `cross` is about.
    cross : callable or None
        From the number of a rule to how its thresholds move together; None: no band.
    """
    found = [infer(moments, **plan.inference) for moments in on_grid]
    cells = {name: np.stack(by_rule) for name, by_rule in _shared_cells(on_grid, found).items()}
    if cross is not None:
        bands = [
            _bands(plan, estimates, moments, indices, cross(rule))
            for rule, (estimates, moments, indices) in enumerate(
                zip(found, on_grid, in_edges, strict=True)
            )
        ]
        cells["band_low"] = np.stack([low for low, _ in bands])
        cells["band_high"] = np.stack([high for _, high in bands])
    named = {name: _by_group(plan, values) for name, values in cells.items()}
    attrs: dict[str, Any] = {
        "level": plan.level,
        "dyads_once": int(any(moments.dyads_once for moments in on_grid)),
    }
    if cross is not None:
        attrs["left_out_of_band"] = json.dumps(_left_out(plan, grid, named["band_low"]))
    return curve_dataset(plan.groups, grid, plan.rule_labels, plan.pairing_modes, named, attrs)


def _left_out(plan: Plan, grid: Array, band: Array) -> list[dict[str, Any]]:
    """Name the points that are not estimable, and that the band is not about."""
    left_out = []
    for g, group in enumerate(plan.groups):
        for r, rule in enumerate(plan.rule_labels):
            for m, mode in enumerate(plan.pairing_modes):
                points = grid[np.isnan(band[g, :, r, m])].tolist()
                if points:
                    cell = {"group": group, "scoring_rule": rule, "pairing_mode": mode}
                    left_out.append(cell | {"epsilon": points})
    return left_out


def _bands(
    plan: Plan,
    found: Estimates,
    moments: Moments,
    indices: Array,
    together: list[tuple[Array, Together]],
) -> tuple[Array, Array]:
    low, high = np.full(moments.pairs.shape, np.nan), np.full(moments.pairs.shape, np.nan)
    pairs, weight = moments.pairs.astype(float), moments.total_weight
    delta = moments.by["naive"].cu / np.maximum(pairs, 1.0)
    scaling = None
    if moments.sides is not None and moments.two_sided is not None:
        scaling = moments.sides.scaled(pairs[moments.two_sided])
    for groups, sums in together:
        for k, group in enumerate(groups):
            for mode in plan.mode_rows:
                own = None
                if mode == moments.two_sided:
                    if scaling is None:
                        continue  # without a second pass there are only estimates
                    own = Scaling(scaling.alpha[:, group], scaling.eta[:, group])
                moving = covariance(
                    weight[mode, group],
                    delta[mode, group],
                    *sums.of(mode, k, own, indices[group]),
                )
                band = sup_t_band(
                    found.estimate[mode, group],
                    found.std_error[mode, group],
                    found.dof[mode, group],
                    moving,
                    level=plan.level,
                    seed=plan.seed,
                )
                low[mode, group], high[mode, group] = band.low, band.high
    return low, high


def _shared_cells(by_rule: Sequence[Moments], found: Sequence[Estimates]) -> dict[str, list[Array]]:
    cells: dict[str, list[Array]] = {
        name: [getattr(estimates, name) for estimates in found]
        for name in ("estimate", "std_error", "ci_low", "ci_high", "p_value", "n_effective", "dof")
    }
    for name in ("pairs", "queries", "items"):
        cells[f"n_{name}"] = [getattr(moments, name) for moments in by_rule]
    return cells


def _by_group(plan: Plan, values: Array) -> Array:
    """Turn (rule, mode, group, …) into (group, …, rule, mode) of the wanted modes."""
    return np.moveaxis(np.asarray(values)[:, plan.mode_rows], (0, 1), (-2, -1))


def mode_rows(audit: AuditBase) -> list[int]:
    """Return the indices of the headline's modes among those of its moments."""
    names = headline_moments(audit)[0].mode_names
    return [names.index(mode) for mode in audit.headline["pairing_mode"].values.tolist()]


def headline_moments(audit: AuditBase) -> list[Moments]:
    """Return the moments of each scoring rule at the one threshold of each group."""
    if audit._own is not None:
        return list(audit._own)
    own = audit.headline["epsilon"].transpose("scoring_rule", "group", ...).values[:, :, 0]
    kept = []
    for moments, epsilon in zip(moments_by_rule(audit), own, strict=True):
        # A group without a threshold comes first, below every gap.
        sought = np.where(np.isnan(epsilon), -np.inf, epsilon)
        index = [[np.searchsorted(row, e)] for row, e in zip(moments.edges, sought, strict=True)]
        kept.append(moments.at(np.array(index, dtype=np.int64)))
    if audit.moments is not None:
        kept = [read_headline_sides(audit.moments, k, part) for k, part in enumerate(kept)]
    return kept


# ---- modes of two sides

_PLACE = {"": "estimate", "_low": "ci_low", "_high": "ci_high", "_p_value": "p_value"}


def side_variables(plan: Plan, sides: Sequence[TwoSides]) -> dict[str, Array]:
    """Return the effect of place, and which side was shown where, as (rule, mode, group)."""
    if not sides:
        return {}
    both = [mode.two_sided or bool(mode.bracket or mode.judged_by) for mode in plan.swept_modes]
    two = [mode.two_sided for mode in plan.swept_modes]
    one = [here and not twice for here, twice in zip(both, two, strict=True)]
    baseline = [label == "baseline" for label in plan.rule_labels]

    def spread(values: list[Array], modes: list[bool], rules: list[bool] | None = None) -> Array:
        """Give each mode the number of its group where it has one."""
        known = np.array(modes)[None, :, None] & np.array(rules or [True])[:, None, None]
        return np.where(known, np.stack(values)[:, None], np.nan)

    cells: dict[str, Array] = {}
    if plan.place_effect:
        found = [infer(one.place, **plan.inference) for one in sides]
        cells = {
            f"place_effect{end}": spread([getattr(one, name)[0, :, 0] for one in found], both)
            for end, name in _PLACE.items()
        }
        # An effect of place without an interval is not estimable.
        known = np.isfinite(cells["place_effect_low"])
        cells["place_effect"] = np.where(known, cells["place_effect"], np.nan)
    if any(np.isfinite(compared.overlap).any() for compared in sides):
        cells["place_overlap"] = spread([compared.overlap for compared in sides], two)
        cells["shown_above"] = spread([compared.shown_above for compared in sides], one, baseline)
    return cells
