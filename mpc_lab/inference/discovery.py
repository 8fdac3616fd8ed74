"""The fewest slices that explain the others: slices net of those chosen, and a greedy choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from mpc_lab.inference.partial import estimate_targets, find_kept, solve, sum_contributions
from mpc_lab.pairing.close import Design, Gram, Targets, gram_of
from mpc_lab.pairing.log import Log, PlainWalk, select_groups
from mpc_lab.vocabulary import VARIANCES, Floats

# Slices that are tested in one walk: sums over items are held for all of them at once.
_AT_ONCE = 32
MOST_CHOSEN = 50


class NetTests(NamedTuple):
    """Tests of single slices net of those chosen.

    Attributes
    ----------
    estimate, std_error, statistic, p_value : float64 arrays (slice,)
        NaN where a slice adds nothing to those chosen, or too few clusters are left.
    """

    estimate: Floats
    std_error: Floats
    statistic: Floats
    p_value: Floats


@dataclass(frozen=True)
class NetSlices:
    r"""Tests slices net of others, by the regression of `mpc_lab.inference.partial`.

    A slice is tested in :math:`d = \theta_t \Delta m_t + \sum_{s \in S} \theta_s \Delta m_s +
    \kappa \Delta s + \pi`, S being those chosen, with the clusters of the audit and the plain
    correction. Its effective clusters are multiplied by the share of its regressor that the chosen
    slices do not explain, :math:`1 - R^2`; with fewer than `fewest` left it is not tested.

    Attributes
    ----------
    log : Log
        Its masks hold all slices.
    n_slices : int
    width : float
        h.
    by_place : bool
    cluster, level, owner
        As in an audit.
    fewest : int
    """

    log: Log
    n_slices: int
    width: float
    by_place: bool
    cluster: str
    level: float
    owner: str
    fewest: int

    def test(self, chosen: Sequence[int], tested: Sequence[int]) -> NetTests:
        """Return the tests of some slices, each alone beside those chosen."""
        parts = [
            self._test_few(list(chosen), list(tested[start : start + _AT_ONCE]))
            for start in range(0, len(tested), _AT_ONCE)
        ]
        if not parts:
            return NetTests(*(np.empty(0) for _ in NetTests._fields))
        return NetTests(*(np.concatenate(values) for values in zip(*parts, strict=True)))

    def _test_few(self, chosen: list[int], tested: list[int]) -> NetTests:
        masks = select_groups(self.log.masks, np.array([*chosen, *tested], dtype=np.int64))
        walk = PlainWalk(replace(self.log, masks=masks))
        design = Design(len(chosen) + len(tested), self.width, self.by_place)
        k = design.n_columns
        start = Gram(np.zeros((k + 1, k + 1)), 0.0, 0, 0)
        gram = walk.total(partial(gram_of, design), "comparing close pairs", start)
        inner, right = gram.inner[:k, :k], gram.inner[:k, k]
        fits, picks, left = self._targets(inner, right, design, len(chosen))
        columns = np.arange(len(chosen), design.n_groups)
        known = left > 0
        values = np.where(known, fits[np.arange(len(columns)), columns], 0.0)
        items = VARIANCES[self.cluster].needs_items
        sums, dyads = sum_contributions(walk, design, Targets(picks, fits), items, gram.pairs)
        # Slices are tested one at a time and do not affect each other's degrees of freedom.
        n_kept = np.full(len(columns), len(chosen) + 3)
        found = estimate_targets(
            values,
            known,
            columns,
            sums,
            dyads,
            gram.pairs,
            n_kept,
            self.cluster,
            self.level,
            self.owner,
        )
        usable = known & (found.n_effective * left >= self.fewest)
        with np.errstate(invalid="ignore", divide="ignore"):
            statistic = np.abs(found.estimate) / found.std_error
        every = (found.estimate, found.std_error, statistic, found.p_value)
        return NetTests(*(np.where(usable, one, np.nan) for one in every))

    def _targets(
        self, inner: Floats, right: Floats, design: Design, n_chosen: int
    ) -> tuple[Floats, Floats, Floats]:
        """Return coefficients, loadings and the unexplained share of each tested slice.

        That share is 0 for a slice that adds nothing to those chosen.
        """
        k, n = design.n_columns, design.n_groups - n_chosen
        fits, picks, left = np.zeros((n, k)), np.zeros((n, k)), np.zeros(n)
        common = [*range(n_chosen), design.slope, design.constant]
        for t in range(n):
            column = n_chosen + t
            only = np.zeros(k, dtype=np.bool_)
            only[[*common, column]] = True
            kept = find_kept(np.where(np.outer(only, only), inner, 0.0), design)
            if not kept[column]:
                continue
            fits[t], pick = solve(inner, right, np.flatnonzero(kept))
            picks[t] = pick[column]
            # The diagonal of the inverse is 1 over the unexplained part of the regressor's sum of
            # squares.
            left[t] = 1.0 / (pick[column, column] * inner[column, column])
        return fits, picks, left


def choose_few(
    test: Callable[[Sequence[int], Sequence[int]], NetTests],
    found: Sequence[int],
    n_slices: int,
    level: float,
) -> list[int]:
    """Choose few slices such that no other is significant net of them.

    The most significant slice is added, again and again, until no other slice is significant net of
    those chosen, by Holm over all others. Then every slice that this conclusion can do without is
    dropped, starting with the first chosen. Slices that the sweep found are tested before the
    others.

    Parameters
    ----------
    test : callable
        Takes chosen and tested slices; returns tests of the latter net of the former.
    found : sequence of int
        The slices that the sweep found.
    n_slices : int
        How many were looked at.
    level : float

    Returns
    -------
    list of int
        In the order in which they were chosen; empty where nothing was found.
    """
    others = [k for k in range(n_slices) if k not in set(found)]

    def worst(chosen: Sequence[int], *, some: bool = False) -> int | None:
        """Return the most significant slice left; with `some`, also one that is not significant."""
        family = n_slices - len(chosen)
        for part in (found, others):
            tested = [k for k in part if k not in set(chosen)]
            seen = test(chosen, tested)
            known = np.flatnonzero(np.isfinite(seen.p_value))
            if len(known):
                order = np.lexsort((-seen.statistic[known], seen.p_value[known]))
                best = int(known[order[0]])
                # Holm rejects something if and only if the smallest p-value is at most a/m.
                if some or seen.p_value[best] * family <= 1 - level:
                    return int(tested[best])
        return None

    if not len(found):
        return []
    first = worst([], some=True)
    chosen = [int(found[0]) if first is None else first]
    while len(chosen) < MOST_CHOSEN and (more := worst(chosen)) is not None:
        chosen.append(more)
    for one in chosen[:-1]:
        fewer = [k for k in chosen if k != one]
        if worst(fewer) is None:
            chosen = fewer
    return chosen
