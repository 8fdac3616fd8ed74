"""Labels of items: what they are called in pairs, drivers and sentences, however a log is read."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from mpc_lab.charts.drivers import drivers as draw
from mpc_lab.cli import main
from mpc_lab.explorers.problems import find_problems
from mpc_lab.ranking.names import guess_columns
from mpc_lab.results.questions.drivers import driver_names, heaviest_in_words

NAMES = {"query": "query", "item": "item_id", "score": "score", "outcome": "outcome"}
COLUMNS = {**NAMES, "group": "group", "label": "title"}


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(60), 8)
    item = np.concatenate([rng.permutation(20)[:8] for _ in range(60)])
    return pd.DataFrame(
        {
            "query": query,
            "item_id": item,
            "title": pd.Series([f"Film {one}" for one in item], dtype=object),
            "score": rng.integers(0, 60, len(query)) / 64,
            "outcome": rng.normal(size=len(query)) + 0.3 * (item % 2),
            "group": np.where(item % 2, "a", "b"),
        }
    )


def audit_of(log, **more):
    return mpc.audit(log, **{**COLUMNS, "threshold": 0.1, "progress": False, **more})


def without_label(frame, item, rows=slice(None), value=None):
    """Return the log with another label in some rows of an item."""
    frame = frame.copy()
    frame.loc[frame.index[frame["item_id"] == item][rows], "title"] = value
    return frame


def test_pairs_have_the_labels_of_both_items(frame):
    pairs = audit_of(frame).pairs("a")
    assert len(pairs) > 20
    for item, label in (("item", "label"), ("other_item", "other_label")):
        assert pairs[label].tolist() == [f"Film {one}" for one in pairs[item]]
    assert "label" not in audit_of(frame, label=None).pairs("a")


def test_numbers_do_not_depend_on_labels(frame):
    plain, labelled = audit_of(frame, label=None), audit_of(frame)
    assert labelled.to_frame().equals(plain.to_frame())
    assert labelled.ranking.fingerprint() == plain.ranking.fingerprint()


@pytest.mark.parametrize("empty", [None, "", "  ", np.nan])
def test_an_item_without_a_label_is_called_by_its_id(frame, empty):
    ranking = mpc.Ranking(without_label(frame, 4, value=empty), **COLUMNS)
    called = dict(zip(frame["item_id"], ranking.item_names(ranking.item_code), strict=True))
    assert called[4] == "4"
    assert called[5] == "Film 5"


def test_a_label_may_be_missing_in_some_rows_of_an_item(frame):
    ranking = mpc.Ranking(without_label(frame, 4, slice(0, 3)), **COLUMNS)
    assert ranking.n_rows == len(frame)
    assert set(ranking.item_names(ranking.item_code)) == set(frame["title"])


def test_a_subset_keeps_the_labels_of_its_items(frame):
    keep = frame["query"].to_numpy() >= 30
    part = mpc.Ranking(frame, **COLUMNS).subset(keep)
    assert part.item_names(part.item_code).tolist() == frame["title"][keep].tolist()


def test_a_label_needs_an_item(frame):
    with pytest.raises(
        mpc.MpcError, match=r"label must be given together with item; .*Name the item column too"
    ):
        audit_of(frame, item=None)
    found = find_problems(frame, {**COLUMNS, "item": None})
    assert [one.role for one in found if "choose the item too" in one.sentence] == ["label"]


def test_two_labels_of_an_item_are_named(frame):
    twice = without_label(frame, 5, slice(2, 3), "Other")
    with pytest.raises(mpc.MpcError) as error:
        audit_of(twice)
    assert str(error.value) == (
        "An item must have one label; got 'Film 5' and 'Other' for item 5. Correct the column, "
        "or name columns in item that tell such items apart."
    )
    found = [one for one in find_problems(twice, COLUMNS) if one.role == "label"]
    assert [one.count for one in found] == [1]


def test_drivers_are_called_by_their_labels(frame):
    found = audit_of(frame).drivers("a", by="item", limit=5)
    assert found.label.values.tolist() == [f"Film {one}" for one in found.driver.values]
    assert driver_names(found, show_ids=False) == found.label.values.tolist()
    assert f"without item {found.label.values[0]}, " in heaviest_in_words(found)
    assert found.label.values[0] in json.dumps(draw(found).to_dict())
    assert "label" not in audit_of(frame).drivers("a", limit=1)


def test_drivers_with_one_label_are_told_apart(frame):
    frame["title"] = "Remake"
    found = audit_of(frame).drivers("a", by="item", limit=2)
    assert driver_names(found, show_ids=True) == [f"Remake ({one})" for one in found.driver.values]


def test_the_preflight_names_the_largest_item_by_its_label(frame):
    frame.loc[frame.groupby("query").head(1).index, ["item_id", "title", "group"]] = 21, "Hit", "a"
    frame = frame[(frame["group"] == "b") | (frame["item_id"] == 21)]
    found = audit_of(frame, threshold=1.0).preflight.set_index("check").loc["largest item"]
    assert found["sentence"].startswith("Item 'Hit' is in ")
    assert "!= 21" in found["remedy"]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda frame: frame, "title"),
        (lambda frame: frame.assign(country="France"), "title"),
        (lambda frame: frame.assign(other=frame["title"] + "!"), None),
        (lambda frame: without_label(frame, 5, slice(2, 3), "Other"), None),
        (lambda frame: frame.drop(columns="item_id"), None),
        (lambda frame: frame.drop_duplicates("item_id"), None),
    ],
)
def test_the_one_text_that_is_constant_for_items_is_guessed(frame, change, wanted):
    assert guess_columns(change(frame))["label"] == wanted


def test_the_command_line_takes_and_guesses_labels(frame, tmp_path, capsys):
    path = str(tmp_path / "log.csv")
    frame.to_csv(path, index=False)
    words = [word for role, name in COLUMNS.items() for word in (f"--{role}", name)]
    saved = str(tmp_path / "a.nc")
    assert main(["audit", path, *words, "--save", saved]) == 0
    loaded = mpc.load(
        saved, ranking=mpc.Ranking(pd.read_csv(path, dtype={"item_id": str}), **COLUMNS)
    )
    assert json.loads(loaded.attrs["columns"])["label"] == "title"
    assert loaded.pairs("a", limit=1)["label"].str.startswith("Film ").all()
    capsys.readouterr()
    assert main(["audit", path, "--guess"]) == 0
    assert "--label title" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("dask", marks=pytest.mark.needs_dask)])
def test_walked_logs_take_labels_and_check_them(frame, engine, tmp_path, request):
    def walk(frame):
        if engine == "duckdb":
            frame.to_parquet(tmp_path / "log.parquet")
            return audit_of(tmp_path / "log.parquet", memory="1GB")
        import dask.dataframe as dd

        request.getfixturevalue("dask_client")
        return audit_of(dd.from_pandas(frame, npartitions=4))

    some = without_label(frame, 4, slice(0, 3))
    walked = walk(some)
    assert walked.ranking is None
    known = audit_of(some).pairs("a")
    pairs = walked.pairs("a")
    assert sorted(pairs["label"]) == sorted(known["label"])
    with pytest.raises(mpc.MpcError, match=r"An item must have one label; got .* for item 5"):
        walk(without_label(frame, 5, slice(-2, None), "Other"))


def test_a_label_that_is_not_there_is_missed_by_a_walk(frame, tmp_path):
    frame.to_parquet(tmp_path / "log.parquet")
    with pytest.raises(mpc.MpcError, match="has no column 'titel'"):
        audit_of(tmp_path / "log.parquet", memory="1GB", label="titel")
