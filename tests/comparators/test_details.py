from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import mpc_lab as mpc
from helpers.strategies import boolean_ranking
from mpc_lab.comparators.base import Case
from mpc_lab.comparators.calibration import calibration_curves, calibration_gap, score_bins
from mpc_lab.comparators.exposure import exposure_ratios
from mpc_lab.comparators.inequalities import inequalities
from mpc_lab.comparators.pairwise_accuracy import pairwise_accuracy
from mpc_lab.comparators.skew import skews
from mpc_lab.inference.slices import by_segment
from mpc_lab.scoring.calibrated import isotonic


def test_bins_have_equal_counts_and_keep_ties_together():
    rng = np.random.default_rng(0)
    assert np.bincount(score_bins(rng.random(1000))).tolist() == [50] * 20
    at = score_bins(np.array([1.0] * 30 + [2.0] * 10), bins=4)
    assert at.tolist() == [0] * 30 + [3] * 10


def test_few_rows_leave_bins_empty():
    assert score_bins(np.array([3.0, 1.0, 2.0]), bins=20).max() < 20


def test_bins_are_at_least_one():
    with pytest.raises(mpc.MpcError, match="bins must be a whole number from 1 to 1,000; got 0"):
        score_bins(np.array([1.0]), bins=0)


def test_bins_without_both_sides_are_left_out_and_counted():
    score = np.arange(40.0)
    ranking = boolean_ranking(score, score % 3, np.arange(40) // 2, g=score < 4)
    found = calibration_gap(Case(ranking, "g"), bins=4)[0]
    assert found.left_out == 3
    assert found.inside - found.outside == pytest.approx(found.estimate, abs=1e-12)


def test_a_group_of_all_rows_has_no_calibration_gap():
    found = calibration_gap(Case(boolean_ranking([1.0, 2.0], [0, 1], g=[True, True]), "g"))[0]
    assert math.isnan(found.estimate)
    assert (found.flagged, found.reason) == (False, "no bin has rows of both sides")


def test_the_calibration_gap_covers_its_truth():
    # Both types of the synthetic example are calibrated: the truth is 0.
    covered = 0
    for seed in range(200):
        found = calibration_gap(Case(mpc.datasets.synthetic(queries=100, seed=seed), "1"))[0]
        covered += found.ci_low <= 0 <= found.ci_high
    # 95 % less four standard errors of 200 draws
    assert covered / 200 >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 200)


def test_accuracy_counts_score_ties_one_half():
    ranking = boolean_ranking([1, 1, 2], [3, 2, 1], g=[True, False, False])
    overall, inter, intra = pairwise_accuracy(Case(ranking, "g"))
    # (0 over 1: tied, half; 0 over 2: wrong) against (1 over 2: wrong)
    assert (overall.inside, overall.outside) == (0.25, 0.0)
    assert inter.inside == 0.25
    assert math.isnan(inter.outside)
    assert inter.reason == "no pairs of unequal outcomes on one side"
    assert math.isnan(intra.inside)


def test_a_long_list_is_counted_without_its_pairs():
    rng = np.random.default_rng(0)
    n = 200_000
    score, member = rng.normal(size=n), rng.random(n) < 0.5
    outcome = score + rng.normal(size=n)
    found = pairwise_accuracy(Case(boolean_ranking(score, outcome, g=member), "g"))[0]
    # Of two normal pairs with correlation ρ, a share 1/2 + arcsin(ρ)/π are in the same order.
    expected = 0.5 + math.asin(math.sqrt(0.5)) / math.pi
    assert found.inside == pytest.approx(expected, abs=0.005)


def test_merit_of_0_is_not_estimable():
    query = np.repeat(np.arange(6), 2)
    ranking = boolean_ranking(np.tile([1, 2], 6), np.tile([0, 1], 6), query, g=[True, False] * 6)
    exposure, treatment, impact = exposure_ratios(Case(ranking, "g"))
    assert exposure.estimate == pytest.approx(1 / math.log2(3))
    for measure in (treatment, impact):
        assert measure.reason == "total merit is not above 0"
        assert math.isnan(measure.estimate)


def test_queries_of_one_side_are_left_out_of_exposure():
    ranking = boolean_ranking([1, 2, 1], [1, 1, 1], ["a", "a", "b"], g=[True, False, True])
    assert exposure_ratios(Case(ranking, "g"))[0].left_out == 1


def test_logged_positions_are_the_ranks_of_exposure():
    columns = {"q": [1, 1], "s": [2.0, 1.0], "y": [1, 1], "g": [True, False], "p": [7, 3]}
    names = {"query": "q", "score": "s", "outcome": "y", "group": ["g"]}
    found = exposure_ratios(Case(mpc.Ranking(columns, **names, position="p"), "g"))[0]
    assert found.inside == pytest.approx(1 / math.log2(8))
    assert found.outside == pytest.approx(1 / math.log2(4))


