"""Add the sums over items to the moments of a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mpc_lab.engines.sources import EngineWalk
from mpc_lab.pairing.item_sums import ItemSums
from mpc_lab.pairing.moments import Moments, Quadratic


def add_item_sums(walk: EngineWalk, moments: Moments) -> Moments:
    """Return the moments of all groups of the log with what item and union variance need."""
    return _with_items(moments, walk.item_sums(moments))


def add_item_counts(walk: EngineWalk, moments: Moments) -> Moments:
    """Return the moments with the number of items that have a pair."""
    return replace(moments, items=_with_items(moments, walk.item_sums(moments)).items)


def _with_items(moments: Moments, found: list[list[ItemSums]]) -> Moments:
    modes = range(len(moments.pairs))

    def stacked(pick: Callable[..., Any]) -> Any:
        return np.array([[pick(of_group[mode]) for of_group in found] for mode in modes])

    by = {
        name: Quadratic(
            stacked(lambda sums, name=name: sums.by[name].cc),
            stacked(lambda sums, name=name: sums.by[name].cu),
            stacked(lambda sums, name=name: sums.by[name].uu),
        )
        for name in found[0][0].by
    }
    return replace(
        moments,
        items=stacked(lambda sums: sums.items),
        by=moments.by | by,
        squares={
            "inside": stacked(lambda sums: sums.inside),
            "outside": stacked(lambda sums: sums.outside),
        },
        dyads_once=any(sums.dyads_once for of_group in found for sums in of_group),
    )
