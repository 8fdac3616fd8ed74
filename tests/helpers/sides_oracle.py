"""The mode of two sides by double loops, written from its definition alone.

Nothing here imports ``mpc_lab``. A pair on a side has a weight and a cell; what a pair adds to the
error of the estimate is worked out for each pair by itself, and variances are sums over pairs of
pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helpers.oracle import Log, same, share_item

BELOW, ABOVE = "below", "above"
PLACES = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 9), (10, 19), (20, float("inf")))
APART = ((1, 1), (2, 2), (3, 4), (5, 8), (9, float("inf")))


@dataclass(frozen=True)
class Entry:
    """A pair on one side: its number among the pairs, side, cell, weight and distance."""

    pair: int
    side: str
    cell: tuple
    weight: float
    distance: float


def class_of(value: int, classes) -> int:
    """Return which of the classes a number falls in."""
    return next(k for k, (low, high) in enumerate(classes) if low <= value <= high)


def two_sides(log: Log, group: str, epsilon: float, scores: list[float] | None = None):
    """Return the pairs (row of g, other row) and their entries on either side."""
    s = log.score if scores is None else scores
    kept, entries = [], []
    for i in range(len(s)):
        for j in range(len(s)):
            if log.query[i] != log.query[j] or group not in log.groups[i]:
                continue
            if group in log.groups[j] or abs(s[i] - s[j]) > epsilon:
                continue
            number, distance = len(kept), abs(s[i] - s[j])
            kept.append((i, j))
            if log.position is not None:
                upper, lower = sorted((log.position[i], log.position[j]))
                cell = (class_of(upper, PLACES), class_of(lower - upper, APART))
                side = ABOVE if log.position[i] < log.position[j] else BELOW
                entries.append(Entry(number, side, cell, 1.0, distance))
            elif s[i] == s[j]:
                entries += [Entry(number, side, (), 0.5, 0.0) for side in (BELOW, ABOVE)]
            else:
                entries.append(Entry(number, BELOW if s[i] < s[j] else ABOVE, (), 1.0, distance))
    return kept, entries


def cell_weights(entries: list[Entry], *, least: int) -> dict[tuple, float]:
    """Return ω of each cell, 0 with fewer than so many pairs on a side."""
    found = {}
    for cell in {entry.cell for entry in entries}:
        here = [entry for entry in entries if entry.cell == cell]
        weight = {side: sum(e.weight for e in here if e.side == side) for side in (BELOW, ABOVE)}
        count = {side: sum(1 for e in here if e.side == side) for side in (BELOW, ABOVE)}
        a, b = weight[ABOVE], weight[BELOW]
        found[cell] = a * b / (a + b) if min(count.values()) >= least else 0.0
    return found


@dataclass
class TwoSided:
    """What the pairs of a cell of two sides come to."""

    pairs: list
    estimate: float
    place_overlap: float
    contribution: np.ndarray
    by_side: dict[str, np.ndarray]
    weight: dict[str, np.ndarray]

    def raw(self, log: Log, contribution=None) -> dict[str, float]:
        """Return the raw variances, by sums over pairs of pairs."""
        z = self.contribution if contribution is None else contribution
        in_query = same([log.cluster[i] for i, _ in self.pairs])
        found = {"naive": z @ z, "query": z @ in_query @ z}
        if log.item is not None:
            in_item = share_item(log, self.pairs)
            found["item"] = z @ in_item @ z
            found["both"] = z @ (in_item & in_query) @ z
            found["union"] = found["item"] + found["query"] - found["both"]
        return found

    def cr3(self, log: Log) -> dict[str, float]:
        """Return the raw variances with each cluster's part on a side divided by what it leaves.

        Where there is one cell, that is the change of the estimate where the cluster is left out.
        """
        found = {"query": self._changes([[log.cluster[i]] for i, _ in self.pairs])}
        if log.item is not None:
            items = [[log.item[i], log.item[j]] for i, j in self.pairs]
            same_two = same([str(sorted(map(str, two))) for two in items])
            again = self.contribution @ same_two @ self.contribution
            found["item"] = self._changes(items) - again
            found["union"] = found["item"] + found["query"] - self.raw(log)["both"]
        return found

    def _changes(self, labels: list[list]) -> float:
        total = 0.0
        for label in {name for names in labels for name in names}:
            here = np.array([label in names for names in labels])
            left = {side: 1 - w[here].sum() / w.sum() for side, w in self.weight.items()}
            total += sum(self.by_side[side][here].sum() / left[side] for side in left) ** 2
        return total

    def effective(self, log: Log, family: str, *, items_recur: bool = True) -> float:
        """Return G by the rule for estimates made of parts."""
        labels = [[log.cluster[i] for i, _ in self.pairs]]
        if family in ("item", "union"):
            sides = [[log.item[pair[k]] for pair in self.pairs] for k in (0, 1)]
            labels = sides if family == "item" else [*labels, *sides] if items_recur else labels
        stacked = min(_effective(of, self.weight[BELOW] + self.weight[ABOVE]) for of in labels)
        parts = {side: min(_effective(of, self.weight[side]) for of in labels) for side in
                 (BELOW, ABOVE)}  # fmt: skip
        in_query = same([log.cluster[i] for i, _ in self.pairs])
        v = {side: z @ in_query @ z for side, z in self.by_side.items()}
        if min(parts.values()) < 3 * (1 - 1e-9):  # three clusters alike are 3 up to rounding
            return min(stacked, *parts.values())
        below_line = sum(v[side] ** 2 / (parts[side] - 1) for side in v)
        joined = 1 + sum(v.values()) ** 2 / below_line if below_line else np.inf
        return min(stacked, joined)


def _effective(labels: list, weight: np.ndarray) -> float:
    totals: dict = {}
    for label, value in zip(labels, weight, strict=True):
        totals[label] = totals.get(label, 0.0) + value
    return sum(totals.values()) ** 2 / sum(value**2 for value in totals.values())


def sums(log: Log, group: str, epsilon: float, scores=None) -> TwoSided | None:
    """Return the estimate and what each pair adds to its error; None where a side is empty."""
    kept, entries = two_sides(log, group, epsilon, scores)
    omega = cell_weights(entries, least=2 if log.position is not None else 1)
    total = sum(omega.values())
    if not total:
        return None
    d = np.array([log.outcome[i] - log.outcome[j] for i, j in kept])
    estimate = 0.0
    by_side = {side: np.zeros(len(kept)) for side in (BELOW, ABOVE)}
    weight = {side: np.zeros(len(kept)) for side in (BELOW, ABOVE)}
    for cell, value in omega.items():
        for side in (BELOW, ABOVE):
            here = [e for e in entries if e.cell == cell and e.side == side]
            size = sum(e.weight for e in here)
            if not value:
                continue
            mean = sum(e.weight * d[e.pair] for e in here) / size
            estimate += 0.5 * value / total * mean
            for e in here:
                share = value / total * e.weight / size
                by_side[side][e.pair] += 0.5 * share * (d[e.pair] - mean)
                weight[side][e.pair] += share
    overlap = 4 * total / sum(e.weight for e in entries)
    both = by_side[BELOW] + by_side[ABOVE]
    return TwoSided(kept, estimate, overlap, both, by_side, weight)


def place_effect(log: Log, group: str, epsilon: float, scores=None) -> TwoSided | None:
    """Return half the jump of the two sides' intercepts, and what each pair adds to its error."""
    kept, entries = two_sides(log, group, epsilon, scores)
    omega = cell_weights(entries, least=2 if log.position is not None else 1)
    total = sum(omega.values())
    if not total:
        return None
    d = np.array([log.outcome[i] - log.outcome[j] for i, j in kept])
    jump, sign = 0.0, {BELOW: -0.5, ABOVE: 0.5}
    by_side = {side: np.zeros(len(kept)) for side in (BELOW, ABOVE)}
    weight = {side: np.zeros(len(kept)) for side in (BELOW, ABOVE)}
    seen = {side: set() for side in (BELOW, ABOVE)}
    for e in entries:
        seen[e.side].add(e.distance)
    if min(len(values) for values in seen.values()) < 4:
        return None
    for side in (BELOW, ABOVE):
        here = [e for e in entries if e.side == side and omega[e.cell]]
        size = {cell: sum(e.weight for e in entries if e.side == side and e.cell == cell)
                for cell in omega}  # fmt: skip
        w = np.array([omega[e.cell] / total * e.weight / size[e.cell] for e in here])
        columns = np.column_stack([np.ones(len(here)), [e.distance for e in here]])
        y = d[[e.pair for e in here]]
        inner = columns.T @ (w[:, None] * columns)
        if abs(np.linalg.det(inner)) <= 1e-12 * inner[1, 1]:
            return None
        pick = np.linalg.solve(inner, columns.T * w)
        fitted = pick @ y
        jump += sign[side] * fitted[0]
        for e, load, rest, c in zip(here, pick[0], y - columns @ fitted, w, strict=True):
            by_side[side][e.pair] += sign[side] * load * rest
            weight[side][e.pair] += c
    both = by_side[BELOW] + by_side[ABOVE]
    return TwoSided(kept, jump, float("nan"), both, by_side, weight)
