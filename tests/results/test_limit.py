import copy

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.datasets import synthetic
from mpc_lab.errors import MpcError
from mpc_lab.inference.bandwidth import choose_bandwidth
from mpc_lab.inference.limit import limit as limit_of_pairs
from mpc_lab.pairing.pairs import list_pairs
from mpc_lab.ranking import Ranking
from mpc_lab.results.questions.limit import limit


@pytest.fixture(scope="module")
def ranking():
    return synthetic(queries=4000, seed=1)


@pytest.fixture(scope="module")
def audit(ranking):
    return quick_audit(ranking)


def quick_audit(ranking, cluster="query"):
    return mpc.audit(ranking, threshold=0.01, epsilon=[0.1], cluster=cluster, progress=False)


def rows(query, score, group):
    y = np.random.default_rng(0).random(len(query))
    table = {"q": query, "s": score, "y": y, "g": group}
    return Ranking(table, query="q", score="s", outcome="y", group="g")


def test_the_labelled_limit_is_that_of_the_listed_pairs(audit, ranking):
    found = limit(audit, "1", bandwidth=0.2)
    listed = list_pairs(ranking, "1", None, "matched", 0.2)
    plain = limit_of_pairs(
        listed["distance"], listed["d"], ranking.query_code[listed["row_i"]], bandwidth=0.2
    )
    for name in ("estimate", "std_error", "ci_low", "ci_high", "dof", "tie_share"):
        assert found[name].item() == pytest.approx(getattr(plain, name), rel=1e-10)
    assert found.method.item() == "local quadratic"
    assert found.attrs["bandwidth_from"] == "given"


def test_the_bandwidth_is_chosen_from_matched_pairs_for_both_directions(audit, ranking):
    found = limit(audit, "1", pairing_mode=["matched", "mirrored"])
    listed = list_pairs(ranking, "1", None, "matched", np.inf)
    chosen = choose_bandwidth(
        listed["distance"], listed["d"], ranking.query_code[listed["row_i"]]
    ).value
    np.testing.assert_allclose(found.bandwidth, chosen)
    assert found.estimate.dims == ("pairing_mode",)


def test_both_directions_close_on_one_value():
    audit = quick_audit(synthetic(queries=20_000, seed=1))
    found = limit(audit, "1", pairing_mode=["matched", "mirrored"])
    wide = [
        list_pairs(audit.ranking, "1", None, m, 0.2)["d"].mean() for m in ("matched", "mirrored")
    ]
    matched, mirrored = found.estimate.values
    assert abs(matched - mirrored) < 4 * np.hypot(*found.std_error.values)
    assert wide[1] - wide[0] > 5 * abs(matched - mirrored)


def test_the_density_counts_the_pairs_inside_the_bandwidth(audit, ranking):
    found = limit(audit, "1", bandwidth=0.2)
    assert found.distance_count.sum() == found.n_pairs
    # of two uniform scores, the distance has the density 2 (1 − Δ)
    assert found.density_at_zero.item() == pytest.approx(2.0, abs=0.1)
    assert found.distance.values[[0, -1]] == pytest.approx([0.005, 0.195])


def test_one_mode_gives_numbers_and_labels_without_a_dim(audit):
    found = limit(audit, "2", pairing_mode="mirrored", bandwidth=0.1)
    assert found.estimate.shape == ()
    assert found.pairing_mode.item() == "mirrored"
    assert found.group.item() == "2"
    assert found.n_pairs.dtype == np.int64


def test_items_that_stand_alone_leave_the_query_variance(ranking):
    union, query = (
        limit(quick_audit(ranking, cluster), "1", bandwidth=0.2) for cluster in ("auto", "query")
    )
    assert union.attrs["cluster"] == "union"
    assert union.std_error.item() == pytest.approx(query.std_error.item(), rel=0.02)


def test_neighbours_have_a_limit_too(audit):
    found = limit(audit, "1", pairing_mode="adjacent", bandwidth=0.2)
    assert 0 < found.n_pairs.item() < limit(audit, "1", bandwidth=0.2).n_pairs.item() * 2


def test_nothing_but_ties_is_said_so():
    query = np.repeat(np.arange(200), 4)
    audit = quick_audit(rows(query, 0.0 * query, np.tile(["g", "", "", ""], 200)))
    found = limit(audit, "g")
    assert found.method.item() == "mean over ties"
    assert found.bandwidth.item() == 0
    assert found.tie_share.item() == 1
    assert found.estimate.item() == pytest.approx(audit.pairs("g", epsilon=0).difference.mean())


def test_a_group_without_pairs_is_not_estimable():
    found = limit(quick_audit(rows(np.arange(6), np.arange(6.0), list("ababab"))), "a")
    assert found.method.item() == "not estimable"
    assert found.n_pairs.item() == 0
    assert np.isnan(found.estimate.item())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("3",), "no group '3'"),
        (("1", "boosted"), "no scoring rule 'boosted'"),
        (("1", "baseline", "near"), "no pairing mode 'near'"),
        (("1", "baseline", []), "pairing_mode must name at least one mode"),
        (("1", "baseline", "matched", -1), "bandwidth must be a finite number"),
        (("1", "baseline", "matched", "wide"), "bandwidth must be .* got 'wide'"),
    ],
)
def test_what_cannot_be_asked_is_said(audit, arguments, message):
    with pytest.raises(MpcError, match=message):
        limit(audit, *arguments)


def test_without_rows_it_says_how_to_give_them(audit):
    bare = copy.copy(audit)
    bare.ranking = None
    with pytest.raises(MpcError, match=r"audit\.limit\(\) must have the rows"):
        limit(bare, "1")
