"""Pools of logs with positions: which intervals sums over parts give, and how these are saved.

A pool compares both sides inside cells of places with the weights and means of all logs, which no
log knows. So an audit keeps, at the thresholds that a pool may choose, the products over queries
of the sums of its parts: see `mpc_lab.pairing.part_products`. They hold no rows and no queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mpc_lab.errors import MpcError
from mpc_lab.pairing.measure import NO_THRESHOLD
from mpc_lab.pairing.measure_sides import TwoSides, place_moments
from mpc_lab.pairing.moments import Moments, Sides, UnitWeights
from mpc_lab.pairing.part_products import (
    N_FACTORS,
    PartProducts,
    add_products,
    sides_of,
    sum_products,
)
from mpc_lab.pairing.places import N_PARTS
from mpc_lab.pairing.sided import (
    FEWEST_DISTANCES,
    N_PART_SUMS,
    NUMBER,
    PartSums,
    SidedSums,
    mean_table,
    place_table,
)
from mpc_lab.pairing.terms import Quantile, parse_threshold
from mpc_lab.results.base import settings
from mpc_lab.results.sums import moments_by_rule
from mpc_lab.results.wording import columns_of
from mpc_lab.vocabulary import Floats

if TYPE_CHECKING:
    from mpc_lab.results.audit import Audit
    from mpc_lab.results.pooling import Share

PLACES = "places"
NOT_KEPT = (
    "what compares both sides of a tie ({groups}): not all audits have kept it at the threshold of "
    "the pool, so that symmetric pairs have no interval and there is no effect of place. Save them "
    "again with this version and a number as threshold"
)
# A pool's threshold is near those of its audits: kept are the points of the grid from the own one
# divided by this to the first at or beyond this many times it. More pairs than one audit has may
# reach what is asked for much sooner, unless a share of them is asked for.
_NEAR = 2.0
# The dimensions of what is kept, beside those of single values.
_COLUMNS = {
    "cell": ("rule", "group", "epsilon", "units", "queries", "distances"),
    "row": ("row_cell", "part", "sums", "alone"),
    "entry": ("entry_cell", "first", "second", "product"),
}
Products = dict[tuple[int, int, float], PartProducts]
# For each rule and group of a pool.
PooledProducts = list[list[PartProducts | None]]


def goes_by_place(audit: Audit) -> bool:
    """Whether the two sides of a tie go by the places at which items were shown."""
    columns = columns_of(audit.attrs)
    return columns.get("position") is not None and columns.get("examined") is None


def thresholds_kept(audit: Audit) -> list[Floats]:
    """Return, for each rule, the thresholds that a pool may choose: array (threshold, group).

    Below 0 where a group needs fewer.
    """
    own = audit.headline["epsilon"].isel(pairing_mode=0).transpose("scoring_rule", "group").values
    fixed = parse_threshold(str(settings(audit)["threshold"]))
    if isinstance(fixed, float):
        return [np.full((1, own.shape[1]), fixed) for _ in own]
    grid, found = audit.grid, []
    nearest = 1 / _NEAR if isinstance(fixed, Quantile) else 0.0
    for of_rule in own:
        # A group without matched pairs may have others, and matched ones in another log.
        low = np.nan_to_num(of_rule, nan=0.0) * nearest
        high = np.nan_to_num(of_rule, nan=np.inf) * _NEAR
        last = np.searchsorted(grid, high).clip(max=len(grid) - 1)
        near = (grid[:, None] >= low) & (np.arange(len(grid))[:, None] <= last)
        found.append(np.where(near, grid[:, None], NO_THRESHOLD)[near.any(axis=1)])
    return found


def place_sums(audit: Audit, thresholds: Sequence[Floats]) -> Products:
    """Walk the log of an audit for the products of its parts.

    Parameters
    ----------
    audit : Audit
        With a log that can be walked.
    thresholds : sequence of float64 arrays (threshold, group)
        For each rule; none where they are below 0.
    """
    assert audit._walk is not None
    found: Products = {}
    with audit._walk.open() as source:
        cells = zip(audit._walk.rules, moments_by_rule(audit), thresholds, strict=True)
        for number, (rule, moments, wanted) in enumerate(cells):
            for groups, walk in source.walks(rule):
                near = wanted[:, groups]
                near = near[(near >= 0).any(axis=1)]
                for epsilon, parts in zip(
                    near, sum_products(walk, near, moments.center[groups]), strict=True
                ):
                    kept = zip(groups.tolist(), epsilon.tolist(), parts, strict=True)
                    found |= {(number, group, e): one for group, e, one in kept if e >= 0}
    return found


# ---- in a file


def kept_places(audit: Audit) -> xr.Dataset | None:
    """Return what a saved audit keeps for pools inside cells of places; None where it has none."""
    if PLACES in audit._saved:
        return audit._saved[PLACES]
    if audit._walk is None or not goes_by_place(audit):
        return None
    return label_products(place_sums(audit, thresholds_kept(audit)))


def label_products(found: Products) -> xr.Dataset:
    """Return products as they are saved: one row for each part, and for each two of them."""
    every = list(found.values())
    keys = np.array(list(found), dtype=np.float64).reshape(-1, 3)
    of_cell = np.arange(len(every))

    def joined(values: list[Any], shape: tuple[int, ...] = (), kind: Any = np.float64) -> Any:
        return np.concatenate([np.empty((0, *shape), kind), *values]).astype(kind)

    square = (N_FACTORS, N_FACTORS)
    arrays = {
        "rule": keys[:, 0].astype(np.uint8),
        "group": keys[:, 1].astype(np.uint32),
        "epsilon": keys[:, 2],
        "units": np.array([one.units for one in every], dtype=np.int64),
        "queries": np.array([one.queries for one in every], dtype=np.int64),
        "distances": joined([one.distances[None] for one in every], (2, FEWEST_DISTANCES)),
        "row_cell": np.repeat(of_cell, [len(one.part) for one in every]).astype(np.uint32),
        "part": joined([one.part for one in every], kind=np.uint8),
        "sums": joined([one.sums for one in every], (N_PART_SUMS,)),
        "alone": joined([one.alone for one in every], square),
        "entry_cell": np.repeat(of_cell, [len(one.first) for one in every]).astype(np.uint32),
        "first": joined([one.first for one in every], kind=np.uint8),
        "second": joined([one.second for one in every], kind=np.uint8),
        "product": joined([one.product for one in every], square),
    }
    more = {
        "distances": ("side", "distance"),
        "sums": ("sum",),
        "alone": ("factor", "other_factor"),
        "product": ("factor", "other_factor"),
    }
    return xr.Dataset(
        {
            name: ((dim, *more.get(name, ())), arrays[name])
            for dim, names in _COLUMNS.items()
            for name in names
        }
    )


def read_products(saved: xr.Dataset) -> Products:
    """Return products that were saved."""
    try:
        values = {name: saved[name].values for names in _COLUMNS.values() for name in names}
        cells = range(len(values["epsilon"]))
        rows, entries = (
            np.searchsorted(values[name], np.arange(len(cells) + 1))
            for name in ("row_cell", "entry_cell")
        )
        _check_parts(values)
        return {
            (int(values["rule"][k]), int(values["group"][k]), float(values["epsilon"][k])): (
                _read_cell(values, k, slice(*rows[k : k + 2]), slice(*entries[k : k + 2]))
            )
            for k in cells
        }
    except (KeyError, IndexError, ValueError) as error:
        raise MpcError(
            "The sums of places in a saved audit must be those of parts and their products; got "
            "others. Save the audit again."
        ) from error


def _check_parts(values: dict[str, Any]) -> None:
    for name in ("part", "first", "second"):
        if (values[name] >= N_PARTS).any():
            raise ValueError(f"{name} is not a part")


def _read_cell(values: dict[str, Any], k: int, rows: slice, entries: slice) -> PartProducts:
    return PartProducts(
        values["part"][rows].astype(np.int64),
        values["sums"][rows],
        values["alone"][rows],
        values["distances"][k],
        values["first"][entries].astype(np.int64),
        values["second"][entries].astype(np.int64),
        values["product"][entries],
        int(values["units"][k]),
        int(values["queries"][k]),
    )


# ---- in a pool


def pooled_products(
    shares: Sequence[Share], centers: Sequence[Floats], epsilon: Sequence[Floats]
) -> PooledProducts:
    """Add up the products of all audits at a pool's thresholds, for each rule and group.

    None where an audit has not kept them.

    Parameters
    ----------
    shares : sequence of Share
    centers, epsilon : sequences of float64 arrays (group,)
        For each rule of the pool, what its sums are centered at, and its thresholds.
    """
    kept = [_products_of(share, epsilon) for share in shares]
    found: PooledProducts = []
    for rule, (center, wanted) in enumerate(zip(centers, epsilon, strict=True)):
        found.append([])
        for group, threshold in enumerate(wanted):
            parts = []
            for share, products in zip(shares, kept, strict=True):
                own = share.groups[group]
                if own is None:
                    continue
                one = products.get((share.rules[rule], own, float(threshold)))
                there = float(share.moments[share.rules[rule]].center[own])
                parts.append(None if one is None else one.recentre(there - center[group]))
            known = [one for one in parts if one is not None]
            found[-1].append(add_products(known) if len(known) == len(parts) and known else None)
    return found


def _products_of(share: Share, epsilon: Sequence[Floats]) -> Products:
    """Return the products that an audit has saved, or those of its log at a pool's thresholds."""
    audit = share.audit
    if PLACES in audit._saved:
        return read_products(audit._saved[PLACES])
    if audit._walk is None:
        return {}
    wanted = [np.full((1, len(audit.groups)), NO_THRESHOLD) for _ in audit._walk.rules]
    for rule, of_rule in zip(share.rules, epsilon, strict=True):
        for own, threshold in zip(share.groups, of_rule, strict=True):
            if own is not None and not np.isnan(threshold):
                wanted[rule][0, own] = threshold
    return place_sums(audit, wanted)


