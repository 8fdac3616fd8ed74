"""The rule ``calibrated`` over files: rows stream by in the order of scores, blocks are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mpc_lab.engines.duck_database import Database
from mpc_lab.engines.duck_rows import DuckRows
from mpc_lab.engines.fits import levels
from mpc_lab.pairing.arrays import Floats
from mpc_lab.scoring.calibrated import Pool, Steps

_ROWS_AT_ONCE = 1 << 20


def fits_of_all(database: Database, rows: DuckRows) -> list[tuple[Steps, Steps]]:
    """Fit the outcome on the score inside and outside every group, in one sort for all."""
    masks = ", ".join(rows.masks)
    question = f"SELECT score, outcome, {masks} FROM {rows.kept} ORDER BY score"
    pools = [(Pool(), Pool()) for _ in rows.spec.groups]
    with database.batches(question) as batches:
        for score, outcome, words in _whole_levels(batches):
            for group, (inside, outside) in enumerate(pools):
                bit = np.uint64(1) << np.uint64(group % 64)
                member = words[group // 64].astype(np.uint64) & bit != 0
                inside.add(*levels(score, outcome, member))
                outside.add(*levels(score, outcome, ~member))
    return [(inside.steps(), outside.steps()) for inside, outside in pools]


def _whole_levels(batches: Iterator[Any]) -> Iterator[tuple[Floats, Floats, list[Any]]]:
    """Yield rows in the order of scores, no score in two parts."""
    held: list[list[Any]] = []
    n_held = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append([column.to_numpy(zero_copy_only=False) for column in batch.columns])
        n_held += batch.num_rows
        if n_held < _ROWS_AT_ONCE:
            continue
        whole = [np.concatenate(parts) for parts in zip(*held, strict=True)]
        last = int(np.searchsorted(whole[0], whole[0][-1]))
        if last:
            yield whole[0][:last], whole[1][:last], [word[:last] for word in whole[2:]]
        held, n_held = [[column[last:].copy() for column in whole]], n_held - last
    if held:
        whole = [np.concatenate(parts) for parts in zip(*held, strict=True)]
        yield whole[0], whole[1], whole[2:]
