"""Differences of gaps when the pairs are too many to list: block after block of whole units.

There are three walks over a log, wherever it is. They find what the sides (and cells of places) of
each estimate weigh, and their means; sums inside units; and sums over items and dyads, which are
spread over the log and brought together by an exchange. Contributions are computed and combined as
in `mpc_lab.inference.difference`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mpc_lab.inference.clustered import PairCodes, pair_codes, totals
from mpc_lab.inference.difference import (
    ListedEstimate,
    Stacked,
    divide_by_rest,
    no_stack,
    side_by_side,
    square,
    squares_of,
    sum_by,
)
from mpc_lab.inference.sides import by_place, by_score
from mpc_lab.pairing.kernels import ONE
from mpc_lab.pairing.log import Log, block_bounds
from mpc_lab.pairing.pairs import count_and_sum, pair_rows
from mpc_lab.pairing.places import FEWEST, N_CELLS, combine_cells
from mpc_lab.pairing.walk import Logs, Source
from mpc_lab.scoring import Rule
from mpc_lab.vocabulary import ITEM, MODES, Flags, Floats, Ints, Masks

PAIRS_IN_A_BLOCK = 1_000_000
_KINDS = ("naive", "query", "item_query", "dyad_query")
# The most parts of a difference: both sides of a tie, for both estimates.
_MOST_PARTS = 4
_N_SUMS = 2 * (len(_KINDS) + 1) + 4 + 2 * _MOST_PARTS
_N_ITEM_SUMS = 6 + 3 + 2 * _MOST_PARTS
_MIX = np.uint64(0x9E3779B97F4A7C15)


class End(NamedTuple):
    """One of the two estimates of a difference, and what is needed to list its pairs.

    Attributes
    ----------
    rule, group : int
        Their numbers.
    mode : str
    epsilon : float
        Its threshold; below 0 there is no pair.
    center : float
        A number near the mean difference.
    """

    rule: int
    group: int
    mode: str
    epsilon: float
    center: float


Contrast = tuple[End, End]


class Marked(NamedTuple):
    """A log, and which of its rows are in a group."""

    log: Log
    member: Flags


class _Block(NamedTuple):
    """A run of units, and how many pairs each estimate has there, or at most has."""

    units: tuple[int, int]
    counts: tuple[int, ...]
    at_most: bool = False


class _Pairs(NamedTuple):
    """The pairs of a block: rows of the log, differences, weights on each side, and cells."""

    i: Ints
    j: Ints
    d: Floats
    weight: Floats
    on_side: Flags
    place: Ints


@dataclass(frozen=True)
class _Whole:
    """The factor for the weights of pairs, and the mean of their part, as (part, cell)."""

    value: float
    pairs: int
    scale: Floats
    mean: Floats


class _Tables(NamedTuple):
    """By name: share, error, and the shares of pairs inside and outside; by dyad: error."""

    items: Masks
    of_items: Floats
    dyads: Masks
    of_dyads: Floats


def stack_walked(
    source: Source,
    rules: Sequence[Rule],
    contrasts: Sequence[Contrast],
    *,
    by_item: bool,
    owner: str = ITEM,
) -> list[Stacked]:
    """Stack the contributions of the two estimates of each contrast, walking a log for them.

    Parameters
    ----------
    source : Source
    rules : sequence of Rule
    contrasts : sequence of (End, End)
        New and old.
    by_item : bool
        Whether sums over items are wanted.
    owner : {"item", "producer"}
        Who the items are.
    """
    placed = source.facts.columns.sides_by_place
    start: Any = np.zeros((len(contrasts), 2, 4, 2, N_CELLS if placed else 1))
    weighing = partial(_weigh, contrasts, placed)
    sums = source.together(rules, weighing, "weighing pairs", start)
    wholes = [
        (_whole(of_one, one.mode, one.center), _whole(of_other, other.mode, other.center))
        for (of_one, of_other), (one, other) in zip(sums, contrasts, strict=True)
    ]
    how = (contrasts, wholes, placed, owner)
    within = source.together(
        rules,
        partial(_sum_within, *how, by_item),
        "adding pairs",
        np.zeros((len(contrasts), _N_SUMS)),
    )
    of_items = np.full((len(contrasts), _N_ITEM_SUMS), np.nan)
    if by_item:
        every = sum(whole.pairs for both in wholes for whole in both)
        shares = max(1, -(-every // source.pairs_at_once))
        of_items = np.zeros_like(of_items)
        for number in range(shares):
            split = partial(_split, *how, (number, shares))
            merge = partial(_merge, contrasts)
            for found in source.exchange(rules, split, merge, "summing over items"):
                of_items = of_items + found
    return [
        _join(contrast, both, sums_within, sums_of_items, by_item=by_item)
        for contrast, both, sums_within, sums_of_items in zip(
            contrasts, wholes, within, of_items, strict=True
        )
    ]


# ---- both logs of a contrast, block by block


def each_contrast(
    contrasts: Sequence[Contrast], logs: Logs
) -> Iterator[tuple[int, Marked, Marked]]:
    """Yield each contrast with its two logs, which are freed once nothing needs them."""
    needed = Counter((cell.rule, cell.group) for both in contrasts for cell in both)
    held: dict[tuple[int, int], tuple[Log, int]] = {}
    waiting = dict(enumerate(contrasts))
    for rule, groups, log in logs:
        held |= {(rule, g): (log, k) for k, g in enumerate(groups.tolist()) if needed[rule, g]}
        for number, both in list(waiting.items()):
            keys = [(cell.rule, cell.group) for cell in both]
            if not all(key in held for key in keys):
                continue
            one, other = (Marked(held[key][0], _member(*held[key])) for key in keys)
            yield number, one, other
            del waiting[number]
            for key in keys:
                needed[key] -= 1
                if not needed[key]:
                    held.pop(key, None)


def _member(log: Log, group: int) -> Flags:
    return np.asarray((log.masks[group // 64] >> np.uint64(group % 64)) & ONE != 0)


def _blocks(both: Sequence[Marked], cells: Sequence[End]) -> list[_Block]:
    """Return runs of units with a bounded number of pairs of all estimates, or one with more."""
    counts = []
    for marked, cell in zip(both, cells, strict=True):
        log, side = marked.log, MODES[cell.mode].side
        if side.neighbours:  # at most one pair a row
            counts.append(np.diff(log.starts[log.units]).astype(np.float64))
        else:
            counts.append(count_and_sum(log, marked.member, side, cell.epsilon)[0])
    upto = np.concatenate([[0], np.cumsum(np.sum(counts, axis=0))])
    return [
        _Block(units, tuple(int(count[slice(*units)].sum()) for count in counts))
        for units in block_bounds(upto, PAIRS_IN_A_BLOCK)
    ]


def _list(marked: Marked, cell: End, block: _Block, number: int, *, placed: bool) -> _Pairs:
    """List the pairs of a block; `number` is which of its estimates the cell is."""
    log, mode, count = marked.log, MODES[cell.mode], block.counts[number]
    known = {"room" if block.at_most else "count": count}
    i, j = pair_rows(log, marked.member, mode.side, cell.epsilon, units=block.units, **known)
    d = log.contrast(i, j) - cell.center
    weight, place = np.ones((1, len(d))), np.zeros(len(d), dtype=np.int64)
    if mode.two_sided:
        codes = PairCodes(i)
        if placed:
            sided = by_place(d, d, -log.tie[i], -log.tie[j], codes)
        else:
            sided = by_score(d, d, np.sign(log.score[j] - log.score[i]), 0.5, codes)
        weight, place = sided.weight, sided.cell
    counts, on_side = log.weights_of(i), weight > 0
    return _Pairs(i, j, d, weight if counts is None else weight * counts.of_pairs, on_side, place)


def _weigh(contrasts: Sequence[Contrast], placed: bool, logs: Logs) -> Floats:
    """Return weight, sum and number of pairs by side and cell, and the number of all."""
    size = N_CELLS if placed else 1
    found = np.zeros((len(contrasts), 2, 4, 2, size))
    for number, *both in each_contrast(contrasts, logs):
        for k, (marked, cell) in enumerate(zip(both, contrasts[number], strict=True)):
            own = found[number, k]
            if _is_plain(marked.log, cell):
                count, total = count_and_sum(
                    marked.log, marked.member, MODES[cell.mode].side, cell.epsilon
                )
                n_pairs = count.sum()
                own[:, 0, 0] += [n_pairs, total.sum() - n_pairs * cell.center, n_pairs, n_pairs]
                continue
            for block in _blocks((marked,), (cell,)):
                pairs = _list(marked, cell, block, 0, placed=placed)
                own[3, 0, 0] += len(pairs.d)
                for side, (weight, here) in enumerate(
                    zip(pairs.weight, pairs.on_side, strict=True)
                ):
                    for row, value in enumerate((weight, weight * pairs.d, here.astype(float))):
                        own[row, side] += np.bincount(pairs.place, value, minlength=size)
    return found


def _is_plain(log: Log, cell: End) -> bool:
    """Whether pairs count alike and by their differences, so that no list is needed to add them."""
    mode = MODES[cell.mode]
    return not (mode.two_sided or mode.side.neighbours or log.sign or log.weights is not None)


def _whole(sums: Floats, mode: str, center: float) -> _Whole:
    weight, total, number = sums[:3]
    n_pairs = int(sums[3, 0, 0])
    if not MODES[mode].two_sided:
        mass = float(weight[0, 0]) or np.nan
        mean = np.array([[float(total[0, 0]) / mass]])
        return _Whole(center + float(mean[0, 0]), n_pairs, np.array([[1.0 / mass]]), mean)
    fewest = FEWEST if weight.shape[-1] > 1 else 0.0
    found = combine_cells(weight, total, fewest, number)
    known = found.share.sum() > 0
    scale = found.share / np.where(weight > 0, weight, 1.0)
    return _Whole(center + float(found.estimate) if known else np.nan, n_pairs, scale, found.means)


def _estimate(
    marked: Marked, cell: End, whole: _Whole, block: _Block, number: int, *, placed: bool
) -> ListedEstimate:
    """Return how much the pairs of a block add to an estimate and to its error."""
    log = marked.log
    pairs = _list(marked, cell, block, number, placed=placed)
    share = pairs.weight * whole.scale[:, pairs.place]
    error = share * (pairs.d - whole.mean[:, pairs.place])
    unit = np.searchsorted(log.starts[log.units], pairs.i, side="right") - 1 - block.units[0]
    owners = log.cluster
    inside, outside = (owners[pairs.i], owners[pairs.j]) if len(owners) else (None, None)
    row_i, row_j = log.row[pairs.i], log.row[pairs.j]
    pair = np.minimum(row_i, row_j) * (int(log.row.max(initial=0)) + 1) + np.maximum(row_i, row_j)
    return ListedEstimate(whole.value, share, error, 1.0 / len(share), unit, inside, outside, pair)


_Listed = tuple[int, ListedEstimate, ListedEstimate]


def _listed(
    contrasts: Sequence[Contrast],
    wholes: Sequence[tuple[_Whole, _Whole]],
    placed: bool,
    logs: Logs,
) -> Iterator[_Listed]:
    for number, *both in each_contrast(contrasts, logs):
        if not _estimable(wholes[number]):
            continue
        pairs = tuple(whole.pairs for whole in wholes[number])
        if sum(pairs) <= PAIRS_IN_A_BLOCK:  # of the whole log: there is no need to count them here
            blocks = [_Block((0, len(both[0].log.units) - 1), pairs, at_most=True)]
        else:
            blocks = _blocks(both, contrasts[number])
        ends = list(zip(both, contrasts[number], wholes[number], strict=True))
        for block in blocks:
            one, other = (_estimate(*end, block, k, placed=placed) for k, end in enumerate(ends))
            yield number, one, other


def _estimable(both: tuple[_Whole, _Whole]) -> bool:
    return all(whole.pairs and np.isfinite(whole.value) for whole in both)


# ---- sums inside units


def _sum_within(
    contrasts: Sequence[Contrast],
    wholes: Sequence[tuple[_Whole, _Whole]],
    placed: bool,
    owner: str,
    by_item: bool,
    logs: Logs,
) -> Floats:
    found = np.zeros((len(contrasts), _N_SUMS))
    for number, one, other in _listed(contrasts, wholes, placed, logs):
        found[number] += _within(one, other, owner, by_item=by_item)
    return found


def _within(one: ListedEstimate, other: ListedEstimate, owner: str, *, by_item: bool) -> Floats:
    both = (one, other)
    error = side_by_side([each.factor * each.error for each in both])
    share = side_by_side([each.share for each in both])
    is_new = np.repeat([1.0, 0.0], [len(each.share) for each in both])
    inside, outside = _ends(both) if by_item else (None, None)
    query = np.concatenate([each.query for each in both])
    codes = pair_codes(query, inside, outside, owner)
    kinds = codes.clusters()
    of_pair, pair = _number(np.concatenate([each.pair for each in both]))
    tables = {kind: sum_by(error, kinds[kind]) for kind in _KINDS if kind in kinds}
    tables["naive"] = sum_by(error, (of_pair,))
    of_query = sum_by(share, (query,))
    counts = np.concatenate([each.factor * each.share.sum(axis=0) for each in both])
    recurring = 0
    if codes.items is not None:
        twice = np.concatenate([codes.items.inside_query, codes.items.outside_query])
        recurring = int(np.count_nonzero(np.bincount(twice)))
    squares = [
        squares_of(is_new, tables[kind]) if kind in tables else np.zeros(2) for kind in _KINDS
    ]
    cr3 = squares_of(is_new, divide_by_rest(tables["query"], of_query))
    counted = square(totals(query, counts))
    n_queries = np.count_nonzero(np.bincount(query))
    numbers = [counted, n_queries, len(query) - len(pair), recurring]
    parts = [_of_parts(table) for table in (tables["query"], of_query)]
    return np.concatenate([*squares, cr3, np.array(numbers, dtype=np.float64), *parts])


def _number(values: Any) -> tuple[Ints, Any]:
    """Return numbers that are alike where values are, and the values; sorting them takes longer."""
    from pandas import factorize

    return factorize(values)


def _ends(both: Sequence[ListedEstimate]) -> tuple[Ints, Ints]:
    found = [np.concatenate([getattr(each, end) for each in both]) for end in ("inside", "outside")]
    return found[0], found[1]


def _of_parts(table: Floats) -> Floats:
    """Return the sum of squares of each part."""
    found = np.zeros(_MOST_PARTS)
    found[: len(table)] = np.einsum("xk,xk->x", table, table)
    return found


# ---- sums over items and dyads


def _split(
    contrasts: Sequence[Contrast],
    wholes: Sequence[tuple[_Whole, _Whole]],
    placed: bool,
    owner: str,
    of_shares: tuple[int, int],
    buckets: int,
    logs: Logs,
    names: Masks,
) -> list[list[tuple[int, _Tables]]]:
    """Return tables of the items and dyads of a part, by the bucket of their names."""
    found: list[list[tuple[int, _Tables]]] = [[] for _ in range(buckets)]
    for number, one, other in _listed(contrasts, wholes, placed, logs):
        tables = _tables(one, other, owner, names)
        share, shares = of_shares
        which = [_place(keys, buckets * shares) for keys in (tables.items, tables.dyads)]
        for bucket in range(buckets):
            here = [of_keys == bucket * shares + share for of_keys in which]
            own = _Tables(
                tables.items[here[0]],
                tables.of_items[..., here[0]],
                tables.dyads[here[1]],
                tables.of_dyads[:, here[1]],
            )
            if len(own.items) or len(own.dyads):
                found[bucket].append((number, own))
    return found


def _place(keys: Masks, size: int) -> Ints:
    """Return which of this many places each key goes to."""
    mixed = (keys ^ (keys >> np.uint64(31))) * _MIX
    return np.asarray((mixed >> np.uint64(33)) % np.uint64(size)).astype(np.int64)


def _tables(one: ListedEstimate, other: ListedEstimate, owner: str, names: Masks) -> _Tables:
    both = (one, other)
    inside, outside = _ends(both)
    code, known = _number(np.concatenate([inside, outside]))
    i, j = code[: len(inside)], code[len(inside) :]
    error = side_by_side([each.factor * each.error for each in both])
    share = side_by_side([each.share for each in both])
    again = j if owner == ITEM else np.where(i == j, -1, j)
    size = len(known)
    tables = [sum_by(share, (i, again)), sum_by(error, (i, again))]
    tables += [sum_by(share, (i,)), sum_by(share, (j,))]
    filled = np.zeros((4, len(share), size))
    for k, table in enumerate(tables):
        filled[k, :, : table.shape[1]] = table
    name = names[known] if len(names) else known.astype(np.uint64)
    least, most = np.minimum(name[i], name[j]), np.maximum(name[i], name[j])
    # Codes fit into half a word each; names that are the same in all parts do not.
    dyad = (least * _MIX + most) * _MIX if len(names) else (least << np.uint64(32)) | most
    of_pair, dyads = _number(dyad)
    if owner != ITEM:
        of_pair = np.where(i == j, -1, of_pair)
    table = sum_by(error, (of_pair,))
    of_dyads = np.zeros((len(error), len(dyads)))
    of_dyads[:, : table.shape[1]] = table
    return _Tables(name, filled, dyads, of_dyads)


def _merge(contrasts: Sequence[Contrast], parts: Sequence[list[tuple[int, _Tables]]]) -> Floats:
    """Return sums of squares over the items and dyads of one bucket of all parts."""
    found = np.zeros((len(contrasts), _N_ITEM_SUMS))
    by_contrast: dict[int, list[_Tables]] = {}
    for part in parts:
        for number, tables in part:
            by_contrast.setdefault(number, []).append(tables)
    for number, every in by_contrast.items():
        sides = [
            len(MODES[c.mode].sides) if MODES[c.mode].two_sided else 1 for c in contrasts[number]
        ]
        is_new = np.repeat([1.0, 0.0], sides)
        factors = np.repeat([1.0 / n for n in sides], sides)
        share, error, inside, outside = _by_name(
            np.concatenate([one.items for one in every]),
            np.concatenate([one.of_items for one in every], axis=-1),
        )
        (dyads,) = _by_name(
            np.concatenate([one.dyads for one in every]),
            np.concatenate([one.of_dyads for one in every], axis=-1)[None],
        )
        squares = [squares_of(is_new, error), squares_of(is_new, divide_by_rest(error, share))]
        whole = [square(factors @ inside), square(factors @ outside), float(share.shape[1])]
        parts_of = [_of_parts(inside), _of_parts(outside)]
        found[number] = np.concatenate([*squares, squares_of(is_new, dyads), whole, *parts_of])
    return found


def _by_name(names: Masks, values: Floats) -> Floats:
    """Add up values (…, part, row) over rows with one name."""
    code, known = _number(names)
    found = np.zeros((*values.shape[:-1], len(known)))
    for at in np.ndindex(values.shape[:-1]):
        found[at] = np.bincount(code, values[at], minlength=len(known))
    return found


# ---- from sums to results


def _join(
    contrast: Contrast,
    both: tuple[_Whole, _Whole],
    within: Floats,
    of_items: Floats,
    *,
    by_item: bool,
) -> Stacked:
    if not _estimable(both):
        return no_stack(both[0].value, both[1].value, has_items=by_item)
    n_parts = sum(len(whole.scale) for whole in both)
    squares = {kind: within[2 * k : 2 * k + 2] for k, kind in enumerate(_KINDS)}
    at = 2 * len(_KINDS)
    cr3 = {"query": within[at : at + 2]}
    counts, clusters, shared, recurring = within[at + 2 : at + 6]
    variance, of_query = within[at + 6 :].reshape(2, _MOST_PARTS)[:, :n_parts]
    effective, few, shares_items = np.nan, np.full(n_parts, np.nan), False
    if by_item:
        squares |= {"item": of_items[0:2], "dyad": of_items[4:6]}
        cr3["item"] = of_items[2:4]
        # The counts of both estimates add up to 2.
        effective = float(4.0 / of_items[6:8].max())
        few = 1.0 / of_items[9:].reshape(2, _MOST_PARTS)[:, :n_parts].max(axis=0)
        shares_items = bool(recurring > of_items[8])
    else:
        squares = {kind: squares[kind] for kind in ("naive", "query")}
    return Stacked(
        new=both[0].value,
        old=both[1].value,
        pairs=sum(whole.pairs for whole in both),
        clusters=int(clusters),
        squares=squares,
        cr3=cr3,
        counts=float(counts),
        item_effective=effective,
        part_variance=variance,
        part_queries=1.0 / of_query,
        part_items=few,
        shared_items=shares_items,
        shared_pairs=float(shared),
    )
