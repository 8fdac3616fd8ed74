"""Logs under rules that keep the order inside a group and outside it, with no row sorted again.

A boost moves the members of a group past the other rows, a calibration moves both. For the pairs of
a group all that matters is how far its members are from the others then, and these are a run of
the logged order: so rows stay where they are, and have one score as a member and one as another
row. A boost gives all groups the same two scores, and one walk serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from mpc_lab.pairing.bookings import (
    Bookings,
    book_pair,
    close_query,
    close_unit,
    make_scratch,
    see_items,
    weigh_unit,
)
from mpc_lab.pairing.kernels import ONE, inlined, kernel, lowest
from mpc_lab.pairing.log import Log
from mpc_lab.pairing.modes import ALL_PAIRS, DOWN, TIE, UP, Layout, PairBins
from mpc_lab.vocabulary import Bins, Floats, Ints, Masks

# As in the choice of a sweep between pairs and windows: the rows of lists that are always visited,
# the cost of a pair in steps of a window, and its extra cost for each group it is booked for.
_SHORT = 256
_PAIR_COST = 2.0
_BOOKING = 4.0


@dataclass(frozen=True)
class MovedLog(Log):
    """A log in its logged order, whose rows have another score as members of a group.

    Only code that takes a pair as a member and another row may walk it, because the order of the
    rows is not that of the ranked list.

    Attributes
    ----------
    raised : float64 array
        The score of a row as a member of a group. Like `score`, that of a row as any other, it
        ascends inside a query.
    """

    raised: Floats = field(kw_only=True)

    @property
    def member_score(self) -> Floats:
        """The score of each row when a group it is in is looked at."""
        return self.raised


def move_rows(log: Log, raised: Floats, score: Floats, masks: Masks) -> MovedLog:
    """Return the log with a score for members and one for other rows.

    Parameters
    ----------
    log : Log
    raised, score : float64 arrays
        By row of the log; inside a query both ascend.
    masks : uint64 array (word, row)
        Membership in the groups that have these scores.
    """
    same = {part.name: getattr(log, part.name) for part in fields(Log)}
    return MovedLog(**(same | {"score": score, "masks": masks, "raised": raised}))


def can_visit(log: MovedLog, layout: Layout) -> bool:
    """Whether every pair of a member and another row can be visited, and nothing else is wanted.

    Neighbours need the order of the ranked list, modes of two sides and weights more than pairs;
    long lists are summed by windows, which need that order too.
    """
    sides = layout.rows.sides
    if layout.rows.twin or layout.weighting.weighted or any(side.neighbours for side in sides):
        return False
    if np.diff(log.starts).max(initial=0) < _SHORT:
        return True
    rows = (log.starts, log.raised, log.score, log.masks[layout.word])
    steps = layout.n_groups * len(layout.sides) * layout.n_bins
    return bool(_most_steps(*rows, float(layout.pair_bins.edges[-1])) <= steps)


def first_partners(log: MovedLog, layout: Layout) -> Bins:
    """Return the first partner of each row as a member, and as another row; -1 without any.

    As an array (row, 2). Those that follow it are partners too, up to the first that is too far
    away, but for those that are in the same groups.
    """
    first = np.full((len(log.row), 2), -1, dtype=np.int32)
    bins = layout.pair_bins
    rows = (log.starts, log.raised, log.score, log.masks[layout.word])
    _find_first(*rows, *reaches(bins.edges, bins.n[ALL_PAIRS]), first)
    return first


@kernel
def _find_first(
    starts: Ints,
    member_score: Floats,
    score: Floats,
    mask: Masks,
    reach_up: float,
    reach_down: float,
    first: Bins,
) -> None:
    for q in range(len(starts) - 1):
        low, end = starts[q], starts[q + 1]
        for member in range(starts[q], end):
            own, of_member = mask[member], member_score[member]
            if not own:
                continue
            while low < end and of_member - score[low] > reach_down:
                low += 1
            for other in range(low, end):
                if score[other] - of_member > reach_up:
                    break
                if own & ~mask[other]:
                    if first[member, 0] < 0:
                        first[member, 0] = other
                    # Members come in order, so that the first to meet a row is its first partner.
                    if first[other, 1] < 0:
                        first[other, 1] = member


@kernel
def _most_steps(
    starts: Ints, member_score: Floats, score: Floats, mask: Masks, epsilon: float
) -> float:
    """Return what it costs to visit the pairs of the costliest long list, in steps a row."""
    most = 0.0
    for q in range(len(starts) - 1):
        start, end = starts[q], starts[q + 1]
        if end - start < _SHORT:
            continue
        low, high, visits, members = start, start, 0.0, 0.0
        for row in range(start, end):
            bits = mask[row]
            while bits:
                bits &= bits - ONE
                members += 1.0
            if not mask[row]:
                continue
            while low < end and member_score[row] - score[low] > epsilon:
                low += 1
            high = max(high, low)
            while high < end and score[high] - member_score[row] <= epsilon:
                high += 1
            visits += high - low
        size = end - start
        most = max(most, visits / size * _PAIR_COST * (1.0 + _BOOKING * members / size))
    return most


def book_moved(layout: Layout, log: MovedLog, first: int, last: int, to: Bookings) -> None:
    """Add the pairs of the units from `first` to before `last`."""
    rows = (log.units, log.starts, log.raised, log.score, log.outcome)
    _sweep(*rows, log.masks[layout.word], log.item, layout.pair_bins, first, last, to)


@inlined
def reaches(edges: Floats, n_taking: Ints) -> tuple[float, float]:
    """Return how far above and below a member its partners are.

    Where only one direction is wanted, the other is not walked beyond ties.
    """
    last = edges[-1]
    return (
        last if n_taking[UP] else min(last, 0.0),
        last if n_taking[DOWN] else min(last, 0.0),
    )


@kernel
def _sweep(
    units: Ints,
    starts: Ints,
    member_score: Floats,
    score: Floats,
    outcome: Floats,
    mask: Masks,
    item: Ints,
    bins: PairBins,
    first: int,
    last: int,
    to: Bookings,
) -> None:
    """Add the pairs of the units from `first` to before `last`: of members with other rows."""
    scratch = make_scratch(to.sums.shape[0], to.sums.shape[1])
    # Taken out of their tuples here: inside the loops that would cost more than the sums.
    sums, first_bin = to.sums, to.first_bin
    in_unit, touched, query_bin = scratch.unit, scratch.touched, scratch.query_bin
    edges, center, local, n_groups = bins.edges, bins.center, bins.local, len(bins.center)
    row, band, n = bins.row[ALL_PAIRS], bins.band[ALL_PAIRS], bins.n[ALL_PAIRS]
    reach_up, reach_down = reaches(edges, n)
    for unit in range(first, last):
        for q in range(units[unit], units[unit + 1]):
            low, end = starts[q], starts[q + 1]
            for member in range(starts[q], end):
                own, of_member = mask[member], member_score[member]
                if not own:
                    continue
                while low < end and of_member - score[low] > reach_down:
                    low += 1
                edge = 0
                for other in range(low, end):
                    signed = score[other] - of_member
                    if signed > reach_up:
                        break
                    differ = own & ~mask[other]
                    if not differ:
                        continue
                    distance = abs(signed)
                    while distance > edges[edge]:
                        edge += 1
                    while edge and distance <= edges[edge - 1]:
                        edge -= 1
                    seen = TIE if signed == 0 else (UP if signed > 0 else DOWN)
                    d = outcome[member] - outcome[other]
                    while differ:
                        g = lowest(differ)
                        differ &= differ - ONE
                        for k in range(n[seen]):
                            b = local[band[seen, k], edge, g]
                            if b >= 0:
                                slot = row[seen, k] * n_groups + g
                                x = d - center[g]
                                book_pair(sums, in_unit, touched, query_bin, slot, b, x)
                                if len(first_bin):
                                    see_items(first_bin, item[member], item[other], slot, b)
            close_query(to, scratch, to.sums.shape[0])
        if len(to.weighing.weight):
            weigh_unit(to.weighing, scratch, to.sums.shape[0])
        close_unit(to, scratch, to.sums.shape[0])
