"""SIGTERM and SIGHUP end a command as Ctrl-C does: nothing is left on the disk, and one line."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

import mpc_lab as mpc
from helpers.spinning import spin
from mpc_lab import cli
from mpc_lab.cli.process import EndingSignals, Stopped
from mpc_lab.engines.duckdb.chunks import spill_folder
from mpc_lab.pairing.kernels import FEW_ROWS, finish, interruptible, stop_flag

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs the signals of POSIX")

ENDING = {"SIGTERM": 143, "SIGHUP": 129}
both = pytest.mark.parametrize(("name", "code"), ENDING.items(), ids=list(ENDING))
ROWS = 2_000_000
COMMAND = [sys.executable, "-m", "mpc_lab.cli"]
NAMED = ["--query", "query", "--score", "score", "--outcome", "outcome", "--group", "group"]


def said(name):
    return f"mpc-lab: stopped by {name}.\n"


@pytest.fixture(autouse=True)
def unheard():
    """Start with the system's own handlers, and see that a command leaves them there.

    Commands that a test starts have them too, also where a test runner under ``nohup`` handed down
    others.
    """
    numbers = [getattr(signal, name) for name in ENDING]
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    yield
    after = [signal.getsignal(number) for number in numbers]
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
    assert after == [signal.SIG_DFL, signal.SIG_DFL]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log that takes seconds to sort and to audit."""
    pytest.importorskip("duckdb")
    rng = np.random.default_rng(0)
    columns = {
        "query": rng.integers(0, ROWS // 10, ROWS),
        "score": rng.random(ROWS),
        "outcome": rng.integers(0, 2, ROWS),
        "group": rng.integers(0, 2, ROWS),
    }
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    pd.DataFrame(columns).to_parquet(path)
    return path


def started(words, tmp_path):
    """Start a command whose temporary folders go to a place of their own.

    It takes over what this process does with signals. Nothing of Python runs in the child before
    the command: beside other threads, that may wait for ever.
    """
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    return subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary), "PYTHONFAULTHANDLER": "1"},
    )


def ended(process):
    """Return the output of a command that must end; one that does not says where it is."""
    try:
        return process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        out, err = process.communicate(timeout=10)
        raise AssertionError(f"the command does not end\n{out}\n{err}") from None


def wait_for(process, is_there):
    while not is_there():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


def holds_files(folder):
    return any(path.is_file() for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("name", "code"),
    [("SIGTERM", 143), pytest.param("SIGHUP", 129, marks=pytest.mark.long)],
    ids=list(ENDING),
)
@pytest.mark.parametrize(
    ("later", "times"),
    [(0, 1), pytest.param(0.2, 8, marks=pytest.mark.long)],
    ids=["once", "later and often"],
)
def test_spilled_rows_are_removed(log, tmp_path, name, code, later, times):
    spill = tmp_path / "spill"
    spill.mkdir()
    process = started(["audit", log, *NAMED, "--memory", "1GB", "--spill", spill], tmp_path)
    wait_for(process, lambda: holds_files(spill))
    time.sleep(later)
    assert holds_files(spill)
    for _ in range(times):
        process.send_signal(getattr(signal, name))
        time.sleep(0.02)
    out, err = ended(process)
    assert (process.returncode, out, err) == (code, "", said(name))
    assert list(spill.iterdir()) == []
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.long
def test_a_signal_that_is_ignored_stays_so(log, tmp_path):
    """As SIGHUP is under nohup."""
    spill = tmp_path / "spill"
    spill.mkdir()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    process = started(["audit", log, *NAMED, "--memory", "1GB", "--spill", spill], tmp_path)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    wait_for(process, lambda: holds_files(spill))
    process.send_signal(signal.SIGHUP)
    out, err = ended(process)
    assert (process.returncode, err) == (0, "")
    assert "interval" in out


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "code", "times"),
    [
        ("SIGTERM", 143, 5),
        pytest.param("SIGTERM", 143, 1, marks=pytest.mark.long),
        pytest.param("SIGHUP", 129, 1, marks=pytest.mark.long),
        pytest.param("SIGHUP", 129, 5, marks=pytest.mark.long),
    ],
)
def test_the_explorer_stops_serving_and_removes_its_folder(tmp_path, name, code, times):
    pytest.importorskip("voila")
    saved = tmp_path / "audit.nc"
    mpc.audit(mpc.datasets.synthetic(queries=200), progress=False).save(saved)
    process = started(["explore", saved, "--no-open"], tmp_path)
    while "Press Ctrl-C" not in (line := process.stdout.readline()):
        assert line, process.stderr.read()
    assert list((tmp_path / "temporary").iterdir()) != []
    for _ in range(times):
        process.send_signal(getattr(signal, name))
        time.sleep(0.02)
    out, err = ended(process)
    assert (process.returncode, out, err) == (code, "Stopped.\n", said(name))
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.long
@both
def test_the_explorer_is_stopped_before_it_serves(tmp_path, name, code):
    pytest.importorskip("voila")
    saved = tmp_path / "audit.nc"
    mpc.audit(mpc.datasets.synthetic(queries=200), progress=False).save(saved)
    process = started(["explore", saved, "--no-open"], tmp_path)
    wait_for(process, lambda: list((tmp_path / "temporary").iterdir()))
    process.send_signal(getattr(signal, name))
    _, err = ended(process)
    assert (process.returncode, err) == (code, said(name))
    assert list((tmp_path / "temporary").iterdir()) == []


