"""The arrays that a sweep adds to, and how a pair, a query and a unit are booked in them.

A *slot* is one group under one row of the sums: slots are the groups under the first row, then the
groups under the second, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from mpc_lab.pairing.kernels import ONE, inlined, lowest, tight
from mpc_lab.pairing.series import (
    BETWEEN,
    HEAVY,
    MOST_HEAVY,
    MOST_HEAVY_SIDES,
    N_POWERS,
    N_SIDE_POWERS,
)
from mpc_lab.vocabulary import FirstBins, Floats, Ints, Masks

PAIRS, QUERIES, CLUSTERS, SUM, SQUARES, CC, CU, UU = range(8)
N_SUMS = 8
# What is booked of a mode of two sides.
TWIN_QUERIES, TWIN_UNITS, TWIN_PRODUCTS = range(3)
N_TWIN = 14
# What is booked of single units once the sums of all are known: Σ(S/(1 − s))², S the centred sum of
# a unit and s its share of the pairs; the largest s; the largest S².
CORRECTED, LARGEST_SHARE, LARGEST_SQUARE = range(3)
N_WEIGHED = 3
# A unit that lacks no more than this share of the pairs has all of them.
NOTHING_LEFT = 1e-12

Index = int | np.int64


class Weighing(NamedTuple):
    """What a second sweep reads and adds to, to find the weight of single units.

    Attributes
    ----------
    weight, mean : float64 arrays (slot, bin)
        Σc and the centred mean of all pairs up to each bin; a weight of 0 where none is wanted. No
        rows where nothing is.
    found : float64 array (slot, bin, 3)
        See `CORRECTED`.
    pairs : float64 array (group, bin)
        Pairs of a mode of two sides; no rows where there is no such mode.
    side_weight, side_mean : float64 arrays (side, group, bin)
        The same for its sides.
    twin : float64 array (group, bin, 3)
        As `found`.
    powers : float64 array (slot, bin, 6)
        See `mpc_lab.pairing.series`; no rows where not wanted.
    heavy : float64 array (slot, bin, 31, 2)
        The pairs and the centred sum of units with a large share.
    n_heavy : int64 array (slot, bin)
        How many there are.
    side_powers, side_heavy : float64 arrays (group, bin, 32), (group, bin, 62, 4)
        The same of a mode of two sides; of a heavy unit the pairs and the sum below, and above.
    n_side_heavy : int64 array (group, bin)
    """

    weight: Floats
    mean: Floats
    found: Floats
    pairs: Floats
    side_weight: Floats
    side_mean: Floats
    twin: Floats
    powers: Floats
    heavy: Floats
    n_heavy: Ints
    side_powers: Floats
    side_heavy: Floats
    n_side_heavy: Ints


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
    twin : float64 array (group, bin, 14)
        For a mode of two sides, the queries and the units with pairs on both; over units the
        changes of Σc·c′, Σc·U′, ΣU·c′, ΣU·U′ of the rows below and above, below and tied, above
        and tied; no rows where no mode has two sides.
    twin_cross : float64 array (group, 3, bin, bin, 4)
        The same four sums of two bins; no rows where not wanted.
    cells : float64 array (part, bin, group, 2)
        Pairs and Σx of either side inside cells of places; no rows where there are no places. Then
        the products in `twin` are not wanted. Where pairs are weighted, their number comes third.
    shares : float64 array (slot, bin, 3)
        Where pairs are weighted, what their weights hide: see `mpc_lab.pairing.shares`. `sums` are
        of weights then. No rows where every pair counts 1.
    weighing : Weighing
    """

    sums: Floats
    first_bin: FirstBins
    cross: Floats
    twin: Floats
    twin_cross: Floats
    cells: Floats
    shares: Floats
    weighing: Weighing


class Scratch(NamedTuple):
    """The pairs and centred sums of the unit being walked, by slot and bin."""

    unit: Floats
    touched: Masks
    bins: Ints
    query_bin: Ints


