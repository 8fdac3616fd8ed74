"""``mpc-lab audit`` from files to an exit code, on logs whose answer is known."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from mpc_lab import cli
from mpc_lab.cli.show import neutral
from mpc_lab.report.sections import SECTIONS

COLUMNS = {"query": "query", "item": "item", "score": "score", "outcome": "outcome"}
COLUMNS["group"] = "type"
ANYTIME = ["--gate", "--anytime", "--threshold", "0.02"]
NAMED = [word for name, column in COLUMNS.items() for word in (f"--{name}", column)]


@pytest.fixture(scope="module")
def frame():
    """The paper's example, in which group 1 is undervalued by 0.06, as a draw that shows it."""
    return mpc.datasets.synthetic(queries=4000, seed=3).to_frame()


@pytest.fixture(scope="module")
def expected(frame):
    return mpc.audit(frame, **COLUMNS, progress=False)


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """The example in every kind of file, whole and cut inside a query."""
    place = tmp_path_factory.mktemp("logs")
    cut = len(frame) // 2 + 5
    frame.to_csv(place / "log.csv", index=False)
    for name, part in (("part1", frame[:cut]), ("part2", frame[cut:])):
        part.to_csv(place / f"{name}.csv", index=False)
        part.to_parquet(place / f"{name}.parquet")
    frame.to_csv(place / "log.tsv.gz", index=False, sep="\t")
    frame.to_feather(place / "log.feather")
    return place


def run(*arguments):
    return cli.main(["audit", *map(str, arguments)])


def test_a_csv_file_gives_the_table_of_its_audit(folder, expected, capsys):
    assert run(folder / "log.csv", *NAMED) == 0
    out = capsys.readouterr().out
    assert out.startswith(expected.summary())
    assert "│ 1     │ undervalued │" in out


def test_a_title_is_the_line_above_the_table(folder, expected, capsys):
    assert run(folder / "log.csv", *NAMED, "--title", "search, week 12") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "┏" in lines[lines.index("search, week 12") + 1]


@pytest.mark.parametrize(
    "files", [["log.tsv.gz"], ["log.feather"], ["part*.csv"], ["part1.parquet", "part2.parquet"]]
)
def test_every_kind_of_file_gives_the_same_bits(folder, expected, tmp_path, files):
    out = tmp_path / "a.nc"
    assert run(*(folder / file for file in files), *NAMED, "--quiet", "--save", out) == 0
    assert mpc.load(out).headline.identical(expected.headline)


def test_a_file_that_two_patterns_match_is_read_once_and_reported(
    folder, expected, tmp_path, capsys
):
    out = tmp_path / "a.nc"
    files = (folder / "log.csv", folder / "log.c*", folder / "log.csv")
    assert run(*files, *NAMED, "--quiet", "--save", out) == 0
    assert mpc.load(out).headline.identical(expected.headline)
    assert capsys.readouterr().err.count("log.csv' is named more than once; it is read once.") == 1


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ([], 1, "found a gap: '1' and '2'"),
        (["--tolerance", "0.001"], 1, "found a gap outside the tolerance: '1' and '2'"),
        (["--tolerance", "0.06"], 2, "cannot tell whether the gap is within the tolerance"),
        (["--tolerance", "0.3"], 0, "every gap within the tolerance of 0.3"),
        (["--anytime", "--threshold", "0.02"], 1, "found a gap: '1' and '2'"),
        (["--anytime", "--threshold", "0.02", "--tolerance", "0.06"], 2, "cannot tell"),
        (["--anytime", "--threshold", "0.02", "--tolerance", "0.3"], 0, "every gap within"),
    ],
)
def test_the_gate_answers_on_a_log_whose_gap_is_known(folder, capsys, options, code, says):
    assert run(folder / "log.csv", *NAMED, "--quiet", "--gate", *options) == code
    assert says in capsys.readouterr().out


def test_the_gate_goes_by_the_rule_that_is_named(folder, tmp_path, capsys):
    gate = [
        *NAMED,
        "--quiet",
        "--gate",
        "--rules",
        "baseline,demoted",
        "--json",
        tmp_path / "a.json",
    ]
    assert run(folder / "log.csv", *gate, "--gate-rule", "demoted") == 1
    assert "found a gap: '1', under rule 'demoted'" in capsys.readouterr().out
    found = json.loads((tmp_path / "a.json").read_text("utf-8"))["gate"]
    assert (found["scoring_rule"], found["failed"]) == ("demoted", ["1"])
    assert run(folder / "log.csv", *NAMED, "--gate-rule", "demoted") == 3
    assert "--gate-rule must go with --gate" in capsys.readouterr().err


