"""What must hold within a query, checked as sorted chunks pass by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_lab.pairing.arrays import Ints
from mpc_lab.pairing.compiling import kernel
from mpc_lab.ranking.checks import LARGEST_WHOLE


class ListChecks:
    """Items and positions must differ within a query.

    Parameters
    ----------
    n_items : int
        0 where items are not known.
    positions : bool
        Whether there are logged positions.
    """

    def __init__(self, n_items: int, positions: bool) -> None:
        self.n_items, self.positions = n_items, positions
        self._query = np.full(n_items, -1, dtype=np.int64)
        self._n_queries = 0

    def passed(self, columns: dict[str, NDArray[Any]], starts: Ints) -> bool:
        """Tell whether a chunk is as it must be; ``tie`` is the position with its sign turned."""
        good = not self.positions or _positions_differ(-columns["tie"], starts)
        if self.n_items:
            good &= bool(_items_differ(columns["item"], starts, self._query, self._n_queries))
        self._n_queries += len(starts) - 1
        return good


def _positions_differ(position: NDArray[np.float64], starts: Ints) -> bool:
    if not ((position >= 1) & (position <= LARGEST_WHOLE) & (position == np.floor(position))).all():
        return False
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((position, query))
    same = (query[order[1:]] == query[order[:-1]]) & (position[order[1:]] == position[order[:-1]])
    return not same.any()


@kernel
def _items_differ(item: Ints, starts: Ints, query: Ints, number: int) -> bool:
    """Write down the last query of each item; an item that is there already stands twice."""
    for q in range(len(starts) - 1):
        for row in range(starts[q], starts[q + 1]):
            if query[item[row]] == number + q:
                return False
            query[item[row]] = number + q
    return True
