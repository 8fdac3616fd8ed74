"""The sums that pass from pairing to inference. They add up: over blocks, machines and days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mpc_lab.vocabulary import Floats, Ints, Mode


@dataclass(frozen=True)
class Quadratic:
    r"""What one way of clustering contributes to a variance.

    For clusters :math:`k` with :math:`c_k` pairs and centred sum
    :math:`U_k = \sum_{p \in k} (d_p - \text{center})`.

    Attributes
    ----------
    cc, cu, uu : float64 arrays of one shape
        :math:`\sum_k c_k^2`, :math:`\sum_k c_k U_k` and :math:`\sum_k U_k^2`.
    """

    cc: Floats
    cu: Floats
    uu: Floats

    def at(self, delta: Floats) -> Floats:
        r"""Return :math:`\sum_k (U_k - \delta c_k)^2`."""
        return self.uu - 2 * delta * self.cu + delta**2 * self.cc

    def __add__(self, other: Quadratic) -> Quadratic:
        return Quadratic(self.cc + other.cc, self.cu + other.cu, self.uu + other.uu)

    def __getitem__(self, key: Any) -> Quadratic:
        return Quadratic(self.cc[key], self.cu[key], self.uu[key])


@dataclass(frozen=True)
class Moments:
    """Sums over the pairs up to each threshold, with axes (mode, group, threshold).

    Attributes
    ----------
    modes : tuple of Mode
        What the first axis is about.
    edges : float64 array (group, threshold)
        The thresholds, ascending within a group.
    center : float64 array (group,)
        Subtracted from every difference before it is squared, so that large outcomes do not cancel.
    pairs, queries, clusters, items : int64 arrays (mode, group, threshold)
        Pairs; queries, clusters and items with a pair.
    by : dict of Quadratic
        ``"naive"``: each pair its own cluster. ``"query"``: clusters are units, or queries. Where
        items are summed over, ``"item"``, ``"dyad"`` (two items), and both inside a unit:
        ``"item_query"``, ``"dyad_query"``.
    squares : dict of float64 arrays
        Where items are summed over, Σc² over the items ``"inside"`` the group's side of the pairs,
        and over those ``"outside"``.
    dyads_once : bool
        Whether some dyads that may occur again were taken as occurring once, in lists with too
        many pairs to see which two items they are of.
    """

    modes: tuple[Mode, ...]
    edges: Floats
    center: Floats
    pairs: Ints
    queries: Ints
    clusters: Ints
    items: Ints
    by: dict[str, Quadratic]
    squares: dict[str, Floats] = field(default_factory=dict)
    dyads_once: bool = False

    @property
    def mode_names(self) -> tuple[str, ...]:
        """What the modes are called."""
        return tuple(mode.name for mode in self.modes)

    def of_modes(self, modes: Sequence[str]) -> Moments:
        """Keep some of the modes, in this order."""
        rows = [self.mode_names.index(mode) for mode in modes]
        return replace(
            self,
            modes=tuple(self.modes[row] for row in rows),
            pairs=self.pairs[rows],
            queries=self.queries[rows],
            clusters=self.clusters[rows],
            items=self.items[rows],
            by={name: sums[rows] for name, sums in self.by.items()},
            squares={side: sums[rows] for side, sums in self.squares.items()},
        )

    def of_groups(self, groups: Ints) -> Moments:
        """Keep some of the groups."""
        return replace(
            self,
            edges=self.edges[groups],
            center=self.center[groups],
            pairs=self.pairs[:, groups],
            queries=self.queries[:, groups],
            clusters=self.clusters[:, groups],
            items=self.items[:, groups],
            by={name: sums[:, groups] for name, sums in self.by.items()},
            squares={side: sums[:, groups] for side, sums in self.squares.items()},
        )

    def at(self, index: Ints) -> Moments:
        """Keep the thresholds ``index[group, k]`` of each group."""
        group = np.arange(len(self.center))[:, None]

        def pick(values: Any) -> Any:
            return values[:, group, index]

        return replace(
            self,
            edges=self.edges[group, index],
            pairs=pick(self.pairs),
            queries=pick(self.queries),
            clusters=pick(self.clusters),
            items=pick(self.items),
            by={
                name: Quadratic(pick(sums.cc), pick(sums.cu), pick(sums.uu))
                for name, sums in self.by.items()
            },
            squares={side: pick(sums) for side, sums in self.squares.items()},
        )


def join_groups(parts: list[Moments]) -> Moments:
    """Join moments of other groups, of the same modes and number of thresholds."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]

    def join(pick: Any, axis: int = 1) -> Any:
        return np.concatenate([pick(part) for part in parts], axis=axis)

    def join_sums(name: str) -> Quadratic:
        return Quadratic(
            join(lambda part: part.by[name].cc),
            join(lambda part: part.by[name].cu),
            join(lambda part: part.by[name].uu),
        )

    return Moments(
        modes=first.modes,
        edges=join(lambda part: part.edges, axis=0),
        center=join(lambda part: part.center, axis=0),
        pairs=join(lambda part: part.pairs),
        queries=join(lambda part: part.queries),
        clusters=join(lambda part: part.clusters),
        items=join(lambda part: part.items),
        by={name: join_sums(name) for name in first.by},
        squares={side: join(lambda part, side=side: part.squares[side]) for side in first.squares},
        dyads_once=any(part.dyads_once for part in parts),
    )
