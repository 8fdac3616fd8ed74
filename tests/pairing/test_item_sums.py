import numpy as np
import pytest

from helpers.pairing_logs import small_ranking
from mpc_lab.engines.memory import MemorySource
from mpc_lab.pairing import items
from mpc_lab.pairing.items import rows_of_group, square_rows
from mpc_lab.pairing.kernels import stable_order
from mpc_lab.pairing.leverage import whole_of
from mpc_lab.pairing.log import rescore, sort_rows
from mpc_lab.pairing.measure import measure
from mpc_lab.pairing.modes import rows_of
from mpc_lab.scoring import Baseline, Boosted, Calibrated
from mpc_lab.vocabulary import MODES

EDGES = np.tile([0.0, 0.01, 0.03], (3, 1))


def moments_of(ranking):
    source = MemorySource(ranking, ranking.groups)
    return measure(source, Baseline(), EDGES, modes=tuple(MODES.values()), items=True)


def test_listing_in_shares_adds_up_to_the_same_sums(monkeypatch):
    ranking = small_ranking()
    whole = moments_of(ranking)
    monkeypatch.setattr(items, "PAIRS_AT_ONCE", 50)
    shared = moments_of(ranking)
    assert (whole.items == shared.items).all()
    for name in ("item", "dyad", "item_query", "dyad_query"):
        assert np.allclose(whole.by[name].cc, shared.by[name].cc, rtol=0, atol=0)
        assert np.allclose(whole.by[name].uu, shared.by[name].uu, rtol=1e-12)


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
