"""Count and collect the gaps of ``matched`` pairs without visiting all of them.

For an item of g, the rows whose score is tied or above by at most x are a run of the sorted query.
Its end only moves forward as the item does, so one pointer for each group counts in one pass,
however many pairs there are.
"""

from __future__ import annotations

import numpy as np

from mpc_lab.pairing.arrays import Bytes, Floats, Ints, Masks
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
def count_and_collect(
    units: Ints,
    starts: Ints,
    score: Floats,
    mask: Masks,
    wanted: np.uint64,
    low: Floats,
    high: Floats,
    first: int,
    last: int,
    count: Ints,
    which: Bytes,
    gaps: Floats,
) -> int:
    """Add to `count` the ``matched`` pairs of each wanted group with a gap of at most `low`.

    Gaps in (low, high] are written to `gaps`, their groups to `which`. Returned is how many there
    are, whether they have room there or not.
    """
    seen = np.zeros(len(count), dtype=np.int64)
    pointer = np.zeros(len(count), dtype=np.int64)
    seen_at_pointer = np.zeros(len(count), dtype=np.int64)
    n = 0
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
                    while p < end and score[p] - score[tie] <= low[g]:
                        s += np.int64((mask[p] >> np.uint64(g)) & ONE)
                        p += 1
                    pointer[g], seen_at_pointer[g] = p, s
                    count[g] += (p - tie) - (s - seen[g])
                    while p < end and score[p] - score[tie] <= high[g]:
                        if not (mask[p] >> np.uint64(g)) & ONE:
                            if n < len(gaps):
                                which[n], gaps[n] = g, score[p] - score[tie]
                            n += 1
                        p += 1
                tie_end += 1
            for i in range(tie, tie_end):
                bits = mask[i] & wanted
                while bits:
                    seen[lowest(bits)] += 1
                    bits &= bits - ONE
            tie = tie_end
    return n
