import copy

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.datasets import synthetic
from mpc_lab.errors import MpcError
from mpc_lab.ranking import Ranking
from mpc_lab.results.questions.balance import balance


@pytest.fixture(scope="module")
def audit():
    return mpc.audit(synthetic(queries=1000, seed=1), threshold=0.2, epsilon=[0.1], progress=False)


def test_position_inside_pairs_is_that_of_the_listed_pairs(audit):
    found = balance(audit, group="1", permutations=0)
    pairs = audit.pairs("1", epsilon=0.2)
    scale = np.sqrt(np.mean([(10**2 - 1) / 12] * 2))
    expected = (pairs.position - pairs.other_position).mean()
    assert found.difference.sel(covariate="position").item() * scale == pytest.approx(
        expected, rel=0.05
    )
    assert found.n_pairs.item() == len(pairs)


def test_matching_on_the_score_balances_the_score(audit):
    values = {"far": audit.ranking.score + audit.ranking.member("1")}
    found = balance(audit, values, group="1", permutations=0)
    far = found.sel(covariate="far")
    assert far.difference_before.item() > 3
    assert far.ci_low.item() < far.difference.item() < far.ci_high.item()


def test_what_is_the_same_in_a_query_is_the_same_in_its_pairs(audit):
    found = balance(audit, ["query_type", "outcome"], permutations=0)
    names = ["position", "query_type=u", "query_type=v", "outcome"]
    assert found.covariate.values.tolist() == names
    assert (found.difference.sel(covariate="query_type=u") == 0).all()
    assert (np.abs(found.difference_before.sel(covariate="query_type=u")) > 0.5).all()


def test_items_that_stand_alone_are_used_as_often_as_they_have_partners(audit):
    found = balance(audit, group="1", permutations=0)
    pairs = audit.pairs("1", epsilon=0.2)
    counts = pairs.item.value_counts()
    assert found.most_pairs_of_an_item.sel(side="group").item() == counts.max()
    assert found.mean_pairs_of_an_item.sel(side="group").item() == pytest.approx(counts.mean())
    assert found.n_items.sel(side="others").item() == pairs.other_item.nunique()


def test_placebos_centre_on_0_and_the_group_does_not(audit):
    found = balance(audit, group="1", permutations=100).sel(group="1")
    spread = found.placebo_estimate.std().item()
    assert found.placebo_by.item() == "item"
    # Every item is shown once, so that there is one stratum.
    assert found.placebo_expected.item() == 0
    assert abs(found.placebo_estimate.mean().item()) < 4 * spread / 10
    assert found.placebo_rejected.item() < 0.15
    assert found.placebo_rejected_low <= found.placebo_rejected <= found.placebo_rejected_high
    assert found.placebo_observed.item() > 2 * spread
    assert found.placebo_observed_p_value.item() < 0.05


def test_no_permutations_leave_the_placebo_out(audit):
    assert not [name for name in balance(audit, permutations=0) if "placebo" in str(name)]


def test_a_group_without_pairs_is_kept_and_empty():
    table = {"q": np.arange(300) // 3, "s": np.arange(300) % 3, "y": np.arange(300) % 7}
    table["g"] = np.where(np.arange(300) < 3, "alone", np.where(np.arange(300) % 3, "", "low"))
    ranking = Ranking(table, query="q", score="s", outcome="y", group="g")
    found = balance(mpc.audit(ranking, progress=False), permutations=2)
    assert found.n_pairs.sel(group="alone").item() == 0
    assert np.isnan(found.difference.sel(group="alone")).all()
    assert found.n_pairs.sel(group="low").item() > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"covariates": {"x": [1.0, 2.0]}}, r"one value for each of 10,000 rows; .* \(2,\)"),
        ({"covariates": {"x": np.full(10_000, np.nan)}}, "finite in every row; got 10,000"),
        ({"covariates": {"x": np.arange(10_000).astype(str)}}, "different texts; got 10,000"),
        ({"covariates": "outcom"}, "Did you mean 'outcome'"),
        ({"group": "3"}, "no group '3'"),
        ({"permutations": -1}, "permutations must be a whole number from 0 to 100,000; got -1"),
        ({"epsilon": -1.0}, "epsilon must be a number of at least 0; got -1.0"),
    ],
)
def test_what_cannot_be_compared_is_said(audit, options, message):
    with pytest.raises(MpcError, match=message):
        balance(audit, **options)


def test_without_rows_it_says_how_to_give_them(audit):
    bare = copy.copy(audit)
    bare.ranking = None
    with pytest.raises(MpcError, match=r"audit\.balance\(\) must have the rows"):
        balance(bare)
