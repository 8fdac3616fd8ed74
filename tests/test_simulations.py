"""Does the inference keep its promises? Small seeded simulations; the full ones are benchmarks."""

from __future__ import annotations

import numpy as np
import pytest

import enough_coverage
import estimands
import heavy_coverage
import mpc_lab as mpc
import places
import producers
import queries_needed
import terms
import within_tolerance
from repeated_looks import OUTCOMES, drawn, looks
from simulated import (
    band_over,
    covers,
    curve_grid,
    overlapping_groups,
    rejections,
    shared_catalogue,
    source_of,
    sums,
    verdicts,
    without_bias,
)

pytestmark = pytest.mark.long


def four_errors(rate, repetitions):
    return 4 * np.sqrt(rate * (1 - rate) / repetitions)


def sources(draw, repetitions, **options):
    for seed in range(repetitions):
        yield source_of(draw(np.random.default_rng(7000 + seed), **options))


@pytest.fixture(scope="module")
def hits():
    """Whether intervals hold the truth where items have shocks, by how pairs are clustered."""
    logs = sources(shared_catalogue, 200, item_sd=0.5)
    found = [covers(sums(log, [0.05]), 0.0) for log in logs]
    return {name: np.array([one[name][0] for one in found], dtype=bool) for name in found[0]}


def test_union_covers_where_queries_share_items(hits):
    assert abs(hits["union"].mean() - 0.95) <= four_errors(0.95, 200)


def test_clustering_by_query_does_not_cover_where_queries_share_items(hits):
    assert hits["query"].mean() < 0.85
    assert hits["naive"].mean() < hits["query"].mean()


def test_union_covers_where_items_have_sellers_and_these_are_named():
    """The full study is benchmarks/producers.py."""
    by_query, by_item, by_producer = np.mean([producers.held(seed) for seed in range(50)], axis=0)
    assert by_producer >= 0.95 - four_errors(0.95, 50)
    assert by_item < 0.85
    assert by_query < by_item


def test_union_covers_with_five_items_in_the_group():
    logs = sources(shared_catalogue, 100, item_sd=0.5, in_group=5)
    held = [covers(sums(log, [0.05]), 0.0)["union"][0] for log in logs]
    assert np.mean(held) >= 0.95 - four_errors(0.95, 100)


def test_the_band_covers_the_whole_curve_and_is_narrower_than_bonferroni():
    found = [band_over(log, curve_grid(log)) for log in sources(shared_catalogue, 60, item_sd=0.5)]
    held = [((one["band"][0] <= 0) & (one["band"][1] >= 0)).all() for one in found]
    width = {
        name: np.mean([high - low for low, high in (one[name] for one in found)])
        for name in found[0]
    }
    assert np.mean(held) >= 0.95 - four_errors(0.95, 60)
    assert width["pointwise"] < width["band"] < width["Bonferroni"]


def test_adjusted_families_rarely_err_where_no_group_has_a_gap():
    logs = sources(overlapping_groups, 60, item_sd=0.5)
    found = [rejections(log, 0.05) for log in logs]
    for method in ("holm", "romano_wolf"):
        rate = np.mean([one[method].any() for one in found])
        assert rate <= 0.05 + four_errors(0.05, 60)
    assert np.mean([one["none"].any() for one in found]) > 0.3


def test_romano_wolf_rejects_whatever_holm_rejects_and_more():
    logs = sources(overlapping_groups, 30, item_sd=0.5, effect=0.3)
    found = [rejections(log, 0.05) for log in logs]
    holm, romano_wolf = (np.array([one[m] for one in found]) for m in ("holm", "romano_wolf"))
    assert (romano_wolf >= holm).all()
    assert romano_wolf.sum() > holm.sum()


def test_a_ranker_without_bias_is_rarely_called_biased():
    found = [verdicts(sums(log, [0.005, 0.05, 1.0])) for log in sources(without_bias, 100)]
    called = np.isin([verdict for verdict, _ in found], ["undervalued", "overvalued"])
    assert (called.any(axis=2).mean(axis=0) <= 0.05 + four_errors(0.05, 100)).all()
    # at the widest threshold every interval is below 0, and only its mirror image holds it back
    assert all((reason[2] == "bracket").all() for _, reason in found)


