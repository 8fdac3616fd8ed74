import json

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers import betting_oracle as oracle
from mpc_lab.inference.sequence import confidence_sequence
from mpc_lab.results.gate import decide


def test_the_sequence_of_a_cell_is_that_of_its_query_variance():
    ranking = mpc.datasets.synthetic(queries=2_000)
    how = {"threshold": 0.05, "cluster": "query", "correction": "plain", "progress": False}
    audit = mpc.audit(ranking, **how)
    found = audit.confidence_sequence(planned=500, asymptotic=True)
    cell = audit.headline.sel(group="1", scoring_rule="baseline", pairing_mode="matched")
    q = int(cell["n_queries"])
    raw = float(cell["std_error_by"].sel(variance="query")) ** 2 * (q - 1) / q
    low, high = confidence_sequence(
        cell["estimate"].values,
        np.array(raw),
        np.array(2_000),
        np.array(q),
        planned=500,
        tests=2,
    )
    assert float(found["low"].sel(group="1").item()) == pytest.approx(float(low), rel=1e-10)
    assert float(found["high"].sel(group="1").item()) == pytest.approx(float(high), rel=1e-10)


COLUMNS = {name: name for name in ("query", "score", "outcome", "group")}
HOW = {"threshold": 0.25, "pairs_cap": 2, "seed": 3, "progress": False}


@pytest.fixture
def ratings():
    """A log of ratings from 1 to 5 in three groups, with ties, its queries in pieces."""
    rng = np.random.default_rng(8)
    query = rng.integers(0, 80, 900)
    frame = {
        "query": query,
        "score": rng.integers(0, 8, 900) / 8,
        "outcome": rng.integers(1, 6, 900),
        "group": rng.choice(["a", "b", "c"], 900),
        "when": pd.Timestamp("2026-03-01") + pd.to_timedelta((query * 37) % 80, unit="D"),
    }
    return pd.DataFrame(frame)


def expected_ends(frame, order, group, mode, *, from_sums=False, planned=50):
    """Work the interval out in plain loops; `order` lists the queries."""
    columns = (frame[name].tolist() for name in ("query", "score", "outcome"))
    rows = list(zip(range(len(frame)), *columns, strict=True))
    members = set(np.flatnonzero(frame["group"] == group).tolist())
    clusters = [
        oracle.closest_pairs([row for row in rows if row[1] == q], members, mode, 0.25, 2, seed=3)
        for q in order
    ]
    how = {"width": 4.0, "cap": 2}

    def against(theta):
        if from_sums:
            return oracle.capital_of_sums(clusters, theta, **how)
        return oracle.capital(clusters, theta, level=0.95, planned=planned, **how)

    return oracle.hull(against, 4.0, 3 / 0.05, points=201)


def assert_ends(found, expected):
    low, high = float(found["low"]), float(found["high"])
    assert low <= expected[0] <= low + 0.04 + 1e-9
    assert high - 0.04 - 1e-9 <= expected[1] <= high


@pytest.mark.parametrize("time", [None, "when"])
def test_bets_follow_first_rows_or_times(ratings, time):
    audit = mpc.audit(ratings, **COLUMNS, time=time, bounds=(1, 5), **HOW)
    found = audit.confidence_sequence(planned=50)
    order = list(dict.fromkeys(ratings["query"]))
    if time:
        order.sort(key=lambda query: (query * 37) % 80)
    expected = expected_ends(ratings, order, "b", "matched")
    assert_ends(found.sel(group="b").squeeze(), expected)
    assert found.attrs["method"] == "betting"
    assert json.loads(found.attrs["bounds"]) == [1.0, 5.0]


def test_the_order_of_queries_matters_to_bets_alone(ratings, tmp_path):
    both = [mpc.audit(ratings, **COLUMNS, time=t, bounds=(1, 5), **HOW) for t in (None, "when")]
    low = [audit.confidence_sequence(50)["low"].values for audit in both]
    assert not np.array_equal(*low)
    for k, audit in enumerate(both):
        audit.save(tmp_path / f"{k}.nc")
    low = [mpc.load(tmp_path / f"{k}.nc").confidence_sequence(50)["low"].values for k in (0, 1)]
    assert np.array_equal(*low)


def without_ties(frame):
    """Give no two pairs one distance: which of those are kept goes by row numbers."""
    noise = np.random.default_rng(0).random(len(frame)) / 64
    return frame.assign(score=frame["score"] + noise)


def test_a_saved_audit_and_a_pool_bet_from_sums(ratings, tmp_path):
    frame = without_ties(ratings)
    how = {**COLUMNS, **HOW, "bounds": (1, 5), "epsilon": [0.25], "cluster": "query"}
    days = [mpc.audit(frame[frame["query"] % 2 == k], **how) for k in (0, 1)]
    for k, day in enumerate(days):
        day.save(tmp_path / f"{k}.nc", ids=True, key="a")
    with pytest.warns(UserWarning, match="the band of the curve"):
        pooled = mpc.pool([mpc.load(tmp_path / f"{k}.nc") for k in (0, 1)])
    whole = mpc.audit(frame, **how)
    assert pooled.moments["capped"].values == pytest.approx(whole.moments["capped"].values)
    found = pooled.confidence_sequence()
    assert found.attrs["method"] == "betting from sums"
    expected = expected_ends(frame, range(80), "b", "matched", from_sums=True)
    assert_ends(found.sel(group="b").squeeze(), expected)