@pytest.fixture(scope="module")
def brief(tmp_path_factory):
    """A log with a gap at one look, which is none to intervals that hold at every look."""
    path = tmp_path_factory.mktemp("brief") / "brief.csv"
    mpc.datasets.synthetic(queries=1000).to_frame().to_csv(path, index=False)
    return path


def written(log, folder, *options):
    """Return the exit code, and what was written as JSON, card and page."""
    paths = [folder / name for name in ("a.json", "a.md", "a.html")]
    outputs = ["--json", paths[0], "--card", paths[1], "--report", paths[2]]
    code = run(log, *NAMED, "--quiet", *options, *outputs)
    found, card, page = (path.read_text("utf-8") for path in paths)
    return code, json.loads(found), card, page


def test_a_report_is_written_whatever_the_gate_answers(brief, tmp_path, capsys, monkeypatch):
    few = [section for section in SECTIONS if section.name in ("finding", "verdicts")]
    monkeypatch.setattr("mpc_lab.report.SECTIONS", few)
    options = ["--threshold", "0.02", "--gate"]
    code, found, card, page = written(brief, tmp_path, *options)
    assert code == found["gate"]["answer"] == 1
    assert found["gate"]["intervals"] == "fixed"
    assert found["gate"]["planned"] is None
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>\n")
    assert "▲ undervalued" in page
    assert "every look (" not in card + page
    captured = capsys.readouterr()
    assert "The audit found a gap: '1' and '2'." in captured.out
    assert f"Written: {tmp_path / 'a.html'}" in captured.err


@pytest.mark.parametrize(
    ("tolerance", "code", "failed", "undecided", "does", "says"),
    [
        ([], 0, [], ["1", "2"], "passes", "found no gap, which is not evidence"),
        (["--tolerance", "0.001"], 2, [], ["1", "2"], "does not decide", "cannot tell whether"),
    ],
)
def test_all_outputs_hold_the_decision_of_the_exit_code(
    brief, tmp_path, capsys, monkeypatch, tolerance, code, failed, undecided, does, says
):
    monkeypatch.setattr("mpc_lab.report.SECTIONS", SECTIONS[:1])
    assert run(brief, *NAMED, "--quiet", "--gate", "--threshold", "0.02", *tolerance) == 1
    capsys.readouterr()
    answer, found, card, page = written(brief, tmp_path, *ANYTIME, "--planned", "3000", *tolerance)
    assert answer == code
    assert found["gate"] == {
        "answer": code,
        "failed": failed,
        "undecided": undecided,
        "tolerance": float(tolerance[1]) if tolerance else None,
        "scoring_rule": "baseline",
        "pairing_mode": "matched",
        "intervals": "anytime",
        "planned": 3000,
        "set_aside": [],
        "contradicting": [],
    }
    first = page.split('<section id="finding">')[1].split("</section>")[0]
    for text in (card, first):
        assert f"The gate {does}. By intervals that are valid at every look" in text
        assert "tightest at 3,000 queries), unlike those of the verdicts, the audit" in text
        assert says in text
        assert "is undervalued" in text
        assert "audit.summary" not in text
    out = capsys.readouterr().out
    assert "valid at every look" in out
    assert says in out


