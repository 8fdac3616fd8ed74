"""The rival measures by double loops, written from their papers' formulas alone.

Every function takes a weight for each cluster, 1 for the measure itself: the derivative by a
weight is what that cluster adds to the error, so standard errors have an oracle too.
"""

from __future__ import annotations

import math
from collections import defaultdict

NAN = float("nan")


class Weights(defaultdict):
    """1 for every cluster but those that are set."""

    def __init__(self, **kwargs) -> None:
        super().__init__(lambda: 1.0, **kwargs)


def lists(log):
    """Yield (query, rows in the order of the list, their positions)."""
    for query in dict.fromkeys(log.query):
        rows = log.rows_of(query)
        if log.position is not None:
            rows.sort(key=lambda row: log.position[row])
            yield query, rows, [log.position[row] for row in rows]
        else:
            rows.sort(key=lambda row: (-log.score[row], row))
            yield query, rows, list(range(1, len(rows) + 1))


def inside(log, group, row) -> bool:
    return group in log.groups[row]


def ratio(one: float, other: float) -> float:
    return one / other if other else NAN


def calibration_gap(log, group, w, bins=20) -> float:
    n = len(log.score)
    ranked = sorted(log.score)
    ends = [ranked[math.ceil((b + 1) * n / bins) - 1] for b in range(bins - 1)]
    sums = defaultdict(float)
    for row in range(n):
        b = sum(end < log.score[row] for end in ends)
        side = inside(log, group, row)
        sums["n", b, side] += w[log.cluster[row]]
        sums["y", b, side] += w[log.cluster[row]] * log.outcome[row]
    total = sum(sums["n", b, True] for b in range(bins))
    used = [b for b in range(bins) if sums["n", b, True] and sums["n", b, False]]
    if not used:
        return NAN
    return sum(
        sums["n", b, True]
        / total
        * (sums["y", b, True] / sums["n", b, True] - sums["y", b, False] / sums["n", b, False])
        for b in used
    )


def accuracy(log, group, side, mates, w) -> float:
    """Among pairs with y_j > y_j', j on `side` and j' on one of `mates`, the share in order."""
    right = total = 0.0
    n = range(len(log.score))
    for j in n:
        for k in n:
            if log.query[j] != log.query[k] or not log.outcome[j] > log.outcome[k]:
                continue
            if inside(log, group, j) != side or inside(log, group, k) not in mates:
                continue
            weight = w[log.cluster[j]]
            total += weight
            right += weight * (
                1.0 if log.score[j] > log.score[k] else 0.5 * (log.score[j] == log.score[k])
            )
    return ratio(right, total)


def accuracy_gap(kind):
    def gap(log, group, w) -> float:
        mates = {
            "overall": ((True, False), (True, False)),
            "inter": ((False,), (True,)),
            "intra": ((True,), (False,)),
        }[kind]
        return accuracy(log, group, True, mates[0], w) - accuracy(log, group, False, mates[1], w)

    return gap


def inequality(above, rank=None):
    def mean(log, group, w) -> float:
        total = weights = 0.0
        for _, rows, positions in lists(log):
            weight = w[log.cluster[rows[0]]]
            weights += weight
            for a in range(len(rows) - 1):
                if positions[a + 1] - positions[a] != 1 or rank not in (None, positions[a]):
                    continue
                upper, lower = rows[a], rows[a + 1]
                if (inside(log, group, upper), inside(log, group, lower)) == (above, not above):
                    total += weight * (log.outcome[upper] - log.outcome[lower])
        return total / weights

    return mean


def exposure_sums(log, group, w):
    sums = defaultdict(float)
    for _, rows, positions in lists(log):
        if len({inside(log, group, row) for row in rows}) < 2:
            continue
        for row, position in zip(rows, positions, strict=True):
            side, weight = inside(log, group, row), w[log.cluster[row]]
            v, y = 1 / math.log2(1 + position), log.outcome[row]
            for name, value in (("n", 1.0), ("x", v), ("m", y), ("c", v * y)):
                sums[name, side] += weight * value
    return sums


def exposure(top, bottom):
    def log_ratio(log, group, w) -> float:
        s = exposure_sums(log, group, w)
        parts = s[top, True], s[bottom, True], s[top, False], s[bottom, False]
        if min(parts) <= 1e-12:
            return NAN
        return math.log((parts[0] / parts[1]) / (parts[2] / parts[3]))

    return log_ratio


def skew(k, side=True):
    def log_ratio(log, group, w) -> float:
        got = due = 0.0
        for _, rows, _ in lists(log):
            members = [inside(log, group, row) == side for row in rows]
            top = min(k, len(rows))
            weight = w[log.cluster[rows[0]]]
            got += weight * sum(members[:top])
            due += weight * top * sum(members) / len(rows)
        if not due:
            return NAN
        return math.log(got / due) if got else -math.inf

    return log_ratio


def ndkl(log, group, w) -> float:
    total = weights = 0.0
    for _, rows, _ in lists(log):
        members = [inside(log, group, row) for row in rows]
        whole = sum(members) / len(members)
        value = z = 0.0
        for i in range(1, len(rows) + 1):
            top = sum(members[:i]) / i
            divergence = sum(
                p * math.log(p / q) for p, q in ((top, whole), (1 - top, 1 - whole)) if p > 0
            )
            value += divergence / math.log2(i + 1)
            z += 1 / math.log2(i + 1)
        weights += w[log.cluster[rows[0]]]
        total += w[log.cluster[rows[0]]] * value / z
    return total / weights


def on_log_scale(name: str) -> bool:
    return name.endswith("_ratio")


RIVALS = {
    "calibration_gap": calibration_gap,
    "pairwise_accuracy_overall": accuracy_gap("overall"),
    "pairwise_accuracy_inter": accuracy_gap("inter"),
    "pairwise_accuracy_intra": accuracy_gap("intra"),
    "inequality_group_above": inequality(True),
    "inequality_group_below": inequality(False),
    "exposure_ratio": exposure("x", "n"),
    "treatment_ratio": exposure("x", "m"),
    "impact_ratio": exposure("c", "m"),
    "skew@3": skew(3),
    "ndkl": ndkl,
}


def errors(rival, log, group, step=1e-5) -> list[float]:
    """Return what each cluster adds to the error of a measure, by central differences."""
    found = []
    for cluster in dict.fromkeys(log.cluster):
        up, down = Weights(), Weights()
        up[cluster], down[cluster] = 1 + step, 1 - step
        found.append((rival(log, group, up) - rival(log, group, down)) / (2 * step))
    return found
