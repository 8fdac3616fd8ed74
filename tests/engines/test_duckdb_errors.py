from __future__ import annotations

import errno
import os

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers.agreeing import BOOLEANS, COLUMNS, random_log
from mpc_lab.engines import memory, running
from mpc_lab.engines.duckdb import DuckLog
from mpc_lab.engines.duckdb.chunks import Spool


def with_prices(count):
    """A float in each row, of which so many are different; no batch of rows has all."""
    frame = random_log(1)
    return frame.assign(price=np.arange(len(frame)) % count + 0.25)


def in_memory(frame, **how):
    with pytest.raises(mpc.MpcError) as caught:
        mpc.audit(frame, **{**COLUMNS, "group": BOOLEANS, "progress": False, **how})
    return str(caught.value)


def in_files(frame, folder, **how):
    path = folder / "log.parquet"
    frame.to_parquet(path)
    walked = {"memory": "1GB", "spill": folder, "progress": False}
    with pytest.raises(mpc.MpcError) as caught:
        mpc.audit(path, **{**COLUMNS, "group": BOOLEANS, **walked, **how})
    assert sorted(os.listdir(folder)) == ["log.parquet"]
    return str(caught.value)


def broken(column, row, value):
    frame = random_log(1)
    values = frame[column].astype(object)
    values[row] = value
    frame[column] = values.infer_objects()
    return frame


@pytest.mark.parametrize(
    ("frame", "how"),
    [
        (broken("score", 17, None), {}),
        (broken("score", 17, np.inf), {}),
        (broken("outcome", 3, None), {}),
        (broken("outcome", 3, -1e101), {}),
        (broken("score", 5, 2e300), {"missing": "drop"}),
        (broken("name", 5, None), {"query": "name"}),
        (broken("item", 40, None), {"item": "item"}),
        (broken("country", 4, None), {"segment": "country"}),
        (broken("position", 9, 0), {"position": "position"}),
        (broken("position", 9, 1.5), {"position": "position"}),
        (random_log(1), {"score": "name"}),
        (random_log(1), {"group": ["g0", "item"]}),
        (random_log(1), {"group": BOOLEANS, "group_sep": "|"}),
        (random_log(1), {"group": "item", "group_sep": "|"}),
        (random_log(1), {"groups": ["g9"]}),
        (with_prices(60), {"group": "price"}),
        (random_log(1), {"missing": "ignore"}),
        (random_log(1)[:0], {}),
        (random_log(1).assign(score=np.nan), {"missing": "drop"}),
        (broken("new", 8, None), {"scoring_rules": [mpc.Column("new")]}),
    ],
    ids=lambda value: "" if isinstance(value, pd.DataFrame) else str(value),
)
def test_bad_rows_get_the_sentence_that_memory_gives(frame, how, tmp_path):
    assert in_files(frame, tmp_path, **how) == in_memory(frame, **how)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"unit": "outcome"}, "A query must have one unit; got units"),
        ({"segment": "label"}, "The segment column 'label' must be complete"),
        ({"item": "user"}, "An item must occur only once in a query; got item"),
        ({"position": "user"}, "whole numbers from 1 up"),
        ({"position": "five"}, "Positions must differ within a query; got position 5 twice"),
    ],
)
def test_bad_lists_are_refused(how, said, tmp_path):
    frame = random_log(1).assign(five=5)
    assert said in in_files(frame, tmp_path, **how)


def test_a_function_as_rule_says_to_write_a_column(tmp_path):
    def squared(ranking, group):
        return ranking.score**2

    assert "mpc.Column('squared')" in in_files(random_log(1), tmp_path, scoring_rules=[squared])


def test_bootstrap_needs_rows_in_memory(tmp_path):
    assert "Leave bootstrap out" in in_files(random_log(1), tmp_path, bootstrap=10)


@pytest.mark.parametrize("memory", [None, "1GB"])
@pytest.mark.parametrize("how", [{"score": "scor"}, {"item": "itme"}, {"group": "g00"}], ids=repr)
def test_a_column_that_is_not_there_is_named_with_its_file(how, memory, tmp_path):
    (wrong,) = how.values()
    said = in_files(random_log(1), tmp_path, memory=memory, **how)
    assert f"log.parquet' has no column '{wrong}'. Did you mean" in said


def walked_audit(path, **how):
    return mpc.audit(path, **COLUMNS, group=BOOLEANS, memory="1GB", progress=False, **how)


def test_a_walked_log_is_read_again_for_a_question_that_needs_rows(tmp_path):
    path, frame = tmp_path / "log.parquet", random_log(1)
    frame.to_parquet(path)
    rules = ["baseline", mpc.Column("new")]
    audit = walked_audit(path, scoring_rules=rules)
    whole = mpc.audit(frame, **COLUMNS, group=BOOLEANS, progress=False, scoring_rules=rules)
    assert audit.ranking is None
    for rule in ("baseline", "new"):
        pd.testing.assert_frame_equal(audit.pairs("g0", rule), whole.pairs("g0", rule))
    assert audit.limit("g0").identical(whole.limit("g0"))


def test_a_walked_log_that_changed_answers_no_question(tmp_path):
    path = tmp_path / "log.parquet"
    random_log(1).to_parquet(path)
    audit = walked_audit(path)
    random_log(1).iloc[::-1].to_parquet(path)
    with pytest.raises(mpc.MpcError, match="must not change during an audit"):
        audit.pairs("g0")


