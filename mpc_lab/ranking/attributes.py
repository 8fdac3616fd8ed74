"""Columns cut into levels, and the slices that conjunctions of levels make.

Nothing here looks at outcomes: levels are given categories or quantiles, and slices that cannot
have enough clusters on a side are left out by counts of rows alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from mpc_lab.errors import MpcError, check_count, check_whole
from mpc_lab.ranking.columns import open_table
from mpc_lab.text import plain
from mpc_lab.vocabulary import Flags, Ints, Masks

if TYPE_CHECKING:
    from mpc_lab.ranking.ranking import Ranking

Attributes = str | Sequence[Hashable] | Mapping[str, ArrayLike]
MOST_LEVELS = 8
MOST_SLICES = 1000
_MOST_CONJUNCTIONS = 20_000
_NONE = -1


@dataclass(frozen=True)
class Attribute:
    """A column as levels that do not overlap.

    Attributes
    ----------
    name : str
    levels : tuple of str
        In words: "price > 3".
    code : int64 array (row,)
        The level of each row; -1 for no level.
    """

    name: str
    levels: tuple[str, ...]
    code: Ints


@dataclass(frozen=True)
class Slices:
    """Which rows satisfy each conjunction.

    Attributes
    ----------
    names : tuple of str
    conditions : tuple of tuple of str
        The levels that each is made of.
    masks : uint64 array (word, row)
        Bit ``k % 64`` of word ``k // 64`` says whether a row is in slice k.
    n_conjunctions, n_same : int
        The number of conjunctions before any is left out, and how many have the same rows as an
        earlier one.
    """

    names: tuple[str, ...]
    conditions: tuple[tuple[str, ...], ...]
    masks: Masks
    n_conjunctions: int
    n_same: int


# ---- columns into levels


def read_attributes(ranking: Ranking, attributes: Attributes, quantiles: int) -> list[Attribute]:
    """Cut columns into at most 8 levels each, without a look at outcomes.

    Parameters
    ----------
    ranking : Ranking
    attributes : str, list of str, or mapping of str to array
        Columns of the log, or values by row. The group column of a log whose groups overlap has an
        attribute for each of its groups, with one level.
    quantiles : int
        Into how many levels numbers are cut, where they have more than 8 values.
    """
    check_whole("quantiles", quantiles, at_least=2, at_most=MOST_LEVELS, remedy="Try quantiles=4.")
    found: list[Attribute] = []
    for name, values in _columns(ranking, attributes):
        if values is None:
            found += _of_groups(ranking)
            continue
        if values.shape != (ranking.n_rows,):
            raise MpcError(
                f"Attribute {name!r} must have one value for each of {ranking.n_rows:,} rows; got "
                f"an array of shape {values.shape}."
            )
        found.append(_cut(name, values, quantiles))
    constant = [one.name for one in found if len(one.levels) < 2 and (one.code >= 0).all()]
    if constant:
        raise MpcError(
            f"Attribute {constant[0]!r} must vary between rows; got the same value in every row. "
            "Leave it out."
        )
    return found


def _columns(ranking: Ranking, attributes: Attributes) -> Iterator[tuple[str, NDArray[Any] | None]]:
    """Yield the values of each attribute by row; None for groups that overlap."""
    if isinstance(attributes, Mapping):
        given: list[tuple[Any, Any]] = [(str(k), np.asarray(v)) for k, v in attributes.items()]
    else:
        given = [(name, None) for name in _names(attributes)]
    if not given:
        raise MpcError(
            "attributes must name at least one column; got none. Name columns of the log that say "
            'what an item or a query is, such as attributes=["genre", "year"].'
        )
    if len({name for name, _ in given}) < len(given):
        raise MpcError(f"attributes must be different columns; got {[n for n, _ in given]!r}.")
    for name, values in given:
        group = ranking.columns.group
        if values is None and isinstance(name, type(group)) and name == group and _overlap(ranking):
            yield str(name), None
        else:
            if values is None and name == ranking.columns.outcome:
                raise MpcError(
                    f"An attribute must not be the outcome; got {name!r}. Slices are made without "
                    "a look at outcomes: name columns that say what an item or a query is."
                )
            yield str(name), ranking.column(name) if values is None else values


def _names(attributes: Any) -> list[Any]:
    """Return one name, or several, as a list; each may be the name of a column."""
    try:
        names = [attributes] if isinstance(attributes, str | bytes) else list(attributes)
    except TypeError:
        names = [attributes]
    for name in names:
        if not isinstance(name, Hashable) or isinstance(name, slice):
            raise MpcError(
                f"attributes must be names of columns, or a mapping of names to values; got "
                f'{name!r} among them. Name them, such as attributes=["genre", "year"].'
            )
    return names


def _overlap(ranking: Ranking) -> bool:
    """Whether a row can be in several groups."""
    return ranking.columns.group_sep is not None or _holds_lists(
        ranking.column(ranking.columns.group)
    )


def _holds_lists(values: NDArray[Any]) -> bool:
    return values.dtype == object and any(isinstance(one, list | np.ndarray) for one in values)


def _of_groups(ranking: Ranking) -> list[Attribute]:
    return [
        Attribute(group, (plain(group),), np.where(ranking.member(group), 0, _NONE))
        for group in ranking.groups
    ]


def _cut(name: str, values: NDArray[Any], quantiles: int) -> Attribute:
    """Cut one column into levels."""
    if _holds_lists(values):
        raise MpcError(
            f"Attribute {name!r} must have one value in each row; got lists. Make it the group= of "
            "the log, or give a column of True and False for each label."
        )
    if values.dtype.kind in "mM":
        raise MpcError(
            f"Attribute {name!r} must hold categories or numbers; got dates. Make a column of "
            "years, months or weekdays of it."
        )
    missing = np.asarray(pd.isna(values), dtype=np.bool_)
    shown = plain(name)
    room = MOST_LEVELS - int(missing.any())
    present = values[~missing]
    if _are_numbers(present) and len(np.unique(present)) > room:
        levels, of_present = _quantiles(shown, present.astype(np.float64), min(quantiles, room))
    else:
        levels, of_present = _categories(shown, present, room)
    code = np.full(len(values), len(levels), dtype=np.int64)
    code[~missing] = of_present
    if missing.any():
        levels.append(f"{shown} is missing")
    return Attribute(name, tuple(levels), code)


def _are_numbers(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iuf" or (
        values.dtype == object
        and pd.api.types.infer_dtype(values) in ("integer", "floating", "mixed-integer-float")
    )


def _quantiles(name: str, values: NDArray[np.float64], n: int) -> tuple[list[str], Ints]:
    """Cut numbers at quantiles of all rows; equal values stay together."""
    cuts = np.unique(np.quantile(values, np.arange(1, n) / n, method="inverted_cdf"))
    below = values[values < values.max()]
    cuts = cuts[cuts < values.max()] if cuts[0] < values.max() else np.array([below.max()])
    shown = _distinct(cuts)
    names = [f"{name} ≤ {shown[0]}"]
    names += [f"{low} < {name} ≤ {high}" for low, high in pairwise(shown)]
    names.append(f"{name} > {shown[-1]}")
    return names, np.searchsorted(cuts, values, side="left").astype(np.int64)


def _distinct(cuts: NDArray[np.float64]) -> list[str]:
    """Return cuts with just enough digits to be different."""
    for digits in range(3, 17):
        shown = [f"{cut:.{digits}g}" for cut in cuts]
        if len(set(shown)) == len(shown):
            break
    return [one.replace("-", "−") for one in shown]


def _categories(name: str, values: NDArray[Any], room: int) -> tuple[list[str], Ints]:
    """Return given categories; of too many the most frequent ones, and one for all others."""
    try:
        first, distinct = pd.factorize(values)
    except TypeError as error:
        raise MpcError(
            f"Attribute {name!r} must hold values that can be compared; got others ({error}). "
            "Convert them to text or numbers."
        ) from error
    code, labels = pd.factorize(np.array([plain(str(one)) for one in distinct], dtype=object))
    code = code[first]
    count = np.bincount(code, minlength=len(labels))
    order = sorted(range(len(labels)), key=lambda k: (-count[k], labels[k]))
    kept = sorted(order if len(order) <= room else order[: room - 1], key=lambda k: labels[k])
    place = np.full(len(labels), len(kept), dtype=np.int64)
    place[kept] = np.arange(len(kept))
    levels = [f"{name} = {labels[k]}" for k in kept]
    if len(order) > room:
        levels.append(f"{name} is any other")
    return levels, place[code]


# ---- levels into slices


def make_slices(
    ranking: Ranking, attributes: Sequence[Attribute], depth: int, fewest: int, by_item: bool
) -> Slices:
    """Return all conjunctions of levels of up to `depth` attributes that can have enough clusters.

    A conjunction stays if at least `fewest` queries (or units) have rows on both sides of it and,
    with `by_item`, at least this many items are on either side: the effective clusters cannot be
    more. A conjunction with the same rows as a shorter or an earlier one is left out.

    Parameters
    ----------
    ranking : Ranking
    attributes : sequence of Attribute
    depth, fewest : int
    by_item : bool
    """
    depth = check_count("depth", depth, remedy="Try depth=2.")
    combos = [
        combo
        for size in range(1, min(depth, len(attributes)) + 1)
        for combo in combinations(range(len(attributes)), size)
    ]
    n_conjunctions = sum(prod(len(attributes[k].levels) for k in combo) for combo in combos)
    if n_conjunctions > _MOST_CONJUNCTIONS:
        raise _too_many(n_conjunctions, _MOST_CONJUNCTIONS, depth)
    counter = _Counter(ranking, fewest, by_item)
    kept: list[tuple[tuple[int, ...], int]] = []
    seen: set[bytes] = set()
    masks: list[bytes] = []
    n_same = 0
    for combo in combos:
        code, n_cells = _join_codes([attributes[k] for k in combo])
        for cell in counter.enough(code, n_cells):
            inside = code == cell
            packed = np.packbits(inside).tobytes()
            if packed in seen:
                n_same += 1
                continue
            seen.add(packed)
            if len(masks) == MOST_SLICES:
                raise _too_many(_count(counter, attributes, combos), MOST_SLICES, depth)
            masks.append(packed)
            kept.append((combo, int(cell)))
    conditions = []
    for combo, cell in kept:
        at = np.unravel_index(cell, [len(attributes[k].levels) for k in combo])
        parts = zip(combo, at, strict=True)
        conditions.append(tuple(attributes[k].levels[int(level)] for k, level in parts))
    names = tuple(" & ".join(parts) for parts in conditions)
    if len(set(names)) < len(names):
        raise MpcError("Levels of attributes must have different names; got one name twice.")
    words = _pack(masks, ranking.n_rows)
    return Slices(names, tuple(conditions), words, n_conjunctions, n_same)


def _count(
    counter: _Counter, attributes: Sequence[Attribute], combos: Sequence[tuple[int, ...]]
) -> int:
    joined = (_join_codes([attributes[k] for k in combo]) for combo in combos)
    return sum(len(counter.enough(code, n_cells)) for code, n_cells in joined)


def _too_many(count: int, most: int, depth: int) -> MpcError:
    return MpcError(
        f"There must be at most {most:,} slices to look at; got {count:,}. Name fewer attributes, "
        f"give them fewer levels, such as quantiles=2, or pass depth={max(1, depth - 1)}."
    )


def _join_codes(parts: Sequence[Attribute]) -> tuple[Ints, int]:
    """Return the cell of each row in the table of all levels, -1 in none."""
    code, n_cells = np.zeros(len(parts[0].code), dtype=np.int64), 1
    outside = np.zeros(len(code), dtype=np.bool_)
    for part in parts:
        outside |= part.code < 0
        code = code * len(part.levels) + part.code
        n_cells *= len(part.levels)
    code[outside] = _NONE
    return code, n_cells


class _Counter:
    """Counts the clusters that each cell can have at most."""

    def __init__(self, ranking: Ranking, fewest: int, by_item: bool) -> None:
        self.fewest = fewest
        self.query = ranking.query_code
        self.size = np.bincount(self.query)
        unit = ranking.unit_code
        self.unit_of = np.arange(len(self.size))
        if unit is not None:
            self.unit_of[self.query] = unit
        self.item = ranking.owner_code if by_item else None

    def enough(self, code: Ints, n_cells: int) -> Ints:
        """Return the cells that can have enough clusters on both sides."""
        rows = np.flatnonzero(code >= 0)
        query, cell, count = _pairs(self.query[rows], code[rows], n_cells)
        both = count < self.size[query]
        units = _pairs(self.unit_of[query[both]], cell[both], n_cells)[1]
        enough = np.bincount(units, minlength=n_cells) >= self.fewest
        if self.item is not None:
            item, cell, count = _pairs(self.item[rows], code[rows], n_cells)
            total = np.bincount(self.item)
            inside = np.bincount(cell, minlength=n_cells)
            whole = np.bincount(cell[count == total[item]], minlength=n_cells)
            enough &= (inside >= self.fewest) & (np.count_nonzero(total) - whole >= self.fewest)
        return np.flatnonzero(enough)


def _pairs(one: Ints, cell: Ints, n_cells: int) -> tuple[Ints, Ints, Ints]:
    """Return the different pairs of a code and a cell, and the rows of each."""
    keys, count = np.unique(one * n_cells + cell, return_counts=True)
    return keys // n_cells, keys % n_cells, count


def _pack(masks: Sequence[bytes], n_rows: int) -> Masks:
    words = np.zeros((max(1, -(-len(masks) // 64)), n_rows), dtype=np.uint64)
    for k, packed in enumerate(masks):
        inside: Flags = np.unpackbits(np.frombuffer(packed, np.uint8), count=n_rows).astype(bool)
        words[k // 64][inside] |= np.uint64(1) << np.uint64(k % 64)
    return words


def open_without_groups(data: Any, columns: Mapping[str, Any]) -> Ranking:
    """Return the ranking of a table for which no groups were named: all rows are in one."""
    from mpc_lab.ranking.ranking import as_ranking

    table = open_table(data)
    name = "every row"
    while name in table.columns:
        name += " "
    return as_ranking(table.with_columns(nw.lit(True).alias(name)), **columns, group=[name])
