"""What there is to walk under a scoring rule: one log for all groups, or one for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from mpc_lab.engines.memory import MemoryWalk
from mpc_lab.engines.progress import Progress
from mpc_lab.pairing.arrays import Ints
from mpc_lab.pairing.item_sums import ItemSums
from mpc_lab.pairing.log import Log, rescore, select_groups, sort_rows
from mpc_lab.pairing.moments import Moments
from mpc_lab.pairing.walk import Walk
from mpc_lab.scoring import Baseline, Boosted, Calibrated, Rule

if TYPE_CHECKING:
    from mpc_lab.ranking import Known, LogFacts, Ranking
    from mpc_lab.results.plan import Plan

Result = TypeVar("Result")
# The logs of some units: the number of a rule, the groups a log serves, and the log.
Logs = Iterator[tuple[int, Ints, Log]]


class EngineWalk(Walk, Protocol):
    """A walk that can also sum over items, which lie all over a log."""

    def item_sums(self, moments: Moments) -> list[list[ItemSums]]:
        """Return, for each group and mode, the sums over items at the thresholds of moments."""
        ...


class Source(Protocol):
    """A log that an engine has made ready to be walked.

    Attributes
    ----------
    groups : tuple of str
        The groups to audit; masks count in this order.
    counts_items : bool
        Whether a sweep can count items by their codes; otherwise the sums over items do.
    """

    groups: tuple[str, ...]
    counts_items: bool

    @property
    def facts(self) -> LogFacts:
        """What is known of the whole log."""
        ...

    def walks(self, rule: Rule) -> Iterator[tuple[Ints, Any]]:
        """Yield the groups, by number, that an `EngineWalk` serves; over all, every group once."""
        ...

    def together(
        self, rules: Sequence[Rule], task: Callable[[Logs], Result], label: str, start: Result
    ) -> Result:
        """Add what a task makes of the logs of all rules, for some whole units at a time."""
        ...


class OpenLog(ABC):
    """A log of which the columns and groups are known, and the rows not yet walked.

    Attributes
    ----------
    ranking : Ranking or None
        The rows, where they stay in memory.
    """

    ranking: Ranking | None = None

    @property
    @abstractmethod
    def known(self) -> Known:
        """Its columns and groups."""

    @abstractmethod
    def source(self, plan: Plan, progress: Progress | None) -> AbstractContextManager[Source]:
        """Make the log ready for a plan; what that takes is given back at the end."""

    def read_rows(self, extra: Sequence[Hashable], n_rows: int) -> Ranking:
        """Read the rows into memory, with further columns, for a question that needs them."""
        raise NotImplementedError


class MemorySource:
    """A ranking in memory, its groups to audit, and its log sorted once.

    Parameters
    ----------
    ranking : Ranking
    groups : tuple of str
    progress : Progress, optional
    """

    counts_items = True

    def __init__(
        self, ranking: Ranking, groups: tuple[str, ...], progress: Progress | None = None
    ) -> None:
        self.ranking = ranking
        self.groups = groups
        self.progress = progress
        chosen = np.array([ranking.group_index(group) for group in groups], dtype=np.int64)
        everything = groups == ranking.groups
        self.masks = ranking.masks if everything else select_groups(ranking.masks, chosen)
        self.log = sort_rows(ranking, masks=self.masks)

    @property
    def facts(self) -> LogFacts:
        """The ranking."""
        return self.ranking

    def walks(self, rule: Rule) -> Iterator[tuple[Ints, MemoryWalk]]:
        """Yield the groups, by number, that a walk serves; over all walks, every group once."""
        if rule.same_for_all_groups:
            log = self.log
            if not isinstance(rule, Baseline):
                scores = rule.scores(self.ranking, self.groups[0])
                log = sort_rows(self.ranking, scores, self.masks)
            yield np.arange(len(self.groups)), MemoryWalk(log, self.progress)
            return
        for k, group in enumerate(self.groups):
            yield np.array([k]), MemoryWalk(self._log_of(rule, group), self.progress)

    def together(
        self, rules: Sequence[Rule], task: Callable[[Logs], Result], label: str, start: Result
    ) -> Result:
        """Add what the task makes of the whole log."""
        logs = (
            (number, groups, walk.log)
            for number, rule in enumerate(rules)
            for groups, walk in self.walks(rule)
        )
        return start + task(logs)  # type: ignore[operator, no-any-return]

    def _log_of(self, rule: Rule, group: str) -> Log:
        scores = rule.scores(self.ranking, group)
        member = self.ranking.member(group)
        if isinstance(rule, Boosted | Calibrated):
            return rescore(self.log, scores[self.log.row], member[self.log.row])
        return sort_rows(self.ranking, scores, member.astype(np.uint64)[None])