def test_anytime_is_planned_for_1000_queries_by_default(brief, capsys):
    assert run(brief, *NAMED, *ANYTIME, "--quiet", "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["gate"]["planned"] == 1000


def test_anytime_needs_the_bounds_of_the_outcome(frame, tmp_path, capsys):
    path = tmp_path / "stars.csv"
    frame.assign(outcome=1 + 4 * frame["outcome"]).to_csv(path, index=False)
    assert run(path, *NAMED, *ANYTIME, "--quiet") == 3
    assert "bounds=(0, 5)" in capsys.readouterr().err
    words = ["--bounds", "1,5", "--pairs-cap", "2", "--tolerance", "2", "--quiet"]
    assert run(path, *NAMED, *ANYTIME, *words) == 0
    assert run(path, *NAMED, *ANYTIME, *words, "--bounds", "1,5,6") == 3
    assert "bounds must be the lowest and the highest outcome" in capsys.readouterr().err


def test_a_log_without_a_gap_passes_the_gate(frame, tmp_path, capsys):
    even = frame.assign(type=np.where(np.random.default_rng(0).random(len(frame)) < 0.5, "a", "b"))
    even.to_csv(tmp_path / "even.csv", index=False)
    assert run(tmp_path / "even.csv", *NAMED, "--quiet", "--gate") == 0
    assert "found no gap, which is not evidence" in capsys.readouterr().out


def test_the_process_ends_with_the_gates_answer(folder):
    words = [sys.executable, "-m", "mpc_lab.cli", "audit", folder / "log.csv", *NAMED]
    gate = subprocess.run([*words, "--quiet", "--gate"], capture_output=True, text=True)
    assert gate.returncode == 1


def test_a_column_that_is_misspelt_is_named(folder, capsys):
    assert run(folder / "log.csv", *NAMED, "--score", "scroe") == 3
    assert "Did you mean 'score'?" in capsys.readouterr().err


def test_an_audit_without_a_gate_ends_with_0(folder):
    assert run(folder / "log.csv", *NAMED, "--quiet", "--tolerance", "0.001") == 0


def test_the_options_reach_the_audit(folder, frame, tmp_path):
    out = tmp_path / "a.nc"
    words = ["--rules", "baseline,boosted:0.1", "--modes", "matched,adjacent", "--groups", "2"]
    words += ["--threshold", "smallest:500", "--epsilon", "0.001,0.01", "--cluster", "query"]
    words += ["--level", "0.9", "--adjust", "fdr_bh", "--tolerance", "0.02", "--seed", "3"]
    words += ["--bootstrap", "20"]
    assert run(folder / "log.csv", *NAMED, *words, "--quiet", "--save", out) == 0
    made = mpc.audit(
        frame,
        **COLUMNS,
        scoring_rules=("baseline", mpc.Boosted(0.1)),
        pairing_modes=("matched", "adjacent"),
        groups=["2"],
        threshold=mpc.Smallest(500),
        epsilon=[0.001, 0.01],
        cluster="query",
        level=0.9,
        adjust="fdr_bh",
        tolerance=0.02,
        seed=3,
        bootstrap=20,
        progress=False,
    )
    loaded = mpc.load(out)
    assert loaded.headline.identical(made.headline)
    assert loaded.curve.identical(made.curve)
    assert loaded.attrs["options"] == made.attrs["options"]


def small(folder, **changes):
    """A log of strange columns: ids with zeros in front, a country called NA, several flags."""
    draw = np.random.default_rng(1)
    n = 600
    frame = pd.DataFrame(
        {
            "user, id": [f"{k // 6:03d}" for k in range(n)],
            "s": draw.random(n),
            "y": draw.random(n).round(3),
            "genres": draw.choice(["Drama|War", "War", "", "Drama, late"], n),
            "new": draw.random(n) < 0.3,
            "local": (draw.random(n) < 0.5).astype(int),
            "land": "NA",
            "s2": draw.random(n),
        }
    ).assign(**changes)
    frame.to_csv(folder / "small.csv", index=False)
    return [folder / "small.csv", "--query", "user, id", "--score", "s", "--outcome", "y"]


def test_labels_are_split_and_ids_stay_as_they_are_written(tmp_path, capsys):
    words = [*small(tmp_path), "--group", "genres", "--group-sep", "|", "--segment", "land"]
    assert run(*words, "--json", "-") == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert [cell["group"] for cell in found["cells"]] == ["Drama", "Drama, late", "War"]
    assert found["data"]["n_queries"] == 100
    assert "War" in captured.err


def test_several_group_columns_are_true_or_false(tmp_path, capsys):
    assert run(*small(tmp_path), "--group", "new,local", "--json", "-", "--quiet") == 0
    found = json.loads(capsys.readouterr().out)
    assert {cell["group"] for cell in found["cells"]} == {"new", "local"}


def test_a_name_with_a_comma_is_taken_as_a_whole(tmp_path, capsys):
    words = [*small(tmp_path), "--group", "genres", "--group-sep", "|"]
    assert run(*words, "--groups", "Drama, late", "--json", "-", "--quiet") == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [cell["group"] for cell in cells] == ["Drama, late"]


def test_another_column_may_be_a_rule(tmp_path, capsys):
    words = [*small(tmp_path), "--group", "genres", "--rules", "baseline,column:s2"]
    assert run(*words, "--json", "-", "--quiet") == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert {cell["scoring_rule"] for cell in cells} == {"baseline", "s2"}


def write_config(folder, text):
    path = folder / "audit.toml"
    path.write_text(text, "utf-8")
    return path


CONFIG = """
files = "small.csv"
query = "user, id"
score = "s"
outcome = "y"
group = "genres"
group-sep = "|"
threshold = "quantile:0.05"
rules = ["baseline", "column:s2"]
tolerance = 1
gate = true
csv = "out.csv"
"""


def test_a_run_is_a_file_beside_its_log(tmp_path, capsys):
    small(tmp_path)
    assert run("--config", write_config(tmp_path, CONFIG)) == 0
    assert "tolerance of 1" in capsys.readouterr().out
    assert set(pd.read_csv(tmp_path / "out.csv")["group"]) == {"Drama", "Drama, late", "War"}


def test_the_line_wins_over_the_file(tmp_path, capsys):
    small(tmp_path)
    words = ["--rules", "baseline", "--json", "-", "--quiet", "--no-gate", "--threshold", "0.25"]
    assert run("--config", write_config(tmp_path, CONFIG), *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["settings"]["scoring_rules"] == ["baseline"]
    assert found["settings"]["threshold"] == "0.25"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("scroe = 's'", "unknown key 'scroe'. Did you mean 'score'?"),
        ("score = 3", "score must be text; got 3"),
        ("tolerance = 'much'", "tolerance must be a number; got 'much'"),
        ("seed = 1.5", "seed must be a whole number; got 1.5"),
        ("gate = 'yes'", "gate must be true or false; got 'yes'"),
        ("adjust = 'bonferroni'", "adjust must be one of holm, romano_wolf, fdr_bh, none"),
        ("threshold = 'half'", "threshold must be a number, quantile:0.01"),
        ("rules = ['best']", "rules must be baseline, boosted"),
        ("files = 3", "files must be the name of a file"),
        ("score = ", "must be valid TOML"),
    ],
)
def test_a_bad_config_is_one_line_that_names_the_file(tmp_path, capsys, text, says):
    assert run("--config", write_config(tmp_path, text)) == 3
    err = capsys.readouterr().err
    assert says in err
    assert "audit.toml" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["none.csv", *NAMED], "There is no file 'none.csv'"),
        (["none*.csv", *NAMED], "There is no file 'none*.csv'"),
        ([".", *NAMED], "Column 'query' must be of one kind in all files"),
        (["http://a.b/log.csv", *NAMED], "must be a file of this machine; got 'http://a.b/"),
        (["log.csv", *NAMED, "--sep", ";;"], "The separator must be one character"),
        (["log.csv", *NAMED, "--encoding", "latin-99"], "The encoding must be one that Python"),
        (["log.feather", *NAMED, "--sep", ";"], "Leave them out"),
        (["log.csv", "part1.parquet", *NAMED], "string in 'log.csv' and int64 in 'part1.parq"),
        ([], "An audit must have a file"),
        (["log.csv"], "must have --query, --score, --outcome, --group"),
        (["log.csv", *NAMED, "--score", "query_type"], "must hold numbers; got 'v' in line 2"),
        (["log.csv", *NAMED[:-2], "--group", "type,item"], "must hold true and false"),
        (["log.csv", *NAMED, "--group", "type,item"], "Name each column once"),
        (["log.csv", *NAMED, "--threshold", "smallest:many"], "threshold must be a number"),
        (["log.csv", *NAMED, "--threshold", "quantile:2"], "above 0 and at most 1"),
        (["log.csv", *NAMED, "--rules", "boosted:much"], "must have a number after its colon"),
        (["log.csv", *NAMED, "--groups", "3"], "There is no group '3'"),
        (
            ["log.csv", *NAMED, "--save", "log.csv"],
            "--save must be a file of its own; got a file that is read",
        ),
        (
            ["log.csv", *NAMED, "--save", "x", "--json", "x"],
            "got the file of --save",
        ),
        (["log.csv", *NAMED, "--report", "no/where.html"], "--report: "),
        (["log.csv", *NAMED, "--anytime"], "Add --gate"),
        (["log.csv", *NAMED, "--gate", "--planned", "9"], "Add --anytime"),
        (["log.csv", *NAMED, "--planned", "0"], "Add --gate"),
        (["log.csv", *NAMED, *ANYTIME, "--planned", "0"], "at least 1; got 0"),
        (["log.csv", *NAMED, *ANYTIME, "--planned", "-5"], "at least 1; got -5"),
        (["log.csv", *NAMED, "--json", "-", "--csv", "-"], "got --json and --csv"),
        (["log.csv", *NAMED, "--csv", "-", "--card", "-"], "got --csv and --card"),
        (["log.csv", *NAMED, "--gate", "--anytime"], "fixed before the first look"),
        (["log.csv", *NAMED, "--missing", "drop", "--group-sep", ""], "--group-sep must be"),
    ],
)
def test_a_bad_line_is_one_line_and_code_3(folder, capsys, monkeypatch, words, says):
    monkeypatch.chdir(folder)
    assert run(*words) == 3
    err = capsys.readouterr().err
    assert says in err
    assert err.startswith("mpc-lab: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b""),
        ("a.csv", b"\xff\xfe\x00"),
        ("a.csv", b"query,item,score,outcome,type\n1,1,0.5,1,a\n1,2,0.5,1,a,,more\n"),
        ("a.csv.gz", b"not zipped"),
        ("a.parquet", b"PAR1 nothing PAR1"),
        ("a.feather", b"ARROW1\0\0"),
        ("a.xlsx", b"PK"),
        ("a.pkl", b"cos\nsystem\n(S'true'\ntR."),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, capsys, name, content):
    (tmp_path / name).write_bytes(content)
    assert run(tmp_path / name, *NAMED) == 3
    assert name in capsys.readouterr().err


