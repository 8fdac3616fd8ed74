"""Every engine gives what memory gives of the same rows, or refuses them in the same words.

What only one engine can meet (a lost worker, a broken file, a kind of column) is in its own file.
"""

from __future__ import annotations

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.agreeing import BOOLEANS, COLUMNS, MODES, assert_agree, random_log
from mpc_lab.engines import running

ENGINES = [
    "duckdb",
    pytest.param("dask", marks=pytest.mark.needs_dask),
    pytest.param("spark", marks=pytest.mark.needs_spark),
]
AGREE = {
    "union": {"item": "title", "scoring_rules": ["baseline", "calibrated"], "groups": ["g1"]},
    "units": {"item": "item", "unit": "user", "adjust": "romano_wolf"},
    "by query": {"item": "item", "cluster": "query", "unit": "user", "adjust": "romano_wolf"},
    "labels": {"group": "label", "group_sep": "|", "query": "name", "pairing_modes": MODES},
    "rules": {
        "scoring_rules": ["boosted", mpc.Column("new")],
        "groups": ["g0"],
        "pairing_modes": MODES,
    },
    "positions": {"position": "position", "pairing_modes": MODES, "query": ["user", "name"]},
    "query_sd": {
        "item": "item",
        "closeness": "query_sd",
        "scoring_rules": ["baseline", "boosted"],
        "groups": ["g0", "g1"],
    },
    "percentile": {
        "position": "position",
        "closeness": "percentile",
        "scoring_rules": ["calibrated", mpc.Column("new")],
        "pairing_modes": MODES,
    },
    "against": {
        "item": "title",
        "against": "g1",
        "scoring_rules": ["baseline", "boosted"],
        "groups": ["g0"],
        "position": "position",
        "pairing_modes": MODES,
    },
    "sign": {"item": "item", "contrast": "sign", "adjust": "romano_wolf", "closeness": "query_sd"},
    "cap": {"item": "item", "outcome_cap": 0.5, "scoring_rules": ["baseline", "calibrated"]},
    "ascending": {"ascending": True, "scoring_rules": ["boosted", mpc.Column("new")]},
    "rank-only": {"score": None, "position": "position", "against": "g1", "item": "item"},
    "weights": {
        "item": "item",
        "unit": "user",
        "weight": "w",
        "adjust": "romano_wolf",
        "pairing_modes": MODES,
    },
    "root": {
        "item": "item",
        "weight": "w",
        "estimand": "root",
        "against": "g1",
        "scoring_rules": ["baseline", "boosted"],
        "groups": ["g0"],
        "pairing_modes": ["symmetric", *MODES],
    },
    "queries at their places": {
        "item": "item",
        "unit": "user",
        "estimand": "queries",
        "position": "position",
        "pairing_modes": ["symmetric", "matched"],
        "groups": ["g0", "g1"],
    },
    "both sides": {
        "item": "item",
        "pairing_modes": ["symmetric", "matched"],
        "scoring_rules": ["baseline", "boosted"],
        "groups": ["g0", "g1"],
    },
    "both sides by place": {
        "item": "item",
        "position": "position",
        "pairing_modes": ["symmetric", "matched"],
        "scoring_rules": ["baseline", "boosted"],
        "groups": ["g0", "g1"],
        "threshold": 0.01,
    },
    "both sides by unit and place": {
        "position": "position",
        "unit": "user",
        "adjust": "romano_wolf",
        "contrast": "sign",
        "threshold": 0.01,
    },
    "examined by place": {
        "position": "position",
        "examined": {place: place**-0.5 for place in range(1, 21)},
        "missing": "drop",
        "scoring_rules": ["baseline", "calibrated"],
        "outcome_cap": 3,
        "threshold": 0.01,
    },
    # Most places are below the floor.
    "examined by a power law": {
        "position": "position",
        "examined": mpc.PowerLaw(1.5),
        "pairing_modes": ["symmetric", "matched"],
        "weight": "w",
        "threshold": 0.01,
    },
    "examined by row": {"item": "item", "examined": "looked_at", "examined_floor": 0.2},
    "enough": {
        "item": "item",
        "threshold": mpc.Enough(20, 9),
        "scoring_rules": ["baseline", mpc.Column("new")],
    },
    "fixed": {"item": "item", "threshold": 0.004, "epsilon": [0.002, 0.004], "groups": ["g0"]},
}
REFUSED = {
    "column": ({"score": "scor"}, "no column 'scor'"),
    "rule": ({"scoring_rules": [mpc.Column("nwe")]}, "no column 'nwe'"),
    "numbers": ({"score": "name"}, "must hold numbers"),
    "items": ({"item": "user"}, "An item must occur only once in a query"),
    "missing": ({"unit": "label"}, "The unit column 'label' must be complete"),
    "unit": ({"unit": "row"}, "A query must have one unit"),
    "examined": ({"examined": "score"}, "must hold numbers above 0 and at most 1; got"),
    "places": (
        {"position": "position", "examined": {1: 1.0}},
        "examined must have each place in the log; got none for place",
    ),
    "group": ({"groups": ["g7"]}, "There is no group 'g7'"),
    "bootstrap": ({"bootstrap": 5}, "Leave bootstrap out"),
    "no weight": ({"weight": "outcome"}, "The weight column 'outcome' must hold numbers above 0"),
    "weights": ({"weight": "position"}, "All rows of a query must have one weight"),
}


