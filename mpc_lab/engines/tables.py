"""The sums of every unit in every headline cell: how cells move together, and the bootstrap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mpc_lab.engines.measure import NO_THRESHOLD
from mpc_lab.engines.sources import Logs, Source
from mpc_lab.pairing.arrays import Floats, Ints
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.moments import Moments
from mpc_lab.pairing.rows import pair_rows
from mpc_lab.pairing.windows import sums_by_unit
from mpc_lab.scoring import Rule

_UNITS_AT_ONCE = 1 << 16


class UnitSums(NamedTuple):
    """The units with a pair in one cell, ascending, their pairs and their sums of differences."""

    unit: Ints
    pairs: Floats
    sums: Floats


def correlations(
    source: Source,
    rules: Sequence[Rule],
    modes: Sequence[str],
    epsilon: Floats,
    own: Sequence[Moments],
) -> list[Floats]:
    """Return how the cells of each mode move together over units.

    Cells are counted rule after rule, and in each the groups in their order.

    Parameters
    ----------
    source : Source
    rules : sequence of Rule
    modes : sequence of str
        All modes that `own` is about, in its order.
    epsilon : float64 array (rule, group)
        The threshold of each cell; a cell without one has no pair.
    own : sequence of Moments
        For each rule, at these thresholds.
    """
    found = []
    for m, mode in enumerate(modes):
        pairs = np.concatenate([part.pairs[m, :, 0] for part in own]).astype(np.float64)
        centred = np.concatenate([part.by["naive"].cu[m, :, 0] for part in own])
        center = np.concatenate([part.center for part in own])
        mean = center + centred / np.maximum(pairs, 1.0)
        task = partial(_squares, mode, epsilon, mean)
        start = np.zeros((3, len(mean), len(mean)))
        squares = source.together(rules, task, "correlating groups", start)
        found.append(_correlation(pairs, squares))
    return found


def unit_sums(logs: Logs, mode: str, epsilon: Floats) -> list[UnitSums]:
    """Return the sums of each cell, rule after rule and in each the groups in their order.

    Parameters
    ----------
    logs : iterator of (rule, groups, log)
    mode : {"matched", "mirrored", "adjacent"}
    epsilon : float64 array (rule, group)
        The threshold of each cell; a cell without one has no pair.
    """
    return [
        _of_cell(log, k, mode, float(epsilon[rule, group]))
        for rule, groups, log in logs
        for k, group in enumerate(groups)
    ]


def _squares(mode: str, epsilon: Floats, mean: Floats, logs: Logs) -> Floats:
    """Return Σcc′, ΣcU′ and ΣUU′ over units, U centred at the mean of its cell."""
    cells = unit_sums(logs, mode, epsilon)
    n_units = 1 + max((int(cell.unit[-1]) for cell in cells if len(cell.unit)), default=-1)
    total = np.zeros((3, len(cells), len(cells)))
    for pairs, sums in dense_blocks(cells, n_units):
        residual = sums - pairs * mean
        total[0] += pairs.T @ pairs
        total[1] += pairs.T @ residual
        total[2] += residual.T @ residual
    return total


def _correlation(pairs: Floats, squares: Floats) -> Floats:
    from mpc_lab.inference.correlation import correlation, covariance

    # The sums are centred at the mean already, so nothing is left to subtract.
    return correlation(covariance(np.maximum(pairs, 1.0), np.zeros(len(pairs)), *squares))


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
