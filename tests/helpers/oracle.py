"""An audit by double loops: slow, plain, and written from the definitions alone.

Nothing here imports ``mpc_lab``. Sums are exact: outcomes become fractions, so that a variance of
zero is zero and not a rounding error, and only finished numbers become floats.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
from scipy import stats

MODES = ("matched", "mirrored", "adjacent")
FAMILIES = ("naive", "query", "item", "union")
NAN = float("nan")


@dataclass(frozen=True, repr=False)
class Log:
    """The rows of a ranking log, one list a column."""

    query: list
    score: list[float]
    outcome: list[float]
    groups: list[frozenset[str]]
    item: list | None = None
    unit: list | None = None
    position: list[int] | None = None

    def __repr__(self) -> str:
        known = {name: values for name, values in vars(self).items() if values is not None}
        rows = zip(*known.values(), strict=True)
        lines = [
            ", ".join(",".join(sorted(v)) if isinstance(v, frozenset) else f"{v}" for v in row)
            for row in rows
        ]
        return "\n  ".join([f"Log of {', '.join(known)}", *lines])

    def _repr_pretty_(self, printer, cycle: bool) -> None:  # what hypothesis shows
        printer.text(repr(self))

    @property
    def names(self) -> list[str]:
        return sorted(set().union(*self.groups))

    @property
    def cluster(self) -> list:
        return self.query if self.unit is None else self.unit

    def rows_of(self, query) -> list[int]:
        return [row for row, label in enumerate(self.query) if label == query]


# Who is compared with whom ----------------------------------------------------------------------


def neighbours(log: Log, query, scores: list[float], logged_order: bool) -> set[frozenset[int]]:
    """Return the neighbours in one query's ranked list."""
    rows = log.rows_of(query)
    if logged_order and log.position is not None:
        return {
            frozenset((a, b)) for a in rows for b in rows if log.position[b] - log.position[a] == 1
        }
    tie_break = log.position if log.position is not None else list(range(len(scores)))
    ranked = sorted(rows, key=lambda row: (-scores[row], tie_break[row]))
    return {frozenset(two) for two in itertools.pairwise(ranked)}


def pairs(
    log: Log,
    group: str,
    mode: str,
    epsilon: float = math.inf,
    scores: list[float] | None = None,
) -> list[tuple[int, int]]:
    """Return the pairs (row of g, other row); ``scores`` are those of a rule besides baseline."""
    s = log.score if scores is None else scores
    kept = []
    for query in dict.fromkeys(log.query):
        rows = log.rows_of(query)
        beside = neighbours(log, query, s, logged_order=scores is None)
        for i in rows:
            for j in rows:
                if group not in log.groups[i] or group in log.groups[j]:
                    continue
                if mode == "matched":
                    keep = 0 <= s[j] - s[i] <= epsilon
                elif mode == "mirrored":
                    keep = 0 <= s[i] - s[j] <= epsilon
                else:
                    keep = frozenset((i, j)) in beside and abs(s[i] - s[j]) <= epsilon
                if keep:
                    kept.append((i, j))
    return kept


def pairs_wanted(rule, n_pairs: int) -> int | None:
    """Return K of ('quantile', p) or ('smallest', K); a plain number has none."""
    if not isinstance(rule, tuple):
        return None
    kind, value = rule
    if kind == "smallest":
        return value
    return max(1, math.ceil(Fraction(Decimal(str(value))) * n_pairs))


def threshold(log: Log, group: str, rule, scores: list[float] | None = None) -> float:
    """Return the K-th smallest gap of the matched pairs, NaN where there is no pair."""
    s = log.score if scores is None else scores
    gaps = sorted(s[j] - s[i] for i, j in pairs(log, group, "matched", scores=scores))
    wanted = pairs_wanted(rule, len(gaps))
    if wanted is None:
        return float(rule)
    return gaps[min(wanted, len(gaps)) - 1] if gaps else NAN


def tie_inflation(log: Log, group: str, rule) -> float:
    """Return how many times more pairs than K the threshold lets in."""
    wanted = pairs_wanted(rule, len(pairs(log, group, "matched")))
    kept = len(pairs(log, group, "matched", threshold(log, group, rule)))
    return kept / wanted if wanted and kept else NAN


def default_grid(thresholds: list[float], ties: bool) -> list[float]:
    """Return the round numbers from a tenth of the smallest ε > 0 to ten times the largest."""
    positive = [Fraction(value) for value in thresholds if value > 0]
    steps = [
        Fraction(step) * Fraction(10) ** k for k in range(-9, 9) for step in (1, 1.5, 2, 3, 5, 7)
    ]
    first = max(value for value in steps if value <= min(positive) / 10)
    last = min(value for value in steps if value >= max(positive) * 10)
    return ties * [0.0] + [float(value) for value in steps if first <= value <= last]


# Sums ---------------------------------------------------------------------------------------------


