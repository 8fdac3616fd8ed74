import json
import re
import warnings

import numpy as np
import pytest
import scipy.stats

import mpc_lab as mpc
from mpc_lab.inference.verdicts import mde
from mpc_lab.results.gate import Least, decide
from mpc_lab.vocabulary import INCONCLUSIVE
from simulated import shared_catalogue


@pytest.fixture(scope="module")
def audit():
    return mpc.audit(mpc.datasets.synthetic(queries=20_000), tolerance=0.3, progress=False)


def test_a_gap_outside_the_tolerance_fails_and_names_its_groups(audit):
    with pytest.raises(mpc.AuditFailed, match="'1' and '2'") as failed:
        audit.check(tolerance=0.001)
    assert failed.value.groups == ("1", "2")


def test_the_audits_own_tolerance_is_the_default(audit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit.check()


def test_an_interval_across_the_tolerance_warns_raises_or_passes(audit):
    with pytest.warns(UserWarning, match="cannot tell"):
        audit.check(tolerance=0.06)
    with pytest.raises(mpc.AuditFailed, match="cannot tell"):
        audit.check(tolerance=0.06, inconclusive="raise")
    audit.check(tolerance=0.06, inconclusive="pass")


def test_another_level_widens_the_intervals(audit):
    with pytest.raises(mpc.AuditFailed, match="outside"):
        audit.check(tolerance=0.01, level=0.9)
    with pytest.warns(UserWarning, match="cannot tell"):
        audit.check(tolerance=0.01, level=0.999999)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"inconclusive": "ask"}, "'warn', 'raise' or 'pass'"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"level": 2}, "level"),
    ],
)
def test_a_bad_option_of_a_check_is_refused(audit, options, match):
    with pytest.raises(mpc.MpcError, match=match):
        audit.check(**options)


def test_a_loaded_audit_decides_alike(audit, tmp_path):
    audit.save(tmp_path / "a.nc")
    with pytest.raises(mpc.AuditFailed, match="'1' and '2'"):
        mpc.load(tmp_path / "a.nc").check(tolerance=0.001)


def test_power_is_what_the_headline_says(audit):
    found = audit.power(0.02)
    assert np.array_equal(found["mde"].values, audit.headline["mde"].values)
    assert np.array_equal(found["mde_adjusted"].values, audit.headline["mde_adjusted"].values)
    assert (found["queries_needed"] > audit.headline["n_queries"]).all()


@pytest.mark.parametrize("effect", [0.01, 0.02, 0.05])
def test_adjusted_queries_are_enough_at_the_level_of_the_family_and_one_fewer_is_not(audit, effect):
    sides = mpc.audit(audit.ranking, pairing_modes=("matched", "mirrored"), progress=False)
    cells = sides.headline.sel(scoring_rule="baseline").transpose("pairing_mode", "group", ...)
    needed = audit.power(effect)["queries_needed_adjusted"].values[:, 0, 0]
    variance, dof = cells["std_error_by"].sel(variance="query").values ** 2, cells["dof"].values
    # std_error_by has the factor Q/(Q - 1) that the definition of V_query has not.
    with_pair = cells["n_queries"].values
    total = variance * (with_pair - 1) / with_pair * audit.ranking.n_queries
    a = 0.05 / len(audit.groups)
    # Both sides of the bracket have to find it.
    times = scipy.stats.t.ppf(1 - a / 2, dof) + scipy.stats.t.ppf(np.sqrt(0.8), dof)
    assert (times * np.sqrt(total / needed) <= effect).all()
    assert (times * np.sqrt(total / (needed - 1)) > effect).any(axis=0).all()


def test_adjusted_queries_are_those_of_one_cell_where_the_family_is_one_cell():
    found = mpc.audit(mpc.datasets.synthetic(queries=500), groups=["1"], progress=False).power(0.05)
    assert np.array_equal(found["queries_needed"], found["queries_needed_adjusted"])