def test_audits_with_other_bounds_pool_without_a_sequence(ratings):
    halves = [ratings[ratings["query"] % 2 == k] for k in (0, 1)]
    audits = [
        mpc.audit(half, **COLUMNS, bounds=(low, 5), epsilon=[0.25], **HOW)
        for half, low in zip(halves, (0, 1), strict=True)
    ]
    with pytest.warns(UserWarning, match="the confidence sequence: not all audits know the same"):
        pooled = mpc.pool(audits)
    with pytest.raises(mpc.MpcError, match="must have bounds of the outcome"):
        pooled.confidence_sequence()


def test_a_walked_log_bets_from_the_sums_that_memory_has(ratings, tmp_path):
    pytest.importorskip("duckdb")
    frame = without_ties(ratings)
    frame.to_parquet(tmp_path / "log.parquet")
    how = {**COLUMNS, **HOW, "bounds": (1, 5), "time": "when"}
    walked = mpc.audit(tmp_path / "log.parquet", **how, memory="1GB")
    whole = mpc.audit(frame, **how)
    assert walked.moments["capped"].values == pytest.approx(whole.moments["capped"].values)
    found = walked.confidence_sequence()
    walked.pairs("a", limit=1)
    assert found.attrs["method"] == "betting from sums"
    assert found.equals(walked.confidence_sequence())
    with pytest.raises(mpc.MpcError, match="must have bounds of the outcome"):
        mpc.audit(tmp_path / "log.parquet", **COLUMNS, **HOW, memory="1GB").confidence_sequence()
    with pytest.raises(mpc.MpcError, match=r"within bounds=\(0, 4\); got"):
        mpc.audit(tmp_path / "log.parquet", **COLUMNS, **HOW, memory="1GB", bounds=(0, 4))


def test_without_bounds_there_is_no_sequence_and_no_gate(ratings):
    audit = mpc.audit(ratings, **COLUMNS, **HOW)
    for ask in (audit.confidence_sequence, lambda: audit.check(anytime=True)):
        with pytest.raises(mpc.MpcError, match=r"Run mpc.audit\(…, bounds=\(0, 5\)\) with"):
            ask()
    assert audit.confidence_sequence(asymptotic=True).attrs["method"] == "asymptotic"


def test_the_anytime_gate_goes_by_the_hull_of_both_sides(ratings):
    how = {**COLUMNS, **HOW, "bounds": (1, 5), "pairing_modes": ["matched", "mirrored"]}
    audit = mpc.audit(ratings.assign(outcome=np.where(ratings["group"] == "a", 5, 1)), **how)
    found = audit.confidence_sequence(planned=50).squeeze()
    low, high = found["low"].min("pairing_mode"), found["high"].max("pairing_mode")
    for group in "abc":
        ends = [abs(float(end.sel(group=group))) for end in (low, high)]
        decided = decide(audit, max(ends) + 1e-9, planned=50)
        assert group not in (*decided.failed, *decided.undecided)
        assert group in decide(audit, max(ends) - 1e-3, planned=50).undecided
        inner = float(low.sel(group=group)) - 1e-9
        if inner > 0:
            assert group in decide(audit, inner, planned=50).failed
    assert float(low.sel(group="a")) > 0


def test_rules_that_change_with_the_log_have_no_sequence(ratings):
    rules = ["baseline", "boosted", mpc.Boosted(0.125), "calibrated"]
    audit = mpc.audit(ratings, **COLUMNS, bounds=(1, 5), scoring_rules=rules, **HOW)
    known = np.isfinite(audit.confidence_sequence()["low"]).all("group").squeeze()
    assert known.values.tolist() == [True, False, True, False]


def test_the_estimate_is_that_of_the_capped_pairs(ratings):
    audit = mpc.audit(ratings, **COLUMNS, bounds=(1, 5), **HOW)
    found = audit.confidence_sequence()
    assert (found["n_pairs"] < audit.headline["n_pairs"]).all()
    many = mpc.audit(ratings, **COLUMNS, bounds=(1, 5), **{**HOW, "pairs_cap": 1000})
    found = many.confidence_sequence()
    assert np.array_equal(found["n_pairs"], many.headline["n_pairs"])
    assert found["estimate"].values == pytest.approx(many.headline["estimate"].values)


@pytest.mark.parametrize("bounds", [(5, 1), (1, 1), 5, (0, np.inf), ("a", "b"), (0, 1, 2)])
def test_bounds_are_the_lowest_and_the_highest_outcome(ratings, bounds):
    with pytest.raises(mpc.MpcError, match="bounds must be the lowest and the highest outcome"):
        mpc.audit(ratings, **COLUMNS, bounds=bounds, **HOW)


def test_outcomes_outside_the_bounds_are_refused(ratings):
    with pytest.raises(mpc.MpcError, match=r"outcome must be within bounds=\(0, 3\); got"):
        mpc.audit(ratings, **COLUMNS, bounds=(0, 3), **HOW)


def test_repeated_looks_need_a_threshold_fixed_in_advance():
    audit = mpc.audit(mpc.datasets.synthetic(queries=200), progress=False)
    with pytest.raises(mpc.MpcError, match="a number as threshold"):
        audit.confidence_sequence()


def test_bootstrap_intervals_are_in_the_headline_when_asked_for():
    ranking = mpc.datasets.synthetic(queries=1_000)
    audit = mpc.audit(ranking, threshold=0.05, bootstrap=199, progress=False)
    found = audit.bootstrap(199)
    assert np.array_equal(audit.headline["bootstrap_low"], found["percentile_low"])
    assert np.array_equal(audit.headline["bootstrap_t_high"], found["studentised_high"])
    cell = audit.headline.sel(group="1").squeeze()
    assert cell["bootstrap_low"] < cell["estimate"] < cell["bootstrap_high"]