def test_a_gap_as_large_as_the_tolerance_is_rarely_called_within_at_any_threshold():
    found = [within_tolerance.called_within(0.05, seed) for seed in range(100)]
    alone, verdict = np.mean(found, axis=0).T
    assert (verdict <= 0.025 + four_errors(0.025, 100)).all()
    # matched pairs alone are pushed down by what outcomes rise with the score
    assert alone[2] > 0.8
    assert alone[3] == 1


def test_a_log_of_the_planned_size_finds_the_gap_as_often_as_planned():
    alone, adjusted = queries_needed.planned_sizes()
    by_itself = np.array([queries_needed.found_in(alone, seed) for seed in range(100)])
    by_family = np.array([queries_needed.found_in(adjusted, seed) for seed in range(100)])
    assert by_itself[:, 0].mean() >= 0.8 - four_errors(0.8, 100)
    assert by_family[:, 1].mean() >= 0.8 - four_errors(0.8, 100)
    # The size for one group is too small for the family: the adjusted one is no duplicate of it.
    assert by_itself[:, 1].mean() < 0.8


@pytest.mark.parametrize("outcome", [name for name in OUTCOMES if name != "normal"])
@pytest.mark.parametrize("rate", [2.0, 0.05])
def test_bets_on_bounded_outcomes_hardly_ever_miss_at_any_look(outcome, rate):
    found = [looks(drawn, outcome, rate, 2, seed)[0] for seed in range(50)]
    for name in ("rows", "sums"):
        assert np.mean([ever[name] for ever in found]) <= 0.05 + four_errors(0.05, 50)
    # With 0.05 pairs a query it misses rare symmetric outcomes in only a tenth of 1,000 runs.
    if rate == 2.0:
        assert np.mean([ever["fixed"] for ever in found]) > 0.2


def test_the_asymptotic_sequence_hardly_ever_misses_normal_outcomes():
    found = [looks(drawn, "normal", 0.2, 10, seed)[0] for seed in range(50)]
    assert np.mean([ever["asymptotic"] for ever in found]) <= 0.05 + four_errors(0.05, 50)


@pytest.mark.parametrize("name", [name for name in heavy_coverage.DESIGNS if "money" not in name])
def test_intervals_cover_where_few_queries_or_items_carry_the_pairs(name):
    """The full study is benchmarks/heavy_coverage.py."""
    seen = np.array([heavy_coverage.seen(heavy_coverage.DESIGNS[name], k) for k in range(50)])
    corrected, _, ratio = np.nanmean(seen, axis=0)
    assert np.isfinite(seen[:, 0]).sum() >= 45
    assert corrected >= 0.93 - four_errors(0.93, 50)
    assert ratio > 1


@pytest.mark.parametrize("name", enough_coverage.DESIGNS)
def test_intervals_cover_on_small_logs_whose_threshold_is_enough(name):
    """The full study is benchmarks/enough_coverage.py."""
    design = enough_coverage.DESIGNS[name]
    held, _, short = np.array([enough_coverage.seen(design, k) for k in range(50)]).T
    assert np.isfinite(held).sum() >= 45
    assert np.nanmean(held) >= 0.93 - four_errors(0.93, 50)
    # The threshold is one that was widened until there was enough, but where that is too far.
    assert (short.mean() > 0.9) == (name in enough_coverage.TOO_FEW)


def test_signs_and_caps_cover_money_with_a_long_tail_and_means_do_not():
    held = np.array([terms.covered(9000 + seed) for seed in range(100)])[:, :, 0].mean(axis=0)
    mean, cap, sign = held
    assert mean < 0.93
    for rate in (cap, sign):
        assert rate >= 0.95 - four_errors(0.95, 100)


def test_a_gap_on_a_larger_scale_of_scores_is_found_in_units_of_each_query():
    found = np.array([terms.detected(9000 + seed) for seed in range(40)]).mean(axis=0)
    by_score, by_spread, by_place = found
    assert by_score < 0.2
    assert by_spread > 2 * by_score
    assert by_place > 0.8


@pytest.mark.parametrize("design", estimands.DESIGNS)
def test_queries_and_root_cover_where_lists_are_of_unequal_length(design):
    held = np.mean([estimands.covered(design, 9000 + seed) for seed in range(50)], axis=0)
    for rate in held[1:]:
        assert rate >= 0.95 - four_errors(0.95, 50)


