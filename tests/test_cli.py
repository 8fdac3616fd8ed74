from __future__ import annotations

import io
import os
import subprocess
import sys

import numba
import pandas as pd
import pytest
from rich.cells import cell_len
from rich.console import Console

import mpc_lab as mpc
from mpc_lab import cli
from mpc_lab.cli.options import Command
from mpc_lab.cli.show import fit, headline_table
from mpc_lab.pairing.kernels import announce_compilation

SMALL = ["demo", "--queries", "200", "--no-progress"]


def headline(**changes):
    """One row of ``audit.to_frame()`` as the table reads it."""
    row = {
        "group": "Drama",
        "verdict": "undervalued",
        "estimate": 0.05,
        "bracket_low": 0.01,
        "bracket_high": 0.09,
        "n_pairs": 1234,
        "n_queries": 56,
        "epsilon": 0.0123,
    }
    return pd.DataFrame([row | changes])


def drawn(frame) -> str:
    console = Console(width=120, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(headline_table(frame))
    return capture.get()


def stop_with(monkeypatch, error):
    def stop(**_options):
        raise error

    monkeypatch.setattr("mpc_lab.datasets.synthetic", stop)


def test_the_demo_finds_the_undervalued_group(capsys):
    assert cli.main(["demo", "--no-progress"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if "│" in line]
    assert ["│", "1", "│", "undervalued", "│"] in [row[:5] for row in rows]


def test_the_demo_prints_the_summary_first(capsys):
    cli.main(SMALL)
    expected = mpc.audit(mpc.datasets.synthetic(queries=200), progress=False).summary()
    assert capsys.readouterr().out.startswith(expected)


def test_the_demo_saves_an_audit_that_loads(tmp_path, capsys):
    path = tmp_path / "out.nc"
    assert cli.main([*SMALL, "--seed", "3", "--save", str(path)]) == 0
    fresh = mpc.audit(mpc.datasets.synthetic(queries=200, seed=3), progress=False)
    assert mpc.load(path).headline.identical(fresh.headline)
    assert "Written: " in capsys.readouterr().err


@pytest.mark.parametrize("in_a_terminal", [False, True])
def test_a_run_that_compiles_says_so_once(monkeypatch, capsys, in_a_terminal):
    def compile_and_audit(*arguments, **options):
        with announce_compilation(options["progress"]):
            numba.njit(lambda x: x + 1)(1)
        return mpc_audit(*arguments, **options)

    mpc_audit = mpc.audit
    monkeypatch.setattr("mpc_lab.run.audit", compile_and_audit)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: in_a_terminal)
    cli.main(["demo", "--queries", "200"])
    assert capsys.readouterr().err.count("compiles its kernels, once on this machine") == 1


def test_a_run_that_does_not_compile_is_quiet(capsys):
    cli.main(SMALL)
    capsys.readouterr()
    cli.main(SMALL)
    assert capsys.readouterr().err == ""


def test_the_table_shows_every_number_of_a_row():
    row = next(line for line in drawn(headline()).splitlines() if "Drama" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "Drama",
        "undervalued",
        "+0.050",
        "+0.010 to +0.090",
        "1,234",
        "56",
        "0.0123",
    ]


def test_the_table_has_no_number_where_there_is_none():
    nothing = float("nan")
    changes = {"estimate": nothing, "bracket_low": nothing, "bracket_high": nothing}
    shown = drawn(headline(verdict="not estimable", n_pairs=0, n_queries=0, **changes))
    assert "not estimable" in shown
    assert "nan" not in shown


def test_a_name_from_data_is_text_and_never_markup_or_control():
    shown = drawn(headline(group="[red]a[/red]\x1b]0;title\x07[/nothing]"))
    assert "[red]a[/red]]0;title[/nothing]" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (
            mpc.MpcError("one\nsentence\x1b."),
            3,
            "one sentence.",
        ),
        (PermissionError(13, "Permission denied", "out.nc"), 3, "Permission denied: 'out.nc'."),
        (FileNotFoundError(2, "No such file", "a", None, "b"), 3, "No such file: 'a' -> 'b'."),
        (OSError("Unable to open file"), 3, "Unable to open file"),
        (TimeoutError(), 3, "TimeoutError."),
        (KeyboardInterrupt(), 130, "interrupted."),
    ],
)
def test_an_error_is_one_line_with_a_code_above_the_gates(monkeypatch, capsys, error, code, line):
    stop_with(monkeypatch, error)
    assert cli.main(["demo"]) == code
    err = capsys.readouterr().err
    assert err.startswith("mpc-lab: ")
    assert err.endswith(f"{line}\n")
    assert err.count("\n") == 1