def headline(folder, *words):
    """Return what an audit by the line found."""
    assert run(*words, *NAMED, "--quiet", "--save", folder / "out.nc") == 0
    return mpc.load(folder / "out.nc").headline


def test_files_of_different_kinds_are_one_log_when_their_types_agree(
    folder, frame, expected, tmp_path
):
    cut = len(frame) // 2 + 5
    texts = frame[cut:].assign(query=frame["query"].astype(str), item=frame["item"].astype(str))
    texts.to_parquet(tmp_path / "part2.parquet")
    found = headline(tmp_path, folder / "part1.csv", tmp_path / "part2.parquet")
    assert found.identical(expected.headline)


def test_a_folder_is_one_log(frame, expected, tmp_path):
    for number, part in enumerate((frame[:5003], frame[5003:])):
        part.to_csv(tmp_path / f"{number}.csv", index=False)
    assert headline(tmp_path, tmp_path).identical(expected.headline)


def test_json_lines_are_a_log(frame, expected, tmp_path):
    frame.to_json(tmp_path / "log.jsonl.gz", orient="records", lines=True, double_precision=15)
    found = headline(tmp_path, tmp_path / "log.jsonl.gz")
    assert found.n_pairs.identical(expected.headline.n_pairs)


def test_another_separator_and_encoding_are_found_and_reported(frame, expected, tmp_path, capsys):
    path = tmp_path / "log.csv"
    frame.assign(note="é").to_csv(path, index=False, sep=";", encoding="latin-1")
    assert headline(tmp_path, path).identical(expected.headline)
    said = f"{str(path)!r}: read as text separated by semicolons and encoded as cp1252.\n"
    assert said in capsys.readouterr().err


