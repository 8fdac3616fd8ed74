"""The pairs of one cell as plain arrays, for the questions that sums cannot answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpc_lab.results import rows as _rows
from mpc_lab.results.reading import settings

if TYPE_CHECKING:
    from mpc_lab.inference.listed import PairCodes
    from mpc_lab.pairing.log import Log
    from mpc_lab.ranking import Ranking
    from mpc_lab.results.audit import Audit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CellPairs:
    """Listed pairs; rows are those of the sorted log."""

    row_i: Ints
    row_j: Ints
    gap: Floats
    d: Floats
    query: Ints
    item_i: Ints | None
    item_j: Ints | None

    def codes(self) -> PairCodes:
        """Return what the pairs share."""
        from mpc_lab.inference.listed import pair_codes

        return pair_codes(self.query, self.item_i, self.item_j)


@dataclass(frozen=True)
class CellRows:
    """The rows of a ranking, sorted by the scores of a rule, with one group marked.

    Attributes
    ----------
    ranking : Ranking
    log : Log
        Its first and only group is the one that is looked at.
    member : bool array
        By row of the log.
    logged : bool
        Whether the scores are those of the log.
    """

    ranking: Ranking
    log: Log
    member: NDArray[np.bool_]
    logged: bool

    @property
    def cluster_code(self) -> Ints:
        """Query of each row of the log, or its unit where there are units."""
        unit = self.ranking.unit_code
        return (self.ranking.query_code if unit is None else unit)[self.log.row]

    @property
    def item_code(self) -> Ints | None:
        """Item of each row of the log."""
        return None if self.ranking.item_code is None else self.log.item

    def count(self, mode: str) -> int:
        """Return the number of pairs with no limit on the gap."""
        from mpc_lab.pairing.reach import count_matched
        from mpc_lab.pairing.rows import pair_rows

        if mode == "adjacent":
            return len(pair_rows(self.log, self.member, mode, np.inf)[0])
        side = self.member if mode == "matched" else ~self.member
        return count_matched(replace(self.log, masks=side.astype(np.uint64)[None]))

    def pairs(self, mode: str, epsilon: float) -> CellPairs:
        """List the pairs up to a gap."""
        from mpc_lab.pairing.reach import check_listable
        from mpc_lab.pairing.rows import pair_rows

        check_listable(self.log, epsilon)
        i, j = pair_rows(self.log, self.member, mode, epsilon)
        item = self.item_code
        return CellPairs(
            row_i=i,
            row_j=j,
            gap=self.log.gap(i, j),
            d=self.log.outcome[i] - self.log.outcome[j],
            query=self.cluster_code[i],
            item_i=None if item is None else item[i],
            item_j=None if item is None else item[j],
        )


def open_cell(audit: Audit, method: str, group: str, rule: str, *modes: str) -> CellRows:
    """Sort the rows behind a group under a rule, once the cells are known to exist."""
    from mpc_lab.pairing.log import sort_rows

    ranking = _rows.need_rows(audit, method)
    scores = None
    for mode in modes:
        scores = _rows.rule_scores(audit, group, rule, mode)
    member = ranking.member(group)
    log = sort_rows(ranking, scores, member.astype(np.uint64)[None])
    return CellRows(ranking, log, member[log.row], logged=scores is None)


def inference_options(audit: Audit) -> tuple[str, float, int]:
    """Return the cluster, level and seed of an audit."""
    options = settings(audit)
    return str(options["cluster"]), float(options["level"]), int(options.get("seed", 0))