def test_the_summary_says_how_many_queries_undecided_groups_need():
    ranking = mpc.datasets.synthetic(queries=500)
    asked = mpc.audit(ranking, tolerance=0.02, progress=False)
    needed = asked.power(0.02)["queries_needed_adjusted"].values.ravel()
    said = re.search(r"about ([\d,]+) to ([\d,]+) queries like the 500 of", asked.summary())
    low, high = (int(one.replace(",", "")) for one in said.groups())
    assert needed.min() <= low < 1.1 * needed.min()
    assert needed.max() <= high < 1.1 * needed.max()
    assert all(len(str(one).rstrip("0")) <= 2 for one in (low, high))
    powered = mpc.audit(ranking, threshold=mpc.Powered(0.001), progress=False)
    assert "Finding a gap of 0.001 with a probability of 80 %" in powered.summary()
    assert "Finding a gap" not in mpc.audit(ranking, progress=False).summary()


def test_the_summary_says_where_no_number_of_queries_suffices():
    ranking = shared_catalogue(np.random.default_rng(0), item_sd=0.5)
    audit = mpc.audit(ranking, threshold=0.05, tolerance=0.01, progress=False)
    assert np.isinf(audit.power(0.01)["queries_needed_adjusted"]).any()
    assert "No number of queries of this catalogue finds a gap of 0.01" in audit.summary()


def test_twice_the_effect_needs_a_quarter_of_the_queries(audit):
    once, twice = (audit.power(effect)["queries_needed"].values for effect in (0.01, 0.02))
    assert np.allclose(once / twice, 4, rtol=0.01)


def test_a_bracket_needs_both_sides_to_be_found(audit):
    own = mde(audit.headline["std_error"].values, audit.headline["dof"].values)
    both = mde(audit.headline["std_error"].values, audit.headline["dof"].values, sides=2)
    assert (audit.headline["mde"].values >= both).all()
    assert (both > own).all()


def test_a_gap_that_cannot_be_found_with_the_power_asked_for_is_said():
    ranking = mpc.datasets.synthetic(queries=500)
    audit = mpc.audit(ranking, threshold=mpc.Powered(0.001), progress=False)
    text = audit.summary()
    assert "no threshold has the power that was asked for" in text
    assert "Powered tried the 0.1, 0.2, 0.5, 1, 2, 5 and 10 % quantiles" in text
    tried = json.loads(audit.attrs["tried"])["baseline"]["1"]
    assert [round(epsilon, 6) for epsilon, _ in tried][-1] == pytest.approx(
        float(audit.headline.epsilon.sel(group="1").max()), rel=1e-4
    )
    assert text.count(f" at {tried[-1][0]:.2g}") >= 1


def least_findable(audit):
    at = audit.headline["mde_adjusted"].isel(scoring_rule=0, pairing_mode=0)
    return at.where(audit.headline["verdict"].isel(scoring_rule=0, pairing_mode=0) == INCONCLUSIVE)


NAMED = (" ('1')", " ('2')")


@pytest.mark.parametrize("queries", [120, 2000])
def test_an_inconclusive_audit_names_the_least_gap_it_could_find(queries):
    audit = mpc.audit(mpc.datasets.synthetic(queries=queries), progress=False)
    least = least_findable(audit)
    (line,) = [one for one in audit.summary().splitlines() if one.startswith("The smallest gap")]
    assert f"with the adjustment of the verdicts: {float(least.min()):.2g}" in line
    absolute, relative = line.split(", which is ")
    assert absolute.startswith("The smallest gap in outcome that these pairs find in 80 % of such")
    assert absolute.endswith(tuple(f"{float(least.max()):.2g}{end}" for end in ("", *NAMED)))
    spread = audit.ranking.outcome.std()
    assert f"{float(least.max()) / spread:.2g} standard deviations of the outcome." in relative


def test_a_decided_audit_has_no_next_step():
    audit = mpc.audit(mpc.datasets.synthetic(queries=20_000), progress=False)
    assert (audit.headline.verdict != INCONCLUSIVE).all()
    assert "Next:" not in audit.summary()
    assert "The smallest gap" not in audit.summary()


NEXT = {
    "few pairs": ({}, 400, "the remedy of 'enough pairs' in the preflight"),
    "two intervals": ({"threshold": mpc.Quantile(0.03)}, 1500, '["symmetric", "matched"]'),
    "no gap that matters": (
        {"threshold": mpc.Enough(), "pairing_modes": ["symmetric"]},
        400,
        "audit.power(effect=…)",
    ),
    "more queries": (
        {"threshold": mpc.Enough(), "pairing_modes": ["symmetric"], "tolerance": 0.001},
        400,
        "a longer stretch of the log",
    ),
}