def double_sum(u: list[int], related: np.ndarray) -> int:
    """Add u[a]·u[b] over all related a and b, exactly."""
    largest = max(abs(value) for value in u)
    fits = (largest * len(u)) ** 2 < 2**62
    values = np.array(u, dtype=np.int64 if fits else object)
    return int(values @ (related.astype(values.dtype) @ values))


def same(labels: list) -> np.ndarray:
    """Return the square table of which labels are equal."""
    codes = np.unique([str(label) for label in labels], return_inverse=True)[1]
    return codes[:, None] == codes[None, :]


def share_item(log: Log, kept: list[tuple[int, int]]) -> np.ndarray:
    """Return the square table of which pairs have an item in common, in either role."""
    items = [log.item[i] for i, _ in kept] + [log.item[j] for _, j in kept]
    equal = same(items)
    n = len(kept)
    return equal[:n, :n] | equal[:n, n:] | equal[n:, :n] | equal[n:, n:]


def effective(labels: list) -> Fraction:
    """Return (Σ c)² / Σ c² over the clusters that the labels name."""
    counts = Counter(labels).values()
    return Fraction(sum(counts) ** 2, sum(count**2 for count in counts))


def item_effective(log: Log, kept: list[tuple[int, int]]) -> Fraction:
    """Return the smaller effective number of items of the two sides."""
    return min(effective([log.item[pair[side]] for pair in kept]) for side in (0, 1))


def items_recur(log: Log) -> bool:
    """Say whether some item of the log is in two queries (two units, where there are units)."""
    return len(set(zip(log.item, log.cluster, strict=True))) > len(set(log.item))


@dataclass
class Sums:
    """What the pairs of one cell add up to; variances are raw, fractions are exact."""

    n_pairs: int = 0
    n_queries: int = 0
    n_clusters: int = 0
    n_items: int = 0
    estimate: Fraction | None = None
    raw: dict[str, Fraction] = field(default_factory=dict)
    cr3: dict[str, Fraction | None] = field(default_factory=dict)
    largest_query_share: Fraction | None = None
    heavy_share: Fraction | None = None
    size: dict[str, Fraction] = field(default_factory=dict)


def sums(log: Log, kept: list[tuple[int, int]], contrast: str = "difference") -> Sums:
    """Return counts, mean gap, raw variances and effective cluster counts of a list of pairs."""
    if not kept:
        return Sums()
    n = len(kept)
    d = [Fraction(log.outcome[i]) - Fraction(log.outcome[j]) for i, j in kept]
    if contrast == "sign":
        d = [Fraction((value > 0) - (value < 0)) for value in d]
    theta = sum(d) / n
    scale = math.lcm(n, *(value.denominator for value in d)) * n
    u = [int((value - theta) * scale) for value in d]
    clusters = [log.cluster[i] for i, _ in kept]
    in_cluster = same(clusters)

    def variance(related: np.ndarray) -> Fraction:
        return Fraction(double_sum(u, related), (n * scale) ** 2)

    found = Sums(n, len({log.query[i] for i, _ in kept}), len(set(clusters)), 0, theta)
    found.raw = {"naive": variance(np.eye(n, dtype=bool)), "query": variance(in_cluster)}
    found.size = {"naive": Fraction(n), "query": effective(clusters)}
    found.cr3 = {"query": changes(d, by_label([[label] for label in clusters]))}
    found.largest_query_share = Fraction(max(Counter(clusters).values()), n)
    squares = [sum(u[p] for p in members) ** 2 for members in by_label([[c] for c in clusters])]
    if any(squares):
        found.heavy_share = Fraction(max(squares), sum(squares))
    if log.item is not None:
        in_item = share_item(log, kept)
        found.n_items = len({log.item[row] for pair in kept for row in pair})
        found.raw["item"] = variance(in_item)
        found.raw["both"] = variance(in_item & in_cluster)
        found.raw["union"] = found.raw["item"] + found.raw["query"] - found.raw["both"]
        of_items = [[log.item[i], log.item[j]] for i, j in kept]
        dyads = by_label([[frozenset(map(str, two))] for two in of_items])
        again = Fraction(sum(sum(u[p] for p in same_two) ** 2 for same_two in dyads))
        found.cr3["item"] = found.cr3["union"] = None
        alone = changes(d, by_label(of_items))
        if alone is not None:
            found.cr3["item"] = alone - again / (n * scale) ** 2
            if found.cr3["query"] is not None:
                found.cr3["union"] = found.cr3["item"] + found.cr3["query"] - found.raw["both"]
        found.size["item"] = item_effective(log, kept)
        found.size["union"] = found.size["query"]
        if items_recur(log):
            found.size["union"] = min(found.size["query"], found.size["item"])
    return found


def by_label(labels: list[list]) -> list[list[int]]:
    """Return the pairs of each cluster; a pair may be in several."""
    found: dict = {}
    for pair, names in enumerate(labels):
        for name in names:
            found.setdefault(name, []).append(pair)
    return list(found.values())


