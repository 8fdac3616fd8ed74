"""How often places are looked at: against loops, and whether the answer can be given back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import examination as simulated
import mpc_lab as mpc
from helpers import examination_oracle as oracle
from helpers.params import combined

ROLES = {"query": "query", "score": "score", "outcome": "clicks", "group": "group"}


def log(seed=0, queries=60, size=5):
    """Draw short lists with ties, holes and places that do not follow the scores."""
    rng = np.random.default_rng(seed)
    shape = (queries, size)
    score = rng.integers(0, 6, shape) / 64
    shown = np.argsort(np.argsort(-score + rng.normal(0, 0.02, shape), axis=1), axis=1) + 1
    frame = pd.DataFrame(
        {
            "query": np.repeat(np.arange(queries), size),
            "user": np.repeat(np.arange(queries) // 2, size),
            "score": score.ravel(),
            "place": shown.ravel(),
            "group": np.where(rng.random(shape) < 0.5, "a", "b").ravel(),
            "clicks": (rng.random(shape) < 0.9 / shown**0.5).ravel() * 1.0,
        }
    )
    return frame[rng.random(len(frame)) < 0.97].sample(frac=1, random_state=seed)


def audited(frame, **more):
    return mpc.audit(frame, **ROLES, **{"position": "place", "progress": False} | more)


# At the default distance all neighbours of this log are tied, and there is no line.
@pytest.mark.parametrize(
    ("asked", "unit", "weighted"),
    combined([(None, False), (0.1, False), (0.1, True)], ["query", "user"], [False, True]),
)
def test_it_equals_loops_over_rows(asked, unit, weighted):
    epsilon, limit = asked
    frame = log(3, queries=150)
    frame["weight"] = 0.5 + frame["query"] % 3
    weight = frame["weight"].to_numpy() if weighted else None
    arrays = [frame[name].to_numpy() for name in ("query", "place", "score", "clicks", unit)]
    within = oracle.near(*arrays[:3]) if epsilon is None else epsilon
    wanted = oracle.examination(
        oracle.near_neighbours(*arrays, within, weight), places=5, limit=limit, level=0.9
    )
    given = {} if unit == "query" else {"unit": "user"}
    given |= {"weight": "weight"} if weighted else {}
    found = audited(frame, level=0.9, **given).examination(epsilon, places=5, limit=limit)
    assert found.attrs["epsilon"] == within
    assert len(wanted) == found.sizes["place"] - 1 > 0
    for k, name in enumerate(("examined", "low", "high")):
        np.testing.assert_allclose(found[name].values[1:], wanted[:, k], rtol=1e-10)
    assert found.examined.values[0] == found.low.values[0] == found.high.values[0] == 1


@pytest.mark.long
def test_the_delta_method_is_near_to_leaving_out_a_query():
    frame = log(1, queries=200)
    whole = audited(frame).examination(0.1, places=3)
    n, logs = frame["query"].nunique(), []
    for query in frame["query"].unique():
        part = audited(frame[frame["query"] != query], epsilon=[0.1], threshold=0.1)
        logs.append(np.log(part.examination(0.1, places=3).examined.values[1:]))
    spread = np.sqrt((n - 1) / n * ((np.array(logs) - np.mean(logs, axis=0)) ** 2).sum(axis=0))
    np.testing.assert_allclose(whole.std_error.values[1:], spread, rtol=0.05)


def test_the_simulated_path_is_that_of_an_audit():
    audit = mpc.audit(mpc.datasets.clicks(3000, seed=5), progress=False)
    frame = audit.ranking.to_frame().sort_values(["query", "place"])
    wide = {name: frame[name].to_numpy().reshape(-1, 20) for name in ("score", "clicks")}
    distance = wide["score"][:, :-1] - wide["score"][:, 1:]
    near = distance <= np.sort(distance, axis=None)[int(np.ceil(0.05 * distance.size)) - 1]
    query, upper = np.nonzero(near)
    clicks = wide["clicks"]
    pairs = simulated.Neighbours(
        upper + 1, clicks[query, upper], clicks[query, upper + 1], distance[near], query
    )
    direct = simulated.estimate_examination(pairs, places=20)
    found = audit.examination()
    np.testing.assert_allclose(found.examined, direct.examined, rtol=1e-12)
    np.testing.assert_allclose(found.high, direct.high, rtol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("eta", [0.7, 1.0])
def test_intervals_hold_the_truth_in_most_of_fifty_logs(eta):
    seen = np.array([simulated.found(eta, 8000, seed) for seed in range(50)])
    covers = seen[:, simulated.LAST - 1 :]
    # Four Monte-Carlo errors below 95 % for a place; all places together are 450 intervals.
    assert np.nanmean(covers, axis=0).min() >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 50)
    assert np.nanmean(covers) >= 0.92


def test_it_goes_back_into_an_audit():
    frame = mpc.datasets.clicks(20_000, seed=2, eta=1.0).to_frame()
    options = {"position": "place", "threshold": 0.02, "epsilon": [0.02]}
    found = audited(frame, **options).examination(places=8)
    again = audited(frame, **options, examined=found, missing="drop")
    assert set(again.ranking.position) == set(range(1, 9))
    assert again.ranking.examined is not None
    known = again.ranking.examined[again.ranking.position == 8]
    np.testing.assert_allclose(known, max(found.examined.values[7], 0.05))
    assert "That curve is an estimate" in again.summary()
    cell = again.headline.isel(group=0, scoring_rule=0, pairing_mode=0)
    assert float(cell.ci_low) < 0.05 < float(cell.ci_high)
    # Of divided outcomes the log as it was is asked again, and gives the same curve.
    same = again.examination(found.attrs["epsilon"], places=8)
    np.testing.assert_allclose(same.examined, found.examined, rtol=1e-12)


def test_it_ends_where_little_is_known():
    found = audited(log(0, queries=30)).examination()
    assert "fewer than 20" in found.attrs["ended"]
    none = audited(log(2, queries=120).assign(clicks=0.0)).examination(1)
    assert none.sizes["place"] == 1
    assert "no outcome on a side" in none.attrs["ended"]
    tied = audited(log(2, queries=120).assign(score=0.5)).examination(limit=True)
    assert "too alike for a line" in tied.attrs["ended"]


def test_what_it_cannot_answer_is_one_sentence():
    with pytest.raises(mpc.MpcError, match="log with positions; got none"):
        mpc.audit(log(), **ROLES, progress=False).examination()
    with pytest.raises(mpc.MpcError, match="Outcomes must be at least 0"):
        audited(log().assign(clicks=-1.0)).examination()
    with pytest.raises(mpc.MpcError, match="places must be a whole number of at least 2"):
        audited(log()).examination(places=1)
    places = {name: role for name, role in ROLES.items() if name != "score"}
    with pytest.raises(mpc.MpcError, match="log with scores"):
        mpc.audit(log(), **places, position="place", progress=False).examination()


def test_a_sample_with_weights_speaks_for_the_whole_log():
    """Lists in which people look further down are kept less often, and weighted for it."""
    frame = mpc.datasets.clicks(8000, seed=4, eta=1.5).to_frame()
    patient = mpc.datasets.clicks(8000, seed=5, eta=0.0).to_frame()
    patient["query"] += frame["query"].max() + 1
    rng = np.random.default_rng(0)
    kept = rng.random(int(patient["query"].max()) + 1) < 0.25
    sampled = patient[kept[patient["query"]]]
    weights = [(frame, 1.0), (sampled, 4.0)]
    whole = pd.concat([frame, patient])
    part = pd.concat([log.assign(weight=weight) for log, weight in weights])
    wanted = audited(whole).examination(places=3).examined.values[1:]
    weighted = audited(part, weight="weight").examination(places=3)
    plain = audited(part).examination(places=3).examined.values[1:]
    error = weighted.std_error.values[1:]
    assert (abs(np.log(weighted.examined.values[1:] / wanted)) < 2 * error).all()
    assert (np.log(wanted / plain) > 2 * error).all()
