"""The examination of places by loops over rows, written from its definition alone.

Nothing here imports ``mpc_lab``. The delta method is written with matrices: the covariance of all
sums, and the gradient of the logarithm.
"""

from __future__ import annotations

import numpy as np
from scipy import stats


def near_neighbours(query, place, score, outcome, unit, epsilon, weight=None):
    """Return (cluster, k, upper, lower outcome, distance, weight) of neighbours, by two loops."""
    found = []
    for i in range(len(query)):
        for j in range(len(query)):
            if query[i] == query[j] and place[j] == place[i] + 1:
                distance = abs(score[i] - score[j])
                if distance <= epsilon:
                    counts = 1.0 if weight is None else weight[i]
                    pair = (unit[i], int(place[i]), outcome[i], outcome[j], distance, counts)
                    found.append(pair)
    return found


def near(query, place, score, share=0.05):
    """Return the distance that a share of all neighbours is within."""
    distances = sorted(
        abs(score[i] - score[j])
        for i in range(len(query))
        for j in range(len(query))
        if query[i] == query[j] and place[j] == place[i] + 1
    )
    return distances[max(1, int(np.ceil(share * len(distances)))) - 1]


def _line(distance, y, weight):
    """Return the intercept of y on 1 and the distance, and each pair's weight in it."""
    x = np.column_stack([np.ones(len(distance)), distance])
    hat = np.linalg.inv(x.T @ np.diag(weight) @ x) @ x.T @ np.diag(weight)
    return hat @ y, hat[0], y - x @ (hat @ y)


def examination(pairs, *, places, limit=False, level=0.95):
    """Return (e, low, high) of place 2, 3, … as far as they are known."""
    rows, log_e, fewest = [], 0.0, np.inf
    clusters = sorted({cluster for cluster, *_ in pairs})
    sums, gradient = [], []
    for k in range(1, places):
        here = [pair for pair in pairs if pair[1] == k]
        counts = np.array([sum(p[5] for p in here if p[0] == c) for c in clusters], dtype=float)
        effective = counts.sum() ** 2 / (counts**2).sum() if counts.any() else 0.0
        if effective < 20:
            break
        by_side, weight = [], np.array([pair[5] for pair in here])
        for side in (2, 3):
            y = np.array([pair[side] for pair in here])
            if limit:
                fit, load, residual = _line(np.array([pair[4] for pair in here]), y, weight)
                level_of_side, each = fit[0], load * residual
            else:
                level_of_side = (weight * y).sum() / weight.sum()
                each = weight * (y - level_of_side) / weight.sum()
            total = [sum(e for e, pair in zip(each, here, strict=True) if pair[0] == c)
                     for c in clusters]  # fmt: skip
            by_side.append((level_of_side, np.array(total)))
        (upper, of_upper), (lower, of_lower) = by_side
        if upper <= 0 or lower <= 0:
            break
        log_e += np.log(lower) - np.log(upper)
        sums += [of_upper, of_lower]
        gradient += [-1 / upper, 1 / lower]
        fewest = min(fewest, effective)
        covariance = np.array(sums) @ np.array(sums).T
        used = np.array([any(p[0] == c and p[1] <= k for p in pairs) for c in clusters]).sum()
        variance = np.array(gradient) @ covariance @ np.array(gradient) * used / (used - 1)
        reach = stats.t.ppf(0.5 + level / 2, fewest - 1) * np.sqrt(variance)
        rows.append((np.exp(log_e), np.exp(log_e - reach), np.exp(log_e + reach)))
    return np.array(rows).reshape(-1, 3)
