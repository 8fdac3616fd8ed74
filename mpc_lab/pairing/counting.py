"""Count and collect the gaps of ``matched`` pairs without visiting all of them.

For an item of g, the rows whose score is tied or above by at most x are a run of the sorted query.
Its end only moves forward as the item does, so one pointer for each group counts in one pass,
however many pairs there are.
"""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.arrays import Floats, Ints, Masks
from mpc_lab.pairing.bits import ONE, lowest
from mpc_lab.pairing.compiling import kernel


@kernel
def count_all(
    units: Ints, starts: Ints, score: Floats, mask: Masks, first: int, last: int, total: Ints
) -> None:
    """Add to `total` the ``matched`` pairs of each group with no limit on the gap."""
    seen = np.zeros(len(total), dtype=np.int64)
    for q in range(units[first], units[last]):
        start, end = starts[q], starts[q + 1]
        if end - start < 2:
            continue
        seen[:] = 0
        tie_end = end
        while tie_end > start:
            tie = tie_end - 1
            while tie > start and score[tie - 1] == score[tie_end - 1]:
                tie -= 1
            for i in range(tie, tie_end):
                bits = mask[i]
                while bits:
                    seen[lowest(bits)] += 1
                    bits &= bits - ONE
            for i in range(tie, tie_end):
                bits = mask[i]
                while bits:
                    g = lowest(bits)
                    total[g] += (end - tie) - seen[g]
                    bits &= bits - ONE
            tie_end = tie


@kernel
def count_within(
    units: Ints,
    starts: Ints,
    score: Floats,
    mask: Masks,
    wanted: np.uint64,
    limit: Floats,
    first: int,
    last: int,
    count: Ints,
) -> None:
    """Add to `count` the ``matched`` pairs of each wanted group with a gap of at most its limit."""
    seen = np.zeros(len(count), dtype=np.int64)
    pointer = np.zeros(len(count), dtype=np.int64)
    seen_at_pointer = np.zeros(len(count), dtype=np.int64)
    for q in range(units[first], units[last]):
        start, end = starts[q], starts[q + 1]
        if end - start < 2:
            continue
        seen[:] = 0
        pointer[:] = start
        tie = start
        while tie < end:
            tie_end = tie
            while tie_end < end and score[tie_end] == score[tie]:
                bits = mask[tie_end] & wanted
                while bits:
                    g = lowest(bits)
                    bits &= bits - ONE
                    p, s = pointer[g], seen_at_pointer[g]
                    if p <= tie:
                        p, s = tie, seen[g]
                    while p < end and score[p] - score[tie] <= limit[g]:
                        s += np.int64((mask[p] >> np.uint64(g)) & ONE)
                        p += 1
                    pointer[g], seen_at_pointer[g] = p, s
                    count[g] += (p - tie) - (s - seen[g])
                tie_end += 1
            for i in range(tie, tie_end):
                bits = mask[i] & wanted
                while bits:
                    seen[lowest(bits)] += 1
                    bits &= bits - ONE
            tie = tie_end


@kernel
def collect_between(
    units: Ints,
    starts: Ints,
    score: Floats,
    mask: Masks,
    wanted: np.uint64,
    above: Floats,
    limit: Floats,
    first: int,
    last: int,
    place: Ints,
    gaps: Floats,
) -> None:
    """Write to `gaps`, from `place` on, the gaps of each wanted group in (above, limit]."""
    pointer = np.zeros(len(place), dtype=np.int64)
    for q in range(units[first], units[last]):
        start, end = starts[q], starts[q + 1]
        pointer[:] = start
        tie = start
        for i in range(start, end):
            if score[i] != score[tie]:
                tie = i
            bits = mask[i] & wanted
            while bits:
                g = lowest(bits)
                bits &= bits - ONE
                p = max(pointer[g], tie)
                while p < end and score[p] - score[i] <= above[g]:
                    p += 1
                pointer[g] = p
                while p < end and score[p] - score[i] <= limit[g]:
                    if not (mask[p] >> np.uint64(g)) & ONE:
                        gaps[place[g]] = score[p] - score[i]
                        place[g] += 1
                    p += 1
