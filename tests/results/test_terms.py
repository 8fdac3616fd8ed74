"""Audits on other terms: kept in files and pools, named in words, followed or refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.agreeing import BOOLEANS, COLUMNS, assert_agree, random_log

LOG = {**COLUMNS, "item": "item", "group": BOOLEANS, "position": "position", "segment": "country"}
TERMS = {"closeness": "query_sd", "contrast": "sign", "against": "g2", "outcome_cap": 2.0}


@pytest.fixture(scope="module")
def ranking():
    return mpc.Ranking(random_log(3), **LOG)


@pytest.fixture(scope="module")
def audit(ranking):
    return mpc.audit(ranking, threshold=mpc.Quantile(0.2), progress=False, **TERMS)


def without(name, **more):
    return {key: value for key, value in TERMS.items() if key != name} | more


def test_options_and_counts_are_kept(audit, ranking, tmp_path):
    audit.save(tmp_path / "a.nc")
    found = mpc.load(tmp_path / "a.nc", ranking=ranking)
    options = json.loads(found.attrs["options"])
    assert {name: options[name] for name in TERMS} == TERMS
    assert found.attrs["n_capped"] == int((ranking.outcome > 2).sum()) > 0
    for group in audit.groups:
        assert found.pairs(group).equals(audit.pairs(group))
        assert found.limit(group).equals(audit.limit(group))


@pytest.mark.parametrize(("correction", "tolerance"), [("plain", 1e-10), ("cr3", 2e-4)])
@pytest.mark.parametrize("ids", [{}, {"unit": "user"}])
def test_a_pool_is_one_audit_of_all_rows(ids, correction, tolerance):
    columns = {name: value for name, value in LOG.items() if name != "position"}
    how = {**columns, **ids, "threshold": 0.4, "epsilon": [0.2, 0.4, 0.8], "progress": False}
    how |= {**TERMS, "cluster": "union", "bootstrap": 0, "correction": correction}
    frame = random_log(5)
    part = frame["user"] % 3
    days = [mpc.audit(frame[part == k], **how) for k in range(3)]
    whole = mpc.audit(frame, **how)
    pooled = mpc.pool(days)
    assert pooled.attrs["n_capped"] == whole.attrs["n_capped"] > 0
    for name in ("estimate", "std_error", "n_pairs", "ci_low", "n_effective"):
        rtol = tolerance if name in ("std_error", "ci_low") else 1e-10
        atol = tolerance if name == "ci_low" else 0.0
        how = {"rtol": rtol, "atol": atol}
        np.testing.assert_allclose(pooled.headline[name], whole.headline[name], **how)
        np.testing.assert_allclose(pooled.curve[name], whole.curve[name], **how)


@pytest.mark.parametrize("name", TERMS)
def test_only_equal_terms_are_pooled(name):
    parts = [mpc.Ranking(random_log(seed), **LOG) for seed in (1, 3)]
    how = {"threshold": 0.4, "epsilon": [0.4], "progress": False, "groups": ["g0", "g1"]}
    one = mpc.audit(parts[0], **how, **TERMS)
    other = mpc.audit(parts[1], **how, **without(name))
    with pytest.raises(mpc.MpcError, match=f"must have one {name}"):
        mpc.pool([one, other])


def test_the_summary_names_terms_that_are_not_the_default(audit, ranking):
    text = audit.summary()
    assert "compared with items of 'g2' only" in text
    assert "standard deviations of the logged scores" in text
    assert "share of pairs in which the item of the group has the higher outcome" in text
    assert f"Outcomes above 2 were set to 2 (outcome_cap): {audit.attrs['n_capped']:,} rows" in text
    plain = mpc.audit(ranking, progress=False).summary()
    for name in ("(closeness", "(contrast", "(outcome_cap", "(against"):
        assert name not in plain


@pytest.mark.usefixtures("no_charts")
def test_report_json_and_card_name_them_too(audit, tmp_path):
    page = audit.report(tmp_path / "a.html", progress=False).read_text("utf-8")
    assert "standard deviations of the logged scores" in page
    assert "Outcomes above 2 were set to 2" in audit.model_card().replace("\\", "")
    assert json.loads(audit.to_json())["settings"]["against"] == "g2"


@pytest.mark.parametrize("name", ["closeness", "contrast", "against"])
@pytest.mark.parametrize("method", ["certificate", "boost_curve", "fair_boost"])
def test_boosts_are_refused_with_the_reason(ranking, name, method):
    audit = mpc.audit(ranking, progress=False, **{name: TERMS[name]})
    with pytest.raises(mpc.MpcError, match=f"without {name}=; got {name}=.* boost"):
        getattr(audit, method)("g0")


def test_the_rivals_are_refused_against_one_group(ranking):
    with pytest.raises(mpc.MpcError, match="rival measures know all others only"):
        mpc.audit(ranking, progress=False, against="g1").compare()
    assert mpc.audit(ranking, progress=False, contrast="sign").compare(["g0"]).sizes["group"] == 1


def test_questions_about_rows_follow(audit):
    for group in audit.groups:
        cell = audit.headline.sel(group=group, pairing_mode="matched").squeeze()
        listed = audit.pairs(group)
        assert set(np.unique(listed["difference"])) <= {-1.0, 0.0, 1.0}
        by_segment = audit.by_segment().sel(group=group)
        counts = by_segment.n_pairs
        assert int(counts.sum()) == int(cell.n_pairs) == len(listed)
        mean = float((by_segment.estimate.fillna(0) * counts).sum() / counts.sum())
        assert np.isclose(mean, cell.estimate)
        assert int(audit.by_position(group).n_pairs.sum()) == len(listed)
        assert np.isnan(audit.by_position(group).gamma_flip)
        assert np.isclose(audit.regression(group).params["MPC"], cell.estimate)
        assert audit.balance(group=group, permutations=3).n_pairs.item() == len(listed)
    boot = audit.bootstrap(draws=200)
    assert ((boot.percentile_low <= audit.headline.estimate + 1e-12).all()).item()


@pytest.mark.parametrize("rule", ["baseline", "boosted"])
def test_closeness_is_the_headline_on_every_scale(ranking, rule):
    how = {"threshold": mpc.Quantile(0.1), "progress": False, "scoring_rules": [rule]}
    how |= {"contrast": "sign", "pairing_modes": ["matched", "adjacent"], "groups": ["g0"]}
    found = mpc.audit(ranking, **how).closeness("g0", rule)
    assert found.closeness.values.tolist() == ["score", "query_sd", "percentile", "adjacent"]
    for name in ("score", "query_sd", "percentile"):
        own = mpc.audit(ranking, closeness=name, **how).headline.sel(group="g0", scoring_rule=rule)
        for variable in ("epsilon", "estimate", "std_error", "ci_low", "p_value", "n_pairs"):
            expected = own[variable].sel(pairing_mode="matched")
            np.testing.assert_allclose(found[variable].sel(closeness=name), expected, rtol=1e-10)
        if name == "score":
            expected = own.estimate.sel(pairing_mode="adjacent")
            assert np.isclose(found.estimate.sel(closeness="adjacent"), expected)
    order = found.p_value.sortby(found.p_value)
    holm = np.maximum.accumulate(np.minimum(order.values * np.array([4, 3, 2, 1]), 1.0))
    np.testing.assert_allclose(found.p_adjusted.sel(closeness=order.closeness), holm)


def test_closeness_takes_as_many_pairs_where_the_threshold_is_a_number(ranking):
    audit = mpc.audit(ranking, threshold=0.004, pairing_modes=["matched"], progress=False)
    pairs = int(audit.headline.n_pairs.sel(group="g0").squeeze())
    found = audit.closeness("g0")
    assert found.attrs["threshold"] == f"Smallest(k={pairs})"
    assert (found.n_pairs.sel(closeness=["score", "query_sd", "percentile"]) >= pairs).all()


def test_a_cap_above_all_outcomes_and_the_complement_as_partner_change_nothing(ranking):
    plain = mpc.audit(ranking, progress=False)
    assert_agree(plain, mpc.audit(ranking, outcome_cap=1e9, progress=False))
    rest = mpc.Ranking(
        ranking.to_frame().assign(rest=lambda f: ~f["g0"]), **{**LOG, "group": ["g0", "rest"]}
    )
    own = mpc.audit(rest, groups=["g0"], progress=False)
    assert_agree(own, mpc.audit(rest, against="rest", progress=False))


BAD = {
    "closeness": (
        "percent",
        "closeness must be one of 'score', 'query_sd', 'percentile'; got 'percent'",
    ),
    "contrast": (None, "contrast must be one of 'difference', 'sign'; got None"),
    "against": ("g9", "There is no group 'g9'"),
    "outcome_cap": ("much", "outcome_cap must be a .*number; got 'much'"),
}


@pytest.mark.parametrize(("name", "case"), BAD.items(), ids=BAD)
def test_other_words_are_refused(ranking, name, case):
    with pytest.raises(mpc.MpcError, match=case[1]):
        mpc.audit(ranking, progress=False, **{name: case[0]})


def test_a_group_is_not_compared_with_itself(ranking):
    assert mpc.audit(ranking, against="g1", progress=False).groups == ("g0", "g2")
    with pytest.raises(mpc.MpcError, match="groups must not name 'g1'"):
        mpc.audit(ranking, groups=["g0", "g1"], against="g1", progress=False)


def test_a_query_that_outweighs_all_others_is_named():
    rng = np.random.default_rng(0)
    n = 2000
    frame = {"q": np.arange(n) // 8, "s": rng.normal(size=n), "y": rng.normal(size=n)}
    frame |= {"g": rng.random(n) < 0.5}
    frame["y"][:8] += 150 * frame["g"][:8]
    columns = {"query": "q", "score": "s", "outcome": "y", "group": ["g"]}
    audit = mpc.audit(frame, **columns, threshold=1.0, progress=False)
    assert float(audit.headline.heavy_share.squeeze()) > 0.8
    assert "One query makes up 9" in audit.summary()
    assert (
        "One query makes"
        not in mpc.audit(frame, **columns, threshold=1.0, contrast="sign", progress=False).summary()
    )


def test_sentences_call_the_outcome_by_its_name():
    frame = random_log(3)
    how = {**LOG, "threshold": 0.01, "progress": False}
    assert "`outcome` is" in mpc.audit(frame, **how).summary()
    named = mpc.audit(frame, **how, outcome_name="minutes")
    assert "`minutes` is" in named.summary()
    assert named.explore().state is not None
    signs = mpc.audit(frame, **how, outcome_name="minutes", contrast="sign").summary()
    assert "the share of pairs in which `minutes` is higher is" in signs


@pytest.mark.parametrize(
    "terms", [TERMS, {"contrast": "sign"}, {"against": "g2"}, {"outcome_cap": 2.0}]
)
def test_repeated_looks_bet_on_the_pairs_of_the_headline(ranking, terms):
    how = {"threshold": 0.4, "epsilon": [0.4], "bounds": (0, 4), "pairs_cap": 1000}
    how["pairing_modes"] = ["matched"]
    audit = mpc.audit(ranking, progress=False, **how, **terms)
    found = audit.confidence_sequence()
    np.testing.assert_allclose(found.estimate, audit.headline.estimate, rtol=1e-12)
    width = json.loads(found.attrs["bounds"])
    assert width == ([0.0, 1.0] if terms.get("contrast") == "sign" else [0.0, 4.0])


def test_a_recipe_makes_the_same_numbers(tmp_path):
    path = tmp_path / "log.csv"
    random_log(3).to_csv(path, index=False)
    columns = {**COLUMNS, "group": BOOLEANS, "ascending": True, "outcome_name": "clicks"}
    audit = mpc.audit(path, **columns, progress=False, **TERMS)
    again: dict[str, object] = {}
    exec(audit.recipe().call, again)
    assert_agree(audit, again["audit"])
    assert "--ascending --outcome-name=clicks" in audit.recipe().command
