"""Verdicts of whole audits rest on both sides of a tie, and on the groups of their rule alone."""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from simulated import ranking_of, rising_outcomes

RULES = ("baseline", "boosted", "demoted", "calibrated")
JUDGED = ("p_adjusted", "ci_low_adjusted", "bracket_low", "bracket_high", "bracket_p_adjusted")


@pytest.fixture(scope="module")
def rising():
    """A log whose outcome rises with the score; at a tie, that of the group is 0.05 higher."""
    return rising_outcomes(np.random.default_rng(0), gap=0.05)


@pytest.mark.parametrize("epsilon", [0.005, 0.02, 0.05, 0.1])
def test_a_gap_as_large_as_the_tolerance_is_not_within_it(rising, epsilon):
    audit = mpc.audit(rising, threshold=epsilon, tolerance=0.05, progress=False)
    cell = audit.headline.squeeze()
    assert cell["verdict"].item() != "within tolerance"
    assert float(cell["bracket_low"]) <= 0.05 <= float(cell["bracket_high"])


def test_matched_pairs_alone_would_be_within_it(rising):
    cell = mpc.audit(rising, threshold=0.1, progress=False).headline.squeeze()
    assert -0.05 <= float(cell["ci_low_adjusted"]) <= float(cell["ci_high_adjusted"]) <= 0.05


def test_scores_that_run_against_outcomes_flag_no_group():
    rng = np.random.default_rng(1)
    score = rng.random((1500, 8))
    member = rng.random(score.shape) < 0.5
    item = np.arange(score.size).reshape(score.shape)
    outcome = -score + 0.05 * rng.normal(size=score.shape)
    log = ranking_of(item, score, outcome, {"g": member, "not g": ~member})
    audit = mpc.audit(log, threshold=0.1, progress=False)
    assert (audit.headline["verdict"] == "inconclusive").all()
    assert (audit.headline["verdict_reason"] == "scores run against outcomes").all()
    assert "the score may be upside down" in audit.summary()
    # each side alone says that the group is undervalued
    assert (audit.headline["ci_low_adjusted"] > 0).all()


def test_without_mirrored_pairs_there_is_no_verdict_and_the_reason_names_them():
    # In every query the item of the group has the lower score.
    log = {"q": np.repeat(np.arange(50), 2), "s": np.tile([0.5, 0.6], 50)}
    log |= {"y": np.random.default_rng(0).random(100), "g": np.tile(["a", "b"], 50)}
    audit = mpc.audit(log, query="q", score="s", outcome="y", group="g", progress=False)
    cell = audit.headline.sel(group="a").squeeze()
    assert (cell["verdict"].item(), cell["verdict_reason"].item()) == (
        "not estimable",
        "mirrored: no pairs",
    )
    assert np.isfinite(float(cell["std_error"]))
    assert np.isnan(float(cell["bracket_p_adjusted"]))
    summary = audit.summary()
    assert "('a'): there are no mirrored pairs, which the verdict needs too" in summary
    # Every query has items of both groups, but none of 'b' is below one of 'a'.
    assert "('b'): in no query is there a pair of" in summary


@pytest.mark.parametrize("method", ["holm", "romano_wolf", "fdr_bh"])
def test_what_if_rules_change_nothing_of_the_scores_in_use(method):
    log = mpc.datasets.synthetic(queries=3_000)
    how = {"adjust": method, "progress": False}
    alone = mpc.audit(log, **how).headline
    among = mpc.audit(log, scoring_rules=RULES, **how).headline.sel(scoring_rule=["baseline"])
    for name in JUDGED:
        np.testing.assert_allclose(among[name], alone[name], rtol=1e-12, err_msg=name)
    np.testing.assert_array_equal(among["verdict"], alone["verdict"])


def test_an_interval_wider_than_the_range_of_the_outcome_is_said_to_be():
    log = {"q": np.repeat(np.arange(4), 4), "s": np.tile([0.1, 0.1, 0.2, 0.2], 4)}
    log |= {"y": np.tile([0.0, 1.0, 1.0], 6)[:16], "g": np.tile(["a", "b"], 8)}
    how = {"query": "q", "score": "s", "outcome": "y", "group": "g", "threshold": 0.2}
    audit = mpc.audit(log, groups=["a"], **how, progress=False)
    width = float((audit.headline["bracket_high"] - audit.headline["bracket_low"]).item())
    assert width > 1
    assert audit.attrs["outcome_high"] - audit.attrs["outcome_low"] == 1
    assert "wider than the range of the outcome (1), so it says next to nothing: 'a'" in str(audit)
    assert "range of the outcome" not in str(mpc.audit(mpc.datasets.synthetic(), progress=False))


def test_every_engine_knows_the_range_of_the_outcome(tmp_path):
    log = mpc.datasets.synthetic(queries=300).to_frame()
    log["outcome"] = log["outcome"] * 3.5 - 1
    log.to_parquet(tmp_path / "log.parquet")
    how = {"query": "query", "score": "score", "outcome": "outcome", "group": "type"}
    walked = mpc.audit(tmp_path / "log.parquet", memory="1GB", **how, progress=False)
    assert (walked.attrs["outcome_low"], walked.attrs["outcome_high"]) == (-1.0, 2.5)