def label_pooled(products: PooledProducts, epsilon: Floats) -> dict[str, xr.Dataset]:
    """Return what a pool keeps for other pools: the same at its own thresholds (rule, group)."""
    if not products:
        return {}
    found = {
        (rule, group, float(epsilon[rule, group])): one
        for rule, of_rule in enumerate(products)
        for group, one in enumerate(of_rule)
        if one is not None
    }
    return {PLACES: label_products(found)}


def compare_pooled(own: Moments, found: Sequence[PartProducts | None]) -> TwoSides:
    """Compare the two sides of a tie with the weights and means of all logs.

    Parameters
    ----------
    own : Moments
        The pool's, at the one threshold of each group.
    found : sequence of PartProducts or None
        For each group; without them it has no interval.
    """
    known = np.array([one is not None for one in found])
    products = [_NOTHING if one is None else one for one in found]
    parts = _part_sums(products, own)
    combined = parts.combine()
    overlap = np.where(known, combined.overlap, np.nan)
    if own.two_sided is not None:
        own = _with_sides(own, parts, products, known)
    table = place_table(parts)
    # All units with a pair: which of them have one in a cell that counts, sums do not tell.
    units = np.array([one.units for one in products])[:, None]
    nothing = UnitWeights(*np.full((3, 1, len(found), 1), np.nan))
    sided = SidedSums(sides_of(products, table), units, nothing)
    place = replace(place_moments(own, parts, table, sided), query_sides=True)
    weights = UnitWeights(*np.full((3, *own.pairs.shape), np.nan))
    left_out = np.empty((0, 2), dtype=np.int64)
    return TwoSides(own, place, weights, overlap, parts.shown_above, left_out)


