"""What must not change the result, over all pairing modes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import mpc_lab as mpc
from helpers.oracle import MODES, Log
from helpers.strategies import GRID, STEP, calmly, logs, ranking_of

NUMBERS = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "n_effective", "dof")
COUNTS = ("n_pairs", "n_queries", "n_items")

calm = calmly(30)


def audit_of(log, modes=MODES, threshold=None, cluster="query", correction="cr3"):
    return mpc.audit(
        ranking_of(log),
        pairing_modes=modes,
        threshold=mpc.Quantile(0.3) if threshold is None else threshold,
        epsilon=GRID,
        cluster=cluster,
        correction=correction,
        adjust="none",
    )


def taken(log, rows):
    """Return the log with the rows in this order."""
    columns = {
        name: [values[row] for row in rows]
        for name, values in vars(log).items()
        if values is not None
    }
    return replace(log, **columns)


def joined(log, other):
    columns = {name: [*values, *vars(other)[name]] for name, values in vars(log).items() if values}
    return replace(log, **columns)


def renamed(log):
    """Return the log under other names of queries and units."""
    unit = None if log.unit is None else [label + 100 for label in log.unit]
    return replace(log, query=[label + 100 for label in log.query], unit=unit)


def assert_same(one, other):
    for left, right in ((one.headline, other.headline), (one.curve, other.curve)):
        for name in COUNTS:
            np.testing.assert_array_equal(left[name].values, right[name].values, err_msg=name)
        for name in NUMBERS:
            np.testing.assert_allclose(
                left[name].values, right[name].values, rtol=1e-9, atol=1e-12, err_msg=name
            )
    np.testing.assert_array_equal(one.headline["epsilon"], other.headline["epsilon"])
    np.testing.assert_array_equal(one.headline["verdict"], other.headline["verdict"])


@calm
@given(logs(), st.randoms(use_true_random=False))
def test_row_order(log, random):
    modes = MODES if log.position else MODES[:2]
    rows = list(range(len(log.query)))
    random.shuffle(rows)
    assert_same(audit_of(log, modes), audit_of(taken(log, rows), modes))


@calm
@given(logs(positions=False, distinct_scores=True), st.randoms(use_true_random=False))
def test_row_order_of_neighbours_where_no_scores_tie(log, random):
    rows = list(range(len(log.query)))
    random.shuffle(rows)
    assert_same(audit_of(log), audit_of(taken(log, rows)))


@calm
@given(logs(), st.sampled_from(["naive", "query"]))
def test_names_of_queries(log, cluster):
    names = {label: str(hash((label, 7))) for label in set(log.query)}
    other = replace(log, query=[names[label] for label in log.query])
    assert_same(audit_of(log, cluster=cluster), audit_of(other, cluster=cluster))


@calm
@given(logs(), st.integers(-5000, 5000))
def test_adding_a_constant_to_all_scores(log, steps):
    shifted = replace(log, score=[value + steps * STEP for value in log.score])
    assert_same(audit_of(log), audit_of(shifted))


@calm
@given(logs(), st.integers(-50, 50))
def test_adding_a_constant_to_all_outcomes(log, constant):
    shifted = replace(log, outcome=[value + constant for value in log.outcome])
    assert_same(audit_of(log), audit_of(shifted))


@calm
@given(logs())
def test_scaling_scores_and_epsilon_by_a_power_of_two(log):
    doubled = replace(log, score=[2 * value for value in log.score])
    one = audit_of(log, threshold=3 * STEP).headline
    two = audit_of(doubled, threshold=6 * STEP).headline
    np.testing.assert_array_equal(one["n_pairs"], two["n_pairs"])
    np.testing.assert_array_equal(one["estimate"], two["estimate"])


@calm
@given(logs(groups=1), st.sampled_from([0.0, STEP, 5 * STEP, 1.0]))
def test_the_complement_turns_matched_into_minus_mirrored(log, epsilon):
    both = [frozenset({"g"}) if member else frozenset({"rest"}) for member in log.groups]
    assume(len(set(both)) == 2)
    headline = audit_of(replace(log, groups=both), threshold=epsilon).headline.squeeze()
    for one, other in (("matched", "mirrored"), ("mirrored", "matched"), ("adjacent", "adjacent")):
        left = headline.sel(group="rest", pairing_mode=one)
        right = headline.sel(group="g", pairing_mode=other)
        np.testing.assert_allclose(left["estimate"], -right["estimate"], atol=1e-12)
        np.testing.assert_allclose(left["std_error"], right["std_error"], rtol=1e-9)
        assert left["n_pairs"] == right["n_pairs"]


@calm
@given(logs(groups=1), st.integers(0, 8))
def test_demoting_the_complement_is_boosting_the_group(log, steps):
    both = [frozenset({"g"}) if member else frozenset({"rest"}) for member in log.groups]
    assume(len(set(both)) == 2)
    headline = mpc.audit(
        ranking_of(replace(log, groups=both)),
        scoring_rules=[mpc.Boosted(steps * STEP), mpc.Demoted(steps * STEP)],
        pairing_modes=MODES,
        threshold=4 * STEP,
    ).headline
    boosted, demoted = headline["estimate"].transpose("scoring_rule", ...)
    left = demoted.sel(group="rest", pairing_mode="matched")
    right = boosted.sel(group="g", pairing_mode="mirrored")
    np.testing.assert_allclose(left, -right, atol=1e-12)


@calm
@given(logs(), st.sampled_from([0.0, 5 * STEP]))
def test_the_log_twice_keeps_the_mean_and_halves_the_query_variance(log, epsilon):
    # The other correction looks at each query's share of the pairs, which a second log halves.
    once = audit_of(log, threshold=epsilon, correction="plain").headline
    twice = audit_of(joined(log, renamed(log)), threshold=epsilon, correction="plain").headline
    np.testing.assert_array_equal(twice["n_pairs"], 2 * once["n_pairs"])
    np.testing.assert_allclose(twice["estimate"], once["estimate"], atol=1e-12)
    ready = once["std_error"].notnull().values
    if log.unit is None:  # the factor Q/(Q − 1) counts units, which the result does not show
        shrink = [1 - 1 / each["n_queries"].values[ready] for each in (once, twice)]
        raw = [each["std_error"].values[ready] ** 2 for each in (once, twice)]
        np.testing.assert_allclose(raw[1] * shrink[1], raw[0] * shrink[0] / 2, rtol=1e-9)


def totals(log, names):
    """Return counts and the sum of differences by group and mode; an absent group counts 0."""
    audit = audit_of(log, threshold=5 * STEP, cluster="naive")
    headline = audit.headline[["n_pairs", "n_queries", "estimate"]].squeeze("scoring_rule")
    headline = headline.reindex(group=names, fill_value=0).transpose("group", "pairing_mode")
    return headline, np.nan_to_num(headline["estimate"].values) * headline["n_pairs"].values


@calm
@given(logs())
def test_a_log_split_by_queries_adds_up(log):
    rows = range(len(log.query))
    halves = [taken(log, [row for row in rows if log.query[row] % 2 == k]) for k in (0, 1)]
    assume(all(half.query and half.names for half in halves))
    whole, total = totals(log, log.names)
    (one, left), (other, right) = (totals(half, log.names) for half in halves)
    for name in ("n_pairs", "n_queries"):
        np.testing.assert_array_equal(whole[name], one[name] + other[name])
    np.testing.assert_allclose(total, left + right, atol=1e-9)


@calm
@given(logs())
def test_pairs_grow_along_the_curve(log):
    counts = audit_of(log).curve["n_pairs"].transpose("epsilon", ...).values
    assert (np.diff(counts, axis=0) >= 0).all()


@calm
@given(logs(), st.data())
def test_a_group_alone_has_the_numbers_it_has_among_others(log, data):
    group = data.draw(st.sampled_from(log.names))
    alone = mpc.audit(ranking_of(log), groups=[group], epsilon=GRID, cluster="query", adjust="none")
    among = mpc.audit(ranking_of(log), epsilon=GRID, cluster="query", adjust="none")
    assert alone.headline["group"].values.tolist() == [group]
    for name in (*COUNTS, "estimate", "std_error", "epsilon"):
        np.testing.assert_array_equal(alone.headline[name], among.headline[name].sel(group=[group]))


def many_rows(seed=0, queries=3000, items=14):
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), items)
    names = [frozenset(), frozenset("a"), frozenset("b"), frozenset("ab")]
    return Log(
        query=query.tolist(),
        score=(rng.integers(0, 300, query.size) * STEP).tolist(),
        outcome=rng.normal(size=query.size).tolist(),
        groups=[names[k] for k in rng.integers(0, 4, query.size)],
        item=np.tile(np.arange(items), queries).tolist(),
    )


@pytest.mark.parametrize(
    "cluster", ["union", *(pytest.param(one, marks=pytest.mark.long) for one in ("query", "item"))]
)
def test_the_number_of_threads_does_not_change_a_bit(monkeypatch, cluster):
    log, found = many_rows(), []
    for threads in ("1", "2"):
        monkeypatch.setenv("MPC_LAB_THREADS", threads)
        audit = audit_of(log, cluster=cluster)
        found.append((audit.headline, audit.curve))
    for one, other in zip(*found, strict=True):
        for name in one.data_vars:
            np.testing.assert_array_equal(one[name].values, other[name].values, err_msg=name)


def test_the_same_audit_twice_is_the_same_to_the_bit():
    log = many_rows(1, queries=400)
    one, other = audit_of(log).headline, audit_of(log).headline
    assert one.equals(other)
