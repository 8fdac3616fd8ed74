"""The sums of every unit in every headline cell: how cells move together, and the bootstrap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mpc_lab.engines.measure import NO_THRESHOLD
from mpc_lab.engines.sources import MemorySource
from mpc_lab.pairing.arrays import Floats, Ints
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.rows import pair_rows
from mpc_lab.pairing.windows import sums_by_unit
from mpc_lab.scoring import Rule

_UNITS_AT_ONCE = 1 << 16


class UnitSums(NamedTuple):
    """The units with a pair in one cell, ascending, their pairs and their sums of differences."""

    unit: Ints
    pairs: Floats
    sums: Floats


def unit_sums(
    source: MemorySource, rules: Sequence[Rule], mode: str, epsilon: Floats
) -> list[UnitSums]:
    """Return the sums of each cell, rule after rule and in each the groups in their order.

    Parameters
    ----------
    source : MemorySource
    rules : sequence of Rule
    mode : {"matched", "mirrored", "adjacent"}
    epsilon : float64 array (rule, group)
        The threshold of each cell; a cell without one has no pair.
    """
    cells: list[UnitSums] = []
    for rule, thresholds in zip(rules, epsilon, strict=True):
        for groups, walk in source.walks(rule):
            for k, group in enumerate(groups):
                cells.append(_of_cell(walk.log, k, mode, float(thresholds[group])))
    return cells


def _of_cell(log: Log, group: int, mode: str, epsilon: float) -> UnitSums:
    bit = np.uint64(1) << np.uint64(group % 64)
    member = np.asarray(log.masks[group // 64] & bit != 0)
    epsilon = epsilon if epsilon >= 0 else NO_THRESHOLD
    if mode != "adjacent":
        pairs, sums = sums_by_unit(log, member, mode, epsilon)
        some = np.flatnonzero(pairs)
        return UnitSums(some, pairs[some], sums[some])
    i, j = pair_rows(log, member, mode, epsilon)
    d = log.outcome[i] - log.outcome[j]
    unit = np.searchsorted(log.starts[log.units], i, side="right") - 1
    first = np.flatnonzero(np.diff(unit, prepend=-1))
    pairs = np.diff(first, append=len(unit)).astype(np.float64)
    sums = np.add.reduceat(d, first) if len(first) else np.empty(0)
    return UnitSums(unit[first], pairs, sums)


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


def cell_correlation(cells: list[UnitSums], n_units: int) -> Floats:
    """Return the correlation of the means of cells over units."""
    from mpc_lab.inference.correlation import correlation, covariance

    total = np.array([cell.pairs.sum() for cell in cells])
    mean = np.array([cell.sums.sum() for cell in cells]) / np.where(total > 0, total, np.nan)
    mean = np.nan_to_num(mean)
    cc, cd, dd = (np.zeros((len(cells), len(cells))) for _ in range(3))
    for pairs, sums in dense_blocks(cells, n_units):
        residual = sums - pairs * mean
        cc += pairs.T @ pairs
        cd += pairs.T @ residual
        dd += residual.T @ residual
    # The sums are centred at the mean already, so nothing is left to subtract.
    return correlation(covariance(np.maximum(total, 1.0), np.zeros(len(cells)), cc, cd, dd))
