"""Turn modes into numbers for kernels: the bins, and in which bin each side books a pair.

A pair is seen in one of three directions: *up*, the group's item has the lower score of the two;
*down*, it has the higher; or it is a *tie*. A *band* is one way to sort distances into bins: sides
that reach as far share it. A *row* of the sums is one side of one mode. A mode of two sides has no
row of its own: its sums are made of three others, which count ties in full, and of the products of
these over clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.weighting import ALIKE, Weighting
from mpc_lab.vocabulary import TIES, Bins, Flags, Floats, Ints, Masks, Mode, Side

UP, DOWN, TIE = range(3)
ALL_PAIRS, NEIGHBOURS = range(2)
# Where a window may begin or end, whatever the threshold: at the first row of a tie, or after its
# last. The ends above by edge come next, then the starts below by edge.
TIE_START, TIE_END, N_PLAIN = range(3)


class PairBins(NamedTuple):
    """Where a sweep books a pair.

    Attributes
    ----------
    edges : float64 array (edge,)
        All ends of bins of all groups and bands, ascending.
    local : int32 array (band, edge, group)
        The bin of a group that a distance at most this edge, and above the one before, falls in;
        -1 beyond its last.
    row, band : int64 arrays (all pairs or neighbours, direction, k)
        The rows of sums that take a pair seen in this direction, and the band of each.
    n : int64 array (all pairs or neighbours, direction)
        How many there are.
    center : float64 array (group,)
        Subtracted from each difference.
    twin : int64 array
        The rows below, above and tied of a mode of two sides; empty where there is none.
    twin_band : int64 array (direction,)
        The bands that sort its pairs.
    """

    edges: Floats
    local: Bins
    row: Ints
    band: Ints
    n: Ints
    center: Floats
    twin: Ints
    twin_band: Ints


class WindowBins(NamedTuple):
    """Where windows book the pairs of the sides that keep all pairs.

    Attributes
    ----------
    rows : int64 array (side,)
        The row of sums of each.
    first, last : int64 arrays (group, side, bin)
        Which end the run of the group's partners has: see `TIE_START`.
    edges : float64 array (side, direction, group, bin)
        The largest distance in each bin.
    """

    rows: Ints
    first: Ints
    last: Ints
    edges: Floats


class SumRows(NamedTuple):
    """Which rows of sums some modes need.

    Attributes
    ----------
    sides : tuple of Side
        What each row is about.
    of_mode : tuple of int
        The row of each mode; -1 for one of two sides.
    twin : tuple of int
        For a mode of two sides, the rows below, above and tied; empty where there is no such mode.
    """

    sides: tuple[Side, ...]
    of_mode: tuple[int, ...]
    twin: tuple[int, ...]

    def counts(self, pairs: Sequence[int]) -> list[int]:
        """Return the pairs of each row, given those of each mode."""
        known = {row: pairs[mode] for mode, row in enumerate(self.of_mode) if row >= 0}
        for row in self.twin[:2]:
            # A row of its own has the pairs of the mode that is about the same side.
            alike = [k for k in known if self.sides[k : k + 1] == self.sides[row : row + 1]]
            if alike:
                known[row] = known[alike[0]]
        if self.twin and self.twin[-1] < len(self.sides):
            # A tied pair is in both rows, and once in the mode.
            below, above, tied = self.twin
            known[tied] = known[below] + known[above] - pairs[self.of_mode.index(-1)]
        return [int(known[row]) for row in range(len(self.sides))]


def rows_of(modes: Sequence[Mode], *, apart: bool = False) -> SumRows:
    """Return the rows of sums that some modes need; with two sides, those of either side too.

    Parameters
    ----------
    modes : sequence of Mode
    apart : bool
        Whether no two modes share a row, because what a pair counts depends on the pairs of its
        mode.
    """
    sides: list[Side] = []
    of_mode: list[int] = []
    twin: tuple[int, ...] = ()
    for mode in modes:
        of_mode.append(-1 if mode.two_sided else len(sides))
        sides += [] if mode.two_sided else [mode.side]
    for mode in modes:
        if mode.two_sided:
            whole = [replace(side, tie_weight=1.0) for side in mode.sides]
            if apart:
                twin = tuple(range(len(sides), len(sides) + 3))
                sides += [*whole, TIES]
                continue
            sides += [side for side in (*whole, TIES) if side not in sides]
            twin = tuple(sides.index(side) for side in (*whole, TIES))
    return SumRows(tuple(sides), tuple(of_mode), twin)


@dataclass(frozen=True)
class Layout:
    """Which bins a sweep books in, for up to 64 groups.

    Attributes
    ----------
    modes : tuple of Mode
    word : int
        Which word of the masks.
    edges : float64 array (group, bin)
        The thresholds of each group, ascending.
    center : float64 array (group,)
        Near the mean difference of each group.
    by_place : bool
        Whether the two sides of a mode go by places, and are compared inside cells of these.
    weighting : Weighting
        Whether pairs count alike.
    apart : bool
        Whether a mode of two sides has rows of sums of its own, because its pairs go by a table.
    """

    modes: tuple[Mode, ...]
    word: int
    edges: Floats
    center: Floats
    by_place: bool = False
    weighting: Weighting = ALIKE
    apart: bool = False

    @cached_property
    def rows(self) -> SumRows:
        """The rows of the sums."""
        return rows_of(self.modes, apart=self.apart or self.weighting.by_query)

    @property
    def sides(self) -> tuple[Side, ...]:
        """The side that each row of the sums is about."""
        return self.rows.sides

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return len(self.edges)

    @property
    def n_bins(self) -> int:
        """How many thresholds a group has."""
        return int(self.edges.shape[1])

    @cached_property
    def by_side(self) -> Floats:
        """The largest distance in each bin, as (side, direction, group, bin)."""
        return np.array([side.edges(self.edges) for side in self.sides])

    @cached_property
    def pair_bins(self) -> PairBins:
        """Where a pair is booked."""
        bands: list[Floats] = []
        taken: list[list[list[tuple[int, int]]]] = [[[], [], []], [[], [], []]]
        for number, side in enumerate(self.sides):
            kind = NEIGHBOURS if side.neighbours else ALL_PAIRS
            for direction, takes in enumerate((side.up, side.down, side.ties)):
                if takes:
                    band = self._band(bands, number, direction)
                    taken[kind][direction].append((number, band))
        width = max(len(rows) for of_kind in taken for rows in of_kind)
        table = np.zeros((2, 3, width, 2), dtype=np.int64)
        for kind, of_kind in enumerate(taken):
            for direction, rows in enumerate(of_kind):
                table[kind, direction, : len(rows)] = np.array(rows).reshape(-1, 2)
        every = np.unique(np.concatenate([band.ravel() for band in bands]))
        return PairBins(
            edges=every,
            local=np.array([_bins(band, every) for band in bands]),
            row=np.ascontiguousarray(table[..., 0]),
            band=np.ascontiguousarray(table[..., 1]),
            n=np.array([[len(rows) for rows in of_kind] for of_kind in taken]),
            center=self.center,
            twin=np.array(self.rows.twin, dtype=np.int64),
            twin_band=self._twin_band(bands),
        )

    def _twin_band(self, bands: list[Floats]) -> Ints:
        """Return the band of a pair of a mode of two sides, by direction."""
        if not self.rows.twin:
            return np.zeros(3, dtype=np.int64)
        places = zip(self.rows.twin, (UP, DOWN, TIE), strict=True)
        return np.array([self._band(bands, number, direction) for number, direction in places])

    def _band(self, bands: list[Floats], number: int, direction: int) -> int:
        """Return the band that sorts as this side does in this direction; add it if it is new."""
        edges = self.by_side[number, direction]
        for band, known in enumerate(bands):
            # For a tie it only matters from which bin on it is a pair.
            if (
                np.array_equal(edges < 0, known < 0)
                if direction == TIE
                else (np.array_equal(edges, known))
            ):
                return band
        bands.append(edges)
        return len(bands) - 1

    @cached_property
    def window_bins(self) -> WindowBins:
        """Where windows book."""
        rows = [number for number, side in enumerate(self.sides) if not side.neighbours]
        edges = self.pair_bins.edges
        first, last = [], []
        for number in rows:
            starts, ends = run_ends(self.sides[number], self.by_side[number], edges)
            first.append(starts)
            last.append(ends)
        return WindowBins(
            np.array(rows),
            np.ascontiguousarray(np.stack(first, axis=1)),
            np.ascontiguousarray(np.stack(last, axis=1)),
            self.by_side[rows],
        )


def run_ends(side: Side, by_direction: Floats, edges: Floats) -> tuple[Ints, Ints]:
    """Return where the run of partners of a group's item begins and ends, for each bin.

    The distances of a side are an interval that holds 0 or begins there, so that partners are a
    run of the sorted query.

    Parameters
    ----------
    side : Side
    by_direction : float64 array (direction, …)
        What `Side.edges` returned.
    edges : float64 array (edge,)
        Ascending; those of the side are among them.
    """
    up, down = by_direction[UP], by_direction[DOWN]
    if side.down:
        first = N_PLAIN + len(edges) + np.searchsorted(edges, down)
    else:
        first = np.full(up.shape, TIE_START if side.ties else TIE_END)
    if side.up:
        last = N_PLAIN + np.searchsorted(edges, up)
    else:
        last = np.full(up.shape, TIE_END if side.ties else TIE_START)
    # Where there is no threshold, or an open one at 0, the run is empty.
    none = np.minimum(up if side.up else np.inf, down if side.down else np.inf) < 0
    none |= side.ties & (by_direction[TIE] < 0)
    return (
        np.where(none, TIE_START, first).astype(np.int64),
        np.where(none, TIE_START, last).astype(np.int64),
    )


def _bins(own: Floats, every: Floats) -> Bins:
    """Return the bin of each group for a distance just up to each edge; -1: beyond the last."""
    bins = np.empty((len(every), len(own)), dtype=np.int32)
    for g, edges in enumerate(own):
        bins[:, g] = np.searchsorted(edges, every, side="left")
    bins[bins == own.shape[1]] = -1
    return bins


def member_flags(log_mask: Masks, bit: int) -> Flags:
    """Return which rows have a bit of a mask."""
    return np.asarray(log_mask & (np.uint64(1) << np.uint64(bit)) != 0)
