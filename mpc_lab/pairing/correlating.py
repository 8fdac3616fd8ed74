"""The sums of every unit in every headline cell: how cells move together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.close import count_within
from mpc_lab.pairing.kernels import ONE
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.measure import NO_THRESHOLD, words_of
from mpc_lab.pairing.moments import Moments, Scaling, SideTable
from mpc_lab.pairing.pairs import sums_by_side, sums_by_unit
from mpc_lab.pairing.sided import Centred, unit_sides
from mpc_lab.pairing.walk import Logs, Source
from mpc_lab.scoring import Rule
from mpc_lab.vocabulary import Floats, Ints, Mode

_UNITS_AT_ONCE = 1 << 16
# Visiting a pair for all groups costs about as much as this many rows of one group's windows.
_VISITS_A_ROW = 2
_UNITS_VISITED = 1 << 13


class UnitSums(NamedTuple):
    """The units with a pair in one cell, ascending, their pairs and their sums of differences."""

    unit: Ints
    pairs: Floats
    sums: Floats


def covariances(
    source: Source,
    rules: Sequence[Rule],
    modes: Sequence[Mode],
    epsilon: Floats,
    own: Sequence[Moments],
) -> list[Floats]:
    """Return how the estimates of each mode vary together over units.

    Cells are counted rule after rule, and in each the groups in their order.

    Parameters
    ----------
    source : Source
    rules : sequence of Rule
    modes : sequence of Mode
        All modes that `own` is about, in its order.
    epsilon : float64 array (rule, group)
        The threshold of each cell; a cell without one has no pair.
    own : sequence of Moments
        For each rule, at these thresholds.
    """
    found = []
    for m, mode in enumerate(modes):
        pairs = np.concatenate([part.pairs[m, :, 0] for part in own]).astype(np.float64)
        weight = np.concatenate([part.total_weight[m, :, 0] for part in own])
        centred = np.concatenate([part.by["naive"].cu[m, :, 0] for part in own])
        center = np.concatenate([part.center for part in own])
        count = np.where(pairs > 0, weight, 1.0)
        mean = np.nan_to_num(center + centred / np.maximum(pairs, 1.0))
        scaling = _scalings(own) if mode.two_sided else None
        tables = [_of_differences(part) for part in own] if mode.two_sided else []
        task = partial(_products, mode, epsilon, mean, scaling, tables)
        products = np.zeros((len(count), len(count)))
        if (epsilon >= 0).any():
            products = source.together(rules, task, "correlating groups", products)
        found.append(products / np.outer(count, count))
    return found


def _of_differences(own: Moments) -> SideTable | None:
    """Return the table of moments for differences that are not centred."""
    if own.table is None:
        return None
    line = own.table.line.copy()
    line[..., -1] += own.center
    return own.table._replace(offset=own.table.offset + own.center, line=line)


def _scalings(own: Sequence[Moments]) -> list[list[Scaling]]:
    """Return what joins the two sides of each cell, by rule and group; 0 where a side is empty."""
    found = []
    for part in own:
        assert part.sides is not None
        assert part.two_sided is not None
        scaling = part.sides.scaled(part.pairs[part.two_sided].astype(np.float64))
        alpha, eta = (np.nan_to_num(values[..., 0]) for values in scaling)
        found.append([Scaling(alpha[:, g], eta[:, g]) for g in range(alpha.shape[1])])
    return found


def unit_sums(
    logs: Logs,
    mode: Mode,
    epsilon: Floats,
    scaling: list[list[Scaling]] | None = None,
    tables: Sequence[SideTable | None] = (),
) -> list[UnitSums]:
    """Return the sums of each cell, rule after rule and in each the groups in their order.

    Parameters
    ----------
    logs : iterator of (rule, groups, log)
    mode : Mode
    epsilon : float64 array (rule, group)
        The threshold of each cell; a cell without one has no pair.
    scaling : list of Scaling, by rule and group, optional
        What joins the sides of a mode of two.
    tables : sequence of SideTable, by rule, optional
        What its pairs add where they are compared inside cells of places.
    """
    found = []
    for rule, groups, log in logs:
        table = tables[rule] if len(tables) else None
        for k, group in enumerate(groups):
            own = None if scaling is None else scaling[rule][group]
            place = None if table is None else table.of_groups(np.array([group]))
            found.append(_of_cell(log, k, mode, float(epsilon[rule, group]), own, place))
    return found


def _products(
    mode: Mode,
    epsilon: Floats,
    mean: Floats,
    scaling: list[list[Scaling]] | None,
    tables: Sequence[SideTable | None],
    logs: Logs,
) -> Floats:
    """Return ΣUU′ over units, U centred at the mean of its cell."""
    head = list(islice(logs, 2))
    if len(head) == 1 and scaling is not None and _can_visit_once(head[0][2], epsilon):
        rule, _, log = head[0]
        table = tables[rule] if len(tables) else None
        return _products_of_sides(log, epsilon[rule], mean, scaling[rule], table)
    cells = unit_sums(chain(head, logs), mode, epsilon, scaling, tables)
    n_units = 1 + max((int(cell.unit[-1]) for cell in cells if len(cell.unit)), default=-1)
    total = np.zeros((len(cells), len(cells)))
    for pairs, sums in dense_blocks(cells, n_units):
        residual = sums - pairs * mean
        total += residual.T @ residual
    return total


def _can_visit_once(log: Log, epsilon: Floats) -> bool:
    """Whether to visit the close pairs once for all groups costs less than windows for each."""
    most = _VISITS_A_ROW * len(log.row) * epsilon.shape[1]
    widest = float(np.fmax.reduce(epsilon, axis=None, initial=NO_THRESHOLD))
    return bool(count_within(widest, log, 0, len(log.units) - 1) <= most)


def _products_of_sides(
    log: Log, epsilon: Floats, mean: Floats, scaling: list[Scaling], table: SideTable | None
) -> Floats:
    """Return ΣUU′ over units for a mode of two sides, all groups of a log in one visit of pairs."""
    n_groups, n_units = len(epsilon), len(log.units) - 1
    alpha, eta = (np.array([one[k] for one in scaling]) for k in range(2))
    thresholds = np.where(epsilon >= 0, epsilon, NO_THRESHOLD)
    if table is None:
        line = np.zeros((2, n_groups, 4))
        line[..., 0] = 1.0
        parts = np.ones((2, n_groups)), np.zeros((2, n_groups))
        table = SideTable(*parts, line, np.full(n_groups, thresholds.max()), False)
    total = np.zeros((n_groups, n_groups))
    for start in range(0, n_units, _UNITS_VISITED):
        end = min(start + _UNITS_VISITED, n_units)
        residual = np.empty((end - start, n_groups))
        for word, here in words_of(n_groups):
            own = table.of_groups(np.arange(here.start, here.stop))
            centred = [Centred(np.zeros(here.stop - here.start), own)]
            (units,), _ = unit_sides(log, word, thresholds[here], centred, start, end)
            pairs = (alpha[here] * units[..., 0]).sum(axis=2)
            sums = (alpha[here] * (units[..., 1] - eta[here] * units[..., 0])).sum(axis=2)
            residual[:, here] = sums - pairs * mean[here]
        total += residual.T @ residual
    return total


def _of_cell(
    log: Log,
    group: int,
    mode: Mode,
    epsilon: float,
    scaling: Scaling | None,
    table: SideTable | None,
) -> UnitSums:
    mine = (log.masks[group // 64] >> np.uint64(group % 64)) & ONE
    epsilon = epsilon if epsilon >= 0 else NO_THRESHOLD
    if scaling is None:
        pairs, sums = sums_by_unit(log, mine != 0, mode.side, epsilon)
    else:
        if table is None:
            sides = sums_by_side(log, mine != 0, mode, epsilon)
        else:
            alone = replace(log, masks=mine[None])
            centred = [Centred(np.zeros(1), table)]
            (units,), _ = unit_sides(alone, 0, np.array([epsilon]), centred, 0, len(log.units) - 1)
            sides = [(units[:, 0, side, 0], units[:, 0, side, 1]) for side in range(2)]
        pairs = sum(a * c for a, (c, _) in zip(scaling.alpha, sides, strict=True))
        sums = sum(a * (u - e * c) for a, e, (c, u) in zip(*scaling, sides, strict=True))
    some = np.flatnonzero(pairs)
    return UnitSums(some, pairs[some], sums[some])


def dense_blocks(cells: list[UnitSums], n_units: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield tables (unit, cell) of pairs and of sums, for a run of units at a time."""
    for start in range(0, n_units, _UNITS_AT_ONCE):
        size = min(_UNITS_AT_ONCE, n_units - start)
        pairs, sums = np.zeros((size, len(cells))), np.zeros((size, len(cells)))
        for k, cell in enumerate(cells):
            first, last = np.searchsorted(cell.unit, [start, start + size])
            here = cell.unit[first:last] - start
            pairs[here, k], sums[here, k] = cell.pairs[first:last], cell.sums[first:last]
        yield pairs, sums