@inlined
def make_scratch(n_slots: int, n_bins: int) -> Scratch:
    """Return a scratch without pairs."""
    return Scratch(
        np.zeros((n_slots, n_bins, 2)),
        np.zeros((n_slots, (n_bins + 63) // 64), dtype=np.uint64),
        np.empty(n_bins, dtype=np.int64),
        np.full(n_slots, n_bins, dtype=np.int64),
    )


@inlined
def book_pair(
    sums: Floats,
    unit: Floats,
    touched: Masks,
    query_bin: Ints,
    slot: Index,
    b: Index,
    x: float,
) -> None:
    """Add one pair to its unit and query.

    Parameters
    ----------
    sums, unit, touched, query_bin
        Fields of `Bookings` and `Scratch`, taken out of these before the loops.
    """
    sums[slot, b, SQUARES] += x * x
    unit[slot, b, 0] += 1.0
    unit[slot, b, 1] += x
    touch(touched, query_bin, slot, b)


@inlined
def touch(touched: Masks, query_bin: Ints, slot: Index, b: Index) -> None:
    """Note that the unit and the query being walked have a pair in this bin."""
    touched[slot, b >> 6] |= ONE << np.uint64(b & 63)
    query_bin[slot] = min(query_bin[slot], b)


@inlined
def see_items(first_bin: FirstBins, one: Index, other: Index, slot: Index, b: Index) -> None:
    """Note that two items have a pair in this bin."""
    if b < first_bin[one, slot]:
        first_bin[one, slot] = b
    if b < first_bin[other, slot]:
        first_bin[other, slot] = b


@inlined
def close_query(to: Bookings, scratch: Scratch, n_slots: int) -> None:
    """Count the query at the first bin in which it has a pair."""
    n_bins = scratch.unit.shape[1]
    for slot in range(n_slots):
        b = scratch.query_bin[slot]
        if b < n_bins:
            to.sums[slot, b, QUERIES] += 1.0
            scratch.query_bin[slot] = n_bins


@inlined
def touched_bins(scratch: Scratch, slot: Index, bins: Ints) -> int:
    """Write down the bins in which this unit has a pair, and return how many there are."""
    n = 0
    for word in range(scratch.touched.shape[1]):
        bits = scratch.touched[slot, word]
        while bits:
            bins[n] = 64 * word + lowest(bits)
            bits &= bits - ONE
            n += 1
    return n


@inlined
def cross_bins(cross: Floats, scratch: Scratch, slot: Index) -> None:
    """Book the products of every two bins of this unit."""
    n = touched_bins(scratch, slot, scratch.bins)
    for one in scratch.bins[:n]:
        c, u = scratch.unit[slot, one, 0], scratch.unit[slot, one, 1]
        for other in scratch.bins[:n]:
            cross[one, other, 0] += c * scratch.unit[slot, other, 0]
            cross[one, other, 1] += c * scratch.unit[slot, other, 1]
            cross[one, other, 2] += u * scratch.unit[slot, other, 1]


@tight
def _book_products(
    found: Floats, g: Index, b: Index, at: int, c: float, u: float, c2: float, u2: float,
    p: float, t: float, p2: float, t2: float,
) -> None:  # fmt: skip
    """Book how the products of two rows change: one had p and t before c and u were added.

    The other, with p2 and t2, gains c2 and u2.
    """
    now, sum_now = p2 + c2, t2 + u2
    found[g, b, at] += p * c2 + c * now
    found[g, b, at + 1] += p * u2 + c * sum_now
    found[g, b, at + 2] += t * c2 + u * now
    found[g, b, at + 3] += t * u2 + u * sum_now


@inlined
def close_twin_query(to: Bookings, scratch: Scratch, twin: Ints) -> None:
    """Count the query at the first bin up to which it has pairs on both sides."""
    n_groups, n_bins = len(to.twin), scratch.unit.shape[1]
    for g in range(n_groups):
        b = max(
            scratch.query_bin[twin[0] * n_groups + g], scratch.query_bin[twin[1] * n_groups + g]
        )
        if b < n_bins:
            to.twin[g, b, TWIN_QUERIES] += 1.0


@inlined
def close_twin(to: Bookings, scratch: Scratch, twin: Ints, tied: bool) -> None:
    """Book the changes of the products of this unit's rows below, above and tied.

    Parameters
    ----------
    tied : bool
        Whether it may have pairs that are tied.
    """
    by_place = len(to.cells) > 0
    _close_twin(scratch.unit, scratch.touched, to.twin, twin[0], twin[1], twin[2], tied, by_place)


@tight
def _close_twin(
    unit: Floats,
    touched: Masks,
    found: Floats,
    row_below: Index,
    row_above: Index,
    row_tied: Index,
    tied: bool,
    by_place: bool,
) -> None:
    """Do so with plain arrays: to take one out of a tuple for every bin costs more than the sums.

    Where one of the two sides has no pair, nothing changes: a tie is on both.
    """
    n_groups, n_words = len(found), touched.shape[1]
    for g in range(n_groups):
        below, above = row_below * n_groups + g, row_above * n_groups + g
        both = row_tied * n_groups + g
        some, other = np.uint64(0), np.uint64(0)
        for word in range(n_words):
            some |= touched[below, word]
            other |= touched[above, word]
        if not some or not other:
            continue
        fresh = True
        pb, ub, pa, ua, pt, ut = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for word in range(n_words):
            bits = touched[below, word] | touched[above, word]
            while bits:
                b = 64 * word + lowest(bits)
                bits &= bits - ONE
                cb, xb = unit[below, b, 0], unit[below, b, 1]
                ca, xa = unit[above, b, 0], unit[above, b, 1]
                if pb + cb > 0 and pa + ca > 0:
                    if fresh:
                        found[g, b, TWIN_UNITS] += 1.0
                        fresh = False
                        if by_place:
                            break
                    _book_products(found, g, b, TWIN_PRODUCTS, cb, xb, ca, xa, pb, ub, pa, ua)
                    if tied:
                        ct, xt = unit[both, b, 0], unit[both, b, 1]
                        if pt + ct > 0:
                            at = TWIN_PRODUCTS + 4
                            _book_products(found, g, b, at, cb, xb, ct, xt, pb, ub, pt, ut)
                            _book_products(found, g, b, at + 4, ca, xa, ct, xt, pa, ua, pt, ut)
                            pt, ut = pt + ct, ut + xt
                pb, ub, pa, ua = pb + cb, ub + xb, pa + ca, ua + xa
            if by_place and not fresh:
                break


@inlined
def cross_twin(to: Bookings, scratch: Scratch, twin: Ints, others: Ints) -> None:
    """Book the products of each bin of one row of this unit with each bin of another."""
    n_groups = len(to.twin_cross)
    for g in range(n_groups):
        for k in range(3):
            one = twin[1 if k == 2 else 0] * n_groups + g
            two = twin[1 if k == 0 else 2] * n_groups + g
            n, m = touched_bins(scratch, one, scratch.bins), touched_bins(scratch, two, others)
            for b in scratch.bins[:n]:
                c, u = scratch.unit[one, b, 0], scratch.unit[one, b, 1]
                for b2 in others[:m]:
                    c2, u2 = scratch.unit[two, b2, 0], scratch.unit[two, b2, 1]
                    line = to.twin_cross[g, k, b, b2]
                    line[0] += c * c2
                    line[1] += c * u2
                    line[2] += u * c2
                    line[3] += u * u2


@inlined
def first_touched(scratch: Scratch, slot: Index) -> Index:
    """Return the first bin in which this unit has a pair, or how many bins there are."""
    for word in range(scratch.touched.shape[1]):
        if scratch.touched[slot, word]:
            return 64 * word + lowest(scratch.touched[slot, word])
    return int(scratch.unit.shape[1])


@inlined
def weigh_unit(to: Weighing, scratch: Scratch, n_slots: int) -> None:
    """Book what this unit alone does to each threshold from its first pair on.

    The other units' pairs change its share, so bins in which it has none count too.
    """
    n_bins = scratch.unit.shape[1]
    for slot in range(n_slots):
        first = first_touched(scratch, slot)
        if first == n_bins or to.weight[slot, n_bins - 1] == 0:
            continue
        _weigh_slot(first, scratch.unit[slot], to.weight[slot], to.mean[slot], to.found[slot])
        if len(to.powers):
            kept = (to.powers[slot], to.heavy[slot], to.n_heavy[slot])
            _keep_slot(first, scratch.unit[slot], to.weight[slot], *kept)


@inlined
def _add_powers(to: Floats, at: int, c: float, u: float) -> None:
    cc, cu, uu = c * c, c * u, u * u
    to[at] += c * cc
    to[at + 1] += c * cu
    to[at + 2] += c * uu
    to[at + 3] += cc * cc
    to[at + 4] += cc * cu
    to[at + 5] += cc * uu


@tight
def _weigh_slot(first: Index, unit: Floats, weight: Floats, mean: Floats, found: Floats) -> None:
    c, u = 0.0, 0.0
    for b in range(first, len(weight)):
        c += unit[b, 0]
        u += unit[b, 1]
        own = u - mean[b] * c
        share = c / weight[b]
        changed = own / (1.0 - share)
        line = found[b]
        line[CORRECTED] += changed * changed if share < 1.0 - NOTHING_LEFT else np.nan
        line[LARGEST_SHARE] = max(line[LARGEST_SHARE], share)
        line[LARGEST_SQUARE] = max(line[LARGEST_SQUARE], own * own)


@tight
def _keep_slot(
    first: Index, unit: Floats, weight: Floats, powers: Floats, heavy: Floats, n_heavy: Ints
) -> None:
    """Add a light unit to the sums of powers, and keep a heavy one."""
    c, u = 0.0, 0.0
    for b in range(first, len(weight)):
        c += unit[b, 0]
        u += unit[b, 1]
        if c > HEAVY * weight[b]:
            heavy[b, n_heavy[b], 0] = c
            heavy[b, n_heavy[b], 1] = u
            n_heavy[b] += 1
        else:
            _add_powers(powers[b], 0, c, u)


@inlined
def weigh_twin(to: Weighing, scratch: Scratch, twin: Ints) -> None:
    """Book the same for a mode of two sides: each part is weighed by its share of its own side."""
    n_groups, n_bins = to.pairs.shape
    for g in range(n_groups):
        below, above = twin[0] * n_groups + g, twin[1] * n_groups + g
        tied = twin[2] * n_groups + g
        cb, ub, ca, ua = 0.0, 0.0, 0.0, 0.0
        first = min(first_touched(scratch, below), first_touched(scratch, above))
        for b in range(first, n_bins):
            ties, of_ties = 0.5 * scratch.unit[tied, b, 0], 0.5 * scratch.unit[tied, b, 1]
            cb += scratch.unit[below, b, 0] - ties
            ub += scratch.unit[below, b, 1] - of_ties
            ca += scratch.unit[above, b, 0] - ties
            ua += scratch.unit[above, b, 1] - of_ties
            wb, wa = to.side_weight[0, g, b], to.side_weight[1, g, b]
            if wb <= 0 or wa <= 0:
                continue
            xb, xa = ub - to.side_mean[0, g, b] * cb, ua - to.side_mean[1, g, b] * ca
            half = 0.5 * to.pairs[g, b]
            line = to.twin[g, b]
            rb, ra = wb - cb, wa - ca
            if rb > NOTHING_LEFT * wb and ra > NOTHING_LEFT * wa:
                changed = half * (xb / rb + xa / ra)
                line[CORRECTED] += changed * changed
            else:
                line[CORRECTED] = np.nan
            own = half * (xb / wb + xa / wa)
            line[LARGEST_SHARE] = max(line[LARGEST_SHARE], 0.5 * (cb / wb + ca / wa))
            line[LARGEST_SQUARE] = max(line[LARGEST_SQUARE], own * own)
            if len(to.side_powers):
                heavy = cb > HEAVY * wb or ca > HEAVY * wa
                if heavy:
                    unit = to.side_heavy[g, b, to.n_side_heavy[g, b]]
                    unit[0], unit[1], unit[2], unit[3] = cb, ub, ca, ua
                    to.n_side_heavy[g, b] += 1
                else:
                    _add_side_powers(to.side_powers[g, b], cb, ub, ca, ua)


@inlined
def _add_side_powers(to: Floats, cb: float, ub: float, ca: float, ua: float) -> None:
    """Add a light unit of two sides to the sums of powers."""
    _add_powers(to, 0, cb, ub)
    _add_powers(to, N_POWERS, ca, ua)
    for k in range(len(BETWEEN)):
        power = cb ** BETWEEN[k][0] * ca ** BETWEEN[k][1]
        at = 2 * N_POWERS + 4 * k
        to[at] += power * ub * ua
        to[at + 1] += power * ub * ca
        to[at + 2] += power * cb * ua
        to[at + 3] += power * cb * ca


@inlined
def close_unit(to: Bookings, scratch: Scratch, n_slots: int) -> None:
    """Book what this unit changes at each bin in which it has a pair, and wipe the scratch."""
    for slot in range(n_slots):
        pairs, total, fresh = 0.0, 0.0, 1.0
        if len(to.cross):
            cross_bins(to.cross[slot], scratch, slot)
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
def book_run(to: Bookings, scratch: Scratch, slot: Index, found: Floats) -> None:
    """Add the pairs between two thresholds, given the pairs below each, to their unit and query."""
    pairs, total, squares = 0.0, 0.0, 0.0
    for b in range(len(found)):
        c = found[b, 0] - pairs
        if c > 0:
            to.sums[slot, b, SQUARES] += found[b, 2] - squares
            scratch.unit[slot, b, 0] += c
            scratch.unit[slot, b, 1] += found[b, 1] - total
            touch(scratch.touched, scratch.query_bin, slot, b)
            pairs, total, squares = found[b, 0], found[b, 1], found[b, 2]


def no_weighing() -> Weighing:
    """Return what a sweep adds to where units are not weighed."""
    none, of_side = np.zeros((0, 0)), np.zeros((2, 0, 0))
    found = np.zeros((0, 0, N_WEIGHED))
    return Weighing(
        none,
        none,
        found,
        none,
        of_side,
        of_side,
        found,
        np.zeros((0, 0, N_POWERS)),
        np.zeros((0, 0, MOST_HEAVY, 2)),
        np.zeros((0, 0), dtype=np.int64),
        np.zeros((0, 0, N_SIDE_POWERS)),
        np.zeros((0, 0, MOST_HEAVY_SIDES, 4)),
        np.zeros((0, 0), dtype=np.int64),
    )


def no_bins(shape: tuple[int, int], n_bins: int) -> FirstBins:
    """Return a table of items without a pair; the narrower type stays in the cache."""
    if n_bins < 256:
        return np.full(shape, n_bins, dtype=np.uint8)
    return np.full(shape, n_bins, dtype=np.uint16)


class FirstBinTables:
    """The first bin of each item, in one table for each block that is swept at the same time.

    Lowering an entry is not safe from two threads at once.
    """

    def __init__(self, n_items: int, n_slots: int, n_bins: int) -> None:
        self.shape = (n_items, n_slots)
        self.n_bins = n_bins
        self.free: list[FirstBins] = []

    @contextmanager
    def lent(self) -> Iterator[FirstBins]:
        """Lend a table to one block."""
        try:
            table = self.free.pop()
        except IndexError:
            table = no_bins(self.shape, self.n_bins)
        yield table
        self.free.append(table)

    def first(self) -> FirstBins:
        """Return the first bin of each item over all blocks, as (item, slot)."""
        return np.minimum.reduce(self.free) if self.free else no_bins((0, 0), self.n_bins)


def count_first(
    first: FirstBins, n_groups: int, n_bins: int, rows: Sequence[int | tuple[int, int]]
) -> Ints:
    """Return how many items have a pair up to each bin, in a row or in either of two.

    Parameters
    ----------
    first : array (item, slot)
        The first bin of each item.
    """
    found = np.zeros((len(rows), n_groups, n_bins + 1), dtype=np.int64)
    for k, row in enumerate(rows if len(first) else ()):
        for g in range(n_groups):
            slots = [one * n_groups + g for one in np.atleast_1d(row)]
            here = np.minimum.reduce([first[:, slot] for slot in slots])
            found[k, g] = np.bincount(here, minlength=n_bins + 1)
    return np.cumsum(found[..., :-1], axis=-1)
