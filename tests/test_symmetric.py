"""Pairs on both sides of a tie, against double loops, on random logs full of ties."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpc_lab as mpc
from helpers import oracle, sides_oracle
from helpers.pairing_logs import small_ranking
from helpers.params import combined
from helpers.strategies import GRID, STEP, calmly, logs, ranking_of
from mpc_lab.pairing import items as sums_over_items
from mpc_lab.pairing import long_lists, sweep
from mpc_lab.results.assemble import headline_moments, infer
from mpc_lab.results.sums import moments_by_rule

MODES = ("symmetric", "matched")
some, few = calmly(60), calmly(20)


def audit_of(log, epsilon=7 * STEP, *, cluster="union", **options):
    options = {"epsilon": GRID, "adjust": "none", "progress": False} | options
    options = {"pairing_modes": MODES, "threshold": epsilon, "cluster": cluster} | options
    return mpc.audit(ranking_of(log), **options)


def close(ours, theirs, tolerance=1e-10):
    return math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)


def hold(found, at, log, group, epsilon, scores=None):
    """Hold the inference of one cell against the double loops."""
    wanted = sides_oracle.sums(log, group, epsilon, scores)
    if wanted is None:
        assert math.isnan(found.estimate[at])
        assert not found.estimable[at]
        return
    assert close(found.estimate[at], wanted.estimate)
    for name, value in wanted.raw(log).items():
        assert close(found.variance_by[name][at], value), name
    assert close(found.n_effective[at], wanted.effective(log, "union"), 1e-9)


@some
@given(logs(positions=False), st.sampled_from([0, STEP, 7 * STEP]))
def test_estimate_and_variances_are_those_of_the_double_loops(log, epsilon):
    audit = audit_of(log, epsilon)
    own = headline_moments(audit)[0]
    found = infer(own, cluster="union", level=0.95)
    row = own.mode_names.index("symmetric")
    cells = audit.headline.sel(pairing_mode="symmetric", scoring_rule="baseline")
    for g, group in enumerate(log.names):
        hold(found, (row, g, 0), log, group, epsilon)
        kept, _ = sides_oracle.two_sides(log, group, epsilon)
        assert cells.n_pairs.values[g] == len(kept)
        assert cells.n_queries.values[g] == len({log.query[i] for i, _ in kept})
        assert cells.n_items.values[g] == len({log.item[row] for pair in kept for row in pair})


@few
@given(logs(positions=False))
def test_the_curve_is_that_of_the_double_loops(log):
    audit = audit_of(log)
    _ = audit.curve
    moments = moments_by_rule(audit)[0]
    found = infer(moments, cluster="union", level=0.95)
    row = moments.mode_names.index("symmetric")
    for g, group in enumerate(log.names):
        for k, epsilon in enumerate(moments.edges[g]):
            hold(found, (row, g, k), log, group, epsilon)


@few
@given(logs(positions=False))
def test_a_rule_goes_by_its_own_scores(log):
    audit = audit_of(log, scoring_rules=[mpc.Boosted(3 * STEP)])
    own = headline_moments(audit)[0]
    found = infer(own, cluster="union", level=0.95)
    row = own.mode_names.index("symmetric")
    for g, group in enumerate(log.names):
        boosted = [s + 3 * STEP * (group in m) for s, m in zip(log.score, log.groups, strict=True)]
        hold(found, (row, g, 0), log, group, 7 * STEP, boosted)


def test_without_ties_it_is_the_mean_of_matched_and_mirrored():
    ranking = mpc.datasets.synthetic(queries=300)
    modes = ("symmetric", "matched", "mirrored")
    cells = mpc.audit(ranking, pairing_modes=modes, threshold=0.1, progress=False).headline
    matched, mirrored = (cells.estimate.sel(pairing_mode=mode) for mode in modes[1:])
    ours = cells.estimate.sel(pairing_mode="symmetric")
    np.testing.assert_allclose(ours, (matched + mirrored) / 2, rtol=1e-12)


@pytest.mark.parametrize(
    ("cluster", "correction", "placed"),
    combined(["naive", "query", "item", "union"], ["cr3", "plain"], [False, True]),
)
def test_the_interval_is_that_of_t_with_the_effective_clusters(cluster, correction, placed):
    places = np.tile(np.arange(12, 0, -1), 40)
    ranking = small_ranking(**({"position": places} if placed else {}))
    how = {"cluster": cluster, "correction": correction, "pairing_modes": ["symmetric"]}
    audit = mpc.audit(ranking, threshold=0.01, progress=False, **how)
    log = log_of(ranking)
    cells = audit.headline.isel(scoring_rule=0, pairing_mode=0)
    for group in ranking.groups:
        wanted = sides_oracle.sums(log, group, 0.01)
        raw, n = wanted.raw(log), len({log.query[i] for i, _ in wanted.pairs})
        g = len(wanted.pairs) if cluster == "naive" else wanted.effective(log, cluster)
        if correction == "cr3":
            raw |= wanted.cr3(log)
        largest = max(raw["union"], raw["query"], raw["item"])
        factor, of_queries = (1, (n - 1) / n) if correction == "cr3" else (g / (g - 1), n / (n - 1))
        used = {"naive": raw["naive"], "query": raw["query"] * of_queries}
        used |= {"item": raw["item"] * factor, "union": largest * factor}
        cell = cells.sel(group=group)
        assert close(float(cell.std_error), math.sqrt(used[cluster]))
        assert close(float(cell.dof), g - 1)
        assert cell.verdict.item() in ("undervalued", "overvalued", "inconclusive")


@few
@given(logs(positions=False), st.sampled_from([STEP, 7 * STEP]))
def test_a_heavy_query_counts_by_what_the_estimate_is_without_it(log, epsilon):
    audit = audit_of(log, epsilon, cluster="query")
    found = audit.headline.std_error_by.sel(pairing_mode="symmetric", variance="query_cr3")
    for group in log.names:
        wanted = sides_oracle.sums(log, group, epsilon)
        shown = found.sel(group=group).item()
        if wanted is None or math.isnan(shown):
            continue
        clusters = {log.cluster[i] for i, _ in wanted.pairs}
        changes = []
        for label in clusters:
            rows = [row for row, own in enumerate(log.cluster) if own != label]
            named = {name: values for name, values in vars(log).items() if values is not None}
            rest = type(log)(**{name: [values[r] for r in rows] for name, values in named.items()})
            changes.append(wanted.estimate - sides_oracle.sums(rest, group, epsilon).estimate)
        n = len(clusters)
        assert close(shown**2, sum(change**2 for change in changes) * (n - 1) / n)


def log_of(ranking, scores=None):
    """The rows of a ranking as the oracle takes them."""
    member = {group: ranking.member(group) for group in ranking.groups}
    return oracle.Log(
        query=ranking.query_code.tolist(),
        score=ranking.score.tolist(),
        outcome=ranking.outcome.tolist(),
        groups=[frozenset(g for g in member if member[g][r]) for r in range(ranking.n_rows)],
        item=None if ranking.item_code is None else ranking.item_code.tolist(),
        position=None if ranking.position is None else ranking.position.tolist(),
    )


@pytest.mark.long
def test_windows_for_long_lists_give_the_same(monkeypatch):
    ranking = small_ranking(queries=12, size=25)
    options = {"pairing_modes": MODES, "threshold": 0.01, "epsilon": [0.0, 0.004, 0.01, 0.03]}
    options["progress"] = False
    names = ("query", "score", "outcome")
    columns = (ranking.query_code, ranking.score, ranking.outcome)
    frame = dict(zip(names, columns, strict=True)) | {"item": np.arange(ranking.n_rows)}
    frame |= {group: ranking.member(group) for group in ranking.groups}
    roles = {name: name for name in (*names, "item")}
    once = mpc.Ranking(frame, **roles, group=list(ranking.groups))
    wanted = mpc.audit(once, **options)
    of_wanted = wanted.headline.load(), wanted.curve.load()
    monkeypatch.setattr(sweep, "PAIR_COST", np.inf)
    monkeypatch.setattr(long_lists, "LEAST_PAIRS", 0)
    monkeypatch.setattr(long_lists, "PAIRS_PER_STEP", 0)
    monkeypatch.setattr(sums_over_items, "PAIRS_AT_ONCE", 7)
    found = mpc.audit(once, **options)
    for ours, theirs in zip((found.headline, found.curve), of_wanted, strict=True):
        for name in ("n_pairs", "n_queries", "n_items", "estimate", "std_error", "n_effective"):
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, atol=1e-12)


def test_the_band_goes_by_how_thresholds_move_together_over_queries():
    ranking = small_ranking(queries=25, size=10)
    grid = [0.0, 0.004, 0.01, 0.03]
    audit = mpc.audit(
        ranking, pairing_modes=["symmetric"], threshold=0.01, epsilon=grid, progress=False
    )
    log = log_of(ranking)
    moments = moments_by_rule(audit)[0]
    row, sums = moments.two_sided, audit._cross(0)[0][1]
    for g, group in enumerate(ranking.groups):
        scaling = moments.sides.scaled(moments.pairs[row].astype(float))
        own = type(scaling)(scaling.alpha[:, g], scaling.eta[:, g])
        index = np.arange(len(moments.edges[g]))
        from mpc_lab.inference.bands import covariance

        pairs = moments.pairs[row, g].astype(float)
        delta = moments.by["naive"].cu[row, g] / pairs
        found = covariance(pairs, delta, *sums.of(row, g, own, index))
        by_query = []
        for epsilon in moments.edges[g]:
            cell = sides_oracle.sums(log, group, epsilon)
            code = np.array([log.query[i] for i, _ in cell.pairs])
            by_query.append(np.bincount(code, cell.contribution, minlength=ranking.n_queries))
        np.testing.assert_allclose(found, np.array(by_query) @ np.array(by_query).T, atol=1e-12)
    assert np.isfinite(audit.curve.band_low.sel(group="g0")).any()


def test_a_side_in_few_queries_has_few_degrees_of_freedom():
    rng = np.random.default_rng(0)
    n = 400
    query = np.repeat(np.arange(n // 2), 2)
    score = np.tile([0.5, 0.505], n // 2)
    member = np.tile([True, False], n // 2)
    # In the first four queries alone is the group's item the upper one.
    member[:8] = ~member[:8]
    frame = {"q": query, "s": score, "y": rng.normal(size=n), "g": member, "i": np.arange(n)}
    cell = mpc.audit(
        frame, query="q", score="s", outcome="y", group=["g"], item="i",
        pairing_modes=["symmetric"], threshold=0.01, progress=False,
    ).headline.squeeze()  # fmt: skip
    assert 3 < float(cell.dof) < 8
    member[4:8] = ~member[4:8]
    fewer = mpc.audit(
        frame | {"g": member}, query="q", score="s", outcome="y", group=["g"], item="i",
        pairing_modes=["symmetric"], threshold=0.01, progress=False,
    ).headline.squeeze()  # fmt: skip
    assert float(fewer.n_effective) == pytest.approx(2.0)


def test_units_are_clusters_of_queries():
    ranking = small_ranking()
    log = replace(log_of(ranking), unit=(ranking.query_code // 3).tolist())
    frame = {"query": ranking.query_code, "unit": log.unit, "item": ranking.item_code}
    frame |= {"score": ranking.score, "outcome": ranking.outcome}
    frame |= {group: ranking.member(group) for group in ranking.groups}
    roles = {name: name for name in ("query", "unit", "item", "score", "outcome")}
    audit = mpc.audit(
        frame, **roles, group=list(ranking.groups), pairing_modes=["symmetric"], threshold=0.01,
        progress=False,
    )  # fmt: skip
    own = headline_moments(audit)[0]
    found = infer(own, cluster="union", level=0.95)
    for g, group in enumerate(ranking.groups):
        hold(found, (own.two_sided, g, 0), log, group, 0.01)


# ---- with logged positions


@some
@given(logs(positions=True), st.sampled_from([0, STEP, 7 * STEP]))
def test_place_cells_are_those_of_the_double_loops(log, epsilon):
    audit = audit_of(log, epsilon)
    own = headline_moments(audit)[0]
    found = infer(own, cluster="union", level=0.95)
    row = own.mode_names.index("symmetric")
    cells = audit.headline.sel(pairing_mode="symmetric", scoring_rule="baseline")
    for g, group in enumerate(log.names):
        hold(found, (row, g, 0), log, group, epsilon)
        kept, entries = sides_oracle.two_sides(log, group, epsilon)
        assert cells.n_pairs.values[g] == len(kept)
        assert cells.n_items.values[g] == len({log.item[row] for pair in kept for row in pair})
        wanted = sides_oracle.sums(log, group, epsilon)
        if wanted is not None:
            assert close(float(cells.place_overlap[g]), wanted.place_overlap)
        elif kept:
            assert cells.verdict.values[g] == "not estimable"
            one_way = len({entry.side for entry in entries}) == 1
            words = "the other way round" if one_way else "both ways round at the same places"
            assert words in cells.verdict_reason.values[g]


@few
@given(logs(positions=True))
def test_with_positions_the_sides_go_by_place_under_every_rule(log):
    audit = audit_of(log, scoring_rules=[mpc.Boosted(3 * STEP)])
    own = headline_moments(audit)[0]
    found = infer(own, cluster="union", level=0.95)
    row = own.mode_names.index("symmetric")
    for g, group in enumerate(log.names):
        boosted = [s + 3 * STEP * (group in m) for s, m in zip(log.score, log.groups, strict=True)]
        hold(found, (row, g, 0), log, group, 7 * STEP, boosted)


@few
@given(logs(positions=True))
def test_with_positions_the_curve_has_estimates(log):
    audit = audit_of(log)
    curve = audit.curve.sel(pairing_mode="symmetric", scoring_rule="baseline")
    for group in log.names:
        for epsilon in GRID:
            wanted = sides_oracle.sums(log, group, epsilon)
            ours = curve.estimate.sel(group=group, epsilon=epsilon).item()
            assert math.isnan(ours) if wanted is None else close(ours, wanted.estimate)
    assert np.isnan(curve.std_error).all()


@pytest.mark.parametrize("positions", [False, True])
@some
@given(data=st.data())
def test_the_place_effect_is_half_the_jump_of_two_lines(positions, data):
    log = data.draw(logs(positions=positions))
    audit = audit_of(log, 7 * STEP)
    cells = audit.headline.sel(scoring_rule="baseline")
    for group in log.names:
        wanted = sides_oracle.place_effect(log, group, 7 * STEP)
        shown = cells.place_effect.sel(group=group).values
        if wanted is None or math.isnan(shown[0]):
            assert np.isnan(shown).all()
            continue
        assert close(shown[0], wanted.estimate, 1e-8)
        assert (shown == shown[0]).all()
        g, used = wanted.effective(log, "union"), max(wanted.cr3(log).values())
        half = float(cells.place_effect_high.sel(group=group)[0]) - shown[0]
        from scipy import stats

        assert close(half, stats.t(max(g - 1, 1)).ppf(0.975) * math.sqrt(used), 1e-6)


def test_the_place_effect_is_known_where_it_can_be():
    ranking = placed_clicks()
    cells = mpc.audit(ranking, threshold=0.02, progress=False).headline.squeeze()
    assert cells.place_effect.isel(pairing_mode=0).item() > 0
    assert cells.place_effect_low.isel(pairing_mode=0).item() > 0


def placed_clicks(seed=0, queries=1500, size=10, lifted=0.0):
    """Clicks by 1/place of an honest score; some items of the group were lifted afterwards."""
    rng = np.random.default_rng(seed)
    worth = rng.uniform(0.2, 0.8, (queries, size))
    member = rng.random((queries, size)) < 0.4
    shown = worth + 0.15 * (member & (rng.random((queries, size)) < lifted))
    place = np.argsort(np.argsort(-shown, axis=1), axis=1) + 1
    clicks = rng.random((queries, size)) < worth / place
    frame = {"q": np.repeat(np.arange(queries), size), "s": worth.ravel(), "y": clicks.ravel()}
    frame |= {"g": member.ravel(), "place": place.ravel(), "i": np.arange(queries * size)}
    return mpc.Ranking(
        frame, query="q", score="s", outcome="y", group=["g"], position="place", item="i"
    )


def test_with_positions_symmetric_comes_first_by_default():
    audit = mpc.audit(placed_clicks(), progress=False)
    assert audit.headline.pairing_mode.values.tolist() == ["symmetric", "matched"]
    assert mpc.audit(small_ranking(), progress=False).headline.pairing_mode.values == ["matched"]


def test_where_all_items_were_lifted_the_shown_order_leaves_no_direction():
    cells = mpc.audit(placed_clicks(lifted=1.0), threshold=0.1, progress=False).headline.squeeze()
    assert cells.shown_above.sel(pairing_mode="matched") > 0.9
    matched = cells.sel(pairing_mode="matched")
    assert (matched.verdict.item(), matched.verdict_reason.item()) == (
        "inconclusive",
        "shown order",
    )
    symmetric = cells.sel(pairing_mode="symmetric")
    assert symmetric.verdict.item() not in ("undervalued", "overvalued")


def test_too_little_overlap_of_places_leaves_no_direction():
    audit = mpc.audit(placed_clicks(lifted=0.97), threshold=0.05, progress=False)
    cell = audit.headline.sel(pairing_mode="symmetric").squeeze()
    assert cell.place_overlap < 0.2
    assert cell.verdict_reason.item() in ("shown order", "interval covers 0")
    assert cell.verdict.item() == "inconclusive"


@pytest.mark.long
def test_a_large_threshold_costs_both_sides_together_little():
    ranking = mpc.datasets.synthetic(queries=200_000)
    audit = mpc.audit(
        ranking, groups=["1"], pairing_modes=["symmetric", "matched"], threshold=0.1,
        epsilon=[0.1], cluster="query", progress=False,
    )  # fmt: skip
    symmetric, matched = audit.headline.estimate.values.ravel()
    assert abs(symmetric - 0.06875) < 0.004
    assert abs(matched - 0.06875) > 0.04