@pytest.mark.parametrize(("how", "queries", "said"), NEXT.values(), ids=NEXT)
def test_the_next_step_is_one_that_was_not_taken(how, queries, said):
    audit = mpc.audit(mpc.datasets.synthetic(queries=queries), progress=False, **how)
    (line,) = [one for one in audit.summary().splitlines() if one.startswith("Next:")]
    assert said in line


@pytest.mark.parametrize(("queries", "advised"), [(400, "mpc.Enough("), (1500, "mpc.Powered(")])
def test_there_is_one_piece_of_advice(queries, advised):
    said = mpc.audit(mpc.datasets.synthetic(queries=queries), progress=False).summary()
    assert [said.count(one) for one in ("mpc.Enough(", "mpc.Powered(")] == [
        int(one == advised) for one in ("mpc.Enough(", "mpc.Powered(")
    ]


def test_a_threshold_that_runs_out_of_pairs_says_so():
    ranking = mpc.datasets.synthetic(queries=400)
    short = mpc.audit(ranking, threshold=mpc.Enough(160, 50), progress=False)
    assert "160 pairs in 50 effective queries were asked for" in short.summary()
    assert short.headline["short_of_pairs"].all()
    found = mpc.audit(ranking, threshold=mpc.Enough(100, 50), progress=False)
    assert "were asked for" not in found.summary()


def test_many_undecided_groups_are_one_line():
    rng = np.random.default_rng(0)
    n, groups = 4000, [f"group {k}" for k in range(22)]
    rows = {"q": np.arange(n) // 10, "s": rng.random(n), "y": rng.random(n)}
    rows["g"] = rng.choice(groups, n)
    audit = mpc.audit(rows, query="q", score="s", outcome="y", group="g", progress=False)
    assert (audit.headline.verdict == INCONCLUSIVE).sum() >= 20
    lines = [line for line in audit.summary().splitlines() if "Inconclusive" in line]
    assert len(lines) <= 2
    assert "groups (" in lines[0]


@pytest.fixture(scope="module")
def several():
    """An audit whose baseline has no gap, with a rule and a mode that show one."""
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(400), 6)
    member = np.tile([True, False], 1200)
    score = np.round(rng.random(2400), 1)
    log = {"q": query, "s": score, "y": score + 0.1 * rng.normal(size=2400), "g": member}
    log["lowered"] = score - 0.4 * member
    return mpc.audit(
        log,
        query="q",
        score="s",
        outcome="y",
        group=["g"],
        scoring_rules=("baseline", mpc.Column("lowered")),
        pairing_modes=("matched", "adjacent"),
        threshold=0.1,
        tolerance=0.3,
        progress=False,
    )


