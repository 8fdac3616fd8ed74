"""A second sweep, once the sums of all pairs are known: what one unit alone changes.

How much a unit pulls the mean of all pairs towards itself depends on its share of them, and its sum
about that mean on the mean; both are known only after the first sweep. The same sweep can tell how
the sums up to two thresholds move together over units.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.bookings import (
    CORRECTED,
    LARGEST_SHARE,
    LARGEST_SQUARE,
    N_WEIGHED,
    Weighing,
    no_bins,
)
from mpc_lab.pairing.log import Log, Tally
from mpc_lab.pairing.modes import Layout
from mpc_lab.pairing.moments import Moments, Together, UnitWeights, fold_rows
from mpc_lab.pairing.series import (
    MOST_HEAVY,
    MOST_HEAVY_SIDES,
    N_POWERS,
    N_SIDE_POWERS,
    Series,
    SideSeries,
    list_heavy,
)
from mpc_lab.pairing.sweep import book_block, make_bookings, n_twins, products_of_rows
from mpc_lab.pairing.walk import Walk
from mpc_lab.vocabulary import Floats, Ints


class Weighed(NamedTuple):
    """What a second sweep found.

    Attributes
    ----------
    units : UnitWeights
    series : Series or None
        What weighs units again where sums are pooled; None where not asked for.
    together : Together or None
        How thresholds move together; None where not asked for.
    """

    units: UnitWeights
    series: Series | None
    together: Together | None


def weigh_units(walk: Walk, layout: Layout, moments: Moments, *, curve: bool = False) -> Weighed:
    """Sweep a log once for what single units weigh.

    Parameters
    ----------
    walk : Walk
    layout : Layout
    moments : Moments
        For the layout's modes, groups and thresholds. A mode of two sides that goes by places is
        not weighed: it has no sums over units yet.
    curve : bool
        Whether to find as well what pools need, and how thresholds move together.
    """
    goal = _goal(layout, moments)
    slots, twins = goal[0].shape, goal[2].shape
    n_bins = layout.n_bins
    shapes = [(*slots, 1), (*twins, 1)]
    if curve:
        crossed = n_twins(layout) if not layout.by_place else 0
        shapes += [
            (*slots, N_POWERS),
            (*twins, N_SIDE_POWERS),
            (len(layout.sides), layout.n_groups, n_bins, n_bins, 3),
            (crossed, 3, n_bins, n_bins, 4),
        ]
    sizes = [int(np.prod(shape)) for shape in shapes]
    largest = np.zeros((slots[0] + twins[0], n_bins, 2))
    start = Tally(np.zeros(sum(sizes)), largest, np.zeros((0, 5)))
    task = partial(_weigh_block, layout, goal, curve)
    label = "sweeping for the band" if curve else "weighing queries"
    found = walk.total(task, label, start)
    parts = [
        part.reshape(shape)
        for part, shape in zip(np.split(found.sums, np.cumsum(sizes)[:-1]), shapes, strict=True)
    ]
    corrected = np.concatenate([part[..., 0] for part in parts[:2]])
    scale = moments.scale
    share, square = np.moveaxis(found.largest, -1, 0)
    units = UnitWeights(
        scale**2 * _by_mode(layout, corrected),
        _by_mode(layout, share),
        scale**2 * _by_mode(layout, square),
    )
    if not curve:
        return Weighed(units, None, None)
    series = _series(layout, parts[2], parts[3], found.kept)
    return Weighed(units, series, _together(layout, *parts[4:]))


def add_weights(moments: Moments, found: UnitWeights) -> Moments:
    """Return moments with what single units change; what was known of other modes stays."""
    known = moments.cr3.get("query", np.full(moments.pairs.shape, np.nan))
    weighed = ~np.isnan(found.largest_share)
    corrected = np.where(weighed, found.corrected, known)
    return replace(moments, cr3=moments.cr3 | {"query": corrected})


def _goal(layout: Layout, moments: Moments) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return weights and means of slots; pairs of a mode of two sides, weights and means of sides.

    Rows of sums that are not a mode of their own have no weight.
    """
    n_rows, n_groups, n_bins = len(layout.sides), layout.n_groups, layout.n_bins
    weight, mean = np.zeros((2, n_rows, n_groups, n_bins))
    for mode, row in enumerate(layout.rows.of_mode):
        if row >= 0:
            weight[row] = moments.total_weight[mode]
            mean[row] = moments.by["naive"].cu[mode] / np.maximum(moments.pairs[mode], 1)
    slots = (n_rows * n_groups, n_bins)
    pairs, side_weight, side_mean = np.zeros((0, n_bins)), np.zeros((2, 0, 0)), np.zeros((2, 0, 0))
    if moments.sides is not None and moments.two_sided is not None and not layout.by_place:
        pairs = moments.pairs[moments.two_sided].astype(np.float64)
        side_weight, side_mean = moments.sides.weight, np.nan_to_num(moments.sides.means)
    return weight.reshape(slots), mean.reshape(slots), pairs, side_weight, side_mean


