"""``mpc.audit`` against the double loops of the oracle, on random logs full of ties."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import mpc_lab as mpc
from helpers import oracle
from helpers.oracle import Log
from helpers.strategies import GRID, STEP, boolean_ranking, calmly, logs, ranking_of

MODES = oracle.MODES
CELL = ("group", "scoring_rule", "pairing_mode")
COUNTS = ("n_pairs", "n_queries", "n_items")
NUMBERS = ("std_error", "ci_low", "ci_high", "p_value", "n_effective", "dof")

many, some, few = map(calmly, (100, 50, 20))

rules = st.one_of(
    st.sampled_from([0.01, 0.07, 0.3, 0.5, 0.55, 1.0]).map(lambda p: ("quantile", p)),
    st.integers(1, 3).map(lambda k: ("smallest", k)),
    st.sampled_from([0, STEP, 0.5]),
)


def threshold_of(rule):
    if not isinstance(rule, tuple):
        return rule
    return {"quantile": mpc.Quantile, "smallest": mpc.Smallest}[rule[0]](rule[1])


def audit_of(log, rule=0.5, *, item=True, **options):
    options = {"cluster": "query", "adjust": "none", "epsilon": GRID} | options
    return mpc.audit(
        ranking_of(log, item=item), pairing_modes=MODES, threshold=threshold_of(rule), **options
    )


def arrays(dataset, *dims):
    return {name: dataset[name].transpose(*dims, ...).values for name in dataset.data_vars}


def close(ours, theirs, tolerance=1e-10):
    if math.isnan(theirs) or math.isnan(ours):
        return math.isnan(theirs) and math.isnan(ours)
    return math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)


def compare(found, at, cell, where, tolerance=1e-10):
    """Hold one cell of a dataset against the oracle's."""
    for name in COUNTS:
        assert found[name][at] == getattr(cell, name), (name, *where)
    assert close(found["estimate"][at], cell.estimate), ("estimate", *where)
    for name in NUMBERS:
        if cell.estimable or name not in ("n_effective", "dof"):
            assert close(found[name][at], getattr(cell, name), tolerance), (name, *where)


def headline_cells(log, rule, cluster, level=0.95, known=True, correction="cr3"):
    """Yield (group, mode, ε, sums, cell) of the headline, by double loops."""
    seen = log if known else replace(log, item=None)
    for group in log.names:
        epsilon = oracle.threshold(log, group, rule)
        for mode in MODES:
            sums = oracle.sums(seen, oracle.pairs(log, group, mode, epsilon))
            yield group, mode, epsilon, sums, oracle.cell(sums, cluster, level, correction)


def check_headline(log, rule, cluster, level=0.95, *, correction="cr3", **options):
    options = {"cluster": cluster, "level": level, "correction": correction} | options
    hold_headline(audit_of(log, rule, **options), log, rule, cluster, level, correction)


def hold_headline(audit, log, rule, cluster, level=0.95, correction="cr3", tolerance=1e-10):
    found = arrays(audit.headline, *CELL)
    cells = headline_cells(log, rule, cluster, level, correction=correction)
    for group, mode, epsilon, _, cell in cells:
        at = log.names.index(group), 0, MODES.index(mode)
        assert np.array_equal(found["epsilon"][at], epsilon, equal_nan=True), (group, mode)
        compare(found, at, cell, (group, mode), tolerance)


def check_curve(log, cluster, correction="cr3", **options):
    audit = audit_of(log, cluster=cluster, correction=correction, **options)
    hold_curve(audit, log, cluster, correction)


def hold_curve(audit, log, cluster, correction="cr3", tolerance=1e-10):
    found = arrays(audit.curve, "group", "epsilon", *CELL[1:])
    assert audit.curve["epsilon"].values.tolist() == GRID
    for g, group in enumerate(log.names):
        for k, epsilon in enumerate(GRID):
            for m, mode in enumerate(MODES):
                sums = oracle.sums(log, oracle.pairs(log, group, mode, epsilon))
                cell = oracle.cell(sums, cluster, correction=correction)
                compare(found, (g, k, 0, m), cell, (group, epsilon, mode), tolerance)


@many
@given(logs(), rules, st.sampled_from([0.5, 0.9, 0.95]))
def test_headline_clustered_by_query(log, rule, level):
    check_headline(log, rule, "query", level)


@some
@given(logs())
def test_curve_clustered_by_query(log):
    check_curve(log, "query")


