import copy

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.datasets import synthetic
from mpc_lab.errors import MpcError
from mpc_lab.inference.certificate import certify
from mpc_lab.objective.ndcg import paired_change
from mpc_lab.pairing.pairs import list_pairs
from mpc_lab.results.questions import certificate as module
from mpc_lab.results.questions.certificate import certificate


@pytest.fixture(scope="module")
def ranking():
    return synthetic(queries=10_000, seed=1)


@pytest.fixture(scope="module")
def audit(ranking):
    return quick_audit(ranking)


@pytest.fixture(scope="module")
def found(audit):
    return certificate(audit, "1")


def quick_audit(ranking):
    return mpc.audit(ranking, threshold=0.01, epsilon=[0.1], cluster="query", progress=False)


def test_the_certificate_is_that_of_all_matched_pairs(found, ranking):
    listed = list_pairs(ranking, "1", None, "matched", np.inf)
    plain = certify(listed["distance"], listed["d"], ranking.query_code[listed["row_i"]])
    assert found.alpha == plain.alpha > 0
    assert found.mpc_epsilon == plain.mpc_epsilon > found.alpha
    np.testing.assert_allclose(found.bins.band_low, plain.bins.band_low, rtol=1e-9)
    np.testing.assert_array_equal(found.bins.distance_high[:-1], found.bins.distance_low[1:])


def test_the_change_is_measured_directly(found, ranking):
    boosted = ranking.score + found.alpha * ranking.member("1")
    change = paired_change(ranking, boosted).dcg
    assert found.change == change.estimate
    assert (found.change_low, found.change_high) == (change.ci_low, change.ci_high)


def test_the_sentence_says_what_was_assumed_and_measured(found):
    text = repr(found)
    assert text.startswith("If outcome differences depend on items only through the distance")
    assert f"a boost of up to {found.alpha:.4g} raises the expected objective" in text
    assert 0 <= found.assumption_p_value <= 1
    assert found.assumption_terms > 0
    fails = found.assumption_p_value < 0.05
    assert (
        f"at 95 % confidence. {'That assumption fails' if fails else 'A test finds no difference'}"
        in text
    )
    assert "(Wald test, p " in text
    assert f"the change is {found.change:+.4g} in DCG (95 % interval" in text


def test_no_certificate_says_which_bin_failed(audit):
    found = certificate(audit, "2")
    assert found.alpha == 0
    assert np.isnan([found.change, found.change_low]).all()
    assert "No boost of '2' is certified at 95 % confidence: the mean outcome" in found.sentence


def test_too_few_queries_are_said_so():
    found = certificate(quick_audit(synthetic(queries=20)), "1")
    assert "fewer than 30 effective queries" in found.sentence
    assert found.bins.sizes["bin"] == 0


def test_too_few_bins_are_said_so():
    found = certificate(quick_audit(synthetic(queries=45)), "1")
    assert 0 < found.bins.sizes["bin"] < 4
    assert found.alpha == 0
    assert not found.bins.certified.any()
    assert "its pairs fill only 1 bin of score distance with at least 30" in found.sentence
    assert "a certificate needs at least 4" in found.sentence


def test_more_pairs_than_are_listed_leave_the_nearest(audit, monkeypatch):
    monkeypatch.setattr(module, "LARGEST_LIST", 10_000)
    found = certificate(audit, "1")
    assert found.bins.n_pairs.sum() == 10_000
    assert found.bins.distance_high[-1] < 0.1


def test_without_rows_it_says_how_to_give_them(audit):
    bare = copy.copy(audit)
    bare.ranking = None
    with pytest.raises(MpcError, match=r"audit\.certificate\(\) must have the rows"):
        certificate(bare, "1")