def run_instead(monkeypatch, work):
    """Let ``mpc-lab demo`` do other work."""
    monkeypatch.setattr("mpc_lab.datasets.synthetic", lambda **_: work())


def send(name, times=1):
    for _ in range(times):
        time.sleep(0.05)
        os.kill(os.getpid(), getattr(signal, name))
    time.sleep(0.05)


@both
def test_kernels_are_left_while_they_run(monkeypatch, capsys, name, code):
    spin(np.ones(1, dtype=np.uint8), 1, np.ones(1))
    sent = []

    def work():
        threading.Timer(0.3, lambda: (sent.append(time.monotonic()), send(name))).start()
        interruptible(FEW_ROWS, lambda: spin(stop_flag(), 10_000_000, np.full(1, 0.3)))

    run_instead(monkeypatch, work)
    assert cli.main(["demo"]) == code
    assert time.monotonic() - sent[0] < 1
    assert capsys.readouterr().err == said(name)


@both
def test_tidying_up_goes_on_however_often_a_signal_comes(monkeypatch, tmp_path, name, code):
    remove = shutil.rmtree

    def slowly(*folder, **how):
        send(name, times=3)
        remove(*folder, **how)

    def work():
        with spill_folder(tmp_path) as made:
            (made / "score").write_text("rows")
            send(name)

    monkeypatch.setattr(shutil, "rmtree", slowly)
    run_instead(monkeypatch, work)
    assert cli.main(["demo"]) == code
    assert list(tmp_path.iterdir()) == []


@both
def test_what_tidies_up_in_the_main_thread_goes_on_too(monkeypatch, name, code):
    done = []

    def work():
        try:
            send(name)
        finally:
            send(name, times=3)
            done.append(True)

    run_instead(monkeypatch, work)
    assert cli.main(["demo"]) == code
    assert done == [True]


@both
def test_a_first_signal_while_tidying_up_lets_it_end(monkeypatch, name, code):
    done = []
    run_instead(monkeypatch, lambda: finish(lambda: (send(name, times=2), done.append(True))))
    assert cli.main(["demo"]) == code
    assert done == [True]


def test_a_signal_whose_exception_was_swallowed_is_heard_the_next_time():
    heard = EndingSignals()
    with heard.heard(is_program=False):
        for _ in range(2):
            with pytest.raises(Stopped):
                send("SIGTERM")
    assert heard.seen == signal.SIGTERM


class Freed:
    """Runs code of ours when it is freed, where Python ignores all exceptions."""

    def __init__(self, work):
        self.work = work

    def __del__(self):
        self.work()


@both
def test_a_signal_that_comes_while_an_object_is_freed_is_heard(monkeypatch, capsys, name, code):
    def work():
        Freed(lambda: send(name))
        time.sleep(10)

    run_instead(monkeypatch, work)
    start = time.monotonic()
    assert cli.main(["demo"]) == code
    assert time.monotonic() - start < 5
    assert capsys.readouterr().err == said(name)


def test_other_ignored_exceptions_are_reported_as_before(monkeypatch):
    told = []
    monkeypatch.setattr("sys.unraisablehook", told.append)
    run_instead(monkeypatch, lambda: Freed(lambda: 1 / 0) and None)
    cli.main(["demo"])
    assert [type(one.exc_value) for one in told] == [ZeroDivisionError]


def test_the_first_signal_gives_the_code(monkeypatch, capsys):
    def work():
        try:
            send("SIGHUP")
        finally:
            send("SIGTERM")

    run_instead(monkeypatch, work)
    assert cli.main(["demo"]) == 129
    assert capsys.readouterr().err == said("SIGHUP")


def test_a_command_in_another_thread_leaves_the_handlers_alone(monkeypatch):
    seen = []
    run_instead(monkeypatch, lambda: seen.append(signal.getsignal(signal.SIGTERM)))
    thread = threading.Thread(target=cli.main, args=(["demo"],))
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]


def test_handlers_of_a_program_around_the_command_come_back():
    def own(*_):
        """Do what the program around the command does."""

    before = signal.signal(signal.SIGTERM, own)
    try:
        assert cli.main(["demo", "--queries", "0"]) == 3
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_library_sets_no_handler():
    mpc.audit(mpc.datasets.synthetic(queries=200), progress=False)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_jupyterlab_is_asked_to_end_and_waited_for(monkeypatch, tmp_path):
    pytest.importorskip("jupyterlab")
    (tmp_path / "jupyterlab.py").write_text(
        "import pathlib, signal, sys, time\n"
        "def end(*_):\n"
        "    time.sleep(0.2)\n"
        "    pathlib.Path(sys.argv[1], 'ended').write_text('')\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "pathlib.Path(sys.argv[1], 'started').write_text('')\n"
        "time.sleep(60)\n"
    )
    folder = tmp_path / "notebooks"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    process = started(["notebooks", folder], tmp_path)
    wait_for(process, (folder / "started").exists)
    process.send_signal(signal.SIGTERM)
    _, err = ended(process)
    assert (process.returncode, err) == (143, said("SIGTERM"))
    assert (folder / "ended").exists()
