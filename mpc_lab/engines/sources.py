"""What there is to walk under a scoring rule: one log for all groups, or one for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from mpc_lab.engines.memory import MemoryWalk
from mpc_lab.engines.progress import Progress
from mpc_lab.pairing.arrays import Ints
from mpc_lab.pairing.log import Log, rescore, select_groups, sort_rows
from mpc_lab.scoring import Baseline, Boosted, Calibrated, Rule

if TYPE_CHECKING:
    from mpc_lab.ranking import Ranking


class MemorySource:
    """A ranking in memory, its groups to audit, and its log sorted once.

    Parameters
    ----------
    ranking : Ranking
    groups : tuple of str
    progress : Progress, optional
    """

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

    def _log_of(self, rule: Rule, group: str) -> Log:
        scores = rule.scores(self.ranking, group)
        member = self.ranking.member(group)
        if isinstance(rule, Boosted | Calibrated):
            return rescore(self.log, scores[self.log.row], member[self.log.row])
        return sort_rows(self.ranking, scores, member.astype(np.uint64)[None])
