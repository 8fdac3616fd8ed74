"""One pass over a log adds up the sums of all groups and all thresholds; no pair is listed.

The pairs of an ordinary list are visited one by one, those of a long list by windows, whichever
is cheaper; the sums are the same. Gaps are sorted into bins. What a unit adds to a sum of squares
up to a threshold changes only at bins in which the unit has a pair, so the change is booked there
and bins are cumulated at the end. A *slot* is one group under one pairing mode.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpc_lab.pairing.arrays import Floats, Ints, Masks, Stop
from mpc_lab.pairing.bits import ONE, lowest
from mpc_lab.pairing.compiling import inlined, kernel
from mpc_lab.pairing.windows import (
    DOWN,
    N_PREFIX,
    UP,
    add_windows,
    count_close,
    nearest_gaps,
)

PAIRS, QUERIES, CLUSTERS, SUM, SQUARES, CC, CU, UU = range(8)
N_SUMS = 8
# Lists shorter than this are not worth a thought.
_SHORT = 256
# Rows × groups of a list of which sums over its first rows are held at a time.
_SUMS_AT_ONCE = 1 << 23
# What to book a pair for one group costs, in steps of a window.
_BOOKING = 4.0

Index = int | np.int64
Bins = NDArray[np.int32]
FirstBins = NDArray[np.uint8] | NDArray[np.uint16]


class Bookings(NamedTuple):
    """What a sweep adds to.

    Attributes
    ----------
    sums : float64 array (slot, bin, 8)
        What each bin adds: pairs, queries and units; the changes of Σx and Σx², x the centred
        difference; and over units the changes of Σc², ΣcU and ΣU². One cache line a bin.
    first_bin : unsigned array (item, slot)
        The first bin in which an item has a pair; no rows where it is not wanted.
    cross : float64 array (slot, bin, bin, 3)
        What two bins add together over units: Σc·c′, Σc·U′, ΣU·U′; no rows where not wanted.
    """

    sums: Floats
    first_bin: FirstBins
    cross: Floats


class _Scratch(NamedTuple):
    """The pairs and centred sums of the unit being walked, by slot and bin."""

    unit: Floats
    touched: Masks
    bins: Ints
    query_bin: Ints
    query_slots: Ints
    n_query_slots: Ints


@inlined
def _scratch(n_slots: int, n_bins: int) -> _Scratch:
    return _Scratch(
        np.zeros((n_slots, n_bins, 2)),
        np.zeros((n_slots, (n_bins + 63) // 64), dtype=np.uint64),
        np.empty(n_bins, dtype=np.int64),
        np.full(n_slots, n_bins, dtype=np.int64),
        np.empty(n_slots, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@inlined
def _book(to: Bookings, scratch: _Scratch, slot: Index, b: Index, x: float) -> None:
    """Add one pair to its unit and query."""
    to.sums[slot, b, SQUARES] += x * x
    scratch.unit[slot, b, 0] += 1.0
    scratch.unit[slot, b, 1] += x
    _touch(scratch, slot, b)


@inlined
def _touch(scratch: _Scratch, slot: Index, b: Index) -> None:
    """Note that the unit and the query being walked have a pair in this bin."""
    scratch.touched[slot, b >> 6] |= ONE << np.uint64(b & 63)
    if b < scratch.query_bin[slot]:
        if scratch.query_bin[slot] == scratch.unit.shape[1]:
            scratch.query_slots[scratch.n_query_slots[0]] = slot
            scratch.n_query_slots[0] += 1
        scratch.query_bin[slot] = b


@inlined
def _see(first_bin: FirstBins, one: Index, other: Index, slot: Index, b: Index) -> None:
    if b < first_bin[one, slot]:
        first_bin[one, slot] = b
    if b < first_bin[other, slot]:
        first_bin[other, slot] = b


@inlined
def _close_query(to: Bookings, scratch: _Scratch) -> None:
    for k in range(scratch.n_query_slots[0]):
        slot = scratch.query_slots[k]
        to.sums[slot, scratch.query_bin[slot], QUERIES] += 1.0
        scratch.query_bin[slot] = scratch.unit.shape[1]
    scratch.n_query_slots[0] = 0


@inlined
def _cross(cross: Floats, scratch: _Scratch, slot: Index) -> None:
    """Book what each two bins of this unit add together."""
    n = 0
    for word in range(scratch.touched.shape[1]):
        bits = scratch.touched[slot, word]
        while bits:
            scratch.bins[n] = 64 * word + lowest(bits)
            bits &= bits - ONE
            n += 1
    for one in scratch.bins[:n]:
        c, u = scratch.unit[slot, one, 0], scratch.unit[slot, one, 1]
        for other in scratch.bins[:n]:
            cross[one, other, 0] += c * scratch.unit[slot, other, 0]
            cross[one, other, 1] += c * scratch.unit[slot, other, 1]
            cross[one, other, 2] += u * scratch.unit[slot, other, 1]


@inlined
def _close_unit(to: Bookings, scratch: _Scratch) -> None:
    """Book what this unit changes at each bin in which it has a pair, and wipe the scratch."""
    for slot in range(scratch.touched.shape[0]):
        pairs, total, fresh = 0.0, 0.0, 1.0
        if len(to.cross):
            _cross(to.cross[slot], scratch, slot)
        for word in range(scratch.touched.shape[1]):
            bits = scratch.touched[slot, word]
            if not bits:
                continue
            scratch.touched[slot, word] = np.uint64(0)
            while bits:
                b = 64 * word + lowest(bits)
                bits &= bits - ONE
                c, u = scratch.unit[slot, b, 0], scratch.unit[slot, b, 1]
                scratch.unit[slot, b, 0] = 0.0
                scratch.unit[slot, b, 1] = 0.0
                line = to.sums[slot, b]
                line[CLUSTERS] += fresh
                line[PAIRS] += c
                line[SUM] += u
                line[CC] += c * (2 * pairs + c)
                line[CU] += pairs * u + c * total + c * u
                line[UU] += u * (2 * total + u)
                pairs, total, fresh = pairs + c, total + u, 0.0


@inlined
def _by_windows(
    start: int, end: int, score: Floats, mask: Masks, epsilon: float, steps: int, pair_cost: float
) -> bool:
    """Tell whether windows are cheaper for a list than its pairs one by one.

    Parameters
    ----------
    epsilon : float
        The largest threshold.
    steps : int
        Steps of windows that a row costs.
    pair_cost : float
        What a pair costs, by itself and for each group it has to be booked for; infinite: windows
        for all lists.
    """
    n = end - start
    if n < 2 or (n < _SHORT and pair_cost < np.inf):
        return False
    members = 0.0
    for row in range(start, end):
        bits = mask[row]
        while bits:
            bits &= bits - ONE
            members += 1.0
    cost = pair_cost * (1.0 + _BOOKING * members / n)
    return 0.5 * n * cost * n > steps * n and count_close(score, start, end, epsilon) * cost > (
        steps * n
    )


@kernel
def _sweep_windows(
    start: int,
    end: int,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    item: Ints,
    edges: Floats,
    own_edges: Floats,
    center: Floats,
    to: Bookings,
    scratch: _Scratch,
    stop: Stop,
) -> None:
    """Add the ``matched`` and ``mirrored`` pairs of one query, some groups at a time."""
    n_groups, n_bins = own_edges.shape
    some, all_ = mask[start], mask[start]
    for row in range(start, end):
        some |= mask[row]
        all_ &= mask[row]
    present = np.array([g for g in range(n_groups) if some & ~all_ & (ONE << np.uint64(g))])
    at_once = max(1, min(len(present), _SUMS_AT_ONCE // (end - start)))
    prefix = np.empty((at_once, end - start + 1, N_PREFIX))
    found = np.empty((at_once, 2, n_bins, 3))
    gaps = np.empty((2, end - start if len(to.first_bin) else 0))
    for from_ in range(0, len(present), at_once):
        groups = present[from_ : from_ + at_once]
        bits = ONE << groups.astype(np.uint64)
        places = np.searchsorted(edges, own_edges[groups])
        rows = (start, end, score, outcome, mask, bits)
        add_windows(*rows, edges, places, center[groups], prefix, found, stop)
        if stop[0]:
            return
        for k, g in enumerate(groups):
            for side in (UP, DOWN):
                _book_run(to, scratch, side * n_groups + g, found[k, side])
            if not len(to.first_bin):
                continue
            nearest_gaps(start, end, score, mask, bits[k], gaps)
            for side in (UP, DOWN):
                for row in range(start, end):
                    b = np.searchsorted(own_edges[g], gaps[side, row - start])
                    # A member looks up for its matched pairs; for the other of the two it is down.
                    mirrored = (side == UP) != ((mask[row] & bits[k]) != 0)
                    slot = (n_groups if mirrored else 0) + g
                    if b < n_bins and b < to.first_bin[item[row], slot]:
                        to.first_bin[item[row], slot] = b


@inlined
def _book_run(to: Bookings, scratch: _Scratch, slot: Index, found: Floats) -> None:
    """Add what lies between two thresholds, given what lies up to each, to its unit and query."""
    pairs, total, squares = 0.0, 0.0, 0.0
    for b in range(len(found)):
        c = found[b, 0] - pairs
        if c > 0:
            to.sums[slot, b, SQUARES] += found[b, 2] - squares
            scratch.unit[slot, b, 0] += c
            scratch.unit[slot, b, 1] += found[b, 1] - total
            _touch(scratch, slot, b)
            pairs, total, squares = found[b, 0], found[b, 1], found[b, 2]


@kernel
def sweep_both_sides(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    item: Ints,
    edges: Floats,
    local: Bins,
    center: Floats,
    own_edges: Floats,
    pair_cost: float,
    stop: Stop,
    first: int,
    last: int,
    to: Bookings,
) -> None:
    """Add the ``matched`` and ``mirrored`` pairs of the units from `first` to before `last`.

    Slots are the groups under ``matched``, then the groups under ``mirrored``.

    Parameters
    ----------
    edges : float64 array (edge,)
        All thresholds of all groups, ascending.
    local : int32 array (edge, group)
        The bin of a group that a gap at most this edge, and above the one before, falls in; -1
        beyond the group's largest threshold.
    own_edges : float64 array (group, bin)
        The thresholds of each group, ascending.
    pair_cost : float
        What it costs to visit a pair, in steps of a window.
    stop : uint8 array
        Long lists are left unfinished once it is 1.
    to : Bookings
        Added to.
    """
    n_groups = len(center)
    scratch = _scratch(2 * n_groups, to.sums.shape[1])
    steps = 2 * n_groups * to.sums.shape[1]
    for unit in range(first, last):
        for q in range(units[unit], units[unit + 1]):
            start, end = starts[q], starts[q + 1]
            if _by_windows(start, end, score, mask, edges[-1], steps, pair_cost):
                rows = (start, end, score, outcome, mask, item)
                _sweep_windows(*rows, edges, own_edges, center, to, scratch, stop)
                _close_query(to, scratch)
                continue
            for lower in range(starts[q], starts[q + 1]):
                edge = 0
                for upper in range(lower + 1, starts[q + 1]):
                    gap = score[upper] - score[lower]
                    if gap > edges[-1]:
                        break
                    while gap > edges[edge]:
                        edge += 1
                    d = outcome[lower] - outcome[upper]
                    differ = mask[lower] ^ mask[upper]
                    while differ:
                        g = lowest(differ)
                        in_lower = mask[lower] & (ONE << np.uint64(g))
                        differ &= differ - ONE
                        b = local[edge, g]
                        if b < 0:
                            continue
                        x = (d if in_lower else -d) - center[g]
                        # A tie is a pair of both modes.
                        if in_lower or gap == 0:
                            _book(to, scratch, g, b, x)
                            if len(to.first_bin):
                                _see(to.first_bin, item[lower], item[upper], g, b)
                        if not in_lower or gap == 0:
                            _book(to, scratch, n_groups + g, b, x)
                            if len(to.first_bin):
                                _see(to.first_bin, item[lower], item[upper], n_groups + g, b)
            _close_query(to, scratch)
        _close_unit(to, scratch)


@kernel
def sweep_neighbours(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    item: Ints,
    below: Ints,
    edges: Floats,
    local: Bins,
    center: Floats,
    first: int,
    last: int,
    to: Bookings,
) -> None:
    """Add the ``adjacent`` pairs of the units from `first` to before `last`.

    Slots are the groups; otherwise as `sweep_both_sides`.
    """
    scratch = _scratch(len(center), to.sums.shape[1])
    for unit in range(first, last):
        for q in range(units[unit], units[unit + 1]):
            for one in range(starts[q], starts[q + 1]):
                other = below[one]
                if other < 0:
                    continue
                gap = abs(score[one] - score[other])
                if gap > edges[-1]:
                    continue
                edge = np.searchsorted(edges, gap)
                d = outcome[one] - outcome[other]
                differ = mask[one] ^ mask[other]
                while differ:
                    g = lowest(differ)
                    in_one = mask[one] & (ONE << np.uint64(g))
                    differ &= differ - ONE
                    b = local[edge, g]
                    if b < 0:
                        continue
                    _book(to, scratch, g, b, (d if in_one else -d) - center[g])
                    if len(to.first_bin):
                        _see(to.first_bin, item[one], item[other], g, b)
            _close_query(to, scratch)
        _close_unit(to, scratch)