def test_a_group_that_is_never_in_the_top_has_a_skew_of_minus_infinity():
    score = np.tile([3.0, 2.0, 1.0], 4)
    ranking = boolean_ranking(score, score, np.repeat(np.arange(4), 3), g=score == 1)
    found = skews(Case(ranking, "g", k=1))
    assert (found[0].estimate, found[0].reason) == (-math.inf, "none in the top")
    assert not found[0].flagged
    assert found[1].estimate == -math.inf
    assert found[2].estimate == pytest.approx(math.log(3 / 2))


def test_skew_is_flagged_where_the_top_is_filled_by_one_side():
    rng = np.random.default_rng(0)
    member = np.tile([True, False] * 3, 80)
    score = rng.random(480) + 0.5 * member
    ranking = boolean_ranking(score, score, np.repeat(np.arange(80), 6), g=member)
    skew, least, most, ndkl = skews(Case(ranking, "g", k=2))
    assert skew.says == "overvalued"
    assert least.flagged
    assert most.flagged
    assert least.estimate < 0 < most.estimate == skew.estimate
    assert most.ci_low < skew.ci_low
    assert ndkl.ci_low > 0
    assert not ndkl.flagged


@pytest.mark.parametrize("k", [0, 1.5, True])
def test_the_top_is_a_whole_number_of_places(k):
    with pytest.raises(mpc.MpcError, match="k must be a whole number from 1"):
        skews(Case(boolean_ranking([1.0], [1], g=[True]), "g", k=k))


def neighbours(n, gap, seed):
    """Return lists of two, the group's item above with probability 1/2 and better by `gap`."""
    rng = np.random.default_rng(seed)
    above = rng.random(n) < 0.5
    member = np.column_stack([above, ~above]).ravel()
    outcome = rng.normal(size=2 * n) + gap * member
    return boolean_ranking(np.tile([2.0, 1.0], n), outcome, np.repeat(np.arange(n), 2), g=member)


def test_the_joint_test_is_between_its_own_and_bonferroni():
    above, below, joint = inequalities(Case(neighbours(200, 0.0, 1), "g"))
    smallest = min(above.p_value, below.p_value)
    assert smallest <= joint.p_value <= 2 * smallest


def test_the_joint_test_is_seldom_wrong_and_often_right():
    rejected = {
        gap: sum(
            inequalities(Case(neighbours(100, gap, seed), "g"), draws=500)[2].flagged
            for seed in range(60)
        )
        for gap in (0.0, 1.5)
    }
    assert rejected[0.0] <= 60 * (0.05 + 3 * math.sqrt(0.05 * 0.95 / 60))
    assert rejected[1.5] == 60


def test_a_one_sided_p_value_is_that_of_the_mean_of_query_sums():
    ranking = neighbours(50, 0.3, 2)
    found = inequalities(Case(ranking, "g"))[1]
    first = ranking.member("g")[1::2]
    sums = np.where(first, ranking.outcome[0::2] - ranking.outcome[1::2], 0.0)
    test = stats.ttest_1samp(sums, 0, alternative="less")
    assert found.p_value == pytest.approx(test.pvalue, rel=1e-8)
    low, high = stats.ttest_1samp(sums, 0).confidence_interval()
    assert (found.ci_low, found.ci_high) == pytest.approx((low, high), rel=1e-8)


@pytest.fixture(scope="module")
def curves():
    return calibration_curves(mpc.datasets.synthetic(queries=1000), "1", draws=60)


def test_binned_curves_are_means_of_rows():
    ranking = mpc.datasets.synthetic(queries=300)
    found = calibration_curves(ranking, "1", bins=5, draws=2)["outside"]
    at = score_bins(ranking.score, 5)
    for b in range(5):
        rows = (at == b) & ~ranking.member("1")
        assert found.n_rows[b] == rows.sum()
        assert found.outcome[b] == pytest.approx(ranking.outcome[rows].mean(), abs=1e-12)
        assert found.score[b] == pytest.approx(ranking.score[rows].mean(), abs=1e-12)


def test_the_band_is_wider_than_the_intervals(curves):
    for curve in curves.values():
        known = np.isfinite(curve.band_low)
        assert known.sum() >= 18
        assert (curve.band_low[known] < curve.ci_low[known]).all()
        assert (curve.ci_high[known] < curve.band_high[known]).all()


def test_the_isotonic_curve_is_the_fit_of_all_rows(curves):
    ranking = mpc.datasets.synthetic(queries=1000)
    member = ranking.member("1")
    fit = dict(
        zip(
            ranking.score[member],
            isotonic(ranking.score[member], ranking.outcome[member]),
            strict=True,
        )
    )
    curve = curves["inside"]
    assert curve.isotonic == pytest.approx([fit[s] for s in curve.isotonic_score])
    assert (np.diff(curve.isotonic) >= 0).all()


