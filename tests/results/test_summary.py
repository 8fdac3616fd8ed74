"""The summary says what was found in plain words, and drops nothing silently."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.handmade import EMPTY, cell
from helpers.hostile import BROKEN, HOSTILE, LONG
from mpc_lab.results.summary import finding_title, slices
from mpc_lab.text import between, decimals, listing, name, number

UNDER = cell(0.0687, 0.0487, 0.0887, "undervalued")
OVER = cell(-0.228, -0.31, -0.146, "overvalued")
COVERS = cell(0.01, -0.02, 0.04, "inconclusive", "interval covers 0")
AGAINST = cell(0.05, -0.09, 0.07, "inconclusive", "scores run against outcomes")
BRACKET = cell(-0.05, -0.09, -0.01, "inconclusive", "bracket")


def lines(audit):
    return audit.summary().split("\n")


def test_the_first_line_is_the_finding(make_audit):
    assert lines(make_audit(("1",), cells={"1": UNDER}))[0] == (
        "Group '1' is undervalued: `outcome` is 0.069 higher than for the items ranked just above "
        "them (95 % bracket 0.049 to 0.089), and higher than for those ranked just below them too."
    )


def test_an_overvalued_group_names_both_sides(make_audit):
    assert lines(make_audit(("1",), cells={"1": OVER}))[0] == (
        "Group '1' is overvalued: `outcome` is 0.228 lower than for the items ranked just above "
        "them (gap -0.228, 95 % bracket -0.310 to -0.146), and lower than for those ranked just "
        "below them too."
    )


TIES = {
    "matched": "the items with the same score or ranked just above them",
    "symmetric": "the items with the same score or ranked just above or just below them",
    "adjacent": "their neighbours in the list",
}


@pytest.fixture(scope="module")
def tenths():
    log = mpc.datasets.synthetic(queries=2_000).to_frame()
    return log.assign(score=log["score"].round(1))


def first_group(log, **options):
    columns = {"query": "query", "score": "score", "outcome": "outcome", "group": "type"}
    return mpc.audit(log, **columns, **options, groups=["1"], progress=False)


@pytest.mark.parametrize("mode", ["matched", "symmetric"])
def test_pairs_that_are_all_tied_are_compared_with_the_same_score(tenths, mode):
    found = first_group(tenths, threshold=0, pairing_modes=[mode]).summary()
    assert "undervalued: `outcome` is 0.0" in found
    assert " higher than for items with the same score (95 % " in found
    assert "ranked just" not in found


@pytest.mark.parametrize("epsilon", [None, [0.05, 0.1]])
@pytest.mark.parametrize("threshold", [0.05, 0.1])
@pytest.mark.parametrize("mode", TIES)
def test_pairs_of_which_some_are_tied_are_not_all_ranked_above(tenths, mode, threshold, epsilon):
    audit = first_group(tenths, threshold=threshold, pairing_modes=[mode], epsilon=epsilon)
    found = audit.summary()
    assert f" higher than for {TIES[mode]} (95 % " in found
    both = ", and higher than for those with the same score or ranked just below them too"
    # At 0.1 the two sides disagree, and a group that is inconclusive has one of them named.
    assert (both in found) is (mode == "matched" and threshold == 0.05)


def test_ties_under_another_rule_say_nothing_of_the_logged_scores():
    audit = first_group(
        mpc.datasets.synthetic(queries=500).to_frame(), scoring_rules=["baseline", "calibrated"]
    )
    found = {one.rule: one.against for one in slices(audit)}
    assert found["baseline"] == "the items ranked just above them"
    assert found["calibrated"] == TIES["matched"]


def test_a_saved_audit_and_a_pool_still_know_their_ties(tenths, tmp_path):
    audit = first_group(tenths, threshold=0.05, epsilon=[0.05])
    audit.save(tmp_path / "a.nc")
    loaded = mpc.load(tmp_path / "a.nc")
    other = first_group(tenths[::-1].assign(query=-tenths["query"]), threshold=0.05, epsilon=[0.05])
    assert slices(loaded)[0].against == TIES["matched"]
    assert slices(mpc.pool([audit, other]))[0].against == TIES["matched"]


def test_an_old_audit_has_ties_where_its_grid_begins_at_0(tenths, tmp_path):
    for file, grid in (("ties", [0, 0.1]), ("none", [0.1])):
        audit = first_group(tenths, threshold=0.1, epsilon=grid)
        del audit.attrs["rules_with_ties"]
        audit.save(tmp_path / f"{file}.nc")
    assert slices(mpc.load(tmp_path / "ties.nc"))[0].against == TIES["matched"]
    assert slices(mpc.load(tmp_path / "none.nc"))[0].against == "the items ranked just above them"


def test_chart_report_card_and_slices_know_the_ties_too(tenths, tmp_path):
    audit = first_group(tenths, threshold=0.1)
    assert f" beside {TIES['matched']}, with " in str(mpc.charts.overview(audit).to_dict())
    assert f"items of the group than for {TIES['matched']}." in audit.report(
        tmp_path / "a.html"
    ).read_text("utf-8")
    assert f"higher outcomes than {TIES['matched']}." in audit.model_card()
    found = mpc.discover(
        mpc.Ranking(tenths, query="query", score="score", outcome="outcome", group="type"),
        ["type"],
        threshold=0.1,
        progress=False,
    )
    assert f" than for {TIES['symmetric']} (gap " in str(found)


def test_print_and_repr_show_the_summary(audit):
    assert str(audit) == repr(audit) == audit.summary()


def test_the_level_is_the_one_asked_for(make_audit):
    audit = make_audit(cells={"1": UNDER}, settings={"level": 0.9})
    assert "(90 % bracket 0.049 to 0.089)" in lines(audit)[0]


def test_adjacent_pairs_have_an_interval_of_their_own(make_audit):
    text = make_audit(("1",), modes=("adjacent",), cells={"1": UNDER}).summary()
    assert "their neighbours in the list (95 % interval 0.049 to 0.089).\n" in text


def test_an_interval_over_zero_is_no_evidence_and_no_acquittal(make_audit):
    text = make_audit(("1",), cells={"1": COVERS}).summary()
    assert text.startswith("No group is found undervalued or overvalued.")
    assert "no evidence of a gap, which is not evidence that there is none" in text
    assert " fair" not in text


@pytest.mark.parametrize("groups", [("1",), ("1", "2", "3", "4")])
def test_bracket_is_explained(make_audit, groups):
    text = make_audit(groups, cells={"1": BRACKET}).summary()
    assert "'bracket'" in text
    assert "as may happen in a ranking without bias too" in text


@pytest.mark.parametrize("groups", [("1",), ("1", "2", "3", "4")])
def test_scores_that_run_against_outcomes_are_explained(make_audit, groups):
    text = make_audit(groups, cells={"1": AGAINST}).summary()
    assert "'scores run against outcomes'" in text
    assert "the score may be upside down, such as a distance or a rank" in text


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, "in no query is there a pair of an item inside the group and one outside it"),
        ({"epsilon": 0.1}, "no pairs within the threshold"),
        (
            {"n_pairs": 3, "n_effective": 1.2, "verdict_reason": ""},
            "pairs from fewer than 3 effective queries or items",
        ),
        (
            {"n_pairs": 9, "verdict_reason": "mirrored: no pairs"},
            "there are no mirrored pairs, which the verdict needs too, within the threshold",
        ),
        (
            {"n_pairs": 9, "n_effective": 9.0, "verdict_reason": "variance is 0"},
            "all pairs alike",
        ),
        (
            {"n_pairs": 9, "verdict_reason": "mirrored: variance is 0"},
            "the mirrored pairs, which the verdict needs too, are all alike, so that there is no",
        ),
        (
            {"n_pairs": 9, "verdict_reason": "mirrored: effective clusters below 3"},
            "the mirrored pairs, which the verdict needs too, are from fewer than 3 effective",
        ),
        (
            {"n_pairs": 9, "verdict_reason": "mirrored: variance is not positive"},
            "the mirrored pairs, which the verdict needs too, have no interval: variance is not",
        ),
    ],
)
def test_a_group_that_is_not_estimable_is_named_with_its_reason(make_audit, changed, reason):
    text = make_audit(cells={"2": {**EMPTY, **changed}}).summary()
    assert f"Not estimable, 1 group ('2'): {reason}" in text


def test_one_pair_in_one_query_is_reported_as_such():
    log = {"q": [1, 1], "s": [0.1, 0.2], "y": [1.0, 0.0], "g": ["a", "b"]}
    audit = mpc.audit(
        log, query="q", score="s", outcome="y", group="g", groups=["a"], progress=False
    )
    assert "Compared: 1 matched pair in 1 query; a pair is" in audit.summary()


def test_nothing_estimable_is_said_first(make_audit):
    audit = make_audit(cells={"1": EMPTY, "2": EMPTY})
    assert lines(audit)[0] == "No group could be estimated."
    assert "Compared: nothing; no group has matched pairs" in audit.summary()


def test_every_group_is_counted_whatever_its_verdict(make_audit):
    groups = tuple("abcdef")
    within = cell(0.0, -0.01, 0.01, "within tolerance")
    found = dict(zip(groups, (UNDER, OVER, COVERS, BRACKET, within, EMPTY), strict=True))
    text = make_audit(groups, cells=found, settings={"tolerance": 0.05}).summary()
    assert all(f"'{group}'" in text for group in groups)
    assert "Within tolerance (0.05), 1 group ('e')" in text


def test_a_long_list_of_findings_ends_in_a_count(make_audit):
    groups = tuple(f"g{number}" for number in range(20))
    text = make_audit(groups, cells={**dict.fromkeys(groups[:12], UNDER), "g15": OVER}).summary()
    assert text.count("is undervalued:") + text.count("is overvalued:") == 8
    assert "And 5 more: 5 undervalued; audit.to_frame() has them all." in text
    assert "Inconclusive, 7 groups ('g12'," in text


def test_two_thousand_groups_stay_short(make_audit):
    text = make_audit(tuple(map(str, range(2000)))).summary()
    assert "2,000 groups ('0', '1', '2', '3', '4', '5', '6', '7' and 1,992 more)" in text
    assert len(text) < 1500


@pytest.mark.parametrize(("length", "named"), [(1, 4), (30, 2), (200, 1)])
def test_a_title_names_as_many_groups_as_stay_on_a_line(make_audit, length, named):
    groups = tuple(f"{number}{'x' * (length - 1)}" for number in range(7))
    title = finding_title(slices(make_audit(groups, cells=dict.fromkeys(groups, UNDER)))[0])
    assert title.startswith("7 groups undervalued ('0")
    assert title.endswith(f" and {7 - named} more)")


def test_undervalued_is_listed_before_overvalued(make_audit):
    first, second = lines(make_audit(cells={"1": OVER, "2": UNDER}))[:2]
    assert first.startswith("Group '2' is undervalued")
    assert second.startswith("Group '1' is overvalued")


def test_what_was_compared_is_said(make_audit):
    counts = [{"n_pairs": 1234, "n_queries": 56}, {"n_pairs": 99, "n_queries": 56}]
    audit = make_audit(cells={"1": {**UNDER, **counts[0], "epsilon": 0.01}, "2": counts[1]})
    assert (
        "Compared: 99 to 1,234 matched pairs a group in 56 queries; a pair is an item of the "
        "group and one outside it, in one query, with scores at most epsilon = 0.002 to 0.01 "
        "apart (threshold Quantile(p=0.01))."
    ) in lines(audit)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "clustered by query and by item (cluster 'union'), adjusted over 2 groups (adjust '"),
        ({"adjust": "none"}, "not adjusted for the number of groups."),
        ({"cluster": "naive"}, "clustered not at all (cluster 'naive': pairs taken as independent"),
    ],
)
def test_the_inference_is_named(make_audit, settings, words):
    assert words in make_audit(settings=settings).summary()


def test_options_that_cannot_be_read_do_not_break_the_summary(make_audit):
    audit = make_audit(cells={"1": UNDER}, attrs={"options": "not json"})
    assert "95 % bracket" in lines(audit)[0]


def test_other_rules_and_modes_are_counted_after_baseline_and_the_first_mode(make_audit):
    rules, modes = ("boosted", "baseline"), ("matched", "mirrored", "adjacent")
    cells = {("1", "baseline", "matched"): UNDER, ("2", "boosted", "matched"): OVER}
    text = make_audit(rules=rules, modes=modes, cells=cells).summary()
    assert text.startswith("Group '1' is undervalued")
    assert "Under rule 'boosted': 1 overvalued ('2'), 1 inconclusive." in text
    assert "Under rule 'boosted', adjacent pairs: 2 inconclusive." in text
    assert "mirrored" not in text


def test_mirrored_alone_says_whose_verdict_it_is(make_audit):
    text = make_audit(modes=("mirrored",), cells={"1": UNDER}).summary()
    assert "higher than for the items ranked just below them" in text
    assert "The verdicts are those of the matched pairs" in text


@pytest.mark.parametrize(("ties", "warned"), [(1.26, True), (1.25, False), (np.nan, False)])
def test_coarse_scores_are_a_caution(make_audit, ties, warned):
    text = make_audit(cells={"2": {"tie_inflation": ties}}).summary()
    assert ("too coarse for the threshold" in text) is warned
    assert ("'2' (1.26 times)" in text) is warned


@pytest.mark.parametrize(("effective", "warned"), [(19.9, True), (20.0, False)])
def test_few_clusters_are_a_caution(make_audit, effective, warned):
    text = make_audit(cells={"1": {"n_effective": effective}}, settings={"cluster": "query"})
    assert ("the gap rests on few queries: '1' (eff" in text.summary()) is warned


def test_a_caution_names_the_rule_it_is_about(make_audit):
    cells = {("1", "calibrated", "matched"): {"tie_inflation": 3.3}}
    text = make_audit(rules=("baseline", "calibrated"), cells=cells).summary()
    assert "'1' under 'calibrated' (3.3 times)" in text
    assert "'calibrated' is fitted to the same outcomes" in text


def test_a_sum_that_is_0_but_for_its_last_bits_is_no_gap(make_audit):
    cell = {**UNDER, "verdict": "inconclusive", "estimate": 5e-18}
    cell |= {"bracket_low": -0.3, "bracket_high": 0.3}
    text = make_audit(cells={"1": cell}).summary()
    assert "is the same as for" in text
    assert "e-18" not in text


def test_cut_intervals_and_dropped_rows_are_mentioned(make_audit):
    cut = {**UNDER, "bracket_low": 0.0}
    text = make_audit(cells={"1": cut}, attrs={"n_dropped": 1200}).summary()
    assert "(95 % bracket 0 to 0.089)" in text
    assert "ends at exactly 0 was cut there by the test" in text
    assert "1,200 rows with a missing value were left out." in text
    one = make_audit(cells={"1": cut}, attrs={"n_dropped": 1}).summary()
    assert "1 row with a missing value was left out." in one


def test_a_name_cannot_break_a_line_or_flood_it(make_audit):
    text = make_audit(HOSTILE, cells={BROKEN: UNDER, LONG: OVER}).summary()
    assert "Group 'line break' is undervalued" in text
    assert f"'{'x' * 29}…{'x' * 30}'" in text
    assert "x" * 31 not in text


@pytest.mark.parametrize(
    ("value", "places", "shown"),
    [
        (0.0687, 3, "0.069"),
        (-0.0, 3, "0"),
        (0.0004, 2, "0.0004"),
        (1234.5, 1, "1,234.5"),
        (-1e-9, 10, "-1e-09"),
        (3e9, 0, "3e+09"),
        (np.inf, 2, "inf"),
    ],
)
def test_numbers_read_well_and_never_become_zero(value, places, shown):
    assert number(value, places) == shown


@pytest.mark.parametrize(
    ("low", "high", "places"), [(0.05, 0.09, 3), (-40, 40, 0), (0, 0, 3), (np.nan, 1, 3)]
)
def test_decimals_follow_the_standard_error(low, high, places):
    assert decimals(low, high) == places


def test_lists_and_ranges():
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert listing(["a", "b", "c"], 2) == "a, b and 1 more"
    assert between([2, 1000], ",") == "2 to 1,000"
    assert between([0.1, 0.1], "g") == "0.1"
    assert name("a\u202eb\tc") == "ab c"
