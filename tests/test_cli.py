from __future__ import annotations

import os
import subprocess
import sys

import numba
import pandas as pd
import pytest
from rich.console import Console

import mpc_lab as mpc
from mpc_lab import cli
from mpc_lab.command_line.tables import headline_table
from mpc_lab.pairing.compiling import announced_compilation

SMALL = ["demo", "--queries", "200", "--no-progress"]


def headline(**changes):
    """One row of ``audit.to_frame()`` as the table reads it."""
    row = {
        "group": "Drama",
        "verdict": "undervalued",
        "estimate": 0.05,
        "ci_low_adjusted": 0.01,
        "ci_high_adjusted": 0.09,
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
    assert "Saved to" in capsys.readouterr().err


@pytest.mark.parametrize("in_a_terminal", [False, True])
def test_a_run_that_compiles_says_so_once(monkeypatch, capsys, in_a_terminal):
    def compile_and_audit(*arguments, **options):
        with announced_compilation(options["progress"]):
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
    changes = {"estimate": nothing, "ci_low_adjusted": nothing, "ci_high_adjusted": nothing}
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
        (PermissionError(13, "Permission denied", "out.nc"), 3, "Permission denied: 'out.nc'"),
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
    assert "queries must be a whole number of at least 1" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_refused_before_the_work(monkeypatch, capsys, tmp_path):
    stop_with(monkeypatch, AssertionError("work was done"))
    assert cli.main(["demo", "--save", str(tmp_path / "none" / "out.nc")]) == 3
    assert "give a file in a folder that exists" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"mpc-lab {mpc.__version__}\n"


def test_a_reader_that_leaves_early_is_no_traceback():
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        [sys.executable, "-m", "mpc_lab.cli", *SMALL],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write)
    assert result.returncode == 141
    assert "Error" not in result.stderr


def test_an_encoding_without_our_letters_is_no_traceback():
    result = subprocess.run(
        [sys.executable, "-m", "mpc_lab.cli", *SMALL],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert "undervalued" in result.stdout or "inconclusive" in result.stdout