def test_a_fault_of_our_own_shows_its_traceback(monkeypatch, capsys):
    stop_with(monkeypatch, ZeroDivisionError("oh"))
    assert cli.main(["demo"]) == 70
    assert "ZeroDivisionError: oh" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["dmeo"], "invalid choice: 'dmeo'"),
        (["demo", "--queries", "many"], "invalid int value: 'many'"),
        (["demo", "--fast"], "unrecognized arguments: --fast"),
        (["audit", "a.csv", "--tolerence", "3"], "--tolerence 3; see mpc-lab audit --help."),
    ],
)
def test_a_bad_word_is_one_line_and_code_3(capsys, arguments, message):
    with pytest.raises(SystemExit, match="3"):
        cli.main(arguments)
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_too_few_queries_are_refused_in_one_line(capsys):
    assert cli.main(["demo", "--queries", "0"]) == 3
    assert "queries must be a whole number from 1 to" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_refused_before_the_work(monkeypatch, capsys, tmp_path):
    stop_with(monkeypatch, AssertionError("work was done"))
    assert cli.main(["demo", "--save", str(tmp_path / "none" / "out.nc")]) == 3
    assert "Give a file in a folder that exists" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"mpc-lab {mpc.__version__}\n"


def in_a_shell(words, redirected, **how):
    """Run a command line with its streams redirected as a shell does, buffered or not."""
    line = f'"$0" -m mpc_lab.cli {words} {redirected}'
    return subprocess.run(
        ["sh", "-c", line, sys.executable], capture_output=True, text=True, check=False, **how
    )


posix_only = pytest.mark.skipif(os.name != "posix", reason="needs a shell")
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
UNBUFFERED = BUFFERED | {"PYTHONUNBUFFERED": "1"}
DEMO = " ".join(SMALL)
buffering = pytest.mark.parametrize(
    "environment",
    [
        pytest.param(BUFFERED, id="buffered"),
        pytest.param(UNBUFFERED, id="unbuffered", marks=pytest.mark.long),
    ],
)


@buffering
def test_a_reader_that_leaves_early_is_one_sentence(environment):
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        [sys.executable, "-m", "mpc_lab.cli", *SMALL],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    os.close(write)
    assert result.returncode == 141
    assert result.stderr == "mpc-lab: the reader of standard output left before its end.\n"


