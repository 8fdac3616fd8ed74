"""The pairs of one cell: listed for a person, fitted by a regression, or as plain arrays.

The arrays are for the questions that sums cannot answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mpc_lab.errors import MpcError, check_epsilon, check_whole
from mpc_lab.pairing.terms import terms_of
from mpc_lab.results.base import cell_epsilon, need_rows, rule_scores, settings
from mpc_lab.results.schema import AuditBase
from mpc_lab.vocabulary import MATCHED, MODES, Flags, Floats, Ints

# A sorted log takes some 64 bytes a row.
_MOST_KEPT = 4_000_000

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from mpc_lab.inference.clustered import PairCodes
    from mpc_lab.inference.sides import SidedPairs
    from mpc_lab.pairing.log import Log
    from mpc_lab.pairing.weighting import ListedWeights
    from mpc_lab.ranking import Ranking


def pairs(
    audit: AuditBase,
    group: str,
    rule: str,
    mode: str,
    epsilon: float | None = None,
    limit: int | None = None,
    *,
    show_ids: bool = True,
) -> pd.DataFrame:
    """Return the pairs of one cell, one row each, sorted by distance and then by input order.

    Parameters
    ----------
    audit, group, rule, mode, epsilon, limit
        See :meth:`mpc_lab.Audit.pairs`.
    show_ids : bool
        Whether queries have their ids, as on the screen, or are numbered, as in files that leave
        it.
    """
    limit = _limit(limit)
    ranking = need_rows(audit, "pairs")
    scores = rule_scores(audit, group, rule, mode)
    listed = _list(audit, ranking, scores, group, rule, mode, epsilon, limit)
    used = shown_scores(ranking, rule, ranking.score if scores is None else scores)
    i, j = listed["row_i"], listed["row_j"]
    codes = ranking.query_code[i]
    numbered = [f"query {code + 1:,} of {ranking.n_queries:,}" for code in codes.tolist()]
    columns: dict[str, Any] = {"query": ranking.query_labels(codes) if show_ids else numbered}
    if ranking.item_code is not None:
        columns["item"] = ranking.item_labels(ranking.item_code[i])
        columns["other_item"] = ranking.item_labels(ranking.item_code[j])
    if ranking.item_code is not None and ranking.item_label is not None:
        columns["label"] = ranking.item_names(ranking.item_code[i])
        columns["other_label"] = ranking.item_names(ranking.item_code[j])
    columns |= {"score": used[i], "other_score": used[j], "distance": listed["distance"]}
    columns |= {"position": listed["rank_i"], "other_position": listed["rank_j"]}
    given = ranking.outcome_given
    columns |= {"outcome": given[i], "other_outcome": given[j]}
    if ranking.examined is not None:
        columns |= {"examined": ranking.examined[i], "other_examined": ranking.examined[j]}
    return pd.DataFrame({**columns, "difference": listed["d"]})


def shown_scores(ranking: Ranking, rule: str, scores: Floats) -> Floats:
    """Return scores on the scale that they were given on; fitted ones are outcomes."""
    return scores if rule == "calibrated" else ranking.directed(scores)


def regression(audit: AuditBase, group: str, rule: str, mode: str, epsilon: float | None) -> Any:
    """Return the statsmodels fit of the outcome difference on a constant for one cell."""
    from mpc_lab.inference.sides import fit, fit_sides

    ranking = need_rows(audit, "regression")
    scores = rule_scores(audit, group, rule, mode)
    listed = _list(audit, ranking, scores, group, rule, mode, epsilon, None)
    codes = ranking.query_code if ranking.unit_code is None else ranking.unit_code
    query = codes[listed["row_i"]]
    weight = listed["weight"]
    if not MODES[mode].two_sided:
        return fit(listed["d"], query, weight)
    if ranking.columns.sides_by_place:
        raise MpcError(
            f"regression must have a mode without place cells; got {mode!r} on a log with "
            'positions. Take pairing_mode="matched", or a ranking without its position column.'
        )
    used = ranking.score if scores is None else scores
    direction = np.sign(used[listed["row_j"]] - used[listed["row_i"]])
    return fit_sides(listed["d"], direction, query, weight)


def list_cell(audit: AuditBase, group: str, rule: str, mode: str) -> dict[str, NDArray[Any]]:
    """Return the pairs of a cell of the headline as arrays; see `list_pairs`."""
    ranking = need_rows(audit, "pairs")
    scores = rule_scores(audit, group, rule, mode)
    return _list(audit, ranking, scores, group, rule, mode, None, None)


def _list(
    audit: AuditBase,
    ranking: Ranking,
    scores: Floats | None,
    group: str,
    rule: str,
    mode: str,
    epsilon: float | None,
    limit: int | None,
) -> dict[str, NDArray[Any]]:
    from mpc_lab.pairing.pairs import list_pairs

    if epsilon is None:
        epsilon = cell_epsilon(audit, group, rule)
    epsilon = check_epsilon(epsilon, unlimited=True)
    return list_pairs(ranking, group, scores, mode, epsilon, limit, terms_of(settings(audit)))


def _limit(limit: Any) -> int | None:
    return None if limit is None else check_whole("limit", limit)


@dataclass(frozen=True)
class CellPairs:
    """Listed pairs; rows are those of the sorted log."""

    row_i: Ints
    row_j: Ints
    distance: Floats
    d: Floats
    query: Ints
    item_i: Ints | None
    item_j: Ints | None
    owner_i: Ints | None
    owner_j: Ints | None
    owner: str
    weights: ListedWeights | None = None

    @property
    def weight(self) -> Floats | None:
        """What each pair counts; None where each counts 1."""
        return None if self.weights is None else self.weights.of_pairs

    def codes(self) -> PairCodes:
        """Return what makes pairs dependent in this audit, and what they count."""
        from mpc_lab.inference.clustered import pair_codes

        return pair_codes(self.query, self.owner_i, self.owner_j, self.owner, weight=self.weight)

    def item_codes(self) -> PairCodes:
        """Return what the pairs share, going by items and not by their producers."""
        from mpc_lab.inference.clustered import pair_codes

        return pair_codes(self.query, self.item_i, self.item_j, weight=self.weight)


@dataclass(frozen=True)
class CellRows:
    """The rows of a ranking, sorted by the scores of a rule, with one group marked.

    Attributes
    ----------
    ranking : Ranking
    log : Log
        Its first and only group is the one that is looked at. Its scores are on the scale of
        distances, and with ``against=`` it lacks the rows that no pair can have.
    whole : Log
        All rows, under the scores of the rule.
    rule : str
        The scoring rule.
    """

    ranking: Ranking
    log: Log
    whole: Log
    rule: str

    @property
    def logged(self) -> bool:
        """Whether the scores are those of the log."""
        return self.rule == "baseline"

    @property
    def shown_score(self) -> Floats:
        """The score of each row of the ranking, on the scale that it was given on."""
        return shown_scores(self.ranking, self.rule, self.by_row(self.whole.score))

    @property
    def member(self) -> Flags:
        """Whether each row of the log is in the group."""
        return np.asarray(self.log.masks[0] != 0)

    def by_row(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the whole log in the order of the ranking."""
        found = np.empty(len(values), dtype=values.dtype)
        found[self.whole.row] = values
        return found

    @cached_property
    def rank(self) -> Ints:
        """Place of each row of the log in its whole ranked list, 1 = top."""
        from mpc_lab.pairing.pairs import ranks

        places = ranks(self.whole, self.ranking, logged=self.logged)
        return places if self.log is self.whole else self.by_row(places)[self.log.row]

    def cluster_code(self, rows: Ints | slice = slice(None)) -> Ints:
        """Query of rows of the log, or their units where there are units."""
        return self._cluster[rows]

    @cached_property
    def _cluster(self) -> Ints:
        unit = self.ranking.unit_code
        of_row = self.ranking.query_code if unit is None else unit
        size = np.diff(self.log.starts)
        first = self.log.starts[:-1][size > 0]
        return np.repeat(of_row[self.log.row[first]], size[size > 0])

    @property
    def item_code(self) -> Ints | None:
        """Item of each row of the log."""
        return None if self.ranking.item_code is None else self.log.item

    @property
    def owner_code(self) -> Ints | None:
        """The cluster of each row of the log: its producer, or its item."""
        return None if self.ranking.item_code is None else self.log.cluster

    @property
    def _shown_place(self) -> Ints | None:
        """Place of each row of the ranking where sides go by it, None where they go by score."""
        return self.ranking.position if self.ranking.columns.sides_by_place else None

    def count(self, mode: str) -> int:
        """Return the number of pairs at any distance."""
        from mpc_lab.pairing.pairs import count_side

        if mode == MATCHED.name:
            return self.n_matched
        return count_side(self.log, self.member, MODES[mode].side)

    @cached_property
    def n_matched(self) -> int:
        """The number of ``matched`` pairs at any distance."""
        from mpc_lab.pairing.pairs import count_matched

        return count_matched(self.log)

    def parts_by_unit(self, mode: str, epsilon: float) -> tuple[csr_array, csr_array, csr_array]:
        """Return weight, sum and number of each unit's pairs on the sides of a mode of two.

        Sides that go by scores need no number, because they count however few pairs they have.
        """
        from scipy.sparse import csr_array

        from mpc_lab.pairing.pairs import sums_by_side, unit_of_rows
        from mpc_lab.pairing.places import N_PARTS, parts_of

        shown = self._shown_place
        if shown is not None:
            pairs = self.pairs(mode, epsilon)
            place = shown[self.log.row]
            part = parts_of(place[pairs.row_i], place[pairs.row_j])
            at = (unit_of_rows(self.log, pairs.row_i), part)
            shape = (self.ranking.n_units, N_PARTS)
            count = np.ones(len(part)) if pairs.weight is None else pairs.weight
            tables = (count, count * pairs.d, np.ones(len(part)))
            return tuple(csr_array((values, at), shape=shape) for values in tables)  # type: ignore[return-value]
        sides = sums_by_side(self.log, self.member, MODES[mode], epsilon)
        counts, sums = (csr_array(np.column_stack([side[k] for side in sides])) for k in (0, 1))
        return counts, sums, counts[:, :0]

    def sided(self, pairs: CellPairs, tie: float) -> SidedPairs:
        """Return listed pairs on the sides of a tie: by place where there are positions.

        Otherwise by score, and a tied pair is on both sides with the weight `tie`.
        """
        from mpc_lab.inference.sides import by_place, by_score

        listed = (pairs.distance, pairs.d)
        shown = self._shown_place
        if shown is not None:
            place = shown[self.log.row]
            sided = by_place(*listed, place[pairs.row_i], place[pairs.row_j], pairs.codes())
            return replace(sided, counts=pairs.weights)
        direction = np.sign(self.log.score[pairs.row_j] - self.log.score[pairs.row_i])
        return replace(by_score(*listed, direction, tie, pairs.codes()), counts=pairs.weights)

    def pairs(self, mode: str, epsilon: float, n_pairs: float = np.inf) -> CellPairs:
        """List the pairs up to a distance; count them first unless an upper bound is given."""
        return self.pairs_of(*self.rows_of_pairs(mode, epsilon, n_pairs))

    def rows_of_pairs(
        self, mode: str, epsilon: float, n_pairs: float = np.inf
    ) -> tuple[Ints, Ints]:
        """Return the rows of the pairs up to a distance, those of the group first."""
        from mpc_lab.pairing.pairs import MOST_LISTED, check_listable, pair_rows

        listed = (self.log, self.member, MODES[mode].side, epsilon)
        if n_pairs <= MOST_LISTED:
            return pair_rows(*listed, room=int(n_pairs))
        matched = check_listable(self.log, epsilon)
        return pair_rows(*listed, count=matched if mode == MATCHED.name else None)

    def pairs_of(self, i: Ints, j: Ints) -> CellPairs:
        """Return pairs of given rows."""
        code, owner = self.item_code, self.owner_code
        items = None if code is None else (code[i], code[j])
        # If items are the clusters, they need not be looked up twice.
        owners = items if owner is code else None if owner is None else (owner[i], owner[j])
        return CellPairs(
            row_i=i,
            row_j=j,
            distance=self.log.distance(i, j),
            d=self.log.contrast(i, j),
            query=self.cluster_code(i),
            item_i=None if items is None else items[0],
            item_j=None if items is None else items[1],
            owner_i=None if owners is None else owners[0],
            owner_j=None if owners is None else owners[1],
            owner=self.ranking.owner,
            weights=self.log.weights_of(i),
        )


def open_cell(audit: AuditBase, method: str, group: str, rule: str, *modes: str) -> CellRows:
    """Sort the rows behind a group under a rule, once the cells are known to exist."""
    from mpc_lab.pairing.log import compare_group

    ranking = need_rows(audit, method)
    scores = None
    for mode in modes:
        scores = rule_scores(audit, group, rule, mode)
    logged = sort_once(audit, ranking)
    log, whole = compare_group(ranking, group, scores, terms_of(settings(audit)), logged)
    return CellRows(ranking, log, whole, rule)


def sort_once(audit: AuditBase, ranking: Ranking) -> Log | None:
    """Return the rows sorted by the logged scores, kept with the audit for the next question.

    None where there are so many that they would take too much room for that.
    """
    from mpc_lab.pairing.log import sort_rows

    if ranking.n_rows > _MOST_KEPT:
        return None
    if audit._sorted is None or audit._sorted[0] is not ranking:
        no_groups = np.zeros((1, ranking.n_rows), dtype=np.uint64)
        audit._sorted = ranking, sort_rows(ranking, masks=no_groups)
    return audit._sorted[1]
