"""What a file means, one rule at a time."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from file_corpus import BASE, COLUMNS, arrow, text

import mpc_lab as mpc
from mpc_lab.engines.duck_database import connect
from mpc_lab.engines.limits import as_limits
from mpc_lab.files import Roles, find_files
from mpc_lab.files.cells import text_to_numbers


def test_decimals_of_a_pyarrow_table_are_rounded_correctly():
    score = [Decimal(k) / 10 for k in range(1, 2000)]
    table = pa.table(
        {"s": pa.array(score, pa.decimal128(20, 10)), "q": range(1999), "g": ["a"] * 1999}
    )
    ranking = mpc.Ranking(table, query="q", score="s", outcome="s", group="g")
    np.testing.assert_array_equal(ranking.score, [float(one) for one in score])


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table])
@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0]], ids=repr)
def test_two_zeros_are_one_group_of_one_name(make, zeros):
    frame = make({"q": [1, 1], "s": [1.0, 2.0], "y": [1, 0], "g": zeros})
    ranking = mpc.Ranking(frame, query="q", score="s", outcome="y", group="g")
    assert ranking.groups == ("0.0",)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_names_of_times_do_not_follow_the_zone_of_the_machine(zone, tmp_path):
    when = pd.date_range("2026-01-01 23:00", periods=2, freq="D", tz="Asia/Tokyo")
    frame = BASE.assign(g=[when[k % 2] for k in range(60)])
    arrow(frame)(tmp_path / "a.parquet")
    how = {**COLUMNS, "memory": "1GB", "progress": False}
    code = (
        "import mpc_lab as mpc\n"
        f"print(mpc.audit({str(tmp_path / 'a.parquet')!r}, **{how!r}).groups[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TZ": zone}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "2026-01-01 23:00:00+09:00", done.stderr


def test_a_file_that_is_named_twice_is_read_once_and_said_so(tmp_path, capsys):
    text()(tmp_path / "a.csv")
    os.link(tmp_path / "a.csv", tmp_path / "c.csv")
    os.symlink("a.csv", tmp_path / "b.csv")
    given = [
        tmp_path / "a.csv",
        str(tmp_path / "." / "a.csv"),
        tmp_path / "b.csv",
        tmp_path / "c.csv",
    ]
    audit = mpc.audit(given, **COLUMNS, progress=False)
    assert audit.ranking.n_rows == len(BASE)
    assert capsys.readouterr().err.count("is the same file as") == 2


def test_separator_and_encoding_are_printed_once_for_files_alike(tmp_path, capsys):
    for name in ("a.csv", "b.csv"):
        text(BASE.assign(q=name + BASE["q"]), sep=";", encoding="latin-1")(tmp_path / name)
    mpc.audit(tmp_path, **COLUMNS, progress=False)
    assert "a.csv' and 1 more: read as text separated by semicolons and encoded as cp1252." in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"sep": "||"}, "The separator must be one character"),
        ({"sep": 1}, "The separator must be one character"),
        ({"encoding": "klingon"}, "The encoding must be one that Python knows"),
        ({"encoding": "rot13"}, "The encoding must be one that Python knows"),
    ],
    ids=repr,
)
def test_how_text_is_written_must_make_sense(how, said, tmp_path):
    text()(tmp_path / "a.csv")
    with pytest.raises(mpc.MpcError, match=said):
        mpc.audit(tmp_path / "a.csv", **COLUMNS, **how)


@pytest.mark.parametrize("name", ["sep", "encoding"])
def test_how_text_is_written_is_for_text(name, tmp_path):
    arrow()(tmp_path / "a.parquet")
    with pytest.raises(mpc.MpcError, match="must be that of a text file; got none"):
        mpc.audit(tmp_path / "a.parquet", **COLUMNS, **{name: ";"})
    with pytest.raises(mpc.MpcError, match=f"{name} must go with files"):
        mpc.audit(BASE, **COLUMNS, **{name: ";"})


def test_a_cell_of_a_gigabyte_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(b"q,i,s,y,g\n1,")
        for _ in range(100):
            file.write(b"x" * (1 << 20))
    with pytest.raises(mpc.MpcError, match="a row is longer than 8 MB"):
        mpc.audit(path, **COLUMNS)


def test_another_column_of_a_file_is_read_when_it_is_asked_for(tmp_path):
    frame = BASE.assign(price=[f"{k % 7}.50" for k in range(60)])
    frame.loc[3, "s"] = np.nan
    text(frame)(tmp_path / "a.csv")
    audit = mpc.audit(tmp_path / "a.csv", **COLUMNS, missing="drop", progress=False)
    kept = frame["price"].astype(float).drop(3).to_numpy()
    np.testing.assert_array_equal(audit.ranking.column("price"), kept)
    half = audit.ranking.subset(np.arange(59) % 2 == 0)
    np.testing.assert_array_equal(half.column("price"), kept[::2])
    assert audit.ranking.to_frame().columns.tolist() == list("qgisy")


def test_a_letter_far_down_tells_the_encoding(tmp_path):
    frame = pd.concat([BASE.replace("é", "a").assign(q=BASE["q"] + f"-{k}") for k in range(2000)])
    text(pd.concat([frame, BASE]), encoding="latin-1")(tmp_path / "a.csv")
    found = find_files(tmp_path / "a.csv").read(Roles(labels=("g",)))
    assert set(found["g"].unique().to_pylist()) == {"a", "b", "é"}


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("0.1", 0.1),
        ("\t1 ", 1.0),
        ("+.5", 0.5),
        ("1.", 1.0),
        ("1E3", 1000.0),
        ("18446744073709551617", 2.0**64),
        ("True", 1.0),
        ("FALSE", 0.0),
        ("-nan", None),
        ("N/A", None),
        ("", None),
        (None, None),
        ("-Inf", -np.inf),
        ("1e999", np.inf),
    ],
)
def test_a_cell_is_the_same_number_alone_and_among_odd_ones(cell, number):
    for others in ([], ["yes"], [" 2"]):
        found, wrong = text_to_numbers(pa.array([cell, *others], pa.string()))
        assert found[0].as_py() == number
        assert not wrong[0]


@pytest.mark.parametrize(
    "cell", ["1_000", "0x10", "1,5", "1 000", "yes", "1d5", "--1", "١", "$1", "1e"]
)
def test_a_cell_that_is_no_number_is_none(cell):
    assert text_to_numbers(pa.array([cell, "1"], pa.string()))[1].tolist() == [True, False]


def test_the_database_reaches_no_file_and_no_network(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "spill").mkdir()
    for question in (
        f"SELECT * FROM read_csv('{tmp_path / 'a.csv'}')",
        "SELECT * FROM 'https://127.0.0.1/a.parquet'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
    ):
        with pytest.raises(mpc.MpcError), connect(as_limits("1GB"), tmp_path / "spill") as database:
            database.do(question)