@some
@given(logs(), rules, st.sampled_from(["query", "item", "union"]))
def test_the_plain_correction_is_that_of_version_0_1(log, rule, cluster):
    check_headline(log, rule, cluster, correction="plain")
    check_curve(log, cluster, "plain")


@few
@given(logs(), rules)
def test_headline_and_curve_without_clustering(log, rule):
    check_headline(log, rule, "naive")
    check_curve(log, "naive")


@many
@given(logs(), rules, st.sampled_from(["item", "union"]))
def test_headline_clustered_by_item_and_union(log, rule, cluster):
    check_headline(log, rule, cluster)


@some
@given(logs(), st.sampled_from(["item", "union"]))
def test_curve_clustered_by_item_and_union(log, cluster):
    check_curve(log, cluster)


@pytest.mark.parametrize("cluster", oracle.FAMILIES)
@few
@given(log=logs(outcomes="awkward"))
def test_outcomes_that_round(cluster, log):
    check_headline(log, ("quantile", 0.5), cluster)


def on_days(log, days):
    """Cut a log into days: whole queries, and the queries of a unit together."""
    day = [label % days for label in (log.query if log.unit is None else log.unit)]
    for k in range(days):
        rows = [row for row, other in enumerate(day) if other == k]
        columns = {name: values for name, values in vars(log).items() if values is not None}
        yield Log(**{name: [values[row] for row in rows] for name, values in columns.items()})


@some
@given(logs(), st.integers(2, 3), st.sampled_from(oracle.FAMILIES))
def test_days_that_are_pooled_are_one_log(log, days, cluster):
    parts = list(on_days(log, days))
    assume(all(part.query and any(part.groups) for part in parts))
    # Of two days with the same numbers, one is taken for the other.
    assume(len({ranking_of(part).fingerprint() for part in parts}) == days)
    # Items are counted where clustering needs them.
    seen = log if cluster in ("item", "union") else replace(log, item=None)
    # Of queries with at most 1/32 of the pairs CR3 is summed up to a relative error of 2e-4.
    for correction, tolerance in (("plain", 1e-10), ("cr3", 2e-4)):
        options = {"cluster": cluster, "correction": correction}
        pooled = mpc.pool([audit_of(part, **options) for part in parts])
        hold_headline(pooled, seen, 0.5, cluster, 0.95, correction, tolerance)
        hold_curve(pooled, seen, cluster, correction, tolerance)


def check_rule(log, scoring_rule, scores_of, **columns):
    """Hold the headline under one scoring rule against the oracle given the rule's scores."""
    audit = mpc.audit(
        ranking_of(log, **columns),
        scoring_rules=[scoring_rule],
        pairing_modes=MODES,
        threshold=mpc.Quantile(0.3),
        cluster="query",
        adjust="none",
    )
    found = arrays(audit.headline, *CELL)
    for g, group in enumerate(log.names):
        scores = scores_of(group)
        epsilon = oracle.threshold(log, group, ("quantile", 0.3), scores)
        for m, mode in enumerate(MODES):
            assert np.array_equal(found["epsilon"][g, 0, m], epsilon, equal_nan=True), (group, mode)
            sums = oracle.sums(log, oracle.pairs(log, group, mode, epsilon, scores))
            compare(found, (g, 0, m), oracle.cell(sums, "query"), (group, mode))


@pytest.mark.parametrize(("rule", "sign"), [("Boosted", 1), ("Demoted", -1)])
@few
@given(log=logs(), steps=st.integers(0, 12))
def test_boosts_move_the_items_of_the_group(rule, sign, log, steps):
    boost = sign * steps * STEP
    check_rule(
        log,
        getattr(mpc, rule)(steps * STEP),
        lambda group: [
            s + boost * (group in m) for s, m in zip(log.score, log.groups, strict=True)
        ],
    )


@few
@given(logs(), st.randoms(use_true_random=False))
def test_another_column_of_scores_has_its_own_thresholds_and_neighbours(log, random):
    scores = [random.randrange(6) * STEP for _ in log.score]
    check_rule(log, mpc.Column("other"), lambda group: scores, other=scores)


@few
@given(logs(groups=70, units=False))
def test_more_groups_than_one_mask_holds(log):
    check_headline(log, ("quantile", 0.3), "query")


@some
@given(logs(), st.sampled_from([("quantile", 0.07), ("smallest", 2)]))
def test_tie_inflation(log, rule):
    found = audit_of(log, rule).headline["tie_inflation"].sel(pairing_mode="matched").values
    expected = [[oracle.tie_inflation(log, group, rule)] for group in log.names]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@some
