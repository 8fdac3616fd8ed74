"""The rule ``calibrated`` on a cluster: rows are exchanged by ranges of scores."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_lab.engines.fits import levels
from mpc_lab.engines.parts import Part
from mpc_lab.pairing.arrays import Floats
from mpc_lab.scoring.calibrated import Pool, Steps

if TYPE_CHECKING:
    from mpc_lab.engines.cluster import Cluster

_BUCKETS = 32
_PROBES = 256


def fits_of_all(cluster: Cluster, n_groups: int) -> list[tuple[Steps, Steps]]:
    """Fit the outcome on the score inside and outside every group."""
    probes = np.sort(np.concatenate(cluster.collect(_probe, "reading scores")))
    places = np.linspace(0, len(probes), _BUCKETS + 1)[1:-1].astype(np.int64)
    cuts = np.unique(probes[np.minimum(places, len(probes) - 1)])
    found = cluster.exchange(
        partial(_split, cuts), partial(_pooled, n_groups), len(cuts) + 1, "calibrating"
    )
    fits = []
    for group in range(n_groups):
        inside, outside = Pool(), Pool()
        for blocks in found:  # in the order of scores
            inside.add(*blocks[group][0])
            outside.add(*blocks[group][1])
        fits.append((inside.steps(), outside.steps()))
    return fits


def _probe(part: Part) -> Floats:
    score = part.log.score
    return np.quantile(score, np.linspace(0, 1, _PROBES)) if len(score) else score


def _split(cuts: Floats, part: Part) -> list[Any]:
    """Return the rows of each range of scores; a score that is a cut lies above it."""
    bucket = np.searchsorted(cuts, part.log.score, side="right")
    chunks = []
    for k in range(len(cuts) + 1):
        here = bucket == k
        chunks.append((part.log.score[here], part.log.outcome[here], part.log.masks[:, here]))
    return chunks


def _pooled(n_groups: int, chunks: list[Any]) -> list[Any]:
    score, outcome, masks = (np.concatenate(parts, axis=-1) for parts in zip(*chunks, strict=True))
    order = np.argsort(score, kind="stable")
    score, outcome, masks = score[order], outcome[order], masks[:, order]
    found = []
    for group in range(n_groups):
        member = masks[group // 64] & (np.uint64(1) << np.uint64(group % 64)) != 0
        sides = []
        for here in (member, ~member):
            pool = Pool()
            pool.add(*levels(score, outcome, here))
            sides.append((pool.start, pool.total, pool.weight))
        found.append(sides)
    return found
