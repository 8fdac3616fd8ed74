"""What the sums need from an engine: a log to walk, block by block, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mpc_lab.pairing.log import Log, Result, Task
from mpc_lab.pairing.moved import MovedLog
from mpc_lab.vocabulary import Ints, Masks

if TYPE_CHECKING:
    from mpc_lab.pairing.clusters import ItemSums
    from mpc_lab.pairing.moments import Moments
    from mpc_lab.pairing.terms import Terms
    from mpc_lab.ranking import LogFacts
    from mpc_lab.scoring import Rule

# Whether a log in which members of some groups have scores of their own is enough for a task.
Takes = Callable[[Ints, MovedLog], bool]
# The logs of some units: the number of a rule, the groups a log serves, and the log.
Logs = Iterator[tuple[int, Ints, Log]]


class Walk(Protocol):
    """Hands each block of whole units to a task.

    A task gets a log and the units, from `first` to before `last`, that are its block. Tasks may
    run at the same time, in this process or in another; what they return must depend on their
    block alone. So that they can travel, they are functions of a module with arguments bound.
    """

    def __call__(self, task: Task[Result], label: str) -> Iterator[Result]:
        """Yield what the task returns for each block, in the order of the blocks."""
        ...

    def total(self, task: Task[Result], label: str, start: Result) -> Result:
        """Add what the task returns to `start`; only the sum has to travel."""
        ...


class EngineWalk(Walk, Protocol):
    """A walk that can also sum over items, which are spread over a log."""

    def item_sums(self, moments: Moments, *, by_item: bool = False) -> list[list[ItemSums]]:
        """Return, for each group and mode, the sums over items at the thresholds of moments.

        Over producers where the log has them, unless `by_item`.
        """
        ...


class Source(Protocol):
    """A log that an engine has made ready to be walked.

    Attributes
    ----------
    groups : tuple of str
        The groups to audit; masks count in this order.
    counts_items : bool
        Whether a sweep can count items by their codes; otherwise the sums over items do.
    terms : Terms
        On what terms rows are compared.
    pairs_at_once : int
        Pairs whose items can be held in memory, by all workers together.
    """

    groups: tuple[str, ...]
    counts_items: bool
    terms: Terms
    pairs_at_once: int

    @property
    def facts(self) -> LogFacts:
        """The facts about the whole log."""
        ...

    def walks(self, rule: Rule) -> Iterator[tuple[Ints, Any]]:
        """Yield the groups, by number, that an `EngineWalk` serves; over all, every group once."""
        ...

    def each_walk(
        self,
        rule: Rule,
        task: Callable[[Ints, Any], Result],
        label: str,
        takes: Takes | None = None,
    ) -> Iterator[Result]:
        """Yield what a task makes of the groups and the walk of each of `walks`, maybe at once.

        Where `takes` says that a `MovedLog` serves the task, it may walk one instead.
        """
        ...

    def together(
        self, rules: Sequence[Rule], task: Callable[[Logs], Result], label: str, start: Result
    ) -> Result:
        """Add what a task makes of the logs of all rules, for some whole units at a time."""
        ...

    def exchange(
        self,
        rules: Sequence[Rule],
        split: Callable[[int, Logs, Masks], list[Any]],
        merge: Callable[[list[Any]], Result],
        label: str,
    ) -> list[Result]:
        """Split the logs of all rules into this many buckets, and merge each bucket of all.

        `split` gets the names of items, or producers, by their codes; none where codes are names.
        """
        ...


@dataclass(frozen=True)
class Rewalk:
    """How to walk a log again after its audit.

    Attributes
    ----------
    rules : tuple of Rule
    open : callable
        Makes the log ready to be walked, as it was for the audit, and refuses if it has changed.
    in_order : bool
        Whether rows of one score have an order.
    """

    rules: tuple[Rule, ...]
    open: Callable[[], AbstractContextManager[Source]]
    in_order: bool = True
