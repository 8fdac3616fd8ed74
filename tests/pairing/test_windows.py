"""Long lists are swept by windows: the same sums as of pairs visited one by one."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpc_lab as mpc
from helpers import oracle
from helpers.pairing_logs import small_ranking
from helpers.params import combined
from helpers.strategies import GRID, STEP, calmly, logs, ranking_of
from mpc_lab.engines.memory import MemorySource
from mpc_lab.pairing import items as sums_over_items
from mpc_lab.pairing import long_lists, sweep
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.measure import measure, weigh_curve
from mpc_lab.pairing.pairs import pair_rows, sums_by_unit
from mpc_lab.scoring import Baseline
from mpc_lab.vocabulary import MATCHED, MIRRORED, MODES

EDGES = [-1.0, 0.0, 2.5 * STEP, 7 * STEP, 1.0]
calm = calmly(50)


@contextmanager
def swept_by(way, *, pairs_at_once=1 << 22):
    """Visit every pair, or none, or only those of lists with few pairs."""
    cost, least = {"pairs": (0.0, 1 << 62), "windows": (np.inf, 0), "both": (np.inf, 6)}[way]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "PAIR_COST", cost)
        patch.setattr(long_lists, "LEAST_PAIRS", least)
        patch.setattr(long_lists, "PAIRS_PER_STEP", 0)
        patch.setattr(sums_over_items, "PAIRS_AT_ONCE", pairs_at_once)
        yield


def moments_of(ranking, way, *, items=False, edges=EDGES, **options):
    source = MemorySource(ranking, ranking.groups)
    grid = np.tile(edges, (len(ranking.groups), 1))
    with swept_by(way, **options):
        return measure(source, Baseline(), grid, modes=tuple(MODES.values()), items=items)


def assert_same(one, other, *families):
    for name in ("pairs", "queries", "clusters", "items"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for family in families:
        for square in ("cc", "cu", "uu"):
            ours, theirs = (getattr(m.by[family], square) for m in (one, other))
            np.testing.assert_allclose(
                ours, theirs, rtol=1e-10, atol=1e-10, err_msg=f"{family} {square}"
            )
    for side in one.squares:
        np.testing.assert_array_equal(one.squares[side], other.squares[side], err_msg=side)


@calm
@given(logs(outcomes="awkward"))
def test_windows_and_pairs_have_the_same_sums(log):
    ranking = ranking_of(log)
    assert_same(moments_of(ranking, "pairs"), moments_of(ranking, "windows"), "naive", "query")


@calm
@given(logs(outcomes="awkward"))
def test_neighbours_alone_have_the_sums_that_they_have_beside_other_modes(log):
    ranking = ranking_of(log)
    source = MemorySource(ranking, ranking.groups)
    grid = np.tile(EDGES, (len(ranking.groups), 1))
    with swept_by("windows"):
        every = measure(source, Baseline(), grid, modes=tuple(MODES.values()), items=False)
        alone = measure(source, Baseline(), grid, modes=(MODES["adjacent"],), items=False)
    place = list(MODES).index("adjacent")
    for name in ("pairs", "queries", "clusters"):
        np.testing.assert_array_equal(getattr(alone, name)[0], getattr(every, name)[place])
    ours, theirs = (m.by["query"].uu[k] for m, k in ((alone, 0), (every, place)))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@calm
@given(logs(), st.sampled_from(["windows", "both"]), st.sampled_from([1 << 22, 5]))
def test_windows_and_pairs_have_the_same_sums_over_items(log, way, pairs_at_once):
    ranking = ranking_of(log)
    one = moments_of(ranking, "pairs", items=True)
    other = moments_of(ranking, way, items=True, pairs_at_once=pairs_at_once)
    assert_same(one, other, "naive", "query", "item", "item_query")
    assert not one.dyads_once


@calm
@given(logs())
def test_the_oracle_agrees_with_windows(log):
    with swept_by("windows"):
        audit = mpc.audit(
            ranking_of(log, item=False),
            pairing_modes=oracle.MODES,
            threshold=mpc.Quantile(0.3),
            epsilon=GRID,
            adjust="none",
            progress=False,
        )
    for group in log.names:
        epsilon = oracle.threshold(log, group, ("quantile", 0.3))
        for mode in oracle.MODES:
            sums = oracle.sums(log, oracle.pairs(log, group, mode, epsilon))
            wanted = oracle.cell(sums, "query")
            found = audit.headline.sel(group=group, pairing_mode=mode).squeeze()
            assert found.n_pairs == wanted.n_pairs
            assert found.n_queries == wanted.n_queries
            np.testing.assert_allclose(
                [found.estimate, found.std_error],
                [wanted.estimate, wanted.std_error],
                rtol=1e-10,
                atol=1e-10,
            )


def test_where_no_item_recurs_dyads_are_exact_and_nothing_is_flagged():
    ranking = unique_items(small_ranking())
    one, other = (moments_of(ranking, way, items=True) for way in ("pairs", "windows"))
    assert not other.dyads_once
    assert_same(one, other, *one.by)


def unique_items(ranking):
    frame = {
        "query": ranking.query_code,
        "item": np.arange(ranking.n_rows),
        "score": ranking.score,
        "outcome": ranking.outcome,
        **{group: ranking.member(group) for group in ranking.groups},
    }
    names = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
    return mpc.Ranking(frame, **names, group=list(ranking.groups))


def test_where_items_recur_dyads_are_taken_once_and_it_is_said():
    ranking = small_ranking()
    found = moments_of(ranking, "windows", items=True)
    assert found.dyads_once
    for square in ("cc", "cu", "uu"):
        once = getattr(found.by["naive"], square)[:2]
        np.testing.assert_allclose(getattr(found.by["dyad"], square)[:2], once, rtol=1e-12)
    with swept_by("windows"):
        audit = mpc.audit(ranking, threshold=0.03, progress=False)
        assert audit.attrs["dyads_once"] == audit.curve.attrs["dyads_once"] == 1
    assert "two items that meet more than once there count as separate" in audit.summary()
    ordinary = mpc.audit(ranking, threshold=0.03, progress=False)
    assert ordinary.attrs["dyads_once"] == 0
    assert "count as separate pairs" not in ordinary.summary()


def test_how_thresholds_move_together_is_the_same():
    source = MemorySource(ranking := small_ranking(), ranking.groups)
    found = []
    for way in ("pairs", "windows"):
        with swept_by(way):
            grid = np.tile(EDGES, (3, 1))
            how = {"modes": (MATCHED, MIRRORED), "items": False}
            moments = measure(source, Baseline(), grid, **how)
            weighed, ((_, cross),) = weigh_curve(source, Baseline(), moments)
            found.append((cross, weighed))
    for square in ("cc", "cu", "uu"):
        np.testing.assert_array_equal(*(getattr(cross, square) for cross, _ in found))
    np.testing.assert_allclose(*(own.cr3["query"] for _, own in found), rtol=1e-12)
    for part in ("powers", "heavy"):
        np.testing.assert_allclose(*(getattr(own.series, part) for _, own in found), rtol=1e-12)


def test_units_of_several_queries_are_one_cluster():
    ranking = small_ranking()
    frame = {"unit": ranking.query_code // 3}
    names = ("query", "score", "outcome", "item")
    frame |= {
        "query": ranking.query_code,
        "score": ranking.score,
        "outcome": ranking.outcome,
        "item": ranking.item_code,
    }
    frame |= {group: ranking.member(group) for group in ranking.groups}
    ranking = mpc.Ranking(
        frame, unit="unit", **{name: name for name in names}, group=list(ranking.groups)
    )
    one, other = (moments_of(ranking, way, items=True) for way in ("pairs", "both"))
    assert_same(one, other, "naive", "query", "item", "item_query")


def test_a_long_list_is_swept_by_windows_and_a_short_one_is_not():
    rng = np.random.default_rng(0)
    for size, wanted in ((100, False), (20_000, True)):
        score = np.sort(rng.normal(size=size))
        mask = rng.integers(0, 8, size).astype(np.uint64)
        steps = 2 * 3 * 15
        starts, long = np.array([0, size]), np.zeros(1, dtype=bool)
        sweep.find_long(starts, score, mask, 0.2, steps, sweep.PAIR_COST, 0, 1, long)
        assert long[0] == wanted


@pytest.mark.parametrize(("levels", "mode"), combined([1, 64, 5000], MODES))
def test_sums_by_unit_are_those_of_listed_pairs(mode, levels):
    ranking = small_ranking(levels=levels)
    log = sort_rows(ranking)
    member = ranking.member("g1")[log.row]
    side = MODES[mode].side
    i, j = pair_rows(log, member, side, 0.01)
    query = ranking.query_code[log.row][i]
    pairs, sums = sums_by_unit(log, member, side, 0.01)
    np.testing.assert_array_equal(pairs, np.bincount(query, minlength=40))
    d = log.outcome[i] - log.outcome[j]
    np.testing.assert_array_equal(sums, np.bincount(query, d, minlength=40))


def test_a_large_number_in_all_outcomes_does_not_drown_what_they_differ_by():
    rng = np.random.default_rng(1)
    columns = {"outcome": 2.0**40 + rng.integers(0, 4, 480)}
    plain = {"outcome": columns["outcome"] - 2.0**40}
    one, other = (
        moments_of(small_ranking(**outcome), "windows", items=True) for outcome in (columns, plain)
    )
    for family in one.by:
        for square in ("cc", "cu", "uu"):
            ours, theirs = (getattr(m.by[family], square) for m in (one, other))
            np.testing.assert_array_equal(ours, theirs)


def test_more_pairs_than_can_be_listed_are_refused(monkeypatch):
    monkeypatch.setattr("mpc_lab.pairing.pairs.MOST_LISTED", 20)
    ranking = small_ranking()
    log = sort_rows(ranking)
    with pytest.raises(
        mpc.MpcError, match=r"at most 20 pairs to list; got \d+ with a distance of at most 1\."
    ):
        pair_rows(log, ranking.member("g1")[log.row], MATCHED.side, 1.0)


def test_item_tables_of_more_pairs_than_can_be_kept_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("mpc_lab.results.pooling.MOST_KEPT", 20)
    audit = mpc.audit(small_ranking(), threshold=0.03, progress=False)
    with pytest.raises(mpc.MpcError, match=r"at most 20 pairs of items of a group; got"):
        audit.save(tmp_path / "audit.nc", items=True)
    assert not list(tmp_path.iterdir())
