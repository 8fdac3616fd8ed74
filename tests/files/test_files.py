"""What a file means, one rule at a time."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import mpc_lab as mpc
from helpers.file_corpus import BASE, COLUMNS, arrow, text
from mpc_lab.engines.duckdb.rows import connect
from mpc_lab.engines.running import as_limits
from mpc_lab.explorers.start_panel import Start
from mpc_lab.files import Roles, find_files
from mpc_lab.files.values import text_to_numbers


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


@pytest.mark.long
@pytest.mark.parametrize("zone", ["America/New_York", "UTC"])
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
    with pytest.raises(mpc.MpcError, match="must go with a text file; got no text files"):
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


@pytest.mark.long
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
def test_a_cell_that_is_not_a_number_is_missing(cell):
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


def lines_of(frame):
    return frame.to_csv(index=False).splitlines()


@pytest.mark.parametrize("memory", [None, "1GB"])
@pytest.mark.parametrize("other", ["", '5" pipe', '"b"', '"a"b"'], ids=repr)
def test_an_open_quote_loses_no_rows_in_silence(other, memory, tmp_path):
    frame = pd.concat([BASE.assign(q=BASE["q"] + f"-{k}") for k in range(300)])
    lines = lines_of(frame)
    lines[100] = lines[100].rpartition(",")[0] + ',"a'
    lines[50 if "pipe" in other else 150] = lines[50].rpartition(",")[0] + "," + (other or "a")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(mpc.MpcError, match="the quote that opens in the row of line"):
        mpc.audit(tmp_path / "a.csv", **COLUMNS, memory=memory)


def test_a_column_that_is_asked_for_later_is_of_the_same_rows(tmp_path):
    text(BASE.assign(price=range(60)))(tmp_path / "a.csv")
    audit = mpc.audit(tmp_path / "a.csv", **COLUMNS, progress=False)
    text(BASE.assign(price=range(60))[::-1])(tmp_path / "a.csv")
    with pytest.raises(mpc.MpcError, match="The files must not change before"):
        audit.balance(["price"])


@pytest.mark.parametrize("memory", [None, "1GB"])
def test_nan_is_not_an_id(memory, tmp_path):
    item = BASE["i"].astype(float).to_numpy().copy()
    item[3] = np.nan
    arrow(BASE, i=lambda _: pa.array(item, from_pandas=False))(tmp_path / "a.parquet")
    with pytest.raises(mpc.MpcError, match="1 missing value in row 3"):
        mpc.audit(tmp_path / "a.parquet", **COLUMNS, memory=memory)


def test_a_folder_reads_what_it_links_to_and_loops_do_no_harm(tmp_path):
    for name in ("log", "else"):
        (tmp_path / name).mkdir()
    text(BASE[:30])(tmp_path / "log" / "a.csv")
    text(BASE[30:])(tmp_path / "else" / "b.csv")
    os.symlink("../else", tmp_path / "log" / "more")
    os.symlink("../log", tmp_path / "else" / "back")
    assert mpc.audit(tmp_path / "log", **COLUMNS, progress=False).ranking.n_rows == 60


@pytest.mark.parametrize("name", ["s3:x.parquet", "http:x.parquet", "file:x.feather"])
def test_a_name_that_looks_like_an_address_is_a_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arrow()(tmp_path / name)
    assert mpc.audit(name, **COLUMNS, progress=False).ranking.n_rows == 60


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(mpc.MpcError, match="must be an ordinary file"):
        mpc.audit(tmp_path / "a.csv", **COLUMNS)


def test_capitals_in_the_end_of_a_name_change_nothing(tmp_path):
    (tmp_path / "A.CSV.GZ").write_bytes(gzip.compress(BASE.to_csv(index=False).encode()))
    assert mpc.audit(tmp_path / "A.CSV.GZ", **COLUMNS, progress=False).ranking.n_rows == 60


@pytest.mark.parametrize("row", [0, 59])
def test_true_among_numbers_of_json_is_another_kind_wherever_it_is(row, tmp_path):
    rows = BASE.assign(y=BASE["y"].astype(object)).to_dict("records")
    rows[row]["y"] = True
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    with pytest.raises(mpc.MpcError, match=r"'y' of .* must hold values of one kind; got bool"):
        mpc.audit(tmp_path / "a.jsonl", **COLUMNS)


def test_lists_without_labels_go_with_lists_of_labels(tmp_path):
    for name, groups in (("a", [[]] * 30), ("b", [["x"], ["y"]] * 15)):
        rows = (BASE[:30] if name == "a" else BASE[30:]).assign(g=groups).to_dict("records")
        content = "".join(json.dumps(one) + "\n" for one in rows)
        (tmp_path / f"{name}.jsonl").write_text(content)
    assert mpc.audit(tmp_path, **COLUMNS, progress=False).groups == ("x", "y")


@pytest.mark.parametrize("others", [[], ["NA"]], ids=repr)
def test_only_plain_words_are_missing(others):
    wrong = text_to_numbers(pa.array(["nan(5)", *others]))[1]
    assert wrong[0]


def test_a_thousand_is_not_taken_for_a_decimal(tmp_path):
    text(BASE.assign(s="1,000"), sep=";")(tmp_path / "a.csv")
    with pytest.raises(mpc.MpcError, match=r"got '1,000' in line 2\. Correct it"):
        mpc.audit(tmp_path / "a.csv", **COLUMNS)


# Columns that nobody asked for --------------------------------------------------------------------


def odd_columns() -> dict[str, pa.Array]:
    kinds = pa.array([k % 2 for k in range(60)], pa.int8())
    return {
        "time64": pa.array(range(1, 61), pa.time64("ns")),
        "zone": pa.array(range(60), pa.timestamp("us", tz="Mars/Olympus")),
        "day": pa.array([2**30] * 60, pa.date32()),
        "union": pa.UnionArray.from_sparse(kinds, [pa.array(range(60)), pa.array(["x"] * 60)]),
        "list_view": pa.array([[k] for k in range(60)], pa.list_view(pa.int64())),
        "decimal": pa.nulls(60, pa.decimal128(9, -2)),
        "interval": pa.array([(1, 2, k) for k in range(60)], pa.month_day_nano_interval()),
        "map": pa.array([[("a", k)] for k in range(60)], pa.map_(pa.string(), pa.int64())),
    }


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "zone" else pytest.mark.long)
        for name in odd_columns()
    ],
)
def test_an_odd_column_stops_nobody_who_does_not_use_it(name, tmp_path):
    table = pa.Table.from_pandas(BASE, preserve_index=False)
    feather.write_feather(
        table.append_column("odd", odd_columns()[name]),
        str(tmp_path / "a.feather"),
        compression="uncompressed",
    )
    right = mpc.audit(BASE, **COLUMNS).to_frame()
    found = mpc.audit(tmp_path / "a.feather", **COLUMNS).to_frame()
    pd.testing.assert_frame_equal(found, right)
    panel = Start(namespace=dict)
    panel.state.use(find_files(tmp_path / "a.feather").read_all(), "a.feather")
    for role, column in COLUMNS.items():
        panel.state.choose(role, column)
    assert "left out" in "".join(panel.state.sheet.notes)
    assert panel.widget
    pd.testing.assert_frame_equal(panel.run().to_frame(), right)
    for door in (
        lambda: mpc.audit(tmp_path / "a.feather", **{**COLUMNS, "score": "odd"}),
        lambda: panel.state.choose("score", "odd"),
    ):
        with pytest.raises(mpc.MpcError, match="'odd'"):
            door()


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_a_name_that_occurs_twice_stops_nobody_who_does_not_use_it(kind, tmp_path):
    path, table = tmp_path / f"a.{kind}", pa.Table.from_pandas(BASE, preserve_index=False)
    table = table.append_column("x", pa.array(range(60))).append_column("x", pa.array(range(60)))
    if kind == "csv":
        pa_csv.write_csv(table, path)
    elif kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    for memory in (None, "1GB"):
        assert mpc.audit(path, **COLUMNS, memory=memory).groups == ("a", "b", "é")
    assert find_files(path).head().column_names == list(COLUMNS.values())
    with pytest.raises(mpc.MpcError, match="got 'x' 2 times"):
        mpc.audit(path, **{**COLUMNS, "score": "x"})


def test_json_of_mixed_kinds_stops_nobody_who_does_not_use_it(tmp_path):
    rows = BASE.assign(x=[1, "a", True] * 20).to_dict("records")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    assert mpc.audit(tmp_path / "a.jsonl", **COLUMNS).groups == ("a", "b", "é")
    with pytest.raises(mpc.MpcError, match="of one kind; got bool and int and str"):
        mpc.audit(tmp_path / "a.jsonl", **{**COLUMNS, "score": "x"})


def test_whole_numbers_that_fit_no_common_type_are_refused_as_such(tmp_path):
    arrow(BASE[:30], q=lambda c: pa.array([2**63 + int(v) for v in c], pa.uint64()))(
        tmp_path / "a.parquet"
    )
    arrow(BASE[30:], q=lambda c: pa.array([int(v) for v in c]))(tmp_path / "b.parquet")
    with pytest.raises(mpc.MpcError, match=r"must fit int64.*got uint64") as caught:
        mpc.audit(tmp_path, **COLUMNS)
    assert "float" not in str(caught.value)


def test_what_follows_a_packed_file_is_not_passed_over(tmp_path):
    packed = lzma.compress(BASE.to_csv(index=False).encode())
    (tmp_path / "a.csv.xz").write_bytes(packed + b"more")
    with pytest.raises(mpc.MpcError, match=r"a\.csv\.xz' cannot be read: its end"):
        mpc.audit(tmp_path / "a.csv.xz", **COLUMNS)


def test_a_table_of_many_columns_is_looked_at_in_time_linear_in_them(tmp_path):
    spent = []
    for count in (500, 4000):
        names = [f"x{k}" for k in range(count)]
        (tmp_path / "a.csv").write_text(f"{','.join(names)}\n{','.join('1' for _ in names)}\n")
        start = time.process_time()
        find_files(tmp_path / "a.csv").read_all().as_it_looks()
        spent.append(time.process_time() - start)
    assert spent[1] < 24 * max(spent[0], 0.05)
