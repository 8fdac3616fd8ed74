"""A short fuzz run; ``python tests/benchmarks/fuzz.py`` is the long one."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mpc_lab as mpc
from helpers import fuzz_folders, fuzz_questions, fuzzing
from helpers.strategies import calmly

SHORT = settings(
    calmly(25),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
SHORTER = settings(SHORT, max_examples=calmly(15).max_examples)


@pytest.fixture(scope="module")
def folder():
    with fuzzing.scratch() as place:
        yield Path(place)


@pytest.fixture(scope="module")
def seeds(folder):
    return fuzzing.seeds(folder)


@pytest.mark.parametrize(("role", "value"), [("score", 2e300), ("outcome", -1e101)])
def test_numbers_too_large_to_compute_with_are_refused(role, value):
    log = {"query": [1, 1], "score": [0.1, 0.2], "outcome": [0.0, 1.0], "group": ["a", "b"]}
    log[role][1] = value
    with pytest.raises(mpc.MpcError, match=f"{role} column .* at most .* row 1"):
        mpc.audit(log, **{name: name for name in log})


@SHORT
@given(fuzzing.frames(), fuzzing.options(), st.booleans(), st.sampled_from(sorted(fuzzing.ASKED)))
def test_any_frame_and_option_gives_an_audit_or_one_sentence(drawn, options, as_frame, question):
    log, named = drawn
    data = fuzzing.as_pandas(log) if as_frame else log
    audit = fuzzing.guard(lambda: fuzzing.audit_frame(data, named, options))
    if audit is not None:
        fuzzing.guard(lambda: fuzzing.ask(audit, question))


@SHORTER
@given(fuzz_folders.folders())
def test_any_folder_is_one_log_or_one_sentence_in_memory_and_walked(folder, drawn):
    fuzzing.guard(lambda: fuzz_folders.compare(folder / "mixed", drawn))


@SHORTER
@given(
    name=st.sampled_from(("log.csv", "log.parquet", "audit.toml", "audit.nc")),
    edits=fuzzing.edits(),
)
def test_any_spoilt_file_gives_an_answer_or_one_sentence(folder, seeds, name, edits):
    content = fuzzing.spoil(seeds[name], edits)
    fuzzing.guard(lambda: fuzzing.read_file(folder, f"spoilt_{name}", content))


@SHORTER
@given(fuzzing.lines())
def test_any_line_gives_an_answer_or_one_sentence(folder, seeds, words):
    with chdir(folder):  # a line may name a file to write
        fuzzing.guard(lambda: fuzzing.run_line(folder / "log.csv", words))


@pytest.fixture(scope="module")
def audits(folder):
    return fuzz_questions.audits(folder)


@SHORT
@given(data=st.data())
def test_any_question_gives_an_answer_or_one_sentence(folder, audits, data):
    question = data.draw(fuzz_questions.questions(audits))
    with chdir(folder):
        fuzzing.guard(lambda: fuzz_questions.put(audits, question))


def test_every_argument_has_good_values(audits):
    for function in fuzz_questions.ASKED.values():
        for name in fuzz_questions.arguments(function):
            assert fuzz_questions.good_values(name, audits)


def test_every_public_name_is_asked():
    front = {*mpc.__all__} - {
        "Audit",
        "AuditFailed",
        "Difference",
        "Discovery",
        "MpcError",
        "Ranking",
        "Trend",
        "audit",
    }
    rooms = {"charts", "datasets", "explorers", "rankers"}
    assert front - rooms <= set(fuzz_questions.ASKED)
