"""Capped pairs and bets on them, in plain loops over rows, queries and θ."""

from __future__ import annotations

import math

_WORD = (1 << 64) - 1


def mix(bits):
    """SplitMix64 on a Python int."""
    bits = (bits + 0x9E3779B97F4A7C15) & _WORD
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _WORD
    return bits ^ (bits >> 31)


def closest_pairs(rows, members, mode, epsilon, cap, seed=0):
    """Return (c, D) of the capped pairs of some rows.

    Each row is (number in the log, query, score, outcome); `mode` is matched or mirrored.
    """
    found = []
    for i, query_i, score_i, outcome_i in rows:
        for j, query_j, score_j, outcome_j in rows:
            if query_i != query_j or i not in members or j in members:
                continue
            ahead = score_j - score_i if mode == "matched" else score_i - score_j
            if 0 <= ahead <= epsilon:
                found.append((ahead, mix(mix(mix(seed) ^ i) ^ j), outcome_i - outcome_j))
    kept = sorted(found)[:cap]
    return len(kept), math.fsum(d for _, _, d in kept)


def capital(clusters, theta, *, width, cap, level, planned, most_lost=0.9):
    """Return M⁺ and M⁻ against θ after bets on (c, D) in turn, each from those before it."""
    up = down = 1.0
    for number, (c, d) in enumerate(clusters, 1):
        before = clusters[: number - 1]
        count = sum(one for one, _ in before)
        mean = sum(one for _, one in before) / count if count else 0.0
        squares = sum((d_ - mean * c_) ** 2 for c_, d_ in before)
        variance = (width**2 / 4 + squares) / number
        bet = math.sqrt(2 * math.log(2 / (1 - level)) / (variance * max(planned, number)))
        bet = min(bet, most_lost / (cap * (width + abs(theta))))
        up *= 1 + bet * (d - theta * c)
        down *= 1 - bet * (d - theta * c)
    return up, down


def capital_of_sums(clusters, theta, *, width, cap, halvings=12):
    """Return E⁺ and E⁻ against θ: the mean over bets fixed in advance, query by query."""
    up = down = 0.0
    for k in range(halvings):
        bet = 0.5**k / (2 * cap * (width + abs(theta)))
        log_up = sum(bet * (d - theta * c) - (bet * (d - theta * c)) ** 2 for c, d in clusters)
        log_down = sum(-bet * (d - theta * c) - (bet * (d - theta * c)) ** 2 for c, d in clusters)
        up += math.exp(log_up) / halvings
        down += math.exp(log_down) / halvings
    return up, down


def hull(against, width, enough, points=2001):
    """Return the smallest and the largest θ of a fine grid against which ½(M⁺ + M⁻) < enough."""
    grid = [-width + 2 * width * k / (points - 1) for k in range(points)]
    left = [theta for theta in grid if sum(against(theta)) / 2 < enough]
    return (min(left), max(left)) if left else (math.nan, math.nan)
