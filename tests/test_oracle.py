"""The oracle itself, against numbers worked out by hand and against statsmodels."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import statsmodels.api as sm
from statsmodels.stats.sandwich_covariance import cov_cluster_2groups

from helpers import oracle
from helpers.oracle import Log

A, NONE = frozenset("a"), frozenset()

# one query, scores from the top: b .5, a .5, b .25, a 0
LIST = Log(["q"] * 4, [0.5, 0.5, 0.25, 0.0], [3, 1, 0, 2], [NONE, A, NONE, A])


def random_log(seed: int, queries: int = 40) -> Log:
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), 8)
    item = np.concatenate([rng.permutation(30)[:8] for _ in range(queries)])
    return Log(
        query=query.tolist(),
        score=(rng.integers(0, 40, query.size) / 1024).tolist(),
        outcome=rng.integers(0, 6, query.size).tolist(),
        groups=[A if label % 3 == 0 else NONE for label in item],
        item=item.tolist(),
    )


def test_matched_pairs_by_hand():
    assert oracle.pairs(LIST, "a", "matched") == [(1, 0), (3, 0), (3, 2)]
    assert oracle.pairs(LIST, "a", "matched", 0.25) == [(1, 0), (3, 2)]
    assert oracle.pairs(LIST, "a", "matched", 0.0) == [(1, 0)]


def test_mirrored_pairs_by_hand():
    assert oracle.pairs(LIST, "a", "mirrored") == [(1, 0), (1, 2)]


def test_adjacent_follows_scores_and_breaks_ties_by_row():
    assert oracle.pairs(LIST, "a", "adjacent") == [(1, 0), (1, 2), (3, 2)]
    assert oracle.pairs(LIST, "a", "adjacent", 0.2) == [(1, 0)]


def test_adjacent_follows_positions_and_holes_separate():
    log = replace(LIST, position=[1, 3, 5, 2])
    assert oracle.pairs(log, "a", "adjacent") == [(3, 0)]


def test_adjacent_under_another_rule_breaks_ties_by_position():
    log = replace(LIST, position=[3, 1, 5, 9])
    assert oracle.pairs(log, "a", "adjacent", scores=[1.0] * 4) == [(1, 0), (3, 2)]


def test_threshold_uses_the_decimal_that_was_written():
    assert oracle.pairs_wanted(("quantile", 0.07), 100) == 7
    assert oracle.pairs_wanted(("quantile", 0.01), 3) == 1
    assert oracle.threshold(LIST, "a", ("smallest", 2)) == 0.25
    assert oracle.threshold(LIST, "a", ("quantile", 1.0)) == 0.5
    assert math.isnan(oracle.threshold(LIST, "b", ("quantile", 0.5)))


def test_tie_inflation_by_hand():
    log = replace(LIST, score=[0.0] * 4)
    assert oracle.tie_inflation(log, "a", ("smallest", 1)) == 4


def test_sums_by_hand():
    log = Log(
        ["p", "p", "q", "q", "q"],
        [0.0] * 5,
        [2, 0, 1, 1, 0],
        [A, NONE, A, NONE, NONE],
        list("xyxyz"),
    )
    found = oracle.sums(log, oracle.pairs(log, "a", "matched"))  # d = 2, 0, 1; θ = 1; u = 1, −1, 0
    assert found.raw == {
        "naive": Fraction(2, 9),
        "query": Fraction(2, 9),
        "item": Fraction(0),  # all pairs share x
        "both": Fraction(2, 9),
        "union": Fraction(0),
    }
    assert found.size["query"] == Fraction(9, 5)
    assert found.size["item"] == 1
    assert (found.n_pairs, found.n_queries, found.n_items) == (3, 2, 3)


@pytest.mark.parametrize("mode", oracle.MODES)
def test_query_variance_is_that_of_statsmodels(mode):
    log = random_log(1)
    kept = oracle.pairs(log, "a", mode, 0.01)
    d = np.array([log.outcome[i] - log.outcome[j] for i, j in kept])
    clusters = {"groups": np.array([log.query[i] for i, _ in kept])}
    fit = sm.OLS(d, np.ones_like(d)).fit(cov_type="cluster", cov_kwds=clusters)
    ours = oracle.cell(oracle.sums(log, kept), "query", correction="plain")
    assert ours.estimate == pytest.approx(fit.params[0], abs=1e-12)
    assert ours.std_error == pytest.approx(fit.bse[0], rel=1e-12)


@pytest.mark.parametrize("mode", oracle.MODES)
def test_item_variance_is_that_of_two_way_clustering(mode):
    log = random_log(2)
    kept = oracle.pairs(log, "a", mode, 0.02)
    d = np.array([log.outcome[i] - log.outcome[j] for i, j in kept])
    sides = [np.array([log.item[pair[side]] for pair in kept]) for side in (0, 1)]
    fit = sm.OLS(d, np.ones_like(d)).fit()
    reference = cov_cluster_2groups(fit, *sides, use_correction=False)[0]
    assert float(oracle.sums(log, kept).raw["item"]) == pytest.approx(reference.item(), rel=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_item_and_both_variances_follow_their_formulas(seed):
    log = random_log(seed)
    kept = oracle.pairs(log, "a", "matched", 0.01)
    d = np.array([log.outcome[i] - log.outcome[j] for i, j in kept], dtype=float)
    u = d - d.mean()
    by_item, by_dyad, by_item_query = {}, {}, {}
    for value, (i, j) in zip(u, kept, strict=True):
        dyad = frozenset((log.item[i], log.item[j]))
        by_dyad[dyad] = by_dyad.get(dyad, 0) + value
        for item in dyad:
            by_item[item] = by_item.get(item, 0) + value
            key = (item, log.query[i])
            by_item_query[key] = by_item_query.get(key, 0) + value
    squares = [sum(v**2 for v in table.values()) for table in (by_item, by_dyad, by_item_query)]
    raw = oracle.sums(log, kept).raw
    assert float(raw["item"]) == pytest.approx((squares[0] - squares[1]) / len(u) ** 2, rel=1e-10)
    assert float(raw["both"]) == pytest.approx((squares[2] - u @ u) / len(u) ** 2, rel=1e-10)


def test_one_query_and_equal_outcomes_are_not_estimable():
    found = oracle.sums(LIST, oracle.pairs(LIST, "a", "matched"))
    assert not oracle.cell(found, "query").estimable
    assert oracle.cell(found, "naive").estimable
    flat = replace(LIST, outcome=[1] * 4)
    assert not oracle.cell(oracle.sums(flat, oracle.pairs(flat, "a", "matched")), "naive").estimable


def test_units_join_the_queries_that_belong_to_them():
    log = random_log(3)
    coarse = replace(log, unit=[query // 2 for query in log.query])
    joined = replace(log, query=coarse.unit)
    kept = oracle.pairs(coarse, "a", "matched", 0.01)
    assert set(kept) < set(oracle.pairs(joined, "a", "matched", 0.01))
    assert oracle.sums(coarse, kept).raw == oracle.sums(joined, kept).raw


@pytest.mark.parametrize(
    ("matched", "mirrored", "expected"),
    [
        ((1, 2), (1, 2), ("undervalued", "")),
        ((-2, -1), (-2, -1), ("overvalued", "")),
        ((-2, -1), (-2, 1), ("inconclusive", "bracket")),
        ((-1, 1), (-2, -1), ("inconclusive", "interval covers 0")),
    ],
)
def test_verdicts_by_hand(matched, mirrored, expected):
    cells = [
        oracle.Cell(9, 9, 9, sum(ci) / 2, True, ci_low=ci[0], ci_high=ci[1])
        for ci in (matched, mirrored)
    ]
    assert oracle.verdict(*cells) == expected
    assert oracle.verdict(*cells, tolerance=2)[0] == "within tolerance"
