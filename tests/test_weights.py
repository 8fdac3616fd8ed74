"""Weights of queries and estimands, against double loops, on random logs full of ties."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpc_lab as mpc
from helpers import oracle, weights_oracle
from helpers.params import combined
from helpers.strategies import GRID, STEP, calmly, logs, ranking_of
from helpers.weights_oracle import ESTIMANDS
from mpc_lab.pairing import sweep
from mpc_lab.results.assemble import headline_moments, infer
from mpc_lab.results.sums import moments_by_rule

MODES = ("matched", "mirrored", "adjacent", "symmetric")
some, few = calmly(60), calmly(20)
SEEDS = st.integers(0, 10**6)


def draw_weights(log, seed):
    """Return a weight for each query, some of them equal."""
    rng = np.random.default_rng(seed)
    return {q: float(rng.choice([0.25, 1.0, 1.7, 40.0])) for q in dict.fromkeys(log.query)}


def weighted(log, weight):
    """Return the ranking of a log with weights, which its frame has as a column."""
    frame = ranking_of(log).to_frame().assign(w=[weight[q] for q in log.query])
    names = {name: name for name in ("item", "unit", "position") if getattr(log, name) is not None}
    columns = {"query": "query", "score": "score", "outcome": "outcome", "group": "groups"}
    return mpc.Ranking(frame, **columns, **names, weight="w")


def audit_of(ranking, epsilon=7 * STEP, **options):
    options = {"epsilon": GRID, "adjust": "none", "progress": False, "cluster": "union"} | options
    return mpc.audit(ranking, pairing_modes=MODES, threshold=epsilon, **options)


def close(ours, theirs, tolerance=1e-10):
    return math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)


def hold(found, at, log, group, mode, epsilon, weight, estimand):
    """Hold one cell against the double loops."""
    if mode == "symmetric":
        wanted = weights_oracle.on_two_sides(log, group, epsilon, weight, estimand)
        raw = wanted and wanted.raw(log)
        size = wanted and wanted.effective(log, "union", items_recur=recurs(log, wanted.pairs))
    else:
        kept = oracle.pairs(log, group, mode, epsilon)
        w = weights_oracle.pair_weights(log, kept, weight, estimand)
        wanted = weights_oracle.sums(log, kept, w, recur=recurs(log, kept))
        raw, size = wanted and wanted.raw, wanted and wanted.size["union"]
    if wanted is None:
        assert math.isnan(found.estimate[at])
        return
    assert close(found.estimate[at], wanted.estimate)
    for name, value in raw.items():
        assert close(found.variance_by[name][at], value), name
    assert close(found.n_effective[at], size, 1e-9)


def recurs(log, kept):
    seen = {(log.item[row], log.cluster[row]) for pair in kept for row in pair}
    return len(seen) > len({item for item, _ in seen})


@some
@given(logs(), SEEDS, st.sampled_from(ESTIMANDS), st.sampled_from([0, STEP, 7 * STEP]))
def test_estimates_and_variances_are_those_of_the_double_loops(log, seed, estimand, epsilon):
    weight = draw_weights(log, seed)
    audit = audit_of(weighted(log, weight), epsilon, estimand=estimand)
    own = headline_moments(audit)[0]
    found = infer(own, cluster="union", level=0.95)
    cells = audit.headline.sel(scoring_rule="baseline")
    for m, mode in enumerate(own.mode_names):
        for g, group in enumerate(log.names):
            hold(found, (m, g, 0), log, group, mode, epsilon, weight, estimand)
            if mode != "symmetric":
                kept = oracle.pairs(log, group, mode, epsilon)
                cell = cells.sel(pairing_mode=mode, group=group)
                assert cell.n_pairs == len(kept)
                assert cell.n_queries == len({log.query[i] for i, _ in kept})
                assert cell.n_items == len({log.item[row] for pair in kept for row in pair})


@few
@given(logs(positions=False), SEEDS, st.sampled_from(ESTIMANDS))
def test_the_curve_is_that_of_the_double_loops(log, seed, estimand):
    weight = draw_weights(log, seed)
    audit = audit_of(weighted(log, weight), estimand=estimand)
    _ = audit.curve
    moments = moments_by_rule(audit)[0]
    found = infer(moments, cluster="union", level=0.95)
    for m, mode in enumerate(moments.mode_names):
        for g, group in enumerate(log.names):
            for k, epsilon in enumerate(moments.edges[g]):
                hold(found, (m, g, k), log, group, mode, epsilon, weight, estimand)


@few
@given(logs(positions=True), SEEDS, st.sampled_from(ESTIMANDS))
def test_the_curve_inside_cells_of_places_is_that_of_the_double_loops(log, seed, estimand):
    weight = draw_weights(log, seed)
    audit = audit_of(weighted(log, weight), estimand=estimand)
    for group in log.names:
        cells = audit.curve_of(group, pairing_mode="symmetric")
        for k, epsilon in enumerate(cells.epsilon.values):
            wanted = weights_oracle.on_two_sides(log, group, epsilon, weight, estimand)
            ours = float(cells.estimate.values[k])
            assert math.isnan(ours) if wanted is None else close(ours, wanted.estimate)


@some
@given(logs(), SEEDS, st.sampled_from(ESTIMANDS), st.sampled_from(["query", "item", "union"]))
def test_heavy_clusters_are_allowed_for_by_what_leaving_them_out_changes(
    log, seed, estimand, cluster
):
    hold_left_out(log, draw_weights(log, seed), estimand, cluster)


@pytest.mark.parametrize(
    ("estimand", "cluster", "places"),
    combined(ESTIMANDS, ["query", "item", "union"], [True, False]),
)
def test_a_heavy_query_is_allowed_for_with_weights(estimand, cluster, places):
    log = longer_log(3)
    log = log if places else replace(log, position=None)
    weight = {q: 1.0 + q % 3 for q in log.query} | {0: 20.0}
    assert hold_left_out(log, weight, estimand, cluster) == len(MODES) * len(log.names)


def hold_left_out(log, weight, estimand, cluster):
    """Hold the standard errors of all cells against loops; return how many are known."""
    epsilon, known = 7 * STEP, 0
    audit = audit_of(weighted(log, weight), epsilon, estimand=estimand, cluster=cluster)
    for mode in MODES:
        for group in log.names:
            cell = audit.headline.sel(
                scoring_rule="baseline", pairing_mode=mode, group=group
            ).squeeze()
            error = float(cell.std_error)
            if math.isnan(error):
                continue
            if mode == "symmetric":
                two = weights_oracle.on_two_sides(log, group, epsilon, weight, estimand)
                kept, cr3 = two.pairs, two.cr3(log)
            else:
                kept = oracle.pairs(log, group, mode, epsilon)
                w = weights_oracle.pair_weights(log, kept, weight, estimand)
                cr3 = weights_oracle.left_out(log, kept, w)
            n = len({log.cluster[i] for i, _ in kept})
            used = {"query": cr3["query"] * (n - 1) / n, "item": cr3["item"]}
            used["union"] = max(cr3.values())
            assert close(error**2, used[cluster], 1e-9), (mode, group)
            known += 1
    return known


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_the_effect_of_place_is_that_of_the_double_loops(estimand):
    log = longer_log(5)
    weight = draw_weights(log, 1)
    audit = audit_of(weighted(log, weight), estimand=estimand, cluster="query")
    cells = audit.headline.sel(scoring_rule="baseline", pairing_mode="symmetric")
    wanted = weights_oracle.place_effect(log, "a", 7 * STEP, weight, estimand)
    assert close(float(cells.place_effect.sel(group="a")), wanted.estimate, 1e-9)
    mean = weights_oracle.on_two_sides(log, "a", 7 * STEP, weight, estimand)
    assert close(float(cells.place_overlap.sel(group="a")), mean.place_overlap, 1e-9)


def longer_log(seed, queries=25):
    """Return a log with positions in which both sides of a tie have many distances."""
    rng = np.random.default_rng(seed)
    size = rng.integers(4, 12, queries)
    query = np.repeat(np.arange(queries), size)
    n = len(query)
    return oracle.Log(
        query=query.tolist(),
        score=(rng.integers(0, 12, n) * STEP).tolist(),
        outcome=rng.integers(0, 5, n).tolist(),
        groups=[frozenset("a" if inside else "b") for inside in rng.random(n) < 0.5],
        item=np.concatenate([rng.permutation(40)[:k] for k in size]).tolist(),
        position=np.concatenate([rng.permutation(14)[:k] + 1 for k in size]).tolist(),
    )


def sample(seed=0, queries=40):
    rng = np.random.default_rng(seed)
    size = rng.integers(2, 20, queries)
    query = np.repeat(np.arange(queries), size)
    n = len(query)
    return pd.DataFrame(
        {
            "query": query,
            "item": np.concatenate([rng.permutation(60)[:k] for k in size]),
            "score": rng.integers(0, 40, n) / 64,
            "outcome": rng.normal(size=n).round(3),
            "group": rng.choice(["a", "b", "c"], n),
            "w": rng.uniform(0.5, 3, queries)[query],
        }
    )


COLUMNS = {name: name for name in ("query", "item", "score", "outcome", "group")}
NUMBERS = ("estimate", "std_error", "ci_low", "ci_high", "p_value", "n_effective", "dof")


def same_numbers(one, other, tolerance=1e-12, names=NUMBERS):
    for part in ("headline", "curve"):
        for name in names:
            ours, theirs = getattr(one, part)[name].values, getattr(other, part)[name].values
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=name)


def run(frame, **options):
    more = {key: options.pop(key) for key in ("weight", "position", "unit") if key in options}
    options = {"pairing_modes": MODES, "threshold": 0.05, "progress": False} | options
    return mpc.audit(frame, **COLUMNS, **more, **options)


def test_a_weight_of_1_for_all_changes_nothing():
    frame = sample().assign(w=1.0)
    same_numbers(run(frame), run(frame, weight="w"))


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_a_common_factor_of_weights_changes_nothing(estimand):
    frame = sample()
    times = frame.assign(w=frame.w * 7.3)
    one, other = (run(rows, weight="w", estimand=estimand) for rows in (frame, times))
    same_numbers(one, other, 1e-10)


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_a_query_that_is_there_twice_counts_as_one_of_weight_2(estimand):
    frame = sample()
    chosen = frame[frame["query"] % 3 == 0]
    twice = pd.concat([frame, chosen.assign(query=chosen["query"] + 1000)])
    heavy = frame.assign(w=np.where(frame["query"] % 3 == 0, 2.0, 1.0))
    one, other = run(twice, estimand=estimand), run(heavy, weight="w", estimand=estimand)
    same_numbers(one, other, 1e-10, names=("estimate",))
    np.testing.assert_allclose(
        one.objective["ndcg"].values, other.objective["ndcg"].values, rtol=1e-12
    )
    # Bins of scores hold equal numbers of rows, and a test statistic is no mean.
    apart = ["calibration_gap", "inequalities_joint"]
    ours, theirs = (found.compare().drop_sel(measure=apart) for found in (one, other))
    np.testing.assert_allclose(ours["estimate"].values, theirs["estimate"].values, rtol=1e-9)


def test_what_weights_must_not_change_they_do_not():
    frame = sample()
    one = run(frame, threshold=mpc.Quantile(0.05))
    other = run(frame, threshold=mpc.Quantile(0.05), weight="w", estimand="root")
    for name in ("epsilon", "n_pairs", "n_queries", "n_items", "tie_inflation"):
        np.testing.assert_array_equal(one.headline[name].values, other.headline[name].values)
    np.testing.assert_array_equal(one.curve["n_pairs"].values, other.curve["n_pairs"].values)


@pytest.mark.long  # the one place where the kernel is compiled for long lists with weights
@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("position", [None, "place"])
def test_windows_over_long_lists_give_the_same(estimand, position, monkeypatch):
    frame = sample()
    places = frame.groupby("query")["item"].rank().astype(int)
    frame["place"] = places
    how = {"weight": "w", "estimand": estimand, "position": position, "cluster": "query"}
    one = run(frame, **how)
    monkeypatch.setattr(sweep, "PAIR_COST", np.inf)
    same_numbers(one, run(frame, **how), 1e-10)
