"""Questions of a report are answered in another thread, each once, and the page is the same."""

import threading

import numpy as np
import pytest

import mpc_lab as mpc
from mpc_lab.pairing.kernels import stop_flag
from mpc_lab.report.ahead import Answers


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setenv("MPC_LAB_THREADS", "2")


def test_a_question_is_answered_once_and_in_another_thread(two_threads):
    answers, asked = Answers(), []

    def question():
        asked.append(threading.current_thread())
        return 7

    answers.ask_ahead("seven", question)
    assert [answers.get("seven", question) for _ in range(3)] == [7, 7, 7]
    assert asked != [threading.main_thread()]
    assert len(asked) == 1
    answers.close()


def test_with_one_thread_a_question_is_answered_when_it_is_needed(monkeypatch):
    monkeypatch.setenv("MPC_LAB_THREADS", "1")
    answers, asked = Answers(), []

    def question():
        asked.append(threading.current_thread())

    answers.ask_ahead("it", question)
    assert not asked
    answers.get("it", question)
    answers.get("it", question)
    assert asked == [threading.main_thread()]


@pytest.mark.parametrize("ahead", [True, False])
def test_an_error_is_raised_at_each_use(two_threads, ahead):
    answers, asked = Answers(), []

    def question():
        asked.append(1)
        raise mpc.MpcError("A question must have an answer; got none.")

    if ahead:
        answers.ask_ahead("none", question)
    for _ in range(2):
        with pytest.raises(mpc.MpcError, match="must have an answer"):
            answers.get("none", question)
    assert len(asked) == 1
    answers.close()


def test_after_the_end_kernels_are_told_to_stop_and_nothing_more_is_answered(two_threads):
    answers, started, seen, later = Answers(), threading.Event(), [], []
    told = threading.Event()

    def question():
        flag = stop_flag()
        started.set()
        while not flag[0]:
            pass
        seen.append(flag[0])
        told.set()

    answers.ask_ahead("long", question)
    answers.ask_ahead("later", lambda: later.append(1))
    started.wait(60)
    answers.close()
    assert told.wait(60)
    assert seen == [np.uint8(1)]
    assert not later


def test_the_page_does_not_depend_on_the_number_of_threads(monkeypatch, tmp_path, no_charts):
    pages = []
    audit = mpc.audit(mpc.datasets.synthetic(queries=1_000), progress=False)
    for threads in "21":
        monkeypatch.setenv("MPC_LAB_THREADS", threads)
        pages.append(audit.report(tmp_path / f"{threads}.html", progress=False).read_bytes())
    # Not compared in the assertion itself: the difference of two long pages takes minutes to show.
    alike = pages[0] == pages[1]
    assert alike