def test_the_gate_goes_by_baseline_unless_a_rule_is_named(several):
    rule = several.headline["scoring_rule"].values.tolist()[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        several.check()
    with pytest.raises(mpc.AuditFailed, match=f"outside the tolerance: 'g', under rule '{rule}'"):
        several.check(scoring_rule=rule, tolerance=0.05)
    with pytest.raises(mpc.MpcError, match="no scoring rule 'lowerd'"):
        several.check(scoring_rule="lowerd")


def test_the_gate_goes_by_the_first_mode_asked_for():
    log = mpc.datasets.synthetic(queries=2_000)
    found = {
        modes: decide(mpc.audit(log, pairing_modes=modes, threshold=0.2, progress=False))
        for modes in (("matched", "adjacent"), ("adjacent", "matched"))
    }
    assert [one.pairing_mode for one in found.values()] == ["matched", "adjacent"]
    # The bracket of matched and mirrored pairs holds 0; neighbours are not asked twice.
    assert [one.answer for one in found.values()] == [0, 1]


def test_without_a_tolerance_a_failure_speaks_of_none():
    audit = mpc.audit(mpc.datasets.synthetic(queries=20_000), progress=False)
    with pytest.raises(mpc.AuditFailed, match="found a gap: '1' and '2'"):
        audit.check()


def test_powered_takes_the_smallest_quantile_that_finds_the_effect():
    ranking = mpc.datasets.synthetic(queries=5_000)
    easy = mpc.audit(ranking, threshold=mpc.Powered(0.1), progress=False).headline
    hard = mpc.audit(ranking, threshold=mpc.Powered(0.001), progress=False).headline
    assert not easy["underpowered"].any()
    # of matched pairs alone, by which thresholds are chosen
    assert (mde(easy["std_error"].values, easy["dof"].values) <= 0.1).all()
    assert hard["underpowered"].all()
    assert (hard["epsilon"] >= easy["epsilon"]).all()


def test_a_log_in_which_nothing_can_be_estimated_does_not_pass():
    one_query = {"q": [0, 0, 0], "s": [1.0, 1.0, 0.5], "y": [1.0, 0.0, 1.0], "g": ["a", "b", "a"]}
    audit = mpc.audit(one_query, query="q", score="s", outcome="y", group="g", progress=False)
    with pytest.raises(mpc.AuditFailed, match="could estimate no group"):
        audit.check(inconclusive="raise")


@pytest.mark.parametrize("tolerance", ["x", [0.1], True])
def test_a_tolerance_must_be_a_number(tolerance):
    audit = mpc.audit(mpc.datasets.synthetic(queries=200), progress=False)
    with pytest.raises(mpc.MpcError, match="tolerance must be a finite number of at least 0"):
        audit.check(tolerance=tolerance)


def labelled(pairs_of):
    """Return a log in which each group has so many queries of one close pair, and a clear gap."""
    rows = []
    for group, pairs in pairs_of.items():
        for k in range(pairs):
            q = f"{group}{k}"
            rows += [(q, 0.5, 1.0 + k % 3, group), (q, 0.5, 0.0 + k % 2, "rest")]
    names = ("q", "s", "y", "g")
    frame = dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))
    columns = {"query": "q", "score": "s", "outcome": "y", "group": "g"}
    return mpc.audit(frame, **columns, groups=list(pairs_of), threshold=0.1, progress=False)


@pytest.mark.parametrize("least", [{"min_pairs": 40}, {"min_effective": 40}])
def test_groups_with_too_little_are_listed_and_do_not_decide(least):
    audit = labelled({"large": 40, "small": 39})
    with pytest.raises(mpc.AuditFailed, match="not counted: 'small'") as failed:
        audit.check(**least)
    assert failed.value.groups == ("large",)
    with pytest.raises(mpc.AuditFailed) as failed:
        audit.check(**dict.fromkeys(least, 39))
    assert failed.value.groups == ("large", "small")


def test_a_gate_without_any_group_that_is_large_enough_does_not_pass():
    audit = labelled({"large": 40, "small": 39})
    found = decide(audit, least=Least(pairs=41))
    assert (found.answer, found.failed, found.set_aside) == (2, (), ("large", "small"))
    with pytest.raises(mpc.AuditFailed, match="has no group with enough pairs"):
        audit.check(min_pairs=41, inconclusive="raise")
    assert json.loads(audit.to_json(min_pairs=40))["gate"]["set_aside"] == ["small"]


@pytest.mark.parametrize("bad", [{"min_pairs": -1}, {"min_pairs": 2.5}, {"min_effective": -0.1}])
def test_what_a_gate_needs_is_a_number_of_at_least_0(bad):
    with pytest.raises(mpc.MpcError, match="min_"):
        labelled({"large": 40}).check(**bad)


def test_a_gate_that_cannot_tell_gives_the_interval_in_words():
    audit = mpc.audit(mpc.datasets.synthetic(queries=500), tolerance=0.01, progress=False)
    with pytest.raises(
        mpc.AuditFailed, match=r"`outcome` between .* lower and .* higher"
    ) as failed:
        audit.check(inconclusive="raise")
    assert "what is missing" not in str(failed.value)


def test_a_group_and_its_complement_are_not_both_undervalued_at_one_threshold():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = 3000
        rows = {"q": np.arange(n) // 10, "s": rng.random(n), "g": rng.choice(["a", "b"], n)}
        rows["y"] = rng.normal(size=n) + (rows["g"] == "a") * rng.normal() * 0.3
        columns = {"query": "q", "score": "s", "outcome": "y", "group": "g"}
        audit = mpc.audit(rows, **columns, threshold=0.05, progress=False)
        verdicts = audit.headline.verdict.values.ravel().tolist()
        assert verdicts.count("undervalued") <= 1
        assert verdicts.count("overvalued") <= 1