@given(logs(), rules)
def test_standard_errors_of_every_family(log, rule):
    found = audit_of(log, rule, cluster="union").headline["std_error_by"]
    shown = found.transpose(*CELL, "variance").sel(variance=list(oracle.FAMILIES)).values
    for group, mode, _, sums, _ in headline_cells(log, rule, "query"):
        at = log.names.index(group), 0, MODES.index(mode)
        for family, value in zip(oracle.FAMILIES, shown[at], strict=True):
            plain = oracle.cell(sums, family, correction="plain")
            assert close(value, plain.std_error), (family, group, mode)


@some
@given(logs(), rules)
def test_what_the_heaviest_query_makes_up(log, rule):
    headline = audit_of(log, rule, cluster="query").headline.transpose(*CELL, ...)
    for group, mode, _, sums, cell in headline_cells(log, rule, "query"):
        at = log.names.index(group), 0, MODES.index(mode)
        for name in ("largest_query_share", "heavy_share"):
            wanted = getattr(sums, name)
            found = float(headline[name].values[at])
            assert close(found, math.nan if wanted is None else float(wanted)), (name, group, mode)
        corrected = headline["std_error_by"].sel(variance="query_cr3").values[at]
        assert close(float(corrected), cell.std_error)


@pytest.mark.parametrize("cluster", oracle.FAMILIES)
def test_standard_errors_are_labelled_by_all_families(cluster):
    log = Log(
        [1, 1, 2, 2], [0.0] * 4, [1, 0, 2, 0], [frozenset("a"), frozenset()] * 2, [1, 2, 1, 3]
    )
    headline = audit_of(log, cluster=cluster).headline
    named = ["naive", "query", "item", "producer", "union", "query_cr3"]
    assert headline["variance"].values.tolist() == named


@few
@given(logs(), rules)
def test_variance_from_names_the_largest(log, rule):
    found = audit_of(log, rule, cluster="union").headline["variance_from"].transpose(*CELL)
    for group, mode, _, sums, cell in headline_cells(log, rule, "union"):
        if cell.estimable:
            at = log.names.index(group), 0, MODES.index(mode)
            assert found.values[at] == oracle.variance_from(sums), (group, mode)


@few
@given(logs(), rules)
def test_auto_is_union_with_items_and_query_without(log, rule):
    for item, cluster in ((True, "union"), (False, "query")):
        audit = audit_of(log, rule, item=item, cluster="auto")
        found = arrays(audit.headline, *CELL)
        for group, mode, _, _, cell in headline_cells(log, rule, cluster, known=item):
            compare(found, (log.names.index(group), 0, MODES.index(mode)), cell, (group, mode))


@few
@given(logs(), rules)
def test_smallest_detectable_effect(log, rule):
    found = arrays(audit_of(log, rule).headline, *CELL)
    for (group, mode), sides in sides_of(log, rule).items():
        at = log.names.index(group), 0, MODES.index(mode)
        assert close(found["mde"][at], oracle.bracket_mde(sides)), (group, mode)


def sides_of(log, rule, level=0.95):
    """Return the cells that the verdict of each (group, mode) rests on."""
    cells = {(g, mode): cell for g, mode, _, _, cell in headline_cells(log, rule, "query", level)}
    both = ("matched", "mirrored")
    return {
        (g, mode): [cells[g, side] for side in (both if mode in both else (mode,))]
        for g, mode in cells
    }


def verdicts_of(log, rule, tolerance):
    """Return verdict and reason by (group, mode): mirrored carries that of matched."""
    return {
        cell: oracle.verdict(sides[0], sides[-1], tolerance)
        for cell, sides in sides_of(log, rule, 0.6).items()
    }


@some
@given(logs(), rules)
def test_brackets_are_hulls_of_both_sides(log, rule):
    found = arrays(audit_of(log, rule, level=0.6).headline, *CELL)
    for (group, mode), sides in sides_of(log, rule, 0.6).items():
        at = log.names.index(group), 0, MODES.index(mode)
        known = all(side.estimable for side in sides)
        low = min(side.ci_low for side in sides) if known else oracle.NAN
        high = max(side.ci_high for side in sides) if known else oracle.NAN
        one_sign = len({np.sign(side.estimate) for side in sides}) == 1
        p = max(side.p_value for side in sides) if one_sign else 1.0
        assert close(found["bracket_low"][at], low), (group, mode)
        assert close(found["bracket_high"][at], high), (group, mode)
        assert close(found["bracket_p_adjusted"][at], p if known else oracle.NAN), (group, mode)


