import numpy as np
import pytest
from scipy import stats

from helpers.pair_sums import families, random_pairs
from mpc_lab.errors import MpcError
from mpc_lab.inference.clustered import estimate_listed, pair_codes
from mpc_lab.inference.estimates import estimate

RULES = {
    "naive": lambda query, item: np.eye(len(query), dtype=bool),
    "query": lambda query, item: query,
    "item": lambda query, item: item,
    "both": lambda query, item: query & item,
    "union": lambda query, item: query | item,
}


def listed_variances(z, *codes):
    return estimate_listed(z, 0.0, pair_codes(*codes), cluster="query").variance_by


def double_sum(z, query, item_i, item_j, rule):
    """Add z_p z_p' over the pairs of pairs that share what the rule names."""
    same_query = query[:, None] == query[None, :]
    ends = np.stack([item_i, item_j])
    same_item = (ends[:, None, :, None] == ends[None, :, None, :]).any(axis=(0, 1))
    return z @ rule(same_query, same_item) @ z / len(z) ** 2


@pytest.mark.parametrize("family", RULES)
@pytest.mark.parametrize("fixed", [True, False])
def test_variances_equal_the_double_sum_over_pairs_of_pairs(family, fixed):
    pairs = random_pairs(3, fixed_membership=fixed)
    z = pairs.d**2 - np.mean(pairs.d**2)
    listed = listed_variances(z, pairs.query, pairs.inside, pairs.outside)
    expected = double_sum(z, pairs.query, pairs.inside, pairs.outside, RULES[family])
    assert listed[family] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("family", ["both", "union"])
def test_two_items_may_meet_twice_inside_a_unit(family):
    pairs = random_pairs(4)
    unit = pairs.query // 5
    z = pairs.d - pairs.d.mean()
    listed = listed_variances(z, unit, pairs.inside, pairs.outside)
    expected = double_sum(z, unit, pairs.inside, pairs.outside, RULES[family])
    assert listed[family] == pytest.approx(expected, rel=1e-12)


def test_without_items_there_is_no_item_variance():
    pairs = random_pairs(5)
    assert set(listed_variances(pairs.d, pairs.query)) == {"naive", "query"}


@pytest.mark.parametrize("cluster", ["naive", "query", "item", "union"])
def test_a_listed_mean_is_estimated_as_one_from_sums(cluster):
    pairs = random_pairs(6)
    codes = pair_codes(pairs.query, pairs.inside, pairs.outside)
    listed = estimate_listed(pairs.d - 0.3, 0.3, codes, cluster=cluster)
    from_sums = estimate(
        pairs.count,
        0.3,
        families(pairs, 0.3),
        clusters=np.array(codes.queries),
        cluster=cluster,
        item_effective=np.array(min(codes.effective_items)),
    )
    for name in ("estimate", "std_error", "ci_low", "p_value", "dof"):
        assert getattr(listed, name) == pytest.approx(getattr(from_sums, name), rel=1e-12)


def test_some_of_the_pairs_are_as_if_listed_alone():
    pairs = random_pairs(8)
    keep = pairs.d > 0
    part = pair_codes(pairs.query, pairs.inside, pairs.outside).take(keep)
    alone = pair_codes(pairs.query[keep], pairs.inside[keep], pairs.outside[keep])
    one, other = (
        estimate_listed(pairs.d[keep], 0.0, codes, cluster="union") for codes in (part, alone)
    )
    assert one.std_error == pytest.approx(other.std_error, rel=1e-12)


def test_items_count_only_if_one_is_in_two_queries():
    query, item = np.repeat(np.arange(8), 2), np.arange(16)
    codes = pair_codes(query, item, item + 16)
    assert not codes.shares_items
    assert pair_codes(query, item % 8, item + 16).shares_items
    found = estimate_listed(stats.norm.ppf((item + 0.5) / 16), 0.0, codes, cluster="union")
    assert found.n_effective == pytest.approx(8)


def test_no_pairs_are_not_estimable():
    none = np.empty(0, dtype=np.int64)
    found = estimate_listed(np.empty(0), 0.0, pair_codes(none, none, none), cluster="union")
    assert found.reason == "no pairs"
    assert np.isnan(found.estimate)


def test_items_of_one_side_alone_are_refused():
    query = np.array([0, 1])
    with pytest.raises(MpcError, match="item_i and item_j must be given together"):
        pair_codes(query, query)


def test_codes_of_different_lengths_are_refused():
    query = np.array([0, 1])
    with pytest.raises(MpcError, match="one entry for each pair; got 2, 1 and 2"):
        pair_codes(query, query[:1], query)
