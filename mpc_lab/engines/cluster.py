"""Walk a log whose parts lie on the machines of a cluster; only sums travel.

What differs between clusters is three ways to ask: collect what a task makes of every part, add it
up, or exchange it between parts by key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from mpc_lab.engines.cluster_fits import fits_of_all
from mpc_lab.engines.exchanged_items import sums_over_items
from mpc_lab.engines.parts import Change, Part, changes, changes_of_all
from mpc_lab.engines.sources import Logs
from mpc_lab.pairing.arrays import Ints
from mpc_lab.pairing.item_sums import ItemSums
from mpc_lab.pairing.moments import Moments
from mpc_lab.pairing.walk import PlainWalk, Task
from mpc_lab.ranking import Facts
from mpc_lab.ranking.spread import NOTHING, exact_mean, exact_sum, squared_deviations
from mpc_lab.scoring import Rule
from mpc_lab.scoring.calibrated import Steps

Result = TypeVar("Result")
Chunk = TypeVar("Chunk")


class Cluster(Protocol):
    """Where the parts of a log lie. Tasks are functions of a module with arguments bound.

    Attributes
    ----------
    buckets : int
        How many buckets are worth having in an exchange.
    pairs_at_once : int
        Pairs whose items all workers together may hold.
    """

    buckets: int
    pairs_at_once: int

    def collect(self, task: Callable[[Part], Result], label: str) -> list[Result]:
        """Return what the task makes of every part, in their order."""
        ...

    def total(self, task: Callable[[Part], Result], label: str, start: Result) -> Result:
        """Return the sum of what the task makes of every part, added in a tree."""
        ...

    def exchange(
        self,
        split: Callable[[Part], list[Chunk]],
        merge: Callable[[list[Chunk]], Result],
        buckets: int,
        label: str,
    ) -> list[Result]:
        """Split every part into buckets, and return what `merge` makes of each bucket of all."""
        ...


class ClusterWalk:
    """A `Walk` over all parts, changed as a scoring rule wants."""

    def __init__(self, cluster: Cluster, change: Change) -> None:
        self.cluster, self.change = cluster, change

    def __call__(self, task: Task[Result], label: str) -> Iterator[Result]:
        """Yield what the task returns for each block, in order."""
        for results in self.cluster.collect(partial(_blocks, self.change, task), label):
            yield from results

    def total(self, task: Task[Result], label: str, start: Result) -> Result:
        """Add what the task returns: first within each part, then over the cluster."""
        return self.cluster.total(partial(_added, self.change, task, start), label, start)

    def item_sums(self, moments: Moments) -> list[list[ItemSums]]:
        """Return the sums over items of each group and mode, by a second exchange on items."""
        at_once = self.cluster.pairs_at_once
        return sums_over_items(self.cluster, self.change, moments, at_once)


def _blocks(change: Change, task: Task[Any], part: Part) -> list[Any]:
    return list(PlainWalk(change(part))(task))


def _added(change: Change, task: Task[Any], start: Any, part: Part) -> Any:
    return PlainWalk(change(part)).total(task, "", start)


class ClusterSource:
    """A log on a cluster, ready to be walked.

    Parameters
    ----------
    cluster : Cluster
    groups : tuple of str
    facts : Facts
    """

    counts_items = False

    def __init__(self, cluster: Cluster, groups: tuple[str, ...], facts: Facts) -> None:
        self.cluster, self.groups, self.facts = cluster, groups, facts
        self._fits: list[tuple[Steps, Steps]] | None = None

    def walks(self, rule: Rule) -> Iterator[tuple[Ints, ClusterWalk]]:
        """Yield the groups, by number, that a walk serves; over all walks, every group once."""
        for groups, change in changes(rule, len(self.groups), self.facts, self._fit):
            yield groups, ClusterWalk(self.cluster, change)

    def together(
        self, rules: Sequence[Rule], task: Callable[[Logs], Result], label: str, start: Result
    ) -> Result:
        """Add what the task makes of the logs of all rules, part by part."""
        every = changes_of_all(rules, len(self.groups), self.facts, self._fit)
        return self.cluster.total(partial(_of_all_rules, every, task), label, start)

    def _fit(self, group: int) -> tuple[Steps, Steps]:
        if self._fits is None:
            self._fits = fits_of_all(self.cluster, len(self.groups))
        return self._fits[group]


def _of_all_rules(every: list[tuple[int, Ints, Change]], task: Any, part: Part) -> Any:
    return task((number, groups, change(part)) for number, groups, change in every)


def score_std(cluster: Cluster, n_rows: int) -> float:
    """Return the standard deviation of the scores, to the bit that memory finds."""
    mean = exact_mean(cluster.total(_exact_sum, "reading scores", NOTHING), n_rows)
    squares = cluster.total(partial(_deviations, mean), "reading scores", NOTHING)
    return float(np.sqrt(exact_mean(squares, n_rows)))


def _exact_sum(part: Part) -> Ints:
    return exact_sum(part.log.score)


def _deviations(mean: float, part: Part) -> Ints:
    return squared_deviations(part.log.score, mean)
