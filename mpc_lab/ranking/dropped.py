"""Rows that were left out because a value is missing: are they alike in all groups?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mpc_lab.ranking.columns import Frame, Membership, encode, get_column, is_missing, read_groups
from mpc_lab.ranking.names import ColumnNames
from mpc_lab.vocabulary import Flags, Floats, Ints


@dataclass(frozen=True)
class LeftOut:
    """All rows of a table of which some were left out.

    Attributes
    ----------
    membership : Membership
        The groups of all rows.
    gone : bool array
        Which rows were left out.
    query : int64 array
        The query of each row; a row without one is a query of its own.
    """

    membership: Membership
    gone: Flags
    query: Ints

    def compare(self) -> Iterator[tuple[str, float, float, float]]:
        """Yield for each group: the shares left out inside and outside, and a p-value.

        The p-value is two-sided, normal, and clustered by query.
        """
        for number, group in enumerate(self.membership.groups):
            word = self.membership.masks[number // 64]
            inside = (word >> np.uint64(number % 64)) & np.uint64(1) == 1
            if inside.all() or not inside.any():
                continue
            yield group, *self._difference(inside)

    def _difference(self, inside: Flags) -> tuple[float, float, float]:
        shares = [float(self.gone[rows].mean()) for rows in (inside, ~inside)]
        weight: Floats = np.where(inside, 1 / inside.sum(), -1 / (~inside).sum())
        centred: Floats = self.gone - np.where(inside, *shares)
        error = float(np.sqrt((np.bincount(self.query, weight * centred) ** 2).sum()))
        apart = abs(shares[0] - shares[1])
        z = apart / error if error > 0 else np.inf if apart else 0.0
        return shares[0], shares[1], math.erfc(z / math.sqrt(2))


def find_left_out(table: Frame, columns: ColumnNames, kept: Ints) -> LeftOut:
    """Return what was left out of a table, given the rows that stay."""
    gone = np.ones(len(table), dtype=np.bool_)
    gone[kept] = False
    first = columns.query[0] if isinstance(columns.query, tuple) else columns.query
    series = get_column(table, first, "query")
    absent = is_missing(series)
    query = np.empty(len(table), dtype=np.int64)
    known = np.flatnonzero(~absent)
    query[known] = encode(series[known], "query").codes
    query[absent] = len(known) + np.arange(int(absent.sum()))
    return LeftOut(read_groups(table, columns.group, columns.group_sep), gone, query)
