"""The way from a log to an explorer: rows, columns, problems, run; nothing chosen is lost."""

from __future__ import annotations

import gzip
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import traitlets

import mpc_lab as mpc
from mpc_lab.engines.running import report_progress_to
from mpc_lab.explorers.problems import (
    MOST_SHOWN,
    can_run,
    find_problems,
    preview_html,
    problems_html,
    readable,
)
from mpc_lab.explorers.start_panel import Start, frames_in, start
from mpc_lab.explorers.start_state import StartState, code_of
from mpc_lab.files import Roles, find_files, take_upload
from mpc_lab.roles import ROLES as ALL_ROLES

COLUMNS = {"query": "q", "score": "s", "outcome": "y", "group": "g"}
SCRIPT = "<script>alert(1)</script>"


def log(**changes):
    made = {
        "q": [1, 1, 2, 2],
        "s": [0.4, 0.3, 0.2, 0.1],
        "y": [1, 0, 1, 0],
        "g": ["a", "b", "a", "b"],
    }
    return {**made, **changes}


def found(frame, **columns):
    problems = find_problems(frame, {**COLUMNS, **columns})
    return [(one.role, one.kind, one.rows, one.values) for one in problems]


@pytest.fixture(scope="module")
def frame():
    return mpc.datasets.synthetic(queries=300).to_frame()


# Problems -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_a_sound_log_has_no_problems_in_any_table(make):
    assert found(make(log())) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"s": ["0.4", "n/a", "0.2", "0.1"]}, ("score", "drop", (1,), ("n/a",))),
        ({"y": [1, None, 0, 1]}, ("outcome", "drop", (1,), ("(missing)",))),
        ({"y": [1, float("inf"), 0, 1]}, ("outcome", "drop", (1,), ("inf",))),
        ({"q": ["a", "a", "b", None]}, ("query", "drop", (3,), ("(missing)",))),
        ({"s": ["1", " ", "2", "3"]}, ("score", "drop", (1,), (" ",))),
    ],
)
def test_a_row_that_cannot_be_used_is_listed_with_its_value(changes, problem):
    assert found(log(**changes)) == [problem]


def test_positions_must_be_whole_and_differ_inside_a_query():
    frame = log(q=[1] * 4, p=[1, 1, 0, 2.5])
    assert found(frame, position="p") == [
        ("position", "stop", (0, 1), ("1 (query 1)", "1 (query 1)")),
        ("position", "drop", (2, 3), ("0", "2.5")),
    ]


def test_an_item_occurs_once_in_a_query():
    assert found(log(i=["x", "x", "x", SCRIPT]), item="i") == [
        ("item", "stop", (0, 1), ("x (query 1)", "x (query 1)"))
    ]


@pytest.mark.parametrize("role", ["unit", "segment"])
def test_a_query_is_in_one_unit_and_segment(role):
    frame = log(u=["x", "y", "z", "z"])
    assert found(frame, **{role: "u"}) == [(role, "stop", (1,), ("y (query 1)",))]


def test_rows_that_are_left_out_do_not_count_as_repeated():
    frame = log(i=["x", "x", "y", "z"], s=[0.4, None, 0.2, 0.1])
    assert [one[:2] for one in found(frame, item="i")] == [("score", "drop")]


def test_a_query_of_several_columns_is_checked_whole():
    frame = log(q=[1, 1, 1, 1], d=[1, 1, 2, 2], i=["x", "y", "x", "y"])
    assert found(frame, query=["q", "d"], item="i") == []
    assert found(frame, item="i")[0][:2] == ("item", "stop")


