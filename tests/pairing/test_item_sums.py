import numpy as np
import pytest

from helpers.pairing_logs import small_ranking
from mpc_lab.engines.memory import MemorySource
from mpc_lab.pairing import items
from mpc_lab.pairing.item_sweep import can_sweep_items
from mpc_lab.pairing.items import rows_of_group, square_rows
from mpc_lab.pairing.kernels import stable_order
from mpc_lab.pairing.leverage import whole_of
from mpc_lab.pairing.log import rescore, sort_rows
from mpc_lab.pairing.measure import measure, put_item_sums
from mpc_lab.pairing.measure_sides import compare_sides
from mpc_lab.pairing.modes import rows_of
from mpc_lab.pairing.terms import ESTIMANDS, Terms
from mpc_lab.scoring import Baseline, Boosted, Calibrated
from mpc_lab.vocabulary import MODES

EDGES = np.tile([0.0, 0.01, 0.03], (3, 1))


def moments_of(ranking):
    source = MemorySource(ranking, ranking.groups)
    return measure(source, Baseline(), EDGES, modes=tuple(MODES.values()), items=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_a_walk_through_items_finds_what_listed_pairs_do(estimand, weighted, monkeypatch):
    """Also where a group is listed in shares; pairs of a query may count by their number."""
    weight = {"weight": np.repeat(np.random.default_rng(3).uniform(0.5, 4, 40), 12)}
    ranking = small_ranking(**(weight if weighted else {}))
    source = MemorySource(ranking, ranking.groups, terms=Terms(estimand=estimand))
    moments = measure(source, Baseline(), EDGES, modes=tuple(MODES.values()), items=False)
    ((_, walk),) = source.walks(Baseline())
    assert can_sweep_items(walk.log, moments)
    monkeypatch.setattr(items, "PAIRS_AT_ONCE", 50)
    walked = put_item_sums(moments, walk.item_sums(moments))
    listed = put_item_sums(moments, [items.sum_items(walk.log, g, moments) for g in range(3)])
    assert walked.items.min() > 0
    same_sums(walked, listed)
    for name in ("inside", "outside"):
        assert np.allclose(walked.squares[name], listed.squares[name], rtol=1e-12)


@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_walk_finds_what_listed_pairs_do_where_these_go_by_a_table(placed, estimand, weighted):
    """The mean of both sides inside cells of places, and the jump between the two."""
    rng = np.random.default_rng(3)
    columns = {"weight": np.repeat(rng.uniform(0.5, 4, 40), 12)} if weighted else {}
    if placed:
        columns["position"] = np.concatenate([rng.permutation(12) + 1 for _ in range(40)])
    ranking = small_ranking(**columns)
    source = MemorySource(ranking, ranking.groups, terms=Terms(estimand=estimand))
    modes = tuple(MODES[name] for name in ("matched", "mirrored", "symmetric"))
    own = measure(source, Baseline(), EDGES[:, 1:2], modes=modes, items=False)
    sides = compare_sides(source, Baseline(), own)
    ((_, walk),) = source.walks(Baseline())
    for moments in (sides.own, sides.place) if placed else (sides.place,):
        assert moments.table is not None
        assert can_sweep_items(walk.log, moments)
        walked = put_item_sums(moments, walk.item_sums(moments))
        listed = put_item_sums(moments, [items.sum_items(walk.log, g, moments) for g in range(3)])
        assert walked.items.min() > 0
        same_sums(walked, listed)


def same_sums(one, two):
    """Compare the sums over items of two moments."""
    close = {"rtol": 1e-12, "atol": 1e-13, "equal_nan": True}
    assert (one.items == two.items).all()
    for name in ("item", "dyad", "item_query", "dyad_query"):
        for ours, theirs in zip(
            vars(one.by[name]).values(), vars(two.by[name]).values(), strict=True
        ):
            assert np.allclose(ours, theirs, **close), name
        assert np.allclose(one.sides.by[name], two.sides.by[name], **close), name
    for name, squares in one.sides.squares.items():
        assert np.allclose(squares, two.sides.squares[name], **close), name
    assert np.allclose(one.cr3["item"], two.cr3["item"], **close)


def test_rows_squared_are_the_sums_over_items_and_dyads():
    ranking = small_ranking()
    moments = moments_of(ranking)
    rows = rows_of_group(sort_rows(ranking), 1, moments, 1)
    sum_rows = rows_of(moments.modes)
    by_mode = square_rows(rows, sum_rows, whole_of(moments, 1, sum_rows))
    for name, products in by_mode[moments.two_sided].sides.items():
        assert np.allclose(products, moments.sides.by[name][:, :, 1])
    for mode, found in enumerate(by_mode):
        assert (found.items == moments.items[mode, 1]).all()
        assert np.allclose(found.cr3, moments.cr3["item"][mode, 1], rtol=1e-12, equal_nan=True)
        if mode == moments.two_sided:
            continue
        assert np.allclose(found.inside, moments.squares["inside"][mode, 1])
        assert np.allclose(found.by["item"].uu, moments.by["item"].uu[mode, 1])
        assert np.allclose(found.by["dyad"].cu, moments.by["dyad"].cu[mode, 1])


def test_the_radix_order_is_the_stable_one():
    key = np.random.default_rng(0).integers(0, 1 << 40, 3000) // (1 << 33)
    assert (stable_order(key) == np.argsort(key, kind="stable")).all()
    assert len(stable_order(np.empty(0, dtype=np.int64))) == 0


@pytest.mark.parametrize("rule", [Boosted(0.005), Boosted(-3.0), Boosted(0.0), Calibrated()])
@pytest.mark.parametrize("logged", [False, True])
def test_merging_two_runs_gives_the_log_that_sorting_gives(rule, logged):
    columns = {"position": np.tile(np.arange(12, 0, -1), 40)} if logged else {}
    ranking = small_ranking(**columns)
    log = sort_rows(ranking)
    scores, member = rule.scores(ranking, "g1"), ranking.member("g1")
    merged = rescore(log, scores[log.row], member[log.row])
    fresh = sort_rows(ranking, scores, member.astype(np.uint64)[None])
    for name in ("score", "row", "below", "masks", "item", "tie"):
        assert np.array_equal(getattr(merged, name), getattr(fresh, name)), name
