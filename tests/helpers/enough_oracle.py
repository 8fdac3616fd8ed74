"""`mpc.Enough` by a double loop over pairs: apart from the search that the package does."""

from __future__ import annotations

import math

import numpy as np

WEIGHTS = {"pairs": lambda c: c, "queries": lambda c: float(c > 0), "root": math.sqrt}


def matched_distances(query, member, score):
    """Return (distance, query) of every matched pair, by looking at all pairs of rows."""
    found = []
    for i in np.flatnonzero(member):
        for j in np.flatnonzero(~member & (query == query[i])):
            if score[j] >= score[i]:
                found.append((float(score[j] - score[i]), query[i]))
    return found


def effective(pairs, unit_of, estimand):
    """Return (Σ w)²/Σ w² over units, w what their queries count."""
    counts = {}
    for _, q in pairs:
        counts[q] = counts.get(q, 0) + 1
    units = {}
    for q, c in counts.items():
        units[unit_of[q]] = units.get(unit_of[q], 0.0) + WEIGHTS[estimand](c)
    weights = list(units.values())
    return sum(weights) ** 2 / sum(w * w for w in weights)


def enough(distances, unit_of, reach, pairs, queries, estimand="pairs"):
    """Return ε and whether too few pairs are within reach."""
    if not distances:
        return math.nan, False
    tried = sorted({d for d, _ in distances if d <= reach})
    if not tried:
        return reach, True
    for epsilon in tried:
        close = [pair for pair in distances if pair[0] <= epsilon]
        if len(close) >= pairs and effective(close, unit_of, estimand) >= queries * (1 - 1e-9):
            return epsilon, False
    return tried[-1], True
