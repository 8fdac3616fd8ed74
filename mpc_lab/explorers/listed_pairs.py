"""The pairs of one cell to look through, and the ranked lists they stand in. No widget in here."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mpc_lab.pairing.listing import ranks
from mpc_lab.pairing.reach import check_listable, count_matched, nearest_gap
from mpc_lab.pairing.rows import pair_rows
from mpc_lab.results.cell_pairs import open_cell

if TYPE_CHECKING:
    from mpc_lab.results import Audit

Ints = NDArray[np.int64]

MOST_SEARCHED = 1_000_000
_AROUND = 8
GROUP_ITEM, OTHER_ITEM = "item of the group", "other item"


class PairBook:
    """The pairs of one cell up to a threshold, the closest first.

    Parameters
    ----------
    audit : Audit
        With its rows.
    group, scoring_rule, pairing_mode : str
        The cell.
    epsilon : float
        The largest gap.

    Attributes
    ----------
    total : int
        Pairs up to the threshold.
    searched : int
        How many of them, the closest, can be looked through; all but for very long lists.
    gap : float64 array
        Of the searched pairs, ascending.
    """

    def __init__(
        self, audit: Audit, group: str, scoring_rule: str, pairing_mode: str, epsilon: float
    ) -> None:
        cell = open_cell(audit, "pairs", group, scoring_rule, pairing_mode)
        self._cell, self.group = cell, group
        reach = epsilon
        if pairing_mode != "adjacent":
            side = cell.member if pairing_mode == "matched" else ~cell.member
            one_sided = replace(cell.log, masks=side.astype(np.uint64)[None])
            self.total = count_matched(one_sided, epsilon)
            if self.total > MOST_SEARCHED:
                reach = min(epsilon, nearest_gap(one_sided, MOST_SEARCHED))
                check_listable(one_sided, reach)
        i, j = pair_rows(cell.log, cell.member, pairing_mode, reach)
        if pairing_mode == "adjacent":
            self.total = len(i)
        gap = np.abs(cell.log.score[i] - cell.log.score[j])
        order = np.lexsort((cell.log.row[j], cell.log.row[i], gap))
        self._i, self._j, self.gap = i[order], j[order], gap[order]
        self.searched = len(order)

    @cached_property
    def _ranks(self) -> Ints:
        return ranks(self._cell.log, self._cell.ranking, logged=self._cell.logged)

    def find(self, low: float = 0.0, high: float = np.inf, query_text: str = "") -> Ints:
        """Return the numbers of the pairs with a gap in [low, high] and a query with that text.

        The text is looked for anywhere in the query, upper and lower case alike.
        """
        first = int(np.searchsorted(self.gap, low, side="left"))
        last = int(np.searchsorted(self.gap, high, side="right"))
        found = np.arange(first, last, dtype=np.int64)
        wanted = query_text.strip().casefold()
        if not wanted or not len(found):
            return found
        ranking = self._cell.ranking
        query = ranking.query_code[self._cell.log.row[self._i[found]]]
        codes, place = np.unique(query, return_inverse=True)
        labels = ranking.query_labels(codes)
        fits = np.array([wanted in _label(label).casefold() for label in labels], dtype=np.bool_)
        return found[fits[place]]

    def frame(self, which: Ints) -> pd.DataFrame:
        """Return pairs as :meth:`mpc_lab.Audit.pairs` does."""
        log, ranking = self._cell.log, self._cell.ranking
        i, j = self._i[which], self._j[which]
        row_i, row_j = log.row[i], log.row[j]
        columns: dict[str, Any] = {"query": ranking.query_labels(ranking.query_code[row_i])}
        if ranking.item_code is not None:
            columns["item"] = ranking.item_labels(ranking.item_code[row_i])
            columns["other_item"] = ranking.item_labels(ranking.item_code[row_j])
        columns |= {"score": log.score[i], "other_score": log.score[j], "gap": self.gap[which]}
        columns |= {"position": self._ranks[i], "other_position": self._ranks[j]}
        columns |= {"outcome": log.outcome[i], "other_outcome": log.outcome[j]}
        return pd.DataFrame({**columns, "difference": log.outcome[i] - log.outcome[j]})

    def ranked_list(self, pair: int) -> pd.DataFrame:
        """Return the whole ranked list that a pair stands in, the top first.

        Returns
        -------
        pandas.DataFrame
            ``position``, ``item`` (if items are known), ``score``, ``outcome``, ``in_group``, and
            ``pair``: which of the two items of the pair the row is, or "".
        """
        log, ranking = self._cell.log, self._cell.ranking
        i, j = int(self._i[pair]), int(self._j[pair])
        at = int(np.searchsorted(log.starts, i, side="right")) - 1
        rows = np.arange(log.starts[at], log.starts[at + 1])
        rows = rows[np.argsort(self._ranks[rows], kind="stable")]
        columns: dict[str, Any] = {"position": self._ranks[rows]}
        if ranking.item_code is not None:
            columns["item"] = ranking.item_labels(ranking.item_code[log.row[rows]])
        columns |= {"score": log.score[rows], "outcome": log.outcome[rows]}
        columns["in_group"] = self._cell.member[rows]
        marks = np.where(rows == i, GROUP_ITEM, np.where(rows == j, OTHER_ITEM, ""))
        return pd.DataFrame({**columns, "pair": marks})


def around_pair(ranked: pd.DataFrame, around: int = _AROUND) -> list[pd.DataFrame]:
    """Return the parts of a ranked list that are worth showing: some places around both items.

    One part, or two where the items stand far apart.
    """
    marked = np.flatnonzero(ranked["pair"].to_numpy() != "")
    wanted = np.zeros(len(ranked), dtype=np.bool_)
    for place in marked:
        wanted[max(0, place - around) : place + around + 1] = True
    shown = np.flatnonzero(wanted)
    cuts = np.flatnonzero(np.diff(shown) > 1) + 1
    return [ranked.iloc[part] for part in np.split(shown, cuts) if len(part)]


def _label(label: object) -> str:
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