def test_isotonic_intervals_hold_most_of_the_truth(curves):
    curve = curves["inside"]
    held = (curve.isotonic_low <= curve.isotonic_score) & (
        curve.isotonic_score <= curve.isotonic_high
    )
    # Inside a type the outcome is calibrated: its mean at score s is s.
    assert held.mean() > 0.8
    assert (curve.isotonic_low <= curve.isotonic_high).all()


def test_within_a_segment_the_example_is_not_calibrated():
    ranking = mpc.datasets.synthetic(queries=2000)
    inside = calibration_curves(ranking, "1", segment="u", draws=2)["inside"]
    whole = calibration_curves(ranking, "1", draws=2)["inside"]
    middle = slice(8, 12)
    assert (inside.band_low[middle] > inside.score[middle]).all()
    assert (whole.band_low[middle] < whole.score[middle]).all()
    assert inside.n_rows.sum() == (ranking.member("1") & (ranking.segment_code == 0)).sum()


def test_an_unknown_segment_names_the_near_match():
    ranking = mpc.datasets.synthetic(queries=5)
    with pytest.raises(mpc.MpcError, match="There is no segment 'w' in this ranking"):
        calibration_curves(ranking, "1", segment="w")


def test_segments_need_a_segment_column():
    ranking = boolean_ranking([1.0], [1], g=[True])
    for ask in (
        lambda: calibration_curves(ranking, "g", segment="u"),
        lambda: by_segment(ranking, "g", 1.0),
    ):
        with pytest.raises(mpc.MpcError, match="must have a segment column"):
            ask()


def test_segments_of_the_synthetic_example_differ():
    found = by_segment(mpc.datasets.synthetic(queries=60_000), "1", 0.02)
    assert found.segments == ("u", "v")
    # In the limit 0.4/4 and 0.2/4 by the design of the example.
    assert found.estimates.estimate[0] > found.estimates.estimate[1] > 0
    assert found.p_value < 0.01
    assert found.left_out == ()


def test_two_segments_are_tested_by_the_square_of_t():
    found = by_segment(mpc.datasets.synthetic(queries=3000), "1", 0.1)
    cells = found.estimates
    difference = cells.estimate[0] - cells.estimate[1]
    t = difference / math.hypot(*cells.std_error)
    assert found.statistic == pytest.approx(t**2, rel=1e-10)
    assert found.dof == (1.0, cells.dof.min())
    assert found.p_value == pytest.approx(2 * stats.t(cells.dof.min()).sf(abs(t)), rel=1e-8)


def test_the_gap_of_a_segment_is_that_of_its_own_queries():
    ranking = mpc.datasets.synthetic(queries=2000)
    found = by_segment(ranking, "1", 0.05)
    alone = ranking.subset(ranking.segment_code == 1)
    how = {"threshold": 0.05, "cluster": "query", "adjust": "none", "correction": "plain"}
    audit = mpc.audit(alone, groups=["1"], **how)
    assert found.estimates.estimate[1] == pytest.approx(audit.headline.estimate.item(), rel=1e-10)
    assert found.estimates.std_error[1] == pytest.approx(audit.headline.std_error.item(), rel=1e-8)
    assert found.n_pairs[1] == audit.headline.n_pairs.item()


def segmented(seed, units):
    """Return queries without any gap, in three segments; a unit has queries in all of them."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(90), 4)
    unit = query % 30
    outcome = rng.normal(size=360) + (rng.normal(size=30)[unit] * np.tile([1, -1], 180))
    log = {"q": query, "s": np.ones(360), "y": outcome, "u": unit, "seg": query // 30}
    log["g"] = np.tile([True, False], 180)
    names = {"query": "q", "score": "s", "outcome": "y", "group": ["g"], "segment": "seg"}
    return mpc.Ranking(log, **names, unit="u" if units else None)


def test_units_across_segments_keep_the_size_of_the_test():
    p = {
        u: [by_segment(segmented(s, u), "g", 0.0).p_value for s in range(80)] for u in (True, False)
    }
    # Shocks of units are common to all segments, so taking queries apart sees too much spread.
    assert np.mean(np.array(p[True]) < 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 80)
    assert np.mean(p[False]) > np.mean(p[True])


def test_a_segment_that_is_not_estimable_is_named():
    log = {"q": [1, 1, 2, 2, 3, 3, 4, 4], "s": [1.0] * 8, "y": [1, 0, 2, 0, 3, 1, 1, 1]}
    log |= {"g": [True, False] * 4, "seg": ["a"] * 6 + ["b", "b"]}
    names = {"query": "q", "score": "s", "outcome": "y", "group": ["g"], "segment": "seg"}
    found = by_segment(mpc.Ranking(log, **names), "g", 0.0)
    assert found.left_out == ("b",)
    assert math.isnan(found.p_value)
    assert found.n_queries.tolist() == [3, 1]
