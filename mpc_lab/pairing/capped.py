"""At most so many pairs of a query (or unit): the closest ones, chosen without a look at outcomes.

A sequence of bets needs a bound on what one query can add; see `mpc_lab.inference.betting`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_lab.pairing.log import Log
from mpc_lab.pairing.pairs import MOST_LISTED, pair_rows, sums_by_unit
from mpc_lab.pairing.walk import Logs
from mpc_lab.vocabulary import Flags, Floats, Ints, Masks, Mode, Side

# What is added up over units with c pairs and a sum of differences D.
CAPPED_SUMS = ("pairs", "sums", "cc", "cd", "dd")


def capped_by_unit(
    log: Log, member: Flags, side: Side, epsilon: float, cap: int, seed: int
) -> tuple[Floats, Floats]:
    """Return the pairs of each unit, at most `cap`, and the sum of their differences.

    A unit with more keeps those with the smallest distance; of pairs at one distance, those whose
    row numbers have the smallest seeded hash.

    Parameters
    ----------
    log : Log
    member : bool array (row,)
        Whether the row of the log is in the group.
    side : Side
    epsilon : float
        The threshold.
    cap : int
    seed : int

    Returns
    -------
    pairs, sums : float64 arrays (unit,)
        In the order of the log; NaN for a unit that has too many pairs to be looked through.
    """
    pairs, sums = sums_by_unit(log, member, side, epsilon)
    first_rows = log.starts[log.units]
    for first, last in log.blocks:
        if not (pairs[first:last] > cap).any():
            continue
        count = int(pairs[first:last].sum())
        if count > MOST_LISTED:
            large = first + np.flatnonzero(pairs[first:last] > cap)
            pairs[large] = sums[large] = np.nan
            continue
        i, j = pair_rows(log, member, side, epsilon, units=(first, last), count=count)
        unit = np.searchsorted(first_rows, i, side="right") - 1
        kept = _closest(unit, log.distance(i, j), _hash(log, i, j, seed), cap)
        here = unit[kept] - first
        d = log.contrast(i[kept], j[kept])
        pairs[first:last] = np.bincount(here, minlength=last - first)
        sums[first:last] = np.bincount(here, d, minlength=last - first)
    return pairs, sums


def _closest(unit: Ints, distance: Floats, hashed: Masks, cap: int) -> Ints:
    """Return which pairs are among the first `cap` of their unit."""
    order = np.lexsort((hashed, distance, unit))
    ordered = unit[order]
    place = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return np.sort(order[place < cap])


def _hash(log: Log, i: Ints, j: Ints, seed: int) -> Masks:
    """Return a hash of two row numbers, and of the part of the log that they number."""
    hashed = _mix(np.full(len(i), seed, dtype=np.uint64) ^ np.uint64(log.origin))
    for row in (log.row[i], log.row[j]):
        hashed = _mix(hashed ^ row.astype(np.uint64))
    return hashed


def _mix(bits: Masks) -> Masks:
    """Return the next number of a SplitMix64 generator in each of these states."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def capped_totals(
    modes: Sequence[Mode], epsilon: Floats, cap: int, seed: int, logs: Logs
) -> Floats:
    """Return the sums `CAPPED_SUMS` over the units of some logs; a task for `Source.together`.

    Parameters
    ----------
    modes : sequence of Mode
    epsilon : float64 array (rule, group)
        The threshold of each cell.
    cap, seed : int
        As of `capped_by_unit`.
    logs : iterator of (rule, groups, log)

    Returns
    -------
    float64 array (rule, mode, group, sum)
    """
    n_rules, n_groups = epsilon.shape
    total = np.zeros((n_rules, len(modes), n_groups, len(CAPPED_SUMS)))
    for rule, groups, log in logs:
        for k, group in enumerate(groups):
            bit = np.uint64(1) << np.uint64(k % 64)
            member = np.asarray(log.masks[k // 64] & bit != 0)
            for m, mode in enumerate(modes):
                if mode.two_sided:  # a mean of two means is no ratio of sums to bet on
                    continue
                limits = (float(epsilon[rule, group]), cap, seed)
                c, d = capped_by_unit(log, member, mode.side, *limits)
                total[rule, m, group] = [c.sum(), d.sum(), c @ c, c @ d, d @ d]
    return total


def count_outside(low: float, high: float, logs: Logs) -> int:
    """Count the rows of a log whose outcome is not within bounds; a task for `Source.together`."""
    # Where groups are compared with one other group, each has a log of its own.
    return max(int(((log.outcome < low) | (log.outcome > high)).sum()) for _, _, log in logs)