@pytest.mark.parametrize(
    ("changes", "columns", "words"),
    [
        ({}, {"group": None}, "Choose the column that holds the group"),
        ({"q": [1, 2, 3, 4]}, {}, "Every query has one row only"),
        ({"g": ["a"] * 4}, {}, "Every row is in group 'a'"),
        ({"g": ["", None, "", ""]}, {}, "No row has a label"),
        ({"g": [1, "1", 2, 2]}, {}, "labels with different names"),
        ({"g": [1, 2, 1, 2]}, {"group_sep": "|"}, "must hold text to be split"),
        ({"s": [None] * 4}, {}, "Every row has a problem"),
        ({"q": [], "s": [], "y": [], "g": []}, {}, "The table has no rows"),
    ],
)
def test_what_concerns_the_whole_column_stops_the_audit(changes, columns, words):
    problems = find_problems(log(**changes), {**COLUMNS, **columns})
    assert words in problems[0].sentence
    assert not can_run(problems, leave_out=True)


def test_a_group_column_of_prices_stops_the_audit():
    many = {name: np.resize(values, 120) for name, values in log().items()}
    many |= {"q": np.arange(120) % 4, "i": np.arange(120), "g": np.arange(120) + 0.25}
    problems = find_problems(many, COLUMNS)
    assert "must hold labels; got 120 different numbers such as 0.25" in problems[0].sentence
    assert not can_run(problems, leave_out=True)


def test_no_more_than_twenty_rows_are_listed_and_the_rest_counted():
    many = {name: np.resize(values, 100) for name, values in log().items()}
    many["y"] = np.where(np.arange(100) < 90, np.nan, 1.0)
    problem = find_problems(many, COLUMNS)[0]
    assert (len(problem.rows), problem.count, problem.more) == (MOST_SHOWN, 90, 70)
    assert "and 70 rows more" in problems_html([problem], many, COLUMNS, leave_out=False)


def test_what_every_problem_lists_is_what_a_ranking_refuses():
    for changes in (
        {"s": ["0.4", "n/a", "0.2", "0.1"]},
        {"y": [1, None, 0, 1]},
        {"s": [1e301, 0.3, 0.2, 0.1]},
    ):
        assert not can_run(find_problems(log(**changes), COLUMNS), leave_out=False)
        with pytest.raises(mpc.MpcError, match="must"):
            mpc.Ranking(log(**changes), **COLUMNS)


def test_a_column_with_two_parts_is_noted_and_stops_nothing():
    problems = find_problems(log(), {**COLUMNS, "score": "y"})
    assert [(one.role, one.kind) for one in problems] == [("outcome", "note")]
    assert can_run(problems, leave_out=False)


def test_numbers_written_as_text_are_read():
    frame = log(s=["0.4", " 0.3", "2e-1", "0.1"])
    assert find_problems(frame, COLUMNS) == []
    read = readable(frame, COLUMNS, leave_out=False)
    assert read["s"].tolist() == [0.4, 0.3, 0.2, 0.1]


def test_rows_that_cannot_be_read_are_left_out_when_asked():
    frame = log(s=["0.4", "n/a", "inf", "0.1"], p=[1, 2, 1, 0])
    columns = {**COLUMNS, "position": "p"}
    read = readable(frame, columns, leave_out=True)
    assert mpc.Ranking(read, **columns, missing="drop").n_rows == 1


def test_a_table_that_needs_no_change_is_given_back():
    frame = pd.DataFrame(log())
    assert readable(frame, COLUMNS, leave_out=True) is frame


def test_names_and_values_are_text_in_the_list_of_problems():
    frame = pd.DataFrame(log(s=["0.4", SCRIPT, "0.2", "0.1"])).rename(columns={"g": "<b>g"})
    columns = {**COLUMNS, "group": "<b>g"}
    html = problems_html(find_problems(frame, columns), frame, columns, leave_out=False)
    assert "<script" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    assert "<script" not in preview_html(frame)


# Where rows come from -----------------------------------------------------------------------------


