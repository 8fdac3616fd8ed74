"""The sums from which units are weighed again when the sums of several logs are added.

A unit with the share s of the pairs counts 1/(1 − s)² times its square. The share is known only
when all logs are, so sums of powers are kept that give 1 + 2s + 3s² for units with small shares,
and the few units with larger ones are kept one by one, without a name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mpc_lab.vocabulary import Flags, Floats, Ints

# A unit with more than this share of the pairs is heavy; of two sides, of either.
HEAVY = 1 / 32
MOST_HEAVY = 31
# The sums Σ c^a U^b over light units, for these a, b.
POWERS = ((3, 0), (2, 1), (1, 2), (4, 0), (3, 1), (2, 2))
N_POWERS = len(POWERS)
# A mode of two sides, b and a, has these powers for either side; and for each of the powers of c_b
# and c_a below, its products with U_b·U_a, U_b·c_a, c_b·U_a and c_b·c_a.
BETWEEN = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
N_SIDE_POWERS = 2 * N_POWERS + 4 * len(BETWEEN)
MOST_HEAVY_SIDES = 2 * MOST_HEAVY


class Squares(Protocol):
    """Sums over units of squares about a mean."""

    def at(self, delta: Floats, /) -> Floats:
        """Return Σ(U − δc)²."""
        ...


def _recentre(powers: Floats, shift: float) -> list[Floats]:
    """Return sums of powers with U + shift·c in place of U."""
    c3, c2u, cuu, c4, c3u, c2uu = powers
    return [
        c3,
        c2u + shift * c3,
        cuu + 2 * shift * c2u + shift**2 * c3,
        c4,
        c3u + shift * c4,
        c2uu + 2 * shift * c3u + shift**2 * c4,
    ]


def _of_squares(powers: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """Return Σ c(U − mean·c)² and Σ c²(U − mean·c)²."""
    c3, c2u, cuu, c4, c3u, c2uu = powers
    return cuu - 2 * mean * c2u + mean**2 * c3, c2uu - 2 * mean * c3u + mean**2 * c4


def _with_room(heavy: Floats, most: int) -> Floats:
    more = [(0, 0)] * heavy.ndim
    more[1] = (0, most - heavy.shape[1])
    return np.pad(heavy, more)


def _pack(heavy: Floats, kept: Flags) -> Floats:
    """Return the heavy units that are kept, first of all, without the room that none needs."""
    heavy = np.where(kept, heavy, 0.0)
    order = np.argsort(~kept, axis=0, kind="stable")
    heavy = np.take_along_axis(heavy, order[None], axis=1)
    return heavy[:, : int(kept.sum(axis=0).max(initial=0))]


def _inverse(part: Floats, whole: Floats) -> Floats:
    """Return 1/(whole − part); NaN where nothing is left."""
    return np.asarray(1 / np.where(part < whole, whole - part, np.nan))


@dataclass(frozen=True)
class SideSeries:
    """The sums from which units are weighed again in a mode of two sides.

    Attributes
    ----------
    powers : float64 array (32, group, threshold)
        See `BETWEEN`.
    heavy : float64 array (4, k, group, threshold)
        For units with more than 1/32 of a side, the weight and the centred sum below, and above.
    """

    powers: Floats
    heavy: Floats

    def take(self, pick: Callable[[Floats], Floats]) -> SideSeries:
        """Apply a choice of groups and thresholds, the last two axes, to both."""
        return SideSeries(pick(self.powers), pick(self.heavy))

    def with_room(self, most: int) -> SideSeries:
        """Return the same with room for this many heavy units."""
        return replace(self, heavy=_with_room(self.heavy, most))

    def recentre(self, shift: float) -> SideSeries:
        """Return sums of U + shift·c in place of U."""
        below, above = self.powers[:N_POWERS], self.powers[N_POWERS : 2 * N_POWERS]
        powers = _recentre(below, shift) + _recentre(above, shift)
        for k in range(2 * N_POWERS, N_SIDE_POWERS, 4):
            uu, uc, cu, cc = self.powers[k : k + 4]
            moved = uu + shift * (uc + cu) + shift**2 * cc
            powers += [moved, uc + shift * cc, cu + shift * cc, cc]
        cb, ub, ca, ua = self.heavy
        return SideSeries(np.stack(powers), np.stack([cb, ub + shift * cb, ca, ua + shift * ca]))

    def lighten(self, weight: Floats) -> SideSeries:
        """Return the same with units that are light, given the weight of sides, in the powers."""
        below, above = weight
        cb, ub, ca, ua = self.heavy
        heavy = (cb > HEAVY * below) | (ca > HEAVY * above)
        cb, ub, ca, ua = (np.where(heavy, 0.0, values) for values in self.heavy)
        more = [c**a * u**b for c, u in ((cb, ub), (ca, ua)) for a, b in POWERS]
        for a, b in BETWEEN:
            power = cb**a * ca**b
            more += [power * ub * ua, power * ub * ca, power * cb * ua, power * cb * ca]
        powers = self.powers + np.stack([part.sum(axis=0) for part in more])
        return SideSeries(powers, _pack(self.heavy, heavy))

    def correct(self, squares: Floats, pairs: Floats, weight: Floats, mean: Floats) -> Floats:
        """Return Σ of the squared changes of the estimate where a unit is left out, times pairs².

        Parameters
        ----------
        squares : float64 array (group, threshold)
            The same without the correction.
        pairs : float64 array (group, threshold)
        weight, mean : float64 arrays (side, group, threshold)
            The weight and mean of either side.
        """
        weight = np.where(weight > 0, weight, np.nan)
        (wb, wa), (mb, ma) = weight, mean
        light = np.zeros(pairs.shape)
        for side, own in enumerate((self.powers[:N_POWERS], self.powers[N_POWERS : 2 * N_POWERS])):
            first, second = _of_squares(own, mean[side])
            light += 2 * first / weight[side] ** 3 + 3 * second / weight[side] ** 4
        for k, (a, b) in enumerate(BETWEEN):
            at = 2 * N_POWERS + 4 * k
            uu, uc, cu, cc = self.powers[at : at + 4]
            light += 2 * (uu - ma * uc - mb * cu + mb * ma * cc) / (wb ** (a + 1) * wa ** (b + 1))
        cb, ub, ca, ua = self.heavy
        xb, xa = ub - mb * cb, ua - ma * ca
        plain = xb / wb + xa / wa
        changed = xb * _inverse(cb, wb) + xa * _inverse(ca, wa)
        light += (changed**2 - plain**2).sum(axis=0)
        return np.asarray(squares + 0.25 * pairs**2 * light)


@dataclass(frozen=True)
class Series:
    r"""The sums from which units are weighed again when the sums of several logs are added.

    A unit with the share s of all pairs counts :math:`1/(1 - s)^2 = 1 + 2s + 3s^2 + …` times. Where
    its share is at most 1/32 three terms are within 0.02 %; the others are kept one by one.

    Attributes
    ----------
    powers : float64 array (6, mode, group, threshold)
        Over units with at most 1/32 of the pairs, :math:`\sum c^3, \sum c^2 U, \sum c U^2,
        \sum c^4, \sum c^3 U` and :math:`\sum c^2 U^2`.
    heavy : float64 array (2, k, mode, group, threshold)
        The pairs c and the centred sum U of the other units; 0 beyond the last.
    sides : SideSeries, optional
        The same of a mode of two sides, which has nothing of its own in the others.
    """

    powers: Floats
    heavy: Floats
    sides: SideSeries | None = None

    def take(self, pick: Callable[[Floats], Floats]) -> Series:
        """Apply a choice of groups and thresholds, the last two axes, to all arrays."""
        return Series(pick(self.powers), pick(self.heavy), self.sides and self.sides.take(pick))

    def of_modes(self, rows: Sequence[int], two_sided: int | None) -> Series:
        """Keep some of the modes; the mode of two sides is this one."""
        kept = self.sides if two_sided in rows else None
        return Series(self.powers[:, rows], self.heavy[:, :, rows], kept)

    def with_room(self, most: int) -> Series:
        """Return the same with room for this many heavy units."""
        return replace(self, heavy=_with_room(self.heavy, most))

    def recentre(self, shift: float) -> Series:
        """Return sums of U + shift·c in place of U."""
        c, u = self.heavy
        return Series(
            np.stack(_recentre(self.powers, shift)),
            np.stack([c, u + shift * c]),
            self.sides and self.sides.recentre(shift),
        )

    def lighten(self, weight: Floats) -> Series:
        """Return the same with units that are not heavy, given Σc of all, in the powers."""
        c, u = self.heavy
        heavy = c > HEAVY * weight
        few, of_few = np.where(heavy, 0.0, c), np.where(heavy, 0.0, u)
        more = [(few**a * of_few**b).sum(axis=0) for a, b in POWERS]
        return replace(self, powers=self.powers + np.stack(more), heavy=_pack(self.heavy, heavy))

    def correct(self, sums: Squares, weight: Floats, delta: Floats) -> Floats:
        """Return Σ(S/(1 − s))², S = U − δc and s = c/Σc, given the plain sums; NaN: s is 1."""
        whole = np.where(weight > 0, weight, np.nan)
        first, second = _of_squares(self.powers, delta)
        c, u = self.heavy
        own = u - delta * c
        more = ((own * whole * _inverse(c, whole)) ** 2 - own**2).sum(axis=0)
        return np.asarray(sums.at(delta) + 2 * first / whole + 3 * second / whole**2 + more)


def join_series(parts: Sequence[Series]) -> Series | None:
    """Join the series of other groups."""
    if not parts:
        return None

    def joined(arrays: list[Floats]) -> Floats:
        return np.concatenate(arrays, axis=-2)

    most = max(part.heavy.shape[1] for part in parts)
    sides = None
    of_sides = [part.sides for part in parts if part.sides is not None]
    if of_sides:
        widest = max(part.heavy.shape[1] for part in of_sides)
        sides = SideSeries(
            joined([part.powers for part in of_sides]),
            joined([part.with_room(widest).heavy for part in of_sides]),
        )
    return Series(
        joined([part.powers for part in parts]),
        joined([part.with_room(most).heavy for part in parts]),
        sides,
    )


def list_heavy(kept: Floats, n_cells: int) -> Floats:
    """Return heavy units as (value, k, cell), given rows of a cell and values.

    Parameters
    ----------
    kept : float64 array (row, 1 + value)
        The cell of each unit, and what is kept of it.
    """
    cell = kept[:, 0].astype(np.int64)
    order = np.argsort(cell, kind="stable")
    cell = cell[order]
    # The number of each unit among the heavy ones of its cell.
    number: Ints = np.arange(len(cell)) - np.searchsorted(cell, cell)
    heavy = np.zeros((kept.shape[1] - 1, int(number.max(initial=-1)) + 1, n_cells))
    heavy[:, number, cell] = kept[order, 1:].T
    return heavy
