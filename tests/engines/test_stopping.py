"""Ctrl-C is seen while kernels and DuckDB run, and leaves no half-written file."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from concurrent.futures import wait

import numpy as np
import pytest

import mpc_lab as mpc
from helpers.spinning import spin
from mpc_lab.engines.duckdb.chunks import spill_folder
from mpc_lab.engines.memory import MemoryWalk
from mpc_lab.pairing.kernels import FEW_ROWS, finish, interruptible, stop_flag, stopped_by
from mpc_lab.pairing.log import sort_rows

STEPS = 10_000_000  # some ten seconds


def spin_until_stopped():
    spin(stop_flag(), STEPS, np.full(1, 0.3))


def seconds_until_stopped(work):
    """Press Ctrl-C while the work is under way, and return how long it took to be seen."""
    pressed = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        work()
    return time.monotonic() - pressed[0]


@pytest.fixture(autouse=True)
def ctrl_c():
    """Hear Ctrl-C also where tests were started in the background of a shell, which does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def log():
    spin(np.ones(1, dtype=np.uint8), 1, np.ones(1))
    return sort_rows(mpc.datasets.synthetic(queries=20_000))


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_walk_is_left_while_its_kernels_run(log, monkeypatch, threads):
    monkeypatch.setenv("MPC_LAB_THREADS", threads)
    flags = []

    def task(log, first, last):
        flags.append(stop_flag())
        return spin_until_stopped()

    assert seconds_until_stopped(lambda: list(MemoryWalk(log)(task, "spinning"))) < 1
    assert all(flag[0] == 1 for flag in flags)


def test_a_signal_that_comes_before_the_wait_is_seen_soon(monkeypatch):
    """As if it had come in the moment between the last look at signals and the sleep."""
    waits = []

    def unseen(futures, timeout):
        waits.append(timeout)
        time.sleep(timeout)
        if len(waits) == 2:
            raise KeyboardInterrupt
        return wait([], timeout=0)._replace(done=set())

    monkeypatch.setattr("mpc_lab.pairing.kernels.wait", unseen)
    with pytest.raises(KeyboardInterrupt):
        interruptible(FEW_ROWS, spin_until_stopped)
    assert sum(waits) < 1


def test_one_long_kernel_is_left_while_it_runs():
    spin(np.ones(1, dtype=np.uint8), 1, np.ones(1))
    assert seconds_until_stopped(lambda: interruptible(FEW_ROWS, spin_until_stopped)) < 1


def test_kernels_that_were_left_end_soon():
    before = set(threading.enumerate())  # such as those of a cluster of other tests
    test_one_long_kernel_is_left_while_it_runs()
    time.sleep(0.5)
    started = [thread for thread in threading.enumerate() if thread not in before]
    assert not [t for t in started if t.name.startswith("ThreadPool") and busy(t)]


def busy(thread):
    thread.join(timeout=2)
    return thread.is_alive()


def test_what_a_task_raises_comes_out_and_stops_the_others(log):
    flags = []

    def task(log, first, last):
        flags.append(stop_flag())
        if first == 0:
            raise mpc.MpcError("not this block")
        return spin_until_stopped()

    with pytest.raises(mpc.MpcError, match="not this block"):
        list(MemoryWalk(log)(task, "failing"))
    assert all(flag[0] == 1 for flag in flags)


def test_a_few_rows_are_done_where_one_is():
    found = interruptible(FEW_ROWS - 1, threading.current_thread)
    assert found is threading.main_thread()
    assert interruptible(FEW_ROWS, threading.current_thread) is not threading.main_thread()


def test_flags_are_those_of_the_innermost_block():
    one, other = np.zeros(1, dtype=np.uint8), np.zeros(1, dtype=np.uint8)
    with stopped_by(one):
        with stopped_by(other):
            assert stop_flag() is other
        assert stop_flag() is one
    assert stop_flag()[0] == 0


def test_a_long_list_stops_once_it_is_asked_to(monkeypatch):
    n = 20_000
    rng = np.random.default_rng(0)
    frame = {"q": np.zeros(n), "s": rng.random(n), "y": rng.random(n), "g": rng.random(n) < 0.5}
    ranking = mpc.Ranking(frame, query="q", score="s", outcome="y", group=["g"])
    monkeypatch.setattr("mpc_lab.pairing.sweep.stop_flag", lambda: np.ones(1, dtype=np.uint8))
    found = mpc.audit(ranking, threshold=0.5, epsilon=[0.5], progress=False)
    assert found.headline.n_pairs.item() == 0


def test_an_interrupted_save_leaves_the_old_file_whole(tmp_path, monkeypatch):
    audit = mpc.audit(mpc.datasets.synthetic(queries=200), progress=False)
    path = tmp_path / "audit.nc"
    audit.save(path)
    before = path.read_bytes()

    def interrupted(part, *_mode):
        part.write_bytes(before[:1000])
        raise KeyboardInterrupt

    monkeypatch.setattr("mpc_lab.results.storage.open", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        audit.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["audit.nc"]


BIG = 60_000_000  # rows; some ten seconds


@pytest.mark.parametrize(
    "ask",
    [
        lambda database, rows: list(database.batches(rows).__enter__()),
        lambda database, rows: database.rows(f"SELECT max(place) FROM ({rows})"),
        lambda database, rows: database.do(f"CREATE TEMP TABLE sorted AS {rows}"),
    ],
    ids=["batches", "rows", "do"],
)
def test_a_database_is_left_while_it_sorts(tmp_path, ask):
    pytest.importorskip("duckdb")
    from mpc_lab.engines.duckdb.rows import connect
    from mpc_lab.engines.running import as_limits

    rows = f"SELECT row_number() OVER (ORDER BY hash(i)) AS place, i FROM range({BIG}) t(i)"
    with connect(as_limits("1GB"), tmp_path) as database:
        assert seconds_until_stopped(lambda: ask(database, rows)) < 1
        assert database.rows("SELECT 1") == [(1,)]  # and it is still there
    assert list(tmp_path.iterdir()) == []


def press_often(times=3):
    for _ in range(times):
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)


def test_what_tidies_up_is_done_however_often_ctrl_c_is_pressed():
    done = []
    with pytest.raises(KeyboardInterrupt):
        finish(lambda: (press_often(), done.append(True)))
    assert done == [True]


def test_a_folder_for_spilling_goes_however_often_ctrl_c_is_pressed(tmp_path, monkeypatch):
    remove = shutil.rmtree

    def slowly(*folder, **how):
        press_often()
        remove(*folder, **how)

    monkeypatch.setattr(shutil, "rmtree", slowly)

    def spill():
        with spill_folder(tmp_path) as made:
            (made / "score").write_text("rows")

    with pytest.raises(KeyboardInterrupt):
        spill()
    assert list(tmp_path.iterdir()) == []


class Late(Exception):
    """What a handler of another signal may raise."""


def test_a_database_is_left_for_other_signals_too(tmp_path):
    pytest.importorskip("duckdb")
    from mpc_lab.engines.duckdb.rows import connect
    from mpc_lab.engines.running import as_limits

    def late(*_):
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    try:
        with connect(as_limits("1GB"), tmp_path) as database:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            start = time.monotonic()
            with pytest.raises(Late):
                database.rows(f"SELECT max(hash(i)) FROM range({BIG * 1000}) t(i)")
            assert time.monotonic() - start < 2
    finally:
        signal.signal(signal.SIGALRM, before)