def test_the_frames_of_a_namespace_are_found():
    names = {
        "a": pd.DataFrame(log()),
        "b": pl.DataFrame(log()),
        "c": pa.table(log()),
        "_hidden": pd.DataFrame(log()),
        "kind": pd.DataFrame,
        "text": "a",
        "lazy": pl.LazyFrame(log()),
        "column": pd.Series([1]),
    }
    assert list(frames_in(names)) == ["a", "b", "c"]


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet", "feather"])
def test_a_file_is_read_by_its_path_and_as_an_upload(tmp_path, kind):
    frame, path = pd.DataFrame(log()), tmp_path / f"log.{kind}"
    if kind in ("parquet", "feather"):
        getattr(frame, f"to_{kind}")(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    for files in (find_files(path), take_upload(path.name, memoryview(path.read_bytes()))):
        shown = files.read_all().as_it_looks().to_pandas()
        pd.testing.assert_frame_equal(shown, frame, check_dtype=False)


def test_a_folder_is_read_as_one_log(tmp_path):
    frame = pd.DataFrame(log())
    frame[:2].to_csv(tmp_path / "a.csv", index=False)
    frame[2:].to_csv(tmp_path / "b.csv", index=False)
    assert find_files(tmp_path).read_all().table["g"].to_pylist() == ["a", "b", "a", "b"]


def test_a_path_that_cannot_be_read_says_what_is_wrong(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "log.xlsx").write_text("x")
    (tmp_path / "bad.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "bad.parquet").write_text("x")
    for name, words in {
        "": "There is no file ''. Give the path of a file of a log",
        "nowhere.csv": "There is no file 'nowhere.csv'",
        str(tmp_path / "empty"): "There is no file",
        str(tmp_path / "log.xlsx"): "A file of a log must be CSV",
        str(tmp_path / "bad.csv"): "bad.csv' cannot be read",
        str(tmp_path / "bad.parquet"): "bad.parquet' cannot be read",
    }.items():
        with pytest.raises(mpc.MpcError, match=words):
            find_files(name).read_all()


# What was chosen ----------------------------------------------------------------------------------


def test_new_rows_keep_the_parts_that_were_chosen_by_hand(frame):
    state = StartState()
    state.use(frame, "log")
    state.choose("segment", None)
    state.choose("outcome", "score")
    state.use(frame.rename(columns={"type": "kind"}), "log")
    assert (state.columns["segment"], state.columns["outcome"]) == (None, "score")
    assert state.columns["group"] == "kind"
    state.use(frame.drop(columns="score").assign(label=1.0), "log")
    assert state.columns["outcome"] == "outcome"


def test_a_group_column_brings_its_separator():
    state = StartState()
    state.use(log(h=["a|b", "b", "c", "a"]), "log")
    state.choose("group", "h")
    assert state.columns["group_sep"] == "|"
    state.choose("group_sep", None)
    state.choose("group", "g")
    state.choose("group", "h")
    assert state.columns["group_sep"] is None


def test_a_choice_that_cannot_be_is_refused_and_changes_nothing(frame):
    state = StartState()
    with pytest.raises(mpc.MpcError, match="The rows must be chosen"):
        state.choose("score", "score")
    state.use(frame, "log")
    before = dict(state.columns)
    with pytest.raises(mpc.MpcError, match=r"no column 'scor' to use as score.*'score'"):
        state.choose("score", "scor")
    with pytest.raises(mpc.MpcError, match=r"no role 'scores'.*'score'"):
        state.choose("scores", "score")
    with pytest.raises(traitlets.TraitError, match="tolerance must be a number above 0"):
        state.tolerance = -1
    with pytest.raises(traitlets.TraitError, match="at least one of matched"):
        state.pairing_modes = ()
    assert state.columns == before


def test_a_ranking_brings_its_columns():
    ranking = mpc.datasets.synthetic(queries=50)
    state = StartState()
    state.use(ranking, "ranking")
    assert {k: v for k, v in state.columns.items() if v} == ranking.columns.given()


def test_the_code_does_what_the_panel_does(frame):
    state = StartState()
    state.use(frame, "log")
    state.tolerance, state.leave_out = 0.05, True
    names = {"mpc": mpc, "log": frame}
    exec(code_of(state), names)
    assert names["audit"].to_frame().equals(state.run().to_frame())


@pytest.mark.parametrize("leave_out", [False, True])
@pytest.mark.parametrize("door", ["file", "frame"])
def test_the_code_does_what_the_panel_does_with_cells_that_are_no_numbers(
    tmp_path, frame, door, leave_out
):
    frame = frame.astype({"score": object})
    if leave_out:
        frame.loc[[3, 50], "score"] = ["high", "inf"]
        frame.loc[7, "outcome"] = np.nan
    path, state = tmp_path / "log.csv", StartState()
    frame.to_csv(path, index=False, sep=";")
    written = frame.assign(score=frame["score"].astype(str))
    if door == "file":
        state.use(find_files(path).read_all(), "log.csv", {"data": str(path), "sep": ";"})
    else:
        state.use(written, "log")
    state.leave_out = leave_out
    names = {"mpc": mpc, "log": written}
    exec(code_of(state), names)
    assert ("readable" in code_of(state)) == (leave_out or door == "frame")
    assert names["audit"].to_frame().equals(state.run().to_frame())


def test_an_upload_is_named_as_it_was_and_a_bad_cell_by_its_line():
    state = StartState()
    state.use(uploaded("q,s,y,g\n1,0.5,1,a\n1,high,0,b\n"), "log.csv")
    for role, column in COLUMNS.items():
        state.choose(role, column)
    with pytest.raises(mpc.MpcError, match=r"^Column 's' of 'log\.csv' must .* 'high' in line 3"):
        state.run()
    with pytest.raises(mpc.MpcError, match=r"^'log\.csv' has no column 'z'"):
        state.choose("score", "z")


def test_the_progress_of_an_audit_is_reported(frame):
    state, told = StartState(), []
    state.use(frame, "log")
    state.run(lambda label, done, total: told.append((label, done, total)))
    assert told[-1][1] == told[-1][2] > 0
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_no_progress_is_reported_after_the_work_is_over(frame):
    told = []
    columns = {name: name for name in ("query", "item", "score", "outcome")}
    with report_progress_to(lambda *step: told.append(step)):
        mpc.audit(frame, **columns, group="type")
    before = len(told)
    mpc.audit(frame, **columns, group="type")
    assert len(told) == before > 0


# The panel ----------------------------------------------------------------------------------------


def opened(frame=None, **names):
    panel = Start(frame, namespace=lambda: names)
    _ = panel.widget
    return panel


def test_start_without_rows_offers_frames_and_cannot_run(frame):
    panel = opened(mine=frame, other=3)
    assert [value for _, value in panel.controls["frame"].options] == ["", "mine"]
    assert panel.controls["run"].disabled
    assert panel.controls["note"].text == "Choose the rows first."


def test_without_frames_a_file_is_asked_for():
    panel = opened()
    assert panel.controls["rows_from"].value == "file"
    assert panel.controls["path"].layout.display == ""


def test_a_chosen_frame_is_guessed_shown_and_run(frame):
    panel = opened(mine=frame)
    panel.controls["frame"].value = "mine"
    assert panel.controls["rows"].text == "mine: 3,000 rows, 6 columns."
    assert panel.controls["group"].label == "type"
    assert not panel.controls["run"].disabled
    panel.controls["run"].click()
    assert panel.controls["error"].value == ""
    assert panel.audit.groups == ("1", "2")
    assert panel.explorer.audit is panel.audit
    assert panel.controls["explorer"].children == (panel.explorer.widget,)


def test_a_given_ranking_is_shown_with_its_code():
    panel = opened(mpc.datasets.synthetic(queries=50))
    assert "mpc.audit(" in panel.controls["code"].value
    assert panel.run().groups == ("1", "2")


def test_a_given_frame_is_shown_under_its_name(frame):
    panel = opened(frame, mine=frame)
    assert panel.controls["frame"].value == "mine"
    assert "mpc.audit(mine," in panel.controls["code"].value


def test_frames_made_later_are_listed_when_asked(frame):
    names = {}
    panel = Start(namespace=lambda: names)
    _ = panel.widget
    names["later"] = frame
    panel.controls["look_again"].click()
    assert [value for _, value in panel.controls["frame"].options] == ["", "later"]


def test_a_file_is_read_and_an_error_keeps_what_was_chosen(tmp_path, frame):
    frame.to_csv(tmp_path / "log.csv", index=False)
    panel = opened()
    panel.controls["path"].value = str(tmp_path / "log.csv")
    panel.controls["read"].click()
    panel.controls["segment"].value = 0
    before = dict(panel.state.columns)
    panel.controls["path"].value = str(tmp_path / "none.csv")
    panel.controls["read"].click()
    assert "There is no file" in panel.controls["rows_error"].value
    assert panel.controls["error"].value == ""
    assert panel.state.columns == before
    assert panel.state.source == "log.csv"
    panel.controls["run"].click()
    assert panel.controls["error"].value == panel.controls["rows_error"].value == ""
    assert panel.audit is not None


def uploaded(text, name="log.csv", pack=bytes):
    return take_upload(name, pack(text.encode())).read_all()


@pytest.mark.parametrize(
    "ids",
    [
        ["007", "7"],
        ["7", "-07"],
        ["007", ""],
        ['"007"', "1.5"],
        ["12345678901234567", ""],
        ["012345678901234567890123", "1"],
        ["NA", "DE"],
        ["1", "1.0"],
        ["true", "1"],
    ],
)
def test_an_id_stays_the_text_it_is(ids):
    read = uploaded("id,score\n" + "".join(f"{one},0.5\n" for one in ids))
    table = read.by_role(Roles(labels=("id",), numbers=("score",)))
    assert table["id"].to_pylist() == [one.strip('"') or None for one in ids]
    assert table["score"].to_pylist() == [0.5, 0.5]


@pytest.mark.parametrize("kept", ["0", "0.5", "-0.5", "1e5", "-0", "0e0", "10", "1e300", "nan"])
def test_what_plays_the_part_of_a_number_is_one(kept):
    read = uploaded(f"score\tother\n{kept}\t1\n2\t\n", "log.tsv")
    table = read.by_role(Roles(numbers=("score", "other")))
    np.testing.assert_array_equal(table["score"].to_numpy(), [float(kept), 2])
    assert table["other"].to_pylist() == [1, None]


def test_a_column_whose_name_occurs_twice_is_left_out_with_a_note():
    sheet = uploaded("id,id,ok\n1,01,True\n", "log.csv.gz", gzip.compress)
    assert sheet.table.column_names == ["ok"]
    assert re.search("got 'id' 2 times in .* That column is left out", sheet.notes[0])


def test_a_row_with_too_many_fields_is_reported_and_moves_no_column():
    with pytest.raises(mpc.MpcError, match=r"'log.csv'.*line 2 must have 3 cells.*got 4"):
        uploaded("q,s,y\n1,0.5,1,x\n2,0.25,0,x\n")


def upload(panel, content, name="log.csv"):
    """Hand a file over as the page does."""
    panel.controls["rows_from"].value = "upload"
    given = {"name": name, "type": "text/csv", "size": len(content)}
    given |= {"content": memoryview(content), "last_modified": pd.Timestamp("2026", tz="UTC")}
    panel.controls["upload"].value = (given,)


def read(panel, path):
    """Type a path and click."""
    panel.controls["path"].value = str(path)
    panel.controls["read"].click()


def test_an_upload_is_read(frame):
    panel = opened()
    upload(panel, frame.to_csv(index=False).encode(), f"{SCRIPT}.csv")
    assert panel.controls["error"].value == panel.controls["rows_error"].value == ""
    assert panel.state.columns["group"] == "type"
    assert "<script" not in panel.controls["rows"].value


# Text files of other kinds ------------------------------------------------------------------------

ROLES = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
ROLES |= {"group": "type", "segment": "query_type"}


@pytest.fixture(scope="module")
def french(frame, tmp_path_factory):
    """A log as a spreadsheet in France writes it, but for its decimals."""
    path = tmp_path_factory.mktemp("french") / "log.csv"
    named = frame.assign(type=frame["type"].map({"1": "café", "2": "thé"}))
    named.to_csv(path, index=False, sep=";", encoding="latin-1")
    return path


@pytest.mark.parametrize("door", ["path", "upload"])
def test_semicolons_and_latin_1_are_found_and_reported(french, door):
    panel = opened()
    _ = read(panel, french) if door == "path" else upload(panel, french.read_bytes())
    assert panel.controls["rows"].text == (
        "log.csv: 3,000 rows, 6 columns. 'log.csv': read as text separated by semicolons and "
        "encoded as cp1252."
    )
    assert {role: name for role, name in panel.state.columns.items() if name} == ROLES
    panel.controls["run"].click()
    assert panel.audit.groups == ("café", "thé")
    assert panel.audit.to_frame().equals(mpc.audit(french, **ROLES).to_frame())


@pytest.mark.parametrize("door", ["path", "upload"])
def test_delimiter_and_encoding_can_be_given(tmp_path, door):
    path = tmp_path / "log.csv"
    path.write_bytes("a,q^g,h\n1,1^ж,x\n".encode("koi8-r"))
    panel = opened()
    _ = read(panel, path) if door == "path" else upload(panel, path.read_bytes())
    assert list(panel.state.as_written.column_names) == ["a", "q^g", "h"]
    panel.controls["delimiter"].value, panel.controls["encoding"].value = "^ ", " koi8-r"
    if door == "path":  # an upload is read again at once
        panel.controls["read"].click()
    assert panel.controls["rows_error"].value == ""
    assert panel.state.as_written.to_pylist() == [{"a,q": "1,1", "g,h": "ж,x"}]


@pytest.mark.parametrize(
    ("name", "delimiter", "encoding", "words"),
    [
        ("log.csv", ";;", "", "The separator must be one character"),
        ("log.csv", "", "latin-99", "The encoding must be one that Python knows"),
        ("log.parquet", ";", "", "sep and encoding must go with a text file; got no text files"),
    ],
)
def test_a_delimiter_or_encoding_that_cannot_be_is_named_as_its_field(
    tmp_path, frame, name, delimiter, encoding, words
):
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    panel = opened()
    panel.controls["delimiter"].value, panel.controls["encoding"].value = delimiter, encoding
    read(panel, tmp_path / name)
    assert words in panel.controls["rows_error"].value
    assert panel.state.frame is None


def test_ids_that_are_one_number_are_two_queries(tmp_path, frame):
    path = tmp_path / "log.csv"
    number = frame["query"].astype(str)
    frame.assign(query=number.where(frame["query"] != 1, "0.0")).to_csv(path, index=False)
    panel = opened()
    read(panel, path)
    made, known = panel.run(), mpc.audit(path, **ROLES)
    assert made.ranking.n_queries == known.ranking.n_queries == 300
    assert made.to_frame().equals(known.to_frame())


def test_a_file_that_looks_as_the_one_before_is_shown_too(tmp_path):
    panel = opened()
    for query in ("7", "007"):
        pd.DataFrame(log(q=[query] * 4)).to_csv(tmp_path / f"{query}.csv", index=False)
        read(panel, tmp_path / f"{query}.csv")
        assert panel.controls["rows"].text.startswith(f"{query}.csv: ")
        assert f">{query}<" in panel.controls["preview"].value


def test_rows_are_shown_as_they_are_written(tmp_path):
    path = tmp_path / "log.csv"
    pd.DataFrame(log(q=["007", "007", "08", "08"], y=["1", "x", "0", "1"])).to_csv(path)
    panel = opened()
    read(panel, path)
    for role, column in COLUMNS.items():
        panel.state.choose(role, column)
    assert ">007<" in panel.controls["preview"].value
    assert ">007<" in panel.controls["problems"].value


def test_cells_that_are_no_numbers_are_listed_and_can_be_left_out(tmp_path, frame):
    wrong = frame["outcome"].astype(str)
    wrong[3], wrong[4] = "0,5", ""
    frame.assign(outcome=wrong).to_csv(tmp_path / "log.csv", index=False)
    panel = opened()
    read(panel, tmp_path / "log.csv")
    found = [(one.role, one.kind, one.rows, one.values) for one in panel.state.problems]
    assert found == [
        ("outcome", "drop", (4,), ("(missing)",)),
        ("outcome", "drop", (3,), ("0,5",)),
    ]
    assert panel.controls["run"].disabled
    panel.controls["leave_out"].value = True
    panel.controls["run"].click()
    assert panel.audit.ranking.dropped == 2


def test_the_code_of_a_file_does_what_the_panel_does(french):
    panel = opened()
    panel.controls["delimiter"].value = ";"
    read(panel, french)
    names = {"mpc": mpc}
    exec(code_of(panel.state), names)
    assert names["audit"].to_frame().equals(panel.run().to_frame())


def test_a_saved_audit_lands_in_its_explorer_at_once(tmp_path, frame):
    made = opened(frame).run()
    made.save(tmp_path / "a.nc")
    panel = opened()
    panel.controls["path"].value = str(tmp_path / "a.nc")
    panel.controls["read"].click()
    assert panel.controls["error"].value == ""
    assert panel.explorer.audit.groups == made.groups


def test_problems_disable_the_button_until_rows_are_left_out(frame):
    panel = opened(frame.assign(outcome=frame["outcome"].where(frame.index > 2)))
    assert panel.controls["run"].disabled
    assert "is missing in 3 rows" in panel.controls["problems"].value
    panel.controls["leave_out"].value = True
    assert not panel.controls["run"].disabled
    panel.controls["run"].click()
    assert panel.audit.ranking.dropped == 3


def test_a_failing_audit_is_shown_and_can_be_tried_again(frame, monkeypatch):
    panel = opened(frame)

    def fails(*_, **__):
        raise mpc.MpcError("Not today.")

    with monkeypatch.context() as patched:
        patched.setattr("mpc_lab.explorers.start_state.audit", fails)
        panel.controls["run"].click()
    assert "Not today." in panel.controls["error"].value
    assert panel.audit is None
    assert panel.state.columns["group"] == "type"
    panel.controls["run"].click()
    assert panel.controls["error"].value == ""
    assert panel.audit is not None


def test_boolean_columns_can_be_groups_together(frame):
    flags = frame.drop(columns="type").assign(new=frame["type"] == "1", old=frame["type"] == "2")
    panel = opened(flags)
    assert panel.state.columns["group"] == ["new", "old"]
    assert panel.controls["group"].label == "boolean columns: new, old"
    assert panel.controls["group_sep"].disabled
    panel.controls["run"].click()
    assert panel.audit.groups == ("new", "old")


def test_options_that_cannot_be_are_said_and_undone(frame):
    panel = opened(frame)
    panel.controls["tolerance"].value = "much"
    assert "The tolerance must be a number such as 0.05" in panel.controls["error"].value
    panel.controls["tolerance"].value = "0.05"
    assert panel.controls["error"].value == ""
    assert panel.state.tolerance == 0.05
    panel.controls["pairing_modes"].value = ()
    assert "at least one of" in panel.controls["error"].value
    assert panel.controls["pairing_modes"].value == ("matched",)
    panel.controls["pairing_modes"].value = ("matched", "mirrored")
    assert panel.state.pairing_modes == ("matched", "mirrored")


def test_modes_follow_the_position_column_until_some_are_chosen(frame):
    places = frame.groupby("query")["score"].rank(ascending=False, method="first").astype(int)
    panel = opened(frame.assign(position=places))
    assert panel.state.columns["position"] == "position"
    assert panel.controls["pairing_modes"].value == ("symmetric", "matched")
    assert "pairing_modes" not in panel.state.keywords()
    panel.state.choose("position", None)
    assert panel.controls["pairing_modes"].value == ("matched",)
    panel.controls["pairing_modes"].value = ("symmetric", "matched", "mirrored")
    panel.state.choose("position", "position")
    assert panel.state.keywords()["pairing_modes"] == ("symmetric", "matched", "mirrored")


def test_the_terms_of_a_comparison_are_folded_and_go_into_the_audit(frame):
    panel = opened(frame)
    assert panel.controls["more"].selected_index is None
    usual = panel.state.keywords()
    assert not {"closeness", "contrast", "estimand", "outcome_cap", "against"} & set(usual)
    panel.controls["closeness"].value = "query_sd"
    panel.controls["estimand"].value = "root"
    assert "estimand=&#x27;root&#x27;" in panel.controls["code"].value
    panel.controls["contrast"].value = "sign"
    panel.controls["outcome_cap"].value = "much"
    assert "The outcome cap must be a number such as 100" in panel.controls["error"].value
    panel.controls["outcome_cap"].value = "0.9"
    group = opened(frame).run().groups[-1]
    panel.controls["against"].value = group
    given = {"closeness": "query_sd", "contrast": "sign", "outcome_cap": 0.9, "against": group}
    given["estimand"] = "root"
    assert {name: panel.state.keywords()[name] for name in given} == given
    assert f"against={group!r}" in panel.controls["code"].value.replace("&#x27;", "'")
    panel.controls["run"].click()
    options = json.loads(panel.audit.attrs["options"])
    assert {name: options[name] for name in given} == given


def test_threshold_direction_and_the_name_of_the_outcome_go_into_the_audit(frame):
    panel = opened(frame)
    assert not {"threshold", "ascending", "outcome_name"} & set(panel.state.keywords())
    panel.controls["threshold"].value = "half"
    assert "threshold must be a number, quantile:0.01" in panel.controls["error"].value
    panel.controls["threshold"].value = "enough:20:5"
    panel.controls["ascending"].value = True
    panel.controls["outcome_name"].value = "sales"
    assert "threshold=mpc.Enough(pairs=20, queries=5.0)" in panel.controls["code"].value
    panel.controls["run"].click()
    assert panel.audit.attrs["threshold"] == "Enough(pairs=20, queries=5.0)"
    assert "`sales` is" in panel.audit.summary()
    assert json.loads(panel.audit.attrs["columns"])["ascending"] is True
    panel.controls["threshold"].value = ""
    assert "threshold" not in panel.state.keywords()


def test_where_there_is_no_notebook_only_files_are_offered(frame):
    panel = Start(namespace=None)
    assert panel.widget is not None
    assert [label for label, _ in panel.controls["rows_from"].options] == [
        "a file by its path",
        "an upload",
    ]
    assert "otebook" not in panel.controls["help"].text
    panel.controls["run"].click()
    assert "otebook" not in panel.controls["error"].value


def test_every_part_can_be_chosen_by_hand(frame):
    panel = opened(frame)
    for role in ALL_ROLES:
        panel.controls[role].label = "query"
        assert panel.state.columns[role] == "query"


def test_start_takes_a_frame_or_a_ranking(frame):
    assert start(frame).state.columns["query"] == "query"
    assert start(mpc.datasets.synthetic(queries=50)).state.columns["segment"] == "query_type"
    assert start().state.frame is None


def test_columns_of_any_name_can_be_chosen():
    frame = pd.DataFrame(log()).rename(columns={"g": SCRIPT, "q": 0, "s": ("s", 1)})
    panel = opened(frame)
    for role, column in {"query": 0, "score": ("s", 1), "outcome": "y", "group": SCRIPT}.items():
        panel.state.choose(role, column)
    assert panel.controls["error"].value == ""
    assert panel.controls["group"].label == SCRIPT
    for name in ("preview", "problems", "code"):
        assert "<script" not in panel.controls[name].value
    assert not panel.controls["run"].disabled
