import numpy as np
import pytest

from mpc_lab.datasets import synthetic
from mpc_lab.errors import MpcError
from mpc_lab.inference.clustered import estimate_listed, pair_codes
from mpc_lab.inference.placebo import placebo
from mpc_lab.pairing.log import sort_rows
from mpc_lab.pairing.pairs import close_rows, list_pairs, shuffle_within


@pytest.fixture(scope="module")
def rows():
    ranking = synthetic(queries=400, seed=3)
    log = sort_rows(ranking)
    return ranking, log, ranking.member("1")[log.row], ranking.query_code[log.row]


def test_placebo_estimates_centre_on_0(rows):
    _, log, member, query = rows
    found = placebo(log, member, query, epsilon=0.3, permutations=300)
    error = found.estimate.std() / np.sqrt(300)
    assert abs(found.estimate.mean()) < 4 * error
    # so sharp a centre would not be seen in one order alone, where the mean is far below 0
    assert error < 0.002


def test_placebo_rejects_at_its_nominal_rate(rows):
    _, log, member, query = rows
    found = placebo(log, member, query, epsilon=0.1, permutations=400, level=0.9)
    assert found.n_estimable == 400
    assert found.rejected == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 400))


def test_the_group_itself_has_its_pairs_in_both_orders(rows):
    ranking, log, member, query = rows
    item = ranking.item_code[log.row] % 300
    found = placebo(log, member, query, epsilon=0.1, item=item, cluster="union", permutations=1)
    sides = [list_pairs(ranking, "1", None, mode, 0.1) for mode in ("matched", "mirrored")]
    row_i, d = (np.concatenate([side[name] for side in sides]) for name in ("row_i", "d"))
    expected = estimate_listed(d, 0.0, pair_codes(ranking.query_code[row_i]), cluster="query")
    assert found.observed == pytest.approx(expected.estimate)


def test_the_p_value_counts_the_group_among_the_permutations(rows):
    _, log, member, query = rows
    found = placebo(log, member, query, epsilon=0.1, permutations=30)
    beyond = (np.abs(found.estimate) >= abs(found.observed)).sum()
    assert found.observed_p_value == (1 + beyond) / 31


def test_random_signs_are_given_to_the_sums_of_queries(rows):
    _, log, member, query = rows
    found = placebo(log, member, query, epsilon=0.1, permutations=1, seed=2)
    dealing, _ = np.random.default_rng(2).spawn(2)
    shuffled = shuffle_within(log.starts, member, dealing)
    lower, upper = close_rows(log, 0.1)
    sign = shuffled[lower].astype(float) - shuffled[upper]
    d = sign * (log.outcome[lower] - log.outcome[upper])
    assert found.estimate[0] == pytest.approx(d[sign != 0].mean())
    sums = np.array([d[query[lower] == q].sum() for q in np.unique(query[lower][sign != 0])])
    sums = sums[sums != 0]
    flips = np.random.default_rng(0).choice([-1.0, 1.0], (40_000, len(sums)))
    expected = (np.abs(flips @ sums) >= abs(sums.sum()) - 1e-9).mean()
    assert found.p_value[0] == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 999))


def test_a_dealer_who_favours_high_outcomes_is_found_out(rows, monkeypatch):
    """The test is no tautology: it rejects where placebos do not centre on 0."""
    _, log, member, query = rows

    def biased(starts, member, rng):
        favoured = (log.outcome > 0) & (rng.random(len(member)) < 0.2)
        return shuffle_within(starts, member, rng) | favoured

    monkeypatch.setattr("mpc_lab.inference.placebo.shuffle_within", biased)
    assert placebo(log, member, query, epsilon=0.1, permutations=100).rejected > 0.5


def test_the_audited_p_value_is_that_of_the_clusters_named(rows):
    _, log, member, query = rows
    naive, by_query = (
        placebo(log, member, query, epsilon=0.3, cluster=cluster, permutations=200)
        for cluster in ("naive", "query")
    )
    np.testing.assert_array_equal(naive.p_value, by_query.p_value)
    np.testing.assert_array_equal(naive.query_p_value, by_query.audited_p_value)
    assert naive.audited_rejected > 2 * by_query.audited_rejected
    assert by_query.query_rejected == by_query.audited_rejected == naive.query_rejected


def test_the_seed_decides(rows):
    _, log, member, query = rows
    one, same, other = (
        placebo(log, member, query, epsilon=0.1, permutations=5, seed=seed).estimate
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()


def test_few_queries_cannot_reject_and_say_so(rows):
    ranking = synthetic(queries=4, seed=3)
    log = sort_rows(ranking)
    member = ranking.member("1")[log.row]
    found = placebo(log, member, ranking.query_code[log.row], epsilon=0.3, permutations=20)
    assert np.isfinite(found.estimate).all()
    assert found.n_estimable == 0
    assert np.isnan(found.rejected)


def test_a_group_without_pairs_is_not_estimable(rows):
    _, log, member, query = rows
    found = placebo(log, np.ones_like(member), query, epsilon=0.1, permutations=3)
    assert found.n_estimable == 0
    assert np.isnan([found.observed, found.observed_p_value, found.rejected]).all()
    assert np.isnan(found.audited_rejected)


def test_there_must_be_a_permutation(rows):
    _, log, member, query = rows
    with pytest.raises(MpcError, match="permutations must be a whole number of at least 1; got 0"):
        placebo(log, member, query, epsilon=0.1, permutations=0)