def _part_sums(products: Sequence[PartProducts], own: Moments) -> PartSums:
    sums = np.zeros((N_PARTS, len(products), N_PART_SUMS))
    for group, one in enumerate(products):
        sums[one.part, group] = one.sums
    distances = np.stack([one.distances for one in products], axis=1)
    nobody = np.empty((0, 2), np.int64), np.zeros((2, len(products)), np.int64)
    return PartSums(sums, distances, own.edges[:, 0], True, *nobody)


def _with_sides(own: Moments, parts: PartSums, products: list[PartProducts], known: Any) -> Moments:
    """Return a pool's moments with the sums of its mode of two sides, so far as they are known."""
    row = own.two_sided
    assert row is not None
    sides = sides_of(products, mean_table(parts))
    pairs = own.pairs[row, :, 0].astype(np.float64)
    # Without sums of its own, a group keeps its estimate.
    delta = own.by["naive"].cu[row, :, 0] / np.where(pairs > 0, pairs, np.nan)
    here = known[:, None]
    sides = Sides(
        np.where(here, sides.weight, 1.0),
        np.where(here, sides.total, delta[:, None]),
        {name: np.where(here, values, np.nan) for name, values in sides.by.items()},
    )
    counts = {
        "pairs": parts.sums[..., NUMBER].sum(axis=0),
        "queries": [one.queries for one in products],
        "clusters": [one.units for one in products],
    }
    exact = {name: getattr(own, name).copy() for name in counts}
    for name, values in counts.items():
        exact[name][row, known, 0] = np.asarray(values)[known]
    return replace(own, query_sides=True, **exact).with_sides(sides)


_NOTHING = PartProducts(
    np.empty(0, np.int64),
    np.empty((0, N_PART_SUMS)),
    np.empty((0, N_FACTORS, N_FACTORS)),
    np.full((2, FEWEST_DISTANCES), np.inf),
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    np.empty((0, N_FACTORS, N_FACTORS)),
    0,
    0,
)