@pytest.fixture(params=ENGINES)
def walk(request, tmp_path, monkeypatch):
    """Return a function that gives a frame to an engine, which walks it in several parts."""

    def as_file(frame):
        frame.to_parquet(tmp_path / "log.parquet")
        return {"data": tmp_path / "log.parquet", "memory": "1GB"}

    def on_dask(frame):
        import dask.dataframe as dd

        request.getfixturevalue("dask_client")
        return {"data": dd.from_pandas(frame, npartitions=5)}

    def on_spark(frame):
        spark = request.getfixturevalue("spark")
        plain = frame.astype({"name": object, "label": object, "title": object, "country": object})
        return {"data": spark.createDataFrame(plain.where(plain.notna(), None)).repartition(5)}

    monkeypatch.setattr(running, "_FEWEST_ROWS", 64)
    monkeypatch.setattr(running, "_MOST_ROWS", 64)
    given = {"duckdb": as_file, "dask": on_dask, "spark": on_spark}[request.param]

    def audit(frame, **how):
        return mpc.audit(**given(frame), **{**COLUMNS, "group": BOOLEANS, "progress": False, **how})

    audit.engine = request.param
    return audit


@pytest.mark.parametrize("how", AGREE.values(), ids=AGREE)
def test_an_engine_agrees_with_memory(walk, how):
    frame = random_log(1)
    if walk.engine == "spark" and "position" not in how:
        # Neighbours of one score are told apart by the order of rows, which Spark does not keep.
        modes = how.get("pairing_modes", ["matched"])
        how = {**how, "pairing_modes": [mode for mode in modes if mode != "adjacent"]}
    here = mpc.audit(frame, **{**COLUMNS, "group": BOOLEANS, "progress": False, **how})
    # Every pass of Spark is a job of a second or more, and a curve asks for all of them again.
    assert_agree(here, walk(frame, **how), curve=walk.engine != "spark" or "epsilon" in how)


@pytest.mark.parametrize(
    "how",
    [
        {"item": "title", "producer": "seller"},
        {"item": "item", "cluster": "query", "unit": "user", "closeness": "query_sd"},
        {"item": "item", "weight": "w", "position": "position", "ascending": True},
    ],
    ids=["producers", "units", "places"],
)
def test_gaps_net_of_other_groups_agree_with_memory_and_rows_stay_where_they_are(walk, how):
    frame = random_log(1)
    frame = frame.assign(seller=frame["item"] % 7, age=np.cos(np.arange(len(frame))))
    here = mpc.audit(frame, **{**COLUMNS, "group": BOOLEANS, "progress": False, **how})
    there = walk(frame, **how)
    one, other = here.partial("age").data, there.partial("age").data
    assert there.ranking is None
    assert one.attrs == other.attrs
    for name, values in one.data_vars.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(other[name], values, rtol=1e-10, atol=1e-12, err_msg=name)
    with pytest.raises(mpc.MpcError, match="no column 'nope'"):
        there.partial("nope")


@pytest.mark.parametrize(("how", "said"), REFUSED.values(), ids=REFUSED)
def test_an_engine_refuses_bad_rows(walk, how, said):
    frame = random_log(1).assign(row=lambda rows: np.arange(len(rows)) % 50)
    with pytest.raises(mpc.MpcError, match=said):
        walk(frame, **how)


DIFFERENCES = {
    "rules": (
        {"item": "item", "pairing_modes": ["symmetric", "matched"]},
        lambda audit: audit.difference("new", "baseline"),
    ),
    "rules by place": (
        {"item": "item", "position": "position", "weight": "w", "estimand": "root"},
        lambda audit: audit.difference("new", "baseline"),
    ),
    "groups by query": (
        {"pairing_modes": ["matched", "mirrored"]},
        lambda audit: audit.difference(groups=("g0", "g1")),
    ),
}


@pytest.mark.parametrize(("how", "ask"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_an_engine_subtracts_gaps_without_reading_its_rows(walk, how, ask):
    frame = random_log(1)
    how = {"threshold": 0.004, "scoring_rules": ["baseline", mpc.Column("new")], **how}
    audit = walk(frame, **how)
    found = ask(audit)
    assert audit.ranking is None
    here = ask(mpc.audit(frame, **COLUMNS, group=BOOLEANS, progress=False, **how))
    # Rows of one score have no order on Spark, and so no place.
    lost = {"churn", "displacement"} if walk.engine == "spark" and "position" not in how else set()
    assert set(found.data) == set(here.data) - lost
    for name, values in here.data.drop_vars(lost, errors="ignore").items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(found.data[name], values, rtol=1e-10, atol=1e-12)
        else:
            assert (found.data[name] == values).all(), name
