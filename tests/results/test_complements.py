"""A group and its complement never get the same direction, at whatever thresholds."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mpc_lab as mpc
from mpc_lab.results.gate import InconclusiveAudit, Least, decide
from mpc_lab.vocabulary import COMPLEMENT, DIRECTIONS

COLUMNS = {"query": "q", "score": "s", "outcome": "y", "group": "g"}
HALF = mpc.Quantile(0.5)


def log_of(seed=0, queries=600, close=0.6, near_gap=1.0, far_gap=4.0, labels="ab"):
    """Return lists of two items whose gap turns round with the distance of their scores.

    `close` is the share of near pairs where the first label is below, and of far ones where it is
    above, so that the two groups get different thresholds.
    """
    rng = np.random.default_rng(seed)
    query = np.arange(queries)
    below = query % 2 == 0
    near = (rng.random(queries) < close) == below
    distance = np.where(near, 0.01, 1.0) * np.where(below, -1, 1)
    gap = np.where(near, near_gap, -far_gap)
    noise = rng.normal(size=(2, queries))
    first = pd.DataFrame({"q": query, "g": labels[0], "s": distance, "y": gap + noise[0]})
    return pd.concat([first, first.assign(g=labels[1], s=0.0, y=noise[1])], ignore_index=True)


def audit_of(data, **options):
    return mpc.audit(data, **{"threshold": HALF, "progress": False, **COLUMNS, **options})


def verdicts_of(audit):
    headline = audit.headline.isel(pairing_mode=0).sel(scoring_rule="baseline")
    return headline["verdict"].values.tolist(), headline["verdict_reason"].values.tolist()


CONTRADICTED = (["inconclusive"] * 2, [COMPLEMENT] * 2)


def test_both_would_have_been_undervalued():
    alone = [verdicts_of(audit_of(log_of(), groups=[group]))[0] for group in "ab"]
    assert alone == [["undervalued"], ["undervalued"]]


def test_neither_gets_a_direction_and_every_door_says_so(tmp_path, no_charts):
    audit = audit_of(log_of())
    assert verdicts_of(audit) == CONTRADICTED
    assert "'complement says the same': all items outside the group" in audit.summary()
    found = audit.preflight.set_index("check").loc["complements"]
    assert found["state"] == "caution"
    space = {"mpc": mpc, "frame": log_of()}
    exec(found["remedy"], space)
    assert space["audit"].preflight.set_index("check").loc["complements", "state"] == "ok"
    for level in (None, 0.9):
        with pytest.warns(InconclusiveAudit, match="contradict each other, of a group and of its"):
            audit.check(level=level)
    with pytest.warns(UserWarning, match="cannot tell whether the gap is within"):
        audit.check(tolerance=0.1)
    assert COMPLEMENT in audit.to_json()
    assert COMPLEMENT in audit.report(tmp_path / "report.html").read_text(encoding="utf-8")
    audit.save(tmp_path / "audit.nc")
    saved = mpc.load(tmp_path / "audit.nc")
    assert verdicts_of(saved) == CONTRADICTED
    with pytest.raises(mpc.AuditFailed, match="contradict each other"):
        saved.check(level=0.9, inconclusive="raise")


def test_a_gate_does_not_pass_what_contradicts_itself():
    found = decide(audit_of(log_of()))
    assert (found.answer, found.failed, found.contradicting) == (2, (), ("a", "b"))
    assert json.loads(audit_of(log_of()).to_json())["gate"]["contradicting"] == ["a", "b"]
    # Groups that are set aside do not decide, whatever they contradict.
    assert decide(audit_of(log_of()), least=Least(pairs=10**6)).contradicting == ()


def test_a_gate_still_passes_complements_without_a_finding():
    quiet = audit_of(log_of(near_gap=0.0, far_gap=0.0))
    assert "complements" in quiet.attrs
    assert decide(quiet).answer == 0


def test_at_one_threshold_and_against_a_third_group_nothing_is_taken():
    for options in ({"threshold": 0.01}, {"threshold": 2.0}):
        audit = audit_of(log_of(), **options)
        assert set(verdicts_of(audit)[0]) == set(DIRECTIONS)
        assert "complements" not in audit.attrs


def test_a_third_group_or_a_row_without_a_label_makes_no_complement():
    frame = log_of()
    one_more = pd.DataFrame({"q": [0, 1], "g": "c", "s": 9.0, "y": 0.0})
    audit = audit_of(pd.concat([frame, one_more], ignore_index=True))
    assert "complements" not in audit.attrs
    assert verdicts_of(audit)[0][:2] == ["undervalued"] * 2
    several = frame.assign(a=frame["g"] == "a", b=frame["g"] == "b")
    both = audit_of(several, group=["a", "b"])
    assert json.loads(both.attrs["complements"])["groups"] == [["a", "b"]]
    several.loc[len(several) - 1, "a"] = True
    assert "complements" not in audit_of(several, group=["a", "b"]).attrs


def test_boosted_groups_have_scores_of_their_own():
    audit = audit_of(log_of(), scoring_rules=["baseline", "boosted", "calibrated"])
    assert json.loads(audit.attrs["complements"])["rules"] == ["baseline", "calibrated"]


def test_pools_go_by_what_holds_in_every_log():
    logs = [log_of(seed) for seed in (0, 1)]
    parts = [audit_of(log.assign(q=log["q"] + 10_000 * k)) for k, log in enumerate(logs)]
    assert verdicts_of(mpc.pool(parts)) == CONTRADICTED


def test_files_that_are_walked_know_their_complements(tmp_path):
    pytest.importorskip("duckdb")
    log_of().to_parquet(tmp_path / "log.parquet")
    assert verdicts_of(audit_of(tmp_path / "log.parquet", memory="1GB")) == CONTRADICTED


def test_dask_knows_its_complements():
    dask = pytest.importorskip("dask.dataframe")
    frame = log_of().sort_values("q", ignore_index=True)
    assert verdicts_of(audit_of(dask.from_pandas(frame, npartitions=3))) == CONTRADICTED


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    close=st.floats(0.0, 1.0),
    gaps=st.tuples(st.floats(-5, 5), st.floats(-5, 5)),
    share=st.floats(0.05, 0.95),
)
def test_no_log_has_two_complements_of_one_direction(seed, close, gaps, share):
    frame = log_of(seed, 120, close, *gaps)
    verdict, _ = verdicts_of(audit_of(frame, threshold=mpc.Quantile(share)))
    assert verdict[0] != verdict[1] or verdict[0] not in DIRECTIONS