@some
@given(logs(), rules, st.sampled_from([None, 0.25, 2.0]))
def test_verdicts_and_their_reasons(log, rule, tolerance):
    headline = audit_of(log, rule, level=0.6, tolerance=tolerance).headline.transpose(*CELL, ...)
    for (group, mode), (verdict, reason) in verdicts_of(log, rule, tolerance).items():
        at = log.names.index(group), 0, MODES.index(mode)
        assert headline["verdict"].values[at] == verdict, (group, mode)
        if verdict == "inconclusive":
            assert headline["verdict_reason"].values[at] == reason, (group, mode)


@pytest.mark.parametrize("modes", [("matched",), ("mirrored",), ("adjacent",)])
@few
@given(log=logs())
def test_verdicts_do_not_depend_on_the_modes_asked_for(modes, log):
    alone = mpc.audit(ranking_of(log), pairing_modes=modes, cluster="query", adjust="none")
    full = mpc.audit(ranking_of(log), pairing_modes=MODES, cluster="query", adjust="none")
    wanted = full.headline.sel(pairing_mode=list(modes))
    assert alone.headline["verdict"].equals(wanted["verdict"])


@few
@given(logs(), rules)
def test_without_multiplicity_the_adjusted_numbers_are_the_plain_ones(log, rule):
    headline = audit_of(log, rule).headline
    for plain in ("ci_low", "ci_high"):
        np.testing.assert_array_equal(headline[f"{plain}_adjusted"].values, headline[plain].values)
    np.testing.assert_array_equal(headline["p_adjusted"].values, headline["p_value"].values)


@few
@given(logs(units=False), st.sampled_from(MODES))
def test_regression_has_the_query_standard_error(log, mode):
    audit = audit_of(log, 4 * STEP)
    for group in log.names:
        sums = oracle.sums(log, oracle.pairs(log, group, mode, 4 * STEP))
        if sums.n_clusters > 1 and oracle.estimable(sums, "query"):
            fit = audit.regression(group, pairing_mode=mode)
            assert fit.params.iloc[0] == pytest.approx(float(sums.estimate), abs=1e-10)
            plain = oracle.cell(sums, "query", correction="plain")
            assert fit.bse.iloc[0] == pytest.approx(plain.std_error, abs=1e-10)


@few
@given(logs(units=True))
def test_regression_clusters_by_unit_where_there_is_one(log):
    audit = audit_of(log, 4 * STEP)
    for group in log.names:
        sums = oracle.sums(log, oracle.pairs(log, group, "matched", 4 * STEP))
        if oracle.estimable(sums, "query"):
            fit = audit.regression(group)
            plain = oracle.cell(sums, "query", correction="plain")
            assert fit.bse.iloc[0] == pytest.approx(plain.std_error, abs=1e-10)


@few
@given(logs(), st.sampled_from(MODES))
def test_listed_pairs_are_the_pairs(log, mode):
    audit = audit_of(log, 4 * STEP)
    for group in log.names:
        listed = audit.pairs(group, pairing_mode=mode)
        kept = oracle.pairs(log, group, mode, 4 * STEP)
        gaps = sorted(abs(log.score[i] - log.score[j]) for i, j in kept)
        assert sorted(listed["distance"].abs()) == gaps


@few
@given(logs(), rules)
def test_the_default_grid_is_round_numbers_about_the_thresholds(log, rule):
    thresholds = [oracle.threshold(log, group, rule) for group in log.names]
    assume(any(value > 0 for value in thresholds))
    ties = any(oracle.pairs(log, group, "matched", 0.0) for group in log.names)
    grid = audit_of(log, rule, epsilon=None).curve["epsilon"].values
    assert grid.tolist() == oracle.default_grid(thresholds, ties)


def test_quantile_is_exact_in_decimals():
    score = np.arange(101) * STEP  # one item of g at the bottom: 100 gaps, the k-th is k steps
    member = np.arange(101) == 0
    ranking = boolean_ranking(score, np.zeros(101), g=member)
    for p, wanted in ((0.07, 7), (0.29, 29), (0.57, 57), (0.071, 8)):
        headline = mpc.audit(ranking, threshold=mpc.Quantile(p), cluster="query").headline
        assert headline["epsilon"].item() == wanted * STEP