def _weigh_block(
    layout: Layout,
    goal: tuple[Floats, Floats, Floats, Floats, Floats],
    curve: bool,
    log: Log,
    first: int,
    last: int,
) -> Tally:
    weight, mean, pairs, side_weight, side_mean = goal
    kept, of_sides = (weight.shape, pairs.shape) if curve else ((0, 0), (0, 0))
    weighing = Weighing(
        weight,
        mean,
        np.zeros((*weight.shape, N_WEIGHED)),
        pairs,
        np.ascontiguousarray(side_weight),
        np.ascontiguousarray(side_mean),
        np.zeros((*pairs.shape, N_WEIGHED)),
        np.zeros((*kept, N_POWERS)),
        np.zeros((*kept, MOST_HEAVY, 2)),
        np.zeros(kept, dtype=np.int64),
        np.zeros((*of_sides, N_SIDE_POWERS)),
        np.zeros((*of_sides, MOST_HEAVY_SIDES, 4)),
        np.zeros(of_sides, dtype=np.int64),
    )
    to = make_bookings(layout, no_bins((0, 0), layout.n_bins), cross=curve, weighing=weighing)
    book_block(layout, log, first, last, to)
    every = np.concatenate([weighing.found, weighing.twin])
    sums = [every[..., CORRECTED]]
    if curve:
        sums += [weighing.powers, weighing.side_powers, to.cross, to.twin_cross]
    heavy = _rows_of_heavy(weighing.heavy, weighing.n_heavy, 0)
    # Cells of a mode of two sides come after those of slots.
    of_two = _rows_of_heavy(weighing.side_heavy, weighing.n_side_heavy, weight.size)
    return Tally(
        np.concatenate([part.ravel() for part in sums]),
        every[..., [LARGEST_SHARE, LARGEST_SQUARE]],
        np.concatenate([heavy, of_two]),
    )


def _rows_of_heavy(heavy: Floats, number: Ints, first: int) -> Floats:
    """Return the heavy units of a block: the cell of each, and up to four values."""
    slot, b, k = np.nonzero(np.arange(heavy.shape[2]) < number[..., None])
    rows = np.zeros((len(slot), 5))
    rows[:, 0] = first + slot * number.shape[1] + b
    rows[:, 1 : 1 + heavy.shape[3]] = heavy[slot, b, k]
    return rows


def _by_mode(layout: Layout, values: Floats) -> Floats:
    """Return an array (slot and group of two sides, bin) as (mode, group, bin)."""
    n_groups, n_rows = layout.n_groups, len(layout.sides)
    by_row = values[: n_rows * n_groups].reshape(n_rows, n_groups, -1)
    twin = values[n_rows * n_groups :]
    unknown = np.full(by_row.shape[1:], np.nan)
    both = twin if len(twin) else unknown
    return np.stack([both if row < 0 else by_row[row] for row in layout.rows.of_mode])


def _series(layout: Layout, powers: Floats, side_powers: Floats, kept: Floats) -> Series:
    """Return what pools need of each mode."""
    shape = (len(layout.sides), layout.n_groups, layout.n_bins)
    size, of_mode = int(np.prod(shape)), list(layout.rows.of_mode)
    by_row = np.moveaxis(powers.reshape(*shape, N_POWERS), -1, 0)
    one_sided = kept[:, 0] < size
    heavy = list_heavy(kept[one_sided, :3], size).reshape(2, -1, *shape)
    sides = None
    if len(side_powers):
        of_sides = kept[~one_sided] - [size, 0, 0, 0, 0]
        listed = list_heavy(of_sides, size // shape[0]).reshape(4, -1, *shape[1:])
        sides = SideSeries(np.moveaxis(side_powers, -1, 0), listed)
    return Series(by_row[:, of_mode], heavy[:, :, of_mode], sides)


def _together(layout: Layout, cross: Floats, twin: Floats) -> Together:
    cc, cu, uu = np.moveaxis(np.cumsum(np.cumsum(cross, axis=2), axis=3), -1, 0)
    of_mode = list(layout.rows.of_mode)
    sides = None
    if len(twin):
        twin = np.moveaxis(np.cumsum(np.cumsum(twin, axis=2), axis=3), (1, 4), (0, 1))
        own = {
            row: np.stack([cc[k], cu[k], np.swapaxes(cu[k], -1, -2), uu[k]])
            for row, k in enumerate(layout.rows.twin)
        }
        sides = fold_rows(products_of_rows(own, twin), thresholds=True)
    return Together(cc[of_mode], cu[of_mode], uu[of_mode], sides)
