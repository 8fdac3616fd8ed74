"""The rows of each query in two sorted runs, inside and outside a group.

A boost moves one run against the other and keeps the order inside each, so whatever depends on a
boost is one pass over two runs: no sort, and no list of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.pairing.kernels import kernel
from mpc_lab.pairing.log import Log
from mpc_lab.vocabulary import Flags, Floats, Ints

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


@dataclass(frozen=True)
class Run:
    """The rows of one side, sorted by query and score.

    Attributes
    ----------
    starts : int64 array, one longer than the number of queries
    score, outcome : float64 array
    place : int64 array
        Where the row stands in the log.
    turn : int64 array
        Tied rows of a query are listed in ascending turn.
    """

    starts: Ints
    score: Floats
    outcome: Floats
    place: Ints
    turn: Ints


@dataclass(frozen=True)
class Sides:
    """The two runs of a log, and where its units and queries start."""

    units: Ints
    starts: Ints
    inside: Run
    outside: Run


def split(log: Log, ranking: Ranking, group: str) -> Sides:
    """Take a sorted log apart into the rows inside and outside a group."""
    member = ranking.member(group)[log.row]
    return Sides(log.units, log.starts, _run(log, ranking, member), _run(log, ranking, ~member))


def mean_difference(sides: Sides) -> float:
    """Return the mean of d over all cross-group pairs of all queries; 0 without any."""
    inside, outside = sides.inside, sides.outside
    n_in, n_out = np.diff(inside.starts), np.diff(outside.starts)
    both = (n_in > 0) & (n_out > 0)
    origin = outside.outcome[outside.starts[:-1][both]]

    def sums(run: Run) -> Floats:
        query = np.repeat(np.arange(len(both)), np.diff(run.starts))
        place = np.cumsum(both)[query] - 1
        y = (run.outcome - origin[place])[both[query]]
        return np.bincount(place[both[query]], y, minlength=len(origin)).astype(np.float64)

    pairs = float(n_in[both] @ n_out[both])
    if not pairs:
        return 0.0
    return float(n_out[both] @ sums(inside) - n_in[both] @ sums(outside)) / pairs


def _run(log: Log, ranking: Ranking, chosen: Flags) -> Run:
    place = np.flatnonzero(chosen)
    row = log.row[place]
    return Run(
        starts=np.searchsorted(place, log.starts).astype(np.int64),
        score=log.score[place],
        outcome=log.outcome[place],
        place=place,
        turn=row if ranking.position is None else ranking.position[row],
    )


PAIRS, CLUSTERS, SUM, SQUARES, CC, CU, UU = range(7)
N_SUMS = 7


@kernel
def add_windows(
    units: Ints,
    kept: Flags,
    in_starts: Ints,
    in_score: Floats,
    in_outcome: Floats,
    out_starts: Ints,
    out_score: Floats,
    out_outcome: Floats,
    low: Floats,
    high: Floats,
    center: float,
    sums: Floats,
) -> None:
    """Add, for each k, the cross-group pairs with low[k] ≤ s(j) − s(i) ≤ high[k].

    `sums` (k, 7) are pairs, units with a pair, Σx and Σx² over pairs, x = d − center, and over
    units Σc², ΣcU and ΣU², as in `mpc_lab.pairing.moments.Quadratic`. Both ends only move forward
    as i does, so a step costs the rows of the unit, however many pairs there are.
    """
    for unit in range(len(units) - 1):
        if not kept[unit]:
            continue
        for k in range(len(low)):
            pairs, total, squares = 0.0, 0.0, 0.0
            for q in range(units[unit], units[unit + 1]):
                first, last = out_starts[q], out_starts[q + 1]
                if first == last:
                    continue
                # Outcomes are counted from one of them, so that large ones do not cancel.
                origin = out_outcome[first]
                behind, ahead = first, first
                y_total, y_squares = 0.0, 0.0
                for i in range(in_starts[q], in_starts[q + 1]):
                    while ahead < last and out_score[ahead] - in_score[i] <= high[k]:
                        y = out_outcome[ahead] - origin
                        y_total += y
                        y_squares += y * y
                        ahead += 1
                    while behind < ahead and out_score[behind] - in_score[i] < low[k]:
                        y = out_outcome[behind] - origin
                        y_total -= y
                        y_squares -= y * y
                        behind += 1
                    if behind == ahead:
                        y_total, y_squares = 0.0, 0.0
                        continue
                    n = ahead - behind
                    y = in_outcome[i] - origin - center
                    pairs += n
                    total += n * y - y_total
                    squares += (n * y - 2 * y_total) * y + y_squares
            if pairs:
                line = sums[k]
                line[PAIRS] += pairs
                line[CLUSTERS] += 1
                line[SUM] += total
                line[SQUARES] += squares
                line[CC] += pairs * pairs
                line[CU] += pairs * total
                line[UU] += total * total


@kernel
def list_window(
    units: Ints,
    kept: Flags,
    in_starts: Ints,
    in_score: Floats,
    out_starts: Ints,
    out_score: Floats,
    low: float,
    high: float,
    i: Ints,
    j: Ints,
) -> None:
    """Write down the pairs of one window; `i` and `j` have room for as many as were counted."""
    n = 0
    for unit in range(len(units) - 1):
        if not kept[unit]:
            continue
        for q in range(units[unit], units[unit + 1]):
            behind, last = out_starts[q], out_starts[q + 1]
            for one in range(in_starts[q], in_starts[q + 1]):
                while behind < last and out_score[behind] - in_score[one] < low:
                    behind += 1
                for other in range(behind, last):
                    if out_score[other] - in_score[one] > high:
                        break
                    i[n], j[n] = one, other
                    n += 1


@kernel
def merge_boosted(
    in_starts: Ints,
    in_score: Floats,
    in_worth: Floats,
    in_place: Ints,
    in_turn: Ints,
    out_starts: Ints,
    out_score: Floats,
    out_worth: Floats,
    out_place: Ints,
    out_turn: Ints,
    alpha: float,
    weights: Floats,
    dcg: Floats,
    moved: Ints,
) -> None:
    """Write the DCG of each query with g raised by α, and how many of its places have a new row."""
    for q in range(len(dcg)):
        i, j = in_starts[q + 1] - 1, out_starts[q + 1] - 1
        here = in_starts[q + 1] + out_starts[q + 1] - 1
        rank, dcg[q], moved[q] = 0, 0.0, 0
        while i >= in_starts[q] or j >= out_starts[q]:
            if j < out_starts[q] or (i >= in_starts[q] and in_score[i] + alpha > out_score[j]):
                value = in_score[i] + alpha
            else:
                value = out_score[j]
            shared, gain, tied = 0.0, 0.0, 0
            while True:
                inside = i >= in_starts[q] and in_score[i] + alpha == value
                outside = j >= out_starts[q] and out_score[j] == value
                if not inside and not outside:
                    break
                if inside and (not outside or in_turn[i] < out_turn[j]):
                    gain += in_worth[i]
                    moved[q] += in_place[i] != here - rank
                    i -= 1
                else:
                    gain += out_worth[j]
                    moved[q] += out_place[j] != here - rank
                    j -= 1
                shared += weights[rank]
                rank += 1
                tied += 1
            dcg[q] += gain * (shared / tied)
