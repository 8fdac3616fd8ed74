"""Outcomes divided by how likely their row is looked at."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mpc_lab as mpc

COLUMNS = {"query": "q", "score": "s", "outcome": "y", "group": "g", "position": "k"}


def log(**more):
    frame = pd.DataFrame(
        {
            "q": [0, 0, 0, 1, 1, 1],
            "s": [0.9, 0.8, 0.7, 0.5, 0.4, 0.3],
            "y": [1.0, 0.0, 1.0, 1.0, 1.0, 0.0],
            "g": ["a", "b", "a", "b", "a", "b"],
            "k": [1, 2, 3, 1, 2, 3],
            "p": [1.0, 0.5, 0.25, 1.0, 0.5, 0.01],
        }
    )
    return frame.assign(**more)


ROLES = {
    "query": "query",
    "item": "item",
    "score": "score",
    "outcome": "clicks",
    "position": "place",
}
TABLE = {1: 1.0, 2: 0.5, 3: 0.25}


@pytest.mark.parametrize(
    "examined",
    [
        TABLE,
        pd.Series(TABLE),
        mpc.PowerLaw(1.0),
        xr.Dataset({"examined": ("place", [1.0, 0.5, 0.25])}, {"place": [1, 2, 3]}),
        xr.DataArray([1.0, 0.5, 0.25], {"place": [1, 2, 3]}),
    ],
    ids=["dict", "Series", "PowerLaw", "Dataset", "DataArray"],
)
def test_outcomes_are_divided_by_what_was_given_for_their_place(examined):
    ranking = mpc.Ranking(log(), **COLUMNS, examined=examined)
    third = 3.0 if isinstance(examined, mpc.PowerLaw) else 4.0
    assert ranking.outcome.tolist() == [1.0, 0.0, third, 1.0, 2.0, 0.0]
    assert ranking.outcome_given.tolist() == [1.0, 0.0, 1.0, 1.0, 1.0, 0.0]
    assert ranking.n_floored == 0


def test_a_column_is_raised_to_the_floor_and_counted():
    ranking = mpc.Ranking(log(y=1.0), **COLUMNS, examined="p")
    assert ranking.outcome.tolist() == [1, 2, 4, 1, 2, 20]
    assert ranking.n_floored == 1
    higher = mpc.Ranking(log(y=1.0), **COLUMNS, examined="p", examined_floor=0.5)
    assert higher.outcome.tolist() == [1, 2, 2, 1, 2, 2]
    assert higher.n_floored == 2
    assert higher.subset(higher.query_code == 0).n_floored == 1


def test_a_column_needs_no_positions():
    named = {name: column for name, column in COLUMNS.items() if name != "position"}
    assert mpc.Ranking(log(), **named, examined="p").outcome[2] == 4


def test_an_estimate_above_1_keeps_its_ratios():
    found = xr.Dataset({"examined": ("place", [1.0, 2.0, 0.5])}, {"place": [1, 2, 3]})
    ranking = mpc.Ranking(log(y=1.0), **COLUMNS, examined=found)
    assert ranking.outcome.tolist() == [2, 1, 4, 2, 1, 4]


@pytest.mark.parametrize(
    ("examined", "message"),
    [
        ({1: 1.0, 2: 0.5}, r"each place in the log; got none for place 3 \(2 rows"),
        ({1: 1.2, 2: 0.5, 3: 0.1}, "above 0 and at most 1; got 1.2 for place 1"),
        ({0: 1.0}, "whole numbers from 1 up; got 0"),
        ({}, "at least one place"),
        ({"top": 1.0}, "examined must have numbers"),
        (0.7, r"got 0.7. Give a column.*mpc.PowerLaw\(0.7\)"),
        ([1.0, 0.5], "examined must say how likely"),
        ("attention", "no column 'attention'"),
        ("y", r"examined column 'y' must hold numbers above 0 and at most 1; got 0 in row 1"),
    ],
)
def test_examined_must_be_a_probability_for_every_row(examined, message):
    with pytest.raises(mpc.MpcError, match=message):
        mpc.Ranking(log(), **COLUMNS, examined=examined)


def test_rows_at_unknown_places_can_be_left_out():
    ranking = mpc.Ranking(log(), **COLUMNS, examined={1: 1.0, 2: 0.5}, missing="drop")
    assert (ranking.n_rows, ranking.dropped) == (4, 2)


def test_a_curve_needs_positions_and_a_floor_needs_a_curve():
    named = {name: column for name, column in COLUMNS.items() if name != "position"}
    with pytest.raises(mpc.MpcError, match="examined must go with position"):
        mpc.Ranking(log(), **named, examined=TABLE)
    with pytest.raises(mpc.MpcError, match="examined_floor must go with examined"):
        mpc.Ranking(log(), **COLUMNS, examined_floor=0.1)
    with pytest.raises(mpc.MpcError, match="eta must be a finite number of at least 0"):
        mpc.PowerLaw(-1)


def test_a_cap_is_on_the_outcome_as_logged():
    frame = log(y=[5.0, 0.0, 2.0, 1.0, 1.0, 0.0])
    audit = mpc.audit(
        frame, **COLUMNS, examined=TABLE, outcome_cap=2, threshold=0.5, epsilon=[1], progress=False
    )
    assert audit.ranking.outcome.tolist() == [2, 0, 8, 1, 2, 0]
    assert audit.ranking.n_capped == 1


def test_the_fingerprint_knows_the_examination():
    plain, other = mpc.Ranking(log(), **COLUMNS), mpc.Ranking(log(), **COLUMNS, examined=TABLE)
    assert plain.fingerprint() != other.fingerprint()


def clicks(**more):
    frame = mpc.datasets.clicks(3000, seed=1, eta=0.7).to_frame()
    return mpc.audit(frame, **ROLES, group="group", epsilon=[0.02], threshold=0.02, progress=False,
                     **more)  # fmt: skip


def test_divided_outcomes_go_by_score_and_know_no_place():
    audit = clicks(examined=mpc.PowerLaw(0.7))
    assert "place_overlap" not in audit.headline
    cell = audit.headline.isel(group=0, scoring_rule=0)
    symmetric = cell.sel(pairing_mode="symmetric")
    # Worth 0.05 more at equal scores, whatever the place.
    assert float(symmetric.ci_low) < 0.05 < float(symmetric.ci_high)
    assert float(cell.sel(pairing_mode="matched").ci_high) > 0.05 - 0.01
    assert float(symmetric.place_effect_low) < 0 < float(symmetric.place_effect_high)
    same = mpc.audit(
        audit.ranking.to_frame().assign(clicks=audit.ranking.outcome),
        query="query", item="item", score="score", outcome="clicks", group="group",
        pairing_modes=("symmetric", "matched"), epsilon=[0.02], threshold=0.02, progress=False,
    )  # fmt: skip
    for name in ("estimate", "std_error", "place_effect", "n_pairs"):
        np.testing.assert_allclose(audit.headline[name], same.headline[name], rtol=1e-12)


def test_the_words_say_what_was_divided(tmp_path):
    audit = clicks(examined=mpc.PowerLaw(1.5))
    said = audit.summary()
    assert "divided by the probability that their row is looked at (examined: place^-1.5;" in said
    assert "rows were below 0.05 and raised to it" in said
    assert "Being shown above an item with the same score" not in said
    assert "examined=mpc.PowerLaw(eta=1.5)" in audit.recipe().call
    audit.save(tmp_path / "a.nc")
    assert "place^-1.5" in mpc.load(tmp_path / "a.nc").summary()
    table = clicks(examined={k: 1 / k for k in range(1, 21)})
    assert "examined={1: 1.0, 2: 0.5," in table.recipe().call


def test_pairs_show_what_their_outcomes_are_divided_by():
    audit = clicks(examined=mpc.PowerLaw(0.7))
    pairs = audit.pairs("a", pairing_mode="symmetric", limit=50)
    made = pairs.outcome / pairs.examined - pairs.other_outcome / pairs.other_examined
    np.testing.assert_allclose(pairs.difference, made, atol=1e-12)


def test_boosts_say_what_they_rest_on():
    logged, divided = clicks(), clicks(examined=mpc.PowerLaw(0.7))
    sentence = "hardly ever shown the other way round. Give examined="
    assert sentence in logged.boost_curve("a", [0.0]).attrs["caution"]
    assert sentence in repr(logged.fair_boost("a"))
    assert divided.boost_curve("a", [0.0]).attrs["caution"] == ""
    assert divided.fair_boost("a").caution == ""


def test_audits_are_pooled_at_one_examination():
    one = clicks(examined=mpc.PowerLaw(0.7))
    frame = mpc.datasets.clicks(2000, seed=2).to_frame()
    options = {"group": "group", "epsilon": [0.02], "threshold": 0.02, "progress": False}
    other = mpc.audit(frame, **ROLES, **options)
    with pytest.raises(mpc.MpcError, match="must all have the same examined=; got several"):
        mpc.pool([one, other])
