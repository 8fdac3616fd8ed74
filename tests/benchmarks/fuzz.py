"""Fuzz frames, files, folders, command lines and questions: ``python tests/benchmarks/fuzz.py``.

Frames and options are audited and asked one further question; files of each kind are cut and
changed and read; folders of files with mixed schemas are audited in memory and walked; lines are
run over a good log; every method and function is given odd arguments.
A finding is two answers for one folder, or anything that comes out but a result or an ``MpcError``:
another exception, a warning, an exit code above 3, more than a minute, more memory than small logs
can need. The run stops at the first finding and prints its smallest form. At least 20,000 inputs by
default, 2,000 of them folders.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import os
import resource
import sys
import time
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from helpers import fuzz_folders, fuzz_questions, fuzzing

SHARES = {"frames": 0.3, "files": 0.25, "folders": 0.1, "lines": 0.2, "questions": 0.15}
MEMORY = 12 << 30
SECONDS_OF_SILENCE = 600


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=20_000, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--kinds", nargs="+", choices=SHARES, default=list(SHARES))
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    counted = dict.fromkeys(options.kinds, 0)
    # Some questions write files where they are asked.
    with fuzzing.scratch() as place, contextlib.chdir(place):
        for name in options.kinds:
            start = time.perf_counter()
            wanted = round(options.inputs * SHARES[name])
            good = SEEDS[name](Path(place))
            _repeat(
                lambda name=name, good=good: RUNS[name](Path(place), good, counted),
                wanted,
                options.seed,
                lambda name=name: counted[name],
            )
            took = time.perf_counter() - start
            print(f"{name}: {counted[name]:,} inputs, no finding, {took:.0f} s", flush=True)
    print(f"{sum(counted.values()):,} inputs in all, no finding")
    return 0


def _repeat(make, wanted, first_seed, done) -> None:
    """Run until so many inputs were tried; hypothesis may stop early where it has seen all."""
    round_ = 0
    while done() < wanted and round_ < 1000:
        limit = settings(
            max_examples=min(1_000, wanted - done()),
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        seed(first_seed * 1000 + round_)(limit(make()))()
        round_ += 1


def _count(counted, name) -> None:
    """Count an input, and end the run with a traceback if the next one never comes."""
    counted[name] += 1
    faulthandler.dump_traceback_later(SECONDS_OF_SILENCE, exit=True)


def _frames(place, good, counted):
    del place, good

    @given(
        fuzzing.frames(), fuzzing.options(), st.booleans(), st.sampled_from(sorted(fuzzing.ASKED))
    )
    def test(drawn, options, as_frame, question):
        _count(counted, "frames")
        log, named = drawn
        data = fuzzing.as_pandas(log) if as_frame else log
        audit = fuzzing.guard(lambda: fuzzing.audit_frame(data, named, options))
        if audit is not None:
            fuzzing.guard(lambda: fuzzing.ask(audit, question))

    return test


def _files(place, good, counted):
    @given(st.sampled_from(sorted(good)), fuzzing.edits())
    def test(name, edits):
        _count(counted, "files")
        content = fuzzing.spoil(good[name], edits)
        with _silent():
            fuzzing.guard(lambda: fuzzing.read_file(place, f"spoilt_{name}", content))

    return test


def _folders(place, good, counted):
    del good

    @given(fuzz_folders.folders())
    def test(drawn):
        _count(counted, "folders")
        with _silent():
            fuzzing.guard(lambda: fuzz_folders.compare(place / "folder", drawn))

    return test


def _lines(place, good, counted):
    del good

    @given(fuzzing.lines())
    def test(words):
        _count(counted, "lines")
        with _silent():
            fuzzing.guard(lambda: fuzzing.run_line(place / "log.csv", words))

    return test


def _questions(place, good, counted):
    del place

    @given(fuzz_questions.questions(good))
    def test(question):
        _count(counted, "questions")
        with _silent():
            fuzzing.guard(lambda: fuzz_questions.put(good, question))

    return test


@contextlib.contextmanager
def _silent():
    """Keep what the command line prints, and show it with a finding."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield
    except BaseException:
        print(err.getvalue()[-3000:], file=sys.stderr)
        raise


RUNS = {
    "frames": _frames,
    "files": _files,
    "folders": _folders,
    "lines": _lines,
    "questions": _questions,
}
# What each kind of input is made from.
SEEDS = {
    "frames": lambda place: None,
    "files": fuzzing.seeds,
    "folders": lambda place: None,
    "lines": fuzzing.seeds,
    "questions": fuzz_questions.audits,
}

if __name__ == "__main__":
    sys.exit(main())