def test_a_question_for_rows_that_do_not_fit_says_so(tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    random_log(1).to_parquet(path)
    audit = walked_audit(path)
    monkeypatch.setattr(running, "_physical_memory", lambda: 0)
    monkeypatch.setattr(running, "_LEAST", 1000)
    with pytest.raises(mpc.MpcError, match="must fit into memory for this method"):
        audit.pairs("g0")


def test_files_too_large_for_memory_are_walked(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    random_log(1).to_csv(path, index=False)
    monkeypatch.setattr(running, "_physical_memory", lambda: 0)
    monkeypatch.setattr(memory, "as_limits", lambda memory: running.Limits(0))
    monkeypatch.setattr(DuckLog, "__init__", stop)
    with pytest.raises(KeyboardInterrupt):
        mpc.audit(path, **COLUMNS, group=BOOLEANS)


def stop(self, *rest, **more):
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.feather"])
def test_an_unreadable_file_is_named_and_nothing_is_left(name, tmp_path):
    (tmp_path / name).write_bytes(b"\0not a table\xff" * 10)
    with pytest.raises(mpc.MpcError):
        mpc.audit(tmp_path / name, **COLUMNS, group=BOOLEANS, spill=tmp_path)
    assert os.listdir(tmp_path) == [name]


def test_a_file_cut_short_is_refused_and_nothing_is_left(tmp_path):
    path = tmp_path / "log.parquet"
    random_log(1).to_parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes(3000) + whole[3100:])
    with pytest.raises(mpc.MpcError):
        mpc.audit(path, **COLUMNS, group=BOOLEANS, spill=tmp_path)
    assert os.listdir(tmp_path) == ["log.parquet"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nowhere.parquet", "There is no file"),
        ("*.parquet", "There is no file"),
        ("log.xlsx", r"must be CSV .* got 'log\.xlsx'"),
        ("http://example.org/log.csv", "a file of this machine; got 'http:.*Download it or mount"),
        ("s3://bucket/log.parquet", "a file of this machine; got 's3:"),
    ],
    ids=repr,
)
def test_paths_that_lead_nowhere_are_refused(given, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("log.xlsx", "log.csv", "log.feather"):
        (tmp_path / name).touch()
    with pytest.raises(mpc.MpcError, match=said):
        mpc.audit(given, **COLUMNS, group=BOOLEANS)


def test_a_full_disk_gives_an_error_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_given, **_more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Spool, "_write", full)
        assert "Give spill=, a folder with more room" in in_files(random_log(1), tmp_path)
    monkeypatch.setattr("pyarrow.ipc.new_file", full)
    assert "Give spill=, a folder with more room" in in_files(random_log(1), tmp_path)


def test_an_interruption_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    random_log(1).to_parquet(path)
    monkeypatch.setattr(Spool, "append", stop)
    with pytest.raises(KeyboardInterrupt):
        walked_audit(path, spill=tmp_path)
    assert os.listdir(tmp_path) == ["log.parquet"]


def test_files_that_changed_are_not_read_for_the_curve(tmp_path):
    path = tmp_path / "log.parquet"
    random_log(1).to_parquet(path)
    audit = walked_audit(path)
    random_log(2).to_parquet(path)
    with pytest.raises(mpc.MpcError, match="must not change during an audit"):
        _ = audit.curve


@pytest.mark.parametrize(
    ("memory", "said"),
    [("much", "a size such as"), ("100MB", "at least"), (True, "a size such as"), (10, "at least")],
)
def test_a_bound_on_memory_is_a_size(memory, said, tmp_path):
    assert said in in_files(random_log(1), tmp_path, memory=memory)


def test_a_bound_on_memory_is_for_files():
    with pytest.raises(mpc.MpcError, match="memory must go with files"):
        mpc.audit(random_log(1), **COLUMNS, group=BOOLEANS, memory="4GB")


def test_a_folder_for_spilling_must_exist(tmp_path):
    assert "spill must be a folder" in in_files(random_log(1), tmp_path, spill=tmp_path / "none")


def test_an_install_without_duckdb_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "find_spec", lambda name: None)
    assert 'pip install "mpc-lab[duckdb]"' in in_files(random_log(1), tmp_path)


def test_a_link_to_nothing_is_not_left_out_in_silence(tmp_path):
    random_log(20).to_parquet(tmp_path / "0.parquet")
    (tmp_path / "1.parquet").symlink_to(tmp_path / "gone.parquet")
    with pytest.raises(
        mpc.MpcError,
        match=r"1\.parquet' must lead to a file; got a link to one that does not exist",
    ):
        mpc.audit(str(tmp_path / "*.parquet"), **COLUMNS, group=BOOLEANS)


@pytest.fixture(scope="module")
def long_csv():
    """Return the text of more rows than one look at a file takes in."""
    frame = random_log(20)
    return pd.concat([frame] * (60_000 // len(frame) + 1))[:60_000].to_csv(index=False)


@pytest.mark.parametrize("memory", [None, "1GB"])
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("7\n", "line 60,002 must have 16 cells, .* got 1, separated by commas"),
        (f"7{',' * 16}\n", "line 60,002 must have 16 cells, .* got 17"),
        ('"1,2\n', "the quote that opens in the row of line 60,002 is never closed"),
    ],
)
def test_an_error_in_a_csv_line_names_the_file(memory, line, said, tmp_path, long_csv):
    random_log(20).to_csv(tmp_path / "0.csv", index=False)
    (tmp_path / "2.csv").write_text(long_csv + line, "utf-8")
    with pytest.raises(mpc.MpcError, match=rf"2\.csv' cannot be read: {said}"):
        mpc.audit(str(tmp_path / "*.csv"), **COLUMNS, group=BOOLEANS, memory=memory)
