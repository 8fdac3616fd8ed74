"""The rule ``calibrated`` over a log in parts: its fits need rows in the order of their scores."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mpc_lab.engines.parts import Part, Parts, cut_tables, find_members
from mpc_lab.scoring.calibrated import Pool, Steps
from mpc_lab.vocabulary import Flags, Floats, Masks

_BUCKETS = 32
_PROBES = 256
_ROWS_AT_ONCE = 1 << 20

# For each group what is fitted inside and what outside it.
_Pools = list[tuple[Pool, Pool]]


class _Rows(NamedTuple):
    score: Floats
    outcome: Floats
    masks: Masks


def fit_sorted(batches: Iterable[Any], n_groups: int) -> list[tuple[Steps, Steps]]:
    """Fit the outcome on the score inside and outside every group, from sorted record batches.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Scores, ascending, outcomes, and the words of the masks.
    n_groups : int
    """
    pools = _make_pools(n_groups)
    for table in cut_tables(batches, ["score"], _ROWS_AT_ONCE):
        score, outcome, *words = (column.to_numpy() for column in table.columns)
        masks = np.array(words, dtype=np.uint64)
        _add_rows(pools, _Rows(score, outcome, masks))
    return [(inside.steps(), outside.steps()) for inside, outside in pools]


def fit_by_exchange(parts: Parts, n_groups: int) -> list[tuple[Steps, Steps]]:
    """Fit the outcome on the score inside and outside every group, by ranges of scores."""
    probes = np.sort(np.concatenate(list(parts.collect(_probe, "reading scores"))))
    places = np.linspace(0, len(probes), _BUCKETS + 1)[1:-1].astype(np.int64)
    cuts = np.unique(probes[np.minimum(places, len(probes) - 1)])
    found = parts.exchange(
        partial(_split, cuts), partial(_fit_range, n_groups), len(cuts) + 1, "calibrating"
    )
    pools = _make_pools(n_groups)
    for ranges in found:  # in the order of scores
        for sides, more in zip(pools, ranges, strict=True):
            for side, blocks in zip(sides, more, strict=True):
                side.add(blocks.start, blocks.total, blocks.weight)
    return [(inside.steps(), outside.steps()) for inside, outside in pools]


def _make_pools(n_groups: int) -> _Pools:
    return [(Pool(), Pool()) for _ in range(n_groups)]


def _add_rows(pools: _Pools, rows: _Rows) -> None:
    """Add rows whose scores ascend, and lie above all that were added."""
    for group, (inside, outside) in enumerate(pools):
        member = find_members(rows.masks, group)
        inside.add(*_sum_levels(rows, member))
        outside.add(*_sum_levels(rows, ~member))


def _sum_levels(rows: _Rows, here: Flags) -> tuple[Floats, Floats, Floats]:
    """Return the distinct scores of some rows, the sums of their outcomes, and how many they are.

    Scores must ascend.
    """
    score, outcome = rows.score[here], rows.outcome[here]
    first = np.flatnonzero(np.diff(score, prepend=np.nan) != 0)
    if not len(first):
        return np.empty(0), np.empty(0), np.empty(0)
    count = np.diff(first, append=len(score)).astype(np.float64)
    return score[first], np.add.reduceat(outcome, first), count


def _probe(part: Part) -> Floats:
    score = part.log.score
    return np.quantile(score, np.linspace(0, 1, _PROBES)) if len(score) else score


def _split(cuts: Floats, part: Part) -> list[_Rows]:
    """Return the rows of each range of scores; a score that is a cut lies above it."""
    log = part.log
    bucket = np.searchsorted(cuts, log.score, side="right")
    every = (bucket == k for k in range(len(cuts) + 1))
    return [_Rows(log.score[here], log.outcome[here], log.masks[:, here]) for here in every]


def _fit_range(n_groups: int, found: list[_Rows]) -> _Pools:
    score, outcome, masks = (np.concatenate(rows, axis=-1) for rows in zip(*found, strict=True))
    order = np.argsort(score, kind="stable")
    pools = _make_pools(n_groups)
    _add_rows(pools, _Rows(score[order], outcome[order], masks[:, order]))
    return pools
