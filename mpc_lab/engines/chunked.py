"""Walk a log that is read chunk by chunk, on as many threads as there are cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from mpc_lab.engines.exchanged_items import sums_over_items
from mpc_lab.engines.memory import in_order, n_threads
from mpc_lab.engines.parts import Change, Fits, Part, changes, changes_of_all
from mpc_lab.engines.progress import Progress
from mpc_lab.engines.sources import Logs
from mpc_lab.pairing.arrays import Ints
from mpc_lab.pairing.item_sums import ItemSums
from mpc_lab.pairing.moments import Moments
from mpc_lab.pairing.walk import PlainWalk, Task, added
from mpc_lab.ranking import Facts
from mpc_lab.scoring import Rule

Result = TypeVar("Result")


class Parts:
    """The chunks of a log, read one at a time by whoever works on them.

    Parameters
    ----------
    read : callable
        From the number of a chunk to it.
    count : int
    pairs_at_once : int
        Pairs whose items may be held in memory.
    progress : Progress, optional
    """

    def __init__(
        self,
        read: Callable[[int], Part],
        count: int,
        pairs_at_once: int,
        progress: Progress | None = None,
    ) -> None:
        self.read, self.count, self.progress = read, count, progress
        self.pairs_at_once = pairs_at_once
        self.buckets = 2 * n_threads()

    def spread(self, task: Callable[[Part], Result], label: str) -> Iterator[Result]:
        """Yield what the task makes of each chunk, in order."""
        done = self.progress(label, self.count) if self.progress else None
        for result in in_order(lambda number: task(self.read(number)), range(self.count)):
            if done:
                done()
            yield result

    def exchange(
        self,
        split: Callable[[Part], list[Any]],
        merge: Callable[[list[Any]], Result],
        buckets: int,
        label: str,
    ) -> list[Result]:
        """Split every chunk into buckets, and return what `merge` makes of each bucket of all."""
        chunks = list(self.spread(split, label))
        return list(in_order(lambda k: merge([chunk[k] for chunk in chunks]), range(buckets)))


class ChunkedWalk:
    """A `Walk` over all chunks of a log, changed as a scoring rule wants."""

    def __init__(self, parts: Parts, change: Change) -> None:
        self.parts, self.change = parts, change

    def __call__(self, task: Task[Result], label: str) -> Iterator[Result]:
        """Yield what the task returns for each block, in order."""
        for results in self.parts.spread(lambda part: list(self._plain(part)(task)), label):
            yield from results

    def total(self, task: Task[Result], label: str, start: Result) -> Result:
        """Add what the task returns: first within each chunk, then chunk by chunk."""

        def add(part: Part) -> Result:
            return self._plain(part).total(task, label, start)

        # A chunk's sum has `start` in it, which must be nothing to be added several times.
        return added(self.parts.spread(add, label), start)

    def item_sums(self, moments: Moments) -> list[list[ItemSums]]:
        """Return the sums over items of each group and mode."""
        return sums_over_items(self.parts, self.change, moments, self.parts.pairs_at_once)

    def _plain(self, part: Part) -> PlainWalk:
        return PlainWalk(self.change(part))


class ChunkedSource:
    """A log in chunks, ready to be walked.

    Parameters
    ----------
    parts : Parts
    groups : tuple of str
    facts : Facts
    fits : callable
        Finds the step functions of the rule ``calibrated``.
    """

    counts_items = True

    def __init__(self, parts: Parts, groups: tuple[str, ...], facts: Facts, fits: Fits) -> None:
        self.parts, self.groups, self.facts, self.fits = parts, groups, facts, fits

    def walks(self, rule: Rule) -> Iterator[tuple[Ints, ChunkedWalk]]:
        """Yield the groups, by number, that a walk serves; over all walks, every group once."""
        for groups, change in changes(rule, len(self.groups), self.facts, self.fits):
            yield groups, ChunkedWalk(self.parts, change)

    def together(
        self, rules: Sequence[Rule], task: Callable[[Logs], Result], label: str, start: Result
    ) -> Result:
        """Add what the task makes of the logs of all rules, chunk by chunk."""
        every = changes_of_all(rules, len(self.groups), self.facts, self.fits)

        def of_chunk(part: Part) -> Result:
            return task((number, groups, change(part)) for number, groups, change in every)

        return added(self.parts.spread(of_chunk, label), start)