def changes(d: list[Fraction], clusters: list[list[int]]) -> Fraction | None:
    """Add the squared changes of the mean where one cluster is left out; None: nothing is left."""
    mean, total = sum(d) / len(d), Fraction(0)
    for members in clusters:
        rest = len(d) - len(members)
        if not rest:
            return None
        total += (mean - (sum(d) - sum(d[p] for p in members)) / rest) ** 2
    return total


def sums_of_part(log: Log, kept: list[tuple[int, int]]) -> Sums:
    """Return the sums of some pairs; items that recur outside of them do not count as shared."""
    found = sums(log, kept)
    seen = {(log.item[row], log.cluster[row]) for pair in kept for row in pair}
    if kept and len(seen) == len({item for item, _ in seen}):
        found.size["union"] = found.size["query"]
    return found


# Inference ----------------------------------------------------------------------------------------


def used_variance(found: Sums, cluster: str, correction: str = "cr3") -> Fraction | None:
    """Return the variance that intervals of this kind of clustering are made of."""
    raw, g = found.raw, found.size[cluster]
    if cluster != "naive" and correction == "cr3":
        cr3 = found.cr3
        if None in (cr3.values() if cluster == "union" else [cr3[cluster]]):
            return None
        if cluster == "query":
            return cr3["query"] * Fraction(found.n_clusters - 1, found.n_clusters)
        return max(cr3.values()) if cluster == "union" else cr3["item"]
    if cluster == "naive":
        return raw["naive"]
    if cluster == "query":
        return raw["query"] * Fraction(found.n_clusters, found.n_clusters - 1)
    largest = raw["item"]
    if cluster == "union":
        largest = max(raw["union"], raw["query"], raw["item"])
    return largest * g / (g - 1)


def variance_from(found: Sums, correction: str = "cr3") -> str:
    """Return the name of the largest of the three variances; near ties count as union."""
    raw = found.cr3 if correction == "cr3" else found.raw
    largest = max(raw[name] for name in ("union", "query", "item"))
    if raw["union"] >= largest * (1 - Fraction(1, 10**12)):
        return "union"
    return "query" if raw["query"] == largest else "item"


def estimable(found: Sums, cluster: str, correction: str = "cr3") -> bool:
    """Say whether the cell has at least three effective clusters and a variance."""
    if not found.n_pairs or found.size[cluster] < 3:
        return False
    variance = used_variance(found, cluster, correction)
    return variance is not None and variance > 0


@dataclass(frozen=True)
class Cell:
    """The numbers of one cell; one that is not estimable has counts and a mean, no more."""

    n_pairs: int
    n_queries: int
    n_items: int
    estimate: float
    estimable: bool
    std_error: float = NAN
    ci_low: float = NAN
    ci_high: float = NAN
    p_value: float = NAN
    n_effective: float = NAN
    dof: float = NAN


def cell(found: Sums, cluster: str, level: float = 0.95, correction: str = "cr3") -> Cell:
    """Return the inference of one cell: t with G − 1 degrees of freedom, G effective."""
    mean = NAN if found.estimate is None else float(found.estimate)
    shown = (found.n_pairs, found.n_queries, found.n_items, mean)
    if not estimable(found, cluster, correction):
        return Cell(*shown, estimable=False)
    se = math.sqrt(used_variance(found, cluster, correction))
    g = float(found.size[cluster])
    t = stats.t(g - 1)
    half = t.ppf(1 - (1 - level) / 2) * se
    return Cell(
        *shown,
        estimable=True,
        std_error=se,
        ci_low=mean - half,
        ci_high=mean + half,
        p_value=2 * t.sf(abs(mean) / se),
        n_effective=g,
        dof=g - 1,
    )


def verdict(own: Cell, other: Cell, tolerance: float | None = None) -> tuple[str, str]:
    """Return verdict and reason without multiplicity; ``other`` is the mirrored cell.

    ``adjacent`` cells pass themselves as ``other``: they use one interval on both sides.
    """
    if not (own.estimable and other.estimable):
        return "not estimable", ""
    low, high = min(own.ci_low, other.ci_low), max(own.ci_high, other.ci_high)
    if tolerance is not None and -tolerance <= low and high <= tolerance:
        return "within tolerance", ""
    if low > 0:
        return "undervalued", ""
    if high < 0:
        return "overvalued", ""
    if own.ci_low > 0 and other.ci_high < 0:
        return "inconclusive", "scores run against outcomes"
    if own.ci_high < 0 or other.ci_low > 0:
        return "inconclusive", "bracket"
    return "inconclusive", "interval covers 0"


def bracket_mde(sides: list[Cell], level: float = 0.95, power: float = 0.8) -> float:
    """Return the smallest gap that all sides show together with the given power."""
    if not all(side.estimable for side in sides):
        return NAN
    weakest = max(sides, key=lambda side: side.std_error)
    t = stats.t(weakest.dof)
    return (t.ppf(1 - (1 - level) / 2) + t.ppf(power ** (1 / len(sides)))) * weakest.std_error
