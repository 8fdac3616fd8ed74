"""Passes over the two runs of a group that is boosted: its pairs, and its merged lists."""

from __future__ import annotations

from mpc_lab.pairing.kernels import kernel
from mpc_lab.vocabulary import Flags, Floats, Ints

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
                # Outcomes are measured from one of them, so that large ones do not cancel.
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