@posix_only
@buffering
@pytest.mark.parametrize(
    ("words", "redirected", "said"),
    [
        pytest.param(DEMO, ">&-", "it is closed. Send it to", marks=pytest.mark.long),
        ("--version", ">&-", "it is closed. Send it to"),
        ("--help", "0<&- >&-", "it is closed. Send it to"),
        pytest.param(
            DEMO, ">/dev/full", "No space left on device. Send it to", marks=pytest.mark.long
        ),
        ("--version", ">/dev/full", "No space left on device. Send it to"),
    ],
)
def test_lost_output_is_one_sentence_and_code_3(environment, words, redirected, said):
    if "full" in redirected and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    result = in_a_shell(words, redirected, env=environment)
    assert result.returncode == 3
    assert result.stderr.startswith("mpc-lab: standard output could not be written: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@posix_only
@pytest.mark.long
def test_output_that_goes_to_a_file_needs_no_standard_output(tmp_path):
    log = tmp_path / "log.csv"
    mpc.datasets.synthetic(queries=200).to_frame().to_csv(log, index=False)
    named = "--query query --item item --score score --outcome outcome --group type"
    words = f"audit '{log}' {named} --json '{tmp_path}/out.json'"
    quiet = in_a_shell(f"{words} --quiet", ">&- 0<&-")
    assert quiet.returncode == 0, quiet.stderr
    assert (tmp_path / "out.json").read_text().startswith("{")
    shown = in_a_shell(words, ">&-")
    assert shown.returncode == 3
    assert "standard output could not be written" in shown.stderr


@posix_only
@pytest.mark.long
@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full"])
def test_nothing_is_reported_without_a_standard_error_stream(tmp_path, redirected):
    saved = tmp_path / "out.nc"
    result = in_a_shell(f"{DEMO} --save '{saved}'", redirected)
    assert result.returncode == 0
    assert saved.exists()
    assert "Written: " not in result.stdout
    refused = in_a_shell("demo --queries 0", redirected)
    assert (refused.returncode, refused.stdout, refused.stderr) == (3, "", "")


@posix_only
@pytest.mark.long
def test_nothing_is_printed_where_all_streams_are_closed():
    result = in_a_shell(DEMO, "0<&- >&- 2>&-")
    assert (result.returncode, result.stdout, result.stderr) == (3, "", "")


def test_the_streams_are_as_they_were_after_a_command(capsys):
    before = sys.stdout, sys.stderr
    cli.main(SMALL)
    assert (sys.stdout, sys.stderr) == before


@pytest.mark.long
def test_an_encoding_without_our_letters_gives_no_traceback():
    result = subprocess.run(
        [sys.executable, "-m", "mpc_lab.cli", *SMALL],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert "undervalued" in result.stdout or "inconclusive" in result.stdout


def test_a_command_is_one_record_in_the_list(monkeypatch, capsys):
    def add_arguments(parser):
        parser.add_argument("word")

    def run(options):
        print(options.word)
        return 2

    echo = Command("echo", "print a word", add_arguments, run)
    monkeypatch.setattr(cli, "COMMANDS", (*cli.COMMANDS, echo))
    assert cli.main(["echo", "hello"]) == 2
    assert capsys.readouterr().out == "hello\n"


NAMES = [
    "Deutsche Bücher und Zeitschriften",
    "Science-Fiction & Fantasy",
    "Kids",
    "日本の映画と音楽",
]


def several(names=NAMES):
    rows = [
        headline(group=name, n_pairs=10 ** (k + 3), epsilon=0.01 * (k + 1))
        for k, name in enumerate(names)
    ]
    return pd.concat(rows, ignore_index=True)


def lines_at(width, frame):
    console = Console(width=width, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(headline_table(frame, width))
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [80, 79, 100, 60])
def test_names_keep_their_width_in_a_terminal(width):
    lines = lines_at(width, several())
    assert sum("│" in line for line in lines) == len(NAMES)  # no row takes two lines
    for name in NAMES:
        assert any(name in line and "undervalued" in line for line in lines)
    assert all(cell_len(line) <= width for line in lines)
    shown = "+0.010 to +0.090" if width > 70 else "+0.050"
    assert all(shown in line for line in lines if "undervalued" in line)


def test_a_narrow_terminal_gives_up_the_last_columns_and_a_wide_one_none():
    assert "ε" in lines_at(140, several())[2]
    assert "ε" not in lines_at(80, several())[2]


def test_a_long_name_stays_whole_as_long_as_verdict_and_gap_fit():
    names = [f"a group with quite a long name, number {k}" for k in (7, 17)]
    lines = lines_at(80, several(names))
    assert all(any(name in line and "+0.050" in line for line in lines) for name in names)


def test_very_long_names_are_cut_and_still_differ():
    names = ["a very long name of a group of items that goes on and on: " + end for end in "xy"]
    lines = [line for line in lines_at(80, several(names)) if "undervalued" in line]
    shown = [line.split("│")[1].strip() for line in lines]
    assert len(set(shown)) == 2
    assert all(name.startswith("a very long name of a") for name in shown)
    assert [name[-1] for name in shown] == ["x", "y"]  # cut in the middle
    wide = ["長い名前のグループ" * 8, "長い名前のグループ" * 9]
    assert all(cell_len(line) <= 80 for line in lines_at(80, several(wide)))


def test_output_that_is_not_a_terminal_gets_lines_of_any_length(capsys):
    cli.main(SMALL)
    lines = capsys.readouterr().out.splitlines()
    assert sum("│" in line for line in lines) == 2
    assert any("ε" in line for line in lines)


def test_the_numbers_of_a_column_share_digits():
    frame = pd.concat([headline(), headline(bracket_low=-0.5, bracket_high=1.5)])
    lines = [line for line in lines_at(140, frame) if "undervalued" in line]
    gaps = [line.split("│")[3].strip() for line in lines]
    assert {len(gap.split(".")[1]) for gap in gaps} == {3}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_lines_that_break_between_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    said = "   The gap of the group is -0.074 and that of the other one is 0.054."
    call = "   See: mpc.charts.power(audit, 'a group whose name is long', -0.1)"
    shown = fit(f"{said}\n{call}\n\nend", Terminal()).split("\n")
    assert shown[:2] == [
        "   The gap of the group is −0.074 and",
        "   that of the other one is 0.054.",
    ]
    assert shown[2:] == [call, "", "end"]
    assert fit(said, io.StringIO()) == said
