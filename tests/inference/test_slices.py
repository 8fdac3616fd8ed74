"""Segments and positions: the audit's own clustering, against double loops, and Holm over all."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

import mpc_lab as mpc
from helpers import oracle
from helpers.params import combined
from mpc_lab.inference.slices import by_segment
from simulated import shared_catalogue
from slice_coverage import DESIGNS, held

FAMILIES = ("union", "query", "item")


def small_log(seed, n_queries=18):
    """Return a log of a small catalogue that is full of ties, and the segment of each row."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), 6)
    item = np.concatenate([rng.permutation(14)[:6] for _ in range(n_queries)])
    groups = [frozenset(["g"] if label % 3 == 0 else ["h"]) for label in item.tolist()]
    log = oracle.Log(
        query=query.tolist(),
        score=(rng.integers(0, 5, len(query)) / 8).tolist(),
        outcome=rng.integers(0, 6, len(query)).tolist(),
        groups=groups,
        item=item.tolist(),
    )
    return log, [f"s{label % 3}" for label in query.tolist()]


def ranking_of(log, segment):
    columns = {"query": log.query, "score": log.score, "outcome": log.outcome, "item": log.item}
    columns |= {"group": [min(names) for names in log.groups], "segment": segment}
    return mpc.Ranking(columns, **{name: name for name in columns})


def pairs_of(log, segment, name, epsilon=0.25, mode="matched"):
    return [p for p in oracle.pairs(log, "g", mode, epsilon) if segment[p[0]] == name]


@pytest.mark.parametrize(
    ("seed", "cluster", "mode"), combined(range(4), ["naive", *FAMILIES], oracle.MODES)
)
def test_the_gap_of_a_segment_equals_a_double_loop(seed, cluster, mode):
    log, segment = small_log(seed)
    found = by_segment(ranking_of(log, segment), "g", 0.25, mode=mode, cluster=cluster)
    for k, name in enumerate(found.segments):
        sums = oracle.sums_of_part(log, pairs_of(log, segment, name, mode=mode))
        cell = oracle.cell(sums, cluster, correction="plain")
        assert found.n_pairs[k] == cell.n_pairs
        for number in ("estimate", "std_error", "ci_low", "p_value", "dof"):
            ours = getattr(found.estimates, number)[k]
            assert ours == pytest.approx(getattr(cell, number), rel=1e-9, nan_ok=True)


def stacked_variances(log, one, other):
    """Return the raw variance of the difference of two mean gaps, by each family."""
    kept, z = [], []
    for pairs, sign in ((one, 1), (other, -1)):
        d = np.array([log.outcome[i] - log.outcome[j] for i, j in pairs], dtype=float)
        z += (sign * (d - d.mean()) / len(d)).tolist()
        kept += pairs
    z, item = np.array(z), oracle.share_item(log, kept)
    query = oracle.same([log.query[i] for i, _ in kept])
    related = {"query": query, "item": item, "union": query | item}
    return {name: float(z @ table @ z) for name, table in related.items()}


@pytest.mark.parametrize("seed", range(6))
def test_segments_are_compared_by_what_they_share(seed):
    log, segment = small_log(seed)
    segment = [{"s0": "a", "s1": "b", "s2": "b"}[name] for name in segment]
    found = by_segment(ranking_of(log, segment), "g", 0.25, cluster="union")
    parts = [pairs_of(log, segment, name) for name in ("a", "b")]
    raw = stacked_variances(log, *parts)
    cells = [oracle.sums_of_part(log, part) for part in parts]
    g = [float(cell.size["union"]) for cell in cells]
    if min(g) < 3:
        assert math.isnan(found.statistic)
        return
    # The correction of a segment's own variance goes with its part of the difference.
    a, b = (math.sqrt(size / (size - 1)) for size in g)
    variances = []
    for name in FAMILIES:
        own, others = (float(cell.raw[name]) for cell in cells)
        shared = raw[name] - own - others
        variances.append(a**2 * own + b**2 * others + a * b * shared)
    difference = float(cells[0].estimate - cells[1].estimate)
    expected = min(difference**2 / value for value in variances if value > 0)
    assert found.statistic == pytest.approx(expected, rel=1e-9)
    assert found.dof == (1.0, pytest.approx(min(g) - 1))


@pytest.fixture(scope="module")
def audit():
    ranking = shared_catalogue(np.random.default_rng(3), item_sd=0.5, segments=3)
    frame = ranking.to_frame().assign(small=lambda rows: rows["item"] % 7 == 0)
    columns = {name: name for name in ("query", "item", "score", "outcome", "segment")}
    return mpc.audit(frame, **columns, group=["g", "small"], threshold=0.05, progress=False)


def test_segments_are_adjusted_over_all_groups_and_segments(audit):
    found = audit.by_segment()
    expected = multipletests(found.p_value.values.ravel(), method="holm")[1]
    np.testing.assert_allclose(found.p_adjusted.values.ravel(), expected, rtol=1e-12)
    assert found.attrs["family"] == 6
    assert found.attrs["cluster"] == "union"
    outside = (found.ci_low_adjusted > 0) | (found.ci_high_adjusted < 0) | found.ci_cut
    assert (outside == (found.p_adjusted <= 0.05)).all()
    assert (found.ci_high_adjusted - found.ci_low_adjusted > found.ci_high - found.ci_low).all()


def test_positions_are_adjusted_over_those_of_all_groups(audit):
    found = {group: audit.by_position(group) for group in audit.groups}
    every = np.concatenate([one.p_value.values for one in found.values()])
    known = np.isfinite(every)
    expected = np.full(len(every), np.nan)
    expected[known] = multipletests(every[known], method="holm")[1]
    ours = np.concatenate([one.p_adjusted.values for one in found.values()])
    np.testing.assert_allclose(ours, expected, rtol=1e-12)
    assert {one.attrs["family"] for one in found.values()} == {int(known.sum())}


def test_one_segment_is_the_headline(audit):
    ranking = shared_catalogue(np.random.default_rng(4), item_sd=0.5)
    # Segments take the plain correction.
    whole = mpc.audit(ranking, threshold=0.05, correction="plain", progress=False)
    cell, segment = whole.headline.squeeze(), whole.by_segment().squeeze()
    for name in ("estimate", "std_error", "ci_low", "p_value", "dof", "n_effective"):
        assert segment[name].item() == pytest.approx(cell[name].item(), rel=1e-9), name


@pytest.mark.long
def test_intervals_of_segments_and_positions_cover_under_item_shocks():
    found = np.array([held(DESIGNS["item shocks"], 7000 + seed) for seed in range(50)], dtype=float)
    covers, by_query, any_cell, disagree = found.mean(axis=0).T
    assert (covers >= 0.95 - 4 * found[:, :, 0].std(axis=0) / np.sqrt(50)).all()
    assert by_query[0] <= 0.9 < covers[0]
    assert (np.array([*any_cell, disagree[0]]) <= 0.05 + 4 * np.sqrt(0.0475 / 50)).all()