def test_a_separator_and_an_encoding_can_be_given(frame, tmp_path, capsys):
    path = tmp_path / "log.csv"
    named = frame.head(3000).replace({"type": {"1": "ж", "2": "я"}})
    named.to_csv(path, index=False, sep="^", encoding="koi8-r")
    words = ["--sep", "^", "--encoding", "koi8-r", "--json", "-", "--quiet"]
    assert run(path, *NAMED, *words) == 0
    captured = capsys.readouterr()
    assert {cell["group"] for cell in json.loads(captured.out)["cells"]} == {"ж", "я"}
    assert "separated by '^' and encoded as koi8-r" in captured.err


def test_a_link_to_a_file_that_is_read_counts_once_and_is_reported(
    folder, expected, tmp_path, capsys
):
    again = tmp_path / "link.csv"
    again.symlink_to(folder / "log.csv")
    assert headline(tmp_path, folder / "log.csv", again).identical(expected.headline)
    assert "is the same file as" in capsys.readouterr().err


def test_rows_with_a_missing_value_are_refused_or_left_out(tmp_path, capsys):
    words = [*small(tmp_path, y=[""] + ["0.5"] * 599), "--group", "genres", "--quiet"]
    assert run(*words) == 3
    assert "missing" in capsys.readouterr().err
    assert run(*words, "--missing", "drop", "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["data"]["n_dropped"] == 1


def test_a_guess_is_printed_and_only_made_when_asked_for(folder, capsys):
    assert run(folder / "log.csv", "--outcome", "outcome", "--group", "type", "--guess") == 0
    err = capsys.readouterr().err
    assert "Guessed: " in err
    assert "--query query" in err
    assert "--score score" in err
    assert "--outcome" not in err


def test_what_a_spreadsheet_would_obey_is_text(tmp_path):
    odd = ["=1+1", "+x", "-2+3", "@SUM(A1)", "\t=1", " =1", "plain", "a=b"]
    words = [*small(tmp_path, genres=(odd * 75)), "--group", "genres", "--quiet"]
    assert run(*words, "--csv", tmp_path / "out.csv") == 0
    names = pd.read_csv(tmp_path / "out.csv")["group"].tolist()
    assert sorted(names) == sorted(neutral(name) for name in odd)
    assert not [name for name in names if name.lstrip()[0] in "=+-@"]


def test_numbers_below_0_stay_numbers_in_csv(folder, tmp_path):
    assert run(folder / "log.csv", *NAMED, "--quiet", "--csv", tmp_path / "out.csv") == 0
    assert pd.read_csv(tmp_path / "out.csv")["estimate"].dtype == float


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_there_is_a_completion_for_the_shell(capsys, shell):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--print-completion", shell])
    assert "--group-sep" in capsys.readouterr().out


def test_the_help_shows_every_option_and_an_example(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["audit", "--help"])
    out = capsys.readouterr().out
    for word in ("--config", "--anytime", "exit codes", "examples:", "quantile:0.01"):
        assert word in out


@pytest.mark.parametrize("files", ["log.csv", "part*.parquet", "log.feather"])
def test_memory_reads_the_log_out_of_core(files, folder, expected, tmp_path, capsys):
    pytest.importorskip("duckdb", reason="the extra duckdb is not installed")
    out = tmp_path / "audit.json"
    how = ["--memory", "1GB", "--spill", tmp_path, "--groups", "1", "--json", out]
    assert run(folder / files, *NAMED, *how) == 0
    found = json.loads(out.read_text())
    (cell,) = found["cells"]
    known = expected.headline.sel(group="1").squeeze()
    assert cell["n_pairs"] == known.n_pairs.item()
    assert cell["estimate"] == pytest.approx(known.estimate.item(), rel=1e-9)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.json"]


def test_a_bad_memory_size_is_refused(folder, capsys):
    assert run(folder / "log.csv", *NAMED, "--memory", "much") == 3
    assert "memory must be a size" in capsys.readouterr().err


def test_errors_and_answers_name_the_options_of_the_line(frame, tmp_path, capsys):
    holes = frame.head(30).assign(outcome=np.nan)
    holes.to_csv(tmp_path / "holes.csv", index=False)
    assert run(tmp_path / "holes.csv", *NAMED) == 3
    assert "give --missing drop to leave such rows out" in capsys.readouterr().err
    frame.head(2).to_csv(tmp_path / "short.csv", index=False)
    assert run(tmp_path / "short.csv", *NAMED, "--gate") == 2
    assert "could estimate no group, so it says nothing" in capsys.readouterr().out


def test_a_verdict_stays_on_one_line_of_a_narrow_terminal(frame, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    frame.head(5_000).to_csv(tmp_path / "log.csv", index=False)
    assert run(tmp_path / "log.csv", *NAMED) == 0
    out = capsys.readouterr().out
    assert "│ inconclusive │" in out
    assert max(map(len, out.split("┏")[1].splitlines())) <= 80


def test_pairs_names_modes_or_how_many_pairs_to_show(folder, tmp_path, capsys, no_charts):
    report = tmp_path / "shown.html"
    line = [folder / "log.csv", *NAMED, "--quiet", "--csv", "-"]
    assert run(*line, "--pairs", "symmetric,matched", "--pairs", "3", "--report", report) == 0
    first = capsys.readouterr().out.splitlines()[1]
    assert "symmetric" in first
    assert report.exists()
    config = tmp_path / "audit.toml"
    config.write_text('pairs = ["symmetric", 3]\n', encoding="utf-8")
    assert run(*line, "--config", config) == 0
    assert "symmetric" in capsys.readouterr().out.splitlines()[1]
    assert run(*line, "--pairs", "symmetric", "--modes", "matched") == 3
    assert "Only one of modes and pairs must name pairing modes" in capsys.readouterr().err
