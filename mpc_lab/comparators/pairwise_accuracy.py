"""Pairwise accuracy by group: is the item with the higher outcome scored higher?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mpc_lab.comparators.base import (
    Case,
    Comparison,
    Conditions,
    comparison,
    flag_by_p_value,
    share,
)
from mpc_lab.inference.clustered import Clustered, effective, from_influence
from mpc_lab.pairing.kernels import kernel, sort_order
from mpc_lab.pairing.log import Log
from mpc_lab.vocabulary import OVERVALUED, Flags, Floats, Ints

CONDITIONS = Conditions(scores="all", queries="same", looks_at="outcomes")
OUT, IN = 0, 1


def pairwise_accuracy(case: Case) -> list[Comparison]:
    r"""Return the pairwise accuracy of a group less that of the rest: overall, inter, intra.

    Among pairs of one query with :math:`y_j > y_{j'}`, the share with :math:`s_j > s_{j'}`, score
    ties counted one half, where j is in the group; less the same where j is not. ``overall``: j'
    is any item; ``inter``: j' is on the other side; ``intra``: on the same side. Pairs of all
    queries count alike, or the weight of their query. Counted by a tree over outcome ranks,
    O(n log n). The p-value takes the spread about the accuracy of both sides together, which is the
    accuracy of each where nothing is wrong: otherwise a few pairs that are all in order would seem
    to have hardly any spread.

    Parameters
    ----------
    case : Case

    Returns
    -------
    list of Comparison
        ``pairwise_accuracy_overall``, ``_inter``, ``_intra``; negative: items of the group with
        the higher outcome are less often ranked above.

    References
    ----------
    Beutel et al. (2019), Fairness in recommendation ranking through pairwise comparisons.
    """
    right, total = pair_counts(case.log, case.member[case.log.row])
    kinds = {
        "overall": ((IN, OUT), (IN, OUT)),
        "inter": ((OUT,), (IN,)),
        "intra": ((IN,), (OUT,)),
    }
    return [
        _difference(
            f"pairwise_accuracy_{name}",
            right[:, IN, mates].sum(axis=1),
            total[:, IN, mates].sum(axis=1),
            right[:, OUT, others].sum(axis=1),
            total[:, OUT, others].sum(axis=1),
            case.level,
        )
        for name, (mates, others) in kinds.items()
    ]


def _difference(
    name: str,
    right_in: Floats,
    total_in: Floats,
    right_out: Floats,
    total_out: Floats,
    level: float,
) -> Comparison:
    inside, outside = share(right_in, total_in), share(right_out, total_out)
    both = share(right_in + right_out, total_in + total_out)

    def infer(inside_mean: float, outside_mean: float) -> Clustered:
        """Infer with the spread of each side about a mean."""
        influence = np.zeros(len(right_in))
        if np.isfinite(inside - outside):
            influence = (right_in - inside_mean * total_in) / total_in.sum()
            influence -= (right_out - outside_mean * total_out) / total_out.sum()
        return from_influence(
            inside - outside,
            influence,
            min(effective(total_in), effective(total_out)),
            int(np.count_nonzero(total_in + total_out)),
            scale=1.0,
            level=level,
        )

    found = infer(inside, outside)
    if not np.isfinite(found.estimate):
        found = replace(found, reason="no pairs of unequal outcomes on one side")
    made = comparison(name, found, CONDITIONS, high_is=OVERVALUED, inside=inside, outside=outside)
    return flag_by_p_value(replace(made, p_value=infer(both, both).p_value), level)


def pair_counts(log: Log, member: Flags) -> tuple[Floats, Floats]:
    """Return how many pairs with y_j > y_j' each unit has, and how many of these are in order.

    Parameters
    ----------
    log : Log
    member : array of bool
        Membership of the log's rows.

    Returns
    -------
    right, total : float64 array (unit, side of j, side of j')
        Score ties count one half in `right`, and a pair the weight of its query.
    """
    shape = (len(log.units) - 1, 2, 2)
    right, total = np.zeros(shape), np.zeros(shape)
    weight = log.weight if len(log.weight) else np.ones(len(log.starts) - 1)
    _count(log.units, log.starts, log.score, log.outcome, member, weight, right, total)
    return right, total


@kernel
def _count(
    units: Ints,
    starts: Ints,
    score: Floats,
    outcome: Floats,
    member: Flags,
    weight: Floats,
    right: Floats,
    total: Floats,
) -> None:
    longest = 0
    for q in range(len(starts) - 1):
        longest = max(longest, starts[q + 1] - starts[q])
    # Rank of each row's outcome in its query from 1, and a Fenwick tree of counts for each side.
    rank = np.empty(longest, dtype=np.int64)
    order = np.empty(longest, dtype=np.int64)
    spare = np.empty(longest, dtype=np.int64)
    tree = np.empty((longest + 1, 2), dtype=np.int64)
    for unit in range(len(units) - 1):
        for q in range(units[unit], units[unit + 1]):
            start, n = starts[q], starts[q + 1] - starts[q]
            if n < 2:
                continue
            sort_order(outcome[start : start + n], order, spare)
            highest = 0
            for k in range(n):
                if k == 0 or outcome[start + order[k]] != outcome[start + order[k - 1]]:
                    highest += 1
                rank[order[k]] = highest
            tree[: highest + 1] = 0
            tie = 0
            while tie < n:
                end = tie
                while end < n and score[start + end] == score[start + tie]:
                    end += 1
                # Before the tied rows are added, the tree holds those scored strictly below.
                for twice in range(2):
                    for r in range(tie, end):
                        side = 1 if member[start + r] else 0
                        k = rank[r] - 1
                        while k > 0:
                            right[unit, side, 0] += 0.5 * weight[q] * tree[k, 0]
                            right[unit, side, 1] += 0.5 * weight[q] * tree[k, 1]
                            k -= k & -k
                    if twice == 0:
                        for r in range(tie, end):
                            side = 1 if member[start + r] else 0
                            k = rank[r]
                            while k <= highest:
                                tree[k, side] += 1
                                k += k & -k
                tie = end
            for r in range(n):
                side = 1 if member[start + r] else 0
                k = rank[r] - 1
                while k > 0:
                    total[unit, side, 0] += weight[q] * tree[k, 0]
                    total[unit, side, 1] += weight[q] * tree[k, 1]
                    k -= k & -k
