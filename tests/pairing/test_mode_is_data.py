"""A pairing mode is a record: one that this file alone defines runs through everything.

What it should give is worked out here by double loops over the definition of the mode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import pytest

import mpc_lab as mpc
from helpers.pairing_logs import small_ranking
from mpc_lab import vocabulary
from mpc_lab.pairing import items as sums_over_items
from mpc_lab.pairing import long_lists, sweep
from mpc_lab.results.assemble import headline_moments, infer
from mpc_lab.vocabulary import MODES, Mode, Side, register_mode

EPSILON = 0.01
GRID = [0.0, 0.004, EPSILON, 0.03]


@dataclass(frozen=True)
class Defined:
    """A mode, and by itself, in words of this test, which distances are in it."""

    mode: Mode
    holds: object


TIED = Defined(
    Mode(
        "tied",
        (Side(0.0, 0.0),),
        against="the items tied with them",
        those="those tied with them",
        method="the group's item has the score of the other",
        label="tied (equal scores)",
    ),
    lambda distance, epsilon: distance == 0,
)
BELOW = Defined(
    Mode("below", (Side(0.0, 1.0, low_closed=False),), against="the items above them"),
    lambda distance, epsilon: 0 < distance <= epsilon,
)
STRICT = Defined(
    Mode("strict", (Side(-2.0, 1.0, high_closed=False),), against="the items around them"),
    lambda distance, epsilon: -2 * epsilon <= distance < epsilon,
)
CLIMBING = Defined(
    Mode("climbing", (Side(0.0, 1.0, neighbours=True),), against="the next item"),
    lambda distance, epsilon: 0 <= distance <= epsilon,
)
EVERY = (TIED, BELOW, STRICT, CLIMBING)


@pytest.fixture(autouse=True)
def registered():
    for defined in EVERY:
        register_mode(defined.mode)
    yield
    for defined in EVERY:
        del MODES[defined.mode.name]


def pairs_by_loops(ranking, group, defined, epsilon):
    """Rows (i, j): an item of the group, another, in one query, at a distance the mode holds."""
    member = ranking.member(group)
    neighbours = defined.mode.side.neighbours
    found = []
    for query in range(ranking.n_queries):
        rows = np.flatnonzero(ranking.query_code == query)
        # The ranked list: descending score, a tie in the order of the rows.
        place = {row: k for k, row in enumerate(sorted(rows, key=lambda r: (-ranking.score[r], r)))}
        for i in rows[member[rows]]:
            for j in rows[~member[rows]]:
                if neighbours and abs(place[i] - place[j]) != 1:
                    continue
                if defined.holds(ranking.score[j] - ranking.score[i], epsilon):
                    found.append((i, j))
    return np.array(found, dtype=int).reshape(-1, 2)


def variances_by_loops(ranking, pairs):
    """The estimate, and its raw query and item variance by sums over pairs of pairs."""
    i, j = pairs.T
    d = ranking.outcome[i] - ranking.outcome[j]
    u = d - d.mean()
    query, items = ranking.query_code[i], ranking.item_code[pairs]
    shares_item = (items[:, None, :, None] == items[None, :, None, :]).any(axis=(2, 3))
    products = np.outer(u, u) / len(u) ** 2
    return d.mean(), products[query[:, None] == query].sum(), products[shares_item].sum()


@pytest.mark.parametrize("defined", EVERY, ids=lambda defined: defined.mode.name)
def test_headline_curve_pairs_and_summary_are_those_of_the_definition(defined):
    ranking = small_ranking(queries=30, size=8)
    name = defined.mode.name
    audit = mpc.audit(
        ranking, pairing_modes=[name], threshold=EPSILON, epsilon=GRID, progress=False
    )
    for group in ranking.groups:
        wanted = pairs_by_loops(ranking, group, defined, EPSILON)
        listed = audit.pairs(group, pairing_mode=name, limit=None)
        assert len(listed) == len(wanted) > 0
        sought = sorted(zip(*ranking.score[wanted].T, *ranking.outcome[wanted].T, strict=True))
        columns = ("score", "other_score", "outcome", "other_outcome")
        assert sorted(zip(*(listed[column] for column in columns), strict=True)) == sought
        estimate, by_query, by_item = variances_by_loops(ranking, wanted)
        cell = audit.headline.sel(group=group, pairing_mode=name, scoring_rule="baseline")
        assert cell.n_pairs == len(wanted)
        assert cell.n_items == len(np.unique(ranking.item_code[wanted]))
        np.testing.assert_allclose(cell.estimate, estimate, atol=1e-12)
        raw = infer(headline_moments(audit)[0], cluster="union", level=0.95).variance_by
        at = (headline_moments(audit)[0].mode_names.index(name), ranking.groups.index(group), 0)
        np.testing.assert_allclose(raw["query"][at], by_query, rtol=1e-10)
        np.testing.assert_allclose(raw["item"][at], by_item, rtol=1e-10)
        for epsilon in GRID:
            on_curve = audit.curve.sel(group=group, epsilon=epsilon, pairing_mode=name)
            assert on_curve.n_pairs == len(pairs_by_loops(ranking, group, defined, epsilon))
    assert f" than for {defined.mode.against} (" in audit.summary()
    assert f" {name} pairs" in audit.summary()


@pytest.mark.parametrize("defined", EVERY, ids=lambda defined: defined.mode.name)
def test_windows_for_long_lists_give_the_same(defined, monkeypatch):
    ranking = small_ranking(queries=12, size=25)
    options = {"pairing_modes": [defined.mode.name], "threshold": EPSILON, "epsilon": GRID}
    visited = mpc.audit(ranking, **options, cluster="query", progress=False)
    items = mpc.audit(unique(ranking), **options, progress=False)
    monkeypatch.setattr(sweep, "PAIR_COST", np.inf)
    monkeypatch.setattr(long_lists, "LEAST_PAIRS", 0)
    monkeypatch.setattr(long_lists, "PAIRS_PER_STEP", 0)
    monkeypatch.setattr(sums_over_items, "PAIRS_AT_ONCE", 7)
    for one, log, cluster in ((visited, ranking, "query"), (items, unique(ranking), "union")):
        other = mpc.audit(log, **options, cluster=cluster, progress=False)
        for name in ("n_pairs", "n_items", "estimate", "std_error"):
            for part in ("headline", "curve"):
                ours, theirs = (getattr(audit, part)[name] for audit in (one, other))
                np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def unique(ranking):
    """The same log with every item in one row, so that long lists see all there is to see."""
    names = ("query", "item", "score", "outcome")
    columns = (ranking.query_code, np.arange(ranking.n_rows), ranking.score, ranking.outcome)
    frame = dict(zip(names, columns, strict=True))
    frame |= {group: ranking.member(group) for group in ranking.groups}
    return mpc.Ranking(frame, **{name: name for name in names}, group=list(ranking.groups))


@pytest.mark.parametrize("defined", EVERY, ids=lambda defined: defined.mode.name)
def test_duckdb_bootstrap_saving_and_pooling_take_it(defined, tmp_path):
    ranking = small_ranking(queries=30, size=8)
    name = defined.mode.name
    frame = {"query": ranking.query_code, "item": ranking.item_code}
    frame |= {"score": ranking.score, "outcome": ranking.outcome}
    frame |= {group: ranking.member(group) for group in ranking.groups}
    import pandas as pd

    pd.DataFrame(frame).to_parquet(tmp_path / "log.parquet")
    options = {"pairing_modes": ["matched", name], "threshold": EPSILON, "epsilon": GRID}
    columns = {column: column for column in ("query", "item", "score", "outcome")}
    columns["group"] = list(ranking.groups)
    memory = mpc.audit(ranking, **options, progress=False)
    walked = mpc.audit(tmp_path / "log.parquet", memory="1GB", **options, **columns, progress=False)
    for part in ("headline", "curve"):
        for variable in ("n_pairs", "estimate", "std_error", "n_items"):
            ours, theirs = (getattr(audit, part)[variable] for audit in (memory, walked))
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    drawn = memory.bootstrap(31, seed=1).sel(pairing_mode=name)
    assert (drawn.percentile_low <= drawn.percentile_high).all()
    memory.save(tmp_path / "one.nc", items=True)
    back = mpc.load(tmp_path / "one.nc")
    with_rows = mpc.load(tmp_path / "one.nc", ranking=ranking)
    assert with_rows.summary() == memory.summary()
    other = mpc.audit(small_ranking(1, queries=30, size=8), **options, progress=False)
    pooled = mpc.pool([back, other]).headline.sel(pairing_mode=name)
    wanted = sum(audit.headline.n_pairs.sel(pairing_mode=name) for audit in (memory, other))
    np.testing.assert_array_equal(pooled.n_pairs, wanted)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_it_is_swept_by_the_kernel_that_sweeps_the_others():
    ranking = small_ranking()
    mpc.audit(ranking, threshold=EPSILON, progress=False)
    compiled = list(sweep.sweep.signatures)
    for defined in EVERY:
        mpc.audit(ranking, pairing_modes=[defined.mode.name], threshold=EPSILON, progress=False)
    assert sweep.sweep.signatures == compiled


def test_a_mode_must_hold_0_and_have_a_name_of_its_own():
    with pytest.raises(mpc.MpcError, match=r"must be finite and contain 0; got 0\.5 to 1\.0"):
        Side(0.5, 1.0)
    with pytest.raises(mpc.MpcError, match="must hold a distance"):
        Side(0.0, 0.0, low_closed=False)
    with pytest.raises(mpc.MpcError, match="must be new; got 'matched'"):
        register_mode(vocabulary.MATCHED)
    with pytest.raises(mpc.MpcError, match="must be built on modes that exist; got 'unheard of'"):
        register_mode(Mode("new", (Side(0.0, 1.0),), bracket="unheard of"))
