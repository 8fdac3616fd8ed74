"""Ranked lists by plain loops over rows, written from the definitions alone."""

from __future__ import annotations

import math
from itertools import groupby


def dcg_weight(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def dcg(scores, gains, weight=dcg_weight) -> float:
    """Sum weight × gain; rows with one score share the mean weight of their places."""
    ranked = sorted(zip(scores, gains, strict=True), key=lambda row: -row[0])
    total, rank = 0.0, 1
    for _, tied in groupby(ranked, key=lambda row: row[0]):
        rows = list(tied)
        shared = math.fsum(weight(rank + k) for k in range(len(rows))) / len(rows)
        total += shared * math.fsum(gain for _, gain in rows)
        rank += len(rows)
    return total


def ideal(gains, weight=dcg_weight) -> float:
    ranked = sorted(gains, reverse=True)
    return math.fsum(weight(k + 1) * gain for k, gain in enumerate(ranked))


def ranked_rows(rows, scores, tie_break) -> list[int]:
    """Return rows in descending score, ties in ascending tie break."""
    return sorted(rows, key=lambda row: (-scores[row], tie_break[row]))
