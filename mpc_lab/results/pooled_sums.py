"""The arithmetic of pooling: align the sums of several audits, and add them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mpc_lab.errors import MpcError
from mpc_lab.pairing.item_tables import Table, squared
from mpc_lab.pairing.moments import Moments, Quadratic
from mpc_lab.results.extras import cross_sums

if TYPE_CHECKING:
    from mpc_lab.results.assemble import Cross
    from mpc_lab.results.audit import Audit

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """One audit, and where the groups, rules and thresholds of the pool stand in it."""

    audit: Audit
    moments: list[Moments]
    groups: list[int | None]
    rules: list[int]


def sums_of(audit: Audit) -> xr.Dataset:
    """Return the labelled sums of an audit."""
    if audit.moments is None:
        raise MpcError("An audit without its sums cannot be pooled; run mpc.audit again.")
    return audit.moments


def sum_rule(parts: list[Part], rule: int, edges: Floats) -> Moments:
    """Add the sums of all audits under one rule at the shared thresholds."""
    names = ("naive", "query", *_additive(parts))
    n_modes = min(len(part.moments[0].pairs) for part in parts)
    n_groups = len(parts[0].groups)
    shape = (n_modes, n_groups, len(edges))
    counts = {name: np.zeros(shape, dtype=np.int64) for name in ("pairs", "queries", "clusters")}
    center = np.array([_center(parts, rule, group) for group in range(n_groups)])
    by = {name: Quadratic(*(np.zeros(shape) for _ in range(3))) for name in names}
    for part in parts:
        moments = part.moments[part.rules[rule]]
        for group, own in enumerate(part.groups):
            if own is None:
                continue
            index = np.searchsorted(moments.edges[own], edges)
            shift = float(moments.center[own] - center[group])
            for name, total in counts.items():
                total[:, group] += getattr(moments, name)[:n_modes, own, index]
            for name in names:
                moved = recentred(moments.by[name][:n_modes, own, index], shift)
                by[name].cc[:, group] += moved.cc
                by[name].cu[:, group] += moved.cu
                by[name].uu[:, group] += moved.uu
    return Moments(
        edges=np.tile(edges, (n_groups, 1)),
        center=center,
        pairs=counts["pairs"],
        queries=counts["queries"],
        clusters=counts["clusters"],
        items=np.zeros(shape, dtype=np.int64),
        by=by,
    )


def _additive(parts: list[Part]) -> list[str]:
    """Return the families beside naive and query whose clusters lie inside one query."""
    inside = ("item_query", "dyad_query")
    return [
        name
        for name in inside
        if all(name in moments.by for part in parts for moments in part.moments)
    ]


def recentred(sums: Quadratic, shift: float) -> Quadratic:
    """Return sums of U + shift·c in place of U."""
    return Quadratic(
        sums.cc, sums.cu + shift * sums.cc, sums.uu + 2 * shift * sums.cu + shift**2 * sums.cc
    )


def _center(parts: list[Part], rule: int, group: int) -> float:
    """Return the center of the first audit that has the group."""
    for part in parts:
        own = part.groups[group]
        if own is not None:
            return float(part.moments[part.rules[rule]].center[own])
    return 0.0


def with_items(
    parts: list[Part],
    tables: list[dict[str, xr.Dataset]],
    rule: int,
    moments: Moments,
    edges: Floats,
) -> Moments:
    """Add up the tables of items and of dyads, then square them."""
    shape = moments.pairs.shape
    items = np.zeros(shape, dtype=np.int64)
    squares = {side: np.zeros(shape) for side in ("inside", "outside")}
    by = {name: Quadratic(*(np.zeros(shape) for _ in range(3))) for name in ("item", "dyad")}
    for mode in range(shape[0]):
        for group in range(shape[1]):
            at = (mode, group)
            for name, kind in (("item", "items"), ("dyad", "dyads")):
                found = squared(
                    _joined(parts, tables, kind, rule, mode, group, moments, edges), len(edges)
                )
                for square in ("cc", "cu", "uu"):
                    getattr(by[name], square)[at] = getattr(found.quadratic, square)
                if name == "item":
                    items[at] = found.clusters
                    squares["inside"][at], squares["outside"][at] = found.inside, found.outside
    return replace(moments, items=items, by=moments.by | by, squares=squares)


def _joined(
    parts: list[Part],
    tables: list[dict[str, xr.Dataset]],
    kind: str,
    rule: int,
    mode: int,
    group: int,
    moments: Moments,
    edges: Floats,
) -> Table:
    found = []
    for part, table in zip(parts, tables, strict=True):
        own = part.groups[group]
        if own is None:
            continue
        rows = _rows(table[kind], part.rules[rule], mode, own)
        mine = part.moments[part.rules[rule]]
        bins = np.searchsorted(edges, mine.edges[own])[rows["bin"]]
        kept = bins < len(edges)
        shift = float(mine.center[own] - moments.center[group])
        names, pairs = table[kind]["name"].values, rows["pairs"][kept].astype(np.float64)
        one, other = names[rows["one"][kept]], names[rows["other"][kept]]
        found.append(
            Table(
                np.minimum(one, other),
                np.maximum(one, other),
                rows["outside"][kept].astype(bool),
                bins[kept],
                pairs,
                rows["sums"][kept] + shift * pairs,
            )
        )
    return Table(*(np.concatenate(columns) for columns in zip(*found, strict=True)))


def _rows(table: xr.Dataset, rule: int, mode: int, group: int) -> dict[str, NDArray[Any]]:
    """Return the rows of one cell: they stand together, in the order of rule, group and mode."""
    here = (
        (table["rule"].values == rule)
        & (table["mode"].values == mode)
        & (table["group"].values == group)
    )
    columns = ("one", "other", "outside", "bin", "pairs", "sums")
    return {name: table[name].values[here] for name in columns}


def pooled_pairs(parts: list[Part], rule: int, n_groups: int) -> Floats:
    """Return the pairs of each group in all audits, with no limit on the gap."""
    total = np.zeros(n_groups)
    for part in parts:
        found = sums_of(part.audit)["all_pairs"].values[part.rules[rule]]
        total += [0.0 if own is None else found[own] for own in part.groups]
    return total


def pooled_cross(parts: list[Part], edges: Floats, n_modes: int, n_rules: int) -> Cross | None:
    """Add up how the shared thresholds move together; None where an audit has not kept it."""
    kept = [part.audit.extras.get("cross", None) for part in parts]
    kept = [
        cross_sums(part.audit) if found is None else found
        for part, found in zip(parts, kept, strict=True)
    ]
    if any(found is None for found in kept):
        return None
    totals = [_cross_of_rule(parts, kept, rule, edges, n_modes) for rule in range(n_rules)]
    groups = np.arange(len(parts[0].groups))
    return lambda rule: [(groups, totals[rule])]


def _cross_of_rule(
    parts: list[Part], kept: list[Any], rule: int, edges: Floats, n_modes: int
) -> Quadratic:
    n_groups = len(parts[0].groups)
    total = [np.zeros((n_modes, n_groups, len(edges), len(edges))) for _ in range(3)]
    for part, found in zip(parts, kept, strict=True):
        moments = part.moments[part.rules[rule]]
        for group, own in enumerate(part.groups):
            if own is None:
                continue
            index = np.searchsorted(moments.edges[own], edges)
            cc, cu, uu = (
                found[square].values[part.rules[rule], :n_modes, own][:, index][:, :, index]
                for square in ("cc", "cu", "uu")
            )
            shift = float(moments.center[own]) - _center(parts, rule, group)
            total[0][:, group] += cc
            total[1][:, group] += cu + shift * cc
            total[2][:, group] += uu + shift * (cu + np.swapaxes(cu, -1, -2)) + shift**2 * cc
    return Quadratic(*total)
