"""One log, one answer: every door and every engine gives the same of the same files."""

from __future__ import annotations

import os
import re

import pandas as pd
import pyarrow as pa
import pytest

import mpc_lab as mpc
from helpers.file_corpus import CASES, COLUMNS, Case
from mpc_lab import cli
from mpc_lab.cli.options import as_typed
from mpc_lab.explorers.start_state import StartState
from mpc_lab.files import find_files
from mpc_lab.ranking.names import column_names

NOT_COLUMNS = ("sep", "encoding", "missing")
GOOD = [name for name, case in CASES.items() if not case.said]
# Elsewhere than in CI, every sixth is tried.
SOME = [
    pytest.param(name, marks=pytest.mark.long if number % 6 else ())
    for number, name in enumerate(GOOD)
]
REFUSED = [name for name, case in CASES.items() if case.said]
# Clusters get columns that files have been read into, so one case of each type of column and kind
# of cell is enough for all.
ON_CLUSTERS = (
    "commas",
    "quotes, separators and breaks in a cell",
    "leading zeros",
    "an empty label is none",
    "truth as outcome",
    "every digit",
    "missing words",
    "flags",
    "lists of labels",
    "numbers as ids",
    "narrow types",
    "unsigned ids",
    "two zeros",
    "days as ids",
    "whole numbers and floats",
)


@pytest.fixture
def laid(request, tmp_path, monkeypatch):
    """The files of a case in the working folder, and what is given to the doors."""
    case = CASES[request.param]
    monkeypatch.chdir(tmp_path)
    os.mkdir("log")
    for name, write in case.files.items():
        path = tmp_path / "log" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
    for name, target in case.link.items():
        os.symlink(target, tmp_path / "log" / name)
    given = list(case.given) if case.given else ["log"]
    if case.given:
        monkeypatch.chdir(tmp_path / "log")
    return case, given


def columns_of(case: Case) -> dict:
    return {**COLUMNS, **{k: v for k, v in case.how.items() if k not in NOT_COLUMNS}}


def keywords(case: Case) -> dict:
    missing = {k: v for k, v in case.how.items() if k == "missing"}
    return {**columns_of(case), **missing, "progress": False}


def reading(case: Case) -> dict:
    return {k: v for k, v in case.how.items() if k in ("sep", "encoding")}


def answer(audit: mpc.results.Audit) -> pd.DataFrame:
    table = audit.to_frame()
    kept = ["group", "n_pairs", "n_queries", "n_items", "estimate", "epsilon", "verdict"]
    return table[kept].round(12)


def by_path(case: Case, given: list[str], **more) -> mpc.results.Audit:
    return mpc.audit(given, **keywords(case), **reading(case), **more)


def by_command(case: Case, given: list[str], tmp_path) -> mpc.results.Audit:
    words = [
        f"--{role}={','.join(v) if isinstance(v, list) else v}"
        for role, v in columns_of(case).items()
    ]
    words += [f"--{name}={case.how[name]}" for name in NOT_COLUMNS if name in case.how]
    code = cli.main(["audit", *given, *words, "--quiet", f"--save={tmp_path / 'out.nc'}"])
    if code:
        raise mpc.MpcError(f"code {code}")
    return mpc.load(tmp_path / "out.nc")


def by_panel(case: Case, given: list[str]) -> mpc.results.Audit:
    state = StartState()
    state.use(find_files(given, **reading(case)).read_all(), "file")
    for role, column in columns_of(case).items():
        state.choose(role, column)
    state.leave_out = case.how.get("missing") == "drop"
    return state.run()


def tables(case: Case, given: list[str]) -> list:
    """Return the log as partitions, one a batch that the files give."""
    files = find_files(given, **reading(case))
    roles = column_names(**columns_of(case)).roles()
    batches = [batch for batch in files.batches(roles) if batch.num_rows]
    return [pa.Table.from_batches([batch]) for batch in batches]


def expected(case: Case) -> pd.DataFrame:
    return answer(mpc.audit(case.frame.reset_index(drop=True), **keywords(case)))


@pytest.mark.parametrize("laid", SOME, indirect=True)
def test_three_doors_and_two_engines_agree(laid, tmp_path):
    case, given = laid
    right = expected(case)
    assert len(right), "a case without groups shows nothing"
    for found in (
        by_path(case, given),
        by_path(case, given, memory="1GB"),
        by_command(case, given, tmp_path),
        by_panel(case, given),
    ):
        pd.testing.assert_frame_equal(answer(found), right)


def on_dask(parts: list) -> object:
    import dask.dataframe as dd

    frames = [part.to_pandas(types_mapper=pd.ArrowDtype) for part in parts]
    return dd.from_map(lambda frame: frame, frames, meta=frames[0][:0])


@pytest.fixture(scope="session")
def clusters():
    """What clusters answered: files that hold one log are given to them once."""
    return {}


def by_cluster(name: str, clusters: dict, laid: tuple[Case, list[str]], frame) -> pd.DataFrame:
    case, given = laid
    parts = tables(case, given)
    key = (name, str(keywords(case)), *((part.schema, str(part.to_pydict())) for part in parts))
    if key not in clusters:
        clusters[key] = answer(mpc.audit(frame(parts), **keywords(case)))
    return clusters[key]


@pytest.mark.needs_dask
@pytest.mark.parametrize(
    "laid", [n for n in ON_CLUSTERS if "dask" in CASES[n].engines], indirect=True
)
def test_dask_agrees(laid, clusters):
    import dask

    with dask.config.set({"dataframe.convert-string": False, "scheduler": "synchronous"}):
        found = by_cluster("dask", clusters, laid, on_dask)
    pd.testing.assert_frame_equal(found, expected(laid[0]))


@pytest.mark.needs_spark
@pytest.mark.parametrize(
    "laid", [n for n in ON_CLUSTERS if "spark" in CASES[n].engines], indirect=True
)
def test_spark_agrees(laid, clusters, spark):
    found = by_cluster(
        "spark", clusters, laid, lambda parts: spark.createDataFrame(pa.concat_tables(parts))
    )
    pd.testing.assert_frame_equal(found, expected(laid[0]))


@pytest.mark.parametrize("laid", REFUSED, indirect=True)
def test_three_doors_and_two_engines_refuse_in_one_sentence(laid, tmp_path, capsys):
    case, given = laid
    said = []
    for door in (
        lambda: by_path(case, given),
        lambda: by_path(case, given, memory="1GB"),
        lambda: by_panel(case, given),
    ):
        with pytest.raises(mpc.MpcError, match=case.said) as caught:
            door()
        said.append(str(caught.value))
    assert len(set(said)) == 1
    capsys.readouterr()
    with pytest.raises(mpc.MpcError, match="code 3"):
        by_command(case, given, tmp_path)
    lines = capsys.readouterr().err.splitlines()
    assert re.sub("^mpc-lab: ", "", lines[-1]) == as_typed(said[0])


def test_the_corpus_is_large_enough():
    assert sum(len(case.files) for case in CASES.values()) >= 60
    assert len(CASES) >= 60