def test_a_sample_with_weights_covers_the_whole_log():
    held = np.mean([estimands.sampled(9000 + k) for k in range(50)], axis=0)
    for rate in held[:3]:
        assert rate >= 0.95 - four_errors(0.95, 50)


def shown_by(study, design, logs=50):
    """Return what the first logs of a design show, as named columns."""
    return all_shown_by((study,), design, logs)[study]


def all_shown_by(studies, design, logs=50):
    """Return what several studies see in the same logs, each of which is drawn once."""
    seen = [[places.CALLS[study](design, seed) for study in studies] for seed in range(logs)]
    return {
        study: dict(zip(places.NAMES[study], np.array(rows).T, strict=True))
        for study, rows in zip(studies, zip(*seen, strict=True), strict=True)
    }


def named(designs):
    return pytest.mark.parametrize("design", designs, ids=lambda one: " ".join(one.cells))


AT_A_TIE = [design for _, design in places.STUDIES["tie"]]


@named(places.HONEST)
def test_symmetric_pairs_and_the_middle_of_the_jump_call_an_honest_ranker_honest(design):
    studies = ("headline", "tie") if design in AT_A_TIE else ("headline",)
    shown = all_shown_by(studies, design)
    seen = shown["headline"]
    assert seen["symmetric"].mean() <= 0.05 + four_errors(0.05, 50)
    assert abs(seen["estimate"].mean()) <= 4 * seen["estimate"].std() / np.sqrt(50)
    # Two of the benchmark's twelve large logs: off by a tenth of the error of a small one.
    truth = places.place_effect(design, drawn=2)
    covers = places.covered(seen["low"], seen["high"], truth)
    assert covers >= (0.95 if design.clicks == "none" else 0.93) - four_errors(0.05, 50)
    if design in AT_A_TIE:
        middle = shown["tie"]
        assert middle["excludes"].mean() <= 0.05 + four_errors(0.05, 50)
        assert abs(middle["estimate"].mean()) <= 4 * middle["estimate"].std() / np.sqrt(50)


@named(places.HONEST)
def test_the_limit_of_symmetric_pairs_calls_an_honest_ranker_honest(design):
    seen = shown_by("limit", design)
    assert seen["excludes"].mean() <= 0.05 + four_errors(0.05, 50)


@named([design for design in places.BIASED if design.clicks == "k^-0.7"])
def test_symmetric_pairs_find_a_gap_in_clicks_by_place_and_matched_ones_do_not(design):
    seen = shown_by("headline", design)
    assert seen["symmetric"].mean() >= 0.1
    assert seen["matched"].mean() <= 0.02


def pooled_cell(design, seed, logs=3):
    """Return the symmetric cell of a pool of logs, each of which is drawn by itself."""
    audits = []
    for part in range(logs):
        rng = np.random.default_rng([seed, part])
        log = places.lists(design, rng, (400, 10))
        ranking = places.ranking_of(log, places.clicked(design, log, rng))
        audits.append(mpc.audit(ranking, threshold=0.02, epsilon=[0.02], progress=False))
    return mpc.pool(audits).headline.sel(pairing_mode="symmetric").squeeze()


@pytest.mark.filterwarnings("ignore:Not pooled")
@named([places.Design("k^-0.7"), places.Design("none"), places.Design("k^-0.7", lifted=0.5)])
def test_pools_of_logs_with_positions_call_an_honest_ranker_honest(design):
    cells = [pooled_cell(design, seed) for seed in range(50)]
    low, high = (np.array([float(cell[end]) for cell in cells]) for end in ("ci_low", "ci_high"))
    assert places.covered(low, high, 0.0) >= 0.95 - four_errors(0.05, 50)
    ends = ("place_effect_low", "place_effect_high")
    low, high = (np.array([float(cell[end]) for cell in cells]) for end in ends)
    if design.clicks == "none":
        assert places.covered(low, high, 0.0) >= 0.95 - four_errors(0.05, 50)
    else:
        assert (high > 0).all()
        assert (low > 0).mean() > 0.2


@named(places.ALL_LIFTED)
def test_a_group_that_is_always_lifted_is_not_estimable(design):
    assert shown_by("headline", design, logs=5)["unknown"].all()
