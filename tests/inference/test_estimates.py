import numpy as np
import pytest
from scipy import stats

from helpers.pair_sums import Sums, double_sum, families, random_pairs, squared_counts, sums
from mpc_lab.errors import MpcError
from mpc_lab.inference.estimates import effective_clusters, effective_items, estimate

SEEDS = range(5)


def run(pairs, cluster, *, center=0.1, level=0.95, shared_items=True):
    return estimate(
        pairs.count,
        center,
        families(pairs, center),
        clusters=np.array(np.unique(pairs.query).size),
        cluster=cluster,
        level=level,
        item_effective=item_effective(pairs),
        shared_items=shared_items,
    )


def item_effective(pairs):
    return effective_items(pairs.count, squared_counts(pairs.inside), squared_counts(pairs.outside))


def query_only(d, query, cluster="query", center=0.0):
    by = {"naive": sums(np.arange(len(d)), d - center), "query": sums(query, d - center)}
    clusters = np.array(np.unique(query).size)
    return estimate(np.array(len(d)), center, by, clusters=clusters, cluster=cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_estimate_is_the_mean_whatever_the_center(seed):
    pairs = random_pairs(seed)
    for center in (0.0, -3.0, 0.3):
        assert run(pairs, "union", center=center).estimate == pytest.approx(
            pairs.d.mean(), rel=1e-12
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_query_standard_error_equals_statsmodels(seed):
    import statsmodels.api as sm

    pairs = random_pairs(seed)
    model = sm.OLS(pairs.d, np.ones(len(pairs.d)))
    fitted = model.fit(cov_type="cluster", cov_kwds={"groups": pairs.query})
    assert run(pairs, "query").std_error == pytest.approx(fitted.bse[0], rel=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_item_variance_equals_two_way_clusters_of_statsmodels(seed):
    import statsmodels.api as sm
    from statsmodels.stats.sandwich_covariance import cov_cluster_2groups

    pairs = random_pairs(seed, fixed_membership=True)
    fitted = sm.OLS(pairs.d, np.ones(len(pairs.d))).fit()
    two_way = cov_cluster_2groups(fitted, pairs.inside, pairs.outside, use_correction=False)[0]
    assert run(pairs, "item").variance_by["item"] == pytest.approx(two_way[0, 0], rel=1e-10)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_item_both_and_union_equal_the_double_sum_over_pairs_of_pairs(seed, fixed):
    pairs = random_pairs(seed, fixed_membership=fixed)
    raw = run(pairs, "union").variance_by
    rules = {
        "query": lambda query, item: query,
        "item": lambda query, item: item,
        "both": lambda query, item: query & item,
        "union": lambda query, item: query | item,
    }
    for family, rule in rules.items():
        expected = double_sum(pairs, rule)
        assert raw[family] == pytest.approx(expected, rel=1e-10, abs=1e-14), family


def test_repeated_dyads_of_a_unit_are_taken_from_dyad_query():
    pairs = random_pairs(3, queries=12)
    unit = type(pairs)(pairs.query // 4, pairs.inside, pairs.outside, pairs.d)
    by = families(unit, 0.1)
    by["dyad_query"] = sums(np.column_stack([unit.query, unit.inside, unit.outside]), unit.d - 0.1)
    cell = estimate(
        unit.count,
        0.1,
        by,
        clusters=np.array(3),
        cluster="union",
        item_effective=item_effective(unit),
    )
    expected = double_sum(unit, lambda query, item: query | item)
    assert cell.variance_by["union"] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_union_uses_the_largest_variance_and_the_smallest_count(seed):
    pairs = random_pairs(seed)
    cell = run(pairs, "union")
    by_query = effective_clusters(pairs.count, squared_counts(pairs.query))
    effective = min(by_query, item_effective(pairs))
    raw = {name: cell.variance_by[name] for name in ("union", "query", "item")}
    expected = max(raw.values()) * effective / (effective - 1)
    assert cell.n_effective == pytest.approx(effective)
    assert cell.std_error**2 == pytest.approx(expected, rel=1e-12)
    assert raw[str(cell.variance_from)] == max(raw.values())


def test_item_count_is_ignored_where_no_item_is_shared():
    pairs = random_pairs(1)
    alone = run(pairs, "union", shared_items=False)
    assert alone.n_effective == run(pairs, "query").n_effective


def test_union_equals_query_and_is_called_union_where_no_item_is_shared():
    base = random_pairs(2)
    own = 100 * base.query
    d = base.d + 2.0 * base.query
    pairs = type(base)(base.query, base.inside + own, base.outside + own, d)
    cell = run(pairs, "union", shared_items=False)
    assert cell.variance_by["union"] == pytest.approx(cell.variance_by["query"], rel=1e-12)
    assert cell.variance_by["item"] < cell.variance_by["query"]
    assert cell.variance_from == "union"


@pytest.mark.parametrize("cluster", ["naive", "query", "item", "union"])
def test_interval_and_p_value_are_those_of_t(cluster):
    cell = run(random_pairs(4), cluster, level=0.9)
    t = stats.t(float(cell.n_effective) - 1)
    half = t.ppf(0.95) * cell.std_error
    assert cell.dof == cell.n_effective - 1
    assert cell.ci_low == pytest.approx(cell.estimate - half, rel=1e-9)
    assert cell.ci_high == pytest.approx(cell.estimate + half, rel=1e-9)
    assert cell.p_value == pytest.approx(2 * t.sf(abs(cell.estimate / cell.std_error)), rel=1e-9)


def test_naive_variance_has_no_correction():
    d = random_pairs(0).d
    cell = query_only(d, np.arange(len(d)) % 5, "naive")
    assert cell.std_error == pytest.approx(d.std() / np.sqrt(len(d)), rel=1e-12)
    assert cell.dof == len(d) - 1


@pytest.mark.parametrize("cluster", ["naive", "query", "item", "union"])
def test_standard_error_is_listed_among_those_of_all_families(cluster):
    cell = run(random_pairs(0), cluster)
    assert cell.std_error_by[cluster] == cell.std_error
    families = ["naive", "query", "item", "producer", "union", "query_cr3"]
    assert list(cell.std_error_by) == families


def test_families_without_sums_are_nan():
    cell = query_only(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 2]))
    assert np.isnan(cell.std_error_by["item"])
    assert np.isnan(cell.std_error_by["union"])


@pytest.mark.parametrize("pairs_each", [1, 7, 99])
def test_three_equal_queries_are_just_enough(pairs_each):
    query = np.repeat(np.arange(3), pairs_each)
    cell = query_only(np.arange(3.0 * pairs_each), query)
    assert cell.n_effective == pytest.approx(3)
    assert cell.dof == pytest.approx(2)
    assert cell.estimable


def test_two_equal_queries_are_too_few():
    cell = query_only(np.array([1.0, 2.0, 4.0, 5.0]), np.array([0, 0, 1, 1]))
    assert cell.reason == "effective clusters below 3"
    assert np.isnan([cell.std_error, cell.ci_low, cell.p_value, cell.dof]).all()


def test_a_dominating_query_is_not_estimable():
    cell = query_only(np.array([1.0, 2.0, 4.0, 5.0]), np.array([0, 0, 1, 2]))
    assert cell.reason == "effective clusters below 3"
    assert cell.n_effective == pytest.approx(16 / 6)
    assert cell.estimate == 3
    assert np.isnan([cell.std_error, cell.ci_low, cell.p_value, cell.dof]).all()


@pytest.mark.parametrize("center", [0.0, 0.1, 0.7, -5.0])
@pytest.mark.parametrize("n", [3, 1000, 100_000])
def test_equal_differences_are_not_estimable_in_spite_of_rounding(n, center):
    y = np.array([0.1, 0.2, 0.3, 0.4])
    d = np.resize(y[1:] - y[:-1], n)
    for cluster in ("naive", "query"):
        cell = query_only(d, np.arange(n) % 5, cluster, center)
        assert cell.reason == "variance is 0", cluster


def test_sums_added_one_by_one_do_not_hide_a_variance_of_zero():
    u, n = 0.1, 1_000_000
    total = float(np.cumsum(np.full(n, u))[-1])
    square = float(np.cumsum(np.full(n, u * u))[-1])
    assert total != n * u
    naive = Sums(np.array(float(n)), np.array(total), np.array(square))
    query = Sums(np.array(n * 10.0), np.array(total * 10), np.array(square * 10))
    by = {"naive": naive, "query": query}
    cell = estimate(np.array(n), 0.9, by, clusters=np.array(n // 10), cluster="query")
    assert cell.reason == "variance is 0"


def test_queries_whose_pairs_cancel_have_no_variance():
    d = np.array([0.1, 0.2, -0.3] * 4)
    assert query_only(d, np.repeat(np.arange(4), 3)).reason == "variance is 0"


def test_a_small_but_real_variance_is_kept():
    rng = np.random.default_rng(0)
    d = 1 + 1e-5 * rng.normal(size=300)
    assert query_only(d, np.arange(300) % 30, center=0.5).estimable


def test_negative_item_variance_is_not_estimable():
    by = families(random_pairs(0), 0.1)
    by["item"] = by["dyad"]
    by["dyad"] = Sums(by["dyad"].cc, by["dyad"].cu, by["dyad"].uu * 2)
    cell = estimate(
        np.array(60), 0.1, by, clusters=np.array(9), cluster="item", item_effective=np.array(5.0)
    )
    assert cell.reason == "variance is not positive"
    assert np.isnan(cell.std_error)


def test_cells_of_any_shape_are_estimated_one_by_one():
    filled = query_only(np.array([1.0, 2.0, 4.0, 3.0, 0.0]), np.array([0, 0, 1, 2, 3]))
    naive = Sums(np.array([[5.0, 0.0]]), np.array([[10.0, 0.0]]), np.array([[30.0, 0.0]]))
    query = Sums(np.array([[7.0, 0.0]]), np.array([[13.0, 0.0]]), np.array([[34.0, 0.0]]))
    cells = estimate(
        np.array([[5, 0]]),
        np.array([0.0]),
        {"naive": naive, "query": query},
        clusters=np.array([[4, 0]]),
        cluster="query",
    )
    assert cells.std_error[0, 0] == pytest.approx(float(filled.std_error))
    assert cells.reason.tolist() == [["", "no pairs"]]
    assert np.isnan([cells.estimate[0, 1], cells.n_effective[0, 1], cells.dof[0, 1]]).all()


def test_unknown_cluster_names_the_near_match():
    with pytest.raises(MpcError, match="Did you mean 'query'"):
        query_only(np.array([1.0, 2.0]), np.array([0, 1]), "qeury")


def test_union_without_item_sums_says_what_to_do():
    with pytest.raises(MpcError, match="Name the item column"):
        query_only(np.array([1.0, 2.0]), np.array([0, 1]), "union")


def test_level_must_be_a_probability():
    with pytest.raises(MpcError, match="level must be a finite number above 0 and below 1"):
        run(random_pairs(0), "query", level=95)
