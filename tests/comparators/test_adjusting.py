"""Rivals are flagged by Holm over the groups of each measure, and noise is not explained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

import mpc_lab as mpc
from mpc_lab.comparators.base import Case
from mpc_lab.comparators.registry import adjust, compare, explain
from null_rivals import AT_MOST_5, SILENT, bounded, measured, null_log

GROUPS = ("a", "b", "c", "d")


def biased_log(seed=0, queries=150):
    """Return lists in which group "a" has higher outcomes at every score, a little also "b"."""
    rng = np.random.default_rng(seed)
    n = 8 * queries
    group = rng.choice(list(GROUPS), n)
    score = rng.random(n)
    outcome = score + 0.3 * (group == "a") + 0.06 * (group == "b") + 0.3 * rng.normal(size=n)
    columns = {"query": np.arange(n) // 8, "score": score, "outcome": outcome, "group": group}
    return mpc.Ranking(columns, **{name: name for name in columns})


@pytest.fixture(scope="module")
def audit():
    return mpc.audit(biased_log(), threshold=0.1, epsilon=[0.1], progress=False)


@pytest.fixture(scope="module")
def found(audit):
    return audit.compare(k=3)


def test_every_measure_is_adjusted_over_its_groups_by_itself(found):
    for measure in found.measure.values.tolist()[1:]:
        one = found.sel(measure=measure)
        p = one.p_value.values
        if np.isnan(p).all():
            assert not one.flagged.any()
            assert np.isnan(one.p_adjusted).all()
            continue
        expected = multipletests(p, method="holm")[1]
        np.testing.assert_allclose(one.p_adjusted, expected, rtol=1e-12)
        assert (one.flagged == (expected <= 0.05)).all(), measure


def test_intervals_are_those_of_a_case_at_the_level_of_bonferroni(audit, found):
    strict = compare(Case(audit.ranking, "c", k=3, level=1 - 0.05 / len(GROUPS)))
    for one in strict:
        cell = found.sel(group="c", measure=one.name)
        if np.isfinite(cell.p_value) and not cell.flagged:
            ends = (cell.ci_low_adjusted.item(), cell.ci_high_adjusted.item())
            assert ends == pytest.approx((one.ci_low, one.ci_high), rel=1e-6, nan_ok=True), one.name


def test_a_flag_of_a_two_sided_test_is_an_adjusted_interval_without_the_null(found):
    one_sided = ["inequality_group_above", "inequality_group_below", "inequalities_joint"]
    two_sided = [m for m in found.measure.values[1:].tolist() if m not in one_sided]
    part = found.sel(measure=two_sided)
    apart = (part.ci_low_adjusted > part.null) | (part.ci_high_adjusted < part.null)
    reaches = (part.ci_low_adjusted < part.null) & (part.ci_high_adjusted > part.null)
    assert not (apart & ~part.flagged).any()
    assert not (reaches & part.flagged).any()
    assert part.flagged.any()


@pytest.mark.long
def test_pairwise_accuracy_is_tested_by_the_spread_where_both_sides_are_alike():
    ranking = null_log(np.random.default_rng(2), informative=True)
    one = compare(Case(ranking, "g0"))[3]
    assert one.name == "pairwise_accuracy_intra"
    rows = ranking.to_frame().assign(member=ranking.member("g0"))
    sums = []
    for _, listed in rows.groupby("query"):
        right, total = np.zeros(2), np.zeros(2)
        for a in listed.itertuples():
            for b in listed.itertuples():
                if a.outcome > b.outcome and a.member == b.member:
                    right[int(a.member)] += a.score > b.score
                    total[int(a.member)] += 1
        sums.append((right, total))
    right, total = (np.array([query[k] for query in sums]) for k in (0, 1))
    inside, outside = right.sum(axis=0)[::-1] / total.sum(axis=0)[::-1]
    both = right.sum() / total.sum()
    psi = ((right - both * total) / total.sum(axis=0)) @ [-1, 1]
    queries = (total.sum(axis=1) > 0).sum()
    se = np.sqrt((psi**2).sum() * queries / (queries - 1))
    effective = (total.sum(axis=0) ** 2 / (total**2).sum(axis=0)).min()
    expected = 2 * stats.t(effective - 1).sf(abs(inside - outside) / se)
    assert one.p_value == pytest.approx(expected, rel=1e-9)


def test_the_p_value_of_an_extreme_skew_is_where_its_interval_reaches_0():
    ranking = biased_log(3)
    boosted = ranking.score + 0.1 * ranking.member("a")
    found = {one.name: one for one in compare(Case(ranking, "a", k=3, scores=boosted))}
    for name in ("min_skew@3", "max_skew@3"):
        one = found[name]
        assert 0 < one.p_value < 1
        nearest = min(np.abs(one.interval(one.p_value)))
        assert nearest == pytest.approx(0, abs=1e-9)
        assert one.flagged == (one.p_value < 0.05)


def test_asking_for_one_group_changes_nothing(audit, found):
    alone = audit.compare(["b"], k=3)
    assert alone.equals(found.sel(group=["b"]))


def test_a_flag_that_chance_would_raise_gets_no_reason():
    every = adjust([compare(Case(biased_log(1), group, k=3)) for group in GROUPS])
    quiet = [replace(one, flagged=False, says="") for one in every[2]]
    loud = replace(quiet[0], flagged=True, says="undervalued", p_overall=0.2)
    one = explain("c", SILENT, [loud, *quiet[1:]])
    assert one.agree
    assert one.by_chance == ("calibration_gap",)
    assert one.sentence == (
        "MPC does not flag it, and no measure contradicts it by more than chance for group 'c': "
        "the calibration gap flags it, as may happen by chance among so many tests."
    )
    sure = explain("c", SILENT, [replace(loud, p_overall=0.01), *quiet[1:]])
    assert not sure.agree
    assert "compares items of all queries" in sure.sentence


def test_a_rival_that_nearly_says_the_same_contradicts_nothing():
    every = adjust([compare(Case(biased_log(1), group, k=3)) for group in GROUPS])
    quiet = replace(every[1][0], flagged=False, says="", leans="undervalued", p_value=0.03)
    says = replace(SILENT, flagged=True, says="undervalued", leans="undervalued")
    assert explain("b", says, [quiet]).agree
    assert not explain("b", says, [replace(quiet, leans="overvalued")]).agree
    assert not explain("b", says, [replace(quiet, p_value=0.3)]).agree


def test_a_group_of_one_log_is_its_own_family():
    log = null_log(np.random.default_rng(1), informative=True)
    plain = compare(Case(log, "g0", k=3))
    for before, after in zip(plain, adjust([plain])[0], strict=True):
        assert after.flagged == before.flagged
        assert after.p_adjusted == pytest.approx(before.p_value, nan_ok=True)


@pytest.mark.long
def test_no_measure_flags_null_logs_above_its_level_and_noise_is_not_explained():
    found = [measured(False, 9000 + seed) for seed in range(50)]
    before, after = (np.array([one[k] for one in found]) for k in (1, 2))
    limit = AT_MOST_5._replace(errors=4)
    for rate in after.mean(axis=0):
        assert bounded(float(rate), 50, limit)[0]
    assert bounded(float(np.mean([one[3] for one in found])), 50, limit)[0]
    assert before.any(axis=1).mean() > 0.5
